// Elementwise functions beyond arithmetic: of two operands, and of one with parameters.
#include <float.h>
#include <math.h>

#include "aten/pointwise_util.h"

#define PI      3.14159265358979323846
#define INV_LN2 1.44269504088896340736

static const tn_node_t* constant(tn_lowering_t* l, const tn_node_t* like, double value) {
  return tn_constant_like(l->graph, like, value);
}
static const tn_node_t* bin(tn_lowering_t* l, tn_op_t op, const tn_node_t* x, const tn_node_t* y) {
  return tn_binary(l->graph, op, x, y);
}
static const tn_node_t* unary(tn_lowering_t* l, tn_op_t op, const tn_node_t* x) {
  return tn_unary(l->graph, op, x);
}
static const tn_node_t* compare(tn_lowering_t* l, tn_compare_t direction, const tn_node_t* x,
                                const tn_node_t* y) {
  return tn_compare(l->graph, direction, x, y);
}
static const tn_node_t* choose(tn_lowering_t* l, const tn_node_t* condition, const tn_node_t* x,
                               const tn_node_t* y) {
  return tn_select(l->graph, condition, x, y);
}
static const tn_node_t* is_nan(tn_lowering_t* l, const tn_node_t* x) {
  return compare(l, TN_NE, x, x);
}
static const tn_node_t* number(tn_lowering_t* l, int index, const tn_node_t* like) {
  return like ? tn_broadcast_to(l->graph, tn_arg_scalar(l, index, tn_dtype_of(like)), tn_rank(like),
                                like->types[0].dims)
              : NULL;
}

static tn_status_t decline_dtype(tn_lowering_t* l, tn_dtype_t dtype) {
  return TN_DECLINE("%s of %s", l->op->name, tn_dtype_name(dtype));
}

// ---- two operands -------------------------------------------------------------------------------------------

// x * f(y), and 0 where x is 0 unless y is NaN.
static tn_status_t x_times_log(tn_lowering_t* l, tn_op_t log) {
  const tn_pair_t p = tn_pair_operands(l, true);
  if (tn_dtype_is_complex(p.dtype)) return decline_dtype(l, p.dtype);
  const tn_node_t* zero = constant(l, p.x, 0.0);
  const tn_node_t* value = bin(l, TN_OP_MUL, p.x, unary(l, log, p.y));
  value = choose(l, compare(l, TN_EQ, p.x, zero), zero, value);
  return tn_return_as(l, choose(l, is_nan(l, p.y), p.y, value), p.dtype);
}
tn_status_t tn_lower_xlogy(tn_lowering_t* l) { return x_times_log(l, TN_OP_LOG); }
tn_status_t tn_lower_xlog1py(tn_lowering_t* l) { return x_times_log(l, TN_OP_LOG1P); }

// x, values: values where x is 0
tn_status_t tn_lower_heaviside(tn_lowering_t* l) {
  const tn_dtype_t dtype = tn_dtype_of(tn_arg_node(l, 0));
  if (tn_dtype_of(tn_arg_node(l, 1)) != dtype || tn_dtype_is_complex(dtype))
    return TN_DECLINE("heaviside of complex or of tensors with different dtypes");
  const tn_pair_t p = tn_pair_operands(l, false);
  const tn_node_t* zero = constant(l, p.x, 0.0);
  const tn_node_t* step = tn_convert(l->graph, compare(l, TN_GT, p.x, zero), p.opmath);
  if (p.dtype == TN_BOOL) step = p.x;
  return tn_return_as(l, choose(l, compare(l, TN_EQ, p.x, zero), p.y, step), p.dtype);
}

