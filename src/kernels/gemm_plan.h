// How one matrix product is cut into work; shared by gemm.c and its tests.
#ifndef TN_KERNELS_GEMM_PLAN_H_
#define TN_KERNELS_GEMM_PLAN_H_

#include "kernels/gemm.h"
#include "kernels/gemm_table.h"

typedef struct tn_gemm_plan {
  tn_gemm_t g;         // normal form: batch loops merged, perhaps transposed, alpha never 0
  bool is_transposed;  // rows and columns of |g| have changed places
  int64_t batch;       // product of the batch loops
  int element;         // bytes of a sum: 4 or 8
  int64_t block_rows, block_cols;  // of a task
  int64_t row_blocks, col_blocks, slices, slice_length;
  int panel;
  bool is_row;  // m = 1: B is read where it lies
  bool packs_a, packs_b;
  bool shares_b;         // all of B is packed before the tasks (one batch at a time)
  int64_t chunk_cols;    // B is packed this many columns at a time when not shared
  bool sums_in_c;        // c holds partial sums
  bool sums_in_scratch;  // per-thread scratch holds them
  int64_t grain;         // tasks claimed at a time
  bool is_serial;        // too small for the pool
  // Workspace: shared B, slices' sums, then per thread A, B and scratch. Bytes, multiples of 64.
  size_t shared_b_size, slice_size, a_size, b_size, scratch_size;
} tn_gemm_plan_t;

// |thread_count| changes how work is cut, never what is computed.
void tn_gemm_plan(const tn_gemm_t* gemm, int thread_count, const tn_gemm_table_t* table,
                  tn_gemm_plan_t* out_plan);

// gemm_plain.c: integers and complex; |first|..|last| rows of the flattened [batch, m].
void tn_gemm_plain_rows(const tn_gemm_t* gemm, int64_t first, int64_t last);

#endif  // TN_KERNELS_GEMM_PLAN_H_
