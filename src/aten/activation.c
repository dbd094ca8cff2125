// Activation functions and their gradients. f16 and bf16 compute in f32 and round once.
#include <string.h>

#include "aten/lowering.h"

typedef struct activation {
  tn_lowering_t* l;
  tn_graph_t* g;
  tn_dtype_t dtype;    // of the result
  const tn_node_t* x;  // in the compute type
} activation_t;

static activation_t begin(tn_lowering_t* l, int index) {
  const tn_node_t* x = tn_arg_tensor(l, index);
  const tn_dtype_t dtype = tn_dtype_of(x);
  return (activation_t){l, l->graph, dtype, tn_convert(l->graph, x, tn_opmath_dtype(dtype))};
}

static tn_status_t finish(const activation_t* a, const tn_node_t* y) {
  if (!tn_dtype_is_float(a->dtype))
    return TN_DECLINE("%s of %s", a->l->op->name, tn_dtype_name(a->dtype));
  tn_return(a->l, tn_convert(a->g, y, a->dtype));
  return TN_OK;
}

static const tn_node_t* constant(const activation_t* a, double value) {
  return tn_constant_like(a->g, a->x, value);
}
static const tn_node_t* bin(const activation_t* a, tn_op_t op, const tn_node_t* x,
                            const tn_node_t* y) {
  return tn_binary(a->g, op, x, y);
}
static const tn_node_t* mul(const activation_t* a, const tn_node_t* x, const tn_node_t* y) {
  return bin(a, TN_OP_MUL, x, y);
}
static const tn_node_t* add(const activation_t* a, const tn_node_t* x, const tn_node_t* y) {
  return bin(a, TN_OP_ADD, x, y);
}
static const tn_node_t* rest(const activation_t* a, const tn_node_t* x) {
  return bin(a, TN_OP_SUB, constant(a, 1.0), x);
}
static const tn_node_t* unary(const activation_t* a, tn_op_t op, const tn_node_t* x) {
  return tn_unary(a->g, op, x);
}

// Number |index| spread over x, not fixed.
static const tn_node_t* number(const activation_t* a, int index) {
  const tn_node_t* value = tn_arg_scalar(a->l, index, tn_dtype_of(a->x));
  return a->x ? tn_broadcast_to(a->g, value, tn_rank(a->x), a->x->types[0].dims) : NULL;
}

// Another tensor argument in the compute type and x's shape.
static const tn_node_t* tensor(const activation_t* a, int index) {
  const tn_node_t* y = tn_convert(a->g, tn_arg_tensor(a->l, index), tn_dtype_of(a->x));
  return y && a->x ? tn_broadcast_to(a->g, y, tn_rank(a->x), a->x->types[0].dims) : NULL;
}

tn_status_t tn_lower_relu(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (dtype == TN_BOOL || tn_dtype_is_complex(dtype))
    return TN_DECLINE("relu of %s", tn_dtype_name(dtype));
  tn_return(l, tn_binary(l->graph, TN_OP_MAX, x, tn_constant_like(l->graph, x, 0.0)));
  return TN_OK;
}

// x, threshold, value
tn_status_t tn_lower_threshold(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (dtype == TN_BOOL || tn_dtype_is_complex(dtype) || !x)
    return TN_DECLINE("threshold of %s", tn_dtype_name(dtype));
  const tn_node_t* bound =
      tn_broadcast_to(l->graph, tn_arg_scalar(l, 1, dtype), tn_rank(x), x->types[0].dims);
  const tn_node_t* value =
      tn_broadcast_to(l->graph, tn_arg_scalar(l, 2, dtype), tn_rank(x), x->types[0].dims);
  tn_return(l, tn_select(l->graph, tn_compare(l->graph, TN_LE, x, bound), value, x));
  return TN_OK;
}

