// Matrix products: c = activation(alpha * (a @ b) + beta * addend + bias), batched, any strides.
//
// Order of the sum (a function of dtype, m, n, k and the batch's size alone, so the same for every thread count, stride, ISA):
//  * f32, f16, bf16 (computed in f32) and f64: k is cut into slices, slices into blocks of TN_GEMM_BLOCK from the
//    slice's start. A block is the chain acc = fma(a[i,k], b[k,j], acc) from +0 in rising k. A slice's value is its
//    first block plus the following blocks, one after another. The sum is slice 0 + slice 1 + ... in order.
//    With m = 1 or n = 1 a block is eight such chains, of k = 0..7 mod 8 from the block's start, combined as
//    ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)).
//    tn_gemm_slice_length gives the length of a slice (the last may be shorter); mostly there is one slice.
//    16-bit operands are widened exactly; everything stays f32 until the one rounding at the store.
//  * integers wrap in out_dtype; complex is (re, im) chains of fma as in gemm_plain.c, same blocks, one slice.
// Then, in the type of the sum, each step skipped when its operand is absent: v = v * alpha (if alpha != 1);
// v = fma(beta, addend, v); v = v + bias[j]; v = v + row_bias[i]; v = activation(v); store rounds once.
// With k = 0 the sum is +0.
#ifndef TN_KERNELS_GEMM_H_
#define TN_KERNELS_GEMM_H_

#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "tn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TN_GEMM_BATCH = 4,    // batch loops
  TN_GEMM_BLOCK = 256,  // k block: a 16-column panel of B (16 KiB) and 6 rows of A stay in L1
};

typedef enum tn_activation {
  TN_ACTIVATION_NONE,
  TN_ACTIVATION_RELU,  // v < 0 ? 0 : v (NaN stays)
} tn_activation_t;

// Zero-initialise, then set what is present. Strides are in elements; any value, 0 and negative too.
typedef struct tn_gemm {
  tn_dtype_t dtype;      // of a and b: F32 F64 F16 BF16 C64 C128 BOOL I8 I16 I32 I64 U8
  tn_dtype_t out_dtype;  // the same, or F32 for 16-bit floats, or a wider integer
  int batch_rank;        // 0..TN_GEMM_BATCH
  int64_t batch_dims[TN_GEMM_BATCH];  // outermost first
  int64_t m, n, k;
  const void* a;  // [batch, m, k]
  const void* b;  // [batch, k, n]
  void* c;        // [batch, m, n]; must not overlap a or b; elements distinct
  int64_t a_batch[TN_GEMM_BATCH], a_row, a_col;
  int64_t b_batch[TN_GEMM_BATCH], b_row, b_col;
  int64_t c_batch[TN_GEMM_BATCH], c_row, c_col;
  // Epilogue. Floats only, except alpha and beta being 1.
  float alpha;         // 0 means not given: 1 (a true alpha of 0 is a case for the caller)
  float beta;          // factor of addend; 0: addend is not read
  const void* addend;  // out_dtype, or NULL; may be c itself with c's strides
  int64_t addend_batch[TN_GEMM_BATCH], addend_row, addend_col;
  const void* bias;  // out_dtype, along n (same for all batches), or NULL
  int64_t bias_stride;
  const void* row_bias;  // out_dtype, along m, or NULL
  int64_t row_bias_stride;
  tn_activation_t activation;
} tn_gemm_t;

// Whether tn_gemm_run takes these dtypes.
bool tn_gemm_supports(tn_dtype_t dtype, tn_dtype_t out_dtype);
// Bytes of workspace that tn_gemm_run needs (64-aligned); may be 0. Pointers do not matter and may be NULL still;
// strides and beta of what will be present must be set.
size_t tn_gemm_workspace(const tn_gemm_t* gemm, int thread_count);
// |pool| may be NULL. |thread_count| given to tn_gemm_workspace must not be less than the pool's.
void tn_gemm_run(const tn_gemm_t* gemm, tn_pool_t* pool, void* workspace);
// Length of a k slice for |outputs| = batch * m * n results; k when there is one slice.
int64_t tn_gemm_slice_length(tn_dtype_t dtype, int64_t outputs, int64_t k);

#ifdef __cplusplus
}
#endif
#endif  // TN_KERNELS_GEMM_H_
