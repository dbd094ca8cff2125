// Layer, rms, group and batch norm: tasks over rows, groups or channels.
#include "src/kernels/isa.h"
#include "src/kernels/rows_run.h"

TN_ISA_TABLES(tn_norm_tables_t, tn_norm_tables)

static const tn_norm_table_t* table_of(tn_dtype_t dtype) {
  return &TN_ISA_PICK(tn_norm_tables)->type[tn_rows_type(dtype)];
}
static size_t accum_size(tn_dtype_t dtype) {
  return dtype == TN_F64 ? sizeof(double) : sizeof(float);
}

void tn_rows_layer_norm(tn_pool_t* pool, const tn_layer_norm_t* shape, const void* x,
                        const void* weight, const void* bias, void* out, void* out_mean,
                        void* out_rstd) {
  const tn_rows_call_t call = {.shape = shape,
                               .x = x,
                               .weight = weight,
                               .bias = shape->is_rms ? NULL : bias,
                               .out = out,
                               .out_mean = shape->is_rms ? NULL : out_mean,
                               .out_rstd = out_rstd};
  tn_rows_run(pool, shape->rows, shape->n, table_of(shape->dtype)->layer_norm, &call);
}

static int64_t block_count(const tn_layer_norm_t* shape) {
  return (shape->rows + TN_ROWS_BLOCK - 1) / TN_ROWS_BLOCK;
}

size_t tn_rows_layer_norm_backward_workspace(const tn_layer_norm_t* shape) {
  return (size_t)(block_count(shape) * 2 * shape->n) * accum_size(shape->dtype);
}
void tn_rows_layer_norm_backward(tn_pool_t* pool, const tn_layer_norm_t* shape, const void* dout,
                                 const void* x, const void* mean, const void* rstd,
                                 const void* weight, void* workspace, void* out_dx,
                                 void* out_dweight, void* out_dbias) {
  const bool has_weights = out_dweight || out_dbias;
  const tn_rows_call_t call = {.shape = shape,
                               .x = dout,
                               .y = x,
                               .mean = mean,
                               .rstd = rstd,
                               .weight = weight,
                               .workspace = has_weights ? workspace : NULL,
                               .out = out_dx,
                               .out_weight = out_dweight,
                               .out_bias = out_dbias};
  const tn_norm_table_t* table = table_of(shape->dtype);
  tn_rows_run(pool, block_count(shape), shape->n * TN_ROWS_BLOCK * 2, table->layer_norm_backward,
              &call);
  if (has_weights)
    tn_rows_run(pool, tn_rows_bands(shape->n), block_count(shape) * TN_ROWS_COLUMNS * 2,
                table->add_blocks, &call);
}

void tn_rows_group_norm(tn_pool_t* pool, const tn_group_norm_t* shape, const void* x,
                        const void* weight, const void* bias, void* out, void* out_mean,
                        void* out_rstd) {
  const tn_rows_call_t call = {.shape = shape,
                               .x = x,
                               .weight = weight,
                               .bias = bias,
                               .out = out,
                               .out_mean = out_mean,
                               .out_rstd = out_rstd};
  if (shape->groups == 0) return;
  tn_rows_run(pool, shape->n * shape->groups, shape->c / shape->groups * shape->inner * 2,
              table_of(shape->dtype)->group_norm, &call);
}
size_t tn_rows_group_norm_backward_workspace(const tn_group_norm_t* shape) {
  return (size_t)(shape->n * shape->c * 2) * accum_size(shape->dtype);
}
void tn_rows_group_norm_backward(tn_pool_t* pool, const tn_group_norm_t* shape, const void* dout,
                                 const void* x, const void* mean, const void* rstd,
                                 const void* weight, void* workspace, void* out_dx,
                                 void* out_dweight, void* out_dbias) {
  const tn_rows_call_t call = {.shape = shape,
                               .x = dout,
                               .y = x,
                               .mean = mean,
                               .rstd = rstd,
                               .weight = weight,
                               .workspace = workspace,
                               .out = out_dx,
                               .out_weight = out_dweight,
                               .out_bias = out_dbias};
  if (shape->groups == 0) return;
  const tn_norm_table_t* table = table_of(shape->dtype);
  tn_rows_run(pool, shape->n * shape->groups, shape->c / shape->groups * shape->inner * 2,
              table->group_norm_backward, &call);
  if (out_dweight || out_dbias)
    tn_rows_run(pool, shape->c, shape->n * 4, table->group_norm_weights, &call);
}

static void run_channels(tn_pool_t* pool, const tn_batch_norm_t* shape, tn_rows_fn_t fn,
                         const tn_rows_call_t* call) {
  if (shape->inner == 1) {
    tn_rows_run(pool, tn_rows_bands(shape->c), shape->n * TN_ROWS_COLUMNS * 2, fn, call);
  } else {
    tn_rows_run(pool, shape->c, shape->n * shape->inner * 2, fn, call);
  }
}
void tn_rows_batch_norm_train(tn_pool_t* pool, const tn_batch_norm_t* shape, const void* x,
                              const void* weight, const void* bias, const void* running_mean,
                              const void* running_var, void* out, void* out_mean, void* out_invstd,
                              void* out_running_mean, void* out_running_var) {
  const tn_rows_call_t call = {.shape = shape,
                               .x = x,
                               .weight = weight,
                               .bias = bias,
                               .running_mean = running_mean,
                               .running_var = running_var,
                               .out = out,
                               .out_mean = out_mean,
                               .out_rstd = out_invstd,
                               .out_running_mean = running_mean ? out_running_mean : NULL,
                               .out_running_var = running_var ? out_running_var : NULL};
  run_channels(pool, shape, table_of(shape->dtype)->batch_norm_train, &call);
}
void tn_rows_batch_norm_infer(tn_pool_t* pool, const tn_batch_norm_t* shape, const void* x,
                              const void* weight, const void* bias, const void* running_mean,
                              const void* running_var, void* out) {
  const tn_rows_call_t call = {.shape = shape,
                               .x = x,
                               .weight = weight,
                               .bias = bias,
                               .running_mean = running_mean,
                               .running_var = running_var,
                               .out = out};
  run_channels(pool, shape, table_of(shape->dtype)->batch_norm_infer, &call);
}
void tn_rows_batch_norm_backward(tn_pool_t* pool, const tn_batch_norm_t* shape, bool train,
                                 const void* dout, const void* x, const void* mean,
                                 const void* invstd, const void* weight, void* out_dx,
                                 void* out_dweight, void* out_dbias) {
  const tn_rows_call_t call = {.shape = shape,
                               .x = dout,
                               .y = x,
                               .weight = weight,
                               .mean = mean,
                               .rstd = invstd,
                               .out = out_dx,
                               .out_weight = out_dweight,
                               .out_bias = out_dbias,
                               .train = train};
  run_channels(pool, shape, table_of(shape->dtype)->batch_norm_backward, &call);
}
