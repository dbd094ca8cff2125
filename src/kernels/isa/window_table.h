// Pooling per instruction set. Each function does tasks [begin, end) of its call.
#ifndef TN_KERNELS_ISA_WINDOW_TABLE_H_
#define TN_KERNELS_ISA_WINDOW_TABLE_H_

#include "src/kernels/window.h"

typedef struct tn_window_call {
  tn_pooling_t shape;  // always three spatial dimensions
  const void* x;       // or dout
  void* out;           // or dx
  int64_t* indices;    // or NULL
} tn_window_call_t;
typedef void (*tn_window_fn_t)(const tn_window_call_t* call, int64_t begin, int64_t end);

typedef struct tn_window_table {
  tn_window_fn_t max_pool[TN_DTYPE_COUNT];  // output rows: planes * out_size[0] * out_size[1]
  tn_window_fn_t avg_pool;                  // output rows
  tn_window_fn_t avg_pool_backward;         // rows of dx: planes * size[0] * size[1]
  tn_window_fn_t adaptive_avg_pool;         // planes
} tn_window_table_t;

#endif  // TN_KERNELS_ISA_WINDOW_TABLE_H_
