#ifndef TN_DRIVER_SIM_LAUNCH_H_
#define TN_DRIVER_SIM_LAUNCH_H_

#include <stdatomic.h>

#include "base/pool.h"
#include "driver/sim/program.h"

enum {
  // Work below this (in cheap operations on one element) is done by the caller alone: about 8 us, what it costs to
  // wake a worker and wait for it.
  TN_SIM_SERIAL_COST = 48 << 10,
  TN_SIM_TASK_COST = 24 << 10,
  // A task along the vector loop has a multiple of these elements: whole cache lines and vectors.
  TN_SIM_VECTOR_CHUNK = 64,
};

// Elements of the vector loop that are one task at |cost| each.
static inline int64_t tn_sim_vector_chunk(int64_t cost) {
  const int64_t chunk = TN_SIM_TASK_COST / (cost > 0 ? cost : 1) & -TN_SIM_VECTOR_CHUNK;
  return chunk < TN_SIM_VECTOR_CHUNK ? TN_SIM_VECTOR_CHUNK : chunk;
}

tn_status_t tn_sim_launch(const tn_program_t* program, const tn_launch_t* launch);

// A kernel whose pointers are bound.
typedef struct tn_sim_run {
  const tn_sim_kernel_t* kernel;
  tn_kernel_args_t args;
  _Atomic(tn_status_t) error;  // of a task
} tn_sim_run_t;

// Code or interpreter on some points; |args| are those of |run| or near it.
void tn_sim_run_range(tn_sim_run_t* run, const tn_kernel_args_t* args, int64_t outer_begin,
                      int64_t outer_end, int64_t vector_begin, int64_t vector_end);
// All points, |cost| each, on the caller and the pool.
void tn_sim_run_points(tn_sim_run_t* run, int64_t cost, tn_pool_t* pool);

// ---- launch_reduce.c -------------------------------------------------------------------------------------------
// Bytes that a reduction in blocks keeps their results in; 0 if |kernel| is not cut.
int64_t tn_sim_cut_workspace(const tn_sim_kernel_t* kernel);
void tn_sim_run_cut(tn_sim_run_t* run, void* workspace, tn_pool_t* pool);

#endif  // TN_DRIVER_SIM_LAUNCH_H_
