// Scaled dot product attention without the score matrix, forward and backward.
//
// out = softmax(q k^T * scale + mask) v. Scores, softmax and sums are f32. |pool| may be NULL; nothing
// allocates. Results do not depend on the thread count. Rows whose keys are all masked give 0 (and lse =
// -inf).
#ifndef TN_KERNELS_ATTENTION_H_
#define TN_KERNELS_ATTENTION_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/pool.h"
#include "tn/dtype.h"

// Strides are elements of {batch, head, row}; the last dimension is dense. Key and value head of query head h
// is h / (heads / heads_kv).
typedef struct tn_attention {
  tn_dtype_t dtype;  // F32, BF16 or F16, of q, k, v, out and their gradients
  int64_t batch, heads, heads_kv, length, length_kv;
  int64_t size;    // of q and k, 1..256
  int64_t size_v;  // of v and out, 1..256
  const void *q, *k, *v;
  int64_t q_stride[3], k_stride[3], v_stride[3];
  // Mask: BOOL (true takes part), or F32, BF16, F16 (added to the scaled score); NULL: none.
  const void* mask;
  tn_dtype_t mask_dtype;
  int64_t mask_stride[4];  // {batch, head, row, column}; 0 broadcasts
  double scale;            // NaN or 0: 1 / sqrt(size)
  bool is_causal;          // key j takes part for row i if j <= i
  // Dropout of the probabilities, as the composite sdpa has it: element i of [batch, heads, length,
  // length_kv] is dropped if ui32 i of tn_rng_bits({seed, offset}) < dropout * 2^32; the others are scaled by
  // 1 / (1 - dropout).
  double dropout;
  uint64_t seed, offset;
} tn_attention_t;

// |out| [b, h, l, size_v] with |out_stride|; |out_lse| [b, h, l] contiguous f32, optional: log of the sum of
// exp.
size_t tn_attention_forward_workspace(const tn_attention_t* attention, int thread_count);
void tn_attention_forward(tn_pool_t* pool, const tn_attention_t* attention, void* workspace,
                          void* out, const int64_t* out_stride, float* out_lse);

// Gradients by recomputation. |out|, |lse| from the forward. dq, dk, dv have strides of their own (elements
// of {batch, head, row}); dk and dv have heads_kv heads (query heads of a group are summed in order). Each
// may be NULL.
typedef struct tn_attention_grad {
  const void *out, *dout;
  const float* lse;
  int64_t out_stride[3], dout_stride[3];
  void *dq, *dk, *dv;
  int64_t dq_stride[3], dk_stride[3], dv_stride[3];
} tn_attention_grad_t;
size_t tn_attention_backward_workspace(const tn_attention_t* attention, int thread_count);
void tn_attention_backward(tn_pool_t* pool, const tn_attention_t* attention,
                           const tn_attention_grad_t* grad, void* workspace);

#endif  // TN_KERNELS_ATTENTION_H_
