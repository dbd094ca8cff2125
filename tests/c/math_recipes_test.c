// The recipes against long double libm (ulp bounds), against their own step tables and against 4-lane vectors.
#define _GNU_SOURCE
#include "tests/c/test.h"

#include <stdlib.h>

#include "base/math_recipes.h"
#include "base/math_scalar.h"
#include "base/math_vector.h"
#include "tests/c/math_cases.h"

enum { SWEEP = 100000 };

static long double erfinv_reference(long double x) {
  return (long double)tn_math_apply_f64(TN_MATH_ERFINV, (double)x, 0.0);
}
static long double reference(tn_math_fn_t fn, long double x, long double y) {
  switch (fn) {
    case TN_MATH_EXP: return expl(x);
    case TN_MATH_EXP2: return exp2l(x);
    case TN_MATH_EXPM1: return expm1l(x);
    case TN_MATH_LOG: return logl(x);
    case TN_MATH_LOG2: return log2l(x);
    case TN_MATH_LOG1P: return log1pl(x);
    case TN_MATH_TANH: return tanhl(x);
    case TN_MATH_LOGISTIC: return 1.0L / (1.0L + expl(-x));
    case TN_MATH_ERF: return erfl(x);
    case TN_MATH_ERFC: return erfcl(x);
    case TN_MATH_ERFINV: return erfinv_reference(x);
    case TN_MATH_SIN:
    case TN_MATH_SIN_FAR: return sinl(x);
    case TN_MATH_COS:
    case TN_MATH_COS_FAR: return cosl(x);
    case TN_MATH_TAN:
    case TN_MATH_TAN_FAR: return tanl(x);
    case TN_MATH_RSQRT: return 1.0L / sqrtl(x);
    case TN_MATH_CBRT: return cbrtl(x);
    case TN_MATH_ASIN: return asinl(x);
    case TN_MATH_ACOS: return acosl(x);
    case TN_MATH_ATAN: return atanl(x);
    case TN_MATH_SINH: return sinhl(x);
    case TN_MATH_COSH: return coshl(x);
    case TN_MATH_ASINH: return asinhl(x);
    case TN_MATH_ACOSH: return acoshl(x);
    case TN_MATH_ATANH: return atanhl(x);
    case TN_MATH_POW: return powl(x, y);
    case TN_MATH_ATAN2: return atan2l(x, y);
    case TN_MATH_COUNT_OF_FUNCTIONS: break;
  }
  return NAN;
}

// Distance in units of the last place of the correctly rounded result; 0 where both are NaN or equally infinite.
static double ulp_error(float got, long double want) {
  const float rounded = (float)want;
  if (isnan(rounded) || isnan(got)) return isnan(rounded) && isnan(got) ? 0.0 : INFINITY;
  if (rounded == got) return signbit(rounded) == signbit(got) ? 0.0 : INFINITY;
  if (isinf(rounded) && isinf(got)) return INFINITY;
  const long double limit = 0x1p128L;
  const long double g = isinf(got) ? copysignl(limit, got) : (long double)got;
  const long double w = fabsl(want) > limit ? copysignl(limit, want) : want;
  int exponent;
  frexpl(w, &exponent);
  if (exponent < -125) exponent = -125;
  return (double)(fabsl(g - w) / ldexpl(1.0L, exponent - 24));
}

