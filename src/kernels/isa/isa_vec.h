// Vectors of the width of the instruction set, as GNU vectors; the few operations that C cannot say are intrinsics.
// Only for sources in kernels/isa. f32 vectors are vf (VF_LANES lanes), f64 vectors vd.
#ifndef TN_KERNELS_ISA_ISA_VEC_H_
#define TN_KERNELS_ISA_ISA_VEC_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ir/float_bits.h"
#include "kernels/isa/isa_names.h"

#if defined(TN_ISA_AVX2) || defined(TN_ISA_AVX512)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define TN_INLINE static inline __attribute__((always_inline, unused))

enum { VF_LANES = TN_VECTOR_BYTES / 4, VD_LANES = TN_VECTOR_BYTES / 8 };
typedef float vf __attribute__((vector_size(TN_VECTOR_BYTES)));
typedef double vd __attribute__((vector_size(TN_VECTOR_BYTES)));

// Unaligned loads and stores.
TN_INLINE vf vf_load(const float* p) {
  vf v;
  memcpy(&v, p, sizeof(v));
  return v;
}
TN_INLINE void vf_store(float* p, vf v) { memcpy(p, &v, sizeof(v)); }
TN_INLINE vd vd_load(const double* p) {
  vd v;
  memcpy(&v, p, sizeof(v));
  return v;
}
TN_INLINE void vd_store(double* p, vd v) { memcpy(p, &v, sizeof(v)); }
TN_INLINE vf vf_splat(float x) {
  return x - (vf){0};  // x - 0 keeps -0
}
TN_INLINE vd vd_splat(double x) { return x - (vd){0}; }

// a * b + c, rounded once.
TN_INLINE vf vf_fma(vf a, vf b, vf c) {
#if defined(TN_ISA_AVX512)
  return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(TN_ISA_AVX2)
  return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
  return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  for (int i = 0; i < VF_LANES; ++i) c[i] = fmaf(a[i], b[i], c[i]);
  return c;
#endif
}
TN_INLINE vd vd_fma(vd a, vd b, vd c) {
#if defined(TN_ISA_AVX512)
  return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(TN_ISA_AVX2)
  return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__)
  return (vd)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
  for (int i = 0; i < VD_LANES; ++i) c[i] = fma(a[i], b[i], c[i]);
  return c;
#endif
}

// ---- 16-bit floats, widened exactly -----------------------------------------------------------------------------
typedef uint32_t vf_bits __attribute__((vector_size(TN_VECTOR_BYTES)));
typedef uint16_t vf_half
    __attribute__((vector_size(TN_VECTOR_BYTES / 2)));  // as many as vf has lanes
TN_INLINE vf vf_load_bf16(const uint16_t* p) {
  vf_half half;
  memcpy(&half, p, sizeof(half));
  return (vf)(__builtin_convertvector(half, vf_bits) << 16);
}
TN_INLINE vf vf_load_f16(const uint16_t* p) {
#if defined(TN_ISA_AVX512)
  return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const void*)p));
#elif defined(TN_ISA_AVX2)
  return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const void*)p));
#else
  vf v;
  for (int i = 0; i < VF_LANES; ++i) v[i] = tn_f16_to_f32(p[i]);
  return v;
#endif
}

#endif  // TN_KERNELS_ISA_ISA_VEC_H_
