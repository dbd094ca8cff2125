// Packing and tiles of the matrix product; see kernels/gemm_table.h.
#include "kernels/gemm_table.h"
#include "kernels/isa/isa_vec.h"
#include "kernels/isa/small_float.h"

// Widest panel in vectors for a tile of 1..6 rows: the accumulators and one row of B fill the register file, and at
// least eight independent chains of fma hide its latency.
#if defined(TN_ISA_AVX512)
#define VECTORS_1 8
#define VECTORS_2 8
#define VECTORS_3 6
#define VECTORS_4 4
#define VECTORS_5 4
#define VECTORS_6 4
#else
#define VECTORS_1 8
#define VECTORS_2 4
#define VECTORS_3 4
#define VECTORS_4 3
#define VECTORS_5 2
#define VECTORS_6 2
#endif

TN_INLINE float read_f32(tn_dtype_t dtype, const void* p, int64_t i) {
  switch (dtype) {
    case TN_F16: return tn_f16_to_f32(((const uint16_t*)p)[i]);
    case TN_BF16: return tn_bf16_to_f32(((const uint16_t*)p)[i]);
    default: return ((const float*)p)[i];
  }
}
TN_INLINE void read_run_f32(tn_dtype_t dtype, const void* p, int64_t i, float* out, int64_t count) {
  switch (dtype) {
    case TN_F16: tn_load_f16((const uint16_t*)p + i, out, count); break;
    case TN_BF16: tn_load_bf16((const uint16_t*)p + i, out, count); break;
    default: memcpy(out, (const float*)p + i, (size_t)count * sizeof(float));
  }
}
TN_INLINE void write_f32(tn_dtype_t dtype, void* p, int64_t i, float value) {
  switch (dtype) {
    case TN_F16: ((uint16_t*)p)[i] = tn_f32_to_f16(value); break;
    case TN_BF16: ((uint16_t*)p)[i] = tn_f32_to_bf16(value); break;
    default: ((float*)p)[i] = value;
  }
}
TN_INLINE void write_run_f32(tn_dtype_t dtype, void* p, int64_t i, const float* values,
                             int64_t count) {
  switch (dtype) {
    case TN_F16: tn_store_f16(values, (uint16_t*)p + i, count); break;
    case TN_BF16: tn_store_bf16(values, (uint16_t*)p + i, count); break;
    default: memcpy((float*)p + i, values, (size_t)count * sizeof(float));
  }
}
TN_INLINE double read_f64(tn_dtype_t dtype, const void* p, int64_t i) {
  (void)dtype;
  return ((const double*)p)[i];
}
TN_INLINE void read_run_f64(tn_dtype_t dtype, const void* p, int64_t i, double* out,
                            int64_t count) {
  (void)dtype;
  memcpy(out, (const double*)p + i, (size_t)count * sizeof(double));
}
TN_INLINE void write_f64(tn_dtype_t dtype, void* p, int64_t i, double value) {
  (void)dtype;
  ((double*)p)[i] = value;
}
TN_INLINE void write_run_f64(tn_dtype_t dtype, void* p, int64_t i, const double* values,
                             int64_t count) {
  (void)dtype;
  memcpy((double*)p + i, values, (size_t)count * sizeof(double));
}

// Transposes 8 rows of 8 elements: out[k * out_row + j] = in[j][k]. Rows are stored in order of k, each in one piece.
TN_INLINE void transpose_8x8(const float* const* in, float* out, int64_t out_row) {
#if defined(TN_ISA_AVX2) || defined(TN_ISA_AVX512)
  __m256 r[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // rows i and i + 4 side by side, then columns 4..7 likewise
    r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(in[i])),
                                _mm_loadu_ps(in[i + 4]), 1);
    r[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(in[i] + 4)),
                                    _mm_loadu_ps(in[i + 4] + 4), 1);
  }
#pragma GCC unroll 2
  for (int h = 0; h < 8; h += 4) {
    const __m256 low01 = _mm256_unpacklo_ps(r[h], r[h + 1]),
                 high01 = _mm256_unpackhi_ps(r[h], r[h + 1]);
    const __m256 low23 = _mm256_unpacklo_ps(r[h + 2], r[h + 3]),
                 high23 = _mm256_unpackhi_ps(r[h + 2], r[h + 3]);
    _mm256_storeu_ps(out + (h + 0) * out_row, _mm256_shuffle_ps(low01, low23, 0x44));
    _mm256_storeu_ps(out + (h + 1) * out_row, _mm256_shuffle_ps(low01, low23, 0xee));
    _mm256_storeu_ps(out + (h + 2) * out_row, _mm256_shuffle_ps(high01, high23, 0x44));
    _mm256_storeu_ps(out + (h + 3) * out_row, _mm256_shuffle_ps(high01, high23, 0xee));
  }
#else
  for (int k = 0; k < 8; ++k) {
    for (int j = 0; j < 8; ++j) out[k * out_row + j] = in[j][k];
  }
#endif
}
TN_INLINE void transpose_8x8_f64(const double* const* in, double* out, int64_t out_row) {
  for (int k = 0; k < 8; ++k) {
    for (int j = 0; j < 8; ++j) out[k * out_row + j] = in[j][k];
  }
}

