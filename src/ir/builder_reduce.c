// Builders of reductions, windows, scans and order.
#include "ir/graph_internal.h"

const tn_node_t* tn_reduce(tn_graph_t* graph, tn_reduce_kind_t kind, const tn_node_t* x, int count,
                           const int64_t* dimensions) {
  tn_attr_t attrs[2] = {tn_attr_int(TN_ATTR_KIND, kind),
                        tn_attr_ints(TN_ATTR_DIMENSIONS, count, dimensions)};
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_REDUCE, 1, &x, 2, attrs, 1, &type);
}

const tn_node_t* tn_arg_reduce(tn_graph_t* graph, tn_reduce_kind_t kind, const tn_node_t* x,
                               int dimension) {
  tn_attr_t attrs[2] = {tn_attr_int(TN_ATTR_KIND, kind), tn_attr_int(TN_ATTR_DIMENSION, dimension)};
  tn_type_t types[2];
  return tn_graph_build(graph, TN_OP_ARG_REDUCE, 1, &x, 2, attrs, 2, types);
}

static void window_attrs(tn_reduce_kind_t kind, int rank, const tn_window_t* window,
                         tn_attr_t* attrs) {
  attrs[0] = tn_attr_int(TN_ATTR_KIND, kind);
  attrs[1] = tn_attr_ints(TN_ATTR_WINDOW, rank, window->size);
  attrs[2] = tn_attr_ints(TN_ATTR_STRIDE, rank, window->stride);
  attrs[3] = tn_attr_ints(TN_ATTR_LOW, rank, window->low);
  attrs[4] = tn_attr_ints(TN_ATTR_HIGH, rank, window->high);
  attrs[5] = tn_attr_ints(TN_ATTR_BASE_DILATION, rank, window->base_dilation);
  attrs[6] = tn_attr_ints(TN_ATTR_WINDOW_DILATION, rank, window->window_dilation);
}

const tn_node_t* tn_reduce_window(tn_graph_t* graph, tn_reduce_kind_t kind, const tn_node_t* x,
                                  const tn_window_t* window) {
  tn_attr_t attrs[7];
  window_attrs(kind, x ? x->types[0].rank : 0, window, attrs);
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_REDUCE_WINDOW, 1, &x, 7, attrs, 1, &type);
}

const tn_node_t* tn_window_grad(tn_graph_t* graph, tn_reduce_kind_t kind, const tn_node_t* x,
                                const tn_node_t* grad, const tn_window_t* window) {
  const tn_node_t* operands[2] = {x, grad};
  tn_attr_t attrs[7];
  window_attrs(kind, x ? x->types[0].rank : 0, window, attrs);
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_WINDOW_GRAD, 2, operands, 7, attrs, 1, &type);
}

const tn_node_t* tn_scan(tn_graph_t* graph, tn_reduce_kind_t kind, const tn_node_t* x,
                         int dimension, bool reverse, bool exclusive) {
  tn_attr_t attrs[4] = {tn_attr_int(TN_ATTR_KIND, kind), tn_attr_int(TN_ATTR_DIMENSION, dimension),
                        tn_attr_int(TN_ATTR_REVERSE, reverse),
                        tn_attr_int(TN_ATTR_EXCLUSIVE, exclusive)};
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_SCAN, 1, &x, 4, attrs, 1, &type);
}

const tn_node_t* tn_sort(tn_graph_t* graph, int count, const tn_node_t* const* xs, int dimension,
                         bool descending) {
  tn_attr_t attrs[2] = {tn_attr_int(TN_ATTR_DIMENSION, dimension),
                        tn_attr_int(TN_ATTR_DESCENDING, descending)};
  tn_type_t types[TN_MAX_RESULTS];
  return tn_graph_build(graph, TN_OP_SORT, count, xs, 2, attrs, count, types);
}

const tn_node_t* tn_topk(tn_graph_t* graph, const tn_node_t* x, int64_t count, bool largest) {
  tn_attr_t attrs[2] = {tn_attr_int(TN_ATTR_COUNT, count), tn_attr_int(TN_ATTR_LARGEST, largest)};
  tn_type_t types[2];
  return tn_graph_build(graph, TN_OP_TOPK, 1, &x, 2, attrs, 2, types);
}
