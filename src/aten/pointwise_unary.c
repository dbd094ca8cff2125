// Elementwise operators of one tensor.
#include "aten/lowering.h"

// The operand in its result dtype; integers and bool become floating.
static const tn_node_t* float_operand(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  return tn_convert(l->graph, x, tn_to_float_dtype(tn_dtype_of(x)));
}

static tn_status_t unary_float(tn_lowering_t* l, tn_op_t op) {
  tn_return(l, tn_unary(l->graph, op, float_operand(l)));
  return TN_OK;
}

#define TN_UNARY_FLOAT(name, OP) \
  tn_status_t tn_lower_##name(tn_lowering_t* l) { return unary_float(l, TN_OP_##OP); }
TN_UNARY_FLOAT(exp, EXP)
TN_UNARY_FLOAT(exp2, EXP2)
TN_UNARY_FLOAT(expm1, EXPM1)
TN_UNARY_FLOAT(log, LOG)
TN_UNARY_FLOAT(log2, LOG2)
TN_UNARY_FLOAT(log1p, LOG1P)
TN_UNARY_FLOAT(sqrt, SQRT)
TN_UNARY_FLOAT(rsqrt, RSQRT)
TN_UNARY_FLOAT(sin, SIN)
TN_UNARY_FLOAT(cos, COS)
TN_UNARY_FLOAT(tan, TAN)
TN_UNARY_FLOAT(asin, ASIN)
TN_UNARY_FLOAT(acos, ACOS)
TN_UNARY_FLOAT(atan, ATAN)
TN_UNARY_FLOAT(sinh, SINH)
TN_UNARY_FLOAT(cosh, COSH)
TN_UNARY_FLOAT(tanh, TANH)
TN_UNARY_FLOAT(asinh, ASINH)
TN_UNARY_FLOAT(acosh, ACOSH)
TN_UNARY_FLOAT(atanh, ATANH)
TN_UNARY_FLOAT(erf, ERF)
TN_UNARY_FLOAT(erfc, ERFC)
TN_UNARY_FLOAT(erfinv, ERFINV)
TN_UNARY_FLOAT(lgamma, LGAMMA)
TN_UNARY_FLOAT(digamma, DIGAMMA)
TN_UNARY_FLOAT(sigmoid, LOGISTIC)

// Computes |x| in the opmath type: f16 and bf16 round once at the end, as PyTorch's kernels do.
tn_status_t tn_lower_log10(tn_lowering_t* l) {
  const tn_node_t* x = float_operand(l);
  const tn_dtype_t dtype = tn_dtype_of(x), opmath = tn_opmath_dtype(dtype);
  const tn_node_t* y = tn_unary(l->graph, TN_OP_LOG, tn_convert(l->graph, x, opmath));
  y = tn_binary(l->graph, TN_OP_MUL, y, tn_constant_like(l->graph, y, 0.43429448190325182765));
  tn_return(l, tn_convert(l->graph, y, dtype));
  return TN_OK;
}

tn_status_t tn_lower_reciprocal(tn_lowering_t* l) {
  const tn_node_t* x = float_operand(l);
  tn_return(l, tn_binary(l->graph, TN_OP_DIV, tn_constant_like(l->graph, x, 1.0), x));
  return TN_OK;
}

// ---- same dtype ---------------------------------------------------------------------------------------------

static bool is_floating(const tn_node_t* x) { return tn_dtype_is_float(tn_dtype_of(x)); }

tn_status_t tn_lower_neg(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (tn_dtype_of(x) == TN_BOOL) return TN_DECLINE("neg: bool has no negation");
  tn_return(l, tn_unary(l->graph, TN_OP_NEG, x));
  return TN_OK;
}

tn_status_t tn_lower_abs(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_class_t kind = tn_dtype_class(tn_dtype_of(x));
  if (kind == TN_CLASS_COMPLEX || kind == TN_CLASS_BOOL)
    return TN_DECLINE("abs of %s", tn_dtype_name(tn_dtype_of(x)));
  tn_return(l, kind == TN_CLASS_UNSIGNED ? x : tn_unary(l->graph, TN_OP_ABS, x));
  return TN_OK;
}

