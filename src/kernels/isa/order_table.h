// Order along a dimension, per instruction set. Each function does lines [begin, end) (arg_reduce: also bands
// of them).
#ifndef TN_KERNELS_ISA_ORDER_TABLE_H_
#define TN_KERNELS_ISA_ORDER_TABLE_H_

#include "src/kernels/order.h"

enum { TN_ORDER_BAND = 128 };  // neighbouring lines of a task where lines lie side by side

typedef struct tn_order_call {
  const tn_view_t *x, *values, *positions;  // outputs may be NULL
  int dimension;
  bool descending;
  int64_t count;  // top-k
  tn_reduce_kind_t kind;
  bool reverse, exclusive;
  int64_t n;               // extent of the dimension
  int64_t line_stride[3];  // bytes along the dimension: x, values, positions
  // The other dimensions; the last one is split in bands of |band| lines.
  int rank;
  int64_t dims[TN_MAX_RANK], strides[3][TN_MAX_RANK];  // bytes
  int64_t band, bands;
  bool is_banded;  // lines of a band are adjacent in x and in the outputs
  char* workspace;
  int64_t scratch;  // bytes per worker
} tn_order_call_t;
typedef void (*tn_order_fn_t)(const tn_order_call_t* call, int64_t begin, int64_t end,
                              char* scratch);

typedef struct tn_order_table {
  tn_order_fn_t sort, topk, arg_reduce, scan;
} tn_order_table_t;

// Scratch bytes of a sort of n elements.
static inline int64_t tn_order_scratch(tn_dtype_t dtype, int64_t n) {
  const int64_t record = tn_dtype_size(dtype) == 8 ? 16 : 8;
  return (2 * n * record + 63) / 64 * 64;
}

#endif  // TN_KERNELS_ISA_ORDER_TABLE_H_
