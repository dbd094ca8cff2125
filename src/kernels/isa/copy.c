// Conversion of runs and transposes of tiles.
#include <stdbool.h>
#include <string.h>

#include "src/kernels/isa/copy_table.h"
#include "src/kernels/isa/isa_names.h"
#include "src/kernels/isa/small_float.h"

// ---- conversion -------------------------------------------------------------------------------------------
// All pairs of the types that C has; the rest goes through f32, f64 or both, BLOCK elements at a time.
enum { BLOCK = 256 };

typedef void (*convert_fn_t)(const void* x, void* out, int64_t count);

// clang-format off
#define NATIVE(X)                                                                                  \
  X(i8, int8_t)                                                                                    \
  X(i16, int16_t) X(i32, int32_t) X(i64, int64_t) X(u8, uint8_t) X(u16, uint16_t) X(u32, uint32_t) \
      X(u64, uint64_t)
// clang-format on

#define INT_TO(from, F, to, T)                                          \
  static void from##_to_##to(const void* x, void* out, int64_t count) { \
    const F* a = x;                                                     \
    T* b = out;                                                         \
    for (int64_t i = 0; i < count; ++i) b[i] = (T)a[i];                 \
  }
#define INT_TO_BOOL(from, F)                                         \
  static void from##_to_b(const void* x, void* out, int64_t count) { \
    const F* a = x;                                                  \
    uint8_t* b = out;                                                \
    for (int64_t i = 0; i < count; ++i) b[i] = a[i] != 0;            \
  }
// The sign of the target does not matter. Bool is a u8.
#define INT_ROW(from, F)         \
  INT_TO_BOOL(from, F)           \
  INT_TO(from, F, u8, uint8_t)   \
  INT_TO(from, F, u16, uint16_t) \
  INT_TO(from, F, u32, uint32_t) \
  INT_TO(from, F, u64, uint64_t) INT_TO(from, F, f32, float) INT_TO(from, F, f64, double)
NATIVE(INT_ROW)

// Float to integer passes through int64. Where a whole block fits int32, that is the same and vectorizes.
#define FLOAT_TO(from, F, to, T, slow)                                                            \
  static void from##_to_##to(const void* x, void* out, int64_t count) {                           \
    const F* a = x;                                                                               \
    T* b = out;                                                                                   \
    for (int64_t start = 0; start < count; start += BLOCK, a += BLOCK, b += BLOCK) {              \
      int n = (int)(count - start < BLOCK ? count - start : BLOCK), fits = 1;                     \
      for (int i = 0; i < n; ++i) fits &= (a[i] > (F) - 2147483648.0) & (a[i] < (F)2147483648.0); \
      if (fits) {                                                                                 \
        for (int i = 0; i < n; ++i) b[i] = (T)(int32_t)a[i];                                      \
      } else {                                                                                    \
        for (int i = 0; i < n; ++i) b[i] = (T)slow((double)a[i]);                                 \
      }                                                                                           \
    }                                                                                             \
  }
#define FLOAT_ROW(from, F)                        \
  INT_TO_BOOL(from, F)                            \
  FLOAT_TO(from, F, u8, uint8_t, tn_f64_to_i64)   \
  FLOAT_TO(from, F, u16, uint16_t, tn_f64_to_i64) \
  FLOAT_TO(from, F, u32, uint32_t, tn_f64_to_i64) \
  FLOAT_TO(from, F, i64, int64_t, tn_f64_to_i64)  \
  FLOAT_TO(from, F, u64, uint64_t, tn_f64_to_u64) \
  INT_TO(from, F, f32, float) INT_TO(from, F, f64, double)
FLOAT_ROW(f32, float)
FLOAT_ROW(f64, double)

