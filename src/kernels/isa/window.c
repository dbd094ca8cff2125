// Pooling by rows of the output: every tap of the window is a loop along the row, so the compiler vectorizes
// it.
#include <math.h>
#include <string.h>

#include "src/kernels/isa/copy_table.h"
#include "src/kernels/isa/isa_names.h"
#include "src/kernels/isa/window_table.h"

extern const tn_copy_table_t TN_ISA_NAME(tn_copy_table);

enum { CHUNK = 256, SPAN = 1024 };  // outputs per piece of a row; elements of x converted at a time

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

// Outputs o in [*first, *last) of [begin, end) whose tap |o * stride + shift| lies in [0, size).
static inline void tap_range(int64_t begin, int64_t end, int64_t stride, int64_t shift,
                             int64_t size, int64_t* first, int64_t* last) {
  const int64_t low = shift < 0 ? (-shift + stride - 1) / stride : 0;
  const int64_t high = size - shift > 0 ? (size - shift - 1) / stride + 1 : 0;
  *first = max64(begin, low);
  *last = max64(*first, min64(end, high));
}

typedef struct row {
  int64_t plane, d, h;
} row_t;
static inline row_t row_of(int64_t task, const int64_t* size) {
  return (row_t){task / (size[0] * size[1]), task / size[1] % size[0], task % size[1]};
}

// ---- max --------------------------------------------------------------------------------------------------
// |LOAD|(position, count): the elements of x from |position| of the plane on, as const T*.
#define MAX_POOL(name, T, BITS, LOWEST, IS_NAN, DECLARE, LOAD, STORE)                        \
  static void name(const tn_window_call_t* call, int64_t begin, int64_t end) {               \
    const tn_pooling_t* s = &call->shape;                                                    \
    const int64_t plane_size = s->size[0] * s->size[1] * s->size[2], width = s->out_size[2], \
                  step = s->stride[2];                                                       \
    /* A piece's taps stay within SPAN elements. */                                          \
    const int64_t reach = (s->kernel[2] - 1) * s->dilation[2] + 1;                           \
    const int64_t piece = min64(CHUNK, reach < SPAN ? (SPAN - reach) / step + 1 : 1);        \
    for (int64_t task = begin; task < end; ++task) {                                         \
      const row_t r = row_of(task, s->out_size);                                             \
      for (int64_t start = 0; start < width; start += piece) {                               \
        const int64_t stop = min64(width, start + piece);                                    \
        T best[CHUNK];                                                                       \
        BITS at[CHUNK];                                                                      \
        for (int i = 0; i < CHUNK; ++i) best[i] = LOWEST, at[i] = -1;                        \
        for (int64_t kd = 0; kd < s->kernel[0]; ++kd) {                                      \
          const int64_t d = r.d * s->stride[0] - s->padding[0] + kd * s->dilation[0];        \
          if (d < 0 || d >= s->size[0]) continue;                                            \
          for (int64_t kh = 0; kh < s->kernel[1]; ++kh) {                                    \
            const int64_t h = r.h * s->stride[1] - s->padding[1] + kh * s->dilation[1];      \
            if (h < 0 || h >= s->size[1]) continue;                                          \
            const int64_t line = (d * s->size[1] + h) * s->size[2];                          \
            const int64_t left = start * step - s->padding[2];                               \
            const int64_t from = max64(0, left),                                             \
                          to = min64(s->size[2], left + (stop - start - 1) * step + reach);  \
            if (from >= to) continue;                                                        \
            DECLARE;                                                                         \
            if (reach > SPAN) { /* pieces of one output, element by element */               \
              for (int64_t i = left; i < left + reach; i += s->dilation[2]) {                \
                if (i < 0 || i >= s->size[2]) continue;                                      \
                const T v = *LOAD(T, r.plane * plane_size + line + i, 1);                    \
                if (((v > best[0]) | IS_NAN(v) | (at[0] < 0)) & !IS_NAN(best[0])) {          \
                  best[0] = v;                                                               \
                  at[0] = (BITS)(line + i);                                                  \
                }                                                                            \
              }                                                                              \
              continue;                                                                      \
            }                                                                                \
            const T* x = LOAD(T, r.plane * plane_size + line + from, to - from);             \
            for (int64_t kw = 0; kw < s->kernel[2]; ++kw) {                                  \
              int64_t first, last;                                                           \
              const int64_t shift = kw * s->dilation[2] - s->padding[2];                     \
              tap_range(start, stop, step, shift, s->size[2], &first, &last);                \
              const int64_t n = last - first;                                                \
              const T* tap = x + (first * step + shift - from);                              \
              T* restrict b = best + (first - start);                                        \
              BITS* restrict p = at + (first - start);                                       \
              const BITS place = (BITS)(line + first * step + shift);                        \
              if (step == 1) {                                                               \
                for (int64_t i = 0; i < n; ++i) {                                            \
                  const T v = tap[i];                                                        \
                  const BITS take =                                                          \
                      -(BITS)(((v > b[i]) | IS_NAN(v) | (p[i] < 0)) & !IS_NAN(b[i]));        \
                  b[i] = take ? v : b[i];                                                    \
                  p[i] = take ? (BITS)(place + (BITS)i) : p[i];                              \
                }                                                                            \
              } else {                                                                       \
                for (int64_t i = 0; i < n; ++i) {                                            \
                  const T v = tap[i * step];                                                 \
                  const BITS take =                                                          \
                      -(BITS)(((v > b[i]) | IS_NAN(v) | (p[i] < 0)) & !IS_NAN(b[i]));        \
                  b[i] = take ? v : b[i];                                                    \
                  p[i] = take ? (BITS)(place + (BITS)(i * step)) : p[i];                     \
                }                                                                            \
              }                                                                              \
            }                                                                                \
          }                                                                                  \
        }                                                                                    \
        STORE(T, task * width + start, best, stop - start);                                  \
        if (call->indices)                                                                   \
          for (int64_t i = 0; i < stop - start; ++i)                                         \
            call->indices[task * width + start + i] = at[i];                                 \
      }                                                                                      \
    }                                                                                        \
  }