tn_status_t tn_lower_sign(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (tn_dtype_is_complex(dtype)) return TN_DECLINE("sign of complex");
  if (dtype == TN_BOOL) {
    tn_return(l, x);
    return TN_OK;
  }
  // PyTorch: (0 < x) - (x < 0), so NaN gives 0.
  const tn_node_t* zero = tn_constant_like(l->graph, x, 0.0);
  const tn_node_t* positive = tn_convert(l->graph, tn_compare(l->graph, TN_GT, x, zero), dtype);
  if (tn_dtype_class(dtype) == TN_CLASS_UNSIGNED) {
    tn_return(l, positive);
    return TN_OK;
  }
  const tn_node_t* negative = tn_convert(l->graph, tn_compare(l->graph, TN_LT, x, zero), dtype);
  tn_return(l, tn_binary(l->graph, TN_OP_SUB, positive, negative));
  return TN_OK;
}

// Integers are already whole.
static tn_status_t rounding(tn_lowering_t* l, tn_op_t op) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (tn_dtype_of(x) == TN_BOOL || tn_dtype_is_complex(tn_dtype_of(x)))
    return TN_DECLINE("%s of %s", l->op->name, tn_dtype_name(tn_dtype_of(x)));
  tn_return(l, is_floating(x) ? tn_unary(l->graph, op, x) : x);
  return TN_OK;
}
tn_status_t tn_lower_ceil(tn_lowering_t* l) { return rounding(l, TN_OP_CEIL); }
tn_status_t tn_lower_floor(tn_lowering_t* l) { return rounding(l, TN_OP_FLOOR); }
tn_status_t tn_lower_round(tn_lowering_t* l) { return rounding(l, TN_OP_ROUND_EVEN); }
tn_status_t tn_lower_trunc(tn_lowering_t* l) { return rounding(l, TN_OP_TRUNC); }

tn_status_t tn_lower_frac(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (!is_floating(x)) return TN_DECLINE("frac of %s", tn_dtype_name(tn_dtype_of(x)));
  tn_return(l, tn_binary(l->graph, TN_OP_SUB, x, tn_unary(l->graph, TN_OP_TRUNC, x)));
  return TN_OK;
}

tn_status_t tn_lower_bitwise_not(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (tn_dtype_class(tn_dtype_of(x)) > TN_CLASS_UNSIGNED)
    return TN_DECLINE("bitwise_not of %s", tn_dtype_name(tn_dtype_of(x)));
  tn_return(l, tn_unary(l->graph, TN_OP_NOT, x));
  return TN_OK;
}

// ---- bool result --------------------------------------------------------------------------------------------

tn_status_t tn_lower_logical_not(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  tn_return(l, tn_compare(l->graph, TN_EQ, x, tn_constant_like(l->graph, x, 0.0)));
  return TN_OK;
}

tn_status_t tn_lower_isnan(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  tn_return(l, tn_compare(l->graph, TN_NE, x, x));
  return TN_OK;
}

static tn_status_t is_infinity(tn_lowering_t* l, double infinity) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (tn_dtype_is_complex(tn_dtype_of(x))) return TN_DECLINE("%s of complex", l->op->name);
  if (!is_floating(x)) x = tn_convert(l->graph, x, TN_F32);
  tn_return(l, tn_compare(l->graph, TN_EQ, x, tn_constant_like(l->graph, x, infinity)));
  return TN_OK;
}
tn_status_t tn_lower_isposinf(tn_lowering_t* l) { return is_infinity(l, __builtin_inf()); }
tn_status_t tn_lower_isneginf(tn_lowering_t* l) { return is_infinity(l, -__builtin_inf()); }

tn_status_t tn_lower_signbit(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (tn_dtype_is_complex(dtype)) return TN_DECLINE("signbit of complex");
  if (is_floating(x)) {  // -0.0 and -NaN have it too: look at the bits
    if (tn_dtype_size(dtype) < 4) x = tn_convert(l->graph, x, TN_F32);
    x = tn_bitcast(l->graph, x, tn_dtype_of(x) == TN_F64 ? TN_I64 : TN_I32);
  }
  if (tn_dtype_class(tn_dtype_of(x)) != TN_CLASS_SIGNED) {
    tn_return(l, tn_compare(l->graph, TN_NE, x, x));
    return TN_OK;
  }
  tn_return(l, tn_compare(l->graph, TN_LT, x, tn_constant_like(l->graph, x, 0.0)));
  return TN_OK;
}
