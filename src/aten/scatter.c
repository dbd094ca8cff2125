// Writing at positions: index_put, index_add, scatter.
#include <string.h>

#include "aten/index_util.h"
#include "aten/lowering.h"

const tn_node_t* tn_put_rows(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* index,
                             const tn_node_t* updates, int dim, tn_reduce_kind_t kind,
                             tn_bounds_t bounds) {
  tn_gather_dims_t dims = {0};
  for (int d = 0; d < tn_rank(x); ++d)
    if (d != dim) dims.offset[dims.offset_count++] = d;
  dims.collapsed[dims.collapsed_count++] = dim;
  dims.map[dims.map_count++] = dim;
  dims.index_vector_dim = 1;
  const int64_t column[] = {tn_dim(index, 0), 1};
  return tn_scatter(l->graph, x, tn_reshape(l->graph, index, 2, column), updates, &dims, kind,
                    bounds);
}

static tn_status_t check_index(tn_lowering_t* l, const tn_node_t* index) {
  if (!index || (tn_dtype_of(index) != TN_I64 && tn_dtype_of(index) != TN_I32))
    return TN_DECLINE("%s: expected int32 or int64 indices", l->op->name);
  return TN_OK;
}

// x[mask] = value with one value is a select.
static bool is_mask_fill(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* values) {
  const tn_node_t* mask = tn_arg_list_count(l, 1) == 1 ? tn_arg_list_tensor(l, 1, 0) : NULL;
  if (!mask || tn_dtype_of(mask) != TN_BOOL || tn_arg_bool(l, 3, false) ||
      tn_rank(mask) > tn_rank(x) || tn_type_element_count(&values->types[0]) != 1 ||
      tn_dtype_of(values) != tn_dtype_of(x))
    return false;
  for (int d = 0; d < tn_rank(mask); ++d)
    if (tn_dim(mask, d) != tn_dim(x, d)) return false;
  return true;
}

// x, indices[], values, accumulate
tn_status_t tn_lower_index_put(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *x = tn_arg_tensor(l, 0), *values = tn_arg_tensor(l, 2);
  if (!x || !values) return TN_DECLINE("index_put: missing operand");
  if (is_mask_fill(l, x, values)) {
    const tn_node_t* mask = tn_arg_list_tensor(l, 1, 0);
    int64_t map[TN_MAX_RANK];
    for (int d = 0; d < tn_rank(mask); ++d) map[d] = d;
    mask = tn_broadcast_in_dim(g, mask, tn_rank(x), x->types[0].dims, map);
    values = tn_broadcast_to(g, tn_reshape(g, values, 0, NULL), tn_rank(x), x->types[0].dims);
    tn_return(l, tn_select(g, mask, values, x));
    return TN_OK;
  }
  if (tn_dtype_of(values) != tn_dtype_of(x))
    return TN_DECLINE("Index put requires the source and destination dtypes match");
  const bool accumulate = tn_arg_bool(l, 3, false);
  tn_indexing_t indexing;
  TN_TRY(tn_read_indexing(l, x, 1, &indexing));
  if (tn_rank(values) > indexing.result_rank) {  // leading dimensions of 1 fall away
    const int extra = tn_rank(values) - indexing.result_rank;
    for (int d = 0; d < extra; ++d)
      if (tn_dim(values, d) != 1) return TN_DECLINE("index_put: shape of the values");
    values = tn_reshape(g, values, indexing.result_rank, values->types[0].dims + extra);
  }
  const int lead = indexing.result_rank - tn_rank(values);
  for (int d = 0; d < tn_rank(values); ++d)
    if (tn_dim(values, d) != 1 && tn_dim(values, d) != indexing.result_dims[d + lead])
      return TN_DECLINE("shape mismatch: value tensor cannot be broadcast to indexing result");
  const tn_node_t* updates = tn_broadcast_to(g, values, indexing.result_rank, indexing.result_dims);
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (accumulate && dtype == TN_BOOL) {
    tn_return(l, tn_scatter(g, x, indexing.starts, updates, &indexing.dims, TN_REDUCE_OR,
                            TN_BOUNDS_WRAP));
    return TN_OK;
  }
  tn_return(l, tn_scatter(g, x, indexing.starts, updates, &indexing.dims,
                          accumulate ? TN_REDUCE_SUM : TN_REDUCE_ASSIGN, TN_BOUNDS_WRAP));
  return TN_OK;
}

