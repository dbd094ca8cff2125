// Shape rules of products, convolution and random bits.
#include "ir/shape.h"

#include <string.h>

// The result of a contraction is of the operands' dtype or a wider one of its class.
static tn_status_t check_accumulator(const tn_shape_t* shape, tn_dtype_t from, tn_dtype_t to) {
  bool fits = to == from || (to < TN_DTYPE_COUNT && tn_dtype_size(to) > tn_dtype_size(from) &&
                             ((tn_dtype_is_float(from) && tn_dtype_is_float(to)) ||
                              (tn_dtype_is_integer(from) && tn_dtype_is_integer(to))));
  if (fits) return TN_OK;
  return TN_SHAPE_ERROR(shape, "result dtype: expected %s or a wider one of its class, got %s",
                        tn_dtype_name(from), tn_dtype_name(to));
}

tn_status_t tn_shape_dot_general(tn_shape_t* shape) {
  const tn_type_t *lhs = tn_shape_operand(shape, 0), *rhs = tn_shape_operand(shape, 1);
  TN_TRY(tn_shape_check_class(shape, 0, TN_SHAPE_NUMBER));
  if (lhs->dtype != rhs->dtype) {
    return TN_SHAPE_ERROR(shape, "expected operands of one dtype, got %s and %s",
                          tn_dtype_name(lhs->dtype), tn_dtype_name(rhs->dtype));
  }
  TN_TRY(check_accumulator(shape, lhs->dtype, shape->types[0].dtype));
  const int64_t* lists[2][2];
  int counts[2];
  static const tn_attr_name_t names[2][2] = {{TN_ATTR_LHS_BATCH, TN_ATTR_RHS_BATCH},
                                             {TN_ATTR_LHS_CONTRACT, TN_ATTR_RHS_CONTRACT}};
  unsigned seen[2] = {0, 0};
  tn_type_t* out = &shape->types[0];
  int rank = 0;
  int64_t dims[2 * TN_MAX_RANK];
  for (int kind = 0; kind < 2; ++kind) {
    TN_TRY(tn_shape_ints(shape, names[kind][0], -1, &lists[kind][0], &counts[kind]));
    TN_TRY(tn_shape_ints(shape, names[kind][1], counts[kind], &lists[kind][1], NULL));
    for (int i = 0; i < counts[kind]; ++i) {
      int64_t extent[2];
      for (int side = 0; side < 2; ++side) {
        const tn_type_t* type = side ? rhs : lhs;
        int64_t dimension = lists[kind][side][i];
        TN_TRY(tn_shape_dimension(shape, tn_attr_text(names[kind][side]), dimension, type->rank));
        if (seen[side] >> dimension & 1u) {
          return TN_SHAPE_ERROR(shape, "%s: dimension %lld is named twice",
                                tn_attr_text(names[kind][side]), (long long)dimension);
        }
        seen[side] |= 1u << dimension;
        extent[side] = type->dims[dimension];
      }
      if (extent[0] != extent[1]) {
        char first[TN_TYPE_TEXT_SIZE], second[TN_TYPE_TEXT_SIZE];
        return TN_SHAPE_ERROR(
            shape, "%s: dimensions %lld and %lld differ: %lld and %lld in %s and %s",
            kind ? "contraction" : "batch", (long long)lists[kind][0][i],
            (long long)lists[kind][1][i], (long long)extent[0], (long long)extent[1],
            tn_type_format(lhs, first), tn_type_format(rhs, second));
      }
      if (kind == 0) dims[rank++] = extent[0];
    }
  }
  for (int side = 0; side < 2; ++side) {
    const tn_type_t* type = side ? rhs : lhs;
    for (int i = 0; i < type->rank; ++i) {
      if (!(seen[side] >> i & 1u)) dims[rank++] = type->dims[i];
    }
  }
  if (rank > TN_MAX_RANK)
    return TN_SHAPE_ERROR(shape, "expected a result of rank <= %d, got %d", TN_MAX_RANK, rank);
  out->rank = rank;
  memcpy(out->dims, dims, sizeof(int64_t) * (size_t)rank);
  return tn_shape_check_type(shape, out);
}

