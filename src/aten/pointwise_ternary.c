// Elementwise operators of three operands: where, clamp, addcmul, addcdiv, lerp, masked_fill.
#include "aten/lowering.h"

// Converts |x| and spreads it over |type|'s shape.
static const tn_node_t* fit(tn_lowering_t* l, const tn_node_t* x, tn_dtype_t dtype,
                            const tn_type_t* type) {
  return tn_broadcast_to(l->graph, tn_convert(l->graph, x, dtype), type->rank, type->dims);
}

static tn_type_t common_type(tn_lowering_t* l, const tn_node_t* a, const tn_node_t* b,
                             const tn_node_t* c) {
  tn_type_t type = tn_broadcast_type(l, a, b);
  if (!c || !a || !b) return type;
  const tn_node_t* wide = tn_broadcast_to(l->graph, a, type.rank, type.dims);
  return wide ? tn_broadcast_type(l, wide, c) : type;
}

static tn_status_t done(tn_lowering_t* l, const tn_node_t* value, tn_dtype_t dtype) {
  tn_return(l, tn_convert(l->graph, value, dtype));
  return TN_OK;
}

// condition, self, other
tn_status_t tn_lower_where(tn_lowering_t* l) {
  const tn_node_t *condition = tn_arg_tensor(l, 0), *x = tn_arg_node(l, 1), *y = tn_arg_node(l, 2);
  if (tn_dtype_of(condition) != TN_BOOL && tn_dtype_of(condition) != TN_U8)
    return TN_DECLINE("where expected condition to be a boolean tensor");
  const tn_dtype_t dtype = tn_promote_args(l, 1, 2);
  const tn_type_t type = common_type(l, condition, x, y);
  tn_return(l, tn_select(l->graph, fit(l, condition, TN_BOOL, &type), fit(l, x, dtype, &type),
                         fit(l, y, dtype, &type)));
  return TN_OK;
}

// self, mask, value
tn_status_t tn_lower_masked_fill(tn_lowering_t* l) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *mask = tn_arg_tensor(l, 1), *value = tn_arg_node(l, 2);
  if (tn_dtype_of(mask) != TN_BOOL) return TN_DECLINE("masked_fill_ only supports boolean masks");
  if (tn_rank(value) != 0)
    return TN_DECLINE("masked_fill only supports a 0-dimensional value tensor");
  // A number becomes true or false whatever it is.
  const bool is_truth = tn_dtype_of(x) == TN_BOOL && l->args[2].kind == TN_VALUE_SCALAR;
  if (!is_truth && tn_dtype_class(tn_dtype_of(value)) > tn_dtype_class(tn_dtype_of(x)))
    return TN_DECLINE("masked_fill: the value cannot be converted to the tensor's dtype");
  const tn_type_t type = tn_broadcast_type(l, x, mask);
  const tn_dtype_t dtype = tn_dtype_of(x);
  tn_return(l, tn_select(l->graph, fit(l, mask, TN_BOOL, &type), fit(l, value, dtype, &type),
                         fit(l, x, dtype, &type)));
  return TN_OK;
}

// self, min, max; either may be None. The lower bound is applied first, NaN in x stays.
static tn_status_t clamp(tn_lowering_t* l, int low_index, int high_index) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_node_t *low = low_index > 0 ? tn_arg_node(l, low_index) : NULL,
                  *high = high_index > 0 ? tn_arg_node(l, high_index) : NULL;
  if (!low && !high)
    return TN_DECLINE("torch.clamp: At least one of 'min' or 'max' must not be None");
  const tn_dtype_t dtype = tn_promote_args(l, 0, 3);
  // Tensor bounds of bool are maximum and minimum; numbers are refused.
  const bool is_bool = dtype == TN_BOOL && low_index * high_index == 0 &&
                       l->args[low_index + high_index].kind == TN_VALUE_TENSOR;
  if (tn_dtype_is_complex(dtype) || (dtype == TN_BOOL && !is_bool))
    return TN_DECLINE("clamp is not supported for %s", tn_dtype_name(dtype));
  const tn_op_t max = is_bool ? TN_OP_OR : TN_OP_MAX, min = is_bool ? TN_OP_AND : TN_OP_MIN;
  const tn_type_t type = common_type(l, x, low ? low : high, low ? high : NULL);
  const tn_node_t* y = fit(l, x, dtype, &type);
  if (low) y = tn_binary(g, max, y, fit(l, low, dtype, &type));
  if (high) y = tn_binary(g, min, y, fit(l, high, dtype, &type));
  tn_return(l, y);
  return TN_OK;
}
tn_status_t tn_lower_clamp(tn_lowering_t* l) { return clamp(l, 1, 2); }
tn_status_t tn_lower_clamp_min(tn_lowering_t* l) { return clamp(l, 1, 0); }
tn_status_t tn_lower_clamp_max(tn_lowering_t* l) { return clamp(l, 0, 1); }