// grad, x, threshold
tn_status_t tn_lower_threshold_backward(tn_lowering_t* l) {
  const tn_node_t *grad = tn_arg_tensor(l, 0), *x = tn_arg_tensor(l, 1);
  const tn_dtype_t dtype = tn_promote_args(l, 0, 2);
  if (tn_dtype_is_complex(dtype) || dtype == TN_BOOL)
    return TN_DECLINE("threshold_backward of %s", tn_dtype_name(dtype));
  tn_broadcast_pair(l, dtype, &grad, &x);
  if (!x) return tn_graph_status(l->graph);
  const tn_node_t* bound =
      tn_broadcast_to(l->graph, tn_arg_scalar(l, 2, dtype), tn_rank(x), x->types[0].dims);
  tn_return(l, tn_select(l->graph, tn_compare(l->graph, TN_LE, x, bound),
                         tn_constant_like(l->graph, x, 0.0), grad));
  return TN_OK;
}

static tn_status_t read_approximate(tn_lowering_t* l, int index, bool* out_is_tanh) {
  const char* approximate = tn_arg_string(l, index, "none");
  *out_is_tanh = strcmp(approximate, "tanh") == 0;
  if (*out_is_tanh || strcmp(approximate, "none") == 0) return TN_OK;
  return TN_DECLINE("approximate argument must be either none or tanh.");
}

#define SQRT_2_OVER_PI 0.79788456080286535588
#define SQRT_HALF      0.70710678118654752440
#define INV_SQRT_2_PI  0.39894228040143267794  // 1 / sqrt(2 pi)

tn_status_t tn_lower_gelu(tn_lowering_t* l) {
  const activation_t a = begin(l, 0);
  const tn_node_t *x = a.x, *half = constant(&a, 0.5);
  bool is_tanh;
  TN_TRY(read_approximate(l, 1, &is_tanh));
  if (is_tanh) {
    const tn_node_t* cube = mul(&a, mul(&a, x, x), x);
    const tn_node_t* inner =
        mul(&a, constant(&a, SQRT_2_OVER_PI), tn_fma(a.g, cube, constant(&a, 0.044715), x));
    return finish(
        &a, mul(&a, mul(&a, half, x), add(&a, constant(&a, 1.0), unary(&a, TN_OP_TANH, inner))));
  }
  const tn_node_t* e = unary(&a, TN_OP_ERF, mul(&a, x, constant(&a, SQRT_HALF)));
  return finish(&a, mul(&a, mul(&a, x, half), add(&a, constant(&a, 1.0), e)));
}

// grad, x, *, approximate
tn_status_t tn_lower_gelu_backward(tn_lowering_t* l) {
  const activation_t a = begin(l, 1);
  const tn_node_t *x = a.x, *grad = tensor(&a, 0), *half = constant(&a, 0.5),
                  *one = constant(&a, 1.0);
  bool is_tanh;
  TN_TRY(read_approximate(l, 2, &is_tanh));
  if (is_tanh) {
    const tn_node_t* square = mul(&a, x, x);
    const tn_node_t* kappa = constant(&a, 0.044715);
    const tn_node_t* inner =
        mul(&a, constant(&a, SQRT_2_OVER_PI), tn_fma(a.g, mul(&a, square, x), kappa, x));
    const tn_node_t* t = unary(&a, TN_OP_TANH, inner);
    const tn_node_t* left = mul(&a, half, add(&a, one, t));
    const tn_node_t* slope = mul(&a, constant(&a, SQRT_2_OVER_PI),
                                 add(&a, one, mul(&a, mul(&a, constant(&a, 3.0), kappa), square)));
    const tn_node_t* right = mul(&a, mul(&a, mul(&a, half, x), rest(&a, mul(&a, t, t))), slope);
    return finish(&a, mul(&a, grad, add(&a, left, right)));
  }
  const tn_node_t* cdf =
      mul(&a, half, add(&a, one, unary(&a, TN_OP_ERF, mul(&a, x, constant(&a, SQRT_HALF)))));
  const tn_node_t* pdf = mul(&a, unary(&a, TN_OP_EXP, mul(&a, mul(&a, x, x), constant(&a, -0.5))),
                             constant(&a, INV_SQRT_2_PI));
  return finish(&a, mul(&a, grad, add(&a, cdf, mul(&a, x, pdf))));
}

