// Runs of reductions into memory, for every dtype.
#include "src/kernels/isa/index_table.h"

#include "src/kernels/isa/isa_names.h"
#include "src/kernels/isa/small_float.h"

// The dense case is a loop of its own so that it vectorizes.
#define COMBINE(name, T, expression)                                                                             \
  static void name(int64_t count, void* out, int64_t out_stride, const void* x, int64_t x_stride) {              \
    if (out_stride == (int64_t)sizeof(T) && x_stride == (int64_t)sizeof(T)) {                                    \
      T* restrict to = out;                                                                                      \
      const T* restrict from = x;                                                                                \
      for (int64_t i = 0; i < count; ++i) {                                                                      \
        const T a = to[i], b = from[i];                                                                          \
        to[i] = (T)(expression);                                                                                 \
      }                                                                                                          \
      return;                                                                                                    \
    }                                                                                                            \
    for (int64_t i = 0; i < count; ++i) {                                                                        \
      T* to = (T*)(void*)((char*)out + i * out_stride);                                                          \
      const T a = *to, b = *(const T*)(const void*)((const char*)x + i * x_stride);                              \
      *to = (T)(expression);                                                                                     \
    }                                                                                                            \
  }
// Small floats: each update computes in f32 and rounds.
#define COMBINE_SMALL(name, T, load, store, expression)                                                          \
  static void name(int64_t count, void* out, int64_t out_stride, const void* x, int64_t x_stride) {              \
    for (int64_t i = 0; i < count; ++i) {                                                                        \
      T* to = (T*)(void*)((char*)out + i * out_stride);                                                          \
      const float a = load(*to), b = load(*(const T*)(const void*)((const char*)x + i * x_stride));              \
      *to = store(expression);                                                                                   \
    }                                                                                                            \
  }
#define INTEGER(name, T, U)                      \
  COMBINE(name##_sum, T, (U)((U)a + (U)b))       \
  COMBINE(name##_prod, T, (U)((U)a * (U)b))      \
  COMBINE(name##_max, T, a > b ? a : b)          \
  COMBINE(name##_min, T, a < b ? a : b)          \
  COMBINE(name##_and, T, a & b)                  \
  COMBINE(name##_or, T, a | b)
INTEGER(i8, int8_t, uint32_t)
INTEGER(i16, int16_t, uint32_t)
INTEGER(i32, int32_t, uint32_t)
INTEGER(i64, int64_t, uint64_t)
INTEGER(u8, uint8_t, uint32_t)
INTEGER(u16, uint16_t, uint32_t)
INTEGER(u32, uint32_t, uint32_t)
INTEGER(u64, uint64_t, uint64_t)
#define FLOAT(name, T)                                    \
  COMBINE(name##_sum, T, a + b)                           \
  COMBINE(name##_prod, T, a* b)                           \
  COMBINE(name##_max, T, (a > b) | (a != a) ? a : b)      \
  COMBINE(name##_min, T, (a < b) | (a != a) ? a : b)
FLOAT(f32, float)
FLOAT(f64, double)
#define SMALL(name, T, load, store)                                        \
  COMBINE_SMALL(name##_sum, T, load, store, a + b)                         \
  COMBINE_SMALL(name##_prod, T, load, store, a* b)                         \
  COMBINE_SMALL(name##_max, T, load, store, (a > b) | (a != a) ? a : b)    \
  COMBINE_SMALL(name##_min, T, load, store, (a < b) | (a != a) ? a : b)
SMALL(f16, uint16_t, tn_f16_to_f32, tn_f32_to_f16)
SMALL(bf16, uint16_t, tn_bf16_to_f32, tn_f32_to_bf16)
SMALL(e4m3, uint8_t, tn_f8e4m3fn_to_f32, tn_f32_to_f8e4m3fn)
SMALL(e5m2, uint8_t, tn_f8e5m2_to_f32, tn_f32_to_f8e5m2)

#define COMPLEX(name, T)                                                                             \
  static void name##_sum(int64_t count, void* out, int64_t out_stride, const void* x, int64_t x_stride) {  \
    for (int64_t i = 0; i < count; ++i) {                                                            \
      T* a = (T*)(void*)((char*)out + i * out_stride);                                               \
      const T* b = (const T*)(const void*)((const char*)x + i * x_stride);                           \
      a[0] += b[0];                                                                                  \
      a[1] += b[1];                                                                                  \
    }                                                                                                \
  }                                                                                                  \
  static void name##_prod(int64_t count, void* out, int64_t out_stride, const void* x, int64_t x_stride) { \
    for (int64_t i = 0; i < count; ++i) {                                                            \
      T* a = (T*)(void*)((char*)out + i * out_stride);                                               \
      const T* b = (const T*)(const void*)((const char*)x + i * x_stride);                           \
      const T real = a[0] * b[0] - a[1] * b[1], imag = a[0] * b[1] + a[1] * b[0];                    \
      a[0] = real;                                                                                   \
      a[1] = imag;                                                                                   \
    }                                                                                                \
  }
COMPLEX(c64, float)
COMPLEX(c128, double)

// Bool: sum is or, product is and.
#define BYTES(kind)                                                                                           \
  [TN_I8] = i8_##kind, [TN_I16] = i16_##kind, [TN_I32] = i32_##kind, [TN_I64] = i64_##kind, [TN_U8] = u8_##kind, \
  [TN_U16] = u16_##kind, [TN_U32] = u32_##kind, [TN_U64] = u64_##kind
#define FLOATS(kind)                                                                                      \
  [TN_F16] = f16_##kind, [TN_BF16] = bf16_##kind, [TN_F32] = f32_##kind, [TN_F64] = f64_##kind,           \
  [TN_F8E4M3FN] = e4m3_##kind, [TN_F8E5M2] = e5m2_##kind
#define COMPLEXES(kind) [TN_C64] = c64_##kind, [TN_C128] = c128_##kind

const tn_index_table_t TN_ISA_NAME(tn_index_table) = {
    .combine = {
        [TN_REDUCE_SUM] = {[TN_BOOL] = u8_or, BYTES(sum), FLOATS(sum), COMPLEXES(sum)},
        [TN_REDUCE_PROD] = {[TN_BOOL] = u8_and, BYTES(prod), FLOATS(prod), COMPLEXES(prod)},
        [TN_REDUCE_MAX] = {[TN_BOOL] = u8_or, BYTES(max), FLOATS(max)},
        [TN_REDUCE_MIN] = {[TN_BOOL] = u8_and, BYTES(min), FLOATS(min)},
        [TN_REDUCE_AND] = {[TN_BOOL] = u8_and, BYTES(and)},
        [TN_REDUCE_OR] = {[TN_BOOL] = u8_or, BYTES(or)},
    }};
