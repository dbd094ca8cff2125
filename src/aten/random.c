// Random operators: functions of the generator's {seed, offset} and of the element's position.
#include <math.h>

#include "aten/lowering.h"

// Random 32-bit words for |type|'s shape, |draws| per element along a new first dimension; counts what is consumed.
static const tn_node_t* words(tn_lowering_t* l, const tn_type_t* type, int draws) {
  tn_type_t bits = {.dtype = TN_U32, .rank = type->rank + 1};
  bits.dims[0] = draws;
  for (int d = 0; d < type->rank; ++d) bits.dims[d + 1] = type->dims[d];
  l->random_count += (uint64_t)(tn_type_element_count(&bits) + 3) / 4;
  return tn_rng_bits(l->graph, l->random_state, &bits);
}

static const tn_node_t* draw(tn_lowering_t* l, const tn_node_t* all, int index) {
  if (!all) return NULL;
  return tn_reshape(l->graph, tn_slice_dim(l->graph, all, 0, index, index + 1, 1), tn_rank(all) - 1,
                    all->types[0].dims + 1);
}

// Whether |dtype| has room for |value|.
static bool holds(tn_dtype_t dtype, double value) {
  if (tn_dtype_is_float(dtype))
    return isfinite(tn_scalar_to_double(dtype, tn_scalar_from_double(dtype, value)));
  const bool is_signed = tn_dtype_class(dtype) == TN_CLASS_SIGNED;
  const int bits = dtype == TN_BOOL ? 1 : 8 * (int)tn_dtype_size(dtype) - is_signed;
  return value >= (is_signed ? -ldexp(1.0, bits) : 0.0) && value <= ldexp(1.0, bits) - 1.0;
}

// Uniform in [0, 1) with 24 bits, in f32; with 53 bits in f64.
static const tn_node_t* unit_uniform(tn_lowering_t* l, const tn_type_t* type, tn_dtype_t dtype) {
  tn_graph_t* g = l->graph;
  if (type->rank >= TN_MAX_RANK) return tn_graph_fail(g, TN_DECLINE("%s: rank", l->op->name));
  if (dtype != TN_F64) {
    const tn_node_t* word = draw(l, words(l, type, 1), 0);
    const tn_node_t* high = tn_binary(g, TN_OP_SHR_L, word, tn_constant_like(g, word, 8.0));
    const tn_node_t* value = tn_convert(g, high, TN_F32);
    return tn_binary(g, TN_OP_MUL, value, tn_constant_like(g, value, 0x1p-24));
  }
  const tn_node_t* both = words(l, type, 2);
  const tn_node_t *a = tn_convert(g, draw(l, both, 0), TN_U64),
                  *b = tn_convert(g, draw(l, both, 1), TN_U64);
  const tn_node_t* joined =
      tn_binary(g, TN_OP_OR, tn_binary(g, TN_OP_SHL, a, tn_constant_like(g, a, 32.0)), b);
  const tn_node_t* value =
      tn_convert(g, tn_binary(g, TN_OP_SHR_L, joined, tn_constant_like(g, joined, 11.0)), TN_F64);
  return tn_binary(g, TN_OP_MUL, value, tn_constant_like(g, value, 0x1p-53));
}

// Box and Muller: one normal number from two uniform ones.
static const tn_node_t* unit_normal(tn_lowering_t* l, const tn_type_t* type, tn_dtype_t dtype) {
  tn_graph_t* g = l->graph;
  if (type->rank >= TN_MAX_RANK) return tn_graph_fail(g, TN_DECLINE("%s: rank", l->op->name));
  const tn_node_t* both = words(l, type, 2);
  const tn_dtype_t work = dtype == TN_F64 ? TN_F64 : TN_F32;
  const tn_node_t* parts[2];
  for (int i = 0; i < 2; ++i) {
    const tn_node_t* word = draw(l, both, i);
    const tn_node_t* high = tn_binary(g, TN_OP_SHR_L, word, tn_constant_like(g, word, 8.0));
    const tn_node_t* value = tn_convert(g, high, work);
    // The radius' uniform lies in (0, 1]: its logarithm is finite.
    if (i == 0) value = tn_binary(g, TN_OP_ADD, value, tn_constant_like(g, value, 1.0));
    parts[i] = tn_binary(g, TN_OP_MUL, value, tn_constant_like(g, value, 0x1p-24));
  }
  const tn_node_t* log = tn_unary(g, TN_OP_LOG, parts[0]);
  const tn_node_t* radius =
      tn_unary(g, TN_OP_SQRT, tn_binary(g, TN_OP_MUL, log, tn_constant_like(g, log, -2.0)));
  const tn_node_t* angle =
      tn_binary(g, TN_OP_MUL, parts[1], tn_constant_like(g, parts[1], 6.283185307179586));
  return tn_binary(g, TN_OP_MUL, radius, tn_unary(g, TN_OP_COS, angle));
}

