// What decompositions share.
#include "ir/composite_util.h"

const tn_node_t* tn_c_spread(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* like,
                             int count, const int64_t* dims) {
  if (!x || !like) return NULL;
  const tn_type_t* type = &like->types[0];
  int64_t map[TN_MAX_RANK];
  for (int i = 0, next = 0, kept = 0; i < type->rank; ++i) {
    if (next < count && dims[next] == i) {
      ++next;
    } else {
      map[kept++] = i;
    }
  }
  return tn_broadcast_in_dim(graph, x, type->rank, type->dims, map);
}

const tn_node_t* tn_c_reduce_keep(tn_graph_t* graph, tn_reduce_kind_t kind, const tn_node_t* x,
                                  int count, const int64_t* dims) {
  return tn_c_spread(graph, tn_reduce(graph, kind, x, count, dims), x, count, dims);
}

const tn_node_t* tn_c_spread_vector(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* like,
                                    int dimension) {
  if (!x || !like) return NULL;
  const int64_t map = dimension;
  return tn_broadcast_in_dim(graph, x, like->types[0].rank, like->types[0].dims, &map);
}

int64_t tn_c_int(const tn_shape_t* shape, tn_attr_name_t name, int64_t otherwise) {
  const tn_attr_t* attr = tn_attr_find(shape->attr_count, shape->attrs, name);
  return attr && attr->kind == TN_ATTR_INT ? attr->as.integer : otherwise;
}

tn_status_t tn_c_expect(const tn_shape_t* shape, int operand, const char* what, tn_dtype_t dtype,
                        int rank, const int64_t* dims) {
  if (operand >= shape->operand_count) {
    return TN_ERROR(TN_INVALID_ARGUMENT, "operand %d (%s) is missing", operand, what);
  }
  tn_type_t type = tn_type_make(dtype, rank, dims);
  const tn_type_t* got = tn_shape_operand(shape, operand);
  if (tn_type_equal(&type, got)) return TN_OK;
  char expected_text[TN_TYPE_TEXT_SIZE], got_text[TN_TYPE_TEXT_SIZE];
  return TN_ERROR(TN_INVALID_ARGUMENT, "operand %d (%s): expected %s, got %s", operand, what,
                  tn_type_format(&type, expected_text), tn_type_format(got, got_text));
}
