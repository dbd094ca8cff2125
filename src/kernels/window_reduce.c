// The IR's generic windows: reduce_window by rows of the result, select_and_scatter by elements of the
// result.
#include <string.h>

#include "src/kernels/isa.h"
#include "src/kernels/isa/copy_table.h"
#include "src/kernels/isa/index_table.h"
#include "src/kernels/window.h"

TN_ISA_TABLES(tn_copy_table_t, tn_copy_table)
TN_ISA_TABLES(tn_index_table_t, tn_index_table)

enum { CHUNK = 128 };

typedef struct job {
  tn_reduce_kind_t kind;
  tn_view_t x, source, out;
  const tn_window_t* window;
  tn_dtype_t wide;  // type in which results accumulate
} job_t;

// f32 for small floats, 64 bits for integers: wrapping commutes with widening.
static tn_dtype_t wide_type(tn_dtype_t dtype) {
  switch (tn_dtype_class(dtype)) {
    case TN_CLASS_BOOL: return TN_BOOL;
    case TN_CLASS_SIGNED: return TN_I64;
    case TN_CLASS_UNSIGNED: return TN_U64;
    case TN_CLASS_FLOAT: return dtype == TN_F64 ? TN_F64 : TN_F32;
    default: return dtype;
  }
}
static tn_scalar_t identity(tn_reduce_kind_t kind, tn_dtype_t dtype) {
  const tn_dtype_class_t c = tn_dtype_class(dtype);
  const bool is_float = c == TN_CLASS_FLOAT;
  switch (kind) {
    case TN_REDUCE_PROD: return tn_scalar_from_double(dtype, 1);
    case TN_REDUCE_AND:
      return dtype == TN_BOOL ? (tn_scalar_t){.b = 1} : tn_scalar_from_int(dtype, -1);
    case TN_REDUCE_MAX:
      return is_float               ? tn_scalar_from_double(dtype, -__builtin_inf())
             : c == TN_CLASS_SIGNED ? tn_scalar_from_int(dtype, INT64_MIN)
                                    : (tn_scalar_t){0};
    case TN_REDUCE_MIN:
      return is_float               ? tn_scalar_from_double(dtype, __builtin_inf())
             : c == TN_CLASS_BOOL   ? (tn_scalar_t){.b = 1}
             : c == TN_CLASS_SIGNED ? tn_scalar_from_int(dtype, INT64_MAX)
                                    : tn_scalar_from_int(dtype, -1);
    default: return (tn_scalar_t){0};
  }
}

static int64_t floor_to(int64_t value) { return value > 0 ? value : 0; }

