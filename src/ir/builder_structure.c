// Builders of results, composites and custom calls.
#include <string.h>

#include "ir/graph_internal.h"

const tn_node_t* tn_result(tn_graph_t* graph, const tn_node_t* node, int index) {
  if (node && node->result_count == 1 && index == 0) return node;
  tn_attr_t attr = tn_attr_int(TN_ATTR_INDEX, index);
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_RESULT, 1, &node, 1, &attr, 1, &type);
}

// The name first, then the attributes in the order of their names: one form whoever builds the node.
static tn_attr_t* named_attrs(tn_graph_t* graph, const char* name, int attr_count,
                              const tn_attr_t* attrs) {
  tn_attr_t* all = tn_graph_alloc(graph, sizeof(tn_attr_t) * ((size_t)attr_count + 1));
  if (!all) return NULL;
  all[0] =
      (tn_attr_t){.name = TN_ATTR_NAME, .kind = TN_ATTR_STRING, .count = (int64_t)strlen(name)};
  all[0].as.string = name;
  int count = 1;
  for (int i = 0; i < attr_count; ++i) {
    int at = count++;
    for (; at > 1 && all[at - 1].name > attrs[i].name; --at) all[at] = all[at - 1];
    all[at] = attrs[i];
  }
  return all;
}

const tn_node_t* tn_composite(tn_graph_t* graph, const char* name, int operand_count,
                              const tn_node_t* const* operands, int attr_count,
                              const tn_attr_t* attrs) {
  tn_attr_t* all = named_attrs(graph, name, attr_count, attrs);
  if (!all) return NULL;
  tn_type_t types[TN_MAX_RESULTS];
  return tn_graph_build(graph, TN_OP_COMPOSITE, operand_count, operands, attr_count + 1, all, 0,
                        types);
}

const tn_node_t* tn_custom_call(tn_graph_t* graph, const char* name, int operand_count,
                                const tn_node_t* const* operands, int attr_count,
                                const tn_attr_t* attrs, int result_count, const tn_type_t* types) {
  tn_attr_t* all = named_attrs(graph, name, attr_count, attrs);
  if (!all || result_count < 0) return NULL;
  tn_type_t* copies = tn_graph_alloc(graph, sizeof(tn_type_t) * (size_t)(result_count + 1));
  if (!copies) return NULL;
  if (result_count) memcpy(copies, types, sizeof(tn_type_t) * (size_t)result_count);
  return tn_graph_build(graph, TN_OP_CUSTOM_CALL, operand_count, operands, attr_count + 1, all,
                        result_count, copies);
}