tn_status_t tn_lower_copysign(tn_lowering_t* l) {
  const tn_pair_t p = tn_pair_operands(l, true);
  if (tn_dtype_is_complex(p.dtype)) return decline_dtype(l, p.dtype);
  // The sign is a bit, which -0.0 and NaN have too.
  const tn_node_t* bits = tn_bitcast(l->graph, p.y, p.opmath == TN_F64 ? TN_I64 : TN_I32);
  const tn_node_t* is_negative = compare(l, TN_LT, bits, constant(l, bits, 0.0));
  const tn_node_t* magnitude = unary(l, TN_OP_ABS, p.x);
  return tn_return_as(l, choose(l, is_negative, unary(l, TN_OP_NEG, magnitude), magnitude),
                      p.dtype);
}

tn_status_t tn_lower_nextafter(tn_lowering_t* l) {
  const tn_dtype_t dtype = tn_promote_args(l, 0, 2);
  if (dtype != TN_F32 && dtype != TN_F64 && dtype != TN_BF16) return decline_dtype(l, dtype);
  const tn_node_t *x = tn_arg_node(l, 0), *y = tn_arg_node(l, 1);
  tn_broadcast_pair(l, dtype, &x, &y);
  tn_return(l, bin(l, TN_OP_NEXTAFTER, x, y));
  return TN_OK;
}

// Scaled by the larger one, so that no square overflows.
tn_status_t tn_lower_hypot(tn_lowering_t* l) {
  const tn_pair_t p = tn_pair_operands(l, false);
  if (!tn_dtype_is_float(p.dtype)) return decline_dtype(l, p.dtype);
  const tn_node_t *x = unary(l, TN_OP_ABS, p.x), *y = unary(l, TN_OP_ABS, p.y);
  const tn_node_t *high = bin(l, TN_OP_MAX, x, y), *low = bin(l, TN_OP_MIN, x, y);
  const tn_node_t *zero = constant(l, high, 0.0), *infinity = constant(l, high, INFINITY);
  const tn_node_t* ratio = bin(l, TN_OP_DIV, low, high);
  const tn_node_t* root =
      unary(l, TN_OP_SQRT, tn_fma(l->graph, ratio, ratio, constant(l, ratio, 1.0)));
  const tn_node_t* value = bin(l, TN_OP_MUL, high, root);
  value = choose(l, compare(l, TN_EQ, high, zero), zero, value);
  // An infinite side makes it infinite, whatever the other one is.
  const tn_node_t* is_infinite =
      bin(l, TN_OP_OR, compare(l, TN_EQ, x, infinity), compare(l, TN_EQ, y, infinity));
  return tn_return_as(l, choose(l, is_infinite, infinity, value), p.dtype);
}

// log(exp(x) + exp(y)) in the operands' type.
static const tn_node_t* log_add_exp(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* y,
                                    bool base_2) {
  const tn_node_t* high = bin(l, TN_OP_MAX, x, y);
  const tn_node_t* distance = unary(l, TN_OP_ABS, bin(l, TN_OP_SUB, x, y));
  const tn_node_t* e = unary(l, base_2 ? TN_OP_EXP2 : TN_OP_EXP, unary(l, TN_OP_NEG, distance));
  const tn_node_t* rest = unary(l, TN_OP_LOG1P, e);
  if (base_2) rest = bin(l, TN_OP_MUL, rest, constant(l, rest, INV_LN2));
  const tn_node_t* value = bin(l, TN_OP_ADD, high, rest);
  // Equal infinities have no difference.
  const tn_node_t* is_infinite =
      compare(l, TN_EQ, unary(l, TN_OP_ABS, x), constant(l, x, INFINITY));
  return choose(l, bin(l, TN_OP_AND, is_infinite, compare(l, TN_EQ, x, y)), x, value);
}
static tn_status_t lower_log_add_exp(tn_lowering_t* l, bool base_2) {
  const tn_pair_t p = tn_pair_operands(l, false);
  if (!tn_dtype_is_float(p.dtype)) return decline_dtype(l, p.dtype);
  return tn_return_as(l, log_add_exp(l, p.x, p.y, base_2), p.dtype);
}
tn_status_t tn_lower_logaddexp(tn_lowering_t* l) { return lower_log_add_exp(l, false); }
tn_status_t tn_lower_logaddexp2(tn_lowering_t* l) { return lower_log_add_exp(l, true); }

