// Pooling, and the IR's generic windows.
#include "src/kernels/window.h"

#include <assert.h>
#include <string.h>

#include "src/kernels/copy.h"
#include "src/kernels/isa.h"
#include "src/kernels/isa/copy_table.h"
#include "src/kernels/isa/index_table.h"
#include "src/kernels/isa/window_table.h"

TN_ISA_TABLES(tn_window_table_t, tn_window_table)
TN_ISA_TABLES(tn_copy_table_t, tn_copy_table)
TN_ISA_TABLES(tn_index_table_t, tn_index_table)

typedef struct job {
  tn_window_fn_t fn;
  const tn_window_call_t* call;
} job_t;
static void run_job(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const job_t* job = context;
  job->fn(job->call, begin, end);
}
// |cost|: elements touched per task.
static void run(tn_pool_t* pool, int64_t tasks, int64_t cost, tn_window_fn_t fn,
                const tn_window_call_t* call) {
  const int64_t grain = (16 << 10) / (cost + 1) + 1;
  if (tasks <= grain) pool = NULL;
  job_t job = {fn, call};
  tn_pool_run(pool, tasks, grain, run_job, &job);
}

// The same pooling with three spatial dimensions.
static tn_window_call_t make_call(const tn_pooling_t* shape, const void* x, void* out,
                                  int64_t* indices) {
  tn_window_call_t call = {.shape = *shape, .x = x, .out = out, .indices = indices};
  tn_pooling_t* s = &call.shape;
  const int missing = 3 - shape->spatial;
  s->spatial = 3;
  for (int i = 0; i < 3; ++i) {
    const bool has = i >= missing;
    const int from = has ? i - missing : 0;
    s->size[i] = has ? shape->size[from] : 1;
    s->out_size[i] = has ? shape->out_size[from] : 1;
    s->kernel[i] = has ? shape->kernel[from] : 1;
    s->stride[i] = has ? shape->stride[from] : 1;
    s->padding[i] = has ? shape->padding[from] : 0;
    s->dilation[i] = has && shape->dilation[from] > 0 ? shape->dilation[from] : 1;
  }
  return call;
}
static int64_t plane_size(const int64_t* size) { return size[0] * size[1] * size[2]; }

void tn_window_max_pool(tn_pool_t* pool, const tn_pooling_t* shape, const void* x, void* out,
                        int64_t* out_indices) {
  const tn_window_call_t call = make_call(shape, x, out, out_indices);
  const tn_pooling_t* s = &call.shape;
  assert(TN_ISA_PICK(tn_window_table)->max_pool[s->dtype]);
  run(pool, s->planes * s->out_size[0] * s->out_size[1], s->out_size[2] * plane_size(s->kernel),
      TN_ISA_PICK(tn_window_table)->max_pool[s->dtype], &call);
}
void tn_window_avg_pool(tn_pool_t* pool, const tn_pooling_t* shape, const void* x, void* out) {
  const tn_window_call_t call = make_call(shape, x, out, NULL);
  const tn_pooling_t* s = &call.shape;
  run(pool, s->planes * s->out_size[0] * s->out_size[1], s->out_size[2] * plane_size(s->kernel),
      TN_ISA_PICK(tn_window_table)->avg_pool, &call);
}
void tn_window_avg_pool_backward(tn_pool_t* pool, const tn_pooling_t* shape, const void* dout,
                                 void* out_dx) {
  const tn_window_call_t call = make_call(shape, dout, out_dx, NULL);
  const tn_pooling_t* s = &call.shape;
  run(pool, s->planes * s->size[0] * s->size[1], s->size[2] * 4,
      TN_ISA_PICK(tn_window_table)->avg_pool_backward, &call);
}

// ---- planes: scatter of maxima, adaptive windows ----------------------------------------------------------
static void max_backward_planes(const tn_window_call_t* call, int64_t begin, int64_t end) {
  const tn_pooling_t* s = &call->shape;
  const int64_t size = plane_size(s->size), outputs = plane_size(s->out_size),
                bytes = (int64_t)tn_dtype_size(s->dtype);
  const tn_combine_fn_t add = TN_ISA_PICK(tn_index_table)->combine[TN_REDUCE_SUM][s->dtype];
  for (int64_t plane = begin; plane < end; ++plane) {
    char* dx = (char*)call->out + plane * size * bytes;
    const char* dout = (const char*)call->x + plane * outputs * bytes;
    const int64_t* at = call->indices + plane * outputs;
    memset(dx, 0, (size_t)(size * bytes));
    if (s->dtype == TN_F32) {
      for (int64_t i = 0; i < outputs; ++i)
        if (at[i] >= 0 && at[i] < size)
          ((float*)(void*)dx)[at[i]] += ((const float*)(const void*)dout)[i];
    } else {
      for (int64_t i = 0; i < outputs; ++i)
        if (at[i] >= 0 && at[i] < size) add(1, dx + at[i] * bytes, bytes, dout + i * bytes, bytes);
    }
  }
}
void tn_window_max_pool_backward(tn_pool_t* pool, const tn_pooling_t* shape, const void* dout,
                                 const int64_t* indices, void* out_dx) {
  const tn_window_call_t call = make_call(shape, dout, out_dx, (int64_t*)(uintptr_t)indices);
  run(pool, shape->planes, plane_size(call.shape.size) + plane_size(call.shape.out_size),
      max_backward_planes, &call);
}