// Rows of the result, flattened over all dimensions but the last.
static void reduce_rows(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const job_t* job = context;
  const tn_view_t *x = &job->x, *out = &job->out;
  const tn_window_t* w = job->window;
  const tn_copy_table_t* copy = TN_ISA_PICK(tn_copy_table);
  const tn_combine_fn_t combine = TN_ISA_PICK(tn_index_table)->combine[job->kind][job->wide];
  const int last = out->rank - 1;
  const int64_t size = (int64_t)tn_dtype_size(x->dtype), wide = (int64_t)tn_dtype_size(job->wide);
  const tn_scalar_t start = identity(job->kind, job->wide);
  for (int64_t task = begin; task < end; ++task) {
    int64_t at[TN_MAX_RANK], rest = task, out_offset = 0;
    for (int i = last - 1; i >= 0; --i) {
      at[i] = rest % out->dims[i];
      rest /= out->dims[i];
      out_offset += at[i] * out->strides[i];
    }
    for (int64_t first = 0; first < out->dims[last]; first += CHUNK) {
      const int64_t n = out->dims[last] - first < CHUNK ? out->dims[last] - first : CHUNK;
      char sum[CHUNK * 16], stage[CHUNK * 16], converted[CHUNK * 16];
      for (int64_t i = 0; i < n; ++i) memcpy(sum + i * wide, &start, (size_t)wide);
      int64_t in[TN_MAX_RANK] = {0};
      for (;;) {  // positions in the window but for the last dimension
        int64_t offset = 0;
        bool is_inside = true;
        for (int i = 0; i < last && is_inside; ++i) {
          const int64_t position = at[i] * w->stride[i] + in[i] * w->window_dilation[i] - w->low[i];
          is_inside = position >= 0 && position % w->base_dilation[i] == 0 &&
                      position / w->base_dilation[i] < x->dims[i];
          offset += position / w->base_dilation[i] * x->strides[i];
        }
        for (int64_t tap = 0; is_inside && tap < w->size[last]; ++tap) {
          const int64_t base = w->base_dilation[last], step = w->stride[last];
          const int64_t shift = tap * w->window_dilation[last] - w->low[last];
          // Outputs of the chunk whose tap is an element; without holes they are one run.
          int64_t low = 0, high = n;
          if (base == 1) {
            if (first * step + shift < 0) low = (-(first * step + shift) + step - 1) / step;
            const int64_t room = x->dims[last] - 1 - (first * step + shift);
            high = room < 0 ? 0 : room / step + 1 < n ? room / step + 1 : n;
            if (high <= low) continue;
            const char* from =
                (const char*)x->data +
                (offset + (first * step + low * step + shift) * x->strides[last]) * size;
            const int64_t stride = step * x->strides[last] * size;
            const char* run = from;
            if (stride != size) {
              for (int64_t i = 0; i < high - low; ++i)
                memcpy(stage + i * size, from + i * stride, (size_t)size);
              run = stage;
            }
            if (job->wide != x->dtype) {
              copy->convert(x->dtype, run, job->wide, converted, high - low);
              run = converted;
            }
            combine(high - low, sum + low * wide, wide, run, wide);
          } else {
            for (int64_t i = 0; i < n; ++i) {
              const int64_t position = (first + i) * step + shift;
              if (position < 0 || position % base || position / base >= x->dims[last]) continue;
              copy->convert(
                  x->dtype,
                  (const char*)x->data + (offset + position / base * x->strides[last]) * size,
                  job->wide, converted, 1);
              combine(1, sum + i * wide, wide, converted, wide);
            }
          }
        }
        int i = last - 1;
        for (; i >= 0; --i) {
          if (++in[i] < w->size[i]) break;
          in[i] = 0;
        }
        if (i < 0) break;
      }
      copy->convert(job->wide, sum, out->dtype, stage, n);
      for (int64_t i = 0; i < n; ++i)
        memcpy((char*)out->data + (out_offset + (first + i) * out->strides[last]) * size,
               stage + i * size, (size_t)size);
    }
  }
}

// A rank-0 view as rank 1.
static tn_view_t at_least_one(const tn_view_t* view) {
  tn_view_t v = *view;
  if (v.rank == 0) v.rank = 1, v.dims[0] = 1, v.strides[0] = 1;
  return v;
}

void tn_window_reduce(tn_pool_t* pool, tn_reduce_kind_t kind, const tn_view_t* x,
                      const tn_window_t* window, const tn_view_t* out) {
  if (tn_view_element_count(out) == 0) return;
  static const tn_window_t one = {{1}, {1}, {0}, {0}, {1}, {1}};
  job_t job = {.kind = kind,
               .x = at_least_one(x),
               .out = at_least_one(out),
               .window = x->rank ? window : &one,
               .wide = wide_type(x->dtype)};
  int64_t rows = 1, cost = job.out.dims[job.out.rank - 1];
  for (int i = 0; i < job.out.rank; ++i) cost *= job.window->size[i];
  for (int i = 0; i < job.out.rank - 1; ++i) rows *= job.out.dims[i];
  tn_pool_run(rows * cost < 16 << 10 ? NULL : pool, rows, (16 << 10) / (cost + 1) + 1, reduce_rows,
              &job);
}

// ---- select and scatter -----------------------------------------------------------------------------------
static double load_real(const tn_view_t* view, int64_t offset) {
  const int64_t size = (int64_t)tn_dtype_size(view->dtype);
  tn_scalar_t value = {0};
  memcpy(&value, (const char*)view->data + offset * size, (size_t)size);
  return tn_scalar_to_double(view->dtype, value);
}

