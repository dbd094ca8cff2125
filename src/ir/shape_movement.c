// Shape rules of movement ops.
#include "ir/shape.h"

#include <string.h>

tn_status_t tn_shape_broadcast_in_dim(tn_shape_t* shape) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  tn_type_t* out = &shape->types[0];
  out->dtype = x->dtype;
  TN_TRY(tn_shape_check_type(shape, out));
  const int64_t* map;
  TN_TRY(tn_shape_ints(shape, TN_ATTR_DIMENSIONS, x->rank, &map, NULL));
  for (int i = 0; i < x->rank; ++i) {
    TN_TRY(tn_shape_dimension(shape, "dimensions", map[i], out->rank));
    if (i && map[i] <= map[i - 1])
      return TN_SHAPE_ERROR(shape, "dimensions must be strictly increasing");
    if (x->dims[i] != 1 && x->dims[i] != out->dims[map[i]]) {
      char from[TN_TYPE_TEXT_SIZE], to[TN_TYPE_TEXT_SIZE];
      return TN_SHAPE_ERROR(shape, "dimension %d of %s does not broadcast to dimension %lld of %s",
                            i, tn_type_format(x, from), (long long)map[i], tn_type_format(out, to));
    }
  }
  return TN_OK;
}

tn_status_t tn_shape_reshape(tn_shape_t* shape) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  tn_type_t* out = &shape->types[0];
  out->dtype = x->dtype;
  TN_TRY(tn_shape_check_type(shape, out));
  if (tn_type_element_count(x) != tn_type_element_count(out)) {
    char from[TN_TYPE_TEXT_SIZE], to[TN_TYPE_TEXT_SIZE];
    return TN_SHAPE_ERROR(shape, "%s and %s have different numbers of elements",
                          tn_type_format(x, from), tn_type_format(out, to));
  }
  return TN_OK;
}

tn_status_t tn_shape_transpose(tn_shape_t* shape) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  const int64_t* permutation;
  TN_TRY(tn_shape_ints(shape, TN_ATTR_DIMENSIONS, x->rank, &permutation, NULL));
  unsigned seen = 0;
  tn_type_t* out = &shape->types[0];
  for (int i = 0; i < x->rank; ++i) {
    TN_TRY(tn_shape_dimension(shape, "permutation", permutation[i], x->rank));
    if (seen >> permutation[i] & 1u) {
      return TN_SHAPE_ERROR(shape, "permutation names dimension %lld twice",
                            (long long)permutation[i]);
    }
    seen |= 1u << permutation[i];
    out->dims[i] = x->dims[permutation[i]];
  }
  out->dtype = x->dtype;
  out->rank = x->rank;
  return TN_OK;
}

tn_status_t tn_shape_reverse(tn_shape_t* shape) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  const int64_t* dimensions;
  int count;
  TN_TRY(tn_shape_ints(shape, TN_ATTR_DIMENSIONS, -1, &dimensions, &count));
  unsigned seen = 0;
  for (int i = 0; i < count; ++i) {
    TN_TRY(tn_shape_dimension(shape, "dimensions", dimensions[i], x->rank));
    if (seen >> dimensions[i] & 1u) {
      return TN_SHAPE_ERROR(shape, "dimension %lld is named twice", (long long)dimensions[i]);
    }
    seen |= 1u << dimensions[i];
  }
  shape->types[0] = *x;
  return TN_OK;
}

tn_status_t tn_shape_slice(tn_shape_t* shape) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  const int64_t *start, *limit, *stride;
  TN_TRY(tn_shape_ints(shape, TN_ATTR_START, x->rank, &start, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_LIMIT, x->rank, &limit, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_STRIDE, x->rank, &stride, NULL));
  tn_type_t* out = &shape->types[0];
  for (int i = 0; i < x->rank; ++i) {
    if (start[i] < 0 || start[i] > limit[i] || limit[i] > x->dims[i] || stride[i] < 1) {
      return TN_SHAPE_ERROR(
          shape,
          "dimension %d: expected 0 <= start <= limit <= %lld and stride >= 1, got %lld:%lld:%lld",
          i, (long long)x->dims[i], (long long)start[i], (long long)limit[i], (long long)stride[i]);
    }
    int64_t extent = limit[i] - start[i];
    out->dims[i] = extent / stride[i] + (extent % stride[i] != 0);
  }
  out->dtype = x->dtype;
  out->rank = x->rank;
  return TN_OK;
}

