// Sort and top-k: a stable merge sort of positions. NaN is greater than everything, all NaNs are equal.
#include <stdlib.h>
#include <string.h>

#include "ir/interp_internal.h"

typedef struct tn_line {
  tn_elem_kind_t lanes;
  bool is_descending;
  tn_elem_t* keys;  // by position
  int64_t *order, *other;
  int64_t count;
} tn_line_t;

// -1, 0, 1: |x| before, level with, after |y| in ascending order.
static int compare(tn_elem_kind_t lanes, tn_elem_t x, tn_elem_t y) {
  switch (lanes) {
    case TN_ELEM_F32:
      if (x.f32 != x.f32 || y.f32 != y.f32) return (x.f32 != x.f32) - (y.f32 != y.f32);
      return (x.f32 > y.f32) - (x.f32 < y.f32);
    case TN_ELEM_F64:
      if (x.f64 != x.f64 || y.f64 != y.f64) return (x.f64 != x.f64) - (y.f64 != y.f64);
      return (x.f64 > y.f64) - (x.f64 < y.f64);
    case TN_ELEM_I64: return (x.i64 > y.i64) - (x.i64 < y.i64);
    default: return (x.u64 > y.u64) - (x.u64 < y.u64);
  }
}

static bool goes_before(const tn_line_t* line, int64_t later, int64_t earlier) {
  const int order = compare(line->lanes, line->keys[later], line->keys[earlier]);
  return line->is_descending ? order > 0 : order < 0;
}

// Sorts positions 0..count-1 into |order|; bottom up, so that no depth limits it.
static void sort_line(tn_line_t* line) {
  for (int64_t i = 0; i < line->count; ++i) line->order[i] = i;
  for (int64_t width = 1; width < line->count; width *= 2) {
    for (int64_t start = 0; start < line->count; start += 2 * width) {
      const int64_t middle = start + width < line->count ? start + width : line->count;
      const int64_t end = middle + width < line->count ? middle + width : line->count;
      for (int64_t i = start, j = middle, k = start; k < end; ++k) {
        const bool takes_second =
            i >= middle || (j < end && goes_before(line, line->order[j], line->order[i]));
        line->other[k] = takes_second ? line->order[j++] : line->order[i++];
      }
    }
    int64_t* swap = line->order;
    line->order = line->other;
    line->other = swap;
  }
}

static tn_status_t open_line(tn_line_t* line, int64_t count, void** out_memory) {
  TN_TRY(tn_interp_alloc(count, sizeof(tn_elem_t) + 2 * sizeof(int64_t), out_memory));
  line->count = count;
  line->keys = *out_memory;
  line->order = (int64_t*)(line->keys + count);
  line->other = line->order + count;
  return TN_OK;
}

static void load_line(tn_line_t* line, tn_dtype_t dtype, const void* data, int64_t start,
                      int64_t stride) {
  for (int64_t i = 0; i < line->count; ++i)
    line->keys[i] = tn_elem_load(dtype, data, start + i * stride);
}

tn_status_t tn_interp_sort(const tn_node_t* node, const void* const* operands,
                           void* const* results) {
  const tn_type_t* x = &node->operands[0]->types[0];
  const int64_t dimension = tn_node_int(node, TN_ATTR_DIMENSION, 0),
                total = tn_type_element_count(x);
  tn_line_t line = {.lanes = tn_elem_kind(x->dtype),
                    .is_descending = tn_node_int(node, TN_ATTR_DESCENDING, 0)};
  int64_t strides[TN_MAX_RANK];
  tn_interp_strides(x, strides);
  if (total == 0) return TN_OK;
  void* memory;
  TN_TRY(open_line(&line, x->dims[dimension], &memory));
  const int64_t stride = strides[dimension], block = stride * line.count;
  for (int64_t n = 0; n < total / line.count; ++n) {
    const int64_t start = n / stride * block + n % stride;
    load_line(&line, x->dtype, operands[0], start, stride);
    sort_line(&line);
    for (int k = 0; k < node->operand_count; ++k) {
      const size_t size = tn_dtype_size(node->types[k].dtype);
      for (int64_t i = 0; i < line.count; ++i) {
        memcpy((uint8_t*)results[k] + (size_t)(start + i * stride) * size,
               (const uint8_t*)operands[k] + (size_t)(start + line.order[i] * stride) * size, size);
      }
    }
  }
  free(memory);
  return TN_OK;
}

tn_status_t tn_interp_topk(const tn_node_t* node, const void* const* operands,
                           void* const* results) {
  const tn_type_t* x = &node->operands[0]->types[0];
  const int64_t extent = x->dims[x->rank - 1], total = tn_type_element_count(x);
  const int64_t count = tn_node_int(node, TN_ATTR_COUNT, 0);
  const size_t size = tn_dtype_size(x->dtype);
  tn_line_t line = {.lanes = tn_elem_kind(x->dtype),
                    .is_descending = tn_node_int(node, TN_ATTR_LARGEST, 1)};
  if (total == 0 || count == 0) return TN_OK;
  void* memory;
  TN_TRY(open_line(&line, extent, &memory));
  for (int64_t n = 0; n < total / extent; ++n) {
    load_line(&line, x->dtype, operands[0], n * extent, 1);
    sort_line(&line);
    for (int64_t i = 0; i < count; ++i) {
      memcpy((uint8_t*)results[0] + (size_t)(n * count + i) * size,
             (const uint8_t*)operands[0] + (size_t)(n * extent + line.order[i]) * size, size);
      ((int64_t*)results[1])[n * count + i] = line.order[i];
    }
  }
  free(memory);
  return TN_OK;
}
