#include "kernels/gemm.h"

#include <string.h>

#include "kernels/gemm_plan.h"

TN_ISA_TABLES(tn_gemm_table_t, tn_gemm_table)

typedef struct tn_gemm_run {
  const tn_gemm_plan_t* plan;
  const tn_gemm_table_t* table;
  char* shared_b;
  char* slice_sums;
  char* per_thread;
  size_t per_thread_size;
  int64_t batch_index;  // when B is shared: the batch now running, else -1
} tn_gemm_run_t;

typedef struct tn_gemm_offsets {
  int64_t a, b, c, addend;
} tn_gemm_offsets_t;

static tn_gemm_offsets_t batch_offsets(const tn_gemm_t* g, int64_t index) {
  tn_gemm_offsets_t at = {0};
  for (int i = g->batch_rank - 1; i >= 0; --i) {
    const int64_t position = index % g->batch_dims[i];
    index /= g->batch_dims[i];
    at.a += position * g->a_batch[i];
    at.b += position * g->b_batch[i];
    at.c += position * g->c_batch[i];
    at.addend += position * g->addend_batch[i];
  }
  return at;
}

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

static const char* at_const(const void* base, int64_t index, size_t size) {
  return (const char*)base + index * (int64_t)size;
}

static tn_gemm_finish_t finish_at(const tn_gemm_plan_t* p, const tn_gemm_offsets_t* at, int64_t i0,
                                  int64_t j0) {
  const tn_gemm_t* g = &p->g;
  const size_t size = tn_dtype_size(g->out_dtype);
  tn_gemm_finish_t f = {.dtype = g->out_dtype,
                        .activation = g->activation,
                        .row_bias_first = p->is_transposed,
                        .alpha = g->alpha,
                        .beta = g->beta,
                        .out_row = g->c_row,
                        .out_col = g->c_col,
                        .addend_row = g->addend_row,
                        .addend_col = g->addend_col,
                        .bias_stride = g->bias_stride,
                        .row_bias_stride = g->row_bias_stride};
  f.out = (char*)g->c + (at->c + i0 * g->c_row + j0 * g->c_col) * (int64_t)size;
  if (g->addend)
    f.addend = at_const(g->addend, at->addend + i0 * g->addend_row + j0 * g->addend_col, size);
  if (g->bias) f.bias = at_const(g->bias, j0 * g->bias_stride, size);
  if (g->row_bias) f.row_bias = at_const(g->row_bias, i0 * g->row_bias_stride, size);
  return f;
}

// The rows and columns of one task: where its sums go and how A is read.
typedef struct tn_gemm_task {
  tn_gemm_offsets_t at;
  int64_t i0, j0;
  tn_gemm_block_t block;  // of the whole task
  char* b_packed;
} tn_gemm_task_t;

static void* sum_at(const tn_gemm_plan_t* p, const tn_gemm_block_t* block, int64_t j) {
  return block->sum == NULL ? NULL : (char*)block->sum + j * p->element;
}

// m = 1: B is read where it lies.
static void run_row(const tn_gemm_run_t* run, const tn_gemm_task_t* task, const char* a,
                    const char* b, bool is_last) {
  const tn_gemm_t* g = &run->plan->g;
  const tn_gemm_block_t* block = &task->block;
  const tn_gemv_t row = {.cols = block->cols,
                         .depth = block->depth,
                         .a = a,
                         .a_col = g->a_col,
                         .b = b,
                         .b_row = g->b_row,
                         .b_col = g->b_col,
                         .sum = block->sum};
  run->table->gemv(g->dtype, &row);
  if (!is_last || block->finish_is_plain) return;
  const tn_gemm_finish_t finish = finish_at(run->plan, &task->at, task->i0, task->j0);
  if (g->dtype == TN_F64) {
    run->table->finish_f64(&finish, block->sum, block->sum_row, 1, block->cols);
  } else {
    run->table->finish_f32(&finish, block->sum, block->sum_row, 1, block->cols);
  }
}

// One block of k of a task, in chunks of columns.
static void run_depth(const tn_gemm_run_t* run, const tn_gemm_task_t* task, int64_t k,
                      const char* b, bool is_last) {
  const tn_gemm_plan_t* p = run->plan;
  const tn_gemm_t* g = &p->g;
  const size_t in_size = tn_dtype_size(g->dtype), element = (size_t)p->element;
  const int64_t panels = (g->n + p->panel - 1) / p->panel;
  for (int64_t j = 0; j < task->block.cols; j += p->chunk_cols) {
    tn_gemm_block_t block = task->block;
    block.cols = min_i64(p->chunk_cols, task->block.cols - j);
    block.sum = sum_at(p, &task->block, j);
    if (p->packs_b) {
      block.b_panel = block.depth * p->panel;
      block.b_row = p->panel;
      block.b_is_padded = true;
      block.b = task->b_packed;
      if (p->shares_b) {
        block.b = run->shared_b +
                  (size_t)(k * panels * p->panel + (task->j0 + j) * block.depth) * element;
      } else {
        run->table->pack_b(g->dtype, b + j * g->b_col * (int64_t)in_size, g->b_row, g->b_col,
                           block.depth, block.cols, p->panel, task->b_packed);
      }
    } else {
      block.b = b + j * g->b_col * (int64_t)in_size;
      block.b_panel = p->panel;
      block.b_row = g->b_row;
    }
    tn_gemm_finish_t finish;
    if (is_last) {
      finish = finish_at(p, &task->at, task->i0, task->j0 + j);
      block.finish = &finish;
    }
    (g->dtype == TN_F64 ? run->table->block_f64 : run->table->block_f32)(&block);
  }
}