// x, dim. Each round adds what lies 1, 2, 4.. places before: as many rounds as the length has binary digits, and no
// element is ever weighed against the row's maximum, which would lose the small ones in front of it. f32 adds in f64, as
// CPU does: the gradient takes differences of results.
tn_status_t tn_lower_logcumsumexp(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_t dtype = tn_dtype_of(x),
                   opmath = dtype == TN_F32 ? TN_F64 : tn_opmath_dtype(dtype);
  if (!x || !tn_dtype_is_float(dtype)) return decline_dtype(l, dtype);
  const int rank = tn_rank(x), dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), rank);
  if (rank == 0 || tn_type_element_count(&x->types[0]) == 0) {
    tn_return(l, x);
    return TN_OK;
  }
  const tn_node_t* y = tn_convert(g, x, opmath);
  const tn_node_t* nothing = tn_constant_double(g, opmath, -INFINITY);
  int64_t low[TN_MAX_RANK] = {0}, high[TN_MAX_RANK] = {0}, interior[TN_MAX_RANK] = {0};
  for (int64_t step = 1; step < tn_dim(x, dim); step *= 2) {
    low[dim] = step;
    high[dim] = -step;
    y = log_add_exp(l, y, tn_pad(g, y, nothing, low, high, interior), false);
  }
  return tn_return_as(l, y, dtype);
}

// A distance outside 0 .. width - 1 shifts everything out.
static tn_status_t shift(tn_lowering_t* l, bool is_left) {
  const tn_pair_t p = tn_pair_operands(l, false);
  const tn_dtype_class_t kind = tn_dtype_class(p.dtype);
  if (kind != TN_CLASS_SIGNED && kind != TN_CLASS_UNSIGNED) return decline_dtype(l, p.dtype);
  const double width = 8.0 * (double)tn_dtype_size(p.dtype);
  const tn_node_t *zero = constant(l, p.y, 0.0), *distance = p.y;
  const tn_node_t* is_outside = compare(l, TN_GE, distance, constant(l, distance, width));
  if (kind == TN_CLASS_SIGNED)
    is_outside = bin(l, TN_OP_OR, is_outside, compare(l, TN_LT, distance, zero));
  const bool keeps_sign = !is_left && kind == TN_CLASS_SIGNED;
  distance = choose(l, is_outside, constant(l, distance, keeps_sign ? width - 1.0 : 0.0), distance);
  const tn_op_t op = is_left ? TN_OP_SHL : keeps_sign ? TN_OP_SHR_A : TN_OP_SHR_L;
  const tn_node_t* value = bin(l, op, p.x, distance);
  tn_return(l, keeps_sign ? value : choose(l, is_outside, zero, value));
  return TN_OK;
}
tn_status_t tn_lower_shift_left(tn_lowering_t* l) { return shift(l, true); }
tn_status_t tn_lower_shift_right(tn_lowering_t* l) { return shift(l, false); }

// ---- one operand --------------------------------------------------------------------------------------------

// The argument in its result type and in the type of the arithmetic.
static const tn_node_t* float_operand(tn_lowering_t* l, int index, tn_dtype_t* out_dtype) {
  const tn_node_t* x = tn_arg_tensor(l, index);
  *out_dtype = tn_to_float_dtype(tn_dtype_of(x));
  return tn_convert(l->graph, x, tn_opmath_dtype(*out_dtype));
}

tn_status_t tn_lower_angle(tn_lowering_t* l) {
  tn_dtype_t dtype;
  const tn_node_t* x = float_operand(l, 0, &dtype);
  if (tn_dtype_is_complex(dtype)) {
    const tn_node_t *imaginary = unary(l, TN_OP_IMAG, x), *real = unary(l, TN_OP_REAL, x);
    tn_return(l, bin(l, TN_OP_ATAN2, imaginary, real));
    return TN_OK;
  }
  const tn_node_t* zero = constant(l, x, 0.0);
  const tn_node_t* value = choose(l, compare(l, TN_LT, x, zero), constant(l, x, PI), zero);
  return tn_return_as(l, choose(l, is_nan(l, x), x, value), dtype);
}

