// Elementwise operators of two operands, tensors or numbers.
#include "aten/pointwise_util.h"

// alpha * y; a literal 1 builds nothing.
static const tn_node_t* scaled(tn_lowering_t* l, const tn_node_t* y, int alpha, tn_dtype_t dtype) {
  if (tn_arg_is_none(l, alpha)) return y;
  if (tn_arg_double(l, alpha, 1.0) == 1.0) return y;
  const tn_node_t* factor = tn_arg_scalar(l, alpha, dtype);
  return tn_binary(l->graph, TN_OP_MUL, y,
                   tn_broadcast_to(l->graph, factor, tn_rank(y), y ? y->types[0].dims : NULL));
}

static bool is_bool(tn_lowering_t* l, int index) {
  if (index >= l->arg_count || l->args[index].kind != TN_VALUE_TENSOR)
    return tn_arg_is_number_of(l, index, TN_BOOL);
  return tn_dtype_of(l->args[index].node) == TN_BOOL;
}

static tn_status_t add_or_sub(tn_lowering_t* l, bool is_sub, bool is_reversed) {
  tn_pair_t p = tn_pair_operands(l, false);
  if (tn_dtype_is_complex(p.dtype) && l->args[0].is_wrapped_number)
    return TN_DECLINE("complex number");
  if (!tn_dtype_is_float(p.dtype) && !tn_dtype_is_complex(p.dtype) &&
      tn_arg_is_number_of(l, 2, TN_F64))
    return TN_DECLINE(
        "For integral input tensors, argument alpha must not be a floating point number.");
  if (is_sub && (is_bool(l, 0) || is_bool(l, 1)))
    return TN_DECLINE("Subtraction, the `-` operator, with a bool tensor is not supported");
  if (p.dtype != TN_BOOL && tn_arg_is_number_of(l, 2, TN_BOOL))
    return TN_DECLINE("Boolean alpha only supported for Boolean results.");
  if (p.dtype == TN_BOOL) {
    // alpha is a truth value too
    const bool is_added = tn_arg_is_none(l, 2) || tn_arg_double(l, 2, 1.0) != 0.0;
    tn_return(l, is_added ? tn_binary(l->graph, TN_OP_OR, p.x, p.y) : p.x);
    return TN_OK;
  }
  const tn_node_t *x = p.x, *y = p.y;
  if (is_reversed) {
    x = p.y;
    y = p.x;
  }
  y = scaled(l, y, 2, p.opmath);
  return tn_return_as(l, tn_binary(l->graph, is_sub ? TN_OP_SUB : TN_OP_ADD, x, y), p.dtype);
}
tn_status_t tn_lower_add(tn_lowering_t* l) { return add_or_sub(l, false, false); }
tn_status_t tn_lower_sub(tn_lowering_t* l) { return add_or_sub(l, true, false); }
tn_status_t tn_lower_rsub(tn_lowering_t* l) { return add_or_sub(l, true, true); }

tn_status_t tn_lower_mul(tn_lowering_t* l) {
  const tn_pair_t p = tn_pair_operands_of(l, false, true);
  return tn_return_as(l, tn_binary(l->graph, p.dtype == TN_BOOL ? TN_OP_AND : TN_OP_MUL, p.x, p.y),
                      p.dtype);
}

tn_status_t tn_lower_div(tn_lowering_t* l) {
  const tn_pair_t p = tn_pair_operands_of(l, true, true);
  return tn_return_as(l, tn_binary(l->graph, TN_OP_DIV, p.x, p.y), p.dtype);
}

// ---- division with rounding -----------------------------------------------------------------------------------

static const tn_node_t* zero_like(tn_lowering_t* l, const tn_node_t* x) {
  return tn_constant_like(l->graph, x, 0.0);
}

// x mod y with the sign of y; floats as PyTorch: fmod, then one correction.
static const tn_node_t* floor_mod(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* y) {
  tn_graph_t* g = l->graph;
  const tn_node_t* rem = tn_binary(g, TN_OP_REM, x, y);
  if (tn_dtype_class(tn_dtype_of(x)) == TN_CLASS_UNSIGNED) return rem;
  const tn_node_t* zero = zero_like(l, x);
  const tn_node_t* differs =
      tn_compare(g, TN_NE, tn_compare(g, TN_LT, rem, zero), tn_compare(g, TN_LT, y, zero));
  const tn_node_t* fix = tn_binary(g, TN_OP_AND, tn_compare(g, TN_NE, rem, zero), differs);
  return tn_select(g, fix, tn_binary(g, TN_OP_ADD, rem, y), rem);
}

