// Convolutions of 1 to 3 spatial axes, any strides of memory: forward, and both gradients as other convolutions.
//
//   out[n, g, o, p] = activation(bias[g, o] + sum over c, t of in[n, g, c, x] * weight[g, o, c, t])
//   with x = (p * stride + t * dilation - low) / in_dilation on each axis; terms where that is no integer or lies
//   outside in_dims are 0.
//
// Order of the sum, a function of the geometry alone: k runs over (c, t) with t fastest, over the terms that some
// result of the same residue p mod in_dilation uses; blocks, slices and the finish as in gemm.h (tn_conv_slice_length),
// with one chain of fma per block. Convolutions that are plain products (one tap) run as tn_gemm does.
#ifndef TN_KERNELS_CONV_H_
#define TN_KERNELS_CONV_H_

#include "kernels/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TN_CONV_AXES = 3 };

// Zero-initialise, then set what is present. Strides in elements, any value; groups have strides of their own, so a
// group may lie along the channels or along the batch (StableHLO's batch_group_count).
typedef struct tn_convolve {
  tn_dtype_t dtype;                                  // of in and weight: F32 F64 F16 BF16
  tn_dtype_t out_dtype;                              // the same, or F32 for 16-bit floats
  int spatial;                                       // 1..3 axes
  int64_t batch, groups, in_channels, out_channels;  // channels per group
  int64_t in_dims[TN_CONV_AXES], kernel[TN_CONV_AXES], out_dims[TN_CONV_AXES];
  int64_t stride[TN_CONV_AXES], low[TN_CONV_AXES], in_dilation[TN_CONV_AXES],
      dilation[TN_CONV_AXES];
  const void* in;
  int64_t in_batch, in_group, in_channel, in_strides[TN_CONV_AXES];
  const void* weight;
  int64_t weight_group, weight_out, weight_in, weight_strides[TN_CONV_AXES];
  void* out;
  int64_t out_batch, out_group, out_channel, out_strides[TN_CONV_AXES];
  const void* bias;  // out_dtype, or NULL
  int64_t bias_group, bias_stride;
  tn_activation_t activation;
} tn_convolve_t;

bool tn_conv_supports(tn_dtype_t dtype, tn_dtype_t out_dtype);
size_t tn_conv_workspace(const tn_convolve_t* conv, int thread_count);  // does not read pointers
void tn_conv_run(const tn_convolve_t* conv, tn_pool_t* pool, void* workspace);
// Length of a k slice of a problem with |outputs| results in all and |k| terms each.
int64_t tn_conv_slice_length(int64_t outputs, int64_t k);

// Gradients of |forward| (its dtype everywhere) as convolutions:
// the gradient of in, written to |grad_in| (laid out as in) from |grad_out| (laid out as out) and weight;
tn_convolve_t tn_conv_backward_data(const tn_convolve_t* forward, const void* grad_out,
                                    void* grad_in);
// the gradient of weight, written to |grad_weight| (laid out as weight) from |grad_out| and in.
tn_convolve_t tn_conv_backward_weight(const tn_convolve_t* forward, const void* grad_out,
                                      void* grad_weight);

#ifdef __cplusplus
}
#endif
#endif  // TN_KERNELS_CONV_H_
