// math_recipes.inc over GNU vectors as wide as the instruction set that the includer is compiled for: 16 lanes with
// AVX-512, 8 with AVX2, else 4. Lane by lane the results are those of math_scalar.h.
//
//   tn_vf_t tn_v_exp(tn_vf_t x), ... one function per row of TN_MATH_FUNCTIONS; all are inlined.
//   tn_v_load, tn_v_store (unaligned), tn_v_load_n, tn_v_store_n (first n lanes; others read as 0), tn_v_splat
#ifndef TN_BASE_MATH_VECTOR_H_
#define TN_BASE_MATH_VECTOR_H_

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/math_recipes.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define TN_V_LANES     16
#define TN_V_X86(name) _mm512_##name
#elif defined(__AVX2__) && defined(__FMA__)
#define TN_V_LANES     8
#define TN_V_X86(name) _mm256_##name
#else
#define TN_V_LANES 4
#endif
#ifdef TN_V_X86
#include <immintrin.h>
#endif

typedef float tn_vf_t __attribute__((vector_size(4 * TN_V_LANES)));
typedef int32_t tn_vi_t __attribute__((vector_size(4 * TN_V_LANES)));
typedef uint32_t tn_vu_t __attribute__((vector_size(4 * TN_V_LANES)));
typedef float tn_vf_half_t __attribute__((vector_size(2 * TN_V_LANES)));
typedef double tn_vd_half_t __attribute__((vector_size(4 * TN_V_LANES)));
typedef int64_t tn_vl_half_t __attribute__((vector_size(4 * TN_V_LANES)));
// As many f64 as f32, in two registers.
typedef struct tn_vd {
  tn_vd_half_t lo, hi;
} tn_vd_t;

#define TN_V_INLINE static inline __attribute__((always_inline, unused))

TN_V_INLINE tn_vf_t tn_v_splat(float x) { return x - (tn_vf_t){0}; }  // x - 0 keeps -0
TN_V_INLINE tn_vi_t tn_v_splat_i(int32_t x) { return x + (tn_vi_t){0}; }
TN_V_INLINE tn_vd_t tn_v_splat_d(double x) {
  return (tn_vd_t){x - (tn_vd_half_t){0}, x - (tn_vd_half_t){0}};
}

TN_V_INLINE tn_vf_t tn_v_load(const float* p) {
  tn_vf_t x;
  memcpy(&x, p, sizeof x);
  return x;
}
TN_V_INLINE void tn_v_store(float* p, tn_vf_t x) { memcpy(p, &x, sizeof x); }
TN_V_INLINE tn_vf_t tn_v_load_n(const float* p, int64_t n) {
  tn_vf_t x = {0};
  memcpy(&x, p, (size_t)n * sizeof(float));
  return x;
}
TN_V_INLINE void tn_v_store_n(float* p, tn_vf_t x, int64_t n) {
  memcpy(p, &x, (size_t)n * sizeof(float));
}

TN_V_INLINE tn_vi_t tn_v_select_i(tn_vi_t mask, tn_vi_t x, tn_vi_t y) {
  return (x & mask) | (y & ~mask);
}
TN_V_INLINE tn_vf_t tn_v_select(tn_vi_t mask, tn_vf_t x, tn_vf_t y) {
#if TN_V_LANES == 16
  return (tn_vf_t)_mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)mask), (__m512)y, (__m512)x);
#elif TN_V_LANES == 8
  return (tn_vf_t)_mm256_blendv_ps((__m256)y, (__m256)x, (__m256)mask);
#else
  return (tn_vf_t)tn_v_select_i(mask, (tn_vi_t)x, (tn_vi_t)y);
