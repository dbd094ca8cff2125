// Reductions in the order of src/ir/reduce_order.h; extremes with positions; running reductions.
#include <stdlib.h>
#include <string.h>

#include "ir/interp_internal.h"
#include "ir/reduce_order.h"

typedef struct tn_fold {
  tn_reduce_kind_t kind;
  tn_dtype_t dtype;
  tn_elem_kind_t lanes;
  tn_elem_t identity;
  const void* data;
} tn_fold_t;

static tn_elem_t combine(const tn_fold_t* fold, tn_elem_t a, tn_elem_t b) {
  return tn_elem_combine(fold->kind, fold->lanes, a, b);
}
static tn_elem_t load(const tn_fold_t* fold, int64_t index) {
  return tn_elem_load(fold->dtype, fold->data, index);
}

// 64 lanes over |count| contiguous elements for every lead index, halved.
static tn_elem_t fold_rows(const tn_fold_t* fold, int64_t start, int64_t count, int64_t lead,
                           const int64_t* lead_offsets) {
  tn_elem_t sums[TN_REDUCE_LANES];
  for (int l = 0; l < TN_REDUCE_LANES; ++l) sums[l] = fold->identity;
  for (int64_t k = 0; k < lead; ++k) {
    for (int64_t i = 0; i < count; ++i) {
      tn_elem_t* sum = &sums[i % TN_REDUCE_LANES];
      *sum = combine(fold, *sum, load(fold, start + lead_offsets[k] + i));
    }
  }
  for (int half = TN_REDUCE_LANES / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) sums[l] = combine(fold, sums[l], sums[l + half]);
  }
  return sums[0];
}

static tn_elem_t fold_tail(const tn_fold_t* fold, int64_t start, int64_t tail, int64_t lead,
                           const int64_t* lead_offsets) {
  if (lead != 1 || tail <= TN_REDUCE_BLOCK) return fold_rows(fold, start, tail, lead, lead_offsets);
  tn_elem_t sum = fold->identity;
  for (int64_t at = 0; at < tail; at += TN_REDUCE_BLOCK) {
    const int64_t count = tail - at < TN_REDUCE_BLOCK ? tail - at : TN_REDUCE_BLOCK;
    const tn_elem_t block = fold_rows(fold, start + at, count, 1, lead_offsets);
    sum = at ? combine(fold, sum, block) : block;
  }
  return sum;
}

static tn_elem_t fold_columns(const tn_fold_t* fold, int64_t start, int64_t rows,
                              const int64_t* offsets) {
  tn_elem_t sum = fold->identity;
  for (int64_t at = 0; at < rows; at += TN_REDUCE_ROWS) {
    const int64_t end = rows - at < TN_REDUCE_ROWS ? rows : at + TN_REDUCE_ROWS;
    tn_elem_t block = fold->identity;
    for (int64_t r = at; r < end; ++r) block = combine(fold, block, load(fold, start + offsets[r]));
    sum = at ? combine(fold, sum, block) : block;
  }
  return sum;
}

tn_status_t tn_interp_reduce(const tn_node_t* node, const void* const* operands,
                             void* const* results) {
  const tn_type_t *x = &node->operands[0]->types[0], *out = &node->types[0];
  tn_fold_t fold = {.kind = (tn_reduce_kind_t)tn_node_int(node, TN_ATTR_KIND, TN_REDUCE_SUM),
                    .dtype = x->dtype,
                    .lanes = tn_elem_kind(x->dtype),
                    .data = operands[0]};
  fold.identity = tn_elem_identity(fold.kind, x->dtype);
  int64_t count, strides[TN_MAX_RANK];
  const int64_t* dimensions = tn_node_ints(node, TN_ATTR_DIMENSIONS, &count);
  tn_interp_strides(x, strides);
  unsigned reduced = 0;
  for (int64_t i = 0; i < count; ++i) reduced |= 1u << dimensions[i];
  // the tail: trailing reduced dimensions, extents of 1 not counting
  int64_t tail = 1, lead = 1;
  int tail_start = x->rank;
  bool has_tail = false;
  while (tail_start > 0 && (x->dims[tail_start - 1] == 1 || reduced >> (tail_start - 1) & 1u)) {
    --tail_start;
    if (x->dims[tail_start] != 1) has_tail = true;
    tail *= x->dims[tail_start];
  }
  int64_t lead_dims[TN_MAX_RANK], lead_strides[TN_MAX_RANK], kept_dims[TN_MAX_RANK],
      kept_strides[TN_MAX_RANK];
  int lead_rank = 0, kept_rank = 0;
  for (int i = 0; i < tail_start; ++i) {
    if (reduced >> i & 1u) {
      lead_dims[lead_rank] = x->dims[i];
      lead_strides[lead_rank++] = strides[i];
      lead *= x->dims[i];
    } else {
      kept_dims[kept_rank] = x->dims[i];
      kept_strides[kept_rank++] = strides[i];
    }
  }
  const int64_t total = tn_type_element_count(out);
  if (total == 0) return TN_OK;
  void* memory;
  TN_TRY(tn_interp_alloc(lead, sizeof(int64_t), &memory));
  int64_t* offsets = memory;
  int64_t index[TN_MAX_RANK] = {0};
  for (int64_t k = 0; k < lead; ++k) {
    offsets[k] = tn_interp_offset(lead_rank, index, lead_strides);
    tn_interp_next(lead_rank, lead_dims, index);
  }
  memset(index, 0, sizeof index);
  for (int64_t i = 0; i < total; ++i) {
    const int64_t start = tn_interp_offset(kept_rank, index, kept_strides);
    tn_elem_t value;
    if (has_tail) {
      value = fold_tail(&fold, start, tail, lead, offsets);
    } else {
      value = fold_columns(&fold, start, lead, offsets);
    }
    tn_elem_store(out->dtype, results[0], i, value);
    tn_interp_next(kept_rank, kept_dims, index);
  }
  free(memory);
  return TN_OK;
}

