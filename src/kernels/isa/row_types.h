// What the row kernels need of each element type: vectors of its compute type, loads, stores, sums in the
// order of src/ir/reduce_order.h. Names end in the type (f32, bf16, f16, f64); a kernel text *.inc is written
// for `elem`, `acc` and `vec` and included once per type (row_begin.inc, row_end.inc).
//
// |count| of a load or store is the number of lanes wanted; with a constant count of all lanes it is one
// instruction.
#ifndef TN_KERNELS_ISA_ROW_TYPES_H_
#define TN_KERNELS_ISA_ROW_TYPES_H_

#include "base/math_recipes.h"
#include "ir/reduce_order.h"
#include "src/kernels/isa/isa_vec.h"
#include "src/kernels/isa/vec_half.h"
#include "src/kernels/isa/vec_math.h"
#include "tn/dtype.h"

typedef int64_t vl __attribute__((vector_size(TN_VECTOR_BYTES)));  // lanes of vd

typedef float elem_f32, acc_f32, acc_bf16, acc_f16;
typedef uint16_t elem_bf16, elem_f16;
typedef double elem_f64, acc_f64;
typedef vf vec_f32, vec_bf16, vec_f16;
typedef vd vec_f64;

// ---- f32 compute ------------------------------------------------------------------------------------------
TN_INLINE vi vf_lane_mask(int count) {  // -1 in the first |count| lanes
  vi lane = {0};
  for (int i = 0; i < VF_LANES; ++i) lane[i] = i;
  return lane < count - (vi){0};
}
TN_INLINE vf vf_select(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }
TN_INLINE vf vf_max(vf a, vf b) { return vf_most(a, b); }  // b if one is NaN

TN_INLINE vf ld_f32(const float* p, int count) {
  if (count == VF_LANES) return vf_load(p);
#if defined(TN_ISA_AVX2)
  return (vf)_mm256_maskload_ps(p, (__m256i)vf_lane_mask(count));
#elif defined(TN_ISA_AVX512)
  return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1u), p);
#else
  vf v = {0};
  for (int i = 0; i < count; ++i) v[i] = p[i];
  return v;
#endif
}
TN_INLINE void st_f32(float* p, vf v, int count) {
  if (count == VF_LANES) {
    vf_store(p, v);
    return;
  }
#if defined(TN_ISA_AVX2)
  _mm256_maskstore_ps(p, (__m256i)vf_lane_mask(count), (__m256)v);
#elif defined(TN_ISA_AVX512)
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << count) - 1u), (__m512)v);
#else
  for (int i = 0; i < count; ++i) p[i] = v[i];
#endif
}
TN_INLINE vf ld_bf16(const uint16_t* p, int count) {
  if (count == VF_LANES) return vh_load_bf16(p);
  uint16_t part[VF_LANES] = {0};
  memcpy(part, p, (size_t)count * 2);
  return vh_load_bf16(part);
}
TN_INLINE void st_bf16(uint16_t* p, vf v, int count) {
  uint16_t part[VF_LANES];
  vh_store_bf16(count == VF_LANES ? p : part, v);
  if (count != VF_LANES) memcpy(p, part, (size_t)count * 2);
}
TN_INLINE vf ld_f16(const uint16_t* p, int count) {
  if (count == VF_LANES) return vh_load_f16(p);
  uint16_t part[VF_LANES] = {0};
  memcpy(part, p, (size_t)count * 2);
  return vh_load_f16(part);
}
TN_INLINE void st_f16(uint16_t* p, vf v, int count) {
  uint16_t part[VF_LANES];
  vh_store_f16(count == VF_LANES ? p : part, v);
  if (count != VF_LANES) memcpy(p, part, (size_t)count * 2);
}

// The 64 partial sums of a row: lane groups, combined by halving.
enum { GROUPS_F = TN_REDUCE_LANES / VF_LANES, GROUPS_D = TN_REDUCE_LANES / VD_LANES };
typedef struct {
  vf v[GROUPS_F];
} lanes_f32;
typedef struct {
  vd v[GROUPS_D];
} lanes_f64;
typedef lanes_f32 lanes_bf16, lanes_f16;

TN_INLINE float sum_f32(lanes_f32 x) {
  vf v[GROUPS_F];
  _Pragma("GCC unroll 16") for (int k = 0; k < GROUPS_F; ++k) v[k] = x.v[k];
  _Pragma("GCC unroll 16") for (int half = GROUPS_F / 2; half > 0; half /= 2) {
    _Pragma("GCC unroll 16") for (int k = 0; k < half; ++k) v[k] += v[k + half];
  }
  return vf_sum_lanes(v[0]);
}
TN_INLINE float max_f32(vf x) { return vf_max_lanes(x); }