static tn_status_t check_float(tn_lowering_t* l, const tn_node_t* x) {
  if (x && tn_dtype_is_float(tn_dtype_of(x))) return TN_OK;
  return TN_DECLINE("%s of %s", l->op->name, tn_dtype_name(tn_dtype_of(x)));
}

static const tn_node_t* spread(tn_lowering_t* l, int index, const tn_node_t* like) {
  return like ? tn_broadcast_to(l->graph, tn_arg_scalar(l, index, tn_dtype_of(like)), tn_rank(like),
                                like->types[0].dims)
              : NULL;
}

// self, from, to
tn_status_t tn_lower_uniform(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  TN_TRY(check_float(l, x));
  const double from = tn_arg_double(l, 1, 0.0), to = tn_arg_double(l, 2, 1.0);
  if (!(from <= to) || !isfinite(from) || !isfinite(to))
    return TN_DECLINE("uniform_ expects to return a [from, to) range");
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (!holds(dtype, from) || !holds(dtype, to))
    return TN_DECLINE("uniform_: a bound is out of bounds for %s", tn_dtype_name(dtype));
  const tn_node_t* u = unit_uniform(l, &x->types[0], dtype);
  const tn_node_t* value =
      tn_fma(g, u, tn_constant_like(g, u, to - from), tn_constant_like(g, u, from));
  value = tn_convert(g, value, dtype);
  // Rounding may reach the excluded upper end: such values become the lower one.
  const tn_node_t* is_end = tn_compare(g, TN_GE, value, tn_constant_like(g, value, to));
  tn_return(l, from < to ? tn_select(g, is_end, tn_constant_like(g, value, from), value) : value);
  return TN_OK;
}

// self, mean, std
tn_status_t tn_lower_normal(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  TN_TRY(check_float(l, x));
  if (!(tn_arg_double(l, 2, 1.0) >= 0.0)) return TN_DECLINE("normal expects std >= 0.0");
  const tn_node_t* z = unit_normal(l, &x->types[0], tn_dtype_of(x));
  const tn_node_t *mean = spread(l, 1, z), *std = spread(l, 2, z);
  tn_return(l, tn_convert(g, tn_fma(g, z, std, mean), tn_dtype_of(x)));
  return TN_OK;
}

// mean and std, each a tensor or a number: a new tensor of their common shape. The dtype is that of the mean, or of std
// when the mean is a number.
static tn_status_t normal_of(tn_lowering_t* l, const tn_node_t* mean, const tn_node_t* std) {
  tn_graph_t* g = l->graph;
  const bool has_mean = l->args[0].kind == TN_VALUE_TENSOR,
             has_std = l->args[1].kind == TN_VALUE_TENSOR;
  const tn_node_t* like = has_mean ? mean : std;
  TN_TRY(check_float(l, like));
  const tn_dtype_t dtype = tn_dtype_of(like), opmath = tn_opmath_dtype(dtype);
  if (has_std && (!tn_dtype_is_float(tn_dtype_of(std))))
    return TN_DECLINE("normal expects a floating std");
  if (!has_std && !(tn_arg_double(l, 1, 1.0) >= 0.0))
    return TN_DECLINE("normal expects std >= 0.0");
  std = tn_convert(g, std, opmath);
  if (has_std && tn_type_element_count(&std->types[0]) > 0) {
    const tn_node_t* is_valid = tn_compare(g, TN_GE, std, tn_constant_like(g, std, 0.0));
    std = tn_checked(l, std, tn_unary(g, TN_OP_NOT, is_valid), TN_CHECK_NEGATIVE_STD);
  }
  mean = tn_convert(g, mean, opmath);
  const tn_type_t type = tn_broadcast_type(l, mean, std);
  TN_TRY(tn_graph_status(g));
  const tn_node_t* z = unit_normal(l, &type, dtype);
  const tn_node_t* value = tn_fma(g, z, tn_broadcast_to(g, std, type.rank, type.dims),
                                  tn_broadcast_to(g, mean, type.rank, type.dims));
  tn_return(l, tn_convert(g, value, dtype));
  return TN_OK;
}
tn_status_t tn_lower_normal_of(tn_lowering_t* l) {
  return normal_of(l, tn_arg_node(l, 0), tn_arg_node(l, 1));
}

// 1 where uniform < p
static const tn_node_t* chance(tn_lowering_t* l, const tn_type_t* type, const tn_node_t* p) {
  const tn_node_t* u = unit_uniform(l, type, TN_F32);
  return tn_compare(
      l->graph, TN_LT, u,
      tn_broadcast_to(l->graph, tn_convert(l->graph, p, TN_F32), type->rank, type->dims));
}