// Arguments 1 and 2 are dim and index; |source| has the index's length at dim.
static tn_status_t put_rows(tn_lowering_t* l, const tn_node_t* source, tn_reduce_kind_t kind) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *index = tn_arg_tensor(l, 2);
  TN_TRY(check_index(l, index));
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(x));
  if (tn_rank(x) == 0 || tn_rank(index) > 1 || tn_rank(source) != tn_rank(x) ||
      tn_dtype_of(source) != tn_dtype_of(x))
    return TN_DECLINE("%s: ranks or dtypes", l->op->name);
  const int64_t count = tn_type_element_count(&index->types[0]);
  for (int d = 0; d < tn_rank(x); ++d)
    if (tn_dim(source, d) != (d == dim ? count : tn_dim(x, d)))
      return TN_DECLINE("%s: size of the source", l->op->name);
  index = tn_reshape(l->graph, index, 1, &count);
  if (kind == TN_REDUCE_SUM && tn_dtype_of(x) == TN_BOOL) kind = TN_REDUCE_OR;
  tn_return(l, tn_put_rows(l, x, index, source, dim, kind, TN_BOUNDS_ERROR));
  return TN_OK;
}

// x, dim, index, source, *, alpha
tn_status_t tn_lower_index_add(tn_lowering_t* l) {
  const tn_node_t* source = tn_arg_tensor(l, 3);
  if (source && !tn_arg_is_none(l, 4) && tn_arg_double(l, 4, 1.0) != 1.0) {
    const tn_node_t* alpha = tn_arg_scalar(l, 4, tn_dtype_of(source));
    source = tn_binary(l->graph, TN_OP_MUL, source,
                       tn_broadcast_to(l->graph, alpha, tn_rank(source), source->types[0].dims));
  }
  return put_rows(l, source, TN_REDUCE_SUM);
}

tn_status_t tn_lower_index_copy(tn_lowering_t* l) {
  return put_rows(l, tn_arg_tensor(l, 3), TN_REDUCE_ASSIGN);
}

// x, dim, index, value
tn_status_t tn_lower_index_fill(tn_lowering_t* l) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *index = tn_arg_tensor(l, 2);
  const tn_node_t* value = tn_convert(l->graph, tn_arg_node(l, 3), tn_dtype_of(x));
  TN_TRY(check_index(l, index));
  if (!x || tn_rank(x) == 0 || tn_rank(value) != 0)
    return TN_DECLINE("index_fill: 0-dim input, or value with dimensions");
  int64_t dims[TN_MAX_RANK];
  memcpy(dims, x->types[0].dims, sizeof(dims));
  dims[tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(x))] = tn_type_element_count(&index->types[0]);
  // Negative positions count from the end here, unlike index_copy.
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(x));
  const int64_t count = dims[dim];
  if (tn_rank(index) > 1) return TN_DECLINE("index_fill: index of more dimensions");
  index = tn_reshape(l->graph, index, 1, &count);
  tn_return(l, tn_put_rows(l, x, index, tn_broadcast_to(l->graph, value, tn_rank(x), dims), dim,
                           TN_REDUCE_ASSIGN, TN_BOUNDS_WRAP));
  return TN_OK;
}

