// Strided copies: normalise the index space to few dimensions, then run the fitting inner loop over tasks.
#include "src/kernels/copy.h"

#include <assert.h>
#include <string.h>

#include "src/kernels/isa.h"
#include "src/kernels/isa/copy_table.h"

TN_ISA_TABLES(tn_copy_table_t, tn_copy_table)

enum {
  TASK_BYTES = 128 << 10,  // worth waking a worker for
  CHUNK = 32 << 10,        // elements of one long row per task
  TILE = 256,              // side of a transposed block per task
  STAGE_ROWS = 32,
  STAGE_COLUMNS = 64,  // block that converts through the stack
};

typedef struct copy_plan {
  const tn_copy_table_t* table;
  tn_dtype_t from, to;
  int64_t from_size, to_size;
  const char* x;
  char* out;
  int rank;                                                     // >= 1
  int64_t dims[TN_MAX_RANK], xs[TN_MAX_RANK], os[TN_MAX_RANK];  // strides in bytes, outermost first
  // Rows: the last dimension in |chunks| pieces. Transposes: the last two dimensions in |chunks| = tiles.
  bool is_transpose;
  int64_t chunk, chunks, tiles_across;
} copy_plan_t;

static void swap_dims(copy_plan_t* p, int a, int b) {
  int64_t t;
  t = p->dims[a], p->dims[a] = p->dims[b], p->dims[b] = t;
  t = p->xs[a], p->xs[a] = p->xs[b], p->xs[b] = t;
  t = p->os[a], p->os[a] = p->os[b], p->os[b] = t;
}

// Drops extents of 1, turns the destination's strides positive, orders by them, merges neighbours. False:
// nothing to do.
static bool normalise(copy_plan_t* p, const tn_view_t* x, const tn_view_t* out) {
  int rank = 0;
  for (int i = 0; i < out->rank; ++i) {
    assert(x->dims[i] == out->dims[i]);
    if (out->dims[i] == 0) return false;
    if (out->dims[i] == 1) continue;
    p->dims[rank] = out->dims[i];
    p->xs[rank] = x->strides[i] * p->from_size;
    p->os[rank] = out->strides[i] * p->to_size;
    if (p->os[rank] < 0) {
      p->x += (p->dims[rank] - 1) * p->xs[rank];
      p->out += (p->dims[rank] - 1) * p->os[rank];
      p->xs[rank] = -p->xs[rank];
      p->os[rank] = -p->os[rank];
    }
    ++rank;
  }
  for (int i = 1; i < rank; ++i)
    for (int j = i; j > 0 && p->os[j - 1] < p->os[j]; --j) swap_dims(p, j - 1, j);
  int kept = 0;
  for (int i = 1; i < rank; ++i) {
    if (p->xs[kept] == p->xs[i] * p->dims[i] && p->os[kept] == p->os[i] * p->dims[i]) {
      p->dims[kept] *= p->dims[i], p->xs[kept] = p->xs[i], p->os[kept] = p->os[i];
    } else {
      ++kept;
      p->dims[kept] = p->dims[i], p->xs[kept] = p->xs[i], p->os[kept] = p->os[i];
    }
  }
  p->rank = kept + 1;
  if (rank == 0) p->dims[0] = 1, p->xs[0] = p->from_size, p->os[0] = p->to_size;
  return true;
}

// ---- inner loops ------------------------------------------------------------------------------------------
typedef struct {
  uint64_t part[2];
} u128_t;

#define MOVE(T)                                                                                    \
  for (int64_t i = 0; i < rows; ++i, x += xs0, out += os0) {                                       \
    const char* a = x;                                                                             \
    char* b = out;                                                                                 \
    for (int64_t j = 0; j < n; ++j, a += xs1, b += os1) *(T*)(void*)b = *(const T*)(const void*)a; \
  }
static void move_strided(int64_t size, int64_t rows, int64_t n, const char* x, int64_t xs0,
                         int64_t xs1, char* out, int64_t os0, int64_t os1) {
  switch (size) {
    case 1: MOVE(uint8_t) break;
    case 2: MOVE(uint16_t) break;
    case 4: MOVE(uint32_t) break;
    case 8: MOVE(uint64_t) break;
    default: MOVE(u128_t) break;
  }
}

#define RUNS(bytes) \
  for (int64_t i = 0; i < rows; ++i, x += xs0, out += os0) memcpy(out, x, bytes)
static void move_runs(int64_t bytes, int64_t rows, const char* x, int64_t xs0, char* out,
                      int64_t os0) {
  switch (bytes) {  // short runs as plain moves
    case 4: RUNS(4); break;
    case 8: RUNS(8); break;
    case 12: RUNS(12); break;
    case 16: RUNS(16); break;
    case 32: RUNS(32); break;
    case 64: RUNS(64); break;
    default: RUNS((size_t)bytes); break;
  }
}

