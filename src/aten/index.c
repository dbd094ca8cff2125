// Reading at positions: embedding, gather, index_select, advanced indexing.
#include <string.h>

#include "aten/index_util.h"
#include "aten/lowering.h"

tn_status_t tn_check_index(tn_lowering_t* l, const tn_node_t* index) {
  if (!index || (tn_dtype_of(index) != TN_I64 && tn_dtype_of(index) != TN_I32))
    return TN_DECLINE("%s: expected int32 or int64 indices", l->op->name);
  return TN_OK;
}

const tn_node_t* tn_at_least_1d(tn_lowering_t* l, const tn_node_t* x) {
  const int64_t one = 1;
  return x && tn_rank(x) == 0 ? tn_reshape(l->graph, x, 1, &one) : x;
}

// weight, indices, padding_idx, scale_grad_by_freq, sparse
tn_status_t tn_lower_embedding(tn_lowering_t* l) {
  const tn_node_t *weight = tn_arg_tensor(l, 0), *indices = tn_arg_tensor(l, 1);
  TN_TRY(tn_check_index(l, indices));
  if (tn_rank(weight) != 2) return TN_DECLINE("'weight' must be 2-D");
  tn_return(l, tn_take(l->graph, weight, indices, 0, TN_BOUNDS_ERROR));
  return TN_OK;
}

// grad, indices, num_weights, padding_idx, scale_grad_by_freq
tn_status_t tn_lower_embedding_backward(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *grad = tn_arg_tensor(l, 0), *indices = tn_arg_tensor(l, 1);
  TN_TRY(tn_check_index(l, indices));
  const bool scales = tn_arg_bool(l, 4, false);
  const int64_t rows = tn_arg_int(l, 2, 0), padding = tn_arg_int(l, 3, -1),
                width = tn_dim(grad, tn_rank(grad) - 1);
  int64_t count = tn_type_element_count(&indices->types[0]);
  const int64_t flat_dims[] = {count, width}, table_dims[] = {rows, width};
  const tn_node_t *flat = tn_reshape(g, indices, 1, &count),
                  *updates = tn_reshape(g, grad, 2, flat_dims);
  const tn_dtype_t dtype = tn_dtype_of(grad), opmath = tn_opmath_dtype(dtype);
  updates = tn_convert(g, updates, opmath);
  if (padding >= 0 && updates) {
    const int64_t map = 0;
    const tn_node_t* is_padding =
        tn_compare(g, TN_EQ, flat, tn_constant_like(g, flat, (double)padding));
    updates = tn_select(g, tn_broadcast_in_dim(g, is_padding, 2, flat_dims, &map),
                        tn_constant_like(g, updates, 0.0), updates);
  }
  if (scales && updates) {  // divided by how often the row is used
    const tn_type_t counts_type = tn_type_make(opmath, 1, &rows),
                    each = tn_type_make(opmath, 1, &count);
    const tn_node_t* counts =
        tn_put_rows(l, tn_constant_splat(g, &counts_type, tn_scalar_from_double(opmath, 0.0)), flat,
                    tn_constant_splat(g, &each, tn_scalar_from_double(opmath, 1.0)), 0,
                    TN_REDUCE_SUM, TN_BOUNDS_ERROR);
    const int64_t map = 0;
    counts = tn_take(g, counts, flat, 0, TN_BOUNDS_ERROR);
    updates = tn_binary(g, TN_OP_DIV, updates, tn_broadcast_in_dim(g, counts, 2, flat_dims, &map));
  }
  const tn_type_t type = tn_type_make(opmath, 2, table_dims);
  const tn_node_t* zeros = tn_constant_splat(g, &type, tn_scalar_from_double(opmath, 0.0));
  const tn_node_t* sums = tn_put_rows(l, zeros, flat, updates, 0, TN_REDUCE_SUM, TN_BOUNDS_ERROR);
  tn_return(l, tn_convert(g, sums, dtype));
  return TN_OK;
}

// The norm of each of |rows|.
static const tn_node_t* row_norms(tn_lowering_t* l, const tn_node_t* rows, double order) {
  static const int64_t last = 1;
  tn_value_t args[5] = {
      {.kind = TN_VALUE_TENSOR, .dtype = (uint8_t)tn_dtype_of(rows), .node = rows},
      {.kind = TN_VALUE_SCALAR, .dtype = TN_F64},
      {.kind = TN_VALUE_INTS, .count = 1}};
  args[1].scalar.f64 = order;
  args[2].as.ints = &last;
  const tn_status_t status = tn_lower_nested(l, "linalg_vector_norm", 5, args);
  if (status) return tn_graph_fail(l->graph, status);
  return l->results[--l->result_count].node;
}

