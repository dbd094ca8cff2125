#include <stdlib.h>

#include "compile/passes.h"

tn_status_t tn_compile_plan(const tn_graph_t* graph, const tn_plan_target_t* target,
                            tn_graph_t* scratch, tn_arena_t* arena, tn_plan_t* out_plan) {
  TN_TRY(tn_simplify(graph, target, scratch));
#ifndef NDEBUG
  if (getenv("TN_VERIFY")) TN_TRY(tn_graph_verify(scratch));
#endif
  return tn_plan_fused(scratch, target, arena, out_plan);
}