// floor(x / y): exact on integers; on floats c10::div_floor_floating.
static const tn_node_t* floor_div(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* y) {
  tn_graph_t* g = l->graph;
  const tn_dtype_t dtype = tn_dtype_of(x);
  const tn_node_t* zero = zero_like(l, x);
  if (!tn_dtype_is_float(dtype)) {
    const tn_node_t* quotient = tn_binary(g, TN_OP_DIV, x, y);
    if (tn_dtype_class(dtype) == TN_CLASS_UNSIGNED) return quotient;
    const tn_node_t* rem = tn_binary(g, TN_OP_REM, x, y);
    const tn_node_t* differs =
        tn_compare(g, TN_NE, tn_compare(g, TN_LT, x, zero), tn_compare(g, TN_LT, y, zero));
    const tn_node_t* fix = tn_binary(g, TN_OP_AND, tn_compare(g, TN_NE, rem, zero), differs);
    return tn_select(g, fix, tn_binary(g, TN_OP_SUB, quotient, tn_constant_like(g, x, 1.0)),
                     quotient);
  }
  const tn_node_t* one = tn_constant_like(g, x, 1.0);
  const tn_node_t* mod = tn_binary(g, TN_OP_REM, x, y);
  const tn_node_t* div = tn_binary(g, TN_OP_DIV, tn_binary(g, TN_OP_SUB, x, mod), y);
  const tn_node_t* differs =
      tn_compare(g, TN_NE, tn_compare(g, TN_LT, y, zero), tn_compare(g, TN_LT, mod, zero));
  const tn_node_t* fix = tn_binary(g, TN_OP_AND, tn_compare(g, TN_NE, mod, zero), differs);
  div = tn_select(g, fix, tn_binary(g, TN_OP_SUB, div, one), div);
  const tn_node_t* whole = tn_unary(g, TN_OP_FLOOR, div);
  const tn_node_t* off =
      tn_compare(g, TN_GT, tn_binary(g, TN_OP_SUB, div, whole), tn_constant_like(g, x, 0.5));
  whole = tn_select(g, off, tn_binary(g, TN_OP_ADD, whole, one), whole);
  // A zero quotient has the sign of x / y.
  const tn_node_t* plain = tn_binary(g, TN_OP_DIV, x, y);
  const tn_node_t* signed_zero = tn_binary(g, TN_OP_MUL, zero, plain);
  whole = tn_select(g, tn_compare(g, TN_EQ, div, zero), signed_zero, whole);
  return tn_select(g, tn_compare(g, TN_EQ, y, zero), plain, whole);
}

// Integer division by zero raises on the CPU: a number is checked here, a tensor by the launch, before anything is
// written.
static tn_status_t check_divisor(tn_lowering_t* l, tn_pair_t* p) {
  if (tn_dtype_is_float(p->dtype)) return TN_OK;
  if (l->args[1].kind == TN_VALUE_SCALAR)
    return tn_arg_double(l, 1, 1.0) == 0.0 ? TN_DECLINE("ZeroDivisionError") : TN_OK;
  // The divisor as it came: fewer elements than broadcast ones.
  const tn_node_t* divisor = tn_convert(l->graph, tn_arg_node(l, 1), p->dtype);
  const tn_node_t* is_zero = tn_compare(l->graph, TN_EQ, divisor, zero_like(l, divisor));
  p->y = tn_checked(l, p->y, is_zero, TN_CHECK_ZERO_DIVISOR);
  return TN_OK;
}

