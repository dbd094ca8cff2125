// Builders of movement ops.
#include <string.h>

#include "ir/graph_internal.h"

static const tn_node_t* missing(tn_graph_t* graph, tn_op_t op) {
  return tn_graph_fail(graph,
                       TN_ERROR(TN_INTERNAL, "%s: operand 0 is missing", tn_op_info(op)->name));
}

static const tn_node_t* bad_rank(tn_graph_t* graph, tn_op_t op, int rank) {
  return tn_graph_fail(graph, TN_ERROR(TN_INVALID_ARGUMENT, "%s: expected rank 0..%d, got %d",
                                       tn_op_info(op)->name, TN_MAX_RANK, rank));
}

const tn_node_t* tn_broadcast_in_dim(tn_graph_t* graph, const tn_node_t* x, int rank,
                                     const int64_t* dims, const int64_t* map) {
  if (!x) return missing(graph, TN_OP_BROADCAST_IN_DIM);
  if (rank < 0 || rank > TN_MAX_RANK) return bad_rank(graph, TN_OP_BROADCAST_IN_DIM, rank);
  tn_attr_t attr = tn_attr_ints(TN_ATTR_DIMENSIONS, x->types[0].rank, map);
  tn_type_t type = tn_type_make(x->types[0].dtype, rank, dims);
  return tn_graph_build(graph, TN_OP_BROADCAST_IN_DIM, 1, &x, 1, &attr, 1, &type);
}

const tn_node_t* tn_broadcast_to(tn_graph_t* graph, const tn_node_t* x, int rank,
                                 const int64_t* dims) {
  if (!x) return missing(graph, TN_OP_BROADCAST_IN_DIM);
  if (rank < 0 || rank > TN_MAX_RANK) return bad_rank(graph, TN_OP_BROADCAST_IN_DIM, rank);
  const tn_type_t* from = &x->types[0];
  tn_type_t to = tn_type_make(from->dtype, rank, dims);
  if (tn_type_equal(from, &to)) return x;
  if (from->rank > rank) {
    char first[TN_TYPE_TEXT_SIZE], second[TN_TYPE_TEXT_SIZE];
    return tn_graph_fail(graph,
                         TN_ERROR(TN_INVALID_ARGUMENT, "broadcast: %s has more dimensions than %s",
                                  tn_type_format(from, first), tn_type_format(&to, second)));
  }
  int64_t map[TN_MAX_RANK];
  for (int i = 0; i < from->rank; ++i) map[i] = rank - from->rank + i;
  return tn_broadcast_in_dim(graph, x, rank, dims, map);
}

const tn_node_t* tn_reshape(tn_graph_t* graph, const tn_node_t* x, int rank, const int64_t* dims) {
  if (!x) return missing(graph, TN_OP_RESHAPE);
  if (rank < 0 || rank > TN_MAX_RANK) return bad_rank(graph, TN_OP_RESHAPE, rank);
  tn_type_t type = tn_type_make(x->types[0].dtype, rank, dims);
  if (x->result_count == 1 && tn_type_equal(&x->types[0], &type)) return x;
  return tn_graph_build(graph, TN_OP_RESHAPE, 1, &x, 0, NULL, 1, &type);
}

const tn_node_t* tn_transpose(tn_graph_t* graph, const tn_node_t* x, const int64_t* permutation) {
  if (!x) return missing(graph, TN_OP_TRANSPOSE);
  bool is_identity = x->result_count == 1;
  for (int i = 0; i < x->types[0].rank; ++i) is_identity = is_identity && permutation[i] == i;
  if (is_identity) return x;
  tn_attr_t attr = tn_attr_ints(TN_ATTR_DIMENSIONS, x->types[0].rank, permutation);
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_TRANSPOSE, 1, &x, 1, &attr, 1, &type);
}

