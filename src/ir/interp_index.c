// Gather and scatter as the StableHLO specification defines them, with the bounds modes of tn/graph.h.
#include <string.h>

#include "ir/interp_internal.h"

typedef struct tn_index {
  const int64_t *offset, *collapsed, *batching, *index_batching, *map;
  int64_t offset_count, collapsed_count, batching_count, map_count, vector_dim;
  tn_bounds_t bounds;
  const tn_type_t *x, *indices;
  const void* data;  // of the indices
  int64_t x_strides[TN_MAX_RANK];
  int64_t index_strides[TN_MAX_RANK];
  int64_t sizes[TN_MAX_RANK];  // window per dimension of x
  int batch_rank;              // dimensions of the indices but the vector dimension
  int64_t batch_dims[TN_MAX_RANK + 1];
  int batch_source[TN_MAX_RANK + 1];  // the dimension of the indices it is
  int window_rank;                    // dimensions of x that are neither collapsed nor batching
  int window_source[TN_MAX_RANK];
} tn_index_t;

static bool contains(int64_t count, const int64_t* values, int64_t value) {
  for (int64_t i = 0; i < count; ++i) {
    if (values[i] == value) return true;
  }
  return false;
}

// Everything but |sizes|.
static void read_index(const tn_node_t* node, const void* const* operands, tn_index_t* d) {
  memset(d, 0, sizeof *d);
  d->x = &node->operands[0]->types[0];
  d->indices = &node->operands[1]->types[0];
  d->data = operands[1];
  d->offset = tn_node_ints(node, TN_ATTR_OFFSET_DIMS, &d->offset_count);
  d->collapsed = tn_node_ints(node, TN_ATTR_COLLAPSED_DIMS, &d->collapsed_count);
  d->batching = tn_node_ints(node, TN_ATTR_BATCHING_DIMS, &d->batching_count);
  d->index_batching = tn_node_ints(node, TN_ATTR_INDEX_BATCHING_DIMS, NULL);
  d->map = tn_node_ints(node, TN_ATTR_INDEX_MAP, &d->map_count);
  d->vector_dim = tn_node_int(node, TN_ATTR_INDEX_VECTOR_DIM, 0);
  d->bounds = (tn_bounds_t)tn_node_int(node, TN_ATTR_BOUNDS, TN_BOUNDS_CLAMP);
  tn_interp_strides(d->x, d->x_strides);
  tn_interp_strides(d->indices, d->index_strides);
  for (int i = 0; i < d->indices->rank; ++i) {
    if (i == d->vector_dim) continue;
    d->batch_source[d->batch_rank] = i;
    d->batch_dims[d->batch_rank++] = d->indices->dims[i];
  }
  for (int i = 0; i < d->x->rank; ++i) {
    if (!contains(d->collapsed_count, d->collapsed, i) &&
        !contains(d->batching_count, d->batching, i)) {
      d->window_source[d->window_rank++] = i;
    }
  }
}

// Wrapped where the mode says so; what is still outside 0..most is for the caller.
static int64_t wrapped(const tn_index_t* d, int64_t index, int64_t extent) {
  return d->bounds == TN_BOUNDS_WRAP && index < 0 ? index + extent : index;
}
static int64_t most_start(const tn_index_t* d, int64_t dimension) {
  const int64_t size = d->sizes[dimension];
  return d->x->dims[dimension] - (size > 1 ? size : 1);
}

static tn_status_t check_indices(const tn_index_t* d) {
  if (d->bounds == TN_BOUNDS_CLAMP) return TN_OK;
  const int64_t count = tn_type_element_count(d->indices);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t component =
        d->vector_dim < d->indices->rank
            ? i / d->index_strides[d->vector_dim] % d->indices->dims[d->vector_dim]
            : 0;
    const int64_t dimension = d->map[component], extent = d->x->dims[dimension];
    const int64_t given = tn_elem_load(d->indices->dtype, d->data, i).i64,
                  index = wrapped(d, given, extent);
    if (index < 0 || index > most_start(d, dimension)) {
      return TN_ERROR(TN_OUT_OF_RANGE,
                      "index %lld is out of bounds for dimension %lld with size %lld",
                      (long long)given, (long long)dimension, (long long)extent);
    }
  }
  return TN_OK;
}

// Where the window of |batch| starts in x, per dimension; clamped only if |clamps|.
static void window_start(const tn_index_t* d, const int64_t* batch, bool clamps,
                         int64_t* out_start) {
  memset(out_start, 0, sizeof(int64_t) * TN_MAX_RANK);
  int64_t at = 0;
  for (int i = 0; i < d->batch_rank; ++i) {
    at += batch[i] * d->index_strides[d->batch_source[i]];
    for (int64_t k = 0; k < d->batching_count; ++k) {
      if (d->index_batching[k] == d->batch_source[i]) out_start[d->batching[k]] = batch[i];
    }
  }
  for (int64_t k = 0; k < d->map_count; ++k) {
    const int64_t step = d->vector_dim < d->indices->rank ? d->index_strides[d->vector_dim] * k : 0;
    const int64_t dimension = d->map[k];
    int64_t start =
        wrapped(d, tn_elem_load(d->indices->dtype, d->data, at + step).i64, d->x->dims[dimension]);
    if (clamps) {
      const int64_t most = most_start(d, dimension);
      start = start > most ? most : start;
      start = start < 0 ? 0 : start;
    }
    out_start[dimension] = start;
  }
}