static tn_status_t rounded_division(tn_lowering_t* l, const char* mode) {
  if (!mode) return tn_lower_div(l);
  tn_pair_t p = tn_pair_operands(l, false);
  if (tn_dtype_is_complex(p.dtype)) return TN_DECLINE("%s of complex with rounding", l->op->name);
  if (p.dtype == TN_BOOL) return TN_DECLINE("%s of bool with rounding", l->op->name);
  TN_TRY(check_divisor(l, &p));
  if (mode[0] == 'f') return tn_return_as(l, floor_div(l, p.x, p.y), p.dtype);
  const tn_node_t* quotient = tn_binary(l->graph, TN_OP_DIV, p.x, p.y);
  if (tn_dtype_is_float(p.opmath)) quotient = tn_unary(l->graph, TN_OP_TRUNC, quotient);
  return tn_return_as(l, quotient, p.dtype);
}

tn_status_t tn_lower_div_mode(tn_lowering_t* l) {
  return rounded_division(l, tn_arg_string(l, 2, NULL));
}
tn_status_t tn_lower_floor_divide(tn_lowering_t* l) { return rounded_division(l, "floor"); }

tn_status_t tn_lower_remainder(tn_lowering_t* l) {
  tn_pair_t p = tn_pair_operands(l, false);
  if (p.dtype == TN_BOOL || tn_dtype_is_complex(p.dtype))
    return TN_DECLINE("remainder of %s", tn_dtype_name(p.dtype));
  TN_TRY(check_divisor(l, &p));
  return tn_return_as(l, floor_mod(l, p.x, p.y), p.dtype);
}

tn_status_t tn_lower_fmod(tn_lowering_t* l) {
  tn_pair_t p = tn_pair_operands(l, false);
  if (p.dtype == TN_BOOL || tn_dtype_is_complex(p.dtype))
    return TN_DECLINE("fmod of %s", tn_dtype_name(p.dtype));
  TN_TRY(check_divisor(l, &p));
  return tn_return_as(l, tn_binary(l->graph, TN_OP_REM, p.x, p.y), p.dtype);
}

// ---- power --------------------------------------------------------------------------------------------------

// Exponents that PyTorch computes by multiplication or square root; NULL otherwise.
static const tn_node_t* special_power(tn_lowering_t* l, const tn_node_t* x, double exponent) {
  tn_graph_t* g = l->graph;
  const bool is_float = tn_dtype_is_float(tn_dtype_of(x));
  if (exponent == 0.0) return tn_constant_like(g, x, 1.0);
  if (exponent == 1.0) return x;
  const tn_node_t* square = tn_binary(g, TN_OP_MUL, x, x);
  if (exponent == 2.0) return square;
  if (exponent == 3.0) return tn_binary(g, TN_OP_MUL, square, x);
  if (!is_float) return NULL;
  const tn_node_t* one = tn_constant_like(g, x, 1.0);
  if (exponent == 0.5) return tn_unary(g, TN_OP_SQRT, x);
  if (exponent == -0.5) return tn_unary(g, TN_OP_RSQRT, x);
  if (exponent == -1.0) return tn_binary(g, TN_OP_DIV, one, x);
  if (exponent == -2.0) return tn_binary(g, TN_OP_DIV, one, square);
  return NULL;
}

tn_status_t tn_lower_pow(tn_lowering_t* l) {
  const tn_pair_t p = tn_pair_operands(l, false);
  if (tn_dtype_is_complex(p.dtype) || p.dtype == TN_BOOL)
    return TN_DECLINE("pow of %s", tn_dtype_name(p.dtype));
  const bool is_float = tn_dtype_is_float(p.dtype);
  if (l->args[1].kind == TN_VALUE_SCALAR) {
    const double exponent = tn_arg_double(l, 1, 1.0);
    tn_arg_scalar(l, 1, p.dtype);  // has to fit, whatever it becomes below
    if (!is_float && exponent < 0)
      return TN_DECLINE("Integers to negative integer powers are not allowed.");
    const tn_node_t* value = special_power(l, p.x, exponent);
    if (value) return tn_return_as(l, value, p.dtype);
  }
  return tn_return_as(l, tn_binary(l->graph, TN_OP_POW, p.x, p.y), p.dtype);
}

// ---- extremes -----------------------------------------------------------------------------------------------

