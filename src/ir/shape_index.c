// Shape rules of gather and scatter (the constraints of the StableHLO specification).
#include "ir/shape.h"

#include <string.h>

typedef struct tn_index_dims {
  const int64_t *offset, *collapsed, *batching, *index_batching, *map;
  int offset_count, collapsed_count, batching_count, index_batching_count, map_count;
  int64_t vector_dim;
} tn_index_dims_t;

static bool contains(int count, const int64_t* values, int64_t value) {
  for (int i = 0; i < count; ++i) {
    if (values[i] == value) return true;
  }
  return false;
}

static tn_status_t check_list(const tn_shape_t* shape, tn_attr_name_t name, int count,
                              const int64_t* values, int rank, bool is_sorted) {
  for (int i = 0; i < count; ++i) {
    TN_TRY(tn_shape_dimension(shape, tn_attr_text(name), values[i], rank));
    if (contains(i, values, values[i])) {
      return TN_SHAPE_ERROR(shape, "%s: %lld is named twice", tn_attr_text(name),
                            (long long)values[i]);
    }
    if (is_sorted && i && values[i] < values[i - 1]) {
      return TN_SHAPE_ERROR(shape, "%s: expected ascending order", tn_attr_text(name));
    }
  }
  return TN_OK;
}

// Reads and checks everything that gather and scatter share. |window_rank|: rank of the gather result or the updates.
static tn_status_t read_dims(const tn_shape_t* shape, const tn_type_t* x, const tn_type_t* indices,
                             int window_rank, tn_index_dims_t* d) {
  TN_TRY(tn_shape_check_class(shape, 1, TN_SHAPE_INT));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_OFFSET_DIMS, -1, &d->offset, &d->offset_count));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_COLLAPSED_DIMS, -1, &d->collapsed, &d->collapsed_count));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_BATCHING_DIMS, -1, &d->batching, &d->batching_count));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_INDEX_BATCHING_DIMS, -1, &d->index_batching,
                       &d->index_batching_count));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_INDEX_MAP, -1, &d->map, &d->map_count));
  TN_TRY(tn_shape_int(shape, TN_ATTR_INDEX_VECTOR_DIM, &d->vector_dim));
  int64_t bounds;
  TN_TRY(tn_shape_int(shape, TN_ATTR_BOUNDS, &bounds));
  if (bounds < TN_BOUNDS_CLAMP || bounds > TN_BOUNDS_WRAP) {
    return TN_SHAPE_ERROR(shape, "bounds: expected 0..%d, got %lld", TN_BOUNDS_WRAP,
                          (long long)bounds);
  }
  TN_TRY(tn_shape_dimension(shape, "index_vector_dim", d->vector_dim, indices->rank + 1));
  TN_TRY(check_list(shape, TN_ATTR_OFFSET_DIMS, d->offset_count, d->offset, window_rank, true));
  TN_TRY(
      check_list(shape, TN_ATTR_COLLAPSED_DIMS, d->collapsed_count, d->collapsed, x->rank, true));
  TN_TRY(check_list(shape, TN_ATTR_BATCHING_DIMS, d->batching_count, d->batching, x->rank, true));
  TN_TRY(check_list(shape, TN_ATTR_INDEX_BATCHING_DIMS, d->index_batching_count, d->index_batching,
                    indices->rank, false));
  TN_TRY(check_list(shape, TN_ATTR_INDEX_MAP, d->map_count, d->map, x->rank, false));
  if (d->offset_count + d->collapsed_count + d->batching_count != x->rank) {
    return TN_SHAPE_ERROR(
        shape, "expected offset, collapsed and batching dims to be %d in all, got %d + %d + %d",
        x->rank, d->offset_count, d->collapsed_count, d->batching_count);
  }
  int64_t vector_size = d->vector_dim < indices->rank ? indices->dims[d->vector_dim] : 1;
  if (vector_size != d->map_count) {
    return TN_SHAPE_ERROR(shape,
                          "index_map: expected %lld dimensions, as the index vectors have, got %d",
                          (long long)vector_size, d->map_count);
  }
  if (d->batching_count != d->index_batching_count) {
    return TN_SHAPE_ERROR(shape, "expected equal numbers of batching dims, got %d and %d",
                          d->batching_count, d->index_batching_count);
  }
  for (int i = 0; i < d->batching_count; ++i) {
    if (contains(d->collapsed_count, d->collapsed, d->batching[i]) ||
        contains(d->map_count, d->map, d->batching[i]) || d->index_batching[i] == d->vector_dim) {
      return TN_SHAPE_ERROR(shape, "batching dimension %lld has another role too",
                            (long long)d->batching[i]);
    }
    if (x->dims[d->batching[i]] != indices->dims[d->index_batching[i]]) {
      return TN_SHAPE_ERROR(shape, "batching dimensions %lld and %lld have different extents",
                            (long long)d->batching[i], (long long)d->index_batching[i]);
    }
  }
  // No position is valid where there is none; whoever clamps or drops reads or writes nothing.
  for (int i = 0; bounds != TN_BOUNDS_CLAMP && i < d->map_count; ++i)
    if (x->dims[d->map[i]] == 0 && tn_type_element_count(indices) > 0)
      return TN_ERROR(TN_OUT_OF_RANGE, "index is out of bounds for dimension %lld with size 0",
                      (long long)d->map[i]);
  return TN_OK;
}

