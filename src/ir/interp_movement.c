// Movement ops: strided copies, mostly.
#include <string.h>

#include "ir/interp_internal.h"

static size_t element_size(const tn_node_t* node) { return tn_dtype_size(node->types[0].dtype); }
static const tn_type_t* operand_type(const tn_node_t* node, int index) {
  return &node->operands[index]->types[0];
}

// Copies into the whole contiguous result from |src| at |strides|.
static tn_status_t copy_to_result(const tn_node_t* node, const void* src, const int64_t* strides,
                                  void* result) {
  int64_t to[TN_MAX_RANK];
  const tn_type_t* type = &node->types[0];
  tn_interp_strides(type, to);
  tn_interp_copy(element_size(node), type->rank, type->dims, src, strides, result, to);
  return TN_OK;
}

tn_status_t tn_interp_broadcast_in_dim(const tn_node_t* node, const void* const* operands,
                                       void* const* results) {
  const tn_type_t* x = operand_type(node, 0);
  const int64_t* map = tn_node_ints(node, TN_ATTR_DIMENSIONS, NULL);
  int64_t from[TN_MAX_RANK], strides[TN_MAX_RANK] = {0};
  tn_interp_strides(x, from);
  for (int i = 0; i < x->rank; ++i) strides[map[i]] = x->dims[i] == 1 ? 0 : from[i];
  return copy_to_result(node, operands[0], strides, results[0]);
}

tn_status_t tn_interp_reshape(const tn_node_t* node, const void* const* operands,
                              void* const* results) {
  const size_t size = (size_t)tn_type_element_count(&node->types[0]) * element_size(node);
  if (size) memcpy(results[0], operands[0], size);
  return TN_OK;
}

tn_status_t tn_interp_transpose(const tn_node_t* node, const void* const* operands,
                                void* const* results) {
  const int64_t* permutation = tn_node_ints(node, TN_ATTR_DIMENSIONS, NULL);
  int64_t from[TN_MAX_RANK], strides[TN_MAX_RANK];
  tn_interp_strides(operand_type(node, 0), from);
  for (int i = 0; i < node->types[0].rank; ++i) strides[i] = from[permutation[i]];
  return copy_to_result(node, operands[0], strides, results[0]);
}

tn_status_t tn_interp_reverse(const tn_node_t* node, const void* const* operands,
                              void* const* results) {
  int64_t count, strides[TN_MAX_RANK], start = 0;
  const int64_t* dimensions = tn_node_ints(node, TN_ATTR_DIMENSIONS, &count);
  const tn_type_t* type = &node->types[0];
  if (tn_type_element_count(type) == 0) return TN_OK;
  tn_interp_strides(type, strides);
  for (int64_t i = 0; i < count; ++i) {
    start += (type->dims[dimensions[i]] - 1) * strides[dimensions[i]];
    strides[dimensions[i]] = -strides[dimensions[i]];
  }
  const uint8_t* src = (const uint8_t*)operands[0] + start * (int64_t)element_size(node);
  return copy_to_result(node, src, strides, results[0]);
}

tn_status_t tn_interp_slice(const tn_node_t* node, const void* const* operands,
                            void* const* results) {
  const int64_t* start = tn_node_ints(node, TN_ATTR_START, NULL);
  const int64_t* stride = tn_node_ints(node, TN_ATTR_STRIDE, NULL);
  int64_t strides[TN_MAX_RANK];
  tn_interp_strides(operand_type(node, 0), strides);
  const int rank = node->types[0].rank;
  const int64_t offset = rank ? tn_interp_offset(rank, start, strides) : 0;
  for (int i = 0; i < rank; ++i) strides[i] *= stride[i];
  const uint8_t* src = (const uint8_t*)operands[0] + offset * (int64_t)element_size(node);
  return copy_to_result(node, src, strides, results[0]);
}

