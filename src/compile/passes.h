// The passes, in the order of tn_compile_plan.
#ifndef TN_COMPILE_PASSES_H_
#define TN_COMPILE_PASSES_H_

#include "compile/plan.h"

// Rebuilds what |graph|'s results need in |out_graph| (empty): expands composites the target has no kernel for, removes
// operations without effect, composes movement. Bitwise equal to |graph|.
tn_status_t tn_simplify(const tn_graph_t* graph, const tn_plan_target_t* target,
                        tn_graph_t* out_graph);

// Fuses and plans |graph|; adds reshapes to it where the loops of a kernel need them.
tn_status_t tn_plan_fused(tn_graph_t* graph, const tn_plan_target_t* target, tn_arena_t* arena,
                          tn_plan_t* out_plan);

#endif  // TN_COMPILE_PASSES_H_
