// Sliding windows: reduce_window, and the gradient of a window's maximum or minimum.
#include <stdlib.h>
#include <string.h>

#include "ir/interp_internal.h"

typedef struct tn_windows {
  const tn_type_t* x;
  const int64_t *size, *stride, *low, *base, *dilation;
  int64_t strides[TN_MAX_RANK];  // of x
} tn_windows_t;

static void read_windows(const tn_node_t* node, tn_windows_t* w) {
  w->x = &node->operands[0]->types[0];
  w->size = tn_node_ints(node, TN_ATTR_WINDOW, NULL);
  w->stride = tn_node_ints(node, TN_ATTR_STRIDE, NULL);
  w->low = tn_node_ints(node, TN_ATTR_LOW, NULL);
  w->base = tn_node_ints(node, TN_ATTR_BASE_DILATION, NULL);
  w->dilation = tn_node_ints(node, TN_ATTR_WINDOW_DILATION, NULL);
  tn_interp_strides(w->x, w->strides);
}

// The element of x that position |in| of window |at| falls on, or -1 for padding and holes.
static int64_t element_at(const tn_windows_t* w, const int64_t* at, const int64_t* in) {
  int64_t offset = 0;
  for (int i = 0; i < w->x->rank; ++i) {
    int64_t position = at[i] * w->stride[i] + in[i] * w->dilation[i] - w->low[i];
    if (position < 0) return -1;
    if (w->base[i] != 1) {  // spares two divisions
      if (position % w->base[i]) return -1;
      position /= w->base[i];
    }
    if (position >= w->x->dims[i]) return -1;
    offset += position * w->strides[i];
  }
  return offset;
}

tn_status_t tn_interp_reduce_window(const tn_node_t* node, const void* const* operands,
                                    void* const* results) {
  tn_windows_t w;
  read_windows(node, &w);
  const tn_reduce_kind_t kind = (tn_reduce_kind_t)tn_node_int(node, TN_ATTR_KIND, TN_REDUCE_SUM);
  const tn_type_t* out = &node->types[0];
  const tn_dtype_t dtype = out->dtype;
  const int64_t total = tn_type_element_count(out);
  int64_t at[TN_MAX_RANK] = {0};
  for (int64_t i = 0; i < total; ++i) {
    tn_elem_t sum = tn_elem_identity(kind, dtype);
    int64_t in[TN_MAX_RANK] = {0};
    do {
      const int64_t element = element_at(&w, at, in);
      if (element < 0) continue;
      sum = tn_elem_combine(kind, tn_elem_kind(dtype), sum,
                            tn_elem_load(dtype, operands[0], element));
    } while (tn_interp_next(w.x->rank, w.size, in));
    tn_elem_store(dtype, results[0], i, sum);
    tn_interp_next(out->rank, out->dims, at);
  }
  return TN_OK;
}

// Whether |value| takes the place of the |best| so far: the first extreme stays, a NaN is extreme.
static bool replaces(tn_elem_kind_t lanes, bool is_max, tn_elem_t best, tn_elem_t value) {
  switch (lanes) {
    case TN_ELEM_F32:
      return best.f32 == best.f32 &&
             (value.f32 != value.f32 || (is_max ? value.f32 > best.f32 : value.f32 < best.f32));
    case TN_ELEM_F64:
      return best.f64 == best.f64 &&
             (value.f64 != value.f64 || (is_max ? value.f64 > best.f64 : value.f64 < best.f64));
    case TN_ELEM_I64: return is_max ? value.i64 > best.i64 : value.i64 < best.i64;
    default: return is_max ? value.u64 > best.u64 : value.u64 < best.u64;
  }
}

// Sums are kept in the compute type and rounded once.
tn_status_t tn_interp_window_grad(const tn_node_t* node, const void* const* operands,
                                  void* const* results) {
  tn_windows_t w;
  read_windows(node, &w);
  const bool is_max = tn_node_int(node, TN_ATTR_KIND, TN_REDUCE_MAX) == TN_REDUCE_MAX;
  const tn_type_t* grad = &node->operands[1]->types[0];
  const tn_dtype_t dtype = w.x->dtype;
  const tn_elem_kind_t lanes = tn_elem_kind(dtype);
  const int64_t total = tn_type_element_count(w.x), windows = tn_type_element_count(grad);
  void* memory;
  TN_TRY(tn_interp_alloc(total, sizeof(tn_elem_t), &memory));
  tn_elem_t* sums = memory;
  for (int64_t i = 0; i < total; ++i) sums[i] = tn_elem_identity(TN_REDUCE_SUM, dtype);
  int64_t at[TN_MAX_RANK] = {0};
  for (int64_t i = 0; i < windows; ++i) {
    int64_t chosen = -1, in[TN_MAX_RANK] = {0};
    tn_elem_t best = {.c128 = {0, 0}};
    do {
      const int64_t element = element_at(&w, at, in);
      if (element < 0) continue;
      const tn_elem_t value = tn_elem_load(dtype, operands[0], element);
      if (chosen < 0 || replaces(lanes, is_max, best, value)) chosen = element, best = value;
    } while (tn_interp_next(w.x->rank, w.size, in));
    if (chosen >= 0) {
      sums[chosen] =
          tn_elem_combine(TN_REDUCE_SUM, lanes, sums[chosen], tn_elem_load(dtype, operands[1], i));
    }
    tn_interp_next(grad->rank, grad->dims, at);
  }
  for (int64_t i = 0; i < total; ++i) tn_elem_store(dtype, results[0], i, sums[i]);
  free(memory);
  return TN_OK;
}
