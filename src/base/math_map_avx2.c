// tn_math_map_f32 on AVX2 vectors, chosen at run time; the same source on other machines is empty.
#if defined(__x86_64__)
#if !defined(__AVX512F__)
#pragma GCC target("avx2,fma")
#endif
#include "base/math_map.h"
#include "base/math_vector.h"

#define LOADS_1 tn_v_load_n(x + i, n)
#define LOADS_2 tn_v_load_n(x + i, n), tn_v_load_n(y + i, n)
// Whole vectors, then the rest in a padded one.
#define LOOP(name, loads)                              \
  {                                                    \
    int64_t i = 0;                                     \
    for (; i + TN_V_LANES <= count; i += TN_V_LANES) { \
      const int64_t n = TN_V_LANES;                    \
      tn_v_store(out + i, tn_v_##name(loads));         \
    }                                                  \
    if (i < count) {                                   \
      const int64_t n = count - i;                     \
      tn_v_store_n(out + i, tn_v_##name(loads), n);    \
    }                                                  \
    break;                                             \
  }

void tn_math_map_avx2(tn_math_fn_t fn, const float* x, const float* y, float* out, int64_t count) {
  switch (fn) {
#define CASE(name, NAME, arguments) \
  case TN_MATH_##NAME: LOOP(name, LOADS_##arguments)
    TN_MATH_FUNCTIONS(CASE)
#undef CASE
    case TN_MATH_COUNT_OF_FUNCTIONS: break;
  }
}
#else
typedef int tn_math_map_avx2_is_empty_t;
#endif
