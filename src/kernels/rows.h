// Softmax and normalisation: kernels over rows.
//
// Dtypes F32, BF16, F16 (computed in f32) and F64 (computed in f64); |accum| below means F32, or F64 for F64.
// |pool| may be NULL; nothing allocates: functions with a *_workspace twin get that many bytes, 64-aligned
// (NULL if it says 0). Results do not depend on the thread count. Empty arrays are allowed. Outputs may be
// the same arrays as inputs of the same shape.
//
// Row arrays are [rows][n] with |stride| elements from row to row (n when contiguous). Arrays called [n, c,
// inner] are contiguous. Optional pointers may be NULL.
#ifndef TN_KERNELS_ROWS_H_
#define TN_KERNELS_ROWS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/pool.h"
#include "tn/dtype.h"

// ---- softmax ----------------------------------------------------------------------------------------------
// Array [outer][n][inner]; softmax runs along n. |outer_stride| elements from one outer index to the next
// (inner and n are dense). inner = 1 is the row case.
typedef struct tn_softmax {
  tn_dtype_t dtype;
  bool is_log;
  int64_t outer, n, inner;
  int64_t x_stride, out_stride;  // of outer
} tn_softmax_t;
void tn_rows_softmax(tn_pool_t* pool, const tn_softmax_t* shape, const void* x, void* out);
// softmax: dx = out * (dout - sum(dout * out)); log: dx = dout - exp(out) * sum(dout).
// dout and dx use |x_stride|, out uses |out_stride|.
void tn_rows_softmax_backward(tn_pool_t* pool, const tn_softmax_t* shape, const void* dout,
                              const void* out, void* dx);

// ---- layer norm, rms norm ---------------------------------------------------------------------------------
typedef struct tn_layer_norm {
  tn_dtype_t dtype;        // x, out, dout, dx
  tn_dtype_t param_dtype;  // weight, bias, dweight, dbias
  tn_dtype_t stat_dtype;   // mean, rstd
  bool is_rms;             // no mean: out = x * rsqrt(mean(x^2) + epsilon) * weight
  int64_t rows, n;
  int64_t x_stride, out_stride;  // dout: |out_stride|; dx: |x_stride|
  double epsilon;
} tn_layer_norm_t;
// |weight| [n], |bias| [n], |out_mean| [rows] and |out_rstd| [rows] are optional (rms: bias and mean unused).
void tn_rows_layer_norm(tn_pool_t* pool, const tn_layer_norm_t* shape, const void* x,
                        const void* weight, const void* bias, void* out, void* out_mean,
                        void* out_rstd);
// |mean| (unless rms) and |rstd| from the forward; |out_dx|, |out_dweight|, |out_dbias| are optional.
size_t tn_rows_layer_norm_backward_workspace(const tn_layer_norm_t* shape);
void tn_rows_layer_norm_backward(tn_pool_t* pool, const tn_layer_norm_t* shape, const void* dout,
                                 const void* x, const void* mean, const void* rstd,
                                 const void* weight, void* workspace, void* out_dx,
                                 void* out_dweight, void* out_dbias);

// ---- group norm -------------------------------------------------------------------------------------------
typedef struct tn_group_norm {
  tn_dtype_t dtype, param_dtype, stat_dtype;
  int64_t n, c, inner, groups;  // c is a multiple of groups
  double epsilon;
} tn_group_norm_t;
// |weight| [c], |bias| [c], |out_mean| [n, groups], |out_rstd| [n, groups]: optional.
void tn_rows_group_norm(tn_pool_t* pool, const tn_group_norm_t* shape, const void* x,
                        const void* weight, const void* bias, void* out, void* out_mean,
                        void* out_rstd);
size_t tn_rows_group_norm_backward_workspace(const tn_group_norm_t* shape);
void tn_rows_group_norm_backward(tn_pool_t* pool, const tn_group_norm_t* shape, const void* dout,
                                 const void* x, const void* mean, const void* rstd,
                                 const void* weight, void* workspace, void* out_dx,
                                 void* out_dweight, void* out_dbias);

// ---- batch norm -------------------------------------------------------------------------------------------
typedef struct tn_batch_norm {
  tn_dtype_t dtype, param_dtype, stat_dtype;  // stat: running mean/var, saved mean/invstd
  int64_t n, c, inner;
  double epsilon, momentum;
  void* out_var;  // training: biased variance [c] of |stat_dtype|, optional
} tn_batch_norm_t;
// Statistics over n and inner of each channel. |weight|, |bias|, |running_mean| and |running_var| in [c] are
// optional; new running = (1 - momentum) * running + momentum * batch (unbiased variance) goes to
// |out_running_mean| and |out_running_var| (optional, may be the same arrays). |out_mean| [c], |out_invstd|
// [c].
void tn_rows_batch_norm_train(tn_pool_t* pool, const tn_batch_norm_t* shape, const void* x,
                              const void* weight, const void* bias, const void* running_mean,
                              const void* running_var, void* out, void* out_mean, void* out_invstd,
                              void* out_running_mean, void* out_running_var);
void tn_rows_batch_norm_infer(tn_pool_t* pool, const tn_batch_norm_t* shape, const void* x,
                              const void* weight, const void* bias, const void* running_mean,
                              const void* running_var, void* out);
// |train|: |mean| and |invstd| are the saved ones and depend on x; else they are constants: running mean and,
// in
// |invstd|, the running variance.
void tn_rows_batch_norm_backward(tn_pool_t* pool, const tn_batch_norm_t* shape, bool train,
                                 const void* dout, const void* x, const void* mean,
                                 const void* invstd, const void* weight, void* out_dx,
                                 void* out_dweight, void* out_dbias);

// ---- cross entropy ----------------------------------------------------------------------------------------
// Row losses straight from logits: out_loss[r] = logsumexp(x[r]) - x[r][target[r]]; 0 where target is
// |ignore_index|. |out_lse| [rows] accum is optional. Targets outside [0, n) other than |ignore_index|:
// OUT_OF_RANGE.
tn_status_t tn_rows_cross_entropy(tn_pool_t* pool, tn_dtype_t dtype, int64_t rows, int64_t n,
                                  int64_t x_stride, const void* x, const int64_t* target,
                                  int64_t ignore_index, void* out_loss, void* out_lse);
// dx[r][i] = scale[r] * (exp(x[r][i] - lse[r]) - (i == target[r])); 0 where ignored. |scale| [rows] accum.
void tn_rows_cross_entropy_backward(tn_pool_t* pool, tn_dtype_t dtype, int64_t rows, int64_t n,
                                    int64_t x_stride, const void* x, const int64_t* target,
                                    int64_t ignore_index, const void* lse, const void* scale,
                                    void* out_dx);

#endif  // TN_KERNELS_ROWS_H_
