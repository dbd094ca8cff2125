// Products of integers and complex numbers: plain loops, a row of results at a time in blocks of columns.
#include "kernels/gemm_plan.h"

enum { COLS = 64 };  // results accumulated together

static int64_t read_int(tn_dtype_t dtype, const void* p, int64_t i) {
  switch (dtype) {
    case TN_BOOL: return ((const uint8_t*)p)[i] != 0;
    case TN_U8: return ((const uint8_t*)p)[i];
    case TN_I8: return ((const int8_t*)p)[i];
    case TN_I16: return ((const int16_t*)p)[i];
    case TN_I32: return ((const int32_t*)p)[i];
    default: return ((const int64_t*)p)[i];
  }
}

static void write_int(tn_dtype_t dtype, void* p, int64_t i, uint64_t value) {
  switch (dtype) {
    case TN_U8: ((uint8_t*)p)[i] = (uint8_t)value; break;
    case TN_I8: ((int8_t*)p)[i] = (int8_t)value; break;
    case TN_I16: ((int16_t*)p)[i] = (int16_t)value; break;
    case TN_I32: ((int32_t*)p)[i] = (int32_t)value; break;
    default: ((int64_t*)p)[i] = (int64_t)value;
  }
}

// Sums of 64 bits wrap; their low bits are the sums of any narrower type.
static inline __attribute__((always_inline)) void int_sums(tn_dtype_t dtype, const tn_gemm_t* g,
                                                           int64_t a, int64_t b, int64_t count,
                                                           uint64_t* sum) {
  for (int64_t k = 0; k < g->k; ++k) {
    const uint64_t x = (uint64_t)read_int(dtype, g->a, a + k * g->a_col);
    const int64_t row = b + k * g->b_row;
    for (int64_t j = 0; j < count; ++j)
      sum[j] += x * (uint64_t)read_int(dtype, g->b, row + j * g->b_col);
  }
}

static void int_row(const tn_gemm_t* g, int64_t a, int64_t b, int64_t c, int64_t addend,
                    int64_t row) {
  for (int64_t j0 = 0; j0 < g->n; j0 += COLS) {
    const int64_t count = g->n - j0 < COLS ? g->n - j0 : COLS;
    uint64_t sum[COLS] = {0};
    const int64_t from = b + j0 * g->b_col;
    switch (g->dtype) {  // constants, so that each gets its own loop
      case TN_BOOL: int_sums(TN_BOOL, g, a, from, count, sum); break;
      case TN_U8: int_sums(TN_U8, g, a, from, count, sum); break;
      case TN_I8: int_sums(TN_I8, g, a, from, count, sum); break;
      case TN_I16: int_sums(TN_I16, g, a, from, count, sum); break;
      case TN_I32: int_sums(TN_I32, g, a, from, count, sum); break;
      default: int_sums(TN_I64, g, a, from, count, sum);
    }
    for (int64_t j = 0; j < count; ++j) {
      uint64_t v = sum[j];
      if (g->addend)
        v += (uint64_t)read_int(g->out_dtype, g->addend, addend + (j0 + j) * g->addend_col);
      if (g->bias) v += (uint64_t)read_int(g->out_dtype, g->bias, (j0 + j) * g->bias_stride);
      if (g->row_bias) v += (uint64_t)read_int(g->out_dtype, g->row_bias, row * g->row_bias_stride);
      write_int(g->out_dtype, g->c, c + (j0 + j) * g->c_col, v);
    }
  }
}

// re = fma(-a.im, b.im, fma(a.re, b.re, re)); im = fma(a.im, b.re, fma(a.re, b.im, im)).
#define COMPLEX_ROW(T, FMA, name)                                                              \
  static void name(const tn_gemm_t* g, int64_t a, int64_t b, int64_t c, int64_t addend,        \
                   int64_t row) {                                                              \
    const T *pa = g->a, *pb = g->b, *pd = g->addend, *bias = g->bias, *row_bias = g->row_bias; \
    T* out = g->c;                                                                             \
    const T alpha = (T)(g->alpha == 0 ? 1 : g->alpha), beta = (T)g->beta;                      \
    for (int64_t j = 0; j < g->n; ++j) {                                                       \
      T re = 0, im = 0;                                                                        \
      for (int64_t k0 = 0; k0 < g->k; k0 += TN_GEMM_BLOCK) {                                   \
        const int64_t k1 = g->k - k0 < TN_GEMM_BLOCK ? g->k : k0 + TN_GEMM_BLOCK;              \
        T block_re = 0, block_im = 0;                                                          \
        for (int64_t k = k0; k < k1; ++k) {                                                    \
          const T* x = pa + 2 * (a + k * g->a_col);                                            \
          const T* y = pb + 2 * (b + k * g->b_row + j * g->b_col);                             \
          block_re = FMA(-x[1], y[1], FMA(x[0], y[0], block_re));                              \
          block_im = FMA(x[1], y[0], FMA(x[0], y[1], block_im));                               \
        }                                                                                      \
        re = k0 ? re + block_re : block_re;                                                    \
        im = k0 ? im + block_im : block_im;                                                    \
      }                                                                                        \
      re *= alpha, im *= alpha;                                                                \
      if (pd) {                                                                                \
        const T* d = pd + 2 * (addend + j * g->addend_col);                                    \
        re = FMA(beta, d[0], re), im = FMA(beta, d[1], im);                                    \
      }                                                                                        \
      if (bias) re += bias[2 * j * g->bias_stride], im += bias[2 * j * g->bias_stride + 1];    \
      if (row_bias)                                                                            \
        re += row_bias[2 * row * g->row_bias_stride],                                          \
            im += row_bias[2 * row * g->row_bias_stride + 1];                                  \
      out[2 * (c + j * g->c_col)] = re;                                                        \
      out[2 * (c + j * g->c_col) + 1] = im;                                                    \
    }                                                                                          \
  }
COMPLEX_ROW(float, __builtin_fmaf, c64_row)
COMPLEX_ROW(double, __builtin_fma, c128_row)

void tn_gemm_plain_rows(const tn_gemm_t* g, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const int64_t i = row % g->m;
    int64_t rest = row / g->m, a = i * g->a_row, b = 0, c = i * g->c_row,
            addend = i * g->addend_row;
    for (int d = g->batch_rank - 1; d >= 0; --d) {
      const int64_t position = rest % g->batch_dims[d];
      rest /= g->batch_dims[d];
      a += position * g->a_batch[d];
      b += position * g->b_batch[d];
      c += position * g->c_batch[d];
      addend += position * g->addend_batch[d];
    }
    if (g->dtype == TN_C64) {
      c64_row(g, a, b, c, addend, i);
    } else if (g->dtype == TN_C128) {
      c128_row(g, a, b, c, addend, i);
    } else {
      int_row(g, a, b, c, addend, i);
    }
  }
}
