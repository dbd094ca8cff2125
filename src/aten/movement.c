// Operators that move elements into new memory.
#include <string.h>

#include "aten/lowering.h"

// torch.cat skips 1-d empty tensors of whatever rank the others have.
tn_status_t tn_lower_cat(tn_lowering_t* l) {
  const int count = tn_arg_list_count(l, 0);
  if (count == 0) return TN_DECLINE("cat: expected a non-empty list of Tensors");
  const tn_dtype_t dtype = tn_promote_args(l, 0, 1);
  const tn_node_t** parts = tn_graph_alloc(l->graph, sizeof(*parts) * (size_t)count);
  if (!parts) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "cat: out of host memory");
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    const tn_node_t* part = tn_arg_list_tensor(l, 0, i);
    if (tn_rank(part) == 0)
      return TN_DECLINE("zero-dimensional tensor (at position %d) cannot be concatenated", i);
    if (tn_rank(part) == 1 && tn_dim(part, 0) == 0) continue;
    parts[kept++] = tn_convert(l->graph, part, dtype);
  }
  if (kept == 0) {
    tn_return(l, tn_convert(l->graph, tn_arg_list_tensor(l, 0, 0), dtype));
    return TN_OK;
  }
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(parts[0]));
  tn_return(l, kept == 1 ? parts[0] : tn_concat(l->graph, kept, parts, dim));
  return TN_OK;
}

tn_status_t tn_lower_stack(tn_lowering_t* l) {
  const int count = tn_arg_list_count(l, 0);
  if (count == 0) return TN_DECLINE("stack expects a non-empty TensorList");
  const tn_dtype_t dtype = tn_promote_args(l, 0, 1);
  const tn_node_t** parts = tn_graph_alloc(l->graph, sizeof(*parts) * (size_t)count);
  if (!parts) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "stack: out of host memory");
  const tn_node_t* first = tn_arg_list_tensor(l, 0, 0);
  const int rank = tn_rank(first), dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), rank + 1);
  if (rank == TN_MAX_RANK) return TN_DECLINE("stack: rank");
  for (int i = 0; i < count; ++i) {
    const tn_node_t* part = tn_arg_list_tensor(l, 0, i);
    if (tn_rank(part) != rank ||
        memcmp(part->types[0].dims, first->types[0].dims, sizeof(int64_t) * (size_t)rank))
      return TN_DECLINE("stack expects each tensor to be equal size");
    int64_t dims[TN_MAX_RANK];
    for (int d = 0, from = 0; d <= rank; ++d) dims[d] = d == dim ? 1 : tn_dim(part, from++);
    parts[i] = tn_reshape(l->graph, tn_convert(l->graph, part, dtype), rank + 1, dims);
  }
  tn_return(l, count == 1 ? parts[0] : tn_concat(l->graph, count, parts, dim));
  return TN_OK;
}

tn_status_t tn_lower_flip(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int64_t* given;
  const int count = tn_arg_ints(l, 1, &given);
  int64_t dims[TN_MAX_RANK];
  const int n = count > 0 ? tn_wrap_dims(l, count, given, tn_rank(x), dims) : 0;
  tn_return(l, n == 0 ? x : tn_reverse(l->graph, x, n, dims));
  return TN_OK;
}

static const tn_node_t* roll_one(tn_lowering_t* l, const tn_node_t* x, int dim, int64_t shift) {
  const int64_t extent = tn_dim(x, dim);
  if (extent == 0) return x;
  const int64_t cut = ((-shift % extent) + extent) % extent;
  if (cut == 0) return x;
  const tn_node_t* parts[] = {tn_slice_dim(l->graph, x, dim, cut, extent, 1),
                              tn_slice_dim(l->graph, x, dim, 0, cut, 1)};
  return tn_concat(l->graph, 2, parts, dim);
}