// weight, indices, max_norm, norm_type: rows in use whose norm is larger are scaled down to it.
tn_status_t tn_lower_embedding_renorm(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *weight = tn_arg_tensor(l, 0), *indices = tn_arg_tensor(l, 1);
  TN_TRY(tn_check_index(l, indices));
  if (tn_rank(weight) != 2 || !tn_dtype_is_float(tn_dtype_of(weight)))
    return TN_DECLINE("%s: expected a table of floating point rows", l->op->name);
  const tn_dtype_t dtype = tn_dtype_of(weight), opmath = tn_opmath_dtype(dtype);
  const double most = tn_arg_double(l, 2, 0.0);
  const int64_t count = tn_type_element_count(&indices->types[0]);
  const int64_t dims[] = {count, tn_dim(weight, 1)}, map = 0;
  const tn_node_t* flat = tn_reshape(g, indices, 1, &count);
  const tn_node_t* rows = tn_convert(g, tn_take(g, weight, flat, 0, TN_BOUNDS_ERROR), opmath);
  const tn_node_t* norm = row_norms(l, rows, tn_arg_double(l, 3, 2.0));
  if (!norm) return tn_graph_status(g);
  const tn_node_t* one = tn_constant_like(g, norm, 1.0);
  const tn_node_t* shrunk =
      tn_binary(g, TN_OP_DIV, tn_constant_like(g, norm, most),
                tn_binary(g, TN_OP_ADD, norm, tn_constant_like(g, norm, 1e-7)));
  const tn_node_t* is_over = tn_compare(g, TN_GT, norm, tn_constant_like(g, norm, most));
  const tn_node_t* scale = tn_select(g, is_over, shrunk, one);
  rows = tn_binary(g, TN_OP_MUL, rows, tn_broadcast_in_dim(g, scale, 2, dims, &map));
  // A row that is named twice is written twice with the same values.
  tn_return(l, tn_put_rows(l, weight, flat, tn_convert(g, rows, dtype), 0, TN_REDUCE_ASSIGN,
                           TN_BOUNDS_ERROR));
  return TN_OK;
}

// x, dim, index
tn_status_t tn_lower_index_select(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *x = tn_arg_tensor(l, 0), *index = tn_arg_tensor(l, 2);
  TN_TRY(tn_check_index(l, index));
  if (tn_rank(index) > 1) return TN_DECLINE("%s: index of more dimensions", l->op->name);
  const int64_t count = tn_type_element_count(&index->types[0]);
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(x));
  index = tn_reshape(g, index, 1, &count);
  if (tn_rank(x) > 0) {
    tn_return(l, tn_take(g, x, index, dim, TN_BOUNDS_ERROR));
    return TN_OK;
  }
  if (count != 1) return TN_DECLINE("%s: index of one element for a 0-dim input", l->op->name);
  x = tn_take(g, tn_at_least_1d(l, x), index, 0, TN_BOUNDS_ERROR);
  tn_return(l, tn_reshape(g, x, 0, NULL));
  return TN_OK;
}

// x, dim, index, *, sparse_grad
tn_status_t tn_lower_gather(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *x = tn_arg_tensor(l, 0), *index = tn_arg_tensor(l, 2);
  if (!x || !index) return TN_DECLINE("%s: operand is missing", l->op->name);
  const tn_type_t out = index->types[0];
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(x));
  if (tn_type_element_count(&out) == 0) {  // of any dtype and rank
    const tn_type_t type = tn_type_make(tn_dtype_of(x), out.rank, out.dims);
    tn_return(l, tn_constant_splat(g, &type, (tn_scalar_t){0}));
    return TN_OK;
  }
  TN_TRY(tn_check_index(l, index));
  x = tn_at_least_1d(l, x);
  index = tn_at_least_1d(l, index);
  if (tn_rank(x) != tn_rank(index)) return TN_DECLINE("%s: ranks", l->op->name);
  for (int d = 0; d < tn_rank(x); ++d)
    if (d != dim && tn_dim(index, d) > tn_dim(x, d))
      return TN_DECLINE("%s: size of the index", l->op->name);
  const tn_node_t* y = tn_take_along(g, x, index, dim, TN_BOUNDS_ERROR);
  tn_return(l, tn_reshape(g, y, out.rank, out.dims));
  return TN_OK;
}