tn_status_t tn_interp_pad(const tn_node_t* node, const void* const* operands,
                          void* const* results) {
  const tn_type_t *x = operand_type(node, 0), *out = &node->types[0];
  const int64_t* low = tn_node_ints(node, TN_ATTR_LOW, NULL);
  const int64_t* interior = tn_node_ints(node, TN_ATTR_INTERIOR, NULL);
  const size_t size = element_size(node);
  const int64_t total = tn_type_element_count(out);
  for (int64_t i = 0; i < total; ++i)
    memcpy((uint8_t*)results[0] + (size_t)i * size, operands[1], size);
  if (total == 0 || tn_type_element_count(x) == 0) return TN_OK;
  int64_t index[TN_MAX_RANK] = {0}, strides[TN_MAX_RANK], from = 0;
  tn_interp_strides(out, strides);
  do {
    int64_t offset = 0;
    bool is_inside = true;
    for (int i = 0; i < x->rank; ++i) {
      const int64_t at = low[i] + index[i] * (interior[i] + 1);
      is_inside = is_inside && at >= 0 && at < out->dims[i];
      offset += at * strides[i];
    }
    if (is_inside) {
      memcpy((uint8_t*)results[0] + offset * (int64_t)size,
             (const uint8_t*)operands[0] + (size_t)from * size, size);
    }
    ++from;
  } while (tn_interp_next(x->rank, x->dims, index));
  return TN_OK;
}

tn_status_t tn_interp_concat(const tn_node_t* node, const void* const* operands,
                             void* const* results) {
  const int64_t dimension = tn_node_int(node, TN_ATTR_DIMENSION, 0);
  const size_t size = element_size(node);
  int64_t to[TN_MAX_RANK], from[TN_MAX_RANK], start = 0;
  tn_interp_strides(&node->types[0], to);
  for (int k = 0; k < node->operand_count; ++k) {
    const tn_type_t* x = operand_type(node, k);
    tn_interp_strides(x, from);
    uint8_t* dst = (uint8_t*)results[0] + start * to[dimension] * (int64_t)size;
    tn_interp_copy(size, x->rank, x->dims, operands[k], from, dst, to);
    start += x->dims[dimension];
  }
  return TN_OK;
}

// Offset of a window of |sizes| in |x| whose starts are the operands from |first|, clamped so that it fits.
static int64_t window_offset(const tn_node_t* node, const void* const* operands, int first,
                             const tn_type_t* x, const int64_t* sizes, const int64_t* strides) {
  int64_t offset = 0;
  for (int i = 0; i < x->rank; ++i) {
    const tn_dtype_t dtype = operand_type(node, first + i)->dtype;
    const tn_elem_t lane = tn_elem_load(dtype, operands[first + i], 0);
    int64_t start = dtype == TN_U64 && lane.i64 < 0 ? INT64_MAX : lane.i64;
    if (start > x->dims[i] - sizes[i]) start = x->dims[i] - sizes[i];
    if (start < 0) start = 0;
    offset += start * strides[i];
  }
  return offset;
}

tn_status_t tn_interp_dynamic_slice(const tn_node_t* node, const void* const* operands,
                                    void* const* results) {
  const tn_type_t* x = operand_type(node, 0);
  int64_t strides[TN_MAX_RANK];
  tn_interp_strides(x, strides);
  const int64_t offset = window_offset(node, operands, 1, x, node->types[0].dims, strides);
  const uint8_t* src = (const uint8_t*)operands[0] + offset * (int64_t)element_size(node);
  return copy_to_result(node, src, strides, results[0]);
}

tn_status_t tn_interp_dynamic_update_slice(const tn_node_t* node, const void* const* operands,
                                           void* const* results) {
  const tn_type_t *x = operand_type(node, 0), *update = operand_type(node, 1);
  const size_t size = element_size(node);
  int64_t strides[TN_MAX_RANK], from[TN_MAX_RANK];
  tn_interp_strides(x, strides);
  tn_interp_strides(update, from);
  const int64_t count = tn_type_element_count(x);
  if (count) memcpy(results[0], operands[0], (size_t)count * size);
  const int64_t offset = window_offset(node, operands, 2, x, update->dims, strides);
  tn_interp_copy(size, x->rank, update->dims, operands[1], from,
                 (uint8_t*)results[0] + offset * (int64_t)size, strides);
  return TN_OK;
}