// The offset in x of the element that window |at| selects, or -1.
static int64_t selected(const job_t* job, const int64_t* at) {
  const tn_view_t* x = &job->x;
  const tn_window_t* w = job->window;
  int64_t in[TN_MAX_RANK] = {0}, chosen = -1;
  double best = 0;
  for (;;) {
    int64_t offset = 0, flat = 0;
    bool is_inside = true;
    for (int i = 0; i < x->rank && is_inside; ++i) {
      const int64_t position = at[i] * w->stride[i] + in[i] - w->low[i];
      is_inside = position >= 0 && position < x->dims[i];
      offset += position * x->strides[i];
      flat = flat * x->dims[i] + position;
    }
    if (is_inside) {
      const double value = load_real(x, offset);
      const bool beyond = job->kind == TN_REDUCE_MAX ? value > best : value < best;
      if (chosen < 0 || (best == best && (value != value || beyond))) best = value, chosen = flat;
    }
    int i = x->rank - 1;
    for (; i >= 0; --i) {
      if (++in[i] < w->size[i]) break;
      in[i] = 0;
    }
    if (i < 0) return chosen;
  }
}

// An element of the result asks every window that covers it, in row-major order; sums are rounded once.
static void select_elements(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const job_t* job = context;
  const tn_view_t *x = &job->x, *source = &job->source, *out = &job->out;
  const tn_window_t* w = job->window;
  const int64_t size = (int64_t)tn_dtype_size(out->dtype);
  const tn_combine_fn_t add = TN_ISA_PICK(tn_index_table)->combine[TN_REDUCE_SUM][job->wide];
  for (int64_t element = begin; element < end; ++element) {
    int64_t low[TN_MAX_RANK], high[TN_MAX_RANK], at[TN_MAX_RANK], rest = element, out_offset = 0;
    bool any = true;
    for (int i = x->rank - 1; i >= 0; --i) {
      const int64_t position = rest % x->dims[i];
      rest /= x->dims[i];
      out_offset += position * out->strides[i];
      const int64_t reach = position + w->low[i];
      low[i] = at[i] = floor_to(reach - w->size[i] + w->stride[i]) / w->stride[i];
      high[i] =
          reach / w->stride[i] + 1 < source->dims[i] ? reach / w->stride[i] + 1 : source->dims[i];
      any = any && low[i] < high[i] && reach >= 0;
    }
    tn_scalar_t sum = {0};
    while (any) {
      if (selected(job, at) == element) {
        int64_t offset = 0;
        for (int i = 0; i < x->rank; ++i) offset += at[i] * source->strides[i];
        tn_scalar_t value = {0};
        memcpy(&value, (const char*)source->data + offset * size, (size_t)size);
        value = tn_scalar_convert(job->wide, source->dtype, value);
        add(1, &sum, 16, &value, 16);
      }
      int i = x->rank - 1;
      for (; i >= 0; --i) {
        if (++at[i] < high[i]) break;
        at[i] = low[i];
      }
      any = i >= 0;
    }
    sum = tn_scalar_convert(out->dtype, job->wide, sum);
    memcpy((char*)out->data + out_offset * size, &sum, (size_t)size);
  }
}

void tn_window_select_and_scatter(tn_pool_t* pool, tn_reduce_kind_t kind, const tn_view_t* x,
                                  const tn_view_t* source, const tn_window_t* window,
                                  const tn_view_t* out) {
  static const tn_window_t one = {{1}, {1}, {0}, {0}, {1}, {1}};
  job_t job = {.kind = kind,
               .x = at_least_one(x),
               .source = at_least_one(source),
               .out = at_least_one(out),
               .window = x->rank ? window : &one,
               .wide = wide_type(x->dtype)};
  int64_t cost = 8;
  for (int i = 0; i < job.x.rank; ++i) cost *= job.window->size[i];
  const int64_t count = tn_view_element_count(&job.out);
  tn_pool_run(count * cost < 16 << 10 ? NULL : pool, count, (16 << 10) / cost + 1, select_elements,
              &job);
}
