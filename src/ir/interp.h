// The reference interpreter, one node at a time. tn_graph_interpret (tn/graph.h) runs whole graphs.
#ifndef TN_IR_INTERP_H_
#define TN_IR_INTERP_H_

#include "tn/graph.h"

// Computes |node| from row-major contiguous |operands| into row-major contiguous |results|.
// OUT_OF_RANGE when an index is outside its dimension (bounds ERROR and WRAP); UNIMPLEMENTED for custom calls.
tn_status_t tn_interp_node(const tn_node_t* node, const void* const* operands,
                           void* const* results);

#endif  // TN_IR_INTERP_H_