// Dimensions of the indices without the vector dimension.
static int batch_dims(const tn_type_t* indices, int64_t vector_dim, int64_t* out_dims) {
  int count = 0;
  for (int i = 0; i < indices->rank; ++i) {
    if (i != vector_dim) out_dims[count++] = indices->dims[i];
  }
  return count;
}

static bool is_window_dim(const tn_index_dims_t* d, int dimension) {
  return !contains(d->collapsed_count, d->collapsed, dimension) &&
         !contains(d->batching_count, d->batching, dimension);
}

tn_status_t tn_shape_gather(tn_shape_t* shape) {
  const tn_type_t *x = tn_shape_operand(shape, 0), *indices = tn_shape_operand(shape, 1);
  const int64_t *sizes, *offset;
  int offset_count;
  TN_TRY(tn_shape_ints(shape, TN_ATTR_SIZES, x->rank, &sizes, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_OFFSET_DIMS, -1, &offset, &offset_count));
  int64_t vector_dim;
  TN_TRY(tn_shape_int(shape, TN_ATTR_INDEX_VECTOR_DIM, &vector_dim));
  int rank = offset_count + indices->rank - (vector_dim < indices->rank);
  if (rank > TN_MAX_RANK)
    return TN_SHAPE_ERROR(shape, "expected a result of rank <= %d, got %d", TN_MAX_RANK, rank);
  tn_index_dims_t d;
  TN_TRY(read_dims(shape, x, indices, rank, &d));
  for (int i = 0; i < x->rank; ++i) {
    int64_t most = is_window_dim(&d, i) ? x->dims[i] : x->dims[i] < 1 ? x->dims[i] : 1;
    if (sizes[i] < 0 || sizes[i] > most) {
      return TN_SHAPE_ERROR(shape, "sizes[%d]: expected 0..%lld, got %lld", i, (long long)most,
                            (long long)sizes[i]);
    }
  }
  int64_t batch[TN_MAX_RANK + 1], window[TN_MAX_RANK];
  batch_dims(indices, vector_dim, batch);
  int window_count = 0;
  for (int i = 0; i < x->rank; ++i) {
    if (is_window_dim(&d, i)) window[window_count++] = sizes[i];
  }
  tn_type_t* out = &shape->types[0];
  out->dtype = x->dtype;
  out->rank = rank;
  for (int i = 0, b = 0, w = 0; i < rank; ++i) {
    out->dims[i] = contains(d.offset_count, d.offset, i) ? window[w++] : batch[b++];
  }
  return tn_shape_check_type(shape, out);
}

tn_status_t tn_shape_scatter(tn_shape_t* shape) {
  const tn_type_t *x = tn_shape_operand(shape, 0), *indices = tn_shape_operand(shape, 1),
                  *updates = tn_shape_operand(shape, 2);
  int64_t kind;
  TN_TRY(tn_shape_int(shape, TN_ATTR_KIND, &kind));
  TN_TRY(tn_shape_check_kind(shape, 0, kind, true));
  tn_index_dims_t d;
  TN_TRY(read_dims(shape, x, indices, updates->rank, &d));
  if (updates->dtype != x->dtype) {
    return TN_SHAPE_ERROR(shape, "updates: expected %s, got %s", tn_dtype_name(x->dtype),
                          tn_dtype_name(updates->dtype));
  }
  int64_t batch[TN_MAX_RANK + 1], window[TN_MAX_RANK];
  int batch_count = batch_dims(indices, d.vector_dim, batch);
  if (updates->rank != batch_count + d.offset_count) {
    return TN_SHAPE_ERROR(shape, "updates: expected rank %d, got %d", batch_count + d.offset_count,
                          updates->rank);
  }
  int window_count = 0;
  for (int i = 0; i < x->rank; ++i) {
    if (is_window_dim(&d, i)) window[window_count++] = x->dims[i];
  }
  for (int i = 0, b = 0, w = 0; i < updates->rank; ++i) {
    bool is_window = contains(d.offset_count, d.offset, i);
    int64_t most = is_window ? window[w++] : batch[b++];
    if (is_window ? updates->dims[i] > most : updates->dims[i] != most) {
      return TN_SHAPE_ERROR(shape, "updates: dimension %d: expected %s%lld, got %lld", i,
                            is_window ? "at most " : "", (long long)most,
                            (long long)updates->dims[i]);
    }
  }
  shape->types[0] = *x;
  return TN_OK;
}
