// The recipes on AVX2 vectors and over arrays against scalar code, bit for bit. On other machines this tests 4-lane
// vectors.
#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#endif
#include "tests/c/test.h"

#include "base/math_scalar.h"
#include "base/math_vector.h"
#include "tests/c/math_cases.h"

enum { COUNT = 160000 };
static float x[COUNT], y[COUNT], want[COUNT], got[COUNT];

#define ONE_1 x[i]
#define ONE_2 x[i], y[i]
static void run_scalar(tn_math_fn_t fn) {
  switch (fn) {
#define CASE(name, NAME, arguments)                                                      \
  case TN_MATH_##NAME:                                                                   \
    for (int64_t i = 0; i < COUNT; ++i) want[i] = tn_math_##name##_f32(ONE_##arguments); \
    break;
    TN_MATH_FUNCTIONS(CASE)
#undef CASE
    case TN_MATH_COUNT_OF_FUNCTIONS: break;
  }
}

#define LOADS_1 tn_v_load(x + i)
#define LOADS_2 tn_v_load(x + i), tn_v_load(y + i)
static void run(tn_math_fn_t fn) {
  switch (fn) {
#define CASE(name, NAME, arguments)                        \
  case TN_MATH_##NAME:                                     \
    for (int64_t i = 0; i < COUNT; i += TN_V_LANES)        \
      tn_v_store(got + i, tn_v_##name(LOADS_##arguments)); \
    break;
    TN_MATH_FUNCTIONS(CASE)
#undef CASE
    case TN_MATH_COUNT_OF_FUNCTIONS: break;
  }
}

TN_TEST(vector_and_scalar_agree_bitwise) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return;
#endif
  for (int64_t i = 0; i < COUNT; ++i) {
    x[i] = math_input(i, COUNT);
    y[i] =
        math_input(i < MATH_SPECIALS * MATH_SPECIALS ? i / MATH_SPECIALS : i * 7919 % COUNT, COUNT);
    if (i < MATH_SPECIALS * MATH_SPECIALS) x[i] = math_specials[i % MATH_SPECIALS];
  }
  for (int k = 0; k < TN_MATH_COUNT_OF_FUNCTIONS; ++k) {
    run_scalar((tn_math_fn_t)k);
    run((tn_math_fn_t)k);
    int64_t differing = 0;
    for (int64_t i = 0; i < COUNT; ++i) {
      if (!math_same(want[i], got[i]) && differing++ == 0) {
        fprintf(stderr, "%s(%a, %a): scalar %a, vector %a\n", tn_math_name((tn_math_fn_t)k),
                (double)x[i], (double)y[i], (double)want[i], (double)got[i]);
      }
    }
    // arrays of any length, in place too
    tn_math_map_f32((tn_math_fn_t)k, x, y, got, COUNT);
    for (int64_t i = 0; i < COUNT; ++i) differing += !math_same(want[i], got[i]);
    for (int64_t count = 0; count < 40; ++count) {
      memcpy(got, x, sizeof(float) * 64);
      tn_math_map_f32((tn_math_fn_t)k, got, y, got, count);
      for (int64_t i = 0; i < 64; ++i) differing += !math_same(i < count ? want[i] : x[i], got[i]);
    }
    TN_EXPECT_EQ(0, differing);
  }
}