// Calls for every line of |x| along |dimension|: first element, stride.
#define EACH_LINE(x, dimension, outer, inner, start, stride)                                \
  const int64_t stride = line_stride(x, dimension), line_count_ = tn_type_element_count(x); \
  const int64_t outer = line_count_ ? line_count_ / (stride * (x)->dims[dimension]) : 0;    \
  for (int64_t outer_ = 0; outer_ < outer; ++outer_)                                        \
    for (int64_t inner = 0, start = outer_ * stride * (x)->dims[dimension]; inner < stride; \
         ++inner, ++start)

static int64_t line_stride(const tn_type_t* x, int64_t dimension) {
  int64_t strides[TN_MAX_RANK];
  tn_interp_strides(x, strides);
  return strides[dimension];
}

static bool is_nan(tn_elem_kind_t lanes, tn_elem_t x) {
  return lanes == TN_ELEM_F32 ? x.f32 != x.f32 : lanes == TN_ELEM_F64 && x.f64 != x.f64;
}
static bool is_beyond(tn_elem_kind_t lanes, bool is_max, tn_elem_t x, tn_elem_t y) {
  switch (lanes) {
    case TN_ELEM_F32: return is_max ? x.f32 > y.f32 : x.f32 < y.f32;
    case TN_ELEM_F64: return is_max ? x.f64 > y.f64 : x.f64 < y.f64;
    case TN_ELEM_I64: return is_max ? x.i64 > y.i64 : x.i64 < y.i64;
    default: return is_max ? x.u64 > y.u64 : x.u64 < y.u64;
  }
}

tn_status_t tn_interp_arg_reduce(const tn_node_t* node, const void* const* operands,
                                 void* const* results) {
  const tn_type_t* x = &node->operands[0]->types[0];
  const int64_t dimension = tn_node_int(node, TN_ATTR_DIMENSION, 0);
  const bool is_max = tn_node_int(node, TN_ATTR_KIND, TN_REDUCE_MAX) == TN_REDUCE_MAX;
  const tn_elem_kind_t lanes = tn_elem_kind(x->dtype);
  int64_t line = 0;
  EACH_LINE(x, dimension, outer, inner, start, stride) {
    tn_elem_t best = tn_elem_load(x->dtype, operands[0], start);
    int64_t position = 0;
    for (int64_t i = 1; i < x->dims[dimension] && !is_nan(lanes, best); ++i) {
      const tn_elem_t value = tn_elem_load(x->dtype, operands[0], start + i * stride);
      if (is_nan(lanes, value) || is_beyond(lanes, is_max, value, best)) best = value, position = i;
    }
    tn_elem_store(x->dtype, results[0], line, best);
    ((int64_t*)results[1])[line++] = position;
  }
  return TN_OK;
}

tn_status_t tn_interp_scan(const tn_node_t* node, const void* const* operands,
                           void* const* results) {
  const tn_type_t* x = &node->types[0];
  const int64_t dimension = tn_node_int(node, TN_ATTR_DIMENSION, 0), extent = x->dims[dimension];
  const bool is_reverse = tn_node_int(node, TN_ATTR_REVERSE, 0),
             is_exclusive = tn_node_int(node, TN_ATTR_EXCLUSIVE, 0);
  const tn_reduce_kind_t kind = (tn_reduce_kind_t)tn_node_int(node, TN_ATTR_KIND, TN_REDUCE_SUM);
  const tn_elem_kind_t lanes = tn_elem_kind(x->dtype);
  EACH_LINE(x, dimension, outer, inner, start, stride) {
    tn_elem_t sum = tn_elem_identity(kind, x->dtype);
    for (int64_t i = 0; i < extent; ++i) {
      const int64_t at = start + (is_reverse ? extent - 1 - i : i) * stride;
      const tn_elem_t value = tn_elem_load(x->dtype, operands[0], at);
      if (is_exclusive) tn_elem_store(x->dtype, results[0], at, sum);
      sum = tn_elem_combine(kind, lanes, sum, value);
      if (!is_exclusive) tn_elem_store(x->dtype, results[0], at, sum);
    }
  }
  return TN_OK;
}