// x, index: x as one row of elements.
tn_status_t tn_lower_take(tn_lowering_t* l) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *index = tn_arg_tensor(l, 1);
  if (!x || !index || tn_dtype_of(index) != TN_I64)
    return TN_DECLINE("take(): Expected a long tensor for index");
  const int64_t count = tn_type_element_count(&x->types[0]);
  if (count == 0 && tn_type_element_count(&index->types[0]) != 0)
    return TN_DECLINE("take(): tried to take from an empty tensor");
  tn_return(l, tn_take(l->graph, tn_reshape(l->graph, x, 1, &count), index, 0, TN_BOUNDS_WRAP));
  return TN_OK;
}

// ---- x[i, :, j] ---------------------------------------------------------------------------------------------

tn_status_t tn_read_indexing(tn_lowering_t* l, const tn_node_t* x, int list, tn_indexing_t* out) {
  tn_graph_t* g = l->graph;
  memset(out, 0, sizeof(*out));
  const int count = tn_arg_list_count(l, list);
  if (count > tn_rank(x))
    return TN_DECLINE("%s: too many indices for tensor of dimension %d", l->op->name, tn_rank(x));
  const tn_node_t* index[TN_MAX_RANK];
  for (int d = 0; d < count; ++d) {
    const tn_node_t* item = tn_arg_list_tensor(l, list, d);
    if (!item) continue;
    if (tn_dtype_of(item) == TN_BOOL || tn_dtype_of(item) == TN_U8)
      return TN_DECLINE("%s: a mask, whose result size depends on data", l->op->name);
    TN_TRY(tn_check_index(l, item));
    index[out->count] = tn_convert(g, item, TN_I64);
    out->dim[out->count++] = d;
  }
  if (out->count == 0) return TN_DECLINE("%s: no index given", l->op->name);
  tn_type_t type = index[0]->types[0];
  for (int i = 1; i < out->count; ++i) {
    const tn_node_t* wide = tn_broadcast_to(g, index[0], type.rank, type.dims);
    if (!wide) return tn_graph_status(g);
    type = tn_broadcast_type(l, wide, index[i]);
    index[0] = tn_broadcast_to(g, index[0], type.rank, type.dims);
  }
  out->index_rank = type.rank;
  memcpy(out->index_dims, type.dims, sizeof(out->index_dims));
  int64_t column[TN_MAX_RANK];
  memcpy(column, type.dims, sizeof(column));
  if (type.rank == TN_MAX_RANK || tn_rank(x) - out->count + type.rank > TN_MAX_RANK)
    return TN_DECLINE("%s: rank", l->op->name);
  column[type.rank] = 1;
  for (int i = 0; i < out->count; ++i)
    index[i] =
        tn_reshape(g, tn_broadcast_to(g, index[i], type.rank, type.dims), type.rank + 1, column);
  out->starts = out->count == 1 ? index[0] : tn_concat(g, out->count, index, type.rank);
  // Indexed dimensions that stand together are replaced in place; others move to the front.
  const bool is_adjacent = out->dim[out->count - 1] - out->dim[0] + 1 == out->count;
  out->position = is_adjacent ? (int)out->dim[0] : 0;
  tn_gather_dims_t* dims = &out->dims;
  int kept = 0;
  bool is_indexed[TN_MAX_RANK] = {false};
  for (int i = 0; i < out->count; ++i) {
    is_indexed[out->dim[i]] = true;
    dims->collapsed[dims->collapsed_count++] = out->dim[i];
    dims->map[dims->map_count++] = out->dim[i];
  }
  for (int d = 0; d < tn_rank(x); ++d) {
    out->slice[d] = is_indexed[d] ? 1 : tn_dim(x, d);
    if (is_indexed[d]) continue;
    dims->offset[dims->offset_count++] = kept < out->position ? kept : kept + type.rank;
    out->result_dims[kept < out->position ? kept : kept + type.rank] = tn_dim(x, d);
    ++kept;
  }
  for (int d = 0; d < type.rank; ++d) out->result_dims[out->position + d] = type.dims[d];
  out->result_rank = kept + type.rank;
  dims->index_vector_dim = type.rank;
  return TN_OK;
}

// x, indices[]
tn_status_t tn_lower_index(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  tn_indexing_t indexing;
  TN_TRY(tn_read_indexing(l, x, 1, &indexing));
  if (indexing.count == 1) {
    const tn_node_t* index =
        tn_reshape(l->graph, indexing.starts, indexing.index_rank, indexing.index_dims);
    tn_return(l, tn_take(l->graph, x, index, (int)indexing.dim[0], TN_BOUNDS_WRAP));
    return TN_OK;
  }
  tn_return(
      l, tn_gather(l->graph, x, indexing.starts, &indexing.dims, indexing.slice, TN_BOUNDS_WRAP));
  return TN_OK;
}