// self + value * (tensor1 op tensor2), in the compute type
static tn_status_t addc(tn_lowering_t* l, tn_op_t op) {
  tn_graph_t* g = l->graph;
  const tn_node_t *x = tn_arg_tensor(l, 0), *a = tn_arg_tensor(l, 1), *b = tn_arg_tensor(l, 2);
  const tn_dtype_t dtype = tn_promote_args(l, 0, 3), opmath = tn_opmath_dtype(dtype);
  if (op == TN_OP_DIV && !tn_dtype_is_float(dtype))
    return TN_DECLINE("Integer division with addcdiv is no longer supported");
  if (dtype == TN_BOOL) return TN_DECLINE("%s of bool", l->op->name);
  const bool value_is_float =
      l->arg_count > 3 && l->args[3].kind == TN_VALUE_SCALAR && l->args[3].dtype == TN_F64;
  if (value_is_float && !tn_dtype_is_float(dtype) && !tn_dtype_is_complex(dtype))
    return TN_DECLINE("%s: value cannot be converted to an integer without loss", l->op->name);
  const tn_type_t type = common_type(l, x, a, b);
  const tn_node_t *fa = fit(l, a, opmath, &type), *fb = fit(l, b, opmath, &type);
  const tn_node_t* scale =
      tn_arg_is_none(l, 3) ? NULL : fit(l, tn_arg_scalar(l, 3, opmath), opmath, &type);
  if (scale) fa = tn_binary(g, TN_OP_MUL, scale, fa);
  return done(l, tn_binary(g, TN_OP_ADD, fit(l, x, opmath, &type), tn_binary(g, op, fa, fb)),
              dtype);
}
tn_status_t tn_lower_addcmul(tn_lowering_t* l) { return addc(l, TN_OP_MUL); }
tn_status_t tn_lower_addcdiv(tn_lowering_t* l) { return addc(l, TN_OP_DIV); }

// self, end, weight: from the nearer end, so that weight 1 gives end exactly
tn_status_t tn_lower_lerp(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *x = tn_arg_tensor(l, 0), *end = tn_arg_tensor(l, 1), *weight = tn_arg_node(l, 2);
  const tn_dtype_t dtype = tn_dtype_of(x), opmath = tn_opmath_dtype(dtype);
  if (tn_dtype_of(end) != dtype || !tn_dtype_is_float(dtype))
    return TN_DECLINE("lerp: expected floating tensors of one dtype");
  if (l->args[2].kind == TN_VALUE_TENSOR && tn_dtype_of(weight) != dtype)
    return TN_DECLINE("lerp: dtype of the weight");
  const tn_type_t type = common_type(l, x, end, weight);
  x = fit(l, x, opmath, &type);
  end = fit(l, end, opmath, &type);
  weight = fit(l, weight, opmath, &type);
  const tn_node_t* distance = tn_binary(g, TN_OP_SUB, end, x);
  const tn_node_t* is_near =
      tn_compare(g, TN_LT, tn_unary(g, TN_OP_ABS, weight), tn_constant_like(g, weight, 0.5));
  const tn_node_t* from_start = tn_fma(g, weight, distance, x);
  const tn_node_t* rest = tn_binary(g, TN_OP_SUB, tn_constant_like(g, weight, 1.0), weight);
  const tn_node_t* from_end = tn_binary(g, TN_OP_SUB, end, tn_binary(g, TN_OP_MUL, distance, rest));
  return done(l, tn_select(g, is_near, from_start, from_end), dtype);
}
