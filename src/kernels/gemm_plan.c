#include "kernels/gemm_plan.h"

// Rows and columns of a task of a large product: A's packed block (96 x 256 x 4 B = 96 KiB) stays in L2 beside the
// panel of B and the sums it touches.
enum { BLOCK_ROWS = 96, BLOCK_COLS = 512, CHUNK_PANELS = 4 };

int64_t tn_gemm_slice_length(tn_dtype_t dtype, int64_t outputs, int64_t k) {
  if (!tn_dtype_is_float(dtype) || outputs > 4096 || k < 2048) return k;
  // Few results cannot occupy the pool by themselves: at most 16 slices, each at least two blocks.
  const int64_t blocks = (k + TN_GEMM_BLOCK - 1) / TN_GEMM_BLOCK;
  int64_t slices = blocks / 2 < 16 ? blocks / 2 : 16;
  return (blocks + slices - 1) / slices * TN_GEMM_BLOCK;
}

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static size_t round_64(size_t size) { return (size + 63) & ~(size_t)63; }

static void swap_i64(int64_t* a, int64_t* b) {
  const int64_t t = *a;
  *a = *b;
  *b = t;
}

// c^T = b^T @ a^T
static void transpose(tn_gemm_t* g) {
  const tn_gemm_t old = *g;
  g->m = old.n;
  g->n = old.m;
  g->a = old.b;
  g->b = old.a;
  for (int i = 0; i < TN_GEMM_BATCH; ++i) swap_i64(&g->a_batch[i], &g->b_batch[i]);
  g->a_row = old.b_col;
  g->a_col = old.b_row;
  g->b_row = old.a_col;
  g->b_col = old.a_row;
  swap_i64(&g->c_row, &g->c_col);
  swap_i64(&g->addend_row, &g->addend_col);
  g->bias = old.row_bias;
  g->bias_stride = old.row_bias_stride;
  g->row_bias = old.bias;
  g->row_bias_stride = old.bias_stride;
}

// Drops batch loops of extent 1, merges neighbours, and takes a batch into m where B does not depend on it.
static void normalize_batch(tn_gemm_t* g) {
  int rank = 0;
  for (int i = 0; i < g->batch_rank; ++i) {
    if (g->batch_dims[i] == 1) continue;
    g->batch_dims[rank] = g->batch_dims[i];
    g->a_batch[rank] = g->a_batch[i];
    g->b_batch[rank] = g->b_batch[i];
    g->c_batch[rank] = g->c_batch[i];
    g->addend_batch[rank] = g->beta != 0 ? g->addend_batch[i] : 0;
    const int64_t d = g->batch_dims[rank];
    const int last = rank - 1;
    if (rank > 0 && g->a_batch[last] == g->a_batch[rank] * d &&
        g->b_batch[last] == g->b_batch[rank] * d && g->c_batch[last] == g->c_batch[rank] * d &&
        g->addend_batch[last] == g->addend_batch[rank] * d) {
      g->batch_dims[last] *= d;
      g->a_batch[last] = g->a_batch[rank];
      g->b_batch[last] = g->b_batch[rank];
      g->c_batch[last] = g->c_batch[rank];
      g->addend_batch[last] = g->addend_batch[rank];
    } else {
      ++rank;
    }
  }
  g->batch_rank = rank;
  const bool is_row = g->m == 1 || g->n == 1;  // summed in another order
  while (g->batch_rank > 0 && !is_row) {
    const int i = g->batch_rank - 1;
    if (g->b_batch[i] != 0 || g->row_bias_stride != 0) break;
    if (g->a_batch[i] != g->a_row * g->m || g->c_batch[i] != g->c_row * g->m ||
        (g->beta != 0 && g->addend_batch[i] != g->addend_row * g->m)) {
      break;
    }
    g->m *= g->batch_dims[i];
    --g->batch_rank;
  }
}

static bool wants_transpose(const tn_gemm_t* g) {
  if (g->m == 1 || g->n == 1) return g->m != 1;
  if (g->c_row == 1 && g->c_col != 1) return true;
  if (g->c_col != 1) return false;
  return false;
}

