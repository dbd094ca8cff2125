// Softmax and its gradient along one dimension.
#include "aten/lowering.h"

// A tensor of rank 0 is a row of one element.
static const tn_node_t* at_least_1d(tn_lowering_t* l, const tn_node_t* x) {
  const int64_t one = 1;
  return x && tn_rank(x) == 0 ? tn_reshape(l->graph, x, 1, &one) : x;
}

// self, dim, half_to_float
static tn_status_t forward(tn_lowering_t* l, const char* name) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (!tn_dtype_is_float(tn_dtype_of(x)))
    return TN_DECLINE("softmax of %s", tn_dtype_name(tn_dtype_of(x)));
  if (tn_arg_bool(l, 2, false))
    return TN_DECLINE("softmax with half to float conversion is not supported on CPU");
  const tn_attr_t axis = tn_attr_int(TN_ATTR_AXIS, tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(x)));
  const tn_node_t* operand = at_least_1d(l, x);
  const tn_node_t* y = tn_composite(l->graph, name, 1, &operand, 1, &axis);
  tn_return(l, x ? tn_reshape(l->graph, y, tn_rank(x), x->types[0].dims) : NULL);
  return TN_OK;
}
tn_status_t tn_lower_softmax(tn_lowering_t* l) { return forward(l, "softmax"); }
tn_status_t tn_lower_log_softmax(tn_lowering_t* l) { return forward(l, "log_softmax"); }

// grad, output, dim, input_dtype
static tn_status_t backward(tn_lowering_t* l, const char* name) {
  const tn_node_t *grad = tn_arg_tensor(l, 0), *output = tn_arg_tensor(l, 1);
  const tn_dtype_t dtype = tn_arg_dtype(l, 3, tn_dtype_of(grad));
  if (tn_dtype_of(grad) != tn_dtype_of(output) || dtype != tn_dtype_of(grad))
    return TN_DECLINE("%s: gradient and output differ in dtype", l->op->name);
  const tn_attr_t axis =
      tn_attr_int(TN_ATTR_AXIS, tn_wrap_dim(l, tn_arg_int(l, 2, 0), tn_rank(grad)));
  const tn_node_t* operands[] = {at_least_1d(l, grad), at_least_1d(l, output)};
  const tn_node_t* y = tn_composite(l->graph, name, 2, operands, 1, &axis);
  tn_return(l, grad ? tn_reshape(l->graph, y, tn_rank(grad), grad->types[0].dims) : NULL);
  return TN_OK;
}
tn_status_t tn_lower_softmax_backward(tn_lowering_t* l) { return backward(l, "softmax_backward"); }
tn_status_t tn_lower_log_softmax_backward(tn_lowering_t* l) {
  return backward(l, "log_softmax_backward");
}
