// Functions of the convolution that are compiled per instruction set (isa/conv_kernel.c), and their arguments.
#ifndef TN_KERNELS_CONV_TABLE_H_
#define TN_KERNELS_CONV_TABLE_H_

#include "kernels/conv.h"
#include "kernels/isa.h"

// A convolution without in_dilation, of one group: what is left after cutting by residues. Results are the columns of
// a product ("pixels": batch and out positions flattened), output channels its rows, (channel, tap) its k.
typedef struct tn_conv_axis {
  int64_t in_extent, in_stride;  // of memory
  int64_t start, step,
      tap_step;  // position in |in| of pixel q, tap t: start + q * step + t * tap_step
  int64_t taps;
  int64_t weight_start, weight_step;  // elements
} tn_conv_axis_t;

enum {
  TN_CONV_PIXEL_DIMS = 4,  // batch and the axes
  TN_CONV_DEPTHWISE_COLS = 128,
  TN_CONV_DEPTHWISE_TAPS = 27,
};

typedef struct tn_conv_image {
  // Pixel dimensions, outermost first; |axis| is -1 for the batch.
  int64_t extent[TN_CONV_PIXEL_DIMS], in_step[TN_CONV_PIXEL_DIMS], out_step[TN_CONV_PIXEL_DIMS];
  int axis[TN_CONV_PIXEL_DIMS];
  tn_conv_axis_t axes[TN_CONV_AXES];
  int64_t channels, in_channel;
  int64_t tap_count;  // product of taps
  const void* in;     // as the element type T of sums: at position 0 of all axes
} tn_conv_image_t;

typedef struct tn_conv_table {
  // The columns [first, first + cols) of the product's B over [k0, k0 + depth), packed as tn_gemm_table's pack_b does.
  // Up to tn_conv_pack_slack(panel) elements behind the last are overwritten.
  void (*pack_f32)(const tn_conv_image_t* image, int64_t first, int64_t cols, int64_t k0,
                   int64_t depth, int panel, float* out);
  void (*pack_f64)(const tn_conv_image_t* image, int64_t first, int64_t cols, int64_t k0,
                   int64_t depth, int panel, double* out);
  // One channel in and out per group, at most TN_CONV_DEPTHWISE_TAPS taps: sums of pixels [first, first + cols) of
  // |groups| groups, sums[g * sum_row + j], 8 elements behind each row's last are overwritten. weights[g * weight_group
  // + tap]. |cols| <= TN_CONV_DEPTHWISE_COLS. NULL where the instruction set has no use for it.
  void (*depthwise_f32)(const tn_conv_image_t* image, int64_t first, int cols, int64_t groups,
                        int64_t in_group, const float* weights, int64_t weight_group, float* sums,
                        int64_t sum_row);
  // |count| F16 or BF16 elements |step| apart, to f32.
  void (*widen)(tn_dtype_t dtype, const void* in, int64_t step, float* out, int64_t count);
} tn_conv_table_t;

static inline int64_t tn_conv_pack_slack(int panel) { return 8 * panel + 16; }

#endif  // TN_KERNELS_CONV_TABLE_H_
