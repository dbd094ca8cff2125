// Contiguous runs of small floats to and from f32, as src/ir/float_bits.h defines them.
#ifndef TN_KERNELS_ISA_SMALL_FLOAT_H_
#define TN_KERNELS_ISA_SMALL_FLOAT_H_

#include <stdint.h>

#include "ir/float_bits.h"
#include "tn/dtype.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

static inline void tn_load_bf16(const uint16_t* x, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = (uint32_t)x[i] << 16;
    memcpy(out + i, &bits, 4);
  }
}
static inline void tn_store_bf16(const float* x, uint16_t* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    memcpy(&bits, x + i, 4);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    out[i] = (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
  }
}
static inline void tn_load_f16(const uint16_t* x, float* out, int64_t count) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(const void*)(x + i))));
#endif
  for (; i < count; ++i) out[i] = tn_f16_to_f32(x[i]);
}
static inline void tn_store_f16(const float* x, uint16_t* out, int64_t count) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128((__m128i*)(void*)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < count; ++i) out[i] = tn_f32_to_f16(x[i]);
}

// |dtype| is F16, BF16, F8E4M3FN or F8E5M2.
static inline void tn_load_small(tn_dtype_t dtype, const void* x, float* out, int64_t count) {
  const uint8_t* bytes = x;
  switch (dtype) {
    case TN_BF16: tn_load_bf16(x, out, count); break;
    case TN_F16: tn_load_f16(x, out, count); break;
    case TN_F8E5M2:
      for (int64_t i = 0; i < count; ++i) out[i] = tn_f8e5m2_to_f32(bytes[i]);
      break;
    default:
      for (int64_t i = 0; i < count; ++i) out[i] = tn_f8e4m3fn_to_f32(bytes[i]);
      break;
  }
}
static inline void tn_store_small(tn_dtype_t dtype, const float* x, void* out, int64_t count) {
  uint8_t* bytes = out;
  switch (dtype) {
    case TN_BF16: tn_store_bf16(x, out, count); break;
    case TN_F16: tn_store_f16(x, out, count); break;
    case TN_F8E5M2:
      for (int64_t i = 0; i < count; ++i) bytes[i] = tn_f32_to_f8e5m2(x[i]);
      break;
    default:
      for (int64_t i = 0; i < count; ++i) bytes[i] = tn_f32_to_f8e4m3fn(x[i]);
      break;
  }
}

#endif  // TN_KERNELS_ISA_SMALL_FLOAT_H_
