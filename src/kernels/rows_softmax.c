// Softmax and cross entropy: tasks over rows or bands of columns.
#include <string.h>

#include "src/kernels/isa.h"
#include "src/kernels/isa/rows_table.h"
#include "src/kernels/rows_run.h"

TN_ISA_TABLES(tn_softmax_tables_t, tn_softmax_tables)

static const tn_softmax_table_t* table_of(tn_dtype_t dtype) {
  return &TN_ISA_PICK(tn_softmax_tables)->type[tn_rows_type(dtype)];
}

void tn_rows_softmax(tn_pool_t* pool, const tn_softmax_t* shape, const void* x, void* out) {
  if (shape->n == 0) return;
  const tn_softmax_table_t* table = table_of(shape->dtype);
  const tn_rows_call_t call = {.shape = shape, .x = x, .out = out};
  if (shape->inner == 1) {
    tn_rows_run(pool, shape->outer, shape->n * 4,
                shape->is_log ? table->log_softmax : table->softmax, &call);
  } else {
    tn_rows_run(pool, shape->outer * tn_rows_bands(shape->inner), shape->n * TN_ROWS_COLUMNS * 4,
                table->column_softmax, &call);
  }
}

void tn_rows_softmax_backward(tn_pool_t* pool, const tn_softmax_t* shape, const void* dout,
                              const void* out, void* dx) {
  if (shape->n == 0) return;
  const tn_softmax_table_t* table = table_of(shape->dtype);
  const tn_rows_call_t call = {.shape = shape, .x = dout, .y = out, .out = dx};
  if (shape->inner == 1) {
    tn_rows_run(pool, shape->outer, shape->n * 3,
                shape->is_log ? table->log_softmax_backward : table->softmax_backward, &call);
  } else {
    tn_rows_run(pool, shape->outer * tn_rows_bands(shape->inner), shape->n * TN_ROWS_COLUMNS * 3,
                table->column_softmax_backward, &call);
  }
}

tn_status_t tn_rows_cross_entropy(tn_pool_t* pool, tn_dtype_t dtype, int64_t rows, int64_t n,
                                  int64_t x_stride, const void* x, const int64_t* target,
                                  int64_t ignore_index, void* out_loss, void* out_lse) {
  for (int64_t i = 0; i < rows; ++i) {
    if (target[i] != ignore_index && (target[i] < 0 || target[i] >= n))
      return TN_ERROR(TN_OUT_OF_RANGE, "Target %lld is out of bounds.", (long long)target[i]);
  }
  const tn_rows_call_t call = {.x = x,
                               .out = out_loss,
                               .out_mean = out_lse,
                               .target = target,
                               .rows = rows,
                               .n = n,
                               .stride = x_stride,
                               .ignore_index = ignore_index};
  tn_rows_run(pool, rows, n * 3, table_of(dtype)->cross_entropy, &call);
  return TN_OK;
}

void tn_rows_cross_entropy_backward(tn_pool_t* pool, tn_dtype_t dtype, int64_t rows, int64_t n,
                                    int64_t x_stride, const void* x, const int64_t* target,
                                    int64_t ignore_index, const void* lse, const void* scale,
                                    void* out_dx) {
  const tn_rows_call_t call = {.x = x,
                               .out = out_dx,
                               .mean = lse,
                               .weight = scale,
                               .target = target,
                               .rows = rows,
                               .n = n,
                               .stride = x_stride,
                               .ignore_index = ignore_index};
  tn_rows_run(pool, rows, n * 3, table_of(dtype)->cross_entropy_backward, &call);
}
