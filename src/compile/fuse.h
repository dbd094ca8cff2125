// Which nodes are stored in memory, and which are computed inside their consumers' kernels.
#ifndef TN_COMPILE_FUSE_H_
#define TN_COMPILE_FUSE_H_

#include "compile/plan.h"

typedef struct tn_fusion {
  uint32_t node_count;
  bool* is_live;    // reaches a result
  bool* is_stored;  // by node id: has a buffer of its own
} tn_fusion_t;

tn_status_t tn_fuse(const tn_graph_t* graph, const tn_plan_target_t* target, tn_arena_t* arena,
                    tn_fusion_t* out_fusion);

// True if the node is run by the driver as a whole, not as a generated kernel.
bool tn_fuse_is_whole(const tn_node_t* node);

#endif  // TN_COMPILE_FUSE_H_
