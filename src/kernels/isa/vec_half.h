// Vectors of f32 from and to bf16 and f16 in memory, as src/ir/float_bits.h defines them.
#ifndef TN_KERNELS_ISA_VEC_HALF_H_
#define TN_KERNELS_ISA_VEC_HALF_H_

#include "ir/float_bits.h"
#include "src/kernels/isa/isa_vec.h"
#include "src/kernels/isa/vec_math.h"

// Without instructions for it a conversion is long: out of line then.
#if defined(TN_ISA_AVX2) || defined(TN_ISA_AVX512)
#define TN_HALF TN_INLINE
#else
#define TN_HALF static __attribute__((noinline, unused))
#endif

typedef uint16_t vh
    __attribute__((vector_size(TN_VECTOR_BYTES / 2)));  // as many halves as vf has lanes

TN_HALF vf vh_load_bf16(const uint16_t* p) {
#if defined(TN_ISA_AVX512)
  return (vf)_mm512_slli_epi32(
      _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)(const void*)p)), 16);
#elif defined(TN_ISA_AVX2)
  return (vf)_mm256_slli_epi32(
      _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)(const void*)p)), 16);
#else
  vh half;
  memcpy(&half, p, sizeof half);
  return (vf)(__builtin_convertvector(half, vu) << 16);
#endif
}
TN_HALF void vh_store_bf16(uint16_t* p, vf v) {
  const vu bits = (vu)v;
  const vu rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const vu is_nan = (vu)(v != v);
  const vu result = (is_nan & 0x7fc0u) | (~is_nan & rounded);
#if defined(TN_ISA_AVX2)
  const __m256i packed = _mm256_packus_epi32((__m256i)result, (__m256i)result);
  _mm_storeu_si128((__m128i*)(void*)p,
                   _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
#else
  const vh half = __builtin_convertvector(result, vh);
  memcpy(p, &half, sizeof half);
#endif
}
TN_HALF vf vh_load_f16(const uint16_t* p) {
#if defined(TN_ISA_AVX512)
  return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)(const void*)p));
#elif defined(TN_ISA_AVX2)
  return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(const void*)p));
#else
  vf v = {0};
  for (int i = 0; i < VF_LANES; ++i) v[i] = tn_f16_to_f32(p[i]);
  return v;
#endif
}
TN_HALF void vh_store_f16(uint16_t* p, vf v) {
#if defined(TN_ISA_AVX512)
  _mm256_storeu_si256((__m256i*)(void*)p, _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
#elif defined(TN_ISA_AVX2)
  _mm_storeu_si128((__m128i*)(void*)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
#else
  for (int i = 0; i < VF_LANES; ++i) p[i] = tn_f32_to_f16(v[i]);
#endif
}

#endif  // TN_KERNELS_ISA_VEC_HALF_H_