void tn_window_adaptive_avg_pool(tn_pool_t* pool, const tn_pooling_t* shape, const void* x,
                                 void* out) {
  const tn_window_call_t call = make_call(shape, x, out, NULL);
  run(pool, shape->planes, plane_size(call.shape.size),
      TN_ISA_PICK(tn_window_table)->adaptive_avg_pool, &call);
}

static int64_t adaptive_start(int64_t i, int64_t size, int64_t out) { return i * size / out; }
static int64_t adaptive_stop(int64_t i, int64_t size, int64_t out) {
  return ((i + 1) * size + out - 1) / out;
}
// Every adaptive window: calls |BODY| with o (position of the output in the plane) and the ranges of x.
#define FOR_ADAPTIVE(...)                                                                          \
  int64_t o = 0;                                                                                   \
  for (int64_t d = 0; d < out[0]; ++d)                                                             \
    for (int64_t h = 0; h < out[1]; ++h)                                                           \
      for (int64_t w = 0; w < out[2]; ++w, ++o) {                                                  \
        const int64_t d0 = adaptive_start(d, in[0], out[0]), d1 = adaptive_stop(d, in[0], out[0]); \
        const int64_t h0 = adaptive_start(h, in[1], out[1]), h1 = adaptive_stop(h, in[1], out[1]); \
        const int64_t w0 = adaptive_start(w, in[2], out[2]), w1 = adaptive_stop(w, in[2], out[2]); \
        __VA_ARGS__                                                                                \
      }

static double load_real(tn_dtype_t dtype, const char* x, int64_t i) {
  switch (dtype) {
    case TN_F32: return ((const float*)(const void*)x)[i];
    case TN_F64: return ((const double*)(const void*)x)[i];
    default: {
      tn_scalar_t value = {0};
      memcpy(&value, x + i * (int64_t)tn_dtype_size(dtype), tn_dtype_size(dtype));
      return tn_scalar_to_double(dtype, value);
    }
  }
}
static void adaptive_max_planes(const tn_window_call_t* call, int64_t begin, int64_t end) {
  const tn_pooling_t* s = &call->shape;
  const int64_t *in = s->size, *out = s->out_size, size = plane_size(in),
                bytes = (int64_t)tn_dtype_size(s->dtype);
  for (int64_t plane = begin; plane < end; ++plane) {
    const char* x = (const char*)call->x + plane * size * bytes;
    char* to = (char*)call->out + plane * plane_size(out) * bytes;
    FOR_ADAPTIVE({
      double best = 0;
      int64_t at = -1;
      for (int64_t i = d0; i < d1; ++i)
        for (int64_t j = h0; j < h1; ++j)
          for (int64_t k = w0; k < w1; ++k) {
            const int64_t place = (i * in[1] + j) * in[2] + k;
            const double value = load_real(s->dtype, x, place);
            if (at < 0 || (best == best && (value > best || value != value)))
              best = value, at = place;
          }
      if (at < 0) continue;
      memcpy(to + o * bytes, x + at * bytes, (size_t)bytes);
      if (call->indices) call->indices[plane * plane_size(out) + o] = at;
    })
  }
}
void tn_window_adaptive_max_pool(tn_pool_t* pool, const tn_pooling_t* shape, const void* x,
                                 void* out, int64_t* out_indices) {
  const tn_window_call_t call = make_call(shape, x, out, out_indices);
  run(pool, shape->planes, plane_size(call.shape.size) * 2, adaptive_max_planes, &call);
}

static void adaptive_backward_planes(const tn_window_call_t* call, int64_t begin, int64_t end) {
  const tn_pooling_t* s = &call->shape;
  const int64_t *in = s->size, *out = s->out_size, size = plane_size(in),
                bytes = (int64_t)tn_dtype_size(s->dtype);
  const tn_combine_fn_t add = TN_ISA_PICK(tn_index_table)->combine[TN_REDUCE_SUM][s->dtype];
  for (int64_t plane = begin; plane < end; ++plane) {
    char* dx = (char*)call->out + plane * size * bytes;
    const char* dout = (const char*)call->x + plane * plane_size(out) * bytes;
    memset(dx, 0, (size_t)(size * bytes));
    FOR_ADAPTIVE({
      const double count = (double)((d1 - d0) * (h1 - h0) * (w1 - w0));
      // In the compute type, so that f32 divides as f32.
      const double g = load_real(s->dtype, dout, o);
      const double share = s->dtype == TN_F64 ? g / count : (double)((float)g / (float)count);
      const tn_scalar_t value = tn_scalar_from_double(s->dtype, share);
      for (int64_t i = d0; i < d1; ++i)
        for (int64_t j = h0; j < h1; ++j)
          add(w1 - w0, dx + ((i * in[1] + j) * in[2] + w0) * bytes, bytes, &value, 0);
    })
  }
}
void tn_window_adaptive_avg_pool_backward(tn_pool_t* pool, const tn_pooling_t* shape,
                                          const void* dout, void* out_dx) {
  const tn_window_call_t call = make_call(shape, dout, out_dx, NULL);
  run(pool, shape->planes, plane_size(call.shape.size) * 2, adaptive_backward_planes, &call);
}