tn_status_t tn_lower_roll(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int64_t *shifts, *dims;
  const int shift_count = tn_arg_ints(l, 1, &shifts), dim_count = tn_arg_ints(l, 2, &dims);
  if (dim_count <= 0) {
    if (shift_count != 1)
      return TN_DECLINE("`shifts` and `dims` must have the same number of elements");
    const int64_t count = tn_type_element_count(&x->types[0]);
    const tn_node_t* flat = roll_one(l, tn_reshape(l->graph, x, 1, &count), 0, shifts[0]);
    tn_return(l, tn_reshape(l->graph, flat, tn_rank(x), x->types[0].dims));
    return TN_OK;
  }
  if (shift_count != dim_count || tn_rank(x) == 0)
    return TN_DECLINE("`shifts` and `dims` must match");
  for (int i = 0; i < dim_count; ++i)
    x = roll_one(l, x, tn_wrap_dim(l, dims[i], tn_rank(x)), shifts[i]);
  tn_return(l, x);
  return TN_OK;
}

// [a, b] repeated (r, s): [r, a, s, b] by broadcast, then merged.
tn_status_t tn_lower_repeat(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int64_t* repeats;
  const int rank = tn_arg_ints(l, 1, &repeats), lead = rank - tn_rank(x);
  if (lead < 0 || rank * 2 > TN_MAX_RANK)
    return TN_DECLINE("repeat: %d repeats for rank %d", rank, tn_rank(x));
  int64_t wide[TN_MAX_RANK], map[TN_MAX_RANK], merged[TN_MAX_RANK];
  for (int d = 0; d < rank; ++d) {
    const int64_t own = d < lead ? 1 : tn_dim(x, d - lead);
    if (repeats[d] < 0) return TN_DECLINE("repeat: negative repeat");
    wide[2 * d] = repeats[d];
    wide[2 * d + 1] = own;
    merged[d] = repeats[d] * own;
    if (d >= lead) map[d - lead] = 2 * d + 1;
  }
  tn_return(
      l, tn_reshape(l->graph, tn_broadcast_in_dim(l->graph, x, 2 * rank, wide, map), rank, merged));
  return TN_OK;
}

tn_status_t tn_lower_constant_pad(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int64_t* pad;
  const int count = tn_arg_ints(l, 1, &pad), rank = tn_rank(x);
  if (count < 0 || count % 2 || count / 2 > rank)
    return TN_DECLINE("constant_pad_nd: %d values for rank %d", count, rank);
  int64_t low[TN_MAX_RANK] = {0}, high[TN_MAX_RANK] = {0}, interior[TN_MAX_RANK] = {0};
  for (int i = 0; i < count / 2; ++i) {
    const int d = rank - 1 - i;
    low[d] = pad[2 * i];
    high[d] = pad[2 * i + 1];
    if (tn_dim(x, d) + low[d] + high[d] < 0)
      return TN_DECLINE("constant_pad_nd: negative result size");
  }
  const tn_node_t* value = tn_arg_is_none(l, 2) ? tn_constant_double(l->graph, tn_dtype_of(x), 0.0)
                                                : tn_arg_scalar(l, 2, tn_dtype_of(x));
  tn_return(l, tn_pad(l->graph, x, value, low, high, interior));
  return TN_OK;
}

// Keeps the elements where column - row <= k (lower) or >= k (upper).
static tn_status_t triangle(tn_lowering_t* l, tn_compare_t direction) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int rank = tn_rank(x);
  if (rank < 2) return TN_DECLINE("%s: input tensor must have at least 2 dimensions", l->op->name);
  const int64_t diagonal = tn_arg_int(l, 1, 0);
  tn_type_t type = x->types[0];
  type.dtype = TN_I64;
  const tn_node_t* offset = tn_binary(l->graph, TN_OP_SUB, tn_iota(l->graph, &type, rank - 1),
                                      tn_iota(l->graph, &type, rank - 2));
  const tn_node_t* limit = tn_constant_int(l->graph, TN_I64, diagonal);
  const tn_node_t* keep =
      tn_compare(l->graph, direction, offset, tn_broadcast_to(l->graph, limit, rank, type.dims));
  tn_return(l, tn_select(l->graph, keep, x, tn_constant_like(l->graph, x, 0.0)));
  return TN_OK;
}
tn_status_t tn_lower_tril(tn_lowering_t* l) { return triangle(l, TN_LE); }
tn_status_t tn_lower_triu(tn_lowering_t* l) { return triangle(l, TN_GE); }