// self, p
tn_status_t tn_lower_bernoulli_p(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const double p = tn_arg_double(l, 1, 0.5);
  if (!x || !(p >= 0.0 && p <= 1.0) || tn_dtype_is_complex(tn_dtype_of(x)))
    return TN_DECLINE("bernoulli_ expects p to be in [0, 1]");
  const tn_node_t* hit = chance(l, &x->types[0], tn_arg_scalar(l, 1, TN_F32));
  tn_return(l, tn_convert(l->graph, hit, tn_dtype_of(x)));
  return TN_OK;
}

// self holds the probabilities
tn_status_t tn_lower_bernoulli(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  TN_TRY(check_float(l, x));
  tn_graph_t* g = l->graph;
  if (tn_type_element_count(&x->types[0]) > 0) {
    const tn_node_t* is_inside =
        tn_binary(g, TN_OP_AND, tn_compare(g, TN_GE, x, tn_constant_like(g, x, 0.0)),
                  tn_compare(g, TN_LE, x, tn_constant_like(g, x, 1.0)));
    x = tn_checked(l, x, tn_unary(g, TN_OP_NOT, is_inside), TN_CHECK_UNIT_INTERVAL);
    if (!x) return tn_graph_status(g);
  }
  tn_return(l, tn_convert(g, chance(l, &x->types[0], x), tn_dtype_of(x)));
  return TN_OK;
}

// self, lambd
tn_status_t tn_lower_exponential(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  TN_TRY(check_float(l, x));
  if (!(tn_arg_double(l, 1, 1.0) > 0.0)) return TN_DECLINE("exponential_ expects lambda > 0.0");
  const tn_node_t* u = unit_uniform(l, &x->types[0], tn_dtype_of(x));
  const tn_node_t* log = tn_unary(g, TN_OP_LOG1P, tn_unary(g, TN_OP_NEG, u));
  tn_return(l,
            tn_convert(g, tn_unary(g, TN_OP_NEG, tn_binary(g, TN_OP_DIV, log, spread(l, 1, log))),
                       tn_dtype_of(x)));
  return TN_OK;
}

// self[, from], [to]: integers in [from, to); without bounds as many as the dtype represents exactly.
tn_status_t tn_lower_random(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (!x || tn_dtype_is_complex(tn_dtype_of(x)) || tn_rank(x) >= TN_MAX_RANK)
    return TN_DECLINE("random_");
  const tn_dtype_t dtype = tn_dtype_of(x);
  const bool has_from = l->op->name[6] == '.' && l->op->name[7] == 'f',
             has_to = l->op->name[6] == '.';
  const int64_t from = has_from ? tn_arg_int(l, 1, 0) : 0;
  int64_t to;
  if (has_to && !(has_from && tn_arg_is_none(l, 2))) {
    to = tn_arg_int(l, has_from ? 2 : 1, 0);
  } else {
    static const int k_digits[] = {[TN_F16] = 11, [TN_BF16] = 8, [TN_F32] = 24, [TN_F64] = 53};
    const int bits = dtype == TN_BOOL           ? 1
                     : tn_dtype_is_float(dtype) ? (dtype <= TN_F64 ? k_digits[dtype] : 3)
                     : tn_dtype_class(dtype) == TN_CLASS_UNSIGNED
                         ? (int)tn_dtype_size(dtype) * 8
                         : (int)tn_dtype_size(dtype) * 8 - 1;
    to = bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) + (tn_dtype_is_float(dtype) ? 1 : 0);
  }
  if (!holds(dtype, (double)from) || (has_to && !holds(dtype, (double)to - 1.0)))
    return TN_DECLINE("random_: a bound is out of bounds for %s", tn_dtype_name(dtype));
  if (from >= to) return TN_DECLINE("random_ expects 'from' to be less than 'to'");
  const tn_node_t* both = words(l, &x->types[0], 2);
  const tn_node_t *a = tn_convert(g, draw(l, both, 0), TN_U64),
                  *b = tn_convert(g, draw(l, both, 1), TN_U64);
  const tn_node_t* joined =
      tn_binary(g, TN_OP_OR, tn_binary(g, TN_OP_SHL, a, tn_constant_like(g, a, 32.0)), b);
  const tn_scalar_t range = {.u64 = (uint64_t)to - (uint64_t)from};
  const tn_type_t scalar_type = tn_type_make(TN_U64, 0, NULL);
  const tn_node_t* limit =
      tn_broadcast_to(g, tn_constant_splat(g, &scalar_type, range), tn_rank(x), x->types[0].dims);
  const tn_node_t* value = tn_convert(g, tn_binary(g, TN_OP_REM, joined, limit), TN_I64);
  const tn_node_t* origin =
      tn_broadcast_to(g, tn_constant_int(g, TN_I64, from), tn_rank(x), x->types[0].dims);
  tn_return(l, tn_convert(g, tn_binary(g, TN_OP_ADD, value, origin), dtype));
  return TN_OK;
}

