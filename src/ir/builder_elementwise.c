// Builders of leaves and elementwise ops.
#include <string.h>

#include "ir/graph_internal.h"

// ---- leaves ---------------------------------------------------------------------------------------------
static const tn_node_t* build_constant(tn_graph_t* graph, const tn_type_t* type, const void* data,
                                       size_t size) {
  tn_attr_t value = {.name = TN_ATTR_VALUE, .kind = TN_ATTR_BYTES, .count = (int64_t)size};
  value.as.bytes = data;
  tn_type_t types[1] = {*type};
  return tn_graph_build(graph, TN_OP_CONST, 0, NULL, 1, &value, 1, types);
}

const tn_node_t* tn_constant(tn_graph_t* graph, const tn_type_t* type, const void* data) {
  size_t size = tn_dtype_size(type->dtype);
  int64_t count = tn_type_element_count(type);
  const tn_scalar_t zero = {0};
  if (count <= 0) return build_constant(graph, type, zero.bytes, size);
  // All elements equal: compare the data with itself, shifted by one element.
  size_t rest = size * (size_t)(count - 1);
  bool is_splat = memcmp(data, (const uint8_t*)data + size, rest) == 0;
  return build_constant(graph, type, data, is_splat ? size : size + rest);
}

const tn_node_t* tn_constant_splat(tn_graph_t* graph, const tn_type_t* type, tn_scalar_t value) {
  return build_constant(graph, type, value.bytes, tn_dtype_size(type->dtype));
}
const tn_node_t* tn_constant_double(tn_graph_t* graph, tn_dtype_t dtype, double value) {
  tn_type_t type = tn_type_make(dtype, 0, NULL);
  return tn_constant_splat(graph, &type, tn_scalar_from_double(dtype, value));
}
const tn_node_t* tn_constant_int(tn_graph_t* graph, tn_dtype_t dtype, int64_t value) {
  tn_type_t type = tn_type_make(dtype, 0, NULL);
  return tn_constant_splat(graph, &type, tn_scalar_from_int(dtype, value));
}
const tn_node_t* tn_constant_like(tn_graph_t* graph, const tn_node_t* like, double value) {
  if (!like) return tn_graph_fail(graph, TN_ERROR(TN_INTERNAL, "constant: no node to be like"));
  return tn_constant_splat(graph, &like->types[0],
                           tn_scalar_from_double(like->types[0].dtype, value));
}

const tn_node_t* tn_iota(tn_graph_t* graph, const tn_type_t* type, int dimension) {
  tn_attr_t attr = tn_attr_int(TN_ATTR_DIMENSION, dimension);
  tn_type_t types[1] = {*type};
  return tn_graph_build(graph, TN_OP_IOTA, 0, NULL, 1, &attr, 1, types);
}

// ---- elementwise ------------------------------------------------------------------------------------------
const tn_node_t* tn_unary(tn_graph_t* graph, tn_op_t op, const tn_node_t* x) {
  tn_type_t type;
  return tn_graph_build(graph, op, 1, &x, 0, NULL, 1, &type);
}

static const tn_node_t* change_dtype(tn_graph_t* graph, tn_op_t op, const tn_node_t* x,
                                     tn_dtype_t dtype) {
  if (x && x->result_count == 1 && x->types[0].dtype == dtype) return x;
  tn_type_t type;
  type.dtype = dtype;
  return tn_graph_build(graph, op, 1, &x, 0, NULL, 1, &type);
}
const tn_node_t* tn_convert(tn_graph_t* graph, const tn_node_t* x, tn_dtype_t dtype) {
  return change_dtype(graph, TN_OP_CONVERT, x, dtype);
}
const tn_node_t* tn_bitcast(tn_graph_t* graph, const tn_node_t* x, tn_dtype_t dtype) {
  return change_dtype(graph, TN_OP_BITCAST, x, dtype);
}

const tn_node_t* tn_binary(tn_graph_t* graph, tn_op_t op, const tn_node_t* x, const tn_node_t* y) {
  const tn_node_t* operands[2] = {x, y};
  tn_type_t type;
  return tn_graph_build(graph, op, 2, operands, 0, NULL, 1, &type);
}
const tn_node_t* tn_compare(tn_graph_t* graph, tn_compare_t direction, const tn_node_t* x,
                            const tn_node_t* y) {
  const tn_node_t* operands[2] = {x, y};
  tn_attr_t attr = tn_attr_int(TN_ATTR_DIRECTION, direction);
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_COMPARE, 2, operands, 1, &attr, 1, &type);
}

static const tn_node_t* ternary(tn_graph_t* graph, tn_op_t op, const tn_node_t* x,
                                const tn_node_t* y, const tn_node_t* z) {
  const tn_node_t* operands[3] = {x, y, z};
  tn_type_t type;
  return tn_graph_build(graph, op, 3, operands, 0, NULL, 1, &type);
}
const tn_node_t* tn_select(tn_graph_t* graph, const tn_node_t* predicate, const tn_node_t* on_true,
                           const tn_node_t* on_false) {
  return ternary(graph, TN_OP_SELECT, predicate, on_true, on_false);
}
const tn_node_t* tn_clamp(tn_graph_t* graph, const tn_node_t* low, const tn_node_t* x,
                          const tn_node_t* high) {
  return ternary(graph, TN_OP_CLAMP, low, x, high);
}
const tn_node_t* tn_fma(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* y,
                        const tn_node_t* z) {
  return ternary(graph, TN_OP_FMA, x, y, z);
}
