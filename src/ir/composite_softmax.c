// softmax, log_softmax and their gradients along one dimension.
#include "ir/composite_util.h"

static tn_status_t row_types(tn_shape_t* shape) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  int64_t axis;
  TN_TRY(tn_shape_check_class(shape, 0, TN_SHAPE_FLOAT));
  TN_TRY(tn_shape_int(shape, TN_ATTR_AXIS, &axis));
  TN_TRY(tn_shape_dimension(shape, "axis", axis, x->rank));
  if (shape->operand_count == 2) TN_TRY(tn_c_expect_type(shape, 1, "output", x));
  shape->result_count = 1;
  shape->types[0] = *x;
  return TN_OK;
}
tn_status_t tn_composite_types_softmax(tn_shape_t* shape) { return row_types(shape); }
tn_status_t tn_composite_types_log_softmax(tn_shape_t* shape) { return row_types(shape); }
tn_status_t tn_composite_types_softmax_backward(tn_shape_t* shape) { return row_types(shape); }
tn_status_t tn_composite_types_log_softmax_backward(tn_shape_t* shape) { return row_types(shape); }

void tn_composite_expand_softmax(tn_graph_t* graph, const tn_node_t* composite,
                                 const tn_node_t* const* operands, const tn_node_t** out_results) {
  const int64_t axis = tn_node_int(composite, TN_ATTR_AXIS, 0);
  const tn_node_t* x = tn_c_up(graph, operands[0]);
  const tn_node_t* shifted =
      tn_c_sub(graph, x, tn_c_reduce_keep(graph, TN_REDUCE_MAX, x, 1, &axis));
  const tn_node_t* exps = tn_unary(graph, TN_OP_EXP, shifted);
  const tn_node_t* out =
      tn_c_div(graph, exps, tn_c_reduce_keep(graph, TN_REDUCE_SUM, exps, 1, &axis));
  out_results[0] = tn_convert(graph, out, composite->types[0].dtype);
}

void tn_composite_expand_log_softmax(tn_graph_t* graph, const tn_node_t* composite,
                                     const tn_node_t* const* operands,
                                     const tn_node_t** out_results) {
  const int64_t axis = tn_node_int(composite, TN_ATTR_AXIS, 0);
  const tn_node_t* x = tn_c_up(graph, operands[0]);
  const tn_node_t* shifted =
      tn_c_sub(graph, x, tn_c_reduce_keep(graph, TN_REDUCE_MAX, x, 1, &axis));
  const tn_node_t* sum =
      tn_reduce(graph, TN_REDUCE_SUM, tn_unary(graph, TN_OP_EXP, shifted), 1, &axis);
  const tn_node_t* log_sum = tn_c_spread(graph, tn_unary(graph, TN_OP_LOG, sum), x, 1, &axis);
  out_results[0] = tn_convert(graph, tn_c_sub(graph, shifted, log_sum), composite->types[0].dtype);
}

// dx = output * (grad - sum(grad * output))
void tn_composite_expand_softmax_backward(tn_graph_t* graph, const tn_node_t* composite,
                                          const tn_node_t* const* operands,
                                          const tn_node_t** out_results) {
  const int64_t axis = tn_node_int(composite, TN_ATTR_AXIS, 0);
  const tn_node_t *grad = tn_c_up(graph, operands[0]), *output = tn_c_up(graph, operands[1]);
  const tn_node_t* sum =
      tn_c_reduce_keep(graph, TN_REDUCE_SUM, tn_c_mul(graph, grad, output), 1, &axis);
  out_results[0] = tn_convert(graph, tn_c_mul(graph, output, tn_c_sub(graph, grad, sum)),
                              composite->types[0].dtype);
}

// dx = grad - exp(output) * sum(grad)
void tn_composite_expand_log_softmax_backward(tn_graph_t* graph, const tn_node_t* composite,
                                              const tn_node_t* const* operands,
                                              const tn_node_t** out_results) {
  const int64_t axis = tn_node_int(composite, TN_ATTR_AXIS, 0);
  const tn_node_t *grad = tn_c_up(graph, operands[0]), *output = tn_c_up(graph, operands[1]);
  const tn_node_t* sum = tn_c_reduce_keep(graph, TN_REDUCE_SUM, grad, 1, &axis);
  const tn_node_t* share = tn_c_mul(graph, tn_unary(graph, TN_OP_EXP, output), sum);
  out_results[0] = tn_convert(graph, tn_c_sub(graph, grad, share), composite->types[0].dtype);
}
