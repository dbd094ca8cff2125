// Inside of a graph, shared by the files of src/ir.
//
// Nodes are found again through an open-addressing table of (epoch, id); an entry of another epoch is empty, so that
// a reset costs nothing however large the table has grown.
#ifndef TN_IR_GRAPH_INTERNAL_H_
#define TN_IR_GRAPH_INTERNAL_H_

#include "base/arena.h"
#include "tn/graph.h"

typedef struct tn_table_entry {
  uint32_t epoch, id;
} tn_table_entry_t;

struct tn_graph {
  tn_arena_t arena;
  const tn_node_t** nodes;  // by id
  uint32_t node_count, node_capacity;
  tn_table_entry_t* table;
  uint32_t table_mask;  // capacity - 1, a power of two
  uint32_t epoch;
  const tn_node_t** params;
  int param_count, param_capacity;
  tn_graph_result_t* results;
  int result_count, result_capacity;
  tn_status_t status;  // first error, owned
};

// Most results a sort or a composite may have.
enum { TN_MAX_RESULTS = 16 };

// What identifies a node. |types|: on entry of tn_graph_build the declared types of ops that take one (see
// tn_shape_infer), on return all of them; capacity |result_count| or TN_MAX_RESULTS.
// Returns the one node of the graph that equals it, after checking it against the op's shape rule.
const tn_node_t* tn_graph_build(tn_graph_t* graph, tn_op_t op, int operand_count,
                                const tn_node_t* const* operands, int attr_count,
                                const tn_attr_t* attrs, int result_count, tn_type_t* types);

// Same without the check; used where the types are known to be right.
const tn_node_t* tn_graph_intern(tn_graph_t* graph, tn_op_t op, int operand_count,
                                 const tn_node_t* const* operands, int attr_count,
                                 const tn_attr_t* attrs, int result_count, const tn_type_t* types);

// True when |strides| (elements) lay |type| out row-major; dimensions of extent 1 and empty tensors do not matter.
bool tn_strides_are_contiguous(const tn_type_t* type, const int64_t* strides);

// An attribute in a list, or NULL.
const tn_attr_t* tn_attr_find(int attr_count, const tn_attr_t* attrs, tn_attr_name_t name);
bool tn_attr_equal(const tn_attr_t* a, const tn_attr_t* b);

// "tensor<2x3xf32>" into |buffer|; returns |buffer|.
enum { TN_TYPE_TEXT_SIZE = 32 + 21 * TN_MAX_RANK };
const char* tn_type_format(const tn_type_t* type, char* buffer);

// Whether a result that is written over a parameter has its type and layout; true for all others.
bool tn_result_fills_param(const tn_graph_t* graph, const tn_graph_result_t* result);

#endif  // TN_IR_GRAPH_INTERNAL_H_
