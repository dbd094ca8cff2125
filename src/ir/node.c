// Building any node through its shape rule, and reading nodes.
#include <string.h>

#include "ir/graph_internal.h"
#include "ir/shape.h"

const tn_node_t* tn_graph_build(tn_graph_t* graph, tn_op_t op, int operand_count,
                                const tn_node_t* const* operands, int attr_count,
                                const tn_attr_t* attrs, int result_count, tn_type_t* types) {
  for (int i = 0; i < operand_count; ++i) {
    if (!operands[i]) {
      return tn_graph_fail(
          graph, TN_ERROR(TN_INTERNAL, "%s: operand %d is missing", tn_op_info(op)->name, i));
    }
  }
  if (graph->status) return NULL;
  tn_shape_t shape = {.op = op,
                      .operand_count = operand_count,
                      .operands = operands,
                      .attr_count = attr_count,
                      .attrs = attrs,
                      .result_count = result_count,
                      .types = types};
  tn_status_t status = tn_shape_infer(&shape);
  if (status) return tn_graph_fail(graph, status);
  return tn_graph_intern(graph, op, operand_count, operands, attr_count, attrs, shape.result_count,
                         types);
}

const tn_node_t* tn_graph_rebuild(tn_graph_t* graph, const tn_node_t* node,
                                  const tn_node_t* const* operands) {
  tn_type_t few[TN_MAX_RESULTS];
  tn_type_t* types = few;
  if (node->op == TN_OP_PARAM) {
    return tn_graph_fail(graph, TN_ERROR(TN_INTERNAL, "rebuild: a parameter belongs to its graph"));
  }
  if (node->result_count > TN_MAX_RESULTS) {
    types = tn_graph_alloc(graph, sizeof(tn_type_t) * (size_t)node->result_count);
    if (!types) return NULL;
  }
  memcpy(types, node->types, sizeof(tn_type_t) * (size_t)node->result_count);
  return tn_graph_build(graph, node->op, node->operand_count, operands, node->attr_count,
                        node->attrs, node->result_count, types);
}

const tn_attr_t* tn_attr_find(int attr_count, const tn_attr_t* attrs, tn_attr_name_t name) {
  for (int i = 0; i < attr_count; ++i) {
    if (attrs[i].name == name) return &attrs[i];
  }
  return NULL;
}

const tn_attr_t* tn_node_attr(const tn_node_t* node, tn_attr_name_t name) {
  return tn_attr_find(node->attr_count, node->attrs, name);
}
int64_t tn_node_int(const tn_node_t* node, tn_attr_name_t name, int64_t otherwise) {
  const tn_attr_t* attr = tn_node_attr(node, name);
  return attr && attr->kind == TN_ATTR_INT ? attr->as.integer : otherwise;
}
double tn_node_float(const tn_node_t* node, tn_attr_name_t name, double otherwise) {
  const tn_attr_t* attr = tn_node_attr(node, name);
  if (attr && attr->kind == TN_ATTR_INT) return (double)attr->as.integer;
  return attr && attr->kind == TN_ATTR_FLOAT ? attr->as.real : otherwise;
}
const int64_t* tn_node_ints(const tn_node_t* node, tn_attr_name_t name, int64_t* out_count) {
  const tn_attr_t* attr = tn_node_attr(node, name);
  bool is_ints = attr && attr->kind == TN_ATTR_INTS;
  if (out_count) *out_count = is_ints ? attr->count : 0;
  return is_ints ? attr->as.ints : NULL;
}
const char* tn_node_name(const tn_node_t* node) {
  const tn_attr_t* attr = tn_node_attr(node, TN_ATTR_NAME);
  return attr && attr->kind == TN_ATTR_STRING ? attr->as.string : NULL;
}

