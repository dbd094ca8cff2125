// Running a row kernel's tasks on the pool.
#ifndef TN_KERNELS_ROWS_RUN_H_
#define TN_KERNELS_ROWS_RUN_H_

#include <assert.h>

#include "src/kernels/isa/rows_table.h"

static inline int tn_rows_type(tn_dtype_t dtype) {
  assert(dtype == TN_F32 || dtype == TN_BF16 || dtype == TN_F16 || dtype == TN_F64);
  return dtype == TN_F32    ? TN_ROWS_F32
         : dtype == TN_BF16 ? TN_ROWS_BF16
         : dtype == TN_F16  ? TN_ROWS_F16
                            : TN_ROWS_F64;
}
static inline int64_t tn_rows_bands(int64_t columns) {
  return (columns + TN_ROWS_COLUMNS - 1) / TN_ROWS_COLUMNS;
}

typedef struct tn_rows_job {
  tn_rows_fn_t fn;
  const tn_rows_call_t* call;
} tn_rows_job_t;
static inline void tn_rows_task(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const tn_rows_job_t* job = context;
  job->fn(job->call, begin, end);
}
// |cost|: elements touched per task; a piece for a worker is worth about 16 K of them.
static inline void tn_rows_run(tn_pool_t* pool, int64_t tasks, int64_t cost, tn_rows_fn_t fn,
                               const tn_rows_call_t* call) {
  const int64_t grain = (16 << 10) / (cost + 1) + 1;
  if (tasks <= grain || pool == NULL) {
    if (tasks > 0) fn(call, 0, tasks);
    return;
  }
  tn_rows_job_t job = {fn, call};
  tn_pool_run(pool, tasks, grain, tn_rows_task, &job);
}

#endif  // TN_KERNELS_ROWS_RUN_H_
