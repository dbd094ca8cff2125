// Which nodes are stored in memory, and which are computed inside their consumers' kernels.
#ifndef TN_COMPILE_FUSE_H_
#define TN_COMPILE_FUSE_H_

#include "compile/plan.h"

// Why a node has a buffer of its own; 0 for one that is computed inside its consumers.
typedef enum tn_store {
  TN_STORE_NOT,
  TN_STORE_RESULT,     // it is a result
  TN_STORE_WHOLE,      // the driver runs it as a step of its own
  TN_STORE_OPERAND,    // such a step reads it
  TN_STORE_REDUCTION,  // a reduction that no single consumer finishes
  TN_STORE_SHARED,     // several groups read it, and repeating it is dear
  TN_STORE_REPEATED,   // its consumer reads every element more than once
} tn_store_t;

typedef struct tn_fusion {
  uint32_t node_count;
  bool* is_live;        // by node id: reaches a result
  tn_store_t* storing;  // by node id
} tn_fusion_t;

tn_status_t tn_fuse(const tn_graph_t* graph, const tn_plan_target_t* target, tn_arena_t* arena,
                    tn_fusion_t* out_fusion);

// True if the node is run by the driver as a whole, not as a generated kernel.
bool tn_fuse_is_whole(const tn_node_t* node);

// Every group of |graph| as text: why its root is stored, and the lines of the nodes computed with it. The caller frees
// |out_text|.
tn_status_t tn_fusion_print(const tn_graph_t* graph, const tn_fusion_t* fusion, char** out_text);

#endif  // TN_COMPILE_FUSE_H_