#define NO_NAN(v)                       0
#define FLOAT_NAN(v)                    ((v) != (v))
#define LOAD_DIRECT(T, position, count) ((const T*)call->x + (position))
#define STORE_DIRECT(T, position, x, count) \
  memcpy((T*)call->out + (position), x, sizeof(T) * (size_t)(count))
#define DIRECT(name, T, BITS, LOWEST, IS_NAN) \
  MAX_POOL(name, T, BITS, LOWEST, IS_NAN, (void)0, LOAD_DIRECT, STORE_DIRECT)
DIRECT(max_f32, float, int32_t, -INFINITY, FLOAT_NAN)
DIRECT(max_f64, double, int64_t, -INFINITY, FLOAT_NAN)
DIRECT(max_i8, int8_t, int32_t, INT8_MIN, NO_NAN)
DIRECT(max_i16, int16_t, int32_t, INT16_MIN, NO_NAN)
DIRECT(max_i32, int32_t, int32_t, INT32_MIN, NO_NAN)
DIRECT(max_i64, int64_t, int64_t, INT64_MIN, NO_NAN)
DIRECT(max_u8, uint8_t, int32_t, 0, NO_NAN)

// bf16 and f16: a line of x at a time through f32.
static inline const float* load_line(const tn_window_call_t* call, int64_t position, int64_t count,
                                     float* stage) {
  const tn_dtype_t dtype = call->shape.dtype;
  if (dtype == TN_F32) return (const float*)call->x + position;
  TN_ISA_NAME(tn_copy_table)
      .convert(dtype, (const uint16_t*)call->x + position, TN_F32, stage, count);
  return stage;
}
static inline void store_line(const tn_window_call_t* call, int64_t position, const float* x,
                              int64_t count) {
  const tn_dtype_t dtype = call->shape.dtype;
  char* out = (char*)call->out + position * (dtype == TN_F32 ? 4 : 2);
  TN_ISA_NAME(tn_copy_table).convert(TN_F32, x, dtype, out, count);
}
#define LOAD_SMALL(T, position, count)     load_line(call, position, count, stage)
#define STORE_SMALL(T, position, x, count) store_line(call, position, x, count)
MAX_POOL(max_small, float, int32_t, -INFINITY, FLOAT_NAN, float stage[SPAN + CHUNK], LOAD_SMALL,
         STORE_SMALL)

