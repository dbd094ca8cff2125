// Row kernels per instruction set and element type. Each function does tasks [begin, end).
#ifndef TN_KERNELS_ISA_ROWS_TABLE_H_
#define TN_KERNELS_ISA_ROWS_TABLE_H_

#include "src/kernels/rows.h"

enum {
  TN_ROWS_COLUMNS = 64,  // columns of a task where the reduced dimension is not the last
  TN_ROWS_BLOCK = 64,    // rows of a task that sums gradients of weights
};

// Operands of any kernel here; each reads the members it needs.
typedef struct tn_rows_call {
  const void* shape;  // of the kernel's own type
  const void *x, *y, *weight, *bias, *mean, *rstd, *running_mean, *running_var;
  void *out, *out_mean, *out_rstd, *out_running_mean, *out_running_var, *out_weight, *out_bias;
  void* workspace;
  bool train;
  const int64_t* target;
  int64_t rows, n, stride, ignore_index;
} tn_rows_call_t;
typedef void (*tn_rows_fn_t)(const tn_rows_call_t* call, int64_t begin, int64_t end);

enum { TN_ROWS_F32, TN_ROWS_BF16, TN_ROWS_F16, TN_ROWS_F64, TN_ROWS_TYPES };

typedef struct tn_softmax_table {
  // Tasks: outer, when inner is 1.
  tn_rows_fn_t softmax, log_softmax, softmax_backward, log_softmax_backward;
  // Tasks: outer * ceil(inner / TN_ROWS_COLUMNS).
  tn_rows_fn_t column_softmax, column_softmax_backward;
  // Tasks: rows.
  tn_rows_fn_t cross_entropy, cross_entropy_backward;
} tn_softmax_table_t;
typedef struct tn_softmax_tables {
  tn_softmax_table_t type[TN_ROWS_TYPES];
} tn_softmax_tables_t;

typedef struct tn_norm_table {
  tn_rows_fn_t layer_norm;  // rows
  tn_rows_fn_t
      layer_norm_backward;  // blocks of TN_ROWS_BLOCK rows; sums of weights go to the workspace
  tn_rows_fn_t
      add_blocks;  // columns / TN_ROWS_COLUMNS: sums of the workspace to out_weight and out_bias
  tn_rows_fn_t group_norm, group_norm_backward;  // n * groups
  tn_rows_fn_t group_norm_weights;               // channels
  tn_rows_fn_t batch_norm_train, batch_norm_infer,
      batch_norm_backward;  // channels, or TN_ROWS_COLUMNS of them: inner 1
} tn_norm_table_t;
typedef struct tn_norm_tables {
  tn_norm_table_t type[TN_ROWS_TYPES];
} tn_norm_tables_t;

#endif  // TN_KERNELS_ISA_ROWS_TABLE_H_
