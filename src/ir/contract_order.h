// The order in which a contraction sums its products: a function of dtype, number of results and k alone.
//
// k is cut into slices of tn_contract_slice_length elements, a slice into blocks of TN_CONTRACT_BLOCK. A block is the
// chain acc = fma(a[i,k], b[k,j], acc) from +0 in rising k; a slice is its first block plus the next ones in order;
// the sum is slice 0 + slice 1 + ... In a product of floats with one row or one column (m = 1 or n = 1) a block is
// TN_CONTRACT_CHAINS such chains instead, of k = 0..7 mod 8 from the block's start, combined as
// ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). f16 and bf16 are widened and stay f32 until the one rounding at the end. Complex
// blocks chain re = fma(-a.im, b.im, fma(a.re, b.re, re)), im = fma(a.im, b.re, fma(a.re, b.im, im)), in one slice.
// Integers wrap. For a convolution k runs through the channels of the group and the window, row-major, with zeros for
// padding and holes, always in one chain per block.
#ifndef TN_IR_CONTRACT_ORDER_H_
#define TN_IR_CONTRACT_ORDER_H_

#include "tn/dtype.h"

enum { TN_CONTRACT_BLOCK = 256, TN_CONTRACT_CHAINS = 8 };

// |outputs|: number of results; the same as tn_gemm_slice_length of src/kernels/gemm.h (a test compares them).
static inline int64_t tn_contract_slice_length(tn_dtype_t dtype, int64_t outputs, int64_t k) {
  if (!tn_dtype_is_float(dtype) || outputs > 4096 || k < 2048) return k;
  const int64_t blocks = (k + TN_CONTRACT_BLOCK - 1) / TN_CONTRACT_BLOCK;
  const int64_t slices = blocks / 2 < 16 ? blocks / 2 : 16;
  return (blocks + slices - 1) / slices * TN_CONTRACT_BLOCK;
}

#endif  // TN_IR_CONTRACT_ORDER_H_