static const struct {
  tn_math_fn_t fn;
  double bound;
} bounds[] = {
    {TN_MATH_EXP, 1.0},    {TN_MATH_EXP2, 1.0},  {TN_MATH_EXPM1, 1.6},   {TN_MATH_LOG, 1.0},
    {TN_MATH_LOG2, 1.3},   {TN_MATH_LOG1P, 1.5}, {TN_MATH_TANH, 1.7},    {TN_MATH_LOGISTIC, 2.1},
    {TN_MATH_ERF, 1.3},    {TN_MATH_ERFC, 0.8},  {TN_MATH_ERFINV, 0.7},  {TN_MATH_SIN, 1.6},
    {TN_MATH_COS, 1.6},    {TN_MATH_TAN, 0.6},   {TN_MATH_RSQRT, 1.5},   {TN_MATH_CBRT, 0.6},
    {TN_MATH_ASIN, 2.0},   {TN_MATH_ACOS, 1.5},  {TN_MATH_ATAN, 1.5},    {TN_MATH_SINH, 2.0},
    {TN_MATH_COSH, 1.6},   {TN_MATH_ASINH, 0.7}, {TN_MATH_ACOSH, 0.6},   {TN_MATH_ATANH, 0.7},
    {TN_MATH_POW, 0.7},    {TN_MATH_ATAN2, 2.0}, {TN_MATH_SIN_FAR, 1.6}, {TN_MATH_COS_FAR, 1.6},
    {TN_MATH_TAN_FAR, 0.6}};

// logistic(x) is 0 where e^-x overflows, as in PyTorch.
// The far recipes are for large arguments; they lose the sign of zero.
static bool is_excused(tn_math_fn_t fn, float x) {
  return (fn == TN_MATH_LOGISTIC && x < -87.0f) || (fn >= TN_MATH_SIN_FAR && x == 0.0f);
}

TN_TEST(errors_are_within_their_bounds) {
  float* x = malloc(3 * SWEEP * sizeof *x);
  float *y = x + SWEEP, *out = y + SWEEP;
  for (int64_t i = 0; i < SWEEP; ++i) {
    x[i] = math_input(i, SWEEP);
    y[i] =
        math_input(i < MATH_SPECIALS * MATH_SPECIALS ? i / MATH_SPECIALS : i * 7919 % SWEEP, SWEEP);
    if (i < MATH_SPECIALS * MATH_SPECIALS) x[i] = math_specials[i % MATH_SPECIALS];
  }
  for (size_t k = 0; k < sizeof bounds / sizeof bounds[0]; ++k) {
    const tn_math_fn_t fn = bounds[k].fn;
    double worst = 0.0;
    int64_t where = 0;
    tn_math_map_f32(fn, x, y, out, SWEEP);
    for (int64_t i = 0; i < SWEEP; ++i) {
      if (is_excused(fn, x[i])) continue;
      const double error = ulp_error(out[i], reference(fn, (long double)x[i], (long double)y[i]));
      if (error > worst) worst = error, where = i;
    }
    if (getenv("TN_TEST_VERBOSE") || !(worst <= bounds[k].bound)) {
      fprintf(stderr, "%-10s %.3f ulp at %a %a: %a, want %La\n", tn_math_name(fn), worst,
              (double)x[where], (double)y[where], (double)out[where],
              reference(fn, (long double)x[where], (long double)y[where]));
    }
    TN_EXPECT(worst <= bounds[k].bound);
  }
  free(x);
}