// |rows| rows of |n| elements.
static void copy_rows(const copy_plan_t* p, int64_t rows, int64_t n, const char* x, int64_t xs0,
                      char* out, int64_t os0) {
  const int64_t xs1 = p->xs[p->rank - 1], os1 = p->os[p->rank - 1];
  if (p->from == p->to) {
    if (os1 == p->to_size && xs1 == p->from_size) {
      move_runs(n * p->to_size, rows, x, xs0, out, os0);
    } else if (os1 == p->to_size && xs1 == 0) {
      p->table->repeat((size_t)p->to_size, rows, n, x, xs0, out, os0);
    } else {
      move_strided(p->to_size, rows, n, x, xs0, xs1, out, os0, os1);
    }
    return;
  }
  uint64_t from_stage[2 * STAGE_COLUMNS], to_stage[2 * STAGE_COLUMNS];
  for (int64_t i = 0; i < rows; ++i, x += xs0, out += os0) {
    if (os1 == p->to_size && xs1 == p->from_size) {
      p->table->convert(p->from, x, p->to, out, n);
      continue;
    }
    for (int64_t j = 0; j < n; j += STAGE_COLUMNS) {
      const int64_t m = n - j < STAGE_COLUMNS ? n - j : STAGE_COLUMNS;
      const char* from = x + j * xs1;
      char* to = out + j * os1;
      if (xs1 != p->from_size) {
        move_strided(p->from_size, 1, m, from, 0, xs1, (char*)from_stage, 0, p->from_size);
        from = (const char*)from_stage;
      }
      p->table->convert(p->from, from, p->to, os1 == p->to_size ? (void*)to : to_stage, m);
      if (os1 != p->to_size)
        move_strided(p->to_size, 1, m, (const char*)to_stage, 0, p->to_size, to, 0, os1);
    }
  }
}

// |rows| x |columns| of the last two dimensions; x is dense down the rows, out along the columns.
static void copy_tile(const copy_plan_t* p, int64_t rows, int64_t columns, const char* x,
                      char* out) {
  const int64_t xs = p->xs[p->rank - 1], os = p->os[p->rank - 2];
  if (p->from == p->to) {
    p->table->transpose((size_t)p->to_size, rows, columns, x, xs, out, os);
    return;
  }
  uint64_t stage[2 * STAGE_ROWS * STAGE_COLUMNS];
  const int64_t row_bytes = STAGE_COLUMNS * p->from_size;
  for (int64_t i = 0; i < rows; i += STAGE_ROWS) {
    const int64_t m = rows - i < STAGE_ROWS ? rows - i : STAGE_ROWS;
    for (int64_t j = 0; j < columns; j += STAGE_COLUMNS) {
      const int64_t n = columns - j < STAGE_COLUMNS ? columns - j : STAGE_COLUMNS;
      p->table->transpose((size_t)p->from_size, m, n, x + i * p->from_size + j * xs, xs, stage,
                          row_bytes);
      for (int64_t k = 0; k < m; ++k)
        p->table->convert(p->from, (const char*)stage + k * row_bytes, p->to,
                          out + (i + k) * os + j * p->to_size, n);
    }
  }
}

// ---- tasks ------------------------------------------------------------------------------------------------
static void run_tasks(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const copy_plan_t* p = context;
  const int outer_rank = p->rank - (p->is_transpose ? 2 : 1);
  int64_t index[TN_MAX_RANK], rest = begin / p->chunks, piece = begin % p->chunks;
  const char* x = p->x;
  char* out = p->out;
  for (int i = outer_rank - 1; i >= 0; --i) {
    index[i] = rest % p->dims[i];
    rest /= p->dims[i];
    x += index[i] * p->xs[i];
    out += index[i] * p->os[i];
  }
  const int last = p->rank - 1;
  for (int64_t task = begin; task < end;) {
    int64_t rows = 1;
    if (p->is_transpose) {
      const int64_t i = piece / p->tiles_across * TILE, j = piece % p->tiles_across * TILE;
      const int64_t m = p->dims[last - 1] - i, n = p->dims[last] - j;
      copy_tile(p, m < TILE ? m : TILE, n < TILE ? n : TILE,
                x + i * p->xs[last - 1] + j * p->xs[last],
                out + i * p->os[last - 1] + j * p->os[last]);
    } else if (p->chunks > 1 || outer_rank == 0) {
      const int64_t j = piece * p->chunk, n = p->dims[last] - j;
      copy_rows(p, 1, n < p->chunk ? n : p->chunk, x + j * p->xs[last], 0, out + j * p->os[last],
                0);
    } else {  // as many rows as the next dimension and the range have left
      rows = p->dims[last - 1] - index[last - 1];
      if (rows > end - task) rows = end - task;
      copy_rows(p, rows, p->dims[last], x, p->xs[last - 1], out, p->os[last - 1]);
    }
    task += rows;
    if (++piece < p->chunks) continue;
    piece = 0;
    for (int i = outer_rank - 1; i >= 0; --i, rows = 1) {
      index[i] += rows;
      x += rows * p->xs[i];
      out += rows * p->os[i];
      if (index[i] < p->dims[i]) break;
      x -= p->dims[i] * p->xs[i];
      out -= p->dims[i] * p->os[i];
      index[i] = 0;
    }
  }
}