// ---- f64 --------------------------------------------------------------------------------------------------
TN_INLINE vl vd_lane_mask(int count) {
  vl lane = {0};
  for (int i = 0; i < VD_LANES; ++i) lane[i] = i;
  return lane < (int64_t)count - (vl){0};
}
TN_INLINE vd vd_select(vl mask, vd a, vd b) { return (vd)((mask & (vl)a) | (~mask & (vl)b)); }
TN_INLINE vd vd_max(vd a, vd b) { return vd_select(a > b, a, b); }
TN_INLINE vd ld_f64(const double* p, int count) {
  if (count == VD_LANES) return vd_load(p);
  double part[VD_LANES] = {0};
  memcpy(part, p, (size_t)count * 8);
  return vd_load(part);
}
TN_INLINE void st_f64(double* p, vd v, int count) { memcpy(p, &v, (size_t)count * 8); }
TN_INLINE double sum_f64(lanes_f64 x) {
  for (int half = GROUPS_D / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) x.v[k] += x.v[k + half];
  for (int half = VD_LANES / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) x.v[0][k] += x.v[0][k + half];
  return x.v[0][0];
}
TN_INLINE double max_f64(vd x) {
  for (int half = VD_LANES / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) x[k] = x[k] > x[k + half] ? x[k] : x[k + half];
  return x[0];
}
TN_INLINE vd vd_exp(vd x) {
  for (int i = 0; i < VD_LANES; ++i) x[i] = exp(x[i]);
  return x;
}

// ---- one element ------------------------------------------------------------------------------------------
TN_INLINE float get_f32(const float* p) { return *p; }
TN_INLINE void put_f32(float* p, float x) { *p = x; }
TN_INLINE float get_bf16(const uint16_t* p) { return tn_bf16_to_f32(*p); }
TN_INLINE void put_bf16(uint16_t* p, float x) { *p = tn_f32_to_bf16(x); }
TN_INLINE float get_f16(const uint16_t* p) { return tn_f16_to_f32(*p); }
TN_INLINE void put_f16(uint16_t* p, float x) { *p = tn_f32_to_f16(x); }
TN_INLINE double get_f64(const double* p) { return *p; }
TN_INLINE void put_f64(double* p, double x) { *p = x; }

#define TN_ROW_PASTE_(a, b) a##_##b
#define TN_ROW_PASTE(a, b)  TN_ROW_PASTE_(a, b)

// Visits 0..n-1 in vectors: |i| is the first element, |count| the lanes, |k| the group of the 64 lanes. Not
// unrolled: adding in memory is hidden behind the loads, and code stays small.
#define TN_ROW_GROUPS(n, ...)                                                           \
  do {                                                                                  \
    int64_t row_i = 0;                                                                  \
    const int64_t row_n = (n);                                                          \
    for (; row_i + width <= row_n;) {                                                   \
      for (int k = 0; k < lane_groups && row_i + width <= row_n; ++k, row_i += width) { \
        const int64_t i = row_i;                                                        \
        const int count = width;                                                        \
        __VA_ARGS__                                                                     \
      }                                                                                 \
    }                                                                                   \
    if (row_i < row_n) {                                                                \
      const int64_t i = row_i;                                                          \
      const int k = (int)(row_i / width % lane_groups), count = (int)(row_n - row_i);   \
      __VA_ARGS__                                                                       \
    }                                                                                   \
  } while (0)
// Light bodies: |result| = sum of |body| over 0..n-1, whole blocks of 64 with the lanes in registers (|k| is
// constant there after unrolling), the rest in memory.
#define TN_ROW_SUM(result, n, body)                                      \
  do {                                                                   \
    int64_t row_i = 0;                                                   \
    const int64_t row_n = (n);                                           \
    lanes whole = {0};                                                   \
    for (; row_i + TN_REDUCE_LANES <= row_n; row_i += TN_REDUCE_LANES) { \
      _Pragma("GCC unroll 16") for (int k = 0; k < lane_groups; ++k) {   \
        const int64_t i = row_i + k * width;                             \
        const int count = width;                                         \
        whole.v[k] += body;                                              \
      }                                                                  \
    }                                                                    \
    if (row_i == row_n) {                                                \
      result = sum_lanes(whole);                                         \
      break;                                                             \
    }                                                                    \
    lanes spilled = whole;                                               \
    int k = 0;                                                           \
    for (; row_i + width <= row_n; row_i += width, ++k) {                \
      const int64_t i = row_i;                                           \
      const int count = width;                                           \
      spilled.v[k] += body;                                              \
    }                                                                    \
    if (row_i < row_n) {                                                 \
      const int64_t i = row_i;                                           \
      const int count = (int)(row_n - row_i);                            \
      spilled.v[k] += body;                                              \
    }                                                                    \
    result = sum_lanes(spilled);                                         \
  } while (0)
// The same where lanes do not matter: full vectors, then one part.
#define TN_ROW_VECTORS(n, ...)                       \
  do {                                               \
    int64_t row_i = 0;                               \
    const int64_t row_n = (n);                       \
    for (; row_i + width <= row_n; row_i += width) { \
      const int64_t i = row_i;                       \
      const int count = width;                       \
      __VA_ARGS__                                    \
    }                                                \
    if (row_i < row_n) {                             \
      const int64_t i = row_i;                       \
      const int count = (int)(row_n - row_i);        \
      __VA_ARGS__                                    \
    }                                                \
  } while (0)

#endif  // TN_KERNELS_ISA_ROW_TYPES_H_