tn_status_t tn_lower_silu(tn_lowering_t* l) {
  const activation_t a = begin(l, 0);
  const tn_node_t* e = unary(&a, TN_OP_EXP, unary(&a, TN_OP_NEG, a.x));
  return finish(&a, bin(&a, TN_OP_DIV, a.x, add(&a, constant(&a, 1.0), e)));
}

// grad, x
tn_status_t tn_lower_silu_backward(tn_lowering_t* l) {
  const activation_t a = begin(l, 1);
  const tn_node_t *grad = tensor(&a, 0), *s = unary(&a, TN_OP_LOGISTIC, a.x);
  const tn_node_t* slope = add(&a, constant(&a, 1.0), mul(&a, a.x, rest(&a, s)));
  return finish(&a, mul(&a, mul(&a, grad, s), slope));
}

tn_status_t tn_lower_mish(tn_lowering_t* l) {
  const activation_t a = begin(l, 0);
  const tn_node_t* soft = unary(&a, TN_OP_LOG1P, unary(&a, TN_OP_EXP, a.x));
  return finish(&a, mul(&a, a.x, unary(&a, TN_OP_TANH, soft)));
}

// grad, output
tn_status_t tn_lower_sigmoid_backward(tn_lowering_t* l) {
  const activation_t a = begin(l, 1);
  return finish(&a, mul(&a, tensor(&a, 0), mul(&a, rest(&a, a.x), a.x)));
}
tn_status_t tn_lower_tanh_backward(tn_lowering_t* l) {
  const activation_t a = begin(l, 1);
  return finish(&a, mul(&a, tensor(&a, 0), rest(&a, mul(&a, a.x, a.x))));
}

// x, min, max
tn_status_t tn_lower_hardtanh(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (dtype == TN_BOOL || tn_dtype_is_complex(dtype) || !x)
    return TN_DECLINE("hardtanh of %s", tn_dtype_name(dtype));
  if (dtype == TN_U8 && (tn_arg_double(l, 1, 0.0) < 0.0 || tn_arg_double(l, 2, 0.0) < 0.0))
    return TN_DECLINE("cannot do hardtanh on an unsigned type with negative limits");
  const tn_node_t* low =
      tn_broadcast_to(l->graph, tn_arg_scalar(l, 1, dtype), tn_rank(x), x->types[0].dims);
  const tn_node_t* high =
      tn_broadcast_to(l->graph, tn_arg_scalar(l, 2, dtype), tn_rank(x), x->types[0].dims);
  tn_return(l, tn_binary(l->graph, TN_OP_MIN, tn_binary(l->graph, TN_OP_MAX, x, low), high));
  return TN_OK;
}

static const tn_node_t* choose(const activation_t* a, const tn_node_t* condition,
                               const tn_node_t* x, const tn_node_t* y) {
  return tn_select(a->g, condition, x, y);
}

// grad, x, min, max
tn_status_t tn_lower_hardtanh_backward(tn_lowering_t* l) {
  const activation_t a = begin(l, 1);
  const tn_node_t* outside = bin(&a, TN_OP_OR, tn_compare(a.g, TN_LE, a.x, number(&a, 2)),
                                 tn_compare(a.g, TN_GE, a.x, number(&a, 3)));
  return finish(&a, choose(&a, outside, constant(&a, 0.0), tensor(&a, 0)));
}

