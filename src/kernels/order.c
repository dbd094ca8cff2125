// Order along a dimension: the other dimensions are lines (or bands of neighbouring lines), which are the
// tasks.
#include "src/kernels/order.h"

#include <assert.h>

#include "src/kernels/isa.h"
#include "src/kernels/isa/order_table.h"

TN_ISA_TABLES(tn_order_table_t, tn_order_table)

// |lacks|: the outputs do not have the dimension.
static tn_order_call_t make_call(const tn_view_t* x, int dimension, const tn_view_t* values,
                                 const tn_view_t* positions, bool lacks, bool may_band) {
  const tn_view_t* views[3] = {x, values, positions};
  tn_order_call_t c = {.x = x,
                       .values = values,
                       .positions = positions,
                       .dimension = dimension,
                       .n = x->rank ? x->dims[dimension] : 1};
  for (int v = 0; v < 3; ++v) {
    if (!views[v]) continue;
    const int64_t size = (int64_t)tn_dtype_size(views[v]->dtype);
    if (x->rank && !(lacks && v > 0)) c.line_stride[v] = views[v]->strides[dimension] * size;
    int rank = 0;
    for (int i = 0; i < x->rank; ++i) {
      if (i == dimension) continue;
      c.dims[rank] = x->dims[i];
      c.strides[v][rank++] = views[v]->strides[lacks && v > 0 && i > dimension ? i - 1 : i] * size;
    }
    c.rank = rank;
  }
  if (c.rank == 0) c.rank = 1, c.dims[0] = 1;
  // Neighbouring dimensions that are one in all arrays merge, so that bands are long.
  for (int i = c.rank - 2; i >= 0; --i) {
    bool is_one = true;
    for (int v = 0; v < 3; ++v)
      is_one = is_one && (!views[v] || c.strides[v][i] == c.strides[v][i + 1] * c.dims[i + 1]);
    if (!is_one) continue;
    c.dims[i] *= c.dims[i + 1];
    for (int v = 0; v < 3; ++v) c.strides[v][i] = c.strides[v][i + 1];
    for (int j = i + 1; j < c.rank - 1; ++j) {
      c.dims[j] = c.dims[j + 1];
      for (int v = 0; v < 3; ++v) c.strides[v][j] = c.strides[v][j + 1];
    }
    --c.rank;
  }
  const int64_t size = (int64_t)tn_dtype_size(x->dtype);
  c.is_banded = may_band && c.strides[0][c.rank - 1] == size && c.dims[c.rank - 1] >= 8 &&
                c.line_stride[0] != size;
  c.band = c.is_banded ? TN_ORDER_BAND : 1;
  c.bands = (c.dims[c.rank - 1] + c.band - 1) / c.band;
  return c;
}

typedef struct job {
  tn_order_fn_t fn;
  const tn_order_call_t* call;
} job_t;
static void run_job(void* context, int64_t begin, int64_t end, int worker) {
  const job_t* job = context;
  job->fn(job->call, begin, end,
          job->call->workspace ? job->call->workspace + worker * job->call->scratch : NULL);
}
// |cost|: elements' worth of work per line.
static void run(tn_pool_t* pool, const tn_order_call_t* c, tn_order_fn_t fn, int64_t cost) {
  int64_t tasks = c->bands;
  for (int i = 0; i < c->rank - 1; ++i) tasks *= c->dims[i];
  const int64_t grain = (16 << 10) / (cost * c->band + 1) + 1;
  job_t job = {fn, c};
  tn_pool_run(tasks <= grain ? NULL : pool, tasks, grain, run_job, &job);
}
static int64_t extent(const tn_view_t* x, int dimension) {
  return x->rank ? x->dims[dimension] : 1;
}

size_t tn_order_sort_workspace(const tn_view_t* x, int dimension, int thread_count) {
  return (size_t)tn_order_scratch(x->dtype, extent(x, dimension)) *
         (size_t)(thread_count > 0 ? thread_count : 1);
}
void tn_order_sort(tn_pool_t* pool, const tn_view_t* x, int dimension, bool descending,
                   void* workspace, const tn_view_t* out_values, const tn_view_t* out_positions) {
  if (tn_view_element_count(x) == 0) return;
  tn_order_call_t c = make_call(x, dimension, out_values, out_positions, false, false);
  c.descending = descending;
  c.workspace = workspace;
  c.scratch = tn_order_scratch(x->dtype, c.n);
  run(pool, &c, TN_ISA_PICK(tn_order_table)->sort, c.n * 8);
}

size_t tn_order_topk_workspace(const tn_view_t* x, int dimension, int64_t count, int thread_count) {
  (void)count;
  return tn_order_sort_workspace(x, dimension, thread_count);
}
void tn_order_topk(tn_pool_t* pool, const tn_view_t* x, int dimension, int64_t count, bool largest,
                   void* workspace, const tn_view_t* out_values, const tn_view_t* out_positions) {
  if (tn_view_element_count(x) == 0 || count == 0) return;
  assert(count <= extent(x, dimension));
  tn_order_call_t c = make_call(x, dimension, out_values, out_positions, false, false);
  c.descending = largest;
  c.count = count;
  c.workspace = workspace;
  c.scratch = tn_order_scratch(x->dtype, c.n);
  run(pool, &c, TN_ISA_PICK(tn_order_table)->topk, c.n * 2);
}

void tn_order_arg_reduce(tn_pool_t* pool, tn_reduce_kind_t kind, const tn_view_t* x, int dimension,
                         const tn_view_t* out_values, const tn_view_t* out_positions) {
  if (tn_view_element_count(x) == 0) return;
  assert(kind == TN_REDUCE_MAX || kind == TN_REDUCE_MIN);
  tn_order_call_t c = make_call(x, dimension, out_values, out_positions, true, true);
  c.kind = kind;
  run(pool, &c, TN_ISA_PICK(tn_order_table)->arg_reduce, c.n);
}

void tn_order_scan(tn_pool_t* pool, tn_reduce_kind_t kind, const tn_view_t* x, int dimension,
                   bool reverse, bool exclusive, const tn_view_t* out,
                   const tn_view_t* out_positions) {
  if (tn_view_element_count(x) == 0) return;
  assert(!out_positions || ((kind == TN_REDUCE_MAX || kind == TN_REDUCE_MIN) && !exclusive));
  tn_order_call_t c = make_call(x, dimension, out, out_positions, false, out_positions == NULL);
  c.kind = kind;
  c.reverse = reverse;
  c.exclusive = exclusive;
  run(pool, &c, TN_ISA_PICK(tn_order_table)->scan, c.n * 2);
}
