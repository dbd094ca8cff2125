// Runs graphs and nodes: every value in a buffer of its own, freed after its last user.
#include "ir/interp_internal.h"

#include <stdlib.h>
#include <string.h>

#include "ir/graph_internal.h"

static tn_interp_fn_t function_of(tn_op_t op) {
  switch (op) {
    case TN_OP_CONST: return tn_interp_constant;
    case TN_OP_IOTA: return tn_interp_iota;
    case TN_OP_IS_FINITE: return tn_interp_is_finite;
    case TN_OP_CONVERT: return tn_interp_convert;
    case TN_OP_BITCAST: return tn_interp_bitcast;
    case TN_OP_REAL:
    case TN_OP_IMAG: return tn_interp_parts;
    case TN_OP_COMPARE: return tn_interp_compare;
    case TN_OP_COMPLEX: return tn_interp_complex;
    case TN_OP_SELECT: return tn_interp_select;
    case TN_OP_CLAMP: return tn_interp_clamp;
    case TN_OP_FMA: return tn_interp_fma;
    case TN_OP_BROADCAST_IN_DIM: return tn_interp_broadcast_in_dim;
    case TN_OP_RESHAPE: return tn_interp_reshape;
    case TN_OP_TRANSPOSE: return tn_interp_transpose;
    case TN_OP_REVERSE: return tn_interp_reverse;
    case TN_OP_SLICE: return tn_interp_slice;
    case TN_OP_PAD: return tn_interp_pad;
    case TN_OP_CONCAT: return tn_interp_concat;
    case TN_OP_DYNAMIC_SLICE: return tn_interp_dynamic_slice;
    case TN_OP_DYNAMIC_UPDATE_SLICE: return tn_interp_dynamic_update_slice;
    case TN_OP_GATHER: return tn_interp_gather;
    case TN_OP_SCATTER: return tn_interp_scatter;
    case TN_OP_REDUCE: return tn_interp_reduce;
    case TN_OP_ARG_REDUCE: return tn_interp_arg_reduce;
    case TN_OP_REDUCE_WINDOW: return tn_interp_reduce_window;
    case TN_OP_WINDOW_GRAD: return tn_interp_window_grad;
    case TN_OP_SCAN: return tn_interp_scan;
    case TN_OP_SORT: return tn_interp_sort;
    case TN_OP_TOPK: return tn_interp_topk;
    case TN_OP_DOT_GENERAL: return tn_interp_dot_general;
    case TN_OP_CONVOLUTION: return tn_interp_convolution;
    case TN_OP_RNG_BITS: return tn_interp_rng_bits;
    case TN_OP_PARAM:
    case TN_OP_RESULT:
    case TN_OP_COMPOSITE:
    case TN_OP_CUSTOM_CALL:
    case TN_OP_COUNT: return NULL;
    default: return op < TN_OP_ADD ? tn_interp_unary : tn_interp_binary;
  }
}

static size_t type_bytes(const tn_type_t* type) {
  return (size_t)tn_type_element_count(type) * tn_dtype_size(type->dtype);
}

// A decomposition is built on parameters in a graph of its own and interpreted.
static tn_status_t run_composite(const tn_node_t* node, const void* const* operands,
                                 void* const* results) {
  tn_graph_t* graph;
  TN_TRY(tn_graph_create(&graph));
  const tn_node_t** nodes = tn_graph_alloc(
      graph, sizeof(*nodes) * (size_t)(node->operand_count + node->result_count + 1));
  tn_status_t status =
      nodes ? TN_OK : TN_ERROR(TN_RESOURCE_EXHAUSTED, "interpreter: out of memory");
  if (status) goto done;
  const tn_node_t** outputs = nodes + node->operand_count;
  for (int i = 0; i < node->operand_count; ++i) {
    nodes[i] = tn_graph_param(graph, &node->operands[i]->types[0], NULL);
  }
  status = tn_composite_expand(graph, node, nodes, outputs);
  if (status) goto done;
  for (int i = 0; i < node->result_count; ++i) tn_graph_add_result(graph, outputs[i], NULL);
  status = tn_graph_interpret(graph, operands, results);
done:
  tn_graph_destroy(graph);
  return status;
}

tn_status_t tn_interp_node(const tn_node_t* node, const void* const* operands,
                           void* const* results) {
  if (node->op == TN_OP_COMPOSITE) return run_composite(node, operands, results);
  if (node->op == TN_OP_CUSTOM_CALL) {
    const char* name = tn_node_name(node);
    return TN_ERROR(TN_UNIMPLEMENTED, "interpreter: no custom call '%s'", name ? name : "");
  }
  const tn_interp_fn_t run = function_of(node->op);
  if (!run)
    return TN_ERROR(TN_INTERNAL, "interpreter: %s is not run by itself",
                    tn_op_info(node->op)->name);
  return run(node, operands, results);
}

// One value of a running graph: result |types[i]| of a node.
typedef struct tn_value {
  void* data;
  bool is_owned;
} tn_value_t;

typedef struct tn_run {
  const tn_graph_t* graph;
  tn_value_t** values;  // by node id, one per result; NULL: not computed
  uint32_t* last_use;   // by node id: highest id of a user, UINT32_MAX for results of the graph
} tn_run_t;