// One task: rows [i0, i0 + block_rows) x cols [j0, ..) of batch |batch|, over k slice |slice|.
static void run_block(const tn_gemm_run_t* run, int64_t batch, int64_t slice, int64_t i0,
                      int64_t j0, int worker) {
  const tn_gemm_plan_t* p = run->plan;
  const tn_gemm_t* g = &p->g;
  const size_t in_size = tn_dtype_size(g->dtype), element = (size_t)p->element;
  char* a_packed = run->per_thread + (size_t)worker * run->per_thread_size;
  tn_gemm_task_t task = {
      .at = batch_offsets(g, batch), .i0 = i0, .j0 = j0, .b_packed = a_packed + p->a_size};
  tn_gemm_block_t* block = &task.block;
  block->rows = min_i64(p->block_rows, g->m - i0);
  block->cols = min_i64(p->block_cols, g->n - j0);
  block->panel = p->panel;
  if (p->slices > 1) {
    const int64_t first = ((slice * p->batch + batch) * g->m + i0) * g->n + j0;
    block->sum = run->slice_sums + (size_t)first * element;
    block->sum_row = g->n;
  } else if (p->sums_in_c) {
    block->sum = (char*)g->c + (task.at.c + i0 * g->c_row + j0 * g->c_col) * p->element;
    block->sum_row = g->c_row;
    block->finish_is_plain = g->alpha == 1.0f && !g->bias && !g->row_bias && !g->activation;
  } else if (p->sums_in_scratch) {
    block->sum = task.b_packed + p->b_size;
    block->sum_row = (p->block_cols + p->panel - 1) / p->panel * p->panel;
  }
  const int64_t k_begin = slice * p->slice_length, k_end = min_i64(g->k, k_begin + p->slice_length);
  int64_t k = k_begin;
  do {
    block->depth = p->is_row ? k_end - k : min_i64(TN_GEMM_BLOCK, k_end - k);
    block->accumulate = k > k_begin;
    const bool is_last = k + block->depth >= k_end && p->slices == 1;
    const char* a = at_const(g->a, task.at.a + i0 * g->a_row + k * g->a_col, in_size);
    const char* b = at_const(g->b, task.at.b + k * g->b_row + j0 * g->b_col, in_size);
    if (p->is_row) {
      run_row(run, &task, a, b, is_last);
    } else {
      if (p->packs_a) {
        run->table->pack_a(g->dtype, a, g->a_row, g->a_col, block->rows, block->depth, a_packed);
        block->a = a_packed;
        block->a_tile = block->depth;
        block->a_row = 1;
        block->a_col = 0;
      } else {
        block->a = a;
        block->a_tile = g->a_row;
        block->a_row = g->a_col == 1 ? g->a_row : 1;
        block->a_col = g->a_col;
      }
      run_depth(run, &task, k, b, is_last);
    }
    k += block->depth;
  } while (k < k_end);
}

static void run_tasks(void* context, int64_t begin, int64_t end, int worker) {
  const tn_gemm_run_t* run = context;
  const tn_gemm_plan_t* p = run->plan;
  for (int64_t task = begin; task < end; ++task) {
    // Column blocks vary fastest but for shared B, where a panel block is reused by all rows.
    int64_t rest = task;
    const int64_t col = rest % p->col_blocks;
    rest /= p->col_blocks;
    const int64_t row = rest % p->row_blocks;
    rest /= p->row_blocks;
    const int64_t slice = rest % p->slices;
    const int64_t batch = run->batch_index >= 0 ? run->batch_index : rest / p->slices;
    run_block(run, batch, slice, row * p->block_rows, col * p->block_cols, worker);
  }
}

// Task: one panel of B over one block of k.
static void pack_shared_b(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const tn_gemm_run_t* run = context;
  const tn_gemm_plan_t* p = run->plan;
  const tn_gemm_t* g = &p->g;
  const size_t in_size = tn_dtype_size(g->dtype);
  const int64_t panels = (g->n + p->panel - 1) / p->panel,
                offset = batch_offsets(g, run->batch_index).b;
  for (int64_t task = begin; task < end;) {
    // Neighbouring panels of one block of k at once, so that rows of B are read in longer runs.
    const int64_t k = task / panels * TN_GEMM_BLOCK, j = task % panels * p->panel;
    const int64_t count = min_i64(end - task, panels - task % panels);
    const int64_t depth = min_i64(TN_GEMM_BLOCK, g->k - k);
    char* out = run->shared_b + (size_t)(k * panels * p->panel + j * depth) * (size_t)p->element;
    run->table->pack_b(g->dtype, at_const(g->b, offset + k * g->b_row + j * g->b_col, in_size),
                       g->b_row, g->b_col, depth, min_i64(count * p->panel, g->n - j), p->panel,
                       out);
    task += count;
  }
}

