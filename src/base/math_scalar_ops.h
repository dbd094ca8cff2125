// math_recipes.inc over plain float, int32_t and double: the scalar twin of math_vector.h. Defines the static
// inline functions tn_ms_exp(x) ... (and their helpers).
#ifndef TN_BASE_MATH_SCALAR_OPS_H_
#define TN_BASE_MATH_SCALAR_OPS_H_

#include <math.h>
#include <string.h>

#include "base/math_recipes.h"

static inline int32_t tn_ms_bits(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline float tn_ms_float(int32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

#define TN_MF         float
#define TN_MI         int32_t
#define TN_MD         double
#define TN_MFN(name)  tn_ms_##name
#define TN_MATTR      static inline __attribute__((always_inline, unused))
#define TN_MATTR_RARE static inline __attribute__((always_inline, unused))
#define TN_MPARAM
#define TN_MARG
#define M_F(value)                  (value)
#define M_I(value)                  ((int32_t)(value))
#define M_D(value)                  (value)
#define M_ADD(x, y)                 ((x) + (y))
#define M_SUB(x, y)                 ((x) - (y))
#define M_MUL(x, y)                 ((x) * (y))
#define M_DIV(x, y)                 ((x) / (y))
#define M_FMA(x, y, z)              __builtin_fmaf(x, y, z)
#define M_SQRT(x)                   __builtin_sqrtf(x)
#define M_NEG(x)                    (-(x))
#define M_ABS(x)                    __builtin_fabsf(x)
#define M_MIN(x, y)                 tn_ms_min(x, y)
#define M_MAX(x, y)                 tn_ms_max(x, y)
#define M_LT(x, y)                  (-(int32_t)((x) < (y)))
#define M_LE(x, y)                  (-(int32_t)((x) <= (y)))
#define M_EQ(x, y)                  (-(int32_t)((x) == (y)))
#define M_SEL(m, x, y)              ((m) ? (x) : (y))
#define M_BITS(x)                   tn_ms_bits(x)
#define M_FLOAT(x)                  tn_ms_float(x)
#define M_TOI(x)                    ((int32_t)(x))
#define M_TOF(x)                    ((float)(x))
#define M_IADD(x, y)                ((int32_t)((uint32_t)(x) + (uint32_t)(y)))
#define M_ISUB(x, y)                ((int32_t)((uint32_t)(x) - (uint32_t)(y)))
#define M_IAND(x, y)                ((x) & (y))
#define M_IOR(x, y)                 ((x) | (y))
#define M_IXOR(x, y)                ((x) ^ (y))
#define M_ISHL(x, n)                ((int32_t)((uint32_t)(x) << (n)))
#define M_ISHR(x, n)                ((x) >> (n))
#define M_ISRL(x, n)                ((int32_t)((uint32_t)(x) >> (n)))
#define M_IEQ(x, y)                 (-(int32_t)((x) == (y)))
#define M_ILT(x, y)                 (-(int32_t)((x) < (y)))
#define M_TOD(x)                    ((double)(x))
#define M_FROMD(x)                  ((float)(x))
#define M_DADD(x, y)                ((x) + (y))
#define M_DSUB(x, y)                ((x) - (y))
#define M_DMUL(x, y)                ((x) * (y))
#define M_DDIV(x, y)                ((x) / (y))
#define M_DFMA(x, y, z)             __builtin_fma(x, y, z)
#define M_DSQRT(x)                  __builtin_sqrt(x)
#define M_DSEL(m, x, y)             ((m) ? (x) : (y))
#define M_RARE(m, y, name, NAME, x) ((m) ? tn_ms_##name(x) : (y))

static inline float tn_ms_min(float x, float y) { return x < y ? x : y; }
static inline float tn_ms_max(float x, float y) { return x > y ? x : y; }

#include "base/math_recipes.inc"
#include "base/math_undef.inc"

#endif  // TN_BASE_MATH_SCALAR_OPS_H_
