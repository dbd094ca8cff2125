#include "kernels/conv.h"

#include <string.h>

#include "kernels/gemm.h"

enum {
  TILE_BYTES = 192 << 10,  // an unfolded tile stays in L2 beside the weights
  WEIGHT_SLICES = 8,       // partial gradients of the weight that are summed in order
};

typedef struct conv {
  const tn_conv_shape_t* shape;
  size_t element;
  int64_t plane, out_plane;  // elements of one channel of x and y
  int64_t taps;              // elements of a window
  int64_t rows;              // of the unfolded matrix: channels of a group times taps
  int64_t group_c, group_o;
  int64_t tile;  // output positions unfolded at a time
  int64_t size[3], out_size[3], window[3], stride[3], low[3], dilation[3];  // as three dimensions
  size_t tile_bytes, gemm_bytes, worker_bytes;
  // operands
  const char *a, *b, *bias;
  char *out, *workspace;
  int64_t slices;
} conv_t;

static size_t aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static conv_t describe(const tn_conv_shape_t* shape) {
  conv_t c = {.shape = shape, .element = tn_dtype_size(shape->dtype), .plane = 1, .out_plane = 1, .taps = 1};
  const int lead = 3 - shape->spatial;
  for (int d = 0; d < 3; ++d) {
    const int from = d - lead;
    c.size[d] = from < 0 ? 1 : shape->size[from];
    c.out_size[d] = from < 0 ? 1 : shape->out_size[from];
    c.window[d] = from < 0 ? 1 : shape->window[from];
    c.stride[d] = from < 0 ? 1 : shape->stride[from];
    c.low[d] = from < 0 ? 0 : shape->low[from];
    c.dilation[d] = from < 0 ? 1 : shape->dilation[from];
    c.plane *= c.size[d];
    c.out_plane *= c.out_size[d];
    c.taps *= c.window[d];
  }
  c.group_c = shape->c / shape->groups;
  c.group_o = shape->o / shape->groups;
  c.rows = c.group_c * c.taps;
  const int64_t fitting = TILE_BYTES / (int64_t)(c.element * (size_t)(c.rows > 0 ? c.rows : 1));
  c.tile = fitting < 64 ? 64 : fitting;
  if (c.tile > c.out_plane) c.tile = c.out_plane;
  c.tile_bytes = aligned((size_t)(c.rows * c.tile) * c.element);
  return c;
}

// First and last output position along the innermost dimension whose tap lies inside x.
static void inside(const conv_t* c, int64_t tap, int64_t* out_begin, int64_t* out_end) {
  const int64_t first = c->low[2] - tap * c->dilation[2], stride = c->stride[2];
  int64_t begin = first <= 0 ? 0 : (first + stride - 1) / stride;
  int64_t end = (c->size[2] + first + stride - 1) / stride;
  if (end > c->out_size[2]) end = c->out_size[2];
  if (end < 0) end = 0;
  if (begin > end) begin = end;
  *out_begin = begin;
  *out_end = end;
}

// Calls |visit| for each run of output positions within [begin, end) of one row of the unfolded matrix: |count|
// positions from |at| (in the tile) read x from |source| on with the stride; |source| is -1 for padding.
#define TN_CONV_WALK(T, COPY, PAD)                                                                               \
  for (int64_t channel = 0; channel < c->group_c; ++channel)                                                     \
    for (int64_t t0 = 0; t0 < c->window[0]; ++t0)                                                                \
      for (int64_t t1 = 0; t1 < c->window[1]; ++t1)                                                              \
        for (int64_t t2 = 0; t2 < c->window[2]; ++t2, row += width) {                                            \
          int64_t in_begin, in_end;                                                                              \
          inside(c, t2, &in_begin, &in_end);                                                                     \
          int64_t position = begin;                                                                              \
          while (position < end) {                                                                               \
            const int64_t line = position / c->out_size[2], from = position % c->out_size[2];                    \
            const int64_t left = end - position, room = c->out_size[2] - from;                                   \
            const int64_t to = from + (left < room ? left : room);                                               \
            const int64_t i1 = line % c->out_size[1] * c->stride[1] - c->low[1] + t1 * c->dilation[1];           \
            const int64_t i0 = line / c->out_size[1] * c->stride[0] - c->low[0] + t0 * c->dilation[0];           \
            T* cell = row + (position - begin) - from;                                                           \
            if (i0 < 0 || i0 >= c->size[0] || i1 < 0 || i1 >= c->size[1]) {                                      \
              PAD(from, to)                                                                                      \
            } else {                                                                                             \
              const int64_t low = in_begin < from ? from : in_begin > to ? to : in_begin;                        \
              const int64_t high = in_end > to ? to : in_end < low ? low : in_end;                               \
              const int64_t base = channel * c->plane + (i0 * c->size[1] + i1) * c->size[2] - c->low[2] +        \
                                   t2 * c->dilation[2];                                                          \
              PAD(from, low) COPY(low, high) PAD(high, to)                                                       \
            }                                                                                                    \
            position += to - from;                                                                               \
          }                                                                                                      \
        }