void tn_gemm_plan(const tn_gemm_t* gemm, int thread_count, const tn_gemm_table_t* table,
                  tn_gemm_plan_t* p) {
  *p = (tn_gemm_plan_t){.g = *gemm};
  tn_gemm_t* g = &p->g;
  if (g->alpha == 0) g->alpha = 1;
  // Pointers are unknown when the workspace is sized: beta tells whether there is an addend.
  if (g->beta == 0) g->addend = NULL, g->addend_row = g->addend_col = 0;
  p->batch = 1;
  for (int i = 0; i < g->batch_rank; ++i) p->batch *= g->batch_dims[i];
  const int64_t outputs = p->batch * g->m * g->n;
  p->slice_length = tn_gemm_slice_length(g->dtype, outputs, g->k);
  p->slices = g->k ? ceil_div(g->k, p->slice_length) : 1;
  if (outputs == 0) return;
  p->is_row = g->m == 1 || g->n == 1;
  normalize_batch(g);
  if (wants_transpose(g)) {
    p->is_transposed = true;
    transpose(g);
    normalize_batch(g);
  }
  p->batch = 1;
  for (int i = 0; i < g->batch_rank; ++i) p->batch *= g->batch_dims[i];

  const bool is_f64 = g->dtype == TN_F64, is_small = g->dtype == TN_F16 || g->dtype == TN_BF16;
  p->element = is_f64 ? 8 : 4;
  const int lanes = is_f64 ? table->lanes_f64 : table->lanes_f32;
  const int64_t k_block = min_i64(g->k, TN_GEMM_BLOCK);
  const bool is_one_block = p->slice_length <= TN_GEMM_BLOCK && p->slices == 1;

  // Cut rows and columns.
  const int tall = (int)(tn_gemm_tiles(g->m).base + (tn_gemm_tiles(g->m).extra > 0));
  int vectors = table->panel_vectors[tall];
  if (g->n < vectors * lanes) vectors = (int)ceil_div(g->n, lanes);
  p->panel = vectors * lanes;
  const double flops = 2.0 * (double)outputs * (double)g->k;
  int64_t rows = BLOCK_ROWS, cols = BLOCK_COLS;
  p->is_serial = thread_count == 1 || flops < 4e5;
  if (!p->is_serial && p->batch < 4 * thread_count) {  // enough tasks to balance
    while (p->batch * ceil_div(g->m, rows) * ceil_div(g->n, cols) < 4 * thread_count &&
           (rows > 24 || cols > 64)) {
      if (cols > 128 || rows <= 24) {
        cols /= 2;
      } else {
        rows /= 2;
      }
      if (flops / (double)(p->batch * ceil_div(g->m, rows) * ceil_div(g->n, cols)) < 5e5) break;
    }
  }
  p->row_blocks = ceil_div(g->m, rows);
  p->block_rows = ceil_div(ceil_div(g->m, TN_GEMM_TILE_ROWS), p->row_blocks) * TN_GEMM_TILE_ROWS;
  if (p->block_rows > g->m) p->block_rows = g->m;
  p->row_blocks = ceil_div(g->m, p->block_rows);
  p->col_blocks = ceil_div(g->n, cols);
  p->block_cols = ceil_div(ceil_div(g->n, p->panel), p->col_blocks) * p->panel;
  p->col_blocks = ceil_div(g->n, p->block_cols);

  // Pack what the tiles cannot read well where it lies.
  const bool a_fits = !is_small && (g->a_col == 1 || (g->a_row == 1 && g->a_col != 0));
  const bool b_fits = !is_small && g->b_col == 1;
  p->packs_a = !p->is_row && (!a_fits || (g->n > 256 && g->m > 12 && g->k > 64) ||
                              (g->a_col != 1 && g->n > 16 && g->k * g->a_col > 16384));
  p->packs_b = !p->is_row &&
               (!b_fits || g->n < lanes || (g->m > 24 && g->k * g->n * p->element > 48 * 1024));
  p->shares_b = p->packs_b && p->row_blocks > 1 && p->slices == 1;

  const bool is_plain = g->beta == 0;
  p->sums_in_c =
      p->slices == 1 && g->out_dtype == (is_f64 ? TN_F64 : TN_F32) && g->c_col == 1 && is_plain;
  p->sums_in_scratch = p->slices == 1 && !p->sums_in_c && (!is_one_block || p->is_row);
  const int64_t tasks = p->batch * p->row_blocks * p->col_blocks;
  const double task_flops = flops / (double)tasks;
  p->grain = task_flops > 2e5 ? 1 : (int64_t)(2e5 / (task_flops + 1)) + 1;

  const size_t element = (size_t)p->element;
  const int64_t padded = ceil_div(p->block_cols, p->panel) * p->panel;
  if (p->shares_b)
    p->shared_b_size = round_64((size_t)(g->k * ceil_div(g->n, p->panel) * p->panel) * element);
  if (p->slices > 1)
    p->slice_size = round_64((size_t)(p->slices * p->batch * g->m * g->n) * element);
  if (p->packs_a)
    p->a_size = round_64((size_t)(p->block_rows * k_block + TN_GEMM_PACK_SLACK) * element);
  p->chunk_cols = p->block_cols;
  if (p->packs_b && !p->shares_b) {
    p->chunk_cols = min_i64(padded, CHUNK_PANELS * p->panel);
    p->b_size = round_64((size_t)(p->chunk_cols * k_block) * element);
  }
  if (p->sums_in_scratch) p->scratch_size = round_64((size_t)(p->block_rows * padded) * element);
}
