// Builds the kernel program of one group of nodes: roots that are stored, and all that is inlined into them.
#ifndef TN_COMPILE_KERNEL_BUILDER_H_
#define TN_COMPILE_KERNEL_BUILDER_H_

#include "compile/plan.h"

// Where the builder finds values that are already in memory.
typedef struct tn_memory_map {
  void* context;
  // The view of |node| if it is in memory (parameter, constant array, stored root), directly or through movement.
  bool (*find)(void* context, const tn_node_t* node, tn_plan_view_t* out_view);
} tn_memory_map_t;

typedef struct tn_kernel_request {
  tn_graph_t* graph;
  tn_arena_t* arena;
  tn_memory_map_t memory;
  int root_count;
  const tn_node_t* const* roots;  // of equal dims
  const tn_plan_view_t* targets;  // where each root is stored
} tn_kernel_request_t;

typedef enum tn_build_result {
  TN_BUILD_OK,
  TN_BUILD_BLOCKED,     // |out_blame| must be in memory first; then try again
  TN_BUILD_IMPOSSIBLE,  // no kernel program can express it
  TN_BUILD_NO_MEMORY,
} tn_build_result_t;

tn_build_result_t tn_kernel_build(const tn_kernel_request_t* request, tn_kernel_step_t* out_step,
                                  const tn_node_t** out_blame);

// True if |node| is an elementwise op on dtypes that kernel programs have.
bool tn_kernel_can_compute(const tn_node_t* node);

#endif  // TN_COMPILE_KERNEL_BUILDER_H_
