// The plan of a graph: buffers, and steps in the order in which they run.
//
// It is what src/compile hands to a driver. A step is a generated kernel, or a node that the driver runs as a whole
// (contraction, convolution, sort, ...), or a strided copy. All memory of a plan is in its arena; nodes point into the
// graph it was made from, which must outlive it.
#ifndef TN_COMPILE_PLAN_H_
#define TN_COMPILE_PLAN_H_

#include "base/arena.h"
#include "tn/graph.h"
#include "tn/kernel_program.h"

typedef enum tn_buffer_kind {
  TN_BUFFER_PARAM,
  TN_BUFFER_RESULT,
  TN_BUFFER_TEMPORARY,
  TN_BUFFER_CONSTANT,
} tn_buffer_kind_t;

typedef struct tn_plan_buffer {
  tn_buffer_kind_t kind;
  int index;                  // of the parameter or result
  int64_t size;               // bytes
  int64_t offset;             // of a temporary in the scratch block, 64-aligned
  const void* data;           // of a constant
  int first_step, last_step;  // lifetime of a temporary
} tn_plan_buffer_t;

// A strided window of a buffer.
typedef struct tn_plan_view {
  int buffer;
  int64_t offset;  // elements
  tn_type_t type;
  int64_t strides[TN_MAX_RANK];  // elements
} tn_plan_view_t;

bool tn_plan_view_is_contiguous(const tn_plan_view_t* view);
// Row-major strides of |type|.
void tn_contiguous_strides(const tn_type_t* type, int64_t* out_strides);
// Strides of the same memory seen with the dims of |type|; false if no strides can say it.
bool tn_plan_view_reshape(const tn_plan_view_t* view, const tn_type_t* type,
                          tn_plan_view_t* out_view);

typedef struct tn_kernel_operand_binding {
  int buffer;      // -1: an INDEX operand
  int64_t offset;  // bytes (INDEX: start value)
} tn_kernel_operand_binding_t;

typedef struct tn_kernel_scalar_binding {
  int param;  // parameter index, or -1: |value|
  tn_dtype_t dtype;
  tn_scalar_t value;
} tn_kernel_scalar_binding_t;

// How a reduction is cut: its elements, in order, into blocks that are reduced on their own; see ir/reduce_order.h.
typedef struct tn_reduce_cut {
  int64_t block_count, block, length;  // one block: not cut; else elements of a block and of all
  uint8_t kind, dtype;                 // tn_reduce_kind_t, and the dtype as accumulated
  bool is_row;                         // the reduced loop is the vector loop
} tn_reduce_cut_t;

typedef struct tn_kernel_step {
  tn_kernel_program_t* program;
  tn_kernel_operand_binding_t* operands;
  int64_t* strides;  // [operand][loop], bytes
  int64_t* dims;     // [loop]
  tn_kernel_scalar_binding_t* scalars;
  int64_t outer_count;    // points of the parallel loops without the vector loop
  int64_t vector_extent;  // of the vector loop if it is parallel, else 1
  tn_reduce_cut_t cut;
  int64_t cost;  // of one outer point (times one vector point if parallel), in cheap operations
} tn_kernel_step_t;

typedef struct tn_node_step {
  const tn_node_t* node;
  int operand_count, result_count;
  tn_plan_view_t* operands;  // scalar parameters: views of their parameter
  tn_plan_view_t* results;
  // A bias or residual that the contraction adds on its tile: result = node + epilogue (broadcast to its type).
  bool has_addend;
  tn_plan_view_t addend;
} tn_node_step_t;

typedef enum tn_step_kind { TN_STEP_KERNEL, TN_STEP_NODE, TN_STEP_COPY } tn_step_kind_t;

typedef struct tn_step {
  tn_step_kind_t kind;
  tn_kernel_step_t kernel;
  tn_node_step_t node;
  tn_plan_view_t from, to;  // COPY, equal dims; dtypes are equal
} tn_step_t;

typedef struct tn_plan {
  tn_arena_t* arena;
  tn_plan_buffer_t* buffers;
  int buffer_count, buffer_capacity;
  tn_step_t** steps;
  int step_count, step_capacity;
  int64_t temporary_bytes;
} tn_plan_t;

// What a driver can run as one step.
typedef struct tn_plan_target {
  // True if the driver has a kernel for this composite; else its decomposition is planned.
  bool (*has_composite)(const tn_node_t* node);
  // True if operand |index| of this node may lie in memory as |view| does; else the plan makes it contiguous.
  bool (*takes_view)(const tn_node_t* node, int operand, const tn_plan_view_t* view);
  bool (*writes_strides)(const tn_node_t* node);
  // True if the node can add a broadcast addend to its result.
  bool (*takes_addend)(const tn_node_t* node, const tn_plan_view_t* addend);
} tn_plan_target_t;

// simplify, fuse, plan; the one place that lists the passes. |scratch| receives the simplified graph, which the plan's
// nodes point into.
tn_status_t tn_compile_plan(const tn_graph_t* graph, const tn_plan_target_t* target,
                            tn_graph_t* scratch, tn_arena_t* arena, tn_plan_t* out_plan);

// Buffers and steps as text, kernel programs included; the caller frees |out_text|.
tn_status_t tn_plan_print(const tn_plan_t* plan, char** out_text);

#endif  // TN_COMPILE_PLAN_H_