// A walk over the step table, written apart from the recipes' own scalar operations.
typedef union value {
  float f;
  int32_t i;
  double d;
} value_t;
static float run_steps(const tn_math_step_t* steps, int count, float x, float y) {
  value_t v[TN_MATH_MAX_STEPS];
  for (int k = 0; k < count; ++k) {
    const tn_math_step_t* s = &steps[k];
    const value_t a = s->a >= 0 ? v[s->a] : (value_t){0}, b = s->b >= 0 ? v[s->b] : (value_t){0},
                  c = s->c >= 0 ? v[s->c] : (value_t){0};
    value_t* o = &v[k];
    switch ((tn_math_op_t)s->op) {
      case TN_MATH_OP_F_ARG: o->f = s->imm.i ? y : x; break;
      case TN_MATH_OP_F_CONST: o->f = s->imm.f; break;
      case TN_MATH_OP_I_CONST: o->i = s->imm.i; break;
      case TN_MATH_OP_D_CONST: o->d = s->imm.d; break;
      case TN_MATH_OP_F_ADD: o->f = a.f + b.f; break;
      case TN_MATH_OP_F_SUB: o->f = a.f - b.f; break;
      case TN_MATH_OP_F_MUL: o->f = a.f * b.f; break;
      case TN_MATH_OP_F_DIV: o->f = a.f / b.f; break;
      case TN_MATH_OP_F_FMA: o->f = fmaf(a.f, b.f, c.f); break;
      case TN_MATH_OP_F_SQRT: o->f = sqrtf(a.f); break;
      case TN_MATH_OP_F_NEG: o->f = -a.f; break;
      case TN_MATH_OP_F_ABS: o->f = fabsf(a.f); break;
      case TN_MATH_OP_F_MIN: o->f = a.f < b.f ? a.f : b.f; break;
      case TN_MATH_OP_F_MAX: o->f = a.f > b.f ? a.f : b.f; break;
      case TN_MATH_OP_I_LT: o->i = a.f < b.f ? -1 : 0; break;
      case TN_MATH_OP_I_LE: o->i = a.f <= b.f ? -1 : 0; break;
      case TN_MATH_OP_I_EQ: o->i = a.f == b.f ? -1 : 0; break;
      case TN_MATH_OP_F_SEL: o->f = a.i ? b.f : c.f; break;
      case TN_MATH_OP_I_BITS: o->i = (int32_t)math_bits(a.f); break;
      case TN_MATH_OP_F_BITS: o->f = math_float((uint32_t)a.i); break;
      case TN_MATH_OP_I_FROM_F: o->i = (int32_t)a.f; break;
      case TN_MATH_OP_F_FROM_I: o->f = (float)a.i; break;
      case TN_MATH_OP_I_ADD: o->i = (int32_t)((uint32_t)a.i + (uint32_t)b.i); break;
      case TN_MATH_OP_I_SUB: o->i = (int32_t)((uint32_t)a.i - (uint32_t)b.i); break;
      case TN_MATH_OP_I_AND: o->i = a.i & b.i; break;
      case TN_MATH_OP_I_OR: o->i = a.i | b.i; break;
      case TN_MATH_OP_I_XOR: o->i = a.i ^ b.i; break;
      case TN_MATH_OP_I_SHL: o->i = (int32_t)((uint32_t)a.i << s->imm.i); break;
      case TN_MATH_OP_I_SHR: o->i = a.i >> s->imm.i; break;
      case TN_MATH_OP_I_SRL: o->i = (int32_t)((uint32_t)a.i >> s->imm.i); break;
      case TN_MATH_OP_I_IEQ: o->i = a.i == b.i ? -1 : 0; break;
      case TN_MATH_OP_I_ILT: o->i = a.i < b.i ? -1 : 0; break;
      case TN_MATH_OP_D_FROM_F: o->d = (double)a.f; break;
      case TN_MATH_OP_F_FROM_D: o->f = (float)a.d; break;
      case TN_MATH_OP_D_ADD: o->d = a.d + b.d; break;
      case TN_MATH_OP_D_SUB: o->d = a.d - b.d; break;
      case TN_MATH_OP_D_MUL: o->d = a.d * b.d; break;
      case TN_MATH_OP_D_DIV: o->d = a.d / b.d; break;
      case TN_MATH_OP_D_FMA: o->d = fma(a.d, b.d, c.d); break;
      case TN_MATH_OP_D_SQRT: o->d = sqrt(a.d); break;
      case TN_MATH_OP_D_SEL: o->d = a.i ? b.d : c.d; break;
      case TN_MATH_OP_F_RARE: {
        tn_math_step_t rare[TN_MATH_MAX_STEPS];
        const int rare_count = a.i ? tn_math_recipe((tn_math_fn_t)s->imm.i, rare) : 0;
        o->f = a.i ? run_steps(rare, rare_count, c.f, 0.0f) : b.f;
        break;
      }
      case TN_MATH_OP_COUNT: break;
    }
  }
  return v[count - 1].f;
}

static tn_vf_t run_vector(tn_math_fn_t fn, tn_vf_t x, tn_vf_t y) {
#define CALL_1(name) tn_v_##name(x)
#define CALL_2(name) tn_v_##name(x, y)
  switch (fn) {
#define CASE(name, NAME, arguments) \
  case TN_MATH_##NAME: return CALL_##arguments(name);
    TN_MATH_FUNCTIONS(CASE)
#undef CASE
    case TN_MATH_COUNT_OF_FUNCTIONS: break;
  }
  return x;
}

