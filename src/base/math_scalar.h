// The recipes of math_recipes.h for one f32 and for arrays, and their f64 versions (libm).
#ifndef TN_BASE_MATH_SCALAR_H_
#define TN_BASE_MATH_SCALAR_H_

#include "base/math_recipes.h"

// float tn_math_exp_f32(float) ... float tn_math_atan2_f32(float y, float x)
#define TN_MATH_PARAMS_1(type) type
#define TN_MATH_PARAMS_2(type) type, type
#define TN_MATH_DECLARE(name, NAME, arguments) \
  float tn_math_##name##_f32(TN_MATH_PARAMS_##arguments(float));
TN_MATH_FUNCTIONS(TN_MATH_DECLARE)
#undef TN_MATH_DECLARE

// out[i] = fn(x[i]) or fn(x[i], y[i]); |y| is ignored by functions of one argument; |out| may be |x| or |y|.
void tn_math_map_f32(tn_math_fn_t fn, const float* x, const float* y, float* out, int64_t count);

// f64: libm, so good to an ulp but not reproducible across machines.
double tn_math_apply_f64(tn_math_fn_t fn, double x, double y);

// No recipes: libm in f64, rounded to f32.
float tn_math_lgamma_f32(float x);
float tn_math_digamma_f32(float x);
double tn_math_lgamma_f64(double x);
double tn_math_digamma_f64(double x);

#endif  // TN_BASE_MATH_SCALAR_H_