// Strides of result or updates along batch and along window dimensions.
static void split_strides(const tn_index_t* d, const tn_type_t* type, int64_t* batch,
                          int64_t* window, int64_t* window_dims) {
  int64_t strides[TN_MAX_RANK];
  tn_interp_strides(type, strides);
  for (int i = 0, b = 0, w = 0; i < type->rank; ++i) {
    if (contains(d->offset_count, d->offset, i)) {
      window_dims[w] = type->dims[i];
      window[w++] = strides[i];
    } else {
      batch[b++] = strides[i];
    }
  }
}

static bool is_empty(int rank, const int64_t* dims) {
  for (int i = 0; i < rank; ++i) {
    if (dims[i] == 0) return true;
  }
  return false;
}

tn_status_t tn_interp_gather(const tn_node_t* node, const void* const* operands,
                             void* const* results) {
  tn_index_t d;
  read_index(node, operands, &d);
  const tn_type_t* out = &node->types[0];
  const size_t size = tn_dtype_size(out->dtype);
  const int64_t* sizes = tn_node_ints(node, TN_ATTR_SIZES, NULL);
  for (int i = 0; i < d.x->rank; ++i) d.sizes[i] = sizes[i];
  TN_TRY(check_indices(&d));
  const int64_t count = tn_type_element_count(out);
  if (count == 0) return TN_OK;
  memset(results[0], 0, (size_t)count * size);
  if (tn_type_element_count(d.x) == 0) return TN_OK;  // clamped into nothing
  int64_t batch_strides[TN_MAX_RANK], to[TN_MAX_RANK], dims[TN_MAX_RANK], from[TN_MAX_RANK],
      start[TN_MAX_RANK];
  split_strides(&d, out, batch_strides, to, dims);
  for (int i = 0; i < d.window_rank; ++i) from[i] = d.x_strides[d.window_source[i]];
  int64_t batch[TN_MAX_RANK] = {0};
  do {
    window_start(&d, batch, true, start);
    const int64_t source = tn_interp_offset(d.x->rank, start, d.x_strides);
    const int64_t target = tn_interp_offset(d.batch_rank, batch, batch_strides);
    tn_interp_copy(size, d.window_rank, dims, (const uint8_t*)operands[0] + source * (int64_t)size,
                   from, (uint8_t*)results[0] + target * (int64_t)size, to);
  } while (tn_interp_next(d.batch_rank, d.batch_dims, batch));
  return TN_OK;
}

tn_status_t tn_interp_scatter(const tn_node_t* node, const void* const* operands,
                              void* const* results) {
  tn_index_t d;
  read_index(node, operands, &d);
  const tn_type_t* updates = &node->operands[2]->types[0];
  const tn_dtype_t dtype = d.x->dtype;
  const tn_elem_kind_t lanes = tn_elem_kind(dtype);
  const tn_reduce_kind_t kind = (tn_reduce_kind_t)tn_node_int(node, TN_ATTR_KIND, TN_REDUCE_ASSIGN);
  int64_t batch_strides[TN_MAX_RANK], window_strides[TN_MAX_RANK], dims[TN_MAX_RANK],
      start[TN_MAX_RANK];
  split_strides(&d, updates, batch_strides, window_strides, dims);
  for (int i = 0; i < d.x->rank; ++i) d.sizes[i] = 1;
  for (int i = 0; i < d.window_rank; ++i) d.sizes[d.window_source[i]] = dims[i];
  TN_TRY(check_indices(&d));
  const int64_t count = tn_type_element_count(d.x);
  if (count == 0) return TN_OK;
  memcpy(results[0], operands[0], (size_t)count * tn_dtype_size(dtype));
  if (is_empty(updates->rank, updates->dims)) return TN_OK;
  int64_t batch[TN_MAX_RANK] = {0};
  do {
    window_start(&d, batch, false, start);
    const int64_t source = tn_interp_offset(d.batch_rank, batch, batch_strides);
    int64_t window[TN_MAX_RANK] = {0};
    do {
      int64_t at[TN_MAX_RANK];
      memcpy(at, start, sizeof at);
      for (int i = 0; i < d.window_rank; ++i) at[d.window_source[i]] += window[i];
      bool is_inside = true;
      for (int i = 0; i < d.x->rank; ++i)
        is_inside = is_inside && at[i] >= 0 && at[i] < d.x->dims[i];
      if (!is_inside) continue;  // a dropped update
      const int64_t target = tn_interp_offset(d.x->rank, at, d.x_strides);
      const int64_t from = source + tn_interp_offset(d.window_rank, window, window_strides);
      const tn_elem_t update = tn_elem_load(dtype, operands[2], from);
      const tn_elem_t value =
          tn_elem_combine(kind, lanes, tn_elem_load(dtype, results[0], target), update);
      tn_elem_store(dtype, results[0], target, value);  // 16-bit floats round here, at every update
    } while (tn_interp_next(d.window_rank, dims, window));
  } while (tn_interp_next(d.batch_rank, d.batch_dims, batch));
  return TN_OK;
}
