// One engine for all gathers and scatters.
//
// Points are the positions of the index array (and batching dimensions); each point reads one index vector,
// which moves the operand's address, and moves one block between the operand and the other array (gather:
// out, scatter: updates).
#include "src/kernels/index.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "src/kernels/isa.h"
#include "src/kernels/isa/index_table.h"

TN_ISA_TABLES(tn_index_table_t, tn_index_table)

enum { TASK_BYTES = 64 << 10 };

typedef struct dim {
  int64_t extent;
  int64_t operand, other, index;  // byte strides
  bool is_disjoint;               // different positions touch different elements of the operand
} dim_t;

typedef struct component {  // of an index vector
  int64_t index_offset;     // bytes into the index vector
  int64_t step;             // bytes in the operand per unit
  int64_t size;             // extent of the operand's dimension
  int64_t limit;            // highest start that fits, or -1
  int dimension;
} component_t;

typedef struct plan {
  char* operand;  // gather: read, scatter: written
  char* other;    // gather: written, scatter: read
  const char* indices;
  tn_dtype_t index_dtype;
  tn_bounds_t bounds;
  int64_t size;  // bytes of an element
  bool is_scatter;
  tn_combine_fn_t combine;  // NULL: assign
  int component_count, point_rank, block_rank;
  component_t component[TN_MAX_RANK];
  dim_t point[2 * TN_MAX_RANK], block[TN_MAX_RANK];
  int64_t run;  // bytes of the block's last dimension if it is dense on both sides, else 0
  void (*fast)(const struct dim* d, bool is_i64, int64_t n, int64_t size, int64_t step, int64_t low,
               int64_t high, char* operand, char* other, const char* index);  // fast_fn_t, or NULL
  bool checks_late;     // a gather that checks as it goes
  atomic_bool has_bad;  // it met a bad index
  // Splitting: a dimension (points first, then blocks), or destinations by the first component (split = -1).
  int split;
  int64_t piece, pieces;
} plan_t;

static inline int64_t load_index(const char* at, tn_dtype_t dtype) {
  switch (dtype) {
    case TN_I64:
    case TN_U64: return *(const int64_t*)(const void*)at;
    case TN_I32: return *(const int32_t*)(const void*)at;
    case TN_I16: return *(const int16_t*)(const void*)at;
    case TN_I8: return *(const int8_t*)(const void*)at;
    case TN_U32: return *(const uint32_t*)(const void*)at;
    case TN_U16: return *(const uint16_t*)(const void*)at;
    default: return *(const uint8_t*)(const void*)at;
  }
}

// ---- checks -----------------------------------------------------------------------------------------------
static bool is_bad(int64_t index, const component_t* c, tn_bounds_t bounds) {
  return index > c->limit || index < (bounds == TN_BOUNDS_WRAP ? -c->size : 0) ||
         (index < 0 && index + c->size > c->limit);
}

// All indices in row-major order of the index array, whose dimension |vector_dim| (or none) holds the
// components.
static tn_status_t check_indices(const plan_t* p, const tn_view_t* indices, int vector_dim) {
  if (p->bounds == TN_BOUNDS_CLAMP) return TN_OK;
  int64_t at[TN_MAX_RANK] = {0}, count = tn_view_element_count(indices);
  if (count == 0) return TN_OK;
  const int64_t size = (int64_t)tn_dtype_size(indices->dtype);
  if (p->component_count == 1 && tn_view_is_contiguous(indices)) {
    const component_t c = p->component[0];
    int64_t bad = 0;
    if (indices->dtype == TN_I64 && c.limit == c.size - 1) {  // one comparison each
      const uint64_t bias = p->bounds == TN_BOUNDS_WRAP ? (uint64_t)c.size : 0;
      bad = !TN_ISA_PICK(tn_index_table)
                 ->are_inside(indices->data, count, bias, bias + (uint64_t)c.size);
    } else {
      for (int64_t i = 0; i < count; ++i)
        bad |= is_bad(load_index((const char*)indices->data + i * size, indices->dtype), &c,
                      p->bounds);
    }
    if (!bad) return TN_OK;
  }
  do {
    int64_t offset = 0;
    for (int i = 0; i < indices->rank; ++i) offset += at[i] * indices->strides[i] * size;
    const component_t* c =
        &p->component[vector_dim < 0 || p->component_count == 1 ? 0 : at[vector_dim]];
    const int64_t index = load_index((const char*)indices->data + offset, indices->dtype);
    if (is_bad(index, c, p->bounds))
      return TN_ERROR(TN_OUT_OF_RANGE,
                      "index %lld is out of bounds for dimension %d with size %lld",
                      (long long)index, c->dimension, (long long)c->size);
    int i = indices->rank - 1;
    for (; i >= 0; --i) {
      if (++at[i] < indices->dims[i]) break;
      at[i] = 0;
    }
    if (i < 0) return TN_OK;
  } while (true);
}