// x, slope
tn_status_t tn_lower_leaky_relu(tn_lowering_t* l) {
  const activation_t a = begin(l, 0);
  const tn_node_t* is_positive = tn_compare(a.g, TN_GT, a.x, constant(&a, 0.0));
  return finish(&a, choose(&a, is_positive, a.x, mul(&a, a.x, number(&a, 1))));
}
// grad, x, slope, self_is_result
tn_status_t tn_lower_leaky_relu_backward(tn_lowering_t* l) {
  const activation_t a = begin(l, 1);
  const tn_node_t* grad = tensor(&a, 0);
  if (tn_arg_bool(l, 3, false) && tn_arg_double(l, 2, 0.0) < 0.0)
    return TN_DECLINE("In-place leakyReLu backward calculation is triggered with a negative slope");
  const tn_node_t* is_positive = tn_compare(a.g, TN_GT, a.x, constant(&a, 0.0));
  return finish(&a, choose(&a, is_positive, grad, mul(&a, grad, number(&a, 2))));
}

// x, alpha, scale, input_scale
tn_status_t tn_lower_elu(tn_lowering_t* l) {
  const activation_t a = begin(l, 0);
  const tn_node_t *alpha = mul(&a, number(&a, 1), number(&a, 2)), *scale = number(&a, 2),
                  *input_scale = number(&a, 3);
  const tn_node_t* negative = mul(&a, unary(&a, TN_OP_EXPM1, mul(&a, a.x, input_scale)), alpha);
  const tn_node_t* is_negative = tn_compare(a.g, TN_LT, a.x, constant(&a, 0.0));
  return finish(&a, choose(&a, is_negative, negative, mul(&a, a.x, scale)));
}
// grad, alpha, scale, input_scale, is_result, self_or_result
tn_status_t tn_lower_elu_backward(tn_lowering_t* l) {
  const activation_t a = begin(l, 5);
  const tn_node_t *grad = tensor(&a, 0), *scale = number(&a, 2), *input_scale = number(&a, 3);
  const tn_node_t* alpha = mul(&a, number(&a, 1), scale);
  const bool is_result = tn_arg_bool(l, 4, false);
  if (is_result && tn_arg_double(l, 1, 1.0) < 0.0)
    return TN_DECLINE("In-place elu backward calculation is triggered with a negative slope");
  const tn_node_t* negative = is_result ? mul(&a, mul(&a, grad, input_scale), add(&a, a.x, alpha))
                                        : mul(&a, mul(&a, mul(&a, grad, input_scale), alpha),
                                              unary(&a, TN_OP_EXP, mul(&a, a.x, input_scale)));
  const tn_node_t* is_negative = tn_compare(a.g, TN_LE, a.x, constant(&a, 0.0));
  return finish(&a, choose(&a, is_negative, negative, mul(&a, grad, scale)));
}

// x, beta, threshold
tn_status_t tn_lower_softplus(tn_lowering_t* l) {
  const activation_t a = begin(l, 0);
  const tn_node_t *beta = number(&a, 1), *scaled = mul(&a, a.x, beta);
  const tn_node_t* soft =
      bin(&a, TN_OP_DIV, unary(&a, TN_OP_LOG1P, unary(&a, TN_OP_EXP, scaled)), beta);
  return finish(&a, choose(&a, tn_compare(a.g, TN_GT, scaled, number(&a, 2)), a.x, soft));
}
// grad, x, beta, threshold
tn_status_t tn_lower_softplus_backward(tn_lowering_t* l) {
  const activation_t a = begin(l, 1);
  const tn_node_t *grad = tensor(&a, 0), *scaled = mul(&a, a.x, number(&a, 2)),
                  *e = unary(&a, TN_OP_EXP, scaled);
  const tn_node_t* soft = bin(&a, TN_OP_DIV, mul(&a, grad, e), add(&a, e, constant(&a, 1.0)));
  return finish(&a, choose(&a, tn_compare(a.g, TN_GT, scaled, number(&a, 3)), grad, soft));
}

