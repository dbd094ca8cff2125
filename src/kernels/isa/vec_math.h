// exp and log of f32 vectors: the recipes of src/base/math_recipes.inc, bit for bit.
#ifndef TN_KERNELS_ISA_VEC_MATH_H_
#define TN_KERNELS_ISA_VEC_MATH_H_

#include "base/math_recipes.h"
#include "src/kernels/isa/isa_vec.h"

typedef int32_t vi __attribute__((vector_size(TN_VECTOR_BYTES)));
typedef uint32_t vu __attribute__((vector_size(TN_VECTOR_BYTES)));

TN_INLINE vf vf_pick(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }

// a < b ? a : b and a > b ? a : b: the second when one is NaN.
TN_INLINE vf vf_least(vf a, vf b) {
#if defined(TN_ISA_AVX512)
  return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(TN_ISA_AVX2)
  return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#else
  return vf_pick(a < b, a, b);
#endif
}
TN_INLINE vf vf_most(vf a, vf b) {
#if defined(TN_ISA_AVX512)
  return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(TN_ISA_AVX2)
  return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return vf_pick(a > b, a, b);
#endif
}

// All lanes to one by halving: lane l with lane l + half.
#if defined(TN_ISA_AVX2)
#define TN_HALVE(name, op)                                                                 \
  TN_INLINE float name(vf x) {                                                             \
    __m128 v = op(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1)); \
    v = op(v, _mm_movehl_ps(v, v));                                                        \
    return _mm_cvtss_f32(op(v, _mm_movehdup_ps(v)));                                       \
  }
TN_HALVE(vf_sum_lanes, _mm_add_ps)
TN_HALVE(vf_max_lanes, _mm_max_ps)
#undef TN_HALVE
#else
TN_INLINE float vf_sum_lanes(vf x) {
  float lane[VF_LANES];
  memcpy(lane, &x, sizeof lane);
  for (int half = VF_LANES / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) lane[k] += lane[k + half];
  return lane[0];
}
TN_INLINE float vf_max_lanes(vf x) {
  float lane[VF_LANES];
  memcpy(lane, &x, sizeof lane);
  for (int half = VF_LANES / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) lane[k] = lane[k] > lane[k + half] ? lane[k] : lane[k + half];
  return lane[0];
}
#endif

TN_INLINE vf vf_poly(vf x, const float* c, int n) {
  vf y = vf_splat(c[n - 1]);
  _Pragma("GCC unroll 16") for (int i = n - 2; i >= 0; --i) y = vf_fma(y, x, vf_splat(c[i]));
  return y;
}

TN_INLINE vf vf_exp(vf x) {
  const vf low = vf_splat(-104.0f), high = vf_splat(89.0f), magic = vf_splat(0x1.8p23f + 254.0f);
  x = vf_most(low, vf_least(high, x));
  vf t = vf_fma(x, vf_splat(0x1.715476p+0f), magic);
  vf n = t - magic;
  vf r = vf_fma(n, vf_splat(-0x1.62e4p-1f), x);
  r = vf_fma(n, vf_splat(-0x1.7f7d1cp-20f), r);
  vf p = vf_fma(r * r, vf_poly(r, tn_math_exp_q, TN_MATH_COUNT(tn_math_exp_q)), r) + 1.0f;
  vu bits = (vu)t, half = bits >> 1;
  return p * (vf)(half << 23) * (vf)((bits - half) << 23);
}

// exp for x <= 0 (or NaN) where the last bit and subnormal results do not matter: 0 below -87.
TN_INLINE vf vf_exp_negative(vf x) {
  const vf low = vf_splat(-87.0f), magic = vf_splat(0x1.8p23f + 127.0f);
  const vi gone = x < low;
  x = vf_most(low, x);
  vf t = vf_fma(x, vf_splat(0x1.715476p+0f), magic);
  vf n = t - magic;
  vf r = vf_fma(n, vf_splat(-0x1.62e4p-1f), x);
  r = vf_fma(n, vf_splat(-0x1.7f7d1cp-20f), r);
  vf p = vf_fma(r * r, vf_poly(r, tn_math_exp_q, TN_MATH_COUNT(tn_math_exp_q)), r) + 1.0f;
  return (vf)((vi)(p * (vf)((vu)t << 23)) & ~gone);
}

TN_INLINE vf vf_log(vf x) {
  vi small = x < 0x1p-126f;
  vf scaled = vf_pick(small, x * 0x1p24f, x);
  vi bits = (vi)((vu)scaled - 0x3f3504f3u), e = bits >> 23;
  vf ef = __builtin_convertvector(e, vf) + vf_pick(small, vf_splat(-24.0f), vf_splat(0.0f));
  vf f = (vf)((vu)scaled - ((vu)e << 23)) - 1.0f;
  vf t = f * f * vf_poly(f, tn_math_log_q, TN_MATH_COUNT(tn_math_log_q));
  vf y = f + vf_fma(ef, vf_splat(-0x1.05c61p-29f), t);
  y = vf_fma(ef, vf_splat(0x1.62e43p-1f), y);
  vi good = (x > 0.0f) & (x < __builtin_inff());
  vf other = vf_pick(x == 0.0f, vf_splat(-__builtin_inff()),
                     vf_pick(x < 0.0f, vf_splat(__builtin_nanf("")), x));
  return vf_pick(good, y, other);
}
TN_INLINE float tn_log_one(float x) { return vf_log(vf_splat(x))[0]; }

#endif  // TN_KERNELS_ISA_VEC_MATH_H_