// The enum has f16 and bf16 between the integers and f32; they have no entry.
#define TO(from, i64)                                                          \
  {from##_to_b,  from##_to_u8,  from##_to_u16, from##_to_u32, from##_to_##i64, \
   from##_to_u8, from##_to_u16, from##_to_u32, from##_to_u64, NULL,            \
   NULL,         from##_to_f32, from##_to_f64},
static const convert_fn_t native[TN_F64 + 1][TN_F64 + 1] = {
    TO(u8, u64) TO(i8, u64) TO(i16, u64) TO(i32, u64) TO(i64, u64) TO(u8, u64) TO(u16, u64)
        TO(u32, u64) TO(u64, u64){NULL},
    {NULL},
    TO(f32, i64) TO(f64, i64)};
static const uint8_t sizes[] = {
#define SIZE(name, text, size, kind) size,
    TN_DTYPES(SIZE)};

static bool is_small(tn_dtype_t dtype) {
  return dtype == TN_F16 || dtype == TN_BF16 || dtype == TN_F8E4M3FN || dtype == TN_F8E5M2;
}
static bool is_complex(tn_dtype_t dtype) { return dtype == TN_C64 || dtype == TN_C128; }

static void convert(tn_dtype_t from, const void* x, tn_dtype_t to, void* out, int64_t count) {
  if (from == to) {
    memcpy(out, x, (size_t)count * sizes[from]);
    return;
  }
  if (!is_small(from) && !is_small(to) && !is_complex(from) && !is_complex(to)) {
    native[from][to](x, out, count);
    return;
  }
  if (is_complex(from) && is_complex(to)) {
    native[from == TN_C64 ? TN_F32 : TN_F64][to == TN_C64 ? TN_F32 : TN_F64](x, out, 2 * count);
    return;
  }
  if (is_small(from) && to == TN_F32) {
    tn_load_small(from, x, out, count);
    return;
  }
  if (from == TN_F32 && is_small(to)) {
    tn_store_small(to, x, out, count);
    return;
  }
  const char* a = x;
  char* b = out;
  for (int64_t start = 0; start < count;
       start += BLOCK, a += (size_t)BLOCK * sizes[from], b += (size_t)BLOCK * sizes[to]) {
    const int64_t n = count - start < BLOCK ? count - start : BLOCK;
    float f32[2 * BLOCK];
    double f64[2 * BLOCK];
    if (is_small(from)) {
      tn_load_small(from, a, f32, n);
      convert(TN_F32, f32, to, b, n);
    } else if (is_complex(from)) {
      const int64_t m = 2 * n;
      if (to == TN_BOOL) {
        uint8_t parts[2 * BLOCK], *bools = (uint8_t*)b;
        native[from == TN_C64 ? TN_F32 : TN_F64][TN_BOOL](a, parts, m);
        for (int64_t i = 0; i < n; ++i) bools[i] = parts[2 * i] | parts[2 * i + 1];
      } else if (from == TN_C64) {
        memcpy(f32, a, (size_t)m * sizeof(float));
        for (int64_t i = 0; i < n; ++i) f32[i] = f32[2 * i];
        convert(TN_F32, f32, to, b, n);
      } else {
        memcpy(f64, a, (size_t)m * sizeof(double));
        for (int64_t i = 0; i < n; ++i) f64[i] = f64[2 * i];
        convert(TN_F64, f64, to, b, n);
      }
    } else if (to == TN_C64) {
      float part[BLOCK];
      convert(from, a, TN_F32, part, n);
      for (int64_t i = 0; i < n; ++i) f32[2 * i] = part[i], f32[2 * i + 1] = 0;
      memcpy(b, f32, (size_t)n * 8);
    } else if (to == TN_C128) {
      double part[BLOCK];
      convert(from, a, TN_F64, part, n);
      for (int64_t i = 0; i < n; ++i) f64[2 * i] = part[i], f64[2 * i + 1] = 0;
      memcpy(b, f64, (size_t)n * 16);
    } else {  // to a small float
      convert(from, a, TN_F32, f32, n);
      tn_store_small(to, f32, b, n);
    }
  }
}

// ---- transpose --------------------------------------------------------------------------------------------
#define TRANSPOSE_PLAIN(name, T)                                                                   \
  static inline void name(int64_t rows, int64_t columns, const char* x, int64_t x_stride,          \
                          char* out, int64_t out_stride) {                                         \
    for (int64_t i = 0; i < rows; ++i) {                                                           \
      T* to = (T*)(void*)(out + i * out_stride);                                                   \
      const char* from = x + i * (int64_t)sizeof(T);                                               \
      for (int64_t j = 0; j < columns; ++j) to[j] = *(const T*)(const void*)(from + j * x_stride); \
    }                                                                                              \
  }
typedef struct {
  uint64_t part[2];
} u128_t;
TRANSPOSE_PLAIN(plain_1, uint8_t)
TRANSPOSE_PLAIN(plain_2, uint16_t)
TRANSPOSE_PLAIN(plain_4, uint32_t)
TRANSPOSE_PLAIN(plain_8, uint64_t)
TRANSPOSE_PLAIN(plain_16, u128_t)

#ifdef __AVX2__
#define LOAD128(p)     _mm_loadu_si128((const __m128i*)(const void*)(p))
#define STORE128(p, v) _mm_storeu_si128((__m128i*)(void*)(p), v)
#define LOAD256(p)     _mm256_loadu_ps((const float*)(const void*)(p))
#define STORE256(p, v) _mm256_storeu_ps((float*)(void*)(p), v)

static inline void tile_4(const char* x, int64_t xs, char* out, int64_t os) {  // 8 x 8
  __m256 r[8], t[8];
  for (int k = 0; k < 4;
       ++k) {  // halves of rows k and k + 4 side by side spare the cross-lane shuffles
    r[k] = _mm256_insertf128_ps(
        _mm256_castps128_ps256(_mm_loadu_ps((const float*)(const void*)(x + k * xs))),
        _mm_loadu_ps((const float*)(const void*)(x + (k + 4) * xs)), 1);
    r[k + 4] = _mm256_insertf128_ps(
        _mm256_castps128_ps256(_mm_loadu_ps((const float*)(const void*)(x + k * xs + 16))),
        _mm_loadu_ps((const float*)(const void*)(x + (k + 4) * xs + 16)), 1);
  }
  for (int h = 0; h < 8; h += 4) {
    t[h] = _mm256_unpacklo_ps(r[h], r[h + 1]);
    t[h + 1] = _mm256_unpackhi_ps(r[h], r[h + 1]);
    t[h + 2] = _mm256_unpacklo_ps(r[h + 2], r[h + 3]);
    t[h + 3] = _mm256_unpackhi_ps(r[h + 2], r[h + 3]);
    STORE256(out + h * os, _mm256_shuffle_ps(t[h], t[h + 2], 0x44));
    STORE256(out + (h + 1) * os, _mm256_shuffle_ps(t[h], t[h + 2], 0xee));
    STORE256(out + (h + 2) * os, _mm256_shuffle_ps(t[h + 1], t[h + 3], 0x44));
    STORE256(out + (h + 3) * os, _mm256_shuffle_ps(t[h + 1], t[h + 3], 0xee));
  }
}
static inline void tile_2(const char* x, int64_t xs, char* out, int64_t os) {  // 8 x 8
  __m128i r[8], a[8], b[8];
  for (int k = 0; k < 8; ++k) r[k] = LOAD128(x + k * xs);
  for (int k = 0; k < 4; ++k) {
    a[2 * k] = _mm_unpacklo_epi16(r[2 * k], r[2 * k + 1]);
    a[2 * k + 1] = _mm_unpackhi_epi16(r[2 * k], r[2 * k + 1]);
  }
  for (int k = 0; k < 8; k += 4) {
    b[k] = _mm_unpacklo_epi32(a[k], a[k + 2]);
    b[k + 1] = _mm_unpackhi_epi32(a[k], a[k + 2]);
    b[k + 2] = _mm_unpacklo_epi32(a[k + 1], a[k + 3]);
    b[k + 3] = _mm_unpackhi_epi32(a[k + 1], a[k + 3]);
  }
  for (int k = 0; k < 4; ++k) {
    STORE128(out + (2 * k) * os, _mm_unpacklo_epi64(b[k], b[k + 4]));
    STORE128(out + (2 * k + 1) * os, _mm_unpackhi_epi64(b[k], b[k + 4]));
  }
}
static inline void tile_8(const char* x, int64_t xs, char* out, int64_t os) {  // 4 x 4
  __m256 r[4];
  for (int k = 0; k < 2; ++k) {
    r[k] = _mm256_insertf128_ps(
        _mm256_castps128_ps256(_mm_loadu_ps((const float*)(const void*)(x + k * xs))),
        _mm_loadu_ps((const float*)(const void*)(x + (k + 2) * xs)), 1);
    r[k + 2] = _mm256_insertf128_ps(
        _mm256_castps128_ps256(_mm_loadu_ps((const float*)(const void*)(x + k * xs + 16))),
        _mm_loadu_ps((const float*)(const void*)(x + (k + 2) * xs + 16)), 1);
  }
  for (int h = 0; h < 4; h += 2) {
    STORE256(out + h * os, _mm256_shuffle_ps(r[h], r[h + 1], 0x44));
    STORE256(out + (h + 1) * os, _mm256_shuffle_ps(r[h], r[h + 1], 0xee));
  }
}
static inline void tile_1(const char* x, int64_t xs, char* out, int64_t os) {  // 16 x 16
  __m128i r[16], t[16];
  for (int k = 0; k < 16; ++k) r[k] = LOAD128(x + k * xs);
  // Four perfect shuffles of rows k and k + 8 transpose 16 x 16 bytes.
  for (int pass = 0; pass < 4; ++pass) {
    for (int k = 0; k < 8; ++k) {
      t[2 * k] = _mm_unpacklo_epi8(r[k], r[k + 8]);
      t[2 * k + 1] = _mm_unpackhi_epi8(r[k], r[k + 8]);
    }
    for (int k = 0; k < 16; ++k) r[k] = t[k];
  }
  for (int k = 0; k < 16; ++k) STORE128(out + k * os, r[k]);
}
#define TILED(size, T)                                                                                     \
  static void transpose_##size(int64_t rows, int64_t columns, const char* x, int64_t xs,                   \
                               char* out, int64_t os) {                                                    \
    const int64_t full_rows = rows - rows % T, full_columns = columns - columns % T;                       \
    /* A strip of out rows as wide as a cache line of x, so that every line of x is used up while near. */ \
    const int64_t strip = 64 / size > T ? 64 / size : T;                                                   \
    for (int64_t i0 = 0; i0 < full_rows; i0 += strip) {                                                    \
      const int64_t i1 = i0 + strip < full_rows ? i0 + strip : full_rows;                                  \
      for (int64_t j = 0; j < full_columns; j += T)                                                        \
        for (int64_t i = i0; i < i1; i += T)                                                               \
          tile_##size(x + j * xs + i * size, xs, out + i * os + j * size, os);                             \
    }                                                                                                      \
    plain_##size(full_rows, columns - full_columns, x + full_columns * xs, xs,                             \
                 out + full_columns * size, os);                                                           \
    plain_##size(rows - full_rows, columns, x + full_rows * size, xs, out + full_rows * os, os);           \
  }