// ---- moving -----------------------------------------------------------------------------------------------
static void move_elements(int64_t size, int64_t count, char* out, int64_t out_stride, const char* x,
                          int64_t x_stride) {
#define MOVE(T)                                                         \
  for (int64_t i = 0; i < count; ++i, out += out_stride, x += x_stride) \
    *(T*)(void*)out = *(const T*)(const void*)x;                        \
  break
  typedef struct {
    uint64_t part[2];
  } u128_t;
  switch (size) {
    case 1: MOVE(uint8_t);
    case 2: MOVE(uint16_t);
    case 4: MOVE(uint32_t);
    case 8: MOVE(uint64_t);
    default: MOVE(u128_t);
  }
#undef MOVE
}

// One row of a block.
static inline void move_row(const plan_t* p, int64_t extent, int64_t operand_stride,
                            int64_t other_stride, char* operand, char* other) {
  if (p->is_scatter) {
    if (p->combine) {
      p->combine(extent, operand, operand_stride, other, other_stride);
    } else if (p->run) {
      memcpy(operand, other, (size_t)(extent * p->size));
    } else {
      move_elements(p->size, extent, operand, operand_stride, other, other_stride);
    }
  } else if (p->run) {
    memcpy(other, operand, (size_t)(extent * p->size));
  } else {
    move_elements(p->size, extent, other, other_stride, operand, operand_stride);
  }
}

static void move_block(const plan_t* p, const dim_t* block, char* operand, char* other) {
  const int last = p->block_rank - 1;
  int64_t at[TN_MAX_RANK] = {0};
  for (;;) {
    move_row(p, block[last].extent, block[last].operand, block[last].other, operand, other);
    int i = last - 1;
    for (; i >= 0; --i) {
      operand += block[i].operand;
      other += block[i].other;
      if (++at[i] < block[i].extent) break;
      operand -= block[i].extent * block[i].operand;
      other -= block[i].extent * block[i].other;
      at[i] = 0;
    }
    if (i < 0) return;
  }
}

// The byte offset of one index vector, or -1: dropped, or first component outside [low, high).
static inline int64_t vector_offset(const plan_t* p, const char* index, int64_t low, int64_t high) {
  int64_t offset = 0;
  for (int k = 0; k < p->component_count; ++k) {
    const component_t* c = &p->component[k];
    int64_t i = load_index(index + c->index_offset, p->index_dtype);
    if (p->bounds == TN_BOUNDS_WRAP) {
      if (i < 0) i += c->size;
    } else if (p->bounds == TN_BOUNDS_CLAMP) {
      if (p->is_scatter && (i < 0 || i > c->limit)) return INT64_MIN;
      i = i < 0 ? 0 : i > c->limit ? c->limit : i;
    }
    if (k == 0 && (i < low || i >= high)) return INT64_MIN;
    offset += i * c->step;
  }
  return offset;
}

// The loops of x[index], torch.gather and their sums: one index of I64 or I32 and a short run, checked
// before. A negative index counts from the end (WRAP) or does not occur.
#define EACH_INDEX(I, ...)                                                                       \
  for (int64_t j = 0; j < n; ++j, operand += next_operand, other += next_other, index += next) { \
    int64_t i = *(const I*)(const void*)index;                                                   \
    i += (i >> 63) & size;                                                                       \
    __VA_ARGS__                                                                                  \
  }