tn_status_t tn_lower_sinc(tn_lowering_t* l) {
  tn_dtype_t dtype;
  const tn_node_t* x = float_operand(l, 0, &dtype);
  if (tn_dtype_is_complex(dtype)) return decline_dtype(l, dtype);
  const tn_node_t* scaled = bin(l, TN_OP_MUL, constant(l, x, PI), x);
  const tn_node_t* value = bin(l, TN_OP_DIV, unary(l, TN_OP_SIN, scaled), scaled);
  const tn_node_t* is_zero = compare(l, TN_EQ, x, constant(l, x, 0.0));
  return tn_return_as(l, choose(l, is_zero, constant(l, x, 1.0), value), dtype);
}

// x, eps: no or a negative eps clamps nothing
tn_status_t tn_lower_logit(tn_lowering_t* l) {
  tn_dtype_t dtype;
  const tn_node_t* x = float_operand(l, 0, &dtype);
  if (tn_dtype_is_complex(dtype)) return decline_dtype(l, dtype);
  const double eps = tn_arg_double(l, 1, -1.0);
  const tn_node_t* one = constant(l, x, 1.0);
  if (eps >= 0.0) {
    const tn_node_t *low = constant(l, x, eps), *high = bin(l, TN_OP_SUB, one, low);
    x = choose(l, compare(l, TN_LT, x, low), low, choose(l, compare(l, TN_GT, x, high), high, x));
  }
  const tn_node_t* odds = bin(l, TN_OP_DIV, x, bin(l, TN_OP_SUB, one, x));
  return tn_return_as(l, unary(l, TN_OP_LOG, odds), dtype);
}

// grad, x, eps
tn_status_t tn_lower_logit_backward(tn_lowering_t* l) {
  const tn_dtype_t dtype = tn_promote_args(l, 0, 2), opmath = tn_opmath_dtype(dtype);
  if (!tn_dtype_is_float(dtype)) return decline_dtype(l, dtype);
  const tn_node_t *grad = tn_arg_tensor(l, 0), *x = tn_arg_tensor(l, 1);
  tn_broadcast_pair(l, opmath, &grad, &x);
  const double eps = tn_arg_double(l, 2, -1.0);
  const tn_node_t *one = constant(l, x, 1.0), *low = constant(l, x, eps < 0.0 ? 0.0 : eps);
  const tn_node_t* is_outside = bin(l, TN_OP_OR, compare(l, TN_LT, x, low),
                                    compare(l, TN_GT, x, bin(l, TN_OP_SUB, one, low)));
  const tn_node_t* slope = bin(l, TN_OP_MUL, x, bin(l, TN_OP_SUB, one, x));
  const tn_node_t* outside = constant(l, x, eps < 0.0 ? NAN : 0.0);
  return tn_return_as(l, choose(l, is_outside, outside, bin(l, TN_OP_DIV, grad, slope)), dtype);
}

static double largest(tn_dtype_t dtype) {
  switch (dtype) {
    case TN_F64: return DBL_MAX;
    case TN_F16: return 65504.0;
    case TN_BF16: return 0x1.fep127;
    default: return FLT_MAX;
  }
}

// x, nan, posinf, neginf: absent ones are 0 and the largest finite numbers
tn_status_t tn_lower_nan_to_num(tn_lowering_t* l) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *y = x;
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (tn_dtype_is_complex(dtype) || (tn_dtype_is_float(dtype) && tn_dtype_size(dtype) == 1))
    return decline_dtype(l, dtype);
  if (tn_dtype_is_float(dtype)) {
    const double otherwise[] = {0.0, largest(dtype), -largest(dtype)};
    const tn_node_t* is_kind[] = {is_nan(l, x), compare(l, TN_EQ, x, constant(l, x, INFINITY)),
                                  compare(l, TN_EQ, x, constant(l, x, -INFINITY))};
    for (int i = 0; i < 3; ++i) {
      const tn_node_t* value =
          tn_arg_is_none(l, i + 1) ? constant(l, x, otherwise[i]) : number(l, i + 1, x);
      y = choose(l, is_kind[i], value, y);
    }
  }
  tn_return(l, y);
  return TN_OK;
}