tn_status_t tn_shape_convolution(tn_shape_t* shape) {
  const tn_type_t *lhs = tn_shape_operand(shape, 0), *rhs = tn_shape_operand(shape, 1);
  TN_TRY(tn_shape_check_class(shape, 0, TN_SHAPE_NUMBER));
  if (lhs->dtype != rhs->dtype || lhs->rank != rhs->rank || lhs->rank < 3 || lhs->rank > 5) {
    char first[TN_TYPE_TEXT_SIZE], second[TN_TYPE_TEXT_SIZE];
    return TN_SHAPE_ERROR(shape,
                          "expected operands of one dtype and equal rank 3..5, got %s and %s",
                          tn_type_format(lhs, first), tn_type_format(rhs, second));
  }
  int spatial = lhs->rank - 2;
  const int64_t *stride, *low, *high, *lhs_dilation, *rhs_dilation;
  int64_t groups, batch_groups;
  TN_TRY(tn_shape_ints(shape, TN_ATTR_STRIDE, spatial, &stride, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_LOW, spatial, &low, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_HIGH, spatial, &high, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_BASE_DILATION, spatial, &lhs_dilation, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_WINDOW_DILATION, spatial, &rhs_dilation, NULL));
  TN_TRY(tn_shape_int(shape, TN_ATTR_GROUPS, &groups));
  TN_TRY(tn_shape_int(shape, TN_ATTR_BATCH_GROUPS, &batch_groups));
  int64_t n = lhs->dims[0], c = lhs->dims[1], o = rhs->dims[0];
  if (groups < 1 || batch_groups < 1 || (groups > 1 && batch_groups > 1)) {
    return TN_SHAPE_ERROR(shape, "expected group counts >= 1 and one of them 1, got %lld and %lld",
                          (long long)groups, (long long)batch_groups);
  }
  if (c % groups || c / groups != rhs->dims[1] || o % groups || n % batch_groups ||
      o % batch_groups) {
    char first[TN_TYPE_TEXT_SIZE], second[TN_TYPE_TEXT_SIZE];
    return TN_SHAPE_ERROR(
        shape, "channels do not match: %s with weight %s, %lld groups, %lld batch groups",
        tn_type_format(lhs, first), tn_type_format(rhs, second), (long long)groups,
        (long long)batch_groups);
  }
  tn_type_t* out = &shape->types[0];
  out->dtype = lhs->dtype;
  out->rank = lhs->rank;
  out->dims[0] = n / batch_groups;
  out->dims[1] = o;
  for (int i = 0; i < spatial; ++i) {
    if (stride[i] < 1 || lhs_dilation[i] < 1 || rhs_dilation[i] < 1) {
      return TN_SHAPE_ERROR(shape, "spatial dimension %d: expected stride and dilations >= 1", i);
    }
    if (!tn_shape_window(lhs->dims[2 + i], lhs_dilation[i], low[i], high[i], rhs->dims[2 + i],
                         rhs_dilation[i], stride[i], &out->dims[2 + i])) {
      return TN_SHAPE_ERROR(shape, "spatial dimension %d: the extent exceeds 64 bits", i);
    }
  }
  return tn_shape_check_type(shape, out);
}

tn_status_t tn_shape_rng_bits(tn_shape_t* shape) {
  const tn_type_t* state = tn_shape_operand(shape, 0);
  if (state->dtype != TN_U64 || state->rank != 1 || state->dims[0] != 2) {
    char text[TN_TYPE_TEXT_SIZE];
    return TN_SHAPE_ERROR(shape, "state: expected tensor<2xui64>, got %s",
                          tn_type_format(state, text));
  }
  TN_TRY(tn_shape_check_type(shape, &shape->types[0]));
  if (shape->types[0].dtype != TN_U32 && shape->types[0].dtype != TN_U64) {
    return TN_SHAPE_ERROR(shape, "expected a result of ui32 or ui64, got %s",
                          tn_dtype_name(shape->types[0].dtype));
  }
  return TN_OK;
}
