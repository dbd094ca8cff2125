// Contiguous runs of small floats to and from f32, as src/ir/float_bits.h defines them.
#ifndef TN_KERNELS_ISA_SMALL_FLOAT_H_
#define TN_KERNELS_ISA_SMALL_FLOAT_H_

#include <stdbool.h>
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
static __attribute__((noinline, unused)) void tn_load_f16_plain(const uint16_t* x, float* out,
                                                                int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = tn_f16_to_f32(x[i]);
}
static __attribute__((noinline, unused, optimize("no-tree-vectorize"))) void tn_store_f16_plain(
    const float* x, uint16_t* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = tn_f32_to_f16(x[i]);
}
static inline void tn_load_f16(const uint16_t* x, float* out, int64_t count) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(out + i,
                     _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(const void*)(x + i))));
#endif
  tn_load_f16_plain(x + i, out + i, count - i);
}
static inline void tn_store_f16(const float* x, uint16_t* out, int64_t count) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128((__m128i*)(void*)(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  tn_store_f16_plain(x + i, out + i, count - i);
}

// The 8-bit formats are rare: one element after the other, out of line.
#define TN_RARE \
  static __attribute__((noinline, unused, optimize("no-tree-vectorize", "no-unroll-loops")))
TN_RARE void tn_load_f8(bool is_e5m2, const uint8_t* x, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = is_e5m2 ? tn_f8e5m2_to_f32(x[i]) : tn_f8e4m3fn_to_f32(x[i]);
}
TN_RARE void tn_store_f8(bool is_e5m2, const float* x, uint8_t* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = is_e5m2 ? tn_f32_to_f8e5m2(x[i]) : tn_f32_to_f8e4m3fn(x[i]);
}

// |dtype| is F16, BF16, F8E4M3FN or F8E5M2.
static __attribute__((unused)) void tn_load_small(tn_dtype_t dtype, const void* x, float* out,
                                                  int64_t count) {
  switch (dtype) {
    case TN_BF16: tn_load_bf16(x, out, count); break;
    case TN_F16: tn_load_f16(x, out, count); break;
    default: tn_load_f8(dtype == TN_F8E5M2, x, out, count); break;
  }
}
static __attribute__((unused)) void tn_store_small(tn_dtype_t dtype, const float* x, void* out,
                                                   int64_t count) {
  switch (dtype) {
    case TN_BF16: tn_store_bf16(x, out, count); break;
    case TN_F16: tn_store_f16(x, out, count); break;
    default: tn_store_f8(dtype == TN_F8E5M2, x, out, count); break;
  }
}

#endif  // TN_KERNELS_ISA_SMALL_FLOAT_H_