bool tn_node_splat(const tn_node_t* node, tn_scalar_t* out_value) {
  while (node->op == TN_OP_BROADCAST_IN_DIM || node->op == TN_OP_RESHAPE ||
         node->op == TN_OP_TRANSPOSE) {
    node = node->operands[0];
  }
  if (node->op != TN_OP_CONST) return false;
  const tn_attr_t* value = &node->attrs[0];
  size_t size = tn_dtype_size(node->types[0].dtype);
  if ((size_t)value->count != size) return false;  // constants of equal elements are stored as one
  memset(out_value, 0, sizeof *out_value);
  memcpy(out_value->bytes, value->as.bytes, size);
  return true;
}

bool tn_result_fills_param(const tn_graph_t* graph, const tn_graph_result_t* result) {
  if (result->same_as_param < 0) return true;
  const tn_node_t* param = tn_graph_param_at(graph, result->same_as_param);
  const tn_type_t* type = &param->types[0];
  if (tn_param_is_scalar(param) || !result->node || !tn_type_equal(type, &result->node->types[0]))
    return false;
  const int64_t* strides = tn_param_strides(param);
  int64_t next = 1;
  for (int d = type->rank - 1; d >= 0; --d) {
    const int64_t own = result->is_contiguous ? next : result->strides[d];
    if (type->dims[d] > 1 && own != (strides ? strides[d] : next)) return false;
    next *= type->dims[d];
  }
  return true;
}

tn_status_t tn_graph_verify(const tn_graph_t* graph) {
  TN_TRY(tn_graph_status(graph));
  for (uint32_t id = 0; id < graph->node_count; ++id) {
    const tn_node_t* node = graph->nodes[id];
    if (node->id != id) return TN_ERROR(TN_INTERNAL, "node %u: numbered %u", id, node->id);
    for (int i = 0; i < node->operand_count; ++i) {
      const tn_node_t* operand = node->operands[i];
      if (!operand || operand->id >= id || graph->nodes[operand->id] != operand) {
        return TN_ERROR(TN_INTERNAL, "node %u %s: operand %d is not an earlier node of this graph",
                        id, tn_op_info(node->op)->name, i);
      }
    }
    tn_type_t few[TN_MAX_RESULTS];
    if (node->result_count > TN_MAX_RESULTS) continue;  // only custom calls, whose types are free
    memcpy(few, node->types, sizeof(tn_type_t) * (size_t)node->result_count);
    tn_shape_t shape = {.op = node->op,
                        .operand_count = node->operand_count,
                        .operands = node->operands,
                        .attr_count = node->attr_count,
                        .attrs = node->attrs,
                        .result_count = node->result_count,
                        .types = few};
    tn_status_t status = tn_shape_infer(&shape);
    if (status) {
      tn_status_t wrapped = TN_ERROR(TN_INTERNAL, "node %u: %s", id, tn_status_message(status));
      tn_status_free(status);
      return wrapped;
    }
    if (shape.result_count != node->result_count) {
      return TN_ERROR(TN_INTERNAL, "node %u %s: has %d results, its rule gives %d", id,
                      tn_op_info(node->op)->name, node->result_count, shape.result_count);
    }
    for (int i = 0; i < node->result_count; ++i) {
      char has[TN_TYPE_TEXT_SIZE], gives[TN_TYPE_TEXT_SIZE];
      if (tn_type_equal(&few[i], &node->types[i])) continue;
      return TN_ERROR(TN_INTERNAL, "node %u %s: result %d is %s, its rule gives %s", id,
                      tn_op_info(node->op)->name, i, tn_type_format(&node->types[i], has),
                      tn_type_format(&few[i], gives));
    }
  }
  for (int i = 0; i < graph->result_count; ++i) {
    const tn_graph_result_t* result = &graph->results[i];
    if (result->same_as_param >= graph->param_count) {
      return TN_ERROR(TN_INTERNAL, "result %d: aliases parameter %d of %d", i,
                      result->same_as_param, graph->param_count);
    }
    if (!tn_result_fills_param(graph, result))
      return TN_ERROR(TN_INTERNAL, "result %d: parameter %d has another type or layout", i,
                      result->same_as_param);
  }
  return TN_OK;
}