static tn_status_t extreme(tn_lowering_t* l, tn_op_t op, bool ignores_nan) {
  const tn_pair_t p = tn_pair_operands(l, false);
  if (tn_dtype_is_complex(p.dtype)) return TN_DECLINE("%s of complex", l->op->name);
  tn_graph_t* g = l->graph;
  if (p.dtype == TN_BOOL) {
    tn_return(l, tn_binary(g, op == TN_OP_MAX ? TN_OP_OR : TN_OP_AND, p.x, p.y));
    return TN_OK;
  }
  const tn_node_t* value = tn_binary(g, op, p.x, p.y);
  if (ignores_nan && tn_dtype_is_float(p.opmath)) {
    value = tn_select(g, tn_compare(g, TN_NE, p.y, p.y), p.x, value);
    value = tn_select(g, tn_compare(g, TN_NE, p.x, p.x), p.y, value);
  }
  return tn_return_as(l, value, p.dtype);
}
tn_status_t tn_lower_maximum(tn_lowering_t* l) { return extreme(l, TN_OP_MAX, false); }
tn_status_t tn_lower_minimum(tn_lowering_t* l) { return extreme(l, TN_OP_MIN, false); }
tn_status_t tn_lower_fmax(tn_lowering_t* l) { return extreme(l, TN_OP_MAX, true); }
tn_status_t tn_lower_fmin(tn_lowering_t* l) { return extreme(l, TN_OP_MIN, true); }

tn_status_t tn_lower_atan2(tn_lowering_t* l) {
  const tn_pair_t p = tn_pair_operands(l, true);
  return tn_return_as(l, tn_binary(l->graph, TN_OP_ATAN2, p.x, p.y), p.dtype);
}

// ---- comparison and logic -----------------------------------------------------------------------------------

static tn_status_t comparison(tn_lowering_t* l, tn_compare_t direction) {
  const tn_pair_t p = tn_pair_operands(l, false);
  if (tn_dtype_is_complex(p.dtype) && direction > TN_NE)
    return TN_DECLINE("%s of complex", l->op->name);
  tn_return(l, tn_compare(l->graph, direction, p.x, p.y));
  return TN_OK;
}
tn_status_t tn_lower_eq(tn_lowering_t* l) { return comparison(l, TN_EQ); }
tn_status_t tn_lower_ne(tn_lowering_t* l) { return comparison(l, TN_NE); }
tn_status_t tn_lower_lt(tn_lowering_t* l) { return comparison(l, TN_LT); }
tn_status_t tn_lower_le(tn_lowering_t* l) { return comparison(l, TN_LE); }
tn_status_t tn_lower_gt(tn_lowering_t* l) { return comparison(l, TN_GT); }
tn_status_t tn_lower_ge(tn_lowering_t* l) { return comparison(l, TN_GE); }

static const tn_node_t* truth(tn_lowering_t* l, int index) {
  const tn_node_t* x = tn_arg_node(l, index);
  return tn_convert(l->graph, x, TN_BOOL);
}

static tn_status_t logic(tn_lowering_t* l, tn_op_t op) {
  const tn_node_t *x = truth(l, 0), *y = truth(l, 1);
  tn_broadcast_pair(l, TN_BOOL, &x, &y);
  tn_return(l, tn_binary(l->graph, op, x, y));
  return TN_OK;
}
tn_status_t tn_lower_logical_and(tn_lowering_t* l) { return logic(l, TN_OP_AND); }
tn_status_t tn_lower_logical_or(tn_lowering_t* l) { return logic(l, TN_OP_OR); }
tn_status_t tn_lower_logical_xor(tn_lowering_t* l) { return logic(l, TN_OP_XOR); }

static tn_status_t bitwise(tn_lowering_t* l, tn_op_t op) {
  const tn_pair_t p = tn_pair_operands(l, false);
  if (tn_dtype_class(p.dtype) > TN_CLASS_UNSIGNED)
    return TN_DECLINE("%s of %s", l->op->name, tn_dtype_name(p.dtype));
  tn_return(l, tn_binary(l->graph, op, p.x, p.y));
  return TN_OK;
}
tn_status_t tn_lower_bitwise_and(tn_lowering_t* l) { return bitwise(l, TN_OP_AND); }
tn_status_t tn_lower_bitwise_or(tn_lowering_t* l) { return bitwise(l, TN_OP_OR); }
tn_status_t tn_lower_bitwise_xor(tn_lowering_t* l) { return bitwise(l, TN_OP_XOR); }