#define TN_CONV_UNFOLD(T)                                                                                        \
  static void unfold_##T(const conv_t* c, const T* x, int64_t begin, int64_t end, T* row) {                      \
    const int64_t width = end - begin;                                                                           \
    TN_CONV_WALK(T, TN_UNFOLD_COPY, TN_UNFOLD_PAD)                                                               \
  }                                                                                                              \
  static void fold_##T(const conv_t* c, T* x, int64_t begin, int64_t end, const T* first) {                      \
    const int64_t width = end - begin;                                                                           \
    const T* row = first;                                                                                        \
    TN_CONV_WALK(const T, TN_FOLD_ADD, TN_FOLD_PAD)                                                              \
  }
#define TN_UNFOLD_COPY(from_, to_)                                                                \
  if (c->stride[2] == 1) {                                                                        \
    for (int64_t p = (from_); p < (to_); ++p) cell[p] = x[base + p];                              \
  } else {                                                                                        \
    for (int64_t p = (from_); p < (to_); ++p) cell[p] = x[base + p * c->stride[2]];               \
  }
#define TN_UNFOLD_PAD(from_, to_) \
  for (int64_t p = (from_); p < (to_); ++p) cell[p] = 0;
#define TN_FOLD_ADD(from_, to_) \
  for (int64_t p = (from_); p < (to_); ++p) x[base + p * c->stride[2]] += cell[p];
#define TN_FOLD_PAD(from_, to_)

TN_CONV_UNFOLD(float)
TN_CONV_UNFOLD(double)

static void unfold(const conv_t* c, const void* x, int64_t begin, int64_t end, void* out) {
  if (c->shape->dtype == TN_F64) {
    unfold_double(c, x, begin, end, out);
  } else {
    unfold_float(c, x, begin, end, out);
  }
}

static void fold(const conv_t* c, void* x, int64_t begin, int64_t end, const void* columns) {
  if (c->shape->dtype == TN_F64) {
    fold_double(c, x, begin, end, columns);
  } else {
    fold_float(c, x, begin, end, columns);
  }
}

// A 1x1 window with stride 1 and no padding: x itself is the unfolded matrix.
static bool is_pointwise(const conv_t* c) {
  for (int d = 0; d < 3; ++d)
    if (c->window[d] != 1 || c->stride[d] != 1 || c->low[d] != 0 || c->size[d] != c->out_size[d]) return false;
  return true;
}

// ---- forward ------------------------------------------------------------------------------------------------

// y [o, p] = weight [o, k] * columns [k, p]
static tn_gemm_t forward_product(const conv_t* c, int64_t width, int64_t column_stride) {
  tn_gemm_t gemm = {.dtype = c->shape->dtype, .out_dtype = c->shape->dtype, .m = c->group_o, .n = width, .k = c->rows};
  gemm.a_row = c->rows;
  gemm.a_col = 1;
  gemm.b_row = column_stride;
  gemm.b_col = 1;
  gemm.c_row = c->out_plane;
  gemm.c_col = 1;
  gemm.row_bias_stride = 1;
  return gemm;
}

size_t tn_conv_forward_workspace(const tn_conv_shape_t* shape, int thread_count) {
  const conv_t c = describe(shape);
  const tn_gemm_t gemm = forward_product(&c, c.tile, c.tile);
  return (size_t)thread_count * (c.tile_bytes + aligned(tn_gemm_workspace(&gemm, 1)));
}