static const void* value_of(const tn_run_t* run, const tn_node_t* node) {
  if (node->op == TN_OP_RESULT) return run->values[node->operands[0]->id][node->user_index].data;
  return run->values[node->id][0].data;
}

static void drop(tn_run_t* run, const tn_node_t* node) {
  tn_value_t* values = run->values[node->id];
  if (!values) return;
  for (int i = 0; i < node->result_count; ++i) {
    if (values[i].is_owned) free(values[i].data);
  }
  free(values);
  run->values[node->id] = NULL;
}

// Marks what the results need, and when it is needed last.
static void find_uses(tn_run_t* run) {
  const tn_graph_t* graph = run->graph;
  uint32_t limit = tn_graph_node_limit(graph);
  for (int i = 0; i < tn_graph_result_count(graph); ++i) {
    run->last_use[tn_graph_result_at(graph, i)->node->id] = UINT32_MAX;
  }
  for (uint32_t id = limit; id-- > 0;) {
    if (!run->last_use[id]) continue;
    const tn_node_t* node = tn_graph_node_at(graph, id);
    // a RESULT is only a name: its operand lives as long as the RESULT is used
    const uint32_t until = node->op == TN_OP_RESULT ? run->last_use[id] : id;
    for (int i = 0; i < node->operand_count; ++i) {
      uint32_t* last = &run->last_use[node->operands[i]->id];
      if (*last < until) *last = until;
    }
  }
}

static tn_status_t run_node(tn_run_t* run, const tn_node_t* node, const void** operands) {
  tn_value_t* values = calloc((size_t)node->result_count + 1, sizeof *values);
  void** results = calloc((size_t)node->result_count + 1, sizeof *results);
  tn_status_t status = TN_OK;
  if (!values || !results) {
    status = TN_ERROR(TN_RESOURCE_EXHAUSTED, "interpreter: out of memory");
    free(values);
    goto done;
  }
  run->values[node->id] = values;
  for (int i = 0; i < node->result_count; ++i) {
    status = tn_interp_alloc((int64_t)type_bytes(&node->types[i]), 1, &values[i].data);
    if (status) goto done;
    values[i].is_owned = true;
    results[i] = values[i].data;
  }
  for (int i = 0; i < node->operand_count; ++i) operands[i] = value_of(run, node->operands[i]);
  status =
      tn_status_annotate(tn_interp_node(node, operands, results), "%s", tn_op_info(node->op)->name);
done:
  free(results);
  return status;
}

static tn_status_t run_graph(tn_run_t* run, const void* const* params, void* const* results,
                             const void** operands) {
  const tn_graph_t* graph = run->graph;
  for (int i = 0; i < tn_graph_param_count(graph); ++i) {
    const tn_node_t* param = tn_graph_param_at(graph, i);
    tn_value_t* value = calloc(1, sizeof *value);
    if (!value) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "interpreter: out of memory");
    // only read; a copy would protect a caller who passes one buffer as parameter and result, which is their affair
    memcpy(&value->data, &params[i], sizeof value->data);
    run->values[param->id] = value;
  }
  const uint32_t limit = tn_graph_node_limit(graph);
  for (uint32_t id = 0; id < limit; ++id) {
    const tn_node_t* node = tn_graph_node_at(graph, id);
    if (!run->last_use[id] || node->op == TN_OP_PARAM || node->op == TN_OP_RESULT) continue;
    TN_TRY(run_node(run, node, operands));
    for (int i = 0; i < node->operand_count; ++i) {
      const tn_node_t* operand = node->operands[i];
      if (operand->op == TN_OP_RESULT) operand = operand->operands[0];
      if (run->last_use[operand->id] == id) drop(run, operand);
    }
  }
  for (int i = 0; i < tn_graph_result_count(graph); ++i) {
    const tn_node_t* node = tn_graph_result_at(graph, i)->node;
    const size_t size = type_bytes(&node->types[0]);
    if (size) memmove(results[i], value_of(run, node), size);
  }
  return TN_OK;
}

tn_status_t tn_graph_interpret(const tn_graph_t* graph, const void* const* params,
                               void* const* results) {
  TN_TRY(tn_graph_status(graph));
  const uint32_t limit = tn_graph_node_limit(graph);
  size_t most_operands = 1;
  for (uint32_t id = 0; id < limit; ++id) {
    const size_t count = (size_t)tn_graph_node_at(graph, id)->operand_count;
    if (count > most_operands) most_operands = count;
  }
  tn_run_t run = {.graph = graph};
  run.values = calloc((size_t)limit + 1, sizeof(*run.values));
  run.last_use = calloc((size_t)limit + 1, sizeof(*run.last_use));
  const void** operands = calloc(most_operands, sizeof(*operands));
  tn_status_t status;
  if (run.values && run.last_use && operands) {
    find_uses(&run);
    status = run_graph(&run, params, results, operands);
  } else {
    status = TN_ERROR(TN_RESOURCE_EXHAUSTED, "interpreter: out of memory");
  }
  for (uint32_t id = 0; run.values && id < limit; ++id) drop(&run, tn_graph_node_at(graph, id));
  free(operands);
  free(run.last_use);
  free(run.values);
  return status;
}
