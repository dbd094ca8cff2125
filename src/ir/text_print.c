// Printing a graph as StableHLO text.
#include "tn/graph.h"

tn_status_t tn_graph_print(const tn_graph_t* graph, char** out_text) {
  (void)graph;
  *out_text = NULL;
  return TN_ERROR(TN_UNIMPLEMENTED, "print: not written yet");
}