static void forward_task(void* context, int64_t begin, int64_t end, int worker) {
  const conv_t* c = context;
  char* columns = c->workspace + (size_t)worker * c->worker_bytes;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t image = task / c->shape->groups, group = task % c->shape->groups;
    const char* x = c->a + (size_t)((image * c->shape->c + group * c->group_c) * c->plane) * c->element;
    for (int64_t at = 0; at < c->out_plane; at += c->tile) {
      const int64_t width = at + c->tile < c->out_plane ? c->tile : c->out_plane - at;
      const bool direct = is_pointwise(c);
      if (!direct) unfold(c, x, at, at + width, columns);
      tn_gemm_t gemm = forward_product(c, width, direct ? c->plane : width);
      gemm.a = c->b + (size_t)(group * c->group_o * c->rows) * c->element;
      gemm.b = direct ? x + (size_t)at * c->element : columns;
      gemm.c = c->out + (size_t)((image * c->shape->o + group * c->group_o) * c->out_plane + at) * c->element;
      gemm.row_bias = c->bias ? c->bias + (size_t)(group * c->group_o) * c->element : NULL;
      tn_gemm_run(&gemm, NULL, columns + c->tile_bytes);
    }
  }
}

void tn_conv_forward(tn_pool_t* pool, const tn_conv_shape_t* shape, const void* x, const void* weight,
                     const void* bias, void* workspace, void* out_y) {
  conv_t c = describe(shape);
  if (c.out_plane == 0 || c.group_o == 0) return;
  const tn_gemm_t gemm = forward_product(&c, c.tile, c.tile);
  c.worker_bytes = c.tile_bytes + aligned(tn_gemm_workspace(&gemm, 1));
  c.a = x;
  c.b = weight;
  c.bias = bias;
  c.out = out_y;
  c.workspace = workspace;
  tn_pool_run(pool, shape->n * shape->groups, 1, forward_task, &c);
}

// ---- gradient of the input ------------------------------------------------------------------------------------

// columns [k, p] = weight^T [k, o] * grad [o, p]
static tn_gemm_t input_product(const conv_t* c, int64_t width) {
  tn_gemm_t gemm = {.dtype = c->shape->dtype, .out_dtype = c->shape->dtype, .m = c->rows, .n = width, .k = c->group_o};
  gemm.a_row = 1;
  gemm.a_col = c->rows;
  gemm.b_row = c->out_plane;
  gemm.b_col = 1;
  gemm.c_row = width;
  gemm.c_col = 1;
  return gemm;
}

size_t tn_conv_backward_input_workspace(const tn_conv_shape_t* shape, int thread_count) {
  const conv_t c = describe(shape);
  const tn_gemm_t gemm = input_product(&c, c.tile);
  return (size_t)thread_count * (c.tile_bytes + aligned(tn_gemm_workspace(&gemm, 1)));
}

static void input_task(void* context, int64_t begin, int64_t end, int worker) {
  const conv_t* c = context;
  char* columns = c->workspace + (size_t)worker * c->worker_bytes;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t image = task / c->shape->groups, group = task % c->shape->groups;
    char* dx = c->out + (size_t)((image * c->shape->c + group * c->group_c) * c->plane) * c->element;
    memset(dx, 0, (size_t)(c->group_c * c->plane) * c->element);
    for (int64_t at = 0; at < c->out_plane; at += c->tile) {
      const int64_t width = at + c->tile < c->out_plane ? c->tile : c->out_plane - at;
      tn_gemm_t gemm = input_product(c, width);
      gemm.a = c->b + (size_t)(group * c->group_o * c->rows) * c->element;
      gemm.b = c->a + (size_t)((image * c->shape->o + group * c->group_o) * c->out_plane + at) * c->element;
      gemm.c = columns;
      tn_gemm_run(&gemm, NULL, columns + c->tile_bytes);
      fold(c, dx, at, at + width, columns);
    }
  }
}

void tn_conv_backward_input(tn_pool_t* pool, const tn_conv_shape_t* shape, const void* grad, const void* weight,
                            void* workspace, void* out_dx) {
  conv_t c = describe(shape);
  const tn_gemm_t gemm = input_product(&c, c.tile);
  c.worker_bytes = c.tile_bytes + aligned(tn_gemm_workspace(&gemm, 1));
  c.a = grad;
  c.b = weight;
  c.out = out_dx;
  c.workspace = workspace;
  tn_pool_run(pool, shape->n * shape->groups, 1, input_task, &c);
}

