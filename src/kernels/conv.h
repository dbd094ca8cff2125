// Convolution and its gradients as matrix products over unfolded windows.
//
// Arrays are contiguous: x [n, c, spatial..], weight [o, c / groups, window..], y [n, o, spatial..]; dtype F32 or F64.
// One to three spatial dimensions. |pool| may be NULL; nothing allocates: each function has a *_workspace twin
// (64-aligned bytes for |thread_count| threads). Results do not depend on the thread count: every product is computed
// whole by one thread, and gradients of the weight are summed over a number of slices that the shape alone gives.
#ifndef TN_KERNELS_CONV_H_
#define TN_KERNELS_CONV_H_

#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "tn/dtype.h"

typedef struct tn_conv_shape {
  tn_dtype_t dtype;
  int spatial;
  int64_t n, c, o, groups;
  int64_t size[3], out_size[3], window[3];  // extents of x, y, weight
  int64_t stride[3], low[3], dilation[3];   // low: padding before the first element
} tn_conv_shape_t;

size_t tn_conv_forward_workspace(const tn_conv_shape_t* shape, int thread_count);
// |bias| [o] or NULL.
void tn_conv_forward(tn_pool_t* pool, const tn_conv_shape_t* shape, const void* x, const void* weight,
                     const void* bias, void* workspace, void* out_y);

size_t tn_conv_backward_input_workspace(const tn_conv_shape_t* shape, int thread_count);
void tn_conv_backward_input(tn_pool_t* pool, const tn_conv_shape_t* shape, const void* grad, const void* weight,
                            void* workspace, void* out_dx);

size_t tn_conv_backward_weight_workspace(const tn_conv_shape_t* shape, int thread_count);
void tn_conv_backward_weight(tn_pool_t* pool, const tn_conv_shape_t* shape, const void* grad, const void* x,
                             void* workspace, void* out_dweight);

#endif  // TN_KERNELS_CONV_H_