// x, dim, index, src or value: the part of x beyond the index's sizes stays as it is.
static tn_status_t scatter(tn_lowering_t* l, const tn_node_t* source, tn_reduce_kind_t kind) {
  tn_graph_t* g = l->graph;
  const tn_node_t *x = tn_arg_tensor(l, 0), *index = tn_arg_tensor(l, 2);
  TN_TRY(check_index(l, index));
  const int rank = tn_rank(x), dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), rank);
  if (rank == 0 || tn_rank(index) != rank)
    return TN_DECLINE("%s: Index tensor must have the same number of dimensions as self tensor",
                      l->op->name);
  if (tn_type_element_count(&index->types[0]) == 0) {
    tn_return(l, x);
    return TN_OK;
  }
  if (tn_rank(source) == 0) source = tn_broadcast_to(g, source, rank, index->types[0].dims);
  if (tn_rank(source) != rank || tn_dtype_of(source) != tn_dtype_of(x))
    return TN_DECLINE("%s: source", l->op->name);
  bool is_whole = true;
  int64_t start[TN_MAX_RANK] = {0}, limit[TN_MAX_RANK], step[TN_MAX_RANK];
  for (int d = 0; d < rank; ++d) {
    if (tn_dim(index, d) > tn_dim(source, d) || (d != dim && tn_dim(index, d) > tn_dim(x, d)))
      return TN_DECLINE("%s: size of the index", l->op->name);
    is_whole = is_whole && (d == dim || tn_dim(index, d) == tn_dim(x, d));
    limit[d] = tn_dim(index, d);
    step[d] = 1;
  }
  source = tn_slice(g, source, start, limit, step);
  if (is_whole) {
    tn_return(l, tn_put_along(g, x, index, source, dim, kind, TN_BOUNDS_ERROR));
    return TN_OK;
  }
  limit[dim] = tn_dim(x, dim);
  const tn_node_t* window = tn_put_along(g, tn_slice(g, x, start, limit, step), index, source, dim,
                                         kind, TN_BOUNDS_ERROR);
  const tn_node_t* starts[TN_MAX_RANK];
  for (int d = 0; d < rank; ++d) starts[d] = tn_constant_int(g, TN_I64, 0);
  tn_return(l, tn_dynamic_update_slice(g, x, window, starts));
  return TN_OK;
}

tn_status_t tn_lower_scatter(tn_lowering_t* l) {
  const tn_node_t* source = l->arg_count > 3 && l->args[3].kind == TN_VALUE_SCALAR
                                ? tn_arg_scalar(l, 3, tn_dtype_of(tn_arg_tensor(l, 0)))
                                : tn_arg_tensor(l, 3);
  if (l->arg_count > 4 && !tn_arg_is_none(l, 4)) return TN_DECLINE("scatter with reduce");
  return scatter(l, source, TN_REDUCE_ASSIGN);
}

tn_status_t tn_lower_scatter_add(tn_lowering_t* l) {
  const bool is_bool = tn_dtype_of(tn_arg_tensor(l, 0)) == TN_BOOL;
  return scatter(l, tn_arg_tensor(l, 3), is_bool ? TN_REDUCE_OR : TN_REDUCE_SUM);
}

// x, dim, index, src, reduce, *, include_self
tn_status_t tn_lower_scatter_reduce(tn_lowering_t* l) {
  const char* reduce = tn_arg_string(l, 4, "");
  if (!tn_arg_bool(l, 5, true)) return TN_DECLINE("scatter_reduce without include_self");
  const tn_reduce_kind_t kind = strcmp(reduce, "sum") == 0    ? TN_REDUCE_SUM
                                : strcmp(reduce, "prod") == 0 ? TN_REDUCE_PROD
                                : strcmp(reduce, "amax") == 0 ? TN_REDUCE_MAX
                                : strcmp(reduce, "amin") == 0 ? TN_REDUCE_MIN
                                                              : TN_REDUCE_ASSIGN;
  if (kind == TN_REDUCE_ASSIGN || tn_dtype_of(tn_arg_tensor(l, 0)) == TN_BOOL)
    return TN_DECLINE("scatter_reduce with '%s'", reduce);
  return scatter(l, tn_arg_tensor(l, 3), kind);
}