// x, *, decimals. Every step rounds to the dtype, as in PyTorch's kernel.
tn_status_t tn_lower_round_decimals(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (!tn_dtype_is_float(dtype)) return decline_dtype(l, dtype);
  const int64_t decimals = tn_arg_int(l, 1, 0);
  if (decimals == 0) {
    tn_return(l, unary(l, TN_OP_ROUND_EVEN, x));
    return TN_OK;
  }
  const bool is_left = decimals < 0;
  const tn_node_t* scale = constant(l, x, pow(10.0, (double)(is_left ? -decimals : decimals)));
  const tn_node_t* scaled = bin(l, is_left ? TN_OP_DIV : TN_OP_MUL, x, scale);
  tn_return(l, bin(l, is_left ? TN_OP_MUL : TN_OP_DIV, unary(l, TN_OP_ROUND_EVEN, scaled), scale));
  return TN_OK;
}

// Order 1: below 1/2 by reflection, six steps up, then the asymptotic series.
static const tn_node_t* trigamma(tn_lowering_t* l, const tn_node_t* x) {
  const tn_node_t *one = constant(l, x, 1.0), *zero = constant(l, x, 0.0);
  const tn_node_t* is_low = compare(l, TN_LT, x, constant(l, x, 0.5));
  const tn_node_t* sine = unary(l, TN_OP_SIN, bin(l, TN_OP_MUL, constant(l, x, PI), x));
  const tn_node_t* reflected =
      bin(l, TN_OP_DIV, constant(l, x, -PI * PI), bin(l, TN_OP_MUL, sine, sine));
  const tn_node_t* sum = choose(l, is_low, reflected, zero);
  const tn_node_t* y = choose(l, is_low, bin(l, TN_OP_SUB, one, x), x);
  for (int i = 0; i < 6; ++i) {
    sum = bin(l, TN_OP_ADD, sum, bin(l, TN_OP_DIV, one, bin(l, TN_OP_MUL, y, y)));
    y = bin(l, TN_OP_ADD, y, one);
  }
  const tn_node_t* t = bin(l, TN_OP_DIV, one, bin(l, TN_OP_MUL, y, y));
  const tn_node_t* series = constant(l, x, 1.0 / 42.0);
  series = bin(l, TN_OP_SUB, constant(l, x, 1.0 / 30.0), bin(l, TN_OP_MUL, t, series));
  series = bin(l, TN_OP_SUB, constant(l, x, 1.0 / 6.0), bin(l, TN_OP_MUL, t, series));
  series = bin(l, TN_OP_MUL, t, series);
  series = bin(l, TN_OP_ADD, series, bin(l, TN_OP_DIV, constant(l, x, 0.5), y));
  series = bin(l, TN_OP_DIV, bin(l, TN_OP_ADD, series, one), y);
  sum = bin(l, TN_OP_ADD, sum, series);
  return choose(l, is_low, unary(l, TN_OP_NEG, sum), sum);
}

// n, x
tn_status_t tn_lower_polygamma(tn_lowering_t* l) {
  tn_dtype_t dtype;
  const tn_node_t* x = float_operand(l, 1, &dtype);
  const int64_t n = tn_arg_int(l, 0, 0);
  if (tn_dtype_is_complex(dtype) || n < 0 || n > 1)
    return TN_DECLINE("polygamma of order %lld", (long long)n);
  return tn_return_as(l, n == 0 ? unary(l, TN_OP_DIGAMMA, x) : trigamma(l, x), dtype);
}
