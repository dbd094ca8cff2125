// Inside of tn_math_map_f32 (math_scalar.h).
#ifndef TN_BASE_MATH_MAP_H_
#define TN_BASE_MATH_MAP_H_

#include "base/math_recipes.h"

void tn_math_map_avx2(tn_math_fn_t fn, const float* x, const float* y, float* out, int64_t count);

#endif  // TN_BASE_MATH_MAP_H_
