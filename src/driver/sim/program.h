// A compiled program of the software core.
#ifndef TN_DRIVER_SIM_PROGRAM_H_
#define TN_DRIVER_SIM_PROGRAM_H_

#include "base/arena.h"
#include "compile/plan.h"
#include "driver/sim/whole.h"
#include "tn/driver.h"

typedef struct tn_sim_kernel {
  tn_kernel_fn_t code;                 // NULL: |program| runs on the kernel interpreter
  const tn_kernel_program_t* program;  // kept for that case only
  int operand_count, loop_count, scalar_count;
  const tn_kernel_operand_binding_t* operands;
  const int64_t *strides, *dims;
  const tn_kernel_scalar_binding_t* scalars;
  int64_t outer_count, vector_extent, cost;
  int parallel_count;
  tn_reduce_cut_t cut;
} tn_sim_kernel_t;

typedef struct tn_sim_binding {
  int buffer;
  int64_t offset;  // bytes
} tn_sim_binding_t;

typedef struct tn_sim_node {
  tn_whole_t whole;
  const char* name;
  int operand_count, result_count;
  const tn_sim_binding_t *operands, *results;
  tn_sim_binding_t addend;  // buffer -1: none
} tn_sim_node_t;

typedef struct tn_sim_copy {
  tn_view_t from, to;  // data is NULL
  tn_sim_binding_t from_binding, to_binding;
} tn_sim_copy_t;

typedef struct tn_sim_step {
  tn_step_kind_t kind;
  union {
    tn_sim_kernel_t kernel;
    tn_sim_node_t node;
    tn_sim_copy_t copy;
  };
} tn_sim_step_t;

struct tn_program {
  tn_arena_t arena;
  int step_count, buffer_count;
  tn_sim_step_t* steps;
  tn_plan_buffer_t* buffers;
  int64_t temporary_bytes;  // scratch block without workspace
  int64_t workspace_offset, scratch_bytes;
  int interpreted_count, generated_count;
  int64_t flops;
};

#endif  // TN_DRIVER_SIM_PROGRAM_H_
