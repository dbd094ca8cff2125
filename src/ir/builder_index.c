// Builders of gather and scatter, and the forms of them that programs use.
#include <string.h>

#include "ir/graph_internal.h"

enum { TN_INDEX_ATTRS = 8 };

static void index_attrs(const tn_gather_dims_t* dims, tn_bounds_t bounds, tn_attr_t* attrs) {
  attrs[0] = tn_attr_ints(TN_ATTR_OFFSET_DIMS, dims->offset_count, dims->offset);
  attrs[1] = tn_attr_ints(TN_ATTR_COLLAPSED_DIMS, dims->collapsed_count, dims->collapsed);
  attrs[2] = tn_attr_ints(TN_ATTR_BATCHING_DIMS, dims->batching_count, dims->batching);
  attrs[3] = tn_attr_ints(TN_ATTR_INDEX_BATCHING_DIMS, dims->batching_count, dims->index_batching);
  attrs[4] = tn_attr_ints(TN_ATTR_INDEX_MAP, dims->map_count, dims->map);
  attrs[5] = tn_attr_int(TN_ATTR_INDEX_VECTOR_DIM, dims->index_vector_dim);
  attrs[6] = tn_attr_int(TN_ATTR_BOUNDS, bounds);
}

const tn_node_t* tn_gather(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* indices,
                           const tn_gather_dims_t* dims, const int64_t* slice_sizes,
                           tn_bounds_t bounds) {
  const tn_node_t* operands[2] = {x, indices};
  tn_attr_t attrs[TN_INDEX_ATTRS];
  index_attrs(dims, bounds, attrs);
  attrs[7] = tn_attr_ints(TN_ATTR_SIZES, x ? x->types[0].rank : 0, slice_sizes);
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_GATHER, 2, operands, TN_INDEX_ATTRS, attrs, 1, &type);
}

const tn_node_t* tn_scatter(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* indices,
                            const tn_node_t* updates, const tn_gather_dims_t* dims,
                            tn_reduce_kind_t kind, tn_bounds_t bounds) {
  const tn_node_t* operands[3] = {x, indices, updates};
  tn_attr_t attrs[TN_INDEX_ATTRS];
  index_attrs(dims, bounds, attrs);
  attrs[7] = tn_attr_int(TN_ATTR_KIND, kind);
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_SCATTER, 3, operands, TN_INDEX_ATTRS, attrs, 1, &type);
}

// |dimension| of |x|, with |x| and |indices| present.
static bool is_usable(tn_graph_t* graph, const char* what, const tn_node_t* x,
                      const tn_node_t* indices, int dimension) {
  if (!x || !indices) {
    tn_graph_fail(graph, TN_ERROR(TN_INTERNAL, "%s: an operand is missing", what));
    return false;
  }
  if (dimension >= 0 && dimension < x->types[0].rank) return true;
  tn_graph_fail(graph, TN_ERROR(TN_INVALID_ARGUMENT, "%s: dimension: expected 0..%d, got %d", what,
                                x->types[0].rank - 1, dimension));
  return false;
}

const tn_node_t* tn_take(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* indices,
                         int dimension, tn_bounds_t bounds) {
  if (!is_usable(graph, "take", x, indices, dimension)) return NULL;
  const tn_type_t *from = &x->types[0], *index = &indices->types[0];
  if (from->rank - 1 + index->rank > TN_MAX_RANK) {
    return tn_graph_fail(
        graph, TN_ERROR(TN_INVALID_ARGUMENT, "take: expected a result of rank <= %d, got %d",
                        TN_MAX_RANK, from->rank - 1 + index->rank));
  }
  tn_gather_dims_t dims = {.collapsed_count = 1,
                           .collapsed = {dimension},
                           .map_count = 1,
                           .map = {dimension},
                           .index_vector_dim = index->rank};
  int64_t sizes[TN_MAX_RANK];
  for (int i = 0; i < from->rank; ++i) {
    sizes[i] = from->dims[i];
    if (i == dimension) {
      if (sizes[i] > 1) sizes[i] = 1;
    } else {
      dims.offset[dims.offset_count++] = i < dimension ? i : i - 1 + index->rank;
    }
  }
  return tn_gather(graph, x, indices, &dims, sizes, bounds);
}

// All dimensions but |dimension| are batch dimensions of both operand and indices.
static tn_gather_dims_t along_dims(int rank, int dimension) {
  tn_gather_dims_t dims = {.collapsed_count = 1,
                           .collapsed = {dimension},
                           .map_count = 1,
                           .map = {dimension},
                           .index_vector_dim = rank};
  for (int i = 0; i < rank; ++i) {
    if (i == dimension) continue;
    dims.batching[dims.batching_count] = i;
    dims.index_batching[dims.batching_count++] = i;
  }
  return dims;
}

// The part of x that |indices| can reach: cut to their extents but along |dimension|.
static const tn_node_t* cut_to(tn_graph_t* graph, const char* what, const tn_node_t* x,
                               const tn_node_t* indices, int dimension) {
  const tn_type_t *from = &x->types[0], *index = &indices->types[0];
  int64_t start[TN_MAX_RANK] = {0}, limit[TN_MAX_RANK], stride[TN_MAX_RANK];
  bool is_whole = true, fits = from->rank == index->rank;
  for (int i = 0; fits && i < from->rank; ++i) {
    limit[i] = i == dimension ? from->dims[i] : index->dims[i];
    stride[i] = 1;
    if (limit[i] != from->dims[i]) is_whole = false;
    if (limit[i] > from->dims[i]) fits = false;
  }
  if (!fits) {
    char first[TN_TYPE_TEXT_SIZE], second[TN_TYPE_TEXT_SIZE];
    return tn_graph_fail(
        graph,
        TN_ERROR(TN_INVALID_ARGUMENT, "%s: indices %s do not fit into %s outside dimension %d",
                 what, tn_type_format(index, first), tn_type_format(from, second), dimension));
  }
  return is_whole ? x : tn_slice(graph, x, start, limit, stride);
}

const tn_node_t* tn_take_along(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* indices,
                               int dimension, tn_bounds_t bounds) {
  if (!is_usable(graph, "take_along", x, indices, dimension)) return NULL;
  const tn_node_t* part = cut_to(graph, "take_along", x, indices, dimension);
  if (!part) return NULL;
  tn_gather_dims_t dims = along_dims(x->types[0].rank, dimension);
  int64_t sizes[TN_MAX_RANK];
  for (int i = 0; i < x->types[0].rank; ++i) sizes[i] = part->types[0].dims[i] > 0;
  return tn_gather(graph, part, indices, &dims, sizes, bounds);
}

const tn_node_t* tn_put_along(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* indices,
                              const tn_node_t* updates, int dimension, tn_reduce_kind_t kind,
                              tn_bounds_t bounds) {
  if (!is_usable(graph, "put_along", x, indices, dimension)) return NULL;
  const tn_node_t* part = cut_to(graph, "put_along", x, indices, dimension);
  if (!part) return NULL;
  tn_gather_dims_t dims = along_dims(x->types[0].rank, dimension);
  const tn_node_t* changed = tn_scatter(graph, part, indices, updates, &dims, kind, bounds);
  if (part == x || !changed) return changed;
  const tn_node_t* starts[TN_MAX_RANK];
  for (int i = 0; i < x->types[0].rank; ++i) starts[i] = tn_constant_int(graph, TN_I64, 0);
  return tn_dynamic_update_slice(graph, x, changed, starts);
}
