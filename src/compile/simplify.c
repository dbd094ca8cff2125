// Rebuilds a graph with operations that do nothing removed and composites expanded where the target has no kernel.
// Every rule keeps the result bit for bit.
#include <string.h>

#include "compile/passes.h"

static bool is_splat_of(const tn_node_t* node, double value) {
  tn_scalar_t splat;
  if (!tn_node_splat(node, &splat)) return false;
  const tn_dtype_t dtype = node->types[0].dtype;
  const tn_scalar_t wanted = tn_scalar_from_double(dtype, value);
  return memcmp(&splat, &wanted, tn_dtype_size(dtype)) == 0;  // bits: -0.0 is not 0.0
}

// Every value of |from| is a value of |to|.
static bool is_exact_widening(tn_dtype_t from, tn_dtype_t to) {
  const tn_dtype_class_t from_class = tn_dtype_class(from), to_class = tn_dtype_class(to);
  if (from_class == TN_CLASS_COMPLEX || to_class == TN_CLASS_COMPLEX) return false;
  if (from == to || from_class == TN_CLASS_BOOL) return true;
  const size_t from_size = tn_dtype_size(from), to_size = tn_dtype_size(to);
  if (from_class == to_class && from_class != TN_CLASS_FLOAT) return from_size <= to_size;
  if (from_class == TN_CLASS_UNSIGNED && to_class == TN_CLASS_SIGNED) return from_size < to_size;
  if (from_class == TN_CLASS_FLOAT && to_class == TN_CLASS_FLOAT)
    return to_size >= 4 && from_size <= to_size;
  return false;
}

// What a reduction of no elements gives.
static tn_scalar_t reduce_identity(tn_reduce_kind_t kind, tn_dtype_t dtype) {
  const tn_dtype_class_t c = tn_dtype_class(dtype);
  const int bits = 8 * (int)tn_dtype_size(dtype);
  const bool is_max = kind == TN_REDUCE_MAX;
  switch (kind) {
    case TN_REDUCE_PROD: return tn_scalar_from_double(dtype, 1.0);
    case TN_REDUCE_AND: return tn_scalar_from_int(dtype, -1);
    case TN_REDUCE_MAX:
    case TN_REDUCE_MIN:
      if (c == TN_CLASS_FLOAT)
        return tn_scalar_from_double(dtype, is_max ? -__builtin_inf() : __builtin_inf());
      if (c == TN_CLASS_SIGNED)
        return tn_scalar_from_int(dtype, (is_max ? INT64_MIN : INT64_MAX) >> (64 - bits));
      return tn_scalar_from_int(dtype, is_max ? 0 : -1);
    default: return tn_scalar_from_double(dtype, 0.0);
  }
}

static const tn_node_t* simplify_node(tn_graph_t* graph, const tn_node_t* node,
                                      const tn_node_t* const* x) {
  int64_t count = 0;
  switch (node->op) {
    case TN_OP_MUL:
      if (is_splat_of(x[1], 1.0)) return x[0];
      if (is_splat_of(x[0], 1.0)) return x[1];
      break;
    // Division by 1 stays: the divisor of a mean is a size, and one of 1 must not make another kernel.
    case TN_OP_SUB:
      if (is_splat_of(x[1], 0.0)) return x[0];
      break;
    case TN_OP_ADD: {
      // x + 0 turns -0 into +0; x + (-0) keeps every x.
      const double zero = tn_dtype_is_float(node->types[0].dtype) ? -0.0 : 0.0;
      if (is_splat_of(x[1], zero)) return x[0];
      if (is_splat_of(x[0], zero)) return x[1];
      break;
    }
    case TN_OP_CONVERT:
      if (x[0]->op == TN_OP_CONVERT) {
        const tn_node_t* source = x[0]->operands[0];
        if (is_exact_widening(source->types[0].dtype, x[0]->types[0].dtype))
          return tn_convert(graph, source, node->types[0].dtype);
      }
      break;
    case TN_OP_RESHAPE:
      if (x[0]->op == TN_OP_RESHAPE)
        return tn_reshape(graph, x[0]->operands[0], node->types[0].rank, node->types[0].dims);
      break;
    case TN_OP_TRANSPOSE:
      if (x[0]->op == TN_OP_TRANSPOSE) {
        const int64_t* outer = tn_node_ints(node, TN_ATTR_DIMENSIONS, &count);
        const int64_t* inner = tn_node_ints(x[0], TN_ATTR_DIMENSIONS, &count);
        int64_t composed[TN_MAX_RANK];
        for (int64_t i = 0; i < count; ++i) composed[i] = inner[outer[i]];
        return tn_transpose(graph, x[0]->operands[0], composed);
      }
      break;
    case TN_OP_SELECT:
      if (x[1] == x[2]) return x[1];
      break;
    case TN_OP_REDUCE:
      if (x[0] && tn_type_element_count(&x[0]->types[0]) == 0)
        return tn_constant_splat(
            graph, &node->types[0],
            reduce_identity((tn_reduce_kind_t)tn_node_int(node, TN_ATTR_KIND, 0),
                            node->types[0].dtype));
      break;
    default: break;
  }
  return NULL;
}

