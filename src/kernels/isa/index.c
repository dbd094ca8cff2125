// Runs of reductions into memory, for every dtype.
#include "src/kernels/isa/index_table.h"

#include "src/kernels/isa/isa_names.h"
#include "src/kernels/isa/small_float.h"

// The dense case is a loop of its own so that it vectorizes.
#define COMBINE(name, T, expression)                                                \
  static void name(int64_t count, void* out, int64_t out_stride, const void* x,     \
                   int64_t x_stride) {                                              \
    if (out_stride == (int64_t)sizeof(T) && x_stride == (int64_t)sizeof(T)) {       \
      T* restrict to = out;                                                         \
      const T* restrict from = x;                                                   \
      for (int64_t i = 0; i < count; ++i) {                                         \
        const T a = to[i], b = from[i];                                             \
        to[i] = (T)(expression);                                                    \
      }                                                                             \
      return;                                                                       \
    }                                                                               \
    for (int64_t i = 0; i < count; ++i) {                                           \
      T* to = (T*)(void*)((char*)out + i * out_stride);                             \
      const T a = *to, b = *(const T*)(const void*)((const char*)x + i * x_stride); \
      *to = (T)(expression);                                                        \
    }                                                                               \
  }
// Sums, products and bit operations of signed and unsigned integers are the same.
#define UNSIGNED(name, T, U)                \
  COMBINE(name##_sum, T, (U)((U)a + (U)b))  \
  COMBINE(name##_prod, T, (U)((U)a * (U)b)) \
  COMBINE(name##_and, T, a& b)              \
  COMBINE(name##_or, T, a | b)              \
  ORDERED(name, T)
#define ORDERED(name, T)                \
  COMBINE(name##_max, T, a > b ? a : b) \
  COMBINE(name##_min, T, a < b ? a : b)
UNSIGNED(u8, uint8_t, uint32_t)
UNSIGNED(u16, uint16_t, uint32_t)
UNSIGNED(u32, uint32_t, uint32_t)
UNSIGNED(u64, uint64_t, uint64_t)
ORDERED(i8, int8_t)
ORDERED(i16, int16_t)
ORDERED(i32, int32_t)
ORDERED(i64, int64_t)
#define FLOAT(name, T)                               \
  COMBINE(name##_sum, T, a + b)                      \
  COMBINE(name##_prod, T, a* b)                      \
  COMBINE(name##_max, T, (a > b) | (a != a) ? a : b) \
  COMBINE(name##_min, T, (a < b) | (a != a) ? a : b)
FLOAT(f32, float)
FLOAT(f64, double)
// Small floats: each update computes in f32 and rounds. A piece at a time goes through f32.
static void combine_small(tn_dtype_t dtype, tn_combine_fn_t combine, int64_t count, void* out,
                          int64_t out_stride, const void* x, int64_t x_stride) {
  enum { PIECE = 64 };
  const int64_t size = dtype == TN_F16 || dtype == TN_BF16 ? 2 : 1;
  for (int64_t start = 0; start < count; start += PIECE) {
    const int64_t n = count - start < PIECE ? count - start : PIECE;
    char *to = (char*)out + start * out_stride, a_stage[2 * PIECE], b_stage[2 * PIECE];
    const char *from = (const char*)x + start * x_stride, *a_run = to;
    if (out_stride != size) {
      for (int64_t i = 0; i < n; ++i) memcpy(a_stage + i * size, to + i * out_stride, (size_t)size);
      a_run = a_stage;
    }
    if (x_stride != size) {
      for (int64_t i = 0; i < n; ++i) memcpy(b_stage + i * size, from + i * x_stride, (size_t)size);
      from = b_stage;
    }
    float a[PIECE], b[PIECE];
    tn_load_small(dtype, a_run, a, n);
    tn_load_small(dtype, from, b, n);
    combine(n, a, sizeof(float), b, sizeof(float));
    tn_store_small(dtype, a, out_stride == size ? to : a_stage, n);
    if (out_stride != size)
      for (int64_t i = 0; i < n; ++i) memcpy(to + i * out_stride, a_stage + i * size, (size_t)size);
  }
}
#define SMALL_ONE(name, dtype, kind)                                                     \
  static void name##_##kind(int64_t count, void* out, int64_t out_stride, const void* x, \
                            int64_t x_stride) {                                          \
    combine_small(dtype, f32_##kind, count, out, out_stride, x, x_stride);               \
  }
#define SMALL(name, dtype)    \
  SMALL_ONE(name, dtype, sum) \
  SMALL_ONE(name, dtype, prod) SMALL_ONE(name, dtype, max) SMALL_ONE(name, dtype, min)
SMALL(f16, TN_F16)
SMALL(bf16, TN_BF16)
SMALL(e4m3, TN_F8E4M3FN)
SMALL(e5m2, TN_F8E5M2)

#define COMPLEX(name, T)                                                               \
  static void name##_sum(int64_t count, void* out, int64_t out_stride, const void* x,  \
                         int64_t x_stride) {                                           \
    for (int64_t i = 0; i < count; ++i) {                                              \
      T* a = (T*)(void*)((char*)out + i * out_stride);                                 \
      const T* b = (const T*)(const void*)((const char*)x + i * x_stride);             \
      a[0] += b[0];                                                                    \
      a[1] += b[1];                                                                    \
    }                                                                                  \
  }                                                                                    \
  static void name##_prod(int64_t count, void* out, int64_t out_stride, const void* x, \
                          int64_t x_stride) {                                          \
    for (int64_t i = 0; i < count; ++i) {                                              \
      T* a = (T*)(void*)((char*)out + i * out_stride);                                 \
      const T* b = (const T*)(const void*)((const char*)x + i * x_stride);             \
      const T real = a[0] * b[0] - a[1] * b[1], imag = a[0] * b[1] + a[1] * b[0];      \
      a[0] = real;                                                                     \
      a[1] = imag;                                                                     \
    }                                                                                  \
  }
COMPLEX(c64, float)
COMPLEX(c128, double)

// Bool: sum is or, product is and.
#define BITS(kind)                                                                          \
  [TN_I8] = u8_##kind, [TN_I16] = u16_##kind, [TN_I32] = u32_##kind, [TN_I64] = u64_##kind, \
  [TN_U8] = u8_##kind, [TN_U16] = u16_##kind, [TN_U32] = u32_##kind, [TN_U64] = u64_##kind
#define INTEGERS(kind)                                                                      \
  [TN_I8] = i8_##kind, [TN_I16] = i16_##kind, [TN_I32] = i32_##kind, [TN_I64] = i64_##kind, \
  [TN_U8] = u8_##kind, [TN_U16] = u16_##kind, [TN_U32] = u32_##kind, [TN_U64] = u64_##kind
#define FLOATS(kind)                                                                            \
  [TN_F16] = f16_##kind, [TN_BF16] = bf16_##kind, [TN_F32] = f32_##kind, [TN_F64] = f64_##kind, \
  [TN_F8E4M3FN] = e4m3_##kind, [TN_F8E5M2] = e5m2_##kind
#define COMPLEXES(kind) [TN_C64] = c64_##kind, [TN_C128] = c128_##kind

// ---- dense runs of indices --------------------------------------------------------------------------------
static bool are_inside(const int64_t* index, int64_t count, uint64_t bias, uint64_t span) {
  // Shifted so that signed comparison, which vectors have, does it.
  const int64_t limit = (int64_t)(span ^ 1ull << 63);
  int64_t bad = 0;
  for (int64_t i = 0; i < count; ++i)
    bad |= -(int64_t)((int64_t)(((uint64_t)index[i] + bias) ^ 1ull << 63) >= limit);
  return bad == 0;
}
#define GATHER(name, T)                                                                           \
  static void name(const void* x, const int64_t* index, int64_t count, int64_t size, void* out) { \
    const T* from = x;                                                                            \
    T* restrict to = out;                                                                         \
    for (int64_t i = 0; i < count; ++i) to[i] = from[index[i] + ((index[i] >> 63) & size)];       \
  }
GATHER(gather_4, uint32_t)
GATHER(gather_8, uint64_t)

const tn_index_table_t TN_ISA_NAME(tn_index_table) = {
    .are_inside = are_inside,
    .gather_4 = gather_4,
    .gather_8 = gather_8,
    .combine = {
        [TN_REDUCE_SUM] = {[TN_BOOL] = u8_or, BITS(sum), FLOATS(sum), COMPLEXES(sum)},
        [TN_REDUCE_PROD] = {[TN_BOOL] = u8_and, BITS(prod), FLOATS(prod), COMPLEXES(prod)},
        [TN_REDUCE_MAX] = {[TN_BOOL] = u8_or, INTEGERS(max), FLOATS(max)},
        [TN_REDUCE_MIN] = {[TN_BOOL] = u8_and, INTEGERS(min), FLOATS(min)},
        [TN_REDUCE_AND] = {[TN_BOOL] = u8_and, BITS(and)},
        [TN_REDUCE_OR] = {[TN_BOOL] = u8_or, BITS(or)},
    }};
