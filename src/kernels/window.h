// Sliding windows: pooling as PyTorch defines it, and the IR's generic reduce_window and select_and_scatter.
//
// |pool| may be NULL; nothing allocates; results do not depend on the thread count.
#ifndef TN_KERNELS_WINDOW_H_
#define TN_KERNELS_WINDOW_H_

#include <stdbool.h>
#include <stdint.h>

#include "src/base/pool.h"
#include "src/kernels/view.h"

// Arrays are [planes][spatial..] contiguous with planes = n * c. One to three spatial dimensions; |out_size|
// is given by the caller (so ceil_mode is decided there).
typedef struct tn_pooling {
  tn_dtype_t dtype;  // F32, BF16, F16, F64; max pool also integers
  int spatial;
  int64_t planes;
  int64_t size[3], out_size[3];                           // extents of x and out
  int64_t kernel[3], stride[3], padding[3], dilation[3];  // average: dilation is 1
  bool count_include_pad;                                 // average
  int64_t divisor;                                        // average: 0: the window's element count
} tn_pooling_t;
// |out_indices| (I64, optional): flat position in the plane of the first maximum; NaN wins.
void tn_window_max_pool(tn_pool_t* pool, const tn_pooling_t* shape, const void* x, void* out,
                        int64_t* out_indices);
// dx = 0, then dx[indices] += dout in order. Also max_unpool (with |indices| unique) and adaptive max pool.
void tn_window_max_pool_backward(tn_pool_t* pool, const tn_pooling_t* shape, const void* dout,
                                 const int64_t* indices, void* out_dx);
void tn_window_avg_pool(tn_pool_t* pool, const tn_pooling_t* shape, const void* x, void* out);
void tn_window_avg_pool_backward(tn_pool_t* pool, const tn_pooling_t* shape, const void* dout,
                                 void* out_dx);

// Adaptive pooling: window i of an axis is [floor(i * size / out), ceil((i + 1) * size / out)). Only |dtype|,
// |spatial|,
// |planes|, |size| and |out_size| are read. Backward of the maximum: tn_window_max_pool_backward.
void tn_window_adaptive_max_pool(tn_pool_t* pool, const tn_pooling_t* shape, const void* x,
                                 void* out, int64_t* out_indices);
void tn_window_adaptive_avg_pool(tn_pool_t* pool, const tn_pooling_t* shape, const void* x,
                                 void* out);
void tn_window_adaptive_avg_pool_backward(tn_pool_t* pool, const tn_pooling_t* shape,
                                          const void* dout, void* out_dx);

// StableHLO reduce_window with the identity of |kind| as initial value; window elements combine in row-major
// order. f16 and bf16 accumulate in f32 and round once.
void tn_window_reduce(tn_pool_t* pool, tn_reduce_kind_t kind, const tn_view_t* x,
                      const tn_window_t* window, const tn_view_t* out);
// StableHLO select_and_scatter: select GE (|kind| MAX) or LE (MIN), scatter add, initial value 0. |window|
// without dilations. |source| has the dims of the window positions, |out| those of x.
void tn_window_select_and_scatter(tn_pool_t* pool, tn_reduce_kind_t kind, const tn_view_t* x,
                                  const tn_view_t* source, const tn_window_t* window,
                                  const tn_view_t* out);

#endif  // TN_KERNELS_WINDOW_H_