// ---- average ----------------------------------------------------------------------------------------------
// Elements of output |o|'s window along an axis: with padding, or inside x.
static inline int64_t window_extent(const tn_pooling_t* s, int axis, int64_t o) {
  const int64_t start = o * s->stride[axis] - s->padding[axis];
  const int64_t stop = min64(start + s->kernel[axis], s->size[axis] + s->padding[axis]);
  return s->count_include_pad ? stop - start
                              : max64(0, min64(stop, s->size[axis]) - max64(start, 0));
}
static inline int64_t divisor_at(const tn_pooling_t* s, int64_t line_extent, int64_t w) {
  return s->divisor ? s->divisor : line_extent * window_extent(s, 2, w);
}

#define AVG_POOL(name, A, LOAD, STORE)                                                            \
  static void name(const tn_window_call_t* call, int64_t begin, int64_t end) {                    \
    const tn_pooling_t* s = &call->shape;                                                         \
    const int64_t plane_size = s->size[0] * s->size[1] * s->size[2], width = s->out_size[2],      \
                  step = s->stride[2];                                                            \
    const int64_t piece =                                                                         \
        min64(CHUNK, s->kernel[2] < SPAN ? (SPAN - s->kernel[2]) / step + 1 : 1);                 \
    for (int64_t task = begin; task < end; ++task) {                                              \
      const row_t r = row_of(task, s->out_size);                                                  \
      const int64_t extent = window_extent(s, 0, r.d) * window_extent(s, 1, r.h);                 \
      for (int64_t start = 0; start < width; start += piece) {                                    \
        const int64_t stop = min64(width, start + piece);                                         \
        A sum[CHUNK] = {0}, stage[SPAN + CHUNK];                                                  \
        for (int64_t kd = 0; kd < s->kernel[0]; ++kd) {                                           \
          const int64_t d = r.d * s->stride[0] - s->padding[0] + kd;                              \
          if (d < 0 || d >= s->size[0]) continue;                                                 \
          for (int64_t kh = 0; kh < s->kernel[1]; ++kh) {                                         \
            const int64_t h = r.h * s->stride[1] - s->padding[1] + kh;                            \
            if (h < 0 || h >= s->size[1]) continue;                                               \
            const int64_t line = r.plane * plane_size + (d * s->size[1] + h) * s->size[2];        \
            const int64_t left = start * step - s->padding[2];                                    \
            const int64_t low = max64(0, left);                                                   \
            const int64_t high =                                                                  \
                min64(s->size[2], left + (stop - start - 1) * step + s->kernel[2]);               \
            for (int64_t from = low; from < high;                                                 \
                 from += SPAN) { /* one piece, unless the window is huge */                       \
              const int64_t to = min64(high, from + SPAN);                                        \
              const A* x = LOAD;                                                                  \
              if (stop - start == 1) {                                                            \
                for (int64_t i = 0; i < to - from; ++i) sum[0] += x[i];                           \
                continue;                                                                         \
              }                                                                                   \
              for (int64_t kw = 0; kw < s->kernel[2]; ++kw) {                                     \
                int64_t first, last;                                                              \
                tap_range(start, stop, step, kw - s->padding[2], s->size[2], &first, &last);      \
                const int64_t n = last - first;                                                   \
                const A* tap = x + (first * step + kw - s->padding[2] - from);                    \
                A* restrict b = sum + (first - start);                                            \
                if (step == 1) {                                                                  \
                  for (int64_t i = 0; i < n; ++i) b[i] += tap[i];                                 \
                } else {                                                                          \
                  for (int64_t i = 0; i < n; ++i) b[i] += tap[i * step];                          \
                }                                                                                 \
              }                                                                                   \
            }                                                                                     \
          }                                                                                       \
        }                                                                                         \
        for (int64_t i = 0; i < stop - start; ++i) sum[i] /= (A)divisor_at(s, extent, start + i); \
        STORE;                                                                                    \
      }                                                                                           \
    }                                                                                             \
  }
