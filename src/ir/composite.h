// Composites: named operations with a decomposition into basic ops.
//
// src/ir/composites.inc has one row per name and says what its operands, attributes and results are.
#ifndef TN_IR_COMPOSITE_H_
#define TN_IR_COMPOSITE_H_

#include "ir/shape.h"

// Result types from operands and attributes; sets shape->result_count. Checks everything the expansion relies on.
typedef tn_status_t (*tn_composite_types_fn_t)(tn_shape_t* shape);
// Builds the results on |operands|; errors are left in the graph.
typedef void (*tn_composite_expand_fn_t)(tn_graph_t* graph, const tn_node_t* composite,
                                         const tn_node_t* const* operands,
                                         const tn_node_t** out_results);

typedef struct tn_composite_row {
  const char* name;
  int least_operands, most_operands;
  tn_composite_types_fn_t types;
  tn_composite_expand_fn_t expand;
} tn_composite_row_t;

// NULL if there is none of that name.
const tn_composite_row_t* tn_composite_find(const char* name);
int tn_composite_count(void);
const tn_composite_row_t* tn_composite_at(int index);

#define TN_COMPOSITE(name, least, most)                                          \
  tn_status_t tn_composite_types_##name(tn_shape_t* shape);                      \
  void tn_composite_expand_##name(tn_graph_t* graph, const tn_node_t* composite, \
                                  const tn_node_t* const* operands,              \
                                  const tn_node_t** out_results);
#include "ir/composites.inc"
#undef TN_COMPOSITE

#endif  // TN_IR_COMPOSITE_H_