TILED(1, 16)
TILED(2, 8)
TILED(4, 8)
TILED(8, 4)
#else
#define transpose_1 plain_1
#define transpose_2 plain_2
#define transpose_4 plain_4
#define transpose_8 plain_8
#endif

// Tiles of SIDE x SIDE elements keep both sides in the first-level cache and the page tables.
enum { SIDE = 64 };
static void transpose(size_t size, int64_t rows, int64_t columns, const void* x, int64_t x_stride,
                      void* out, int64_t out_stride) {
  const int64_t bytes = (int64_t)size;
  for (int64_t i = 0; i < rows; i += SIDE) {
    const int64_t m = rows - i < SIDE ? rows - i : SIDE;
    for (int64_t j = 0; j < columns; j += SIDE) {
      const int64_t n = columns - j < SIDE ? columns - j : SIDE;
      const char* from = (const char*)x + j * x_stride + i * bytes;
      char* to = (char*)out + i * out_stride + j * bytes;
      switch (size) {
        case 1: transpose_1(m, n, from, x_stride, to, out_stride); break;
        case 2: transpose_2(m, n, from, x_stride, to, out_stride); break;
        case 4: transpose_4(m, n, from, x_stride, to, out_stride); break;
        case 8: transpose_8(m, n, from, x_stride, to, out_stride); break;
        default: plain_16(m, n, from, x_stride, to, out_stride); break;
      }
    }
  }
}

// ---- repeat -----------------------------------------------------------------------------------------------
#define REPEAT(T)                                                            \
  for (int64_t i = 0; i < rows; ++i) {                                       \
    const T value = *(const T*)(const void*)((const char*)x + i * x_stride); \
    T* to = (T*)(void*)((char*)out + i * out_stride);                        \
    for (int64_t j = 0; j < count; ++j) to[j] = value;                       \
  }
static void repeat(size_t size, int64_t rows, int64_t count, const void* x, int64_t x_stride,
                   void* out, int64_t out_stride) {
  switch (size) {
    case 1: REPEAT(uint8_t) break;
    case 2: REPEAT(uint16_t) break;
    case 4: REPEAT(uint32_t) break;
    case 8: REPEAT(uint64_t) break;
    default: REPEAT(u128_t) break;
  }
}

const tn_copy_table_t TN_ISA_NAME(tn_copy_table) = {
    .convert = convert, .transpose = transpose, .repeat = repeat};
