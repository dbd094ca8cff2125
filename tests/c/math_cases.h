// Inputs shared by the tests of the math recipes: a sweep over all exponents and signs, and special values.
#ifndef TESTS_C_MATH_CASES_H_
#define TESTS_C_MATH_CASES_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float math_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline uint32_t math_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline bool math_same(float x, float y) {
  return math_bits(x) == math_bits(y) || (x != x && y != y);
}

static const float math_specials[] = {0.0f,
                                      -0.0f,
                                      1.0f,
                                      -1.0f,
                                      0.5f,
                                      -0.5f,
                                      2.0f,
                                      -2.0f,
                                      3.0f,
                                      -3.0f,
                                      4.0f,
                                      -7.0f,
                                      1e-3f,
                                      -1e-3f,
                                      0x1p-126f,
                                      -0x1p-126f,
                                      0x1p-149f,
                                      -0x1p-149f,
                                      0x1.fffffep127f,
                                      -0x1.fffffep127f,
                                      0x1.fffffep-127f,
                                      INFINITY,
                                      -INFINITY,
                                      NAN,
                                      0x1.fffffep-1f,
                                      0x1.000002p0f,
                                      -0x1.fffffep-1f,
                                      88.72283f,
                                      88.72284f,
                                      -87.33655f,
                                      -103.97f,
                                      -104.0f,
                                      128.0f,
                                      -149.0f,
                                      -150.0f,
                                      0x1.6a09e6p-1f,
                                      0x1.6a09e8p-1f,
                                      0x1.6a09e6p0f,
                                      0x1.921fb6p0f,
                                      0x1.921fb6p1f,
                                      65536.0f,
                                      65536.004f,
                                      1e10f,
                                      -1e20f,
                                      1e38f,
                                      0x1p24f,
                                      0x1.000002p24f,
                                      9.0f,
                                      10.0f,
                                      89.4f,
                                      89.42f};
enum { MATH_SPECIALS = sizeof math_specials / sizeof math_specials[0] };

// Input |i| of |count|: all floats in steps, with changing low bits; every 16th one small in magnitude of exponent.
static inline float math_input(int64_t i, int64_t count) {
  if (i < MATH_SPECIALS) return math_specials[i];
  const uint64_t mixed = (uint64_t)i * UINT64_C(0x9E3779B97F4A7C15);
  if (i % 2) {  // where most of the work is: 2^-12 .. 2^8
    const uint32_t exponent = 115 + (uint32_t)(mixed >> 60) * 20 / 15;
    return math_float((uint32_t)(mixed >> 8 & 0x807fffff) | exponent << 23);
  }
  const uint64_t step = (UINT64_C(1) << 32) / (uint64_t)count;
  return math_float((uint32_t)((uint64_t)i * step + mixed % (step + 1)));
}

#endif  // TESTS_C_MATH_CASES_H_