#endif
}
// x < y ? x : y and x > y ? x : y
TN_V_INLINE tn_vf_t tn_v_min(tn_vf_t x, tn_vf_t y) {
#ifdef TN_V_X86
  return TN_V_X86(min_ps)(x, y);
#else
  return tn_v_select(x < y, x, y);
#endif
}
TN_V_INLINE tn_vf_t tn_v_max(tn_vf_t x, tn_vf_t y) {
#ifdef TN_V_X86
  return TN_V_X86(max_ps)(x, y);
#else
  return tn_v_select(x > y, x, y);
#endif
}
TN_V_INLINE tn_vf_t tn_v_fma(tn_vf_t x, tn_vf_t y, tn_vf_t z) {
#ifdef TN_V_X86
  return TN_V_X86(fmadd_ps)(x, y, z);
#else
  for (int i = 0; i < TN_V_LANES; ++i) z[i] = __builtin_fmaf(x[i], y[i], z[i]);
  return z;
#endif
}
TN_V_INLINE tn_vd_half_t tn_v_fma_half(tn_vd_half_t x, tn_vd_half_t y, tn_vd_half_t z) {
#ifdef TN_V_X86
  return TN_V_X86(fmadd_pd)(x, y, z);
#else
  for (int i = 0; i < TN_V_LANES / 2; ++i) z[i] = __builtin_fma(x[i], y[i], z[i]);
  return z;
#endif
}
TN_V_INLINE tn_vf_t tn_v_sqrt(tn_vf_t x) {
#ifdef TN_V_X86
  return TN_V_X86(sqrt_ps)(x);
#else
  for (int i = 0; i < TN_V_LANES; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}
TN_V_INLINE tn_vd_half_t tn_v_sqrt_half(tn_vd_half_t x) {
#ifdef TN_V_X86
  return TN_V_X86(sqrt_pd)(x);
#else
  for (int i = 0; i < TN_V_LANES / 2; ++i) x[i] = __builtin_sqrt(x[i]);
  return x;
#endif
}
// Halves by shuffles: through memory, two stores and one load would wait for each other.
#if TN_V_LANES == 16
#define TN_V_LOW(x)  __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7)
#define TN_V_HIGH(x) __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15)
#define TN_V_JOIN(x, y) \
  __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#elif TN_V_LANES == 8
#define TN_V_LOW(x)     __builtin_shufflevector(x, x, 0, 1, 2, 3)
#define TN_V_HIGH(x)    __builtin_shufflevector(x, x, 4, 5, 6, 7)
#define TN_V_JOIN(x, y) __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7)
#else
#define TN_V_LOW(x)     __builtin_shufflevector(x, x, 0, 1)
#define TN_V_HIGH(x)    __builtin_shufflevector(x, x, 2, 3)
#define TN_V_JOIN(x, y) __builtin_shufflevector(x, y, 0, 1, 2, 3)
#endif
TN_V_INLINE tn_vd_t tn_v_to_d(tn_vf_t x) {
  return (tn_vd_t){__builtin_convertvector(TN_V_LOW(x), tn_vd_half_t),
                   __builtin_convertvector(TN_V_HIGH(x), tn_vd_half_t)};
}
TN_V_INLINE tn_vf_t tn_v_from_d(tn_vd_t x) {
  return TN_V_JOIN(__builtin_convertvector(x.lo, tn_vf_half_t),
                   __builtin_convertvector(x.hi, tn_vf_half_t));
}
TN_V_INLINE tn_vd_half_t tn_v_select_half(tn_vl_half_t mask, tn_vd_half_t x, tn_vd_half_t y) {
#if TN_V_LANES == 8
  return _mm256_blendv_pd(y, x, (__m256d)mask);
#else
  return (tn_vd_half_t)(((tn_vl_half_t)x & mask) | ((tn_vl_half_t)y & ~mask));
#endif
}
TN_V_INLINE tn_vd_t tn_v_select_d(tn_vi_t mask, tn_vd_t x, tn_vd_t y) {
  return (tn_vd_t){
      tn_v_select_half(__builtin_convertvector(TN_V_LOW(mask), tn_vl_half_t), x.lo, y.lo),
      tn_v_select_half(__builtin_convertvector(TN_V_HIGH(mask), tn_vl_half_t), x.hi, y.hi)};
}
TN_V_INLINE bool tn_v_any(tn_vi_t mask) {
#if TN_V_LANES == 16
  return _mm512_movepi32_mask((__m512i)mask) != 0;
#elif TN_V_LANES == 8
  return _mm256_movemask_ps((__m256)mask) != 0;
#else
  return (mask[0] | mask[1] | mask[2] | mask[3]) != 0;
#endif
}

#define TN_MF         tn_vf_t
#define TN_MI         tn_vi_t
#define TN_MD         tn_vd_t
#define TN_MFN(name)  tn_v_##name
#define TN_MATTR      TN_V_INLINE
#define TN_MATTR_RARE static __attribute__((noinline, cold, unused))
#define TN_MPARAM
#define TN_MARG
#define M_F(value)                  tn_v_splat(value)
#define M_I(value)                  tn_v_splat_i((int32_t)(value))
#define M_D(value)                  tn_v_splat_d(value)
#define M_ADD(x, y)                 ((x) + (y))
#define M_SUB(x, y)                 ((x) - (y))
#define M_MUL(x, y)                 ((x) * (y))
#define M_DIV(x, y)                 ((x) / (y))
#define M_FMA(x, y, z)              tn_v_fma(x, y, z)
#define M_SQRT(x)                   tn_v_sqrt(x)
#define M_NEG(x)                    ((tn_vf_t)((tn_vi_t)(x) ^ INT32_MIN))
#define M_ABS(x)                    ((tn_vf_t)((tn_vi_t)(x) & INT32_MAX))
#define M_MIN(x, y)                 tn_v_min(x, y)
#define M_MAX(x, y)                 tn_v_max(x, y)
#define M_LT(x, y)                  ((x) < (y))
#define M_LE(x, y)                  ((x) <= (y))
#define M_EQ(x, y)                  ((x) == (y))
#define M_SEL(m, x, y)              tn_v_select(m, x, y)
#define M_BITS(x)                   ((tn_vi_t)(x))
#define M_FLOAT(x)                  ((tn_vf_t)(x))
#define M_TOI(x)                    __builtin_convertvector(x, tn_vi_t)
#define M_TOF(x)                    __builtin_convertvector(x, tn_vf_t)
#define M_IADD(x, y)                ((tn_vi_t)((tn_vu_t)(x) + (tn_vu_t)(y)))
#define M_ISUB(x, y)                ((tn_vi_t)((tn_vu_t)(x) - (tn_vu_t)(y)))
#define M_IAND(x, y)                ((x) & (y))
#define M_IOR(x, y)                 ((x) | (y))
#define M_IXOR(x, y)                ((x) ^ (y))
#define M_ISHL(x, n)                ((tn_vi_t)((tn_vu_t)(x) << (n)))
#define M_ISHR(x, n)                ((x) >> (n))
#define M_ISRL(x, n)                ((tn_vi_t)((tn_vu_t)(x) >> (n)))
#define M_IEQ(x, y)                 ((x) == (y))
#define M_ILT(x, y)                 ((x) < (y))
#define M_TOD(x)                    tn_v_to_d(x)
#define M_FROMD(x)                  tn_v_from_d(x)
#define M_DADD(x, y)                tn_v_add_d(x, y)
#define M_DSUB(x, y)                tn_v_sub_d(x, y)
#define M_DMUL(x, y)                tn_v_mul_d(x, y)
#define M_DDIV(x, y)                tn_v_div_d(x, y)
#define M_DFMA(x, y, z)             tn_v_fma_d(x, y, z)
#define M_DSQRT(x)                  tn_v_sqrt_d(x)
#define M_DSEL(m, x, y)             tn_v_select_d(m, x, y)
#define M_RARE(m, y, name, NAME, x) (tn_v_any(m) ? tn_v_select(m, tn_v_##name(x), y) : (y))

TN_V_INLINE tn_vd_t tn_v_add_d(tn_vd_t x, tn_vd_t y) { return (tn_vd_t){x.lo + y.lo, x.hi + y.hi}; }
TN_V_INLINE tn_vd_t tn_v_sub_d(tn_vd_t x, tn_vd_t y) { return (tn_vd_t){x.lo - y.lo, x.hi - y.hi}; }
TN_V_INLINE tn_vd_t tn_v_mul_d(tn_vd_t x, tn_vd_t y) { return (tn_vd_t){x.lo * y.lo, x.hi * y.hi}; }
TN_V_INLINE tn_vd_t tn_v_div_d(tn_vd_t x, tn_vd_t y) { return (tn_vd_t){x.lo / y.lo, x.hi / y.hi}; }
TN_V_INLINE tn_vd_t tn_v_sqrt_d(tn_vd_t x) {
  return (tn_vd_t){tn_v_sqrt_half(x.lo), tn_v_sqrt_half(x.hi)};
}
TN_V_INLINE tn_vd_t tn_v_fma_d(tn_vd_t x, tn_vd_t y, tn_vd_t z) {
  return (tn_vd_t){tn_v_fma_half(x.lo, y.lo, z.lo), tn_v_fma_half(x.hi, y.hi, z.hi)};
}

#include "base/math_recipes.inc"
#include "base/math_undef.inc"

#endif  // TN_BASE_MATH_VECTOR_H_
