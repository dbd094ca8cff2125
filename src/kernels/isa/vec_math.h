// exp and log of f32 vectors: the recipes of src/base/math_recipes.inc, bit for bit.
#ifndef TN_KERNELS_ISA_VEC_MATH_H_
#define TN_KERNELS_ISA_VEC_MATH_H_

#include "base/math_recipes.h"
#include "src/kernels/isa/isa_vec.h"

typedef int32_t vi __attribute__((vector_size(TN_VECTOR_BYTES)));
typedef uint32_t vu __attribute__((vector_size(TN_VECTOR_BYTES)));

TN_INLINE vf vf_pick(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }

TN_INLINE vf vf_poly(vf x, const float* c, int n) {
  vf y = vf_splat(c[n - 1]);
  _Pragma("GCC unroll 16") for (int i = n - 2; i >= 0; --i) y = vf_fma(y, x, vf_splat(c[i]));
  return y;
}

TN_INLINE vf vf_exp(vf x) {
  const vf low = vf_splat(-104.0f), high = vf_splat(89.0f), magic = vf_splat(0x1.8p23f + 254.0f);
  x = vf_pick(high < x, high, x);
  x = vf_pick(low > x, low, x);
  vf t = vf_fma(x, vf_splat(0x1.715476p+0f), magic);
  vf n = t - magic;
  vf r = vf_fma(n, vf_splat(-0x1.62e4p-1f), x);
  r = vf_fma(n, vf_splat(-0x1.7f7d1cp-20f), r);
  vf p = vf_fma(r * r, vf_poly(r, tn_math_exp_q, TN_MATH_COUNT(tn_math_exp_q)), r) + 1.0f;
  vu bits = (vu)t, half = bits >> 1;
  return p * (vf)(half << 23) * (vf)((bits - half) << 23);
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
  vf other = vf_pick(x == 0.0f, vf_splat(-__builtin_inff()), vf_pick(x < 0.0f, vf_splat(__builtin_nanf("")), x));
  return vf_pick(good, y, other);
}
TN_INLINE float tn_log_one(float x) { return vf_log(vf_splat(x))[0]; }

#endif  // TN_KERNELS_ISA_VEC_MATH_H_