AVG_POOL(avg_f32, float, load_line(call, line + from, to - from, stage),
         store_line(call, task* width + start, sum, stop - start))
AVG_POOL(avg_f64, double, ((void)stage, (const double*)call->x + line + from),
         memcpy((double*)call->out + task * width + start, sum,
                sizeof(double) * (size_t)(stop - start)))
static void avg_pool(const tn_window_call_t* call, int64_t begin, int64_t end) {
  (call->shape.dtype == TN_F64 ? avg_f64 : avg_f32)(call, begin, end);
}

// Outputs whose window covers position |i| of an axis.
static inline void covering(const tn_pooling_t* s, int axis, int64_t i, int64_t* first,
                            int64_t* last) {
  const int64_t at = i + s->padding[axis], low = at - s->kernel[axis] + 1;
  *first = low > 0 ? (low + s->stride[axis] - 1) / s->stride[axis] : 0;
  *last = min64(s->out_size[axis], at / s->stride[axis] + 1);
}
// Gathers: an element of dx sums the outputs that cover it, in row-major order, and rounds once.
#define AVG_BACKWARD(name, A, LOAD, STORE)                                                       \
  static void name(const tn_window_call_t* call, int64_t begin, int64_t end) {                   \
    const tn_pooling_t* s = &call->shape;                                                        \
    const int64_t out_plane = s->out_size[0] * s->out_size[1] * s->out_size[2],                  \
                  width = s->size[2];                                                            \
    for (int64_t task = begin; task < end; ++task) {                                             \
      const row_t r = row_of(task, s->size);                                                     \
      int64_t d0, d1, h0, h1;                                                                    \
      covering(s, 0, r.d, &d0, &d1);                                                             \
      covering(s, 1, r.h, &h0, &h1);                                                             \
      for (int64_t start = 0; start < width; start += CHUNK) {                                   \
        const int64_t stop = min64(width, start + CHUNK);                                        \
        A sum[CHUNK] = {0}, stage[CHUNK];                                                        \
        int64_t w0, w1, unused;                                                                  \
        covering(s, 2, start, &w0, &unused);                                                     \
        covering(s, 2, stop - 1, &unused, &w1);                                                  \
        for (int64_t d = d0; d < d1; ++d)                                                        \
          for (int64_t h = h0; h < h1; ++h)                                                      \
            for (int64_t w = w0; w < w1; w += CHUNK) {                                           \
              const int64_t n = min64(CHUNK, w1 - w);                                            \
              const int64_t line =                                                               \
                  r.plane * out_plane + (d * s->out_size[1] + h) * s->out_size[2] + w;           \
              const int64_t extent = window_extent(s, 0, d) * window_extent(s, 1, h);            \
              LOAD;                                                                              \
              for (int64_t i = 0; i < n; ++i) {                                                  \
                const A g = stage[i] / (A)divisor_at(s, extent, w + i);                          \
                const int64_t left = (w + i) * s->stride[2] - s->padding[2];                     \
                const int64_t low = max64(start, left), high = min64(stop, left + s->kernel[2]); \
                for (int64_t j = low; j < high; ++j) sum[j - start] += g;                        \
              }                                                                                  \
            }                                                                                    \
        STORE;                                                                                   \
      }                                                                                          \
    }                                                                                            \
  }
AVG_BACKWARD(avg_backward_f32, float,
             TN_ISA_NAME(tn_copy_table)
                 .convert(s->dtype, (const char*)call->x + line * (s->dtype == TN_F32 ? 4 : 2),
                          TN_F32, stage, n),
             store_line(call, task* width + start, sum, stop - start))