// x, p, train -> output, mask
tn_status_t tn_lower_native_dropout(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  TN_TRY(check_float(l, x));
  const double p = tn_arg_double(l, 1, 0.5);
  const tn_dtype_t dtype = tn_dtype_of(x), opmath = tn_opmath_dtype(dtype);
  const tn_type_t* type = &x->types[0];
  if (!tn_arg_is_none(l, 2) && !tn_arg_bool(l, 2, true)) {
    tn_return(l, x);
    tn_return(l, tn_broadcast_to(g, tn_constant_int(g, TN_BOOL, 1), type->rank, type->dims));
    return TN_OK;
  }
  if (!(p >= 0.0 && p <= 1.0))
    return TN_DECLINE("dropout probability has to be between 0 and 1, but got %g", p);
  const tn_node_t* u = unit_uniform(l, type, TN_F32);
  const tn_node_t* keep = tn_compare(g, TN_GE, u, tn_constant_like(g, u, p));
  const tn_node_t* wide = tn_convert(g, x, opmath);
  const tn_node_t* scaled =
      tn_binary(g, TN_OP_MUL, wide, tn_constant_like(g, wide, p < 1.0 ? 1.0 / (1.0 - p) : 0.0));
  scaled = tn_binary(g, TN_OP_MUL, scaled, tn_convert(g, keep, opmath));
  tn_return(l, tn_convert(g, scaled, dtype));
  tn_return(l, keep);
  return TN_OK;
}

// grad, mask, scale
tn_status_t tn_lower_native_dropout_backward(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *grad = tn_arg_tensor(l, 0), *mask = tn_arg_tensor(l, 1);
  if (!grad || tn_dtype_of(mask) != TN_BOOL)
    return TN_DECLINE("%s: expected a boolean mask", l->op->name);
  // As CPU: grad * (mask * scale), with the product of mask and scale in grad's dtype or, for integers, in f32.
  const tn_dtype_t dtype = tn_to_float_dtype(tn_dtype_of(grad)), opmath = tn_opmath_dtype(dtype);
  const tn_type_t type = tn_broadcast_type(l, grad, mask);
  const tn_node_t* scale = tn_arg_scalar(l, 2, opmath);
  const tn_node_t* x = tn_broadcast_to(g, tn_convert(g, grad, opmath), type.rank, type.dims);
  mask = tn_broadcast_to(g, tn_convert(g, mask, opmath), type.rank, type.dims);
  scale = tn_broadcast_to(g, scale, type.rank, type.dims);
  tn_return(l,
            tn_convert(g, tn_binary(g, TN_OP_MUL, x, tn_binary(g, TN_OP_MUL, mask, scale)), dtype));
  return TN_OK;
}

// ---- creation (compiled graphs) -------------------------------------------------------------------------------

static tn_status_t create(tn_lowering_t* l, const tn_type_t* type, bool is_normal) {
  if (!tn_dtype_is_float(type->dtype))
    return TN_DECLINE("%s of %s", l->op->name, tn_dtype_name(type->dtype));
  const tn_node_t* x =
      is_normal ? unit_normal(l, type, type->dtype) : unit_uniform(l, type, type->dtype);
  tn_return(l, tn_convert(l->graph, x, type->dtype));
  return TN_OK;
}

// size, *, dtype
static tn_status_t create_sized(tn_lowering_t* l, bool is_normal) {
  const int64_t* sizes;
  const int rank = tn_arg_ints(l, 0, &sizes);
  if (rank < 0 || rank >= TN_MAX_RANK) return TN_DECLINE("%s: size", l->op->name);
  const tn_type_t type = tn_type_make(tn_arg_dtype(l, 1, TN_F32), rank, sizes);
  return create(l, &type, is_normal);
}
static tn_status_t create_like(tn_lowering_t* l, bool is_normal) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (!x) return TN_DECLINE("%s: missing tensor", l->op->name);
  tn_type_t type = x->types[0];
  type.dtype = tn_arg_dtype(l, 1, type.dtype);
  return create(l, &type, is_normal);
}
tn_status_t tn_lower_rand(tn_lowering_t* l) { return create_sized(l, false); }
tn_status_t tn_lower_randn(tn_lowering_t* l) { return create_sized(l, true); }
tn_status_t tn_lower_rand_like(tn_lowering_t* l) { return create_like(l, false); }
tn_status_t tn_lower_randn_like(tn_lowering_t* l) { return create_like(l, true); }