tn_status_t tn_shape_pad(tn_shape_t* shape) {
  const tn_type_t *x = tn_shape_operand(shape, 0), *value = tn_shape_operand(shape, 1);
  const int64_t *low, *high, *interior;
  TN_TRY(tn_shape_ints(shape, TN_ATTR_LOW, x->rank, &low, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_HIGH, x->rank, &high, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_INTERIOR, x->rank, &interior, NULL));
  if (value->rank != 0 || value->dtype != x->dtype) {
    char text[TN_TYPE_TEXT_SIZE];
    return TN_SHAPE_ERROR(shape, "value: expected tensor<%s>, got %s", tn_dtype_name(x->dtype),
                          tn_type_format(value, text));
  }
  tn_type_t* out = &shape->types[0];
  out->dtype = x->dtype;
  out->rank = x->rank;
  for (int i = 0; i < x->rank; ++i) {
    int64_t gaps = x->dims[i] > 1 ? x->dims[i] - 1 : 0, extent;
    if (interior[i] < 0) {
      return TN_SHAPE_ERROR(shape, "dimension %d: expected interior >= 0, got %lld", i,
                            (long long)interior[i]);
    }
    if (__builtin_mul_overflow(gaps, interior[i], &extent) ||
        __builtin_add_overflow(extent, x->dims[i], &extent) ||
        __builtin_add_overflow(extent, low[i], &extent) ||
        __builtin_add_overflow(extent, high[i], &extent) || extent < 0) {
      return TN_SHAPE_ERROR(shape,
                            "dimension %d: extent %lld with low %lld, high %lld, interior %lld "
                            "leaves no valid extent",
                            i, (long long)x->dims[i], (long long)low[i], (long long)high[i],
                            (long long)interior[i]);
    }
    out->dims[i] = extent;
  }
  return tn_shape_check_type(shape, out);
}

tn_status_t tn_shape_concat(tn_shape_t* shape) {
  if (shape->operand_count < 1) return TN_SHAPE_ERROR(shape, "expected at least one operand");
  const tn_type_t* x = tn_shape_operand(shape, 0);
  int64_t dimension;
  TN_TRY(tn_shape_int(shape, TN_ATTR_DIMENSION, &dimension));
  TN_TRY(tn_shape_dimension(shape, "dimension", dimension, x->rank));
  tn_type_t* out = &shape->types[0];
  *out = *x;
  for (int k = 1; k < shape->operand_count; ++k) {
    const tn_type_t* y = tn_shape_operand(shape, k);
    bool fits = y->dtype == x->dtype && y->rank == x->rank;
    for (int i = 0; fits && i < x->rank; ++i) fits = i == dimension || x->dims[i] == y->dims[i];
    if (!fits) {
      char first[TN_TYPE_TEXT_SIZE], other[TN_TYPE_TEXT_SIZE];
      return TN_SHAPE_ERROR(shape, "operand %d: expected %s but for dimension %lld, got %s", k,
                            tn_type_format(x, first), (long long)dimension,
                            tn_type_format(y, other));
    }
    if (__builtin_add_overflow(out->dims[dimension], y->dims[dimension], &out->dims[dimension])) {
      return TN_SHAPE_ERROR(shape, "the extent overflows");
    }
  }
  return tn_shape_check_type(shape, out);
}

// Operands from |first| are one rank-0 integer per dimension.
static tn_status_t check_starts(const tn_shape_t* shape, int first, int rank) {
  if (shape->operand_count != first + rank) {
    return TN_SHAPE_ERROR(shape, "expected %d start indices, got %d", rank,
                          shape->operand_count - first);
  }
  for (int i = 0; i < rank; ++i) {
    const tn_type_t* start = tn_shape_operand(shape, first + i);
    if (start->rank != 0 || !tn_dtype_is_integer(start->dtype)) {
      char text[TN_TYPE_TEXT_SIZE];
      return TN_SHAPE_ERROR(shape, "start index %d: expected a rank-0 integer, got %s", i,
                            tn_type_format(start, text));
    }
  }
  return TN_OK;
}

tn_status_t tn_shape_dynamic_slice(tn_shape_t* shape) {
  if (shape->operand_count < 1) return TN_SHAPE_ERROR(shape, "expected an operand");
  const tn_type_t* x = tn_shape_operand(shape, 0);
  const int64_t* sizes;
  TN_TRY(tn_shape_ints(shape, TN_ATTR_SIZES, x->rank, &sizes, NULL));
  TN_TRY(check_starts(shape, 1, x->rank));
  for (int i = 0; i < x->rank; ++i) {
    if (sizes[i] < 0 || sizes[i] > x->dims[i]) {
      return TN_SHAPE_ERROR(shape, "sizes[%d]: expected 0..%lld, got %lld", i,
                            (long long)x->dims[i], (long long)sizes[i]);
    }
  }
  shape->types[0] = tn_type_make(x->dtype, x->rank, sizes);
  return TN_OK;
}

tn_status_t tn_shape_dynamic_update_slice(tn_shape_t* shape) {
  if (shape->operand_count < 2) return TN_SHAPE_ERROR(shape, "expected an operand and an update");
  const tn_type_t *x = tn_shape_operand(shape, 0), *update = tn_shape_operand(shape, 1);
  TN_TRY(check_starts(shape, 2, x->rank));
  bool fits = update->dtype == x->dtype && update->rank == x->rank;
  for (int i = 0; fits && i < x->rank; ++i) fits = update->dims[i] <= x->dims[i];
  if (!fits) {
    char outer[TN_TYPE_TEXT_SIZE], inner[TN_TYPE_TEXT_SIZE];
    return TN_SHAPE_ERROR(shape, "the update %s does not fit into %s",
                          tn_type_format(update, inner), tn_type_format(x, outer));
  }
  shape->types[0] = *x;
  return TN_OK;
}