// min(max(x + 3, 0), 6)
static const tn_node_t* relu6_shifted(const activation_t* a) {
  const tn_node_t* shifted = bin(a, TN_OP_MAX, add(a, a->x, constant(a, 3.0)), constant(a, 0.0));
  return bin(a, TN_OP_MIN, shifted, constant(a, 6.0));
}
tn_status_t tn_lower_hardsigmoid(tn_lowering_t* l) {
  const activation_t a = begin(l, 0);
  return finish(&a, bin(&a, TN_OP_DIV, relu6_shifted(&a), constant(&a, 6.0)));
}
tn_status_t tn_lower_hardswish(tn_lowering_t* l) {
  const activation_t a = begin(l, 0);
  return finish(&a, bin(&a, TN_OP_DIV, mul(&a, a.x, relu6_shifted(&a)), constant(&a, 6.0)));
}

// grad, x
tn_status_t tn_lower_hardsigmoid_backward(tn_lowering_t* l) {
  const activation_t a = begin(l, 1);
  const tn_node_t* is_inside = bin(&a, TN_OP_AND, tn_compare(a.g, TN_GT, a.x, constant(&a, -3.0)),
                                   tn_compare(a.g, TN_LT, a.x, constant(&a, 3.0)));
  const tn_node_t* slope = mul(&a, tensor(&a, 0), constant(&a, 1.0 / 6.0));
  return finish(&a, choose(&a, is_inside, slope, constant(&a, 0.0)));
}
tn_status_t tn_lower_hardswish_backward(tn_lowering_t* l) {
  const activation_t a = begin(l, 1);
  const tn_node_t *grad = tensor(&a, 0), *three = constant(&a, 3.0);
  const tn_node_t* slope = add(&a, bin(&a, TN_OP_DIV, a.x, three), constant(&a, 0.5));
  const tn_node_t* is_low = tn_compare(a.g, TN_LE, a.x, constant(&a, -3.0));
  const tn_node_t* is_middle = tn_compare(a.g, TN_LT, a.x, three);
  return finish(
      &a, choose(&a, is_low, constant(&a, 0.0), choose(&a, is_middle, mul(&a, grad, slope), grad)));
}

// -lambda <= x <= lambda, with lambda at |index|
static const tn_node_t* is_near_zero(const activation_t* a, int index) {
  const tn_node_t* bound = number(a, index);
  return bin(a, TN_OP_AND, tn_compare(a->g, TN_GE, a->x, unary(a, TN_OP_NEG, bound)),
             tn_compare(a->g, TN_LE, a->x, bound));
}
// x, lambda
tn_status_t tn_lower_hardshrink(tn_lowering_t* l) {
  const activation_t a = begin(l, 0);
  return finish(&a, choose(&a, is_near_zero(&a, 1), constant(&a, 0.0), a.x));
}
tn_status_t tn_lower_softshrink(tn_lowering_t* l) {
  const activation_t a = begin(l, 0);
  if (!(tn_arg_double(l, 1, 0.5) >= 0.0)) return TN_DECLINE("lambda must be greater or equal to 0");
  const tn_node_t *bound = number(&a, 1), *below = unary(&a, TN_OP_NEG, bound);
  const tn_node_t* outer = choose(&a, tn_compare(a.g, TN_GT, a.x, bound),
                                  bin(&a, TN_OP_SUB, a.x, bound), add(&a, a.x, bound));
  const tn_node_t* is_outer =
      bin(&a, TN_OP_OR, tn_compare(a.g, TN_GT, a.x, bound), tn_compare(a.g, TN_LT, a.x, below));
  // Not 0: NaN stays, and so does the sign of zero.
  return finish(&a, choose(&a, is_outer, outer, mul(&a, a.x, constant(&a, 0.0))));
}
// grad, x, lambda
tn_status_t tn_lower_shrink_backward(tn_lowering_t* l) {
  const activation_t a = begin(l, 1);
  return finish(&a, choose(&a, is_near_zero(&a, 2), constant(&a, 0.0), tensor(&a, 0)));
}

