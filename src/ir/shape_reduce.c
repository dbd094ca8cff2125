// Shape rules of reductions, windows, scans and order.
#include "ir/shape.h"

#include <string.h>

tn_status_t tn_shape_reduce(tn_shape_t* shape) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  int64_t kind;
  const int64_t* dimensions;
  int count;
  TN_TRY(tn_shape_int(shape, TN_ATTR_KIND, &kind));
  TN_TRY(tn_shape_check_kind(shape, 0, kind, false));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_DIMENSIONS, -1, &dimensions, &count));
  tn_type_t* out = &shape->types[0];
  out->dtype = x->dtype;
  out->rank = 0;
  for (int i = 0; i < count; ++i) {
    TN_TRY(tn_shape_dimension(shape, "dimensions", dimensions[i], x->rank));
    if (i && dimensions[i] <= dimensions[i - 1]) {
      return TN_SHAPE_ERROR(shape, "dimensions must be distinct and ascending");
    }
  }
  for (int i = 0, next = 0; i < x->rank; ++i) {
    if (next < count && dimensions[next] == i) {
      ++next;
    } else {
      out->dims[out->rank++] = x->dims[i];
    }
  }
  return TN_OK;
}

tn_status_t tn_shape_arg_reduce(tn_shape_t* shape) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  int64_t kind, dimension;
  TN_TRY(tn_shape_int(shape, TN_ATTR_KIND, &kind));
  if (kind != TN_REDUCE_MAX && kind != TN_REDUCE_MIN)
    return TN_SHAPE_ERROR(shape, "kind must be MAX or MIN");
  TN_TRY(tn_shape_check_kind(shape, 0, kind, false));
  TN_TRY(tn_shape_int(shape, TN_ATTR_DIMENSION, &dimension));
  TN_TRY(tn_shape_dimension(shape, "dimension", dimension, x->rank));
  tn_type_t* out = &shape->types[0];
  out->dtype = x->dtype;
  out->rank = 0;
  for (int i = 0; i < x->rank; ++i) {
    if (i != dimension) out->dims[out->rank++] = x->dims[i];
  }
  if (x->dims[dimension] == 0 && tn_type_element_count(out) != 0) {
    return TN_SHAPE_ERROR(shape, "dimension %lld is empty: there is no extreme",
                          (long long)dimension);
  }
  shape->types[1] = *out;
  shape->types[1].dtype = TN_I64;
  return TN_OK;
}

// Result extents of windows over |x|.
static tn_status_t window_dims(const tn_shape_t* shape, const tn_type_t* x, tn_type_t* out) {
  const int64_t *size, *stride, *low, *high, *base, *dilation;
  TN_TRY(tn_shape_ints(shape, TN_ATTR_WINDOW, x->rank, &size, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_STRIDE, x->rank, &stride, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_LOW, x->rank, &low, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_HIGH, x->rank, &high, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_BASE_DILATION, x->rank, &base, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_WINDOW_DILATION, x->rank, &dilation, NULL));
  out->dtype = x->dtype;
  out->rank = x->rank;
  for (int i = 0; i < x->rank; ++i) {
    if (size[i] < 1 || stride[i] < 1 || base[i] < 1 || dilation[i] < 1) {
      return TN_SHAPE_ERROR(
          shape,
          "dimension %d: expected window, stride and dilations >= 1, got %lld, %lld, %lld, %lld", i,
          (long long)size[i], (long long)stride[i], (long long)base[i], (long long)dilation[i]);
    }
    if (!tn_shape_window(x->dims[i], base[i], low[i], high[i], size[i], dilation[i], stride[i],
                         &out->dims[i])) {
      return TN_SHAPE_ERROR(shape, "dimension %d: the number of windows exceeds 64 bits", i);
    }
  }
  return tn_shape_check_type(shape, out);
}

tn_status_t tn_shape_reduce_window(tn_shape_t* shape) {
  int64_t kind;
  TN_TRY(tn_shape_int(shape, TN_ATTR_KIND, &kind));
  TN_TRY(tn_shape_check_kind(shape, 0, kind, false));
  return window_dims(shape, tn_shape_operand(shape, 0), &shape->types[0]);
}

tn_status_t tn_shape_window_grad(tn_shape_t* shape) {
  const tn_type_t *x = tn_shape_operand(shape, 0), *grad = tn_shape_operand(shape, 1);
  int64_t kind;
  TN_TRY(tn_shape_int(shape, TN_ATTR_KIND, &kind));
  if (kind != TN_REDUCE_MAX && kind != TN_REDUCE_MIN)
    return TN_SHAPE_ERROR(shape, "kind must be MAX or MIN");
  TN_TRY(tn_shape_check_class(shape, 0, TN_SHAPE_REAL));
  tn_type_t windows;
  TN_TRY(window_dims(shape, x, &windows));
  if (!tn_type_equal(&windows, grad)) {
    char expected[TN_TYPE_TEXT_SIZE], got[TN_TYPE_TEXT_SIZE];
    return TN_SHAPE_ERROR(shape, "operand 1: expected one element per window, %s, got %s",
                          tn_type_format(&windows, expected), tn_type_format(grad, got));
  }
  shape->types[0] = *x;
  return TN_OK;
}

tn_status_t tn_shape_scan(tn_shape_t* shape) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  int64_t kind, dimension;
  TN_TRY(tn_shape_int(shape, TN_ATTR_KIND, &kind));
  TN_TRY(tn_shape_check_kind(shape, 0, kind, false));
  TN_TRY(tn_shape_int(shape, TN_ATTR_DIMENSION, &dimension));
  TN_TRY(tn_shape_dimension(shape, "dimension", dimension, x->rank));
  shape->types[0] = *x;
  return TN_OK;
}

tn_status_t tn_shape_sort(tn_shape_t* shape) {
  if (shape->operand_count < 1 || shape->operand_count > TN_MAX_RESULTS) {
    return TN_SHAPE_ERROR(shape, "expected 1..%d operands, got %d", TN_MAX_RESULTS,
                          shape->operand_count);
  }
  const tn_type_t* x = tn_shape_operand(shape, 0);
  int64_t dimension;
  TN_TRY(tn_shape_check_class(shape, 0, TN_SHAPE_REAL | TN_SHAPE_BOOL));
  TN_TRY(tn_shape_int(shape, TN_ATTR_DIMENSION, &dimension));
  TN_TRY(tn_shape_dimension(shape, "dimension", dimension, x->rank));
  shape->result_count = shape->operand_count;
  for (int i = 0; i < shape->operand_count; ++i) {
    if (i) TN_TRY(tn_shape_same_dims(shape, 0, i));
    shape->types[i] = *tn_shape_operand(shape, i);
  }
  return TN_OK;
}

tn_status_t tn_shape_topk(tn_shape_t* shape) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  int64_t count;
  TN_TRY(tn_shape_check_class(shape, 0, TN_SHAPE_REAL | TN_SHAPE_BOOL));
  TN_TRY(tn_shape_int(shape, TN_ATTR_COUNT, &count));
  if (x->rank < 1) return TN_SHAPE_ERROR(shape, "expected rank >= 1, got 0");
  int64_t extent = x->dims[x->rank - 1];
  if (count < 0 || count > extent) {
    return TN_SHAPE_ERROR(shape, "count: expected 0..%lld, got %lld", (long long)extent,
                          (long long)count);
  }
  shape->types[0] = *x;
  shape->types[0].dims[x->rank - 1] = count;
  shape->types[1] = shape->types[0];
  shape->types[1].dtype = TN_I64;
  return TN_OK;
}