// ---- gradient of the weight -----------------------------------------------------------------------------------

// dweight [o, k] += grad [o, p] * columns^T [p, k]
static tn_gemm_t weight_product(const conv_t* c, int64_t width) {
  tn_gemm_t gemm = {.dtype = c->shape->dtype, .out_dtype = c->shape->dtype, .m = c->group_o, .n = c->rows, .k = width};
  gemm.a_row = c->out_plane;
  gemm.a_col = 1;
  gemm.b_row = 1;
  gemm.b_col = width;
  gemm.c_row = c->rows;
  gemm.c_col = 1;
  gemm.addend_row = c->rows;
  gemm.addend_col = 1;
  gemm.beta = 1;
  return gemm;
}

static int64_t slices_of(const tn_conv_shape_t* shape) { return shape->n < WEIGHT_SLICES ? shape->n : WEIGHT_SLICES; }

static size_t weight_bytes(const conv_t* c) { return aligned((size_t)(c->shape->o * c->rows) * c->element); }

size_t tn_conv_backward_weight_workspace(const tn_conv_shape_t* shape, int thread_count) {
  const conv_t c = describe(shape);
  const tn_gemm_t gemm = weight_product(&c, c.tile);
  return (size_t)thread_count * (c.tile_bytes + aligned(tn_gemm_workspace(&gemm, 1))) +
         (size_t)slices_of(shape) * weight_bytes(&c);
}

// Task: one slice of the images, one group. Partial gradients stand before the workers' tiles.
static void weight_task(void* context, int64_t begin, int64_t end, int worker) {
  const conv_t* c = context;
  char* columns = c->workspace + (size_t)c->slices * weight_bytes(c) + (size_t)worker * c->worker_bytes;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t slice = task / c->shape->groups, group = task % c->shape->groups;
    char* partial = c->workspace + (size_t)slice * weight_bytes(c) + (size_t)(group * c->group_o * c->rows) * c->element;
    memset(partial, 0, (size_t)(c->group_o * c->rows) * c->element);
    const int64_t first = slice * c->shape->n / c->slices, last = (slice + 1) * c->shape->n / c->slices;
    for (int64_t image = first; image < last; ++image) {
      const char* x = c->b + (size_t)((image * c->shape->c + group * c->group_c) * c->plane) * c->element;
      for (int64_t at = 0; at < c->out_plane; at += c->tile) {
        const int64_t width = at + c->tile < c->out_plane ? c->tile : c->out_plane - at;
        unfold(c, x, at, at + width, columns);
        tn_gemm_t gemm = weight_product(c, width);
        gemm.a = c->a + (size_t)((image * c->shape->o + group * c->group_o) * c->out_plane + at) * c->element;
        gemm.b = columns;
        gemm.c = partial;
        gemm.addend = partial;
        tn_gemm_run(&gemm, NULL, columns + c->tile_bytes);
      }
    }
  }
}

void tn_conv_backward_weight(tn_pool_t* pool, const tn_conv_shape_t* shape, const void* grad, const void* x,
                             void* workspace, void* out_dweight) {
  conv_t c = describe(shape);
  const size_t bytes = (size_t)(shape->o * c.rows) * c.element;
  memset(out_dweight, 0, bytes);
  const tn_gemm_t gemm = weight_product(&c, c.tile);
  c.worker_bytes = c.tile_bytes + aligned(tn_gemm_workspace(&gemm, 1));
  c.slices = slices_of(shape);
  c.a = grad;
  c.b = x;
  c.workspace = workspace;
  if (c.slices == 0 || c.out_plane == 0) return;
  tn_pool_run(pool, c.slices * shape->groups, 1, weight_task, &c);
  for (int64_t slice = 0; slice < c.slices; ++slice) {
    const char* partial = c.workspace + (size_t)slice * weight_bytes(&c);
    const int64_t count = shape->o * c.rows;
    if (shape->dtype == TN_F64) {
      for (int64_t i = 0; i < count; ++i) ((double*)out_dweight)[i] += ((const double*)partial)[i];
    } else {
      for (int64_t i = 0; i < count; ++i) ((float*)out_dweight)[i] += ((const float*)partial)[i];
    }
  }
}