// Task: one row of the flattened [batch, m]: adds its slices in order.
static void combine_slices(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const tn_gemm_run_t* run = context;
  const tn_gemm_plan_t* p = run->plan;
  const tn_gemm_t* g = &p->g;
  const int64_t total = p->batch * g->m * g->n;
  for (int64_t row = begin; row < end; ++row) {
    const tn_gemm_offsets_t at = batch_offsets(g, row / g->m);
    const tn_gemm_finish_t finish = finish_at(p, &at, row % g->m, 0);
    if (p->element == 8) {
      double* sum = (double*)run->slice_sums + row * g->n;
      for (int64_t s = 1; s < p->slices; ++s) {
        for (int64_t j = 0; j < g->n; ++j) sum[j] += sum[s * total + j];
      }
      run->table->finish_f64(&finish, sum, g->n, 1, g->n);
    } else {
      float* sum = (float*)run->slice_sums + row * g->n;
      for (int64_t s = 1; s < p->slices; ++s) {
        for (int64_t j = 0; j < g->n; ++j) sum[j] += sum[s * total + j];
      }
      run->table->finish_f32(&finish, sum, g->n, 1, g->n);
    }
  }
}

static void run_plain(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  tn_gemm_plain_rows(context, begin, end);
}

static bool is_real(tn_dtype_t dtype) {
  return dtype == TN_F32 || dtype == TN_F64 || dtype == TN_F16 || dtype == TN_BF16;
}

bool tn_gemm_supports(tn_dtype_t dtype, tn_dtype_t out_dtype) {
  switch (dtype) {
    case TN_F16:
    case TN_BF16: return out_dtype == dtype || out_dtype == TN_F32;
    case TN_F32:
    case TN_F64:
    case TN_C64:
    case TN_C128: return out_dtype == dtype;
    case TN_BOOL:
    case TN_I8:
    case TN_I16:
    case TN_I32:
    case TN_I64:
    case TN_U8:
      return (out_dtype == dtype && dtype != TN_BOOL) ||
             ((out_dtype == TN_I32 || out_dtype == TN_I64) &&
              tn_dtype_size(out_dtype) >= tn_dtype_size(dtype));
    default: return false;
  }
}

size_t tn_gemm_workspace(const tn_gemm_t* gemm, int thread_count) {
  if (!is_real(gemm->dtype)) return 0;
  tn_gemm_plan_t p;
  tn_gemm_plan(gemm, thread_count, TN_ISA_PICK(tn_gemm_table), &p);
  const size_t per_thread = p.a_size + p.b_size + p.scratch_size;
  return p.shared_b_size + p.slice_size + per_thread * (size_t)(p.is_serial ? 1 : thread_count);
}

void tn_gemm_run(const tn_gemm_t* gemm, tn_pool_t* pool, void* workspace) {
  if (!is_real(gemm->dtype)) {
    int64_t rows = gemm->m;
    for (int i = 0; i < gemm->batch_rank; ++i) rows *= gemm->batch_dims[i];
    if (rows == 0 || gemm->n == 0) return;
    tn_gemm_t g = *gemm;
    const int64_t work = gemm->n * (gemm->k + 1);
    tn_pool_run(pool, rows, work > 65536 ? 1 : 65536 / work + 1, run_plain, &g);
    return;
  }
  tn_gemm_plan_t p;
  tn_gemm_run_t run = {.plan = &p, .table = TN_ISA_PICK(tn_gemm_table), .batch_index = -1};
  tn_gemm_plan(gemm, pool ? tn_pool_thread_count(pool) : 1, run.table, &p);
  if (p.batch == 0 || p.g.m == 0 || p.g.n == 0) return;
  if (p.is_serial) pool = NULL;
  run.shared_b = workspace;
  run.slice_sums = run.shared_b + p.shared_b_size;
  run.per_thread = run.slice_sums + p.slice_size;
  run.per_thread_size = p.a_size + p.b_size + p.scratch_size;
  const int64_t tasks = p.row_blocks * p.col_blocks * p.slices;
  if (p.shares_b) {
    const int64_t packs =
        (p.g.n + p.panel - 1) / p.panel * ((p.g.k + TN_GEMM_BLOCK - 1) / TN_GEMM_BLOCK);
    for (run.batch_index = 0; run.batch_index < p.batch; ++run.batch_index) {
      tn_pool_run(pool, packs, 4, pack_shared_b, &run);
      tn_pool_run(pool, tasks, p.grain, run_tasks, &run);
    }
  } else {
    tn_pool_run(pool, p.batch * tasks, p.grain, run_tasks, &run);
  }
  if (p.slices > 1)
    tn_pool_run(pool, p.batch * p.g.m, 4096 / (p.g.n * p.slices) + 1, combine_slices, &run);
}