const tn_node_t* tn_reverse(tn_graph_t* graph, const tn_node_t* x, int count,
                            const int64_t* dimensions) {
  tn_attr_t attr = tn_attr_ints(TN_ATTR_DIMENSIONS, count, dimensions);
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_REVERSE, 1, &x, 1, &attr, 1, &type);
}

const tn_node_t* tn_slice(tn_graph_t* graph, const tn_node_t* x, const int64_t* start,
                          const int64_t* limit, const int64_t* stride) {
  if (!x) return missing(graph, TN_OP_SLICE);
  int rank = x->types[0].rank;
  tn_attr_t attrs[3] = {tn_attr_ints(TN_ATTR_START, rank, start),
                        tn_attr_ints(TN_ATTR_LIMIT, rank, limit),
                        tn_attr_ints(TN_ATTR_STRIDE, rank, stride)};
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_SLICE, 1, &x, 3, attrs, 1, &type);
}

const tn_node_t* tn_slice_dim(tn_graph_t* graph, const tn_node_t* x, int dimension, int64_t start,
                              int64_t limit, int64_t stride) {
  if (!x) return missing(graph, TN_OP_SLICE);
  if (dimension < 0 || dimension >= TN_MAX_RANK)
    return tn_graph_fail(graph, TN_ERROR(TN_INVALID_ARGUMENT, "slice: dimension is %d", dimension));
  int64_t starts[TN_MAX_RANK] = {0}, limits[TN_MAX_RANK], strides[TN_MAX_RANK];
  for (int d = 0; d < x->types[0].rank; ++d) {
    limits[d] = x->types[0].dims[d];
    strides[d] = 1;
  }
  starts[dimension] = start;
  limits[dimension] = limit;
  strides[dimension] = stride;
  return tn_slice(graph, x, starts, limits, strides);
}

const tn_node_t* tn_pad(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* value,
                        const int64_t* low, const int64_t* high, const int64_t* interior) {
  if (!x) return missing(graph, TN_OP_PAD);
  int rank = x->types[0].rank;
  const tn_node_t* operands[2] = {x, value};
  tn_attr_t attrs[3] = {tn_attr_ints(TN_ATTR_LOW, rank, low),
                        tn_attr_ints(TN_ATTR_HIGH, rank, high),
                        tn_attr_ints(TN_ATTR_INTERIOR, rank, interior)};
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_PAD, 2, operands, 3, attrs, 1, &type);
}

const tn_node_t* tn_concat(tn_graph_t* graph, int count, const tn_node_t* const* xs,
                           int dimension) {
  tn_attr_t attr = tn_attr_int(TN_ATTR_DIMENSION, dimension);
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_CONCAT, count, xs, 1, &attr, 1, &type);
}

const tn_node_t* tn_dynamic_slice(tn_graph_t* graph, const tn_node_t* x,
                                  const tn_node_t* const* starts, const int64_t* sizes) {
  if (!x) return missing(graph, TN_OP_DYNAMIC_SLICE);
  int rank = x->types[0].rank;
  const tn_node_t* operands[1 + TN_MAX_RANK] = {x};
  for (int i = 0; i < rank; ++i) operands[1 + i] = starts[i];
  tn_attr_t attr = tn_attr_ints(TN_ATTR_SIZES, rank, sizes);
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_DYNAMIC_SLICE, 1 + rank, operands, 1, &attr, 1, &type);
}

const tn_node_t* tn_dynamic_update_slice(tn_graph_t* graph, const tn_node_t* x,
                                         const tn_node_t* update, const tn_node_t* const* starts) {
  if (!x) return missing(graph, TN_OP_DYNAMIC_UPDATE_SLICE);
  int rank = x->types[0].rank;
  const tn_node_t* operands[2 + TN_MAX_RANK] = {x, update};
  for (int i = 0; i < rank; ++i) operands[2 + i] = starts[i];
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_DYNAMIC_UPDATE_SLICE, 2 + rank, operands, 0, NULL, 1, &type);
}