// x -> output, buffer = exp(-|x|)
tn_status_t tn_lower_log_sigmoid(tn_lowering_t* l) {
  const activation_t a = begin(l, 0);
  const tn_node_t* e = unary(&a, TN_OP_EXP, unary(&a, TN_OP_NEG, unary(&a, TN_OP_ABS, a.x)));
  const tn_node_t* low = bin(&a, TN_OP_MIN, a.x, constant(&a, 0.0));
  TN_TRY(finish(&a, bin(&a, TN_OP_SUB, low, unary(&a, TN_OP_LOG1P, e))));
  return finish(&a, e);
}
// grad, x, buffer: the buffer is one exponential, cheaper computed than read, and exact for narrow types
tn_status_t tn_lower_log_sigmoid_backward(tn_lowering_t* l) {
  const activation_t a = begin(l, 1);
  return finish(&a, mul(&a, tensor(&a, 0), unary(&a, TN_OP_LOGISTIC, unary(&a, TN_OP_NEG, a.x))));
}

// x, weight of x's rank
tn_status_t tn_lower_prelu(tn_lowering_t* l) {
  const activation_t a = begin(l, 0);
  const tn_node_t* is_positive = tn_compare(a.g, TN_GT, a.x, constant(&a, 0.0));
  return finish(&a, choose(&a, is_positive, a.x, mul(&a, tensor(&a, 1), a.x)));
}
// grad, x, weight -> dx, dweight (not yet summed)
tn_status_t tn_lower_prelu_backward(tn_lowering_t* l) {
  const activation_t a = begin(l, 1);
  const tn_node_t *grad = tensor(&a, 0), *zero = constant(&a, 0.0);
  const tn_node_t* is_positive = tn_compare(a.g, TN_GT, a.x, zero);
  TN_TRY(finish(&a, choose(&a, is_positive, grad, mul(&a, tensor(&a, 2), grad))));
  return finish(&a, choose(&a, is_positive, zero, mul(&a, a.x, grad)));
}

// Half |index| of x along |dim|.
static const tn_node_t* half_of(const activation_t* a, int dim, int index) {
  const int64_t half = tn_dim(a->x, dim) / 2;
  return tn_slice_dim(a->g, a->x, dim, index * half, (index + 1) * half, 1);
}

static tn_status_t check_halves(const activation_t* a, int dim) {
  if (tn_rank(a->x) > 0 && tn_dim(a->x, dim) % 2 == 0) return TN_OK;
  return TN_DECLINE("Halving dimension must be even");
}

// x, dim
tn_status_t tn_lower_glu(tn_lowering_t* l) {
  const activation_t a = begin(l, 0);
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 1, -1), tn_rank(a.x));
  TN_TRY(check_halves(&a, dim));
  return finish(&a, mul(&a, half_of(&a, dim, 0), unary(&a, TN_OP_LOGISTIC, half_of(&a, dim, 1))));
}
// grad, x, dim
tn_status_t tn_lower_glu_backward(tn_lowering_t* l) {
  const activation_t a = begin(l, 1);
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 2, -1), tn_rank(a.x));
  TN_TRY(check_halves(&a, dim));
  const tn_node_t *first = half_of(&a, dim, 0), *gate = half_of(&a, dim, 1);
  const tn_node_t* grad = tn_convert(a.g, tn_arg_tensor(l, 0), tn_dtype_of(a.x));
  if (grad && first && tn_rank(grad) != tn_rank(first)) return TN_DECLINE("glu_backward: gradient");
  const tn_node_t* s = unary(&a, TN_OP_LOGISTIC, gate);
  const tn_node_t* d_first = mul(&a, s, grad);
  const tn_node_t* one = tn_constant_like(a.g, s, 1.0);
  const tn_node_t* d_gate = mul(&a, mul(&a, bin(&a, TN_OP_SUB, one, s), d_first), first);
  const tn_node_t* parts[] = {d_first, d_gate};
  return finish(&a, tn_concat(a.g, 2, parts, dim));
}