#define FAST_LOOP(name, ...)                                                                   \
  static void name(const dim_t* d, bool is_i64, int64_t n, int64_t size, int64_t step,         \
                   int64_t low, int64_t high, char* operand, char* other, const char* index) { \
    const int64_t next_operand = d->operand, next_other = d->other,                            \
                  next = d->index; /* stores may alias *d */                                   \
    (void)low, (void)high;                                                                     \
    if (is_i64) {                                                                              \
      EACH_INDEX(int64_t, __VA_ARGS__)                                                         \
    } else {                                                                                   \
      EACH_INDEX(int32_t, __VA_ARGS__)                                                         \
    }                                                                                          \
  }
typedef void (*fast_fn_t)(const dim_t* d, bool is_i64, int64_t n, int64_t size, int64_t step,
                          int64_t low, int64_t high, char* operand, char* other, const char* index);
// Clamped gathers get |size| 0 and the extent in |high|; dropping scatters have it in |high| too.
#define FAST_GATHER(bytes)                                             \
  FAST_LOOP(gather_##bytes, memcpy(other, operand + i * step, bytes);) \
  FAST_LOOP(clamp_##bytes, i = i < 0       ? 0                         \
                               : i >= high ? high - 1                  \
                                           : i;                        \
            memcpy(other, operand + i * step, bytes);)
#define FAST_ASSIGN(bytes) \
  FAST_LOOP(assign_##bytes, if (i >= low && i < high) memcpy(operand + i * step, other, bytes);)
#define FAST_SUM(name, T)                                                        \
  FAST_LOOP(name, if (i >= low && i < high) * (T*)(void*)(operand + i * step) += \
                  *(const T*)(const void*)other;)
// clang-format off
FAST_GATHER(1) FAST_GATHER(2) FAST_GATHER(4) FAST_GATHER(8) FAST_GATHER(16) FAST_GATHER(32) FAST_GATHER(64)
FAST_ASSIGN(1) FAST_ASSIGN(2) FAST_ASSIGN(4) FAST_ASSIGN(8) FAST_ASSIGN(16)
FAST_SUM(sum_f32, float) FAST_SUM(sum_f64, double) FAST_SUM(sum_i32, uint32_t) FAST_SUM(sum_i64, uint64_t)
    // clang-format on

    static fast_fn_t
    fast_loop(const plan_t* p, int64_t run, tn_reduce_kind_t kind, tn_dtype_t dtype) {
  if (p->component_count != 1 || p->component[0].limit != p->component[0].size - 1 ||
      p->block_rank != 1)
    return NULL;
  if (p->index_dtype != TN_I64 && p->index_dtype != TN_I32) return NULL;
  if (!p->is_scatter) {
    const bool clamps = p->bounds == TN_BOUNDS_CLAMP;
    switch (run) {
      case 1: return clamps ? clamp_1 : gather_1;
      case 2: return clamps ? clamp_2 : gather_2;
      case 4: return clamps ? clamp_4 : gather_4;
      case 8: return clamps ? clamp_8 : gather_8;
      case 16: return clamps ? clamp_16 : gather_16;
      case 32: return clamps ? clamp_32 : gather_32;
      case 64: return clamps ? clamp_64 : gather_64;
      default: return NULL;
    }
  }
  if (run != p->size) return NULL;
  if (kind == TN_REDUCE_ASSIGN) {
    switch (run) {
      case 1: return assign_1;
      case 2: return assign_2;
      case 4: return assign_4;
      case 8: return assign_8;
      default: return assign_16;
    }
  }
  if (kind != TN_REDUCE_SUM) return NULL;
  switch (dtype) {
    case TN_F32: return sum_f32;
    case TN_F64: return sum_f64;
    case TN_I32:
    case TN_U32: return sum_i32;
    case TN_I64:
    case TN_U64: return sum_i64;
    default: return NULL;
  }
}

static void point_row(plan_t* p, const dim_t* d, int64_t n, const dim_t* block, int64_t low,
                      int64_t high, char* operand, char* other, const char* index) {
  if (p->fast && block[0].extent * p->size == p->run) {
    const component_t* c = &p->component[0];
    const bool is_i64 = p->index_dtype == TN_I64;
    if (!p->checks_late) {
      const bool clamps = p->bounds == TN_BOUNDS_CLAMP;
      p->fast(d, is_i64, n, clamps ? 0 : c->size, c->step, low, high < c->size ? high : c->size,
              operand, other, index);
      return;
    }
    enum { CHUNK = 512 };
    const tn_index_table_t* table = TN_ISA_PICK(tn_index_table);
    const uint64_t bias = p->bounds == TN_BOUNDS_WRAP ? (uint64_t)c->size : 0,
                   span = bias + (uint64_t)c->size;
    for (int64_t start = 0; start < n; start += CHUNK) {
      const int64_t m = n - start < CHUNK ? n - start : CHUNK;
      const char* at = index + start * d->index;
      bool bad = false;
      if (d->index == 8) {
        bad = !table->are_inside((const int64_t*)(const void*)at, m, bias, span);
      } else {
        for (int64_t j = 0; j < m; ++j)
          bad |= *(const uint64_t*)(const void*)(at + j * d->index) + bias >= span;
      }
      if (bad) {
        atomic_store_explicit(&p->has_bad, true, memory_order_relaxed);
        return;
      }
      if (d->index == 8 && d->operand == 0 && c->step == p->run && d->other == p->run &&
          (p->run == 4 || p->run == 8)) {
        (p->run == 4 ? table->gather_4 : table->gather_8)(operand, (const int64_t*)(const void*)at,
                                                          m, c->size, other + start * d->other);
        continue;
      }
      p->fast(d, is_i64, m, c->size, c->step, low, high, operand + start * d->operand,
              other + start * d->other, at);
    }
    return;
  }
  for (int64_t j = 0; j < n; ++j, operand += d->operand, other += d->other, index += d->index) {
    const int64_t offset = vector_offset(p, index, low, high);
    if (offset == INT64_MIN) continue;
    if (p->block_rank == 1) {
      move_row(p, block[0].extent, block[0].operand, block[0].other, operand + offset, other);
    } else {
      move_block(p, block, operand + offset, other);
    }
  }
}

static void run_piece(plan_t* p, int64_t piece) {
  dim_t point[2 * TN_MAX_RANK], block[TN_MAX_RANK];
  memcpy(point, p->point, sizeof(dim_t) * (size_t)p->point_rank);
  memcpy(block, p->block, sizeof(dim_t) * (size_t)p->block_rank);
  char *operand = p->operand, *other = p->other;
  const char* index = p->indices;
  int64_t low = 0, high = INT64_MAX;
  if (p->split >= 0) {
    dim_t* d = p->split < p->point_rank ? &point[p->split] : &block[p->split - p->point_rank];
    const int64_t first = piece * p->piece;
    d->extent = d->extent - first < p->piece ? d->extent - first : p->piece;
    operand += first * d->operand;
    other += first * d->other;
    index += first * d->index;
  } else if (p->pieces > 1) {
    low = piece * p->piece;
    high = low + p->piece;
  }
  const int last = p->point_rank - 1;
  int64_t at[2 * TN_MAX_RANK] = {0};
  for (;;) {
    point_row(p, &point[last], point[last].extent, block, low, high, operand, other, index);
    int i = last - 1;
    for (; i >= 0; --i) {
      operand += point[i].operand;
      other += point[i].other;
      index += point[i].index;
      if (++at[i] < point[i].extent) break;
      operand -= point[i].extent * point[i].operand;
      other -= point[i].extent * point[i].other;
      index -= point[i].extent * point[i].index;
      at[i] = 0;
    }
    if (i < 0) return;
  }
}

static void run_pieces(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  for (int64_t piece = begin; piece < end; ++piece) run_piece(context, piece);
}

// Drops extents of 1 and merges neighbours; at least one dimension stays.
static int merge_dims(dim_t* dims, int count, int64_t size) {
  int kept = -1;
  for (int i = 0; i < count; ++i) {
    if (dims[i].extent == 1) continue;
    if (kept >= 0 && dims[kept].is_disjoint == dims[i].is_disjoint &&
        dims[kept].operand == dims[i].operand * dims[i].extent &&
        dims[kept].other == dims[i].other * dims[i].extent &&
        dims[kept].index == dims[i].index * dims[i].extent) {
      dims[i].extent *= dims[kept].extent;
      dims[kept] = dims[i];
    } else {
      dims[++kept] = dims[i];
    }
  }
  if (kept < 0)
    dims[++kept] = (dim_t){.extent = 1, .operand = size, .other = size, .is_disjoint = true};
  return kept + 1;
}

static tn_status_t run_plan(tn_pool_t* pool, plan_t* p, const tn_view_t* indices, int vector_dim,
                            tn_reduce_kind_t kind, tn_dtype_t dtype) {
  int64_t elements = 1, points = 1;
  for (int i = 0; i < p->point_rank; ++i) points *= p->point[i].extent;
  for (int i = 0; i < p->block_rank; ++i) elements *= p->block[i].extent;
  // Short gathers check on their way: the indices are then read once. Nothing else may be written before the
  // check.
  const int64_t run = elements * p->size;
  const bool checks_late = !p->is_scatter && p->bounds != TN_BOUNDS_CLAMP && run <= 64 &&
                           p->component_count == 1 && p->index_dtype == TN_I64;
  if (!checks_late) TN_TRY(check_indices(p, indices, vector_dim));
  if (points * elements == 0) return TN_OK;
  for (int k = 0; k < p->component_count; ++k)
    if (p->component[k].size == 0)
      return check_indices(p, indices, vector_dim);  // nothing to read; scatter drops all
  if (p->is_scatter && kind != TN_REDUCE_ASSIGN) {
    p->combine = TN_ISA_PICK(tn_index_table)->combine[kind][dtype];
    if (!p->combine)
      return TN_ERROR(TN_UNIMPLEMENTED, "scatter: reduction %d of %s", (int)kind,
                      tn_dtype_name(dtype));
  }
  p->point_rank = merge_dims(p->point, p->point_rank, p->size);
  p->block_rank = merge_dims(p->block, p->block_rank, p->size);
  const dim_t* inner = &p->block[p->block_rank - 1];
  if (inner->operand == p->size && inner->other == p->size) p->run = inner->extent * p->size;
  if (p->run) p->fast = fast_loop(p, p->run, p->is_scatter ? kind : TN_REDUCE_ASSIGN, dtype);
  p->checks_late = checks_late && p->fast;
  if (checks_late && !p->fast) TN_TRY(check_indices(p, indices, vector_dim));
  const int64_t bytes = points * elements * p->size * 2;
  const int threads = pool ? tn_pool_thread_count(pool) : 1;
  p->split = -1;
  p->pieces = 1;
  if (threads > 1 && bytes > TASK_BYTES) {
    int64_t wanted = bytes / TASK_BYTES + 1;
    if (wanted > 8 * threads) wanted = 8 * threads;
    // The outermost dimension that is long enough, else the longest. Blocks split by whole cache lines.
    int64_t best = 1;
    for (int i = 0; i < p->point_rank + p->block_rank; ++i) {
      const dim_t* d = i < p->point_rank ? &p->point[i] : &p->block[i - p->point_rank];
      if (p->is_scatter && !d->is_disjoint) continue;
      int64_t extent = d->extent;
      if (i == p->point_rank + p->block_rank - 1) extent = extent * p->size / 256;
      if (extent > best) best = extent, p->split = i;
      if (extent >= wanted) break;
    }
    if (p->split >= 0 && best >= threads) {
      const dim_t* d =
          p->split < p->point_rank ? &p->point[p->split] : &p->block[p->split - p->point_rank];
      p->piece = (d->extent + wanted - 1) / wanted;
      const int64_t lines = 64 / p->size;
      if (p->split >= p->point_rank) p->piece = (p->piece + lines - 1) / lines * lines;
      p->pieces = (d->extent + p->piece - 1) / p->piece;
    } else if (p->is_scatter &&
               p->component[0].limit ==
                   p->component[0].size -
                       1) {  // every task reads all indices, so no more tasks than threads
      p->split = -1;
      p->piece = (p->component[0].size + threads - 1) / threads;
      p->pieces = (p->component[0].size + p->piece - 1) / p->piece;
    } else {
      p->split = -1;
    }
  }
  if (p->pieces > 1) {
    tn_pool_run(pool, p->pieces, 1, run_pieces, p);
  } else {
    p->split = -1;
    run_piece(p, 0);
  }
  return atomic_load_explicit(&p->has_bad, memory_order_relaxed)
             ? check_indices(p, indices, vector_dim)
             : TN_OK;
}

// ---- the shapes -------------------------------------------------------------------------------------------
static plan_t make_plan(const tn_view_t* operand, const tn_view_t* other, const tn_view_t* indices,
                        bool is_scatter, tn_bounds_t bounds) {
  assert(operand->dtype == other->dtype);
  return (plan_t){.operand = operand->data,
                  .other = other->data,
                  .indices = indices->data,
                  .index_dtype = indices->dtype,
                  .bounds = bounds,
                  .is_scatter = is_scatter,
                  .size = (int64_t)tn_dtype_size(operand->dtype)};
}

static void add_component(plan_t* p, const tn_view_t* operand, int dimension, int64_t slice,
                          int64_t index_offset) {
  const int64_t size = operand->dims[dimension];
  p->component[p->component_count++] = (component_t){.index_offset = index_offset,
                                                     .step = operand->strides[dimension] * p->size,
                                                     .size = size,
                                                     .limit = size - slice,
                                                     .dimension = dimension};
}

// Take and its inverse: |other| is |operand| with |dimension| replaced by the dims of |indices|.
static tn_status_t run_rows(tn_pool_t* pool, const tn_view_t* operand, const tn_view_t* other,
                            const tn_view_t* indices, int dimension, tn_bounds_t bounds,
                            bool is_scatter, tn_reduce_kind_t kind) {
  plan_t p = make_plan(operand, other, indices, is_scatter, bounds);
  const int64_t size = p.size, index_size = (int64_t)tn_dtype_size(indices->dtype);
  assert(other->rank == operand->rank - 1 + indices->rank);
  for (int i = 0; i < dimension; ++i)
    p.point[p.point_rank++] =
        (dim_t){other->dims[i], operand->strides[i] * size, other->strides[i] * size, 0, true};
  for (int i = 0; i < indices->rank; ++i)
    p.point[p.point_rank++] = (dim_t){indices->dims[i], 0, other->strides[dimension + i] * size,
                                      indices->strides[i] * index_size, false};
  for (int i = dimension + 1; i < operand->rank; ++i)
    p.block[p.block_rank++] = (dim_t){operand->dims[i], operand->strides[i] * size,
                                      other->strides[i - 1 + indices->rank] * size, 0, true};
  add_component(&p, operand, dimension, 1, 0);
  return run_plan(pool, &p, indices, -1, kind, operand->dtype);
}

static tn_status_t run_along(tn_pool_t* pool, const tn_view_t* operand, const tn_view_t* other,
                             const tn_view_t* indices, int dimension, tn_bounds_t bounds,
                             bool is_scatter, tn_reduce_kind_t kind) {
  plan_t p = make_plan(operand, other, indices, is_scatter, bounds);
  const int64_t size = p.size, index_size = (int64_t)tn_dtype_size(indices->dtype);
  for (int i = 0; i < indices->rank; ++i)
    p.point[p.point_rank++] =
        (dim_t){indices->dims[i], i == dimension ? 0 : operand->strides[i] * size,
                other->strides[i] * size, indices->strides[i] * index_size, i != dimension};
  add_component(&p, operand, dimension, 1, 0);
  return run_plan(pool, &p, indices, -1, kind, operand->dtype);
}

static bool contains(const int64_t* list, int count, int64_t value, int* out_at) {
  for (int i = 0; i < count; ++i) {
    if (list[i] != value) continue;
    if (out_at) *out_at = i;
    return true;
  }
  return false;
}

// StableHLO dimension numbers: |slice_sizes| NULL (scatter): window extents come from the updates.
static tn_status_t run_general(tn_pool_t* pool, const tn_view_t* operand, const tn_view_t* other,
                               const tn_view_t* indices, const tn_gather_dims_t* dims,
                               const int64_t* slice_sizes, tn_bounds_t bounds, bool is_scatter,
                               tn_reduce_kind_t kind) {
  plan_t p = make_plan(operand, other, indices, is_scatter, bounds);
  const int64_t size = p.size, index_size = (int64_t)tn_dtype_size(indices->dtype);
  const int vector_dim = dims->index_vector_dim < indices->rank ? (int)dims->index_vector_dim : -1;
  // Dims of |other| outside |offset| run over the dims of the indices but the vector dimension.
  int index_dim = 0;
  for (int i = 0; i < other->rank; ++i) {
    if (contains(dims->offset, dims->offset_count, i, NULL)) continue;
    if (index_dim == vector_dim) ++index_dim;
    dim_t d = {other->dims[i], 0, other->strides[i] * size,
               indices->strides[index_dim] * index_size, false};
    int at;
    if (contains(dims->index_batching, dims->batching_count, index_dim, &at)) {
      d.operand = operand->strides[dims->batching[at]] * size;
      d.is_disjoint = true;
    }
    p.point[p.point_rank++] = d;
    ++index_dim;
  }
  int64_t slice[TN_MAX_RANK];
  int offset = 0;
  for (int i = 0; i < operand->rank; ++i) {
    slice[i] = 1;
    if (contains(dims->collapsed, dims->collapsed_count, i, NULL) ||
        contains(dims->batching, dims->batching_count, i, NULL))
      continue;
    const int64_t j = dims->offset[offset++];
    slice[i] = slice_sizes ? slice_sizes[i] : other->dims[j];
    const bool is_indexed = contains(dims->map, dims->map_count, i, NULL);
    p.block[p.block_rank++] = (dim_t){slice[i], operand->strides[i] * size,
                                      other->strides[j] * size, 0, !is_indexed || slice[i] == 1};
  }
  const int64_t vector_stride = vector_dim >= 0 ? indices->strides[vector_dim] * index_size : 0;
  for (int k = 0; k < dims->map_count; ++k)
    add_component(&p, operand, (int)dims->map[k], slice[dims->map[k]], k * vector_stride);
  return run_plan(pool, &p, indices, vector_dim, kind, operand->dtype);
}

tn_status_t tn_index_take(tn_pool_t* pool, const tn_view_t* x, const tn_view_t* indices,
                          int dimension, tn_bounds_t bounds, const tn_view_t* out) {
  return run_rows(pool, x, out, indices, dimension, bounds, false, TN_REDUCE_ASSIGN);
}
tn_status_t tn_index_put(tn_pool_t* pool, const tn_view_t* indices, const tn_view_t* updates,
                         int dimension, tn_reduce_kind_t kind, tn_bounds_t bounds,
                         const tn_view_t* out) {
  return run_rows(pool, out, updates, indices, dimension, bounds, true, kind);
}
tn_status_t tn_index_take_along(tn_pool_t* pool, const tn_view_t* x, const tn_view_t* indices,
                                int dimension, tn_bounds_t bounds, const tn_view_t* out) {
  return run_along(pool, x, out, indices, dimension, bounds, false, TN_REDUCE_ASSIGN);
}
tn_status_t tn_index_put_along(tn_pool_t* pool, const tn_view_t* indices, const tn_view_t* updates,
                               int dimension, tn_reduce_kind_t kind, tn_bounds_t bounds,
                               const tn_view_t* out) {
  return run_along(pool, out, updates, indices, dimension, bounds, true, kind);
}
tn_status_t tn_index_gather(tn_pool_t* pool, const tn_view_t* x, const tn_view_t* indices,
                            const tn_gather_dims_t* dims, const int64_t* slice_sizes,
                            tn_bounds_t bounds, const tn_view_t* out) {
  return run_general(pool, x, out, indices, dims, slice_sizes, bounds, false, TN_REDUCE_ASSIGN);
}
tn_status_t tn_index_scatter(tn_pool_t* pool, const tn_view_t* indices, const tn_view_t* updates,
                             const tn_gather_dims_t* dims, tn_reduce_kind_t kind,
                             tn_bounds_t bounds, const tn_view_t* out) {
  return run_general(pool, out, updates, indices, dims, NULL, bounds, true, kind);
}