// A vector of any operand type, widened.
TN_INLINE vf load_as_f32(tn_dtype_t dtype, const void* p, int64_t i) {
  switch (dtype) {
    case TN_F16: return vf_load_f16((const uint16_t*)p + i);
    case TN_BF16: return vf_load_bf16((const uint16_t*)p + i);
    default: return vf_load((const float*)p + i);
  }
}
TN_INLINE vd load_as_f64(tn_dtype_t dtype, const void* p, int64_t i) {
  (void)dtype;
  return vd_load((const double*)p + i);
}

// acc[0..7] = fma(x[0..7], p[i..i+7], acc[0..7])
TN_INLINE void fma_lanes_f32(tn_dtype_t dtype, const float* x, const void* p, int64_t i,
                             float* acc) {
#if defined(TN_ISA_AVX512)
  const uint16_t* half = (const uint16_t*)p + i;
  const __m256 y = dtype == TN_F16 ? _mm256_cvtph_ps(_mm_loadu_si128((const void*)half))
                   : dtype == TN_BF16
                       ? (__m256)(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void*)half)) << 16)
                       : _mm256_loadu_ps((const float*)p + i);
  _mm256_storeu_ps(acc, _mm256_fmadd_ps(_mm256_loadu_ps(x), y, _mm256_loadu_ps(acc)));
#else
#pragma GCC unroll 2
  for (int v = 0; v < 8; v += VF_LANES) {
    vf_store(acc + v, vf_fma(vf_load(x + v), load_as_f32(dtype, p, i + v), vf_load(acc + v)));
  }
#endif
}
TN_INLINE void fma_lanes_f64(tn_dtype_t dtype, const double* x, const void* p, int64_t i,
                             double* acc) {
#pragma GCC unroll 4
  for (int v = 0; v < 8; v += VD_LANES) {
    vd_store(acc + v, vd_fma(vd_load(x + v), load_as_f64(dtype, p, i + v), vd_load(acc + v)));
  }
}

#define T             float
#define V             vf
#define LANES         VF_LANES
#define NAME(f)       f##_f32
#define LOAD          vf_load
#define STORE         vf_store
#define SPLAT         vf_splat
#define FMA           vf_fma
#define FMA_SCALAR    fmaf
#define TRANSPOSE_8X8 transpose_8x8
#include "kernels/isa/gemm_kernel.inc"
#undef T
#undef V
#undef LANES
#undef NAME
#undef LOAD
#undef STORE
#undef SPLAT
#undef FMA
#undef FMA_SCALAR
#undef TRANSPOSE_8X8

#define T             double
#define V             vd
#define LANES         VD_LANES
#define NAME(f)       f##_f64
#define LOAD          vd_load
#define STORE         vd_store
#define SPLAT         vd_splat
#define FMA           vd_fma
#define FMA_SCALAR    fma
#define TRANSPOSE_8X8 transpose_8x8_f64
#include "kernels/isa/gemm_kernel.inc"

static void pack_b(tn_dtype_t dtype, const void* b, int64_t b_row, int64_t b_col, int64_t depth,
                   int64_t cols, int panel, void* out) {
  switch (dtype) {  // constants, so that each gets its own code
    case TN_F64: pack_b_f64(TN_F64, b, b_row, b_col, depth, cols, panel, out); break;
    case TN_F16: pack_b_f32(TN_F16, b, b_row, b_col, depth, cols, panel, out); break;
    case TN_BF16: pack_b_f32(TN_BF16, b, b_row, b_col, depth, cols, panel, out); break;
    default: pack_b_f32(TN_F32, b, b_row, b_col, depth, cols, panel, out);
  }
}
static void pack_a(tn_dtype_t dtype, const void* a, int64_t a_row, int64_t a_col, int64_t rows,
                   int64_t depth, void* out) {
  switch (dtype) {
    case TN_F64: pack_a_f64(TN_F64, a, a_row, a_col, rows, depth, out); break;
    case TN_F16: pack_a_f32(TN_F16, a, a_row, a_col, rows, depth, out); break;
    case TN_BF16: pack_a_f32(TN_BF16, a, a_row, a_col, rows, depth, out); break;
    default: pack_a_f32(TN_F32, a, a_row, a_col, rows, depth, out);
  }
}

static void gemv(tn_dtype_t dtype, const tn_gemv_t* v) {
  switch (dtype) {
    case TN_F64: gemv_f64(TN_F64, v); break;
    case TN_F16: gemv_f32(TN_F16, v); break;
    case TN_BF16: gemv_f32(TN_BF16, v); break;
    default: gemv_f32(TN_F32, v);
  }
}

const tn_gemm_table_t TN_ISA_NAME(tn_gemm_table) = {
    .lanes_f32 = VF_LANES,
    .lanes_f64 = VD_LANES,
    .panel_vectors = {1, VECTORS_1, VECTORS_2, VECTORS_3, VECTORS_4, VECTORS_5, VECTORS_6},
    .pack_b = pack_b,
    .pack_a = pack_a,
    .gemv = gemv,
    .block_f32 = block_f32,
    .block_f64 = block_f64,
    .finish_f32 = finish_f32,
    .finish_f64 = finish_f64,
};
