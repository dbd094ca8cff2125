// Bits of the small float formats, and float to integer conversion: the meaning of CONVERT, in inline form.
//
// All narrowing starts from f32 (f64 rounds to f32 first, as PyTorch does) and rounds to nearest even. bf16 and f16
// keep infinities; f8E5M2 overflows to infinity; f8E4M3FN has no infinity and overflows to NaN.
#ifndef TN_IR_FLOAT_BITS_H_
#define TN_IR_FLOAT_BITS_H_

#include <stdint.h>
#include <string.h>

static inline uint32_t tn_f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline float tn_f32_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float tn_bf16_to_f32(uint16_t bits) { return tn_f32_from_bits((uint32_t)bits << 16); }
static inline uint16_t tn_f32_to_bf16(float value) {
  uint32_t bits = tn_f32_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;  // PyTorch's one NaN
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline float tn_f16_to_f32(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) return tn_f32_from_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest >= 0x400u) return tn_f32_from_bits(sign | ((rest << 13) + (112u << 23)));
  // Subnormal: an integer multiple of 2^-24, exact in f32.
  float magnitude = (float)rest * 0x1p-24f;
  return tn_f32_from_bits(sign | tn_f32_bits(magnitude));
}

// Rounds |value| to a format with |exponent_bits| and |mantissa_bits|, IEEE-like with subnormals; the result has the
// magnitude in its low bits without the sign. The caller deals with overflow and NaN.
static inline uint32_t tn_f32_round_small(uint32_t magnitude, int exponent_bits,
                                          int mantissa_bits) {
  const int shift = 23 - mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int32_t exponent = (int32_t)(magnitude >> 23) - 127 + bias;
  if (exponent >= 1) {
    uint32_t rebased = magnitude - ((uint32_t)(127 - bias) << 23);
    return (rebased + (1u << (shift - 1)) - 1u + ((rebased >> shift) & 1u)) >> shift;
  }
  // Subnormal result: shift the full significand right; beyond 24 + shift everything is below half an ulp.
  int extra = 1 - exponent;
  if (extra + shift > 31) return 0;
  uint32_t significand = (magnitude & 0x7fffffu) | (magnitude >> 23 ? 0x800000u : 0u);
  int total = shift + extra;
  uint32_t result = significand >> total, rest = significand & ((1u << total) - 1u),
           half = 1u << (total - 1);
  return result + (rest > half || (rest == half && (result & 1u)));
}

static inline uint16_t tn_f32_to_f16(float value) {
  uint32_t bits = tn_f32_bits(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
  if (magnitude >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);  // >= 65536
  return (uint16_t)(sign | tn_f32_round_small(magnitude, 5, 10));   // may round up to infinity
}

static inline float tn_f8e5m2_to_f32(uint8_t bits) { return tn_f16_to_f32((uint16_t)(bits << 8)); }
static inline uint8_t tn_f32_to_f8e5m2(float value) {
  uint32_t bits = tn_f32_bits(value), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint8_t)(sign | 0x7fu);
  if (magnitude >= 0x47800000u) return (uint8_t)(sign | 0x7cu);
  return (uint8_t)(sign | tn_f32_round_small(magnitude, 5, 2));
}

static inline float tn_f8e4m3fn_to_f32(uint8_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x80u) << 24, rest = bits & 0x7fu;
  if (rest == 0x7fu) return tn_f32_from_bits(sign | 0x7fc00000u);
  if (rest >= 8u) return tn_f32_from_bits(sign | ((rest << 20) + (120u << 23)));
  float magnitude = (float)rest * 0x1p-9f;
  return tn_f32_from_bits(sign | tn_f32_bits(magnitude));
}
static inline uint8_t tn_f32_to_f8e4m3fn(float value) {
  uint32_t bits = tn_f32_bits(value), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x43f00000u) return (uint8_t)(sign | 0x7fu);  // >= 480, infinity, NaN
  uint32_t rounded = tn_f32_round_small(magnitude, 4, 3);
  return (uint8_t)(sign | (rounded > 0x7eu ? 0x7fu : rounded));
}

// Truncates; NaN and everything outside int64 give INT64_MIN, as cvttsd2si does.
static inline int64_t tn_f64_to_i64(double value) {
  return value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : INT64_MIN;
}
// 2^63..2^64 convert exactly, the rest as tn_f64_to_i64.
static inline uint64_t tn_f64_to_u64(double value) {
  return value >= 0x1p63 && value < 0x1p64 ? (uint64_t)(int64_t)(value - 0x1p63) ^ (1ull << 63)
                                           : (uint64_t)tn_f64_to_i64(value);
}

#endif  // TN_IR_FLOAT_BITS_H_