AVG_BACKWARD(avg_backward_f64, double,
             memcpy(stage, (const double*)call->x + line, sizeof(double) * (size_t)n),
             memcpy((double*)call->out + task * width + start, sum,
                    sizeof(double) * (size_t)(stop - start)))
static void avg_pool_backward(const tn_window_call_t* call, int64_t begin, int64_t end) {
  (call->shape.dtype == TN_F64 ? avg_backward_f64 : avg_backward_f32)(call, begin, end);
}

// ---- adaptive average -------------------------------------------------------------------------------------
// Sums of a line keep 16 partial sums, so that wide windows vectorize.
#define ADAPTIVE(name, A, LOAD, STORE)                                                           \
  static void name(const tn_window_call_t* call, int64_t begin, int64_t end) {                   \
    const tn_pooling_t* s = &call->shape;                                                        \
    const int64_t *in = s->size, *out = s->out_size, plane_size = in[0] * in[1] * in[2];         \
    for (int64_t plane = begin; plane < end; ++plane) {                                          \
      int64_t at = plane * out[0] * out[1] * out[2];                                             \
      for (int64_t d = 0; d < out[0]; ++d)                                                       \
        for (int64_t h = 0; h < out[1]; ++h)                                                     \
          for (int64_t w = 0; w < out[2]; ++w, ++at) {                                           \
            const int64_t d0 = d * in[0] / out[0], d1 = ((d + 1) * in[0] + out[0] - 1) / out[0]; \
            const int64_t h0 = h * in[1] / out[1], h1 = ((h + 1) * in[1] + out[1] - 1) / out[1]; \
            const int64_t w0 = w * in[2] / out[2], w1 = ((w + 1) * in[2] + out[2] - 1) / out[2]; \
            A lane[16] = {0}, stage[SPAN];                                                       \
            for (int64_t i = d0; i < d1; ++i)                                                    \
              for (int64_t j = h0; j < h1; ++j)                                                  \
                for (int64_t from = w0; from < w1; from += SPAN) {                               \
                  const int64_t n = min64(SPAN, w1 - from);                                      \
                  const int64_t line = plane * plane_size + (i * in[1] + j) * in[2] + from;      \
                  const A* x = LOAD;                                                             \
                  int64_t k = 0;                                                                 \
                  for (; k + 16 <= n; k += 16)                                                   \
                    for (int l = 0; l < 16; ++l) lane[l] += x[k + l];                            \
                  for (int l = 0; k < n; ++k, ++l) lane[l] += x[k];                              \
                }                                                                                \
            for (int half = 8; half > 0; half /= 2)                                              \
              for (int l = 0; l < half; ++l) lane[l] += lane[l + half];                          \
            lane[0] /= (A)((d1 - d0) * (h1 - h0) * (w1 - w0));                                   \
            STORE;                                                                               \
          }                                                                                      \
    }                                                                                            \
  }
ADAPTIVE(adaptive_f32, float, load_line(call, line, n, stage), store_line(call, at, lane, 1))
ADAPTIVE(adaptive_f64, double, ((void)stage, (const double*)call->x + line),
         ((double*)call->out)[at] = lane[0])
static void adaptive_avg_pool(const tn_window_call_t* call, int64_t begin, int64_t end) {
  (call->shape.dtype == TN_F64 ? adaptive_f64 : adaptive_f32)(call, begin, end);
}

const tn_window_table_t TN_ISA_NAME(tn_window_table) = {.max_pool = {[TN_I8] = max_i8,
                                                                     [TN_I16] = max_i16,
                                                                     [TN_I32] = max_i32,
                                                                     [TN_I64] = max_i64,
                                                                     [TN_U8] = max_u8,
                                                                     [TN_F16] = max_small,
                                                                     [TN_BF16] = max_small,
                                                                     [TN_F32] = max_f32,
                                                                     [TN_F64] = max_f64},
                                                        .avg_pool = avg_pool,
                                                        .avg_pool_backward = avg_pool_backward,
                                                        .adaptive_avg_pool = adaptive_avg_pool};
