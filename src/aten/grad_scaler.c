// The two operators of torch.amp.GradScaler: unscale gradients and say whether one was infinite; adapt the scale.
#include "aten/lowering.h"

// A rank-0 node of an argument of one element; NULL if it has more, or another dtype.
static const tn_node_t* one_element(tn_lowering_t* l, int index, tn_dtype_t dtype) {
  const tn_node_t* x = tn_arg_tensor(l, index);
  if (!x || tn_dtype_of(x) != dtype) return NULL;
  for (int i = 0; i < tn_rank(x); ++i)
    if (tn_dim(x, i) != 1) return NULL;
  return tn_rank(x) ? tn_reshape(l->graph, x, 0, NULL) : x;
}

// |value|, rank 0, in the shape of argument |index|.
static const tn_node_t* shaped(tn_lowering_t* l, const tn_node_t* value, int index) {
  const tn_node_t* like = tn_arg_tensor(l, index);
  return tn_rank(like) ? tn_reshape(l->graph, value, tn_rank(like), like->types[0].dims) : value;
}

// self[], found_inf, inv_scale -> self[] * inv_scale, 1 if any element was infinite or NaN, else found_inf
tn_status_t tn_lower_amp_unscale(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const int count = tn_arg_list_count(l, 0);
  const tn_node_t* found = one_element(l, 1, TN_F32);
  const tn_node_t* inv_scale = one_element(l, 2, TN_F32);
  if (!found || !inv_scale)
    return TN_DECLINE("%s: found_inf and inv_scale are float32 tensors of one element",
                      l->op->name);
  const tn_node_t* is_wrong = NULL;
  for (int i = 0; i < count; ++i) {
    const tn_node_t* grad = tn_arg_list_tensor(l, 0, i);
    const tn_dtype_t dtype = tn_dtype_of(grad), opmath = tn_opmath_dtype(dtype);
    if (!grad || (opmath != TN_F32 && opmath != TN_F64))
      return TN_DECLINE("%s: gradients that are not floating point", l->op->name);
    const tn_node_t* wide = tn_convert(g, grad, opmath);
    const int rank = tn_rank(grad);
    int64_t dims[TN_MAX_RANK];
    for (int k = 0; k < rank; ++k) dims[k] = k;
    const tn_node_t* bad = tn_unary(g, TN_OP_NOT, tn_unary(g, TN_OP_IS_FINITE, wide));
    if (rank) bad = tn_reduce(g, TN_REDUCE_OR, bad, rank, dims);
    is_wrong = is_wrong ? tn_binary(g, TN_OP_OR, is_wrong, bad) : bad;
    const tn_node_t* factor =
        tn_broadcast_to(g, tn_convert(g, inv_scale, opmath), rank, grad->types[0].dims);
    tn_return(l, tn_convert(g, tn_binary(g, TN_OP_MUL, wide, factor), dtype));
  }
  if (is_wrong) found = tn_select(g, is_wrong, tn_constant_like(g, found, 1.0), found);
  tn_return(l, shaped(l, found, 1));
  return TN_OK;
}

// scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval -> scale, growth_tracker
tn_status_t tn_lower_amp_update_scale(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *scale = one_element(l, 0, TN_F32), *tracker = one_element(l, 1, TN_I32),
                  *found = one_element(l, 2, TN_F32);
  if (!scale || !tracker || !found)
    return TN_DECLINE("%s: scale and found_inf are float32, growth_tracker int32, of one element",
                      l->op->name);
  // Products in double: the factors are Python numbers.
  const tn_node_t* wide = tn_convert(g, scale, TN_F64);
  const tn_node_t* grown =
      tn_convert(g, tn_binary(g, TN_OP_MUL, wide, tn_arg_scalar(l, 3, TN_F64)), TN_F32);
  const tn_node_t* shrunk =
      tn_convert(g, tn_binary(g, TN_OP_MUL, wide, tn_arg_scalar(l, 4, TN_F64)), TN_F32);
  grown = tn_select(g, tn_unary(g, TN_OP_IS_FINITE, grown), grown, scale);
  const tn_node_t* is_found = tn_compare(g, TN_NE, found, tn_constant_like(g, found, 0.0));
  const tn_node_t* successes = tn_binary(g, TN_OP_ADD, tracker, tn_constant_like(g, tracker, 1.0));
  // The interval in 64 bits: one beyond int32 is never reached, as on CPU.
  const tn_node_t* is_due =
      tn_compare(g, TN_EQ, tn_convert(g, successes, TN_I64), tn_arg_scalar(l, 5, TN_I64));
  const tn_node_t* zero = tn_constant_like(g, tracker, 0.0);
  scale = tn_select(g, is_found, shrunk, tn_select(g, is_due, grown, scale));
  tracker = tn_select(g, is_found, zero, tn_select(g, is_due, zero, successes));
  tn_return(l, shaped(l, scale, 0));
  tn_return(l, shaped(l, tracker, 1));
  return TN_OK;
}