tn_status_t tn_simplify(const tn_graph_t* graph, const tn_plan_target_t* target,
                        tn_graph_t* out_graph) {
  const uint32_t limit = tn_graph_node_limit(graph);
  // Tables live in the new graph's arena; several results of an expanded composite need a list.
  const tn_node_t** map = tn_graph_alloc(out_graph, sizeof(*map) * (limit + 1));
  const tn_node_t*** lists = tn_graph_alloc(out_graph, sizeof(*lists) * (limit + 1));
  bool* is_live = tn_graph_alloc(out_graph, sizeof(*is_live) * (limit + 1));
  if (!map || !lists || !is_live)
    return TN_ERROR(TN_RESOURCE_EXHAUSTED, "simplify: out of host memory");
  for (int r = 0; r < tn_graph_result_count(graph); ++r)
    is_live[tn_graph_result_at(graph, r)->node->id] = true;
  for (uint32_t id = limit; id-- > 0;) {
    const tn_node_t* node = tn_graph_node_at(graph, id);
    if (is_live[id])
      for (int i = 0; i < node->operand_count; ++i) is_live[node->operands[i]->id] = true;
  }
  for (int i = 0; i < tn_graph_param_count(graph); ++i) {
    const tn_node_t* param = tn_graph_param_at(graph, i);
    map[param->id] = tn_param_is_scalar(param)
                         ? tn_graph_scalar_param(out_graph, param->types[0].dtype)
                         : tn_graph_param(out_graph, &param->types[0], tn_param_strides(param));
  }
  enum { FEW = 64 };
  const tn_node_t* few[FEW];
  for (uint32_t id = 0; id < limit; ++id) {
    if (!is_live[id] || map[id]) continue;
    const tn_node_t* node = tn_graph_node_at(graph, id);
    if (node->op == TN_OP_RESULT && lists[node->operands[0]->id]) {
      map[id] = lists[node->operands[0]->id][tn_node_int(node, TN_ATTR_INDEX, 0)];
      continue;
    }
    const tn_node_t** operands = few;
    if (node->operand_count > FEW) {
      operands = tn_graph_alloc(out_graph, sizeof(*operands) * (size_t)node->operand_count);
      if (!operands) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "simplify: out of host memory");
    }
    for (int i = 0; i < node->operand_count; ++i) operands[i] = map[node->operands[i]->id];
    if (node->op == TN_OP_COMPOSITE && !target->has_composite(node)) {
      lists[id] = tn_graph_alloc(out_graph, sizeof(**lists) * (size_t)node->result_count);
      if (!lists[id]) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "simplify: out of host memory");
      TN_TRY(tn_composite_expand(out_graph, node, operands, lists[id]));
      map[id] = lists[id][0];
    } else {
      map[id] = simplify_node(out_graph, node, operands);
      if (!map[id]) map[id] = tn_graph_rebuild(out_graph, node, operands);
    }
    if (!map[id]) {
      tn_status_t status = tn_graph_status(out_graph);
      return status ? status
                    : TN_ERROR(TN_INTERNAL, "simplify: %s vanished", tn_op_info(node->op)->name);
    }
  }
  for (int r = 0; r < tn_graph_result_count(graph); ++r) {
    const tn_graph_result_t* result = tn_graph_result_at(graph, r);
    tn_graph_add_result(out_graph, map[result->node->id],
                        result->is_contiguous ? NULL : result->strides);
    if (result->same_as_param >= 0 || result->overlaps_params)
      tn_graph_alias_result(out_graph, r, result->same_as_param, result->overlaps_params);
  }
  return tn_graph_status(out_graph);
}
