// How one convolution is cut into work; shared by conv.c and conv_plan.c.
#ifndef TN_KERNELS_CONV_PLAN_H_
#define TN_KERNELS_CONV_PLAN_H_

#include "kernels/conv_table.h"
#include "kernels/gemm_table.h"

enum { TN_CONV_DEPTHWISE_GROUPS = 64 };  // groups whose sums a thread holds

typedef struct tn_conv_plan {
  tn_convolve_t
      g;  // normal form: three axes; 16-bit input replaced by its f32 copy (|in| is set at run time)
  bool is_gemm;  // one tap: |gemm| does it all
  tn_gemm_t gemm;
  bool is_depthwise;                             // one channel in and out per group
  bool widens;                                   // |in| is copied to f32 first
  int element;                                   // bytes of a sum
  int64_t residue_dims[TN_CONV_AXES], residues;  // classes of out positions mod in_dilation
  int panel;
  int64_t block_rows, row_blocks;  // of out channels
  int64_t block_cols;              // of pixels
  int64_t max_k, max_pixels;       // over all residues
  int64_t slices;                  // most slices of a residue
  // Workspace: f32 input, packed weights, slices' sums, then per thread B and sums. Bytes, multiples of 64.
  size_t input_size, weight_region, weight_size, slice_size, b_size, sum_size;
} tn_conv_plan_t;

// One residue: a convolution without in_dilation.
typedef struct tn_conv_part {
  tn_conv_image_t image;  // |in| not set
  int64_t out_offset;     // elements
  int64_t pixels, k, slice_length, slices;
} tn_conv_part_t;

void tn_conv_plan(const tn_convolve_t* conv, int thread_count, const tn_gemm_table_t* gemm_table,
                  const tn_conv_table_t* conv_table, tn_conv_plan_t* out_plan);
void tn_conv_part(const tn_conv_plan_t* plan, int64_t residue, tn_conv_part_t* out_part);

#endif  // TN_KERNELS_CONV_PLAN_H_
