// Scalar and array forms of the recipes. Scalar code exists twice, with and without fused multiply-add instructions;
// both round alike, the second calls libm's exact fmaf.
#define _GNU_SOURCE
#include "base/math_scalar.h"

#include <math.h>

#include "base/math_map.h"
#include "base/math_scalar_ops.h"

#if defined(__x86_64__) && !defined(__FMA__)
#define HAVE_FMA_CLONE 1
#define FMA_CLONE      __attribute__((target("avx2,fma")))
#else
#define HAVE_FMA_CLONE 0
#endif

#define NAMES_1 float x
#define NAMES_2 float x, float y
#define USES_1  x
#define USES_2  x, y
#define LOADS_1 x[i]
#define LOADS_2 x[i], y[i]

#if HAVE_FMA_CLONE
#define DEFINE(name, NAME, arguments)                                                     \
  static float plain_##name(NAMES_##arguments) { return tn_ms_##name(USES_##arguments); } \
  FMA_CLONE static float fused_##name(NAMES_##arguments) {                                \
    return tn_ms_##name(USES_##arguments);                                                \
  }                                                                                       \
  float tn_math_##name##_f32(NAMES_##arguments) {                                         \
    return __builtin_cpu_supports("fma") ? fused_##name(USES_##arguments)                 \
                                         : plain_##name(USES_##arguments);                \
  }
#else
#define DEFINE(name, NAME, arguments)                                                     \
  static float plain_##name(NAMES_##arguments) { return tn_ms_##name(USES_##arguments); } \
  float tn_math_##name##_f32(NAMES_##arguments) { return plain_##name(USES_##arguments); }
#endif
TN_MATH_FUNCTIONS(DEFINE)

static void map_plain(tn_math_fn_t fn, const float* x, const float* y, float* out, int64_t count) {
  switch (fn) {
#define CASE(name, NAME, arguments)                                               \
  case TN_MATH_##NAME:                                                            \
    for (int64_t i = 0; i < count; ++i) out[i] = plain_##name(LOADS_##arguments); \
    break;
    TN_MATH_FUNCTIONS(CASE)
#undef CASE
    case TN_MATH_COUNT_OF_FUNCTIONS: break;
  }
}
void tn_math_map_f32(tn_math_fn_t fn, const float* x, const float* y, float* out, int64_t count) {
#if HAVE_FMA_CLONE
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    tn_math_map_avx2(fn, x, y, out, count);
    return;
  }
#endif
  map_plain(fn, x, y, out, count);
}

// Inverse error function: a rational start from the f32 recipe, then two Newton steps.
static double erfinv_f64(double x) {
  const double a = fabs(x);
  if (!(a < 1.0)) return a == 1.0 ? copysign(INFINITY, x) : NAN;
  const double two_over_root_pi = 1.1283791670955126;
  double y = a < 0x1.fffffep-1 ? (double)tn_ms_erfinv((float)a) : sqrt(-log((1.0 - a) * (1.0 + a)));
  for (int i = 0; i < (a < 0x1.fffffep-1 ? 2 : 6); ++i) {
    const double error = a > 0.5 ? (1.0 - a) - erfc(y) : erf(y) - a;
    y -= error / (two_over_root_pi * exp(-y * y));
  }
  return copysign(y, x);
}

double tn_math_apply_f64(tn_math_fn_t fn, double x, double y) {
  switch (fn) {
    case TN_MATH_EXP: return exp(x);
    case TN_MATH_EXP2: return exp2(x);
    case TN_MATH_EXPM1: return expm1(x);
    case TN_MATH_LOG: return log(x);
    case TN_MATH_LOG2: return log2(x);
    case TN_MATH_LOG1P: return log1p(x);
    case TN_MATH_TANH: return tanh(x);
    case TN_MATH_LOGISTIC: return 1.0 / (1.0 + exp(-x));
    case TN_MATH_ERF: return erf(x);
    case TN_MATH_ERFC: return erfc(x);
    case TN_MATH_ERFINV: return erfinv_f64(x);
    case TN_MATH_SIN:
    case TN_MATH_SIN_FAR: return sin(x);
    case TN_MATH_COS:
    case TN_MATH_COS_FAR: return cos(x);
    case TN_MATH_TAN:
    case TN_MATH_TAN_FAR: return tan(x);
    case TN_MATH_RSQRT: return 1.0 / sqrt(x);
    case TN_MATH_CBRT: return cbrt(x);
    case TN_MATH_ASIN: return asin(x);
    case TN_MATH_ACOS: return acos(x);
    case TN_MATH_ATAN: return atan(x);
    case TN_MATH_SINH: return sinh(x);
    case TN_MATH_COSH: return cosh(x);
    case TN_MATH_ASINH: return asinh(x);
    case TN_MATH_ACOSH: return acosh(x);
    case TN_MATH_ATANH: return atanh(x);
    case TN_MATH_POW: return pow(x, y);
    case TN_MATH_ATAN2: return atan2(x, y);
    case TN_MATH_COUNT_OF_FUNCTIONS: break;
  }
  return NAN;
}

double tn_math_lgamma_f64(double x) {
  int sign;
  return lgamma_r(x, &sign);
}
float tn_math_lgamma_f32(float x) { return (float)tn_math_lgamma_f64((double)x); }

// Reflection for negative arguments, recurrence up to 10, then the asymptotic series.
double tn_math_digamma_f64(double x) {
  if (x == 0.0) return copysign(INFINITY, -x);
  if (isinf(x)) return x > 0.0 ? x : NAN;
  double sum = 0.0;
  if (x < 0.0) {
    const double whole = trunc(x);
    if (x == whole) return NAN;
    sum = -M_PI / tan(M_PI * (x - whole));
    x = 1.0 - x;
  }
  for (; x < 10.0; x += 1.0) sum -= 1.0 / x;
  static const double series[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                  1.0 / 132, -691.0 / 32760, 1.0 / 12};  // B(2k) / 2k
  const double z = 1.0 / (x * x);
  double y = 0.0;
  for (int i = TN_MATH_COUNT(series) - 1; i >= 0; --i) y = (y + series[i]) * z;
  return sum + log(x) - 0.5 / x - y;
}
float tn_math_digamma_f32(float x) { return (float)tn_math_digamma_f64((double)x); }