TN_TEST(scalar_steps_and_vectors_agree_bitwise) {
  enum { COUNT = 16000 };
  static float x[COUNT], y[COUNT], want[COUNT], got[TN_V_LANES];
  for (int64_t i = 0; i < COUNT; ++i) {
    x[i] = math_input(i, COUNT);
    y[i] = math_input(i * 13 % COUNT, COUNT);
  }
  for (int k = 0; k < TN_MATH_COUNT_OF_FUNCTIONS; ++k) {
    const tn_math_fn_t fn = (tn_math_fn_t)k;
    tn_math_step_t steps[TN_MATH_MAX_STEPS];
    const int count = tn_math_recipe(fn, steps);
    if (getenv("TN_TEST_VERBOSE")) fprintf(stderr, "%-10s %d steps\n", tn_math_name(fn), count);
    tn_math_map_f32(fn, x, y, want, COUNT);
    int64_t differing = 0;
    for (int64_t i = 0; i < COUNT; i += TN_V_LANES) {
      tn_v_store(got, run_vector(fn, tn_v_load(x + i), tn_v_load(y + i)));
      for (int64_t l = 0; l < TN_V_LANES; ++l) {
        if (!math_same(got[l], want[i + l])) {
          if (differing++ == 0)
            fprintf(stderr, "%s: vector differs at %a\n", tn_math_name(fn), (double)x[i + l]);
        }
        if ((i / TN_V_LANES) % 4 == 0 &&
            !math_same(run_steps(steps, count, x[i + l], y[i + l]), want[i + l])) {
          if (differing++ == 0)
            fprintf(stderr, "%s: steps differ at %a\n", tn_math_name(fn), (double)x[i + l]);
        }
      }
    }
    TN_EXPECT_EQ(0, differing);
  }
}

TN_TEST(steps_name_only_earlier_values) {
  for (int k = 0; k < TN_MATH_COUNT_OF_FUNCTIONS; ++k) {
    tn_math_step_t steps[TN_MATH_MAX_STEPS];
    const int count = tn_math_recipe((tn_math_fn_t)k, steps);
    TN_EXPECT(count > 1 && count <= TN_MATH_MAX_STEPS);
    TN_EXPECT_EQ('F', steps[count - 1].type);
    for (int i = 0; i < count; ++i) TN_EXPECT(steps[i].a < i && steps[i].b < i && steps[i].c < i);
  }
}

TN_TEST(special_values_are_those_of_pytorch) {
  TN_EXPECT(tn_math_logistic_f32(-100.0f) == 0.0f && tn_math_logistic_f32(100.0f) == 1.0f);
  TN_EXPECT(tn_math_exp_f32(-INFINITY) == 0.0f && isinf(tn_math_exp_f32(89.0f)));
  TN_EXPECT(tn_math_log_f32(0.0f) == -INFINITY && isnan(tn_math_log_f32(-1.0f)));
  TN_EXPECT(tn_math_rsqrt_f32(0.0f) == INFINITY && tn_math_rsqrt_f32(INFINITY) == 0.0f);
  TN_EXPECT(tn_math_erfinv_f32(1.0f) == INFINITY && isnan(tn_math_erfinv_f32(1.5f)));
  TN_EXPECT(isnan(tn_math_sin_f32(INFINITY)) && isnan(tn_math_cos_f32(-INFINITY)));
  TN_EXPECT(fabs(tn_math_digamma_f64(1.0) + 0.57721566490153286) < 1e-15);
  TN_EXPECT(fabs(tn_math_digamma_f64(-0.5) - 0.03648997397857652) < 1e-14);
  TN_EXPECT(tn_math_digamma_f32(0.0f) == -INFINITY && isnan(tn_math_digamma_f32(-2.0f)));
  TN_EXPECT(fabs(tn_math_apply_f64(TN_MATH_ERFINV, 0.5, 0.0) - 0.47693627620446987) < 1e-16);
}