static void run_plan(tn_pool_t* pool, copy_plan_t* p) {
  p->table = TN_ISA_PICK(tn_copy_table);
  const int last = p->rank - 1;
  // A dimension along which x is dense, where the destination is dense along another: a transpose.
  if (p->os[last] == p->to_size && p->xs[last] != p->from_size && p->xs[last] != 0) {
    for (int i = last - 1; i >= 0; --i) {
      if (p->xs[i] != p->from_size || p->dims[i] < 4 || p->dims[last] < 4) continue;
      for (int j = i; j < last - 1; ++j) swap_dims(p, j, j + 1);
      p->is_transpose = true;
      break;
    }
  }
  int64_t task_elements, outer = 1;
  if (p->is_transpose) {
    p->tiles_across = (p->dims[last] + TILE - 1) / TILE;
    p->chunks = (p->dims[last - 1] + TILE - 1) / TILE * p->tiles_across;
    task_elements = (p->dims[last - 1] < TILE ? p->dims[last - 1] : TILE) *
                    (p->dims[last] < TILE ? p->dims[last] : TILE);
  } else {
    p->chunk = CHUNK;
    p->chunks = (p->dims[last] + CHUNK - 1) / CHUNK;
    task_elements = p->dims[last] < CHUNK ? p->dims[last] : CHUNK;
  }
  for (int i = 0; i < last - (p->is_transpose ? 1 : 0); ++i) outer *= p->dims[i];
  const int64_t tasks = outer * p->chunks;
  const int64_t grain = TASK_BYTES / (task_elements * (p->from_size + p->to_size)) + 1;
  if (tasks <= grain || pool == NULL) {
    run_tasks(p, 0, tasks, 0);
  } else {
    tn_pool_run(pool, tasks, grain, run_tasks, p);
  }
}

void tn_copy_strided(tn_pool_t* pool, const tn_view_t* x, const tn_view_t* out) {
  assert(x->rank == out->rank);
  copy_plan_t plan = {.from = x->dtype, .to = out->dtype, .x = x->data, .out = out->data};
  plan.from_size = (int64_t)tn_dtype_size(x->dtype);
  plan.to_size = (int64_t)tn_dtype_size(out->dtype);
  if (normalise(&plan, x, out)) run_plan(pool, &plan);
}

void tn_copy_fill(tn_pool_t* pool, tn_scalar_t value, const tn_view_t* out) {
  tn_view_t x = *out;
  x.data = &value;
  for (int i = 0; i < x.rank; ++i) x.strides[i] = 0;
  tn_copy_strided(pool, &x, out);
}

void tn_copy_pad(tn_pool_t* pool, const tn_view_t* x, tn_scalar_t value, const int64_t* low,
                 const int64_t* interior, const tn_view_t* out) {
  const int64_t size = (int64_t)tn_dtype_size(x->dtype),
                out_size = (int64_t)tn_dtype_size(out->dtype);
  tn_view_t from = *x, to = *out;
  bool is_empty = false, covers = true;
  for (int i = 0; i < x->rank; ++i) {
    const int64_t step = interior[i] + 1;
    int64_t first =
        low[i] < 0 ? (-low[i] + step - 1) / step : 0;  // first element of x that lands inside
    int64_t limit = out->dims[i] - low[i] > 0 ? (out->dims[i] - low[i] - 1) / step + 1 : 0;
    if (limit > x->dims[i]) limit = x->dims[i];
    const int64_t extent = limit > first ? limit - first : 0;
    if (extent == 0) is_empty = true;
    if (extent != out->dims[i]) covers = false;
    from.dims[i] = to.dims[i] = extent;
    from.data = (char*)from.data + first * x->strides[i] * size;
    to.data = (char*)to.data + (low[i] + first * step) * out->strides[i] * out_size;
    to.strides[i] = out->strides[i] * step;
  }
  if (!covers) tn_copy_fill(pool, value, out);
  if (!is_empty) tn_copy_strided(pool, &from, &to);
}

void tn_copy_convert(tn_pool_t* pool, int64_t count, tn_dtype_t from, const void* x, tn_dtype_t to,
                     void* out) {
  tn_view_t a = tn_view_make((void*)(uintptr_t)x, from, 1, &count, NULL),
            b = tn_view_make(out, to, 1, &count, NULL);
  tn_copy_strided(pool, &a, &b);
}
