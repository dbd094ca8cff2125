// Group norm and batch norm (channels in dimension 1), and their gradients.
#include "ir/composite_util.h"

enum { HAS_WEIGHT = 1, HAS_BIAS = 2, IS_INFERENCE = 4 };

// ---- types ----------------------------------------------------------------------------------------------
// x of float and rank >= 2; its channel count.
static tn_status_t check_channels(const tn_shape_t* shape, int operand, int64_t* out_channels) {
  *out_channels = 0;
  TN_TRY(tn_shape_check_class(shape, operand, TN_SHAPE_FLOAT));
  const tn_type_t* x = tn_shape_operand(shape, operand);
  if (x->rank < 2) return TN_ERROR(TN_INVALID_ARGUMENT, "x: expected rank >= 2, got %d", x->rank);
  *out_channels = x->dims[1];
  return TN_OK;
}
static tn_status_t check_vector(const tn_shape_t* shape, int operand, const char* what,
                                int64_t channels) {
  if (operand >= shape->operand_count)
    return TN_ERROR(TN_INVALID_ARGUMENT, "operand %d (%s) is missing", operand, what);
  TN_TRY(tn_shape_check_class(shape, operand, TN_SHAPE_FLOAT));
  return tn_c_expect(shape, operand, what, tn_shape_operand(shape, operand)->dtype, 1, &channels);
}
static tn_status_t check_affine(const tn_shape_t* shape, int64_t channels, int* next) {
  int64_t flags = tn_c_int(shape, TN_ATTR_FLAGS, 0);
  if (flags & HAS_WEIGHT) TN_TRY(check_vector(shape, (*next)++, "weight", channels));
  if (flags & HAS_BIAS) TN_TRY(check_vector(shape, (*next)++, "bias", channels));
  return TN_OK;
}
static tn_status_t check_count(const tn_shape_t* shape, int expected) {
  if (shape->operand_count == expected) return TN_OK;
  return TN_ERROR(TN_INVALID_ARGUMENT, "flags say %d operands, got %d", expected,
                  shape->operand_count);
}
static tn_status_t check_groups(const tn_shape_t* shape, const tn_type_t* x, tn_type_t* out_stat) {
  int64_t groups;
  TN_TRY(tn_shape_int(shape, TN_ATTR_GROUPS, &groups));
  if (groups < 1 || x->dims[1] % groups) {
    return TN_ERROR(TN_INVALID_ARGUMENT, "groups: expected a divisor of %lld channels, got %lld",
                    (long long)x->dims[1], (long long)groups);
  }
  const int64_t dims[2] = {x->dims[0], groups};
  *out_stat = tn_type_make(tn_dtype_compute(x->dtype), 2, dims);
  return TN_OK;
}

tn_status_t tn_composite_types_group_norm(tn_shape_t* shape) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  int64_t channels = 0;
  int next = 1;
  TN_TRY(check_channels(shape, 0, &channels));
  TN_TRY(check_groups(shape, x, &shape->types[1]));
  TN_TRY(check_affine(shape, channels, &next));
  TN_TRY(check_count(shape, next));
  shape->types[0] = *x;
  shape->types[2] = shape->types[1];
  shape->result_count = 3;
  return TN_OK;
}

static tn_status_t backward_types(tn_shape_t* shape, const tn_type_t* stat, int64_t channels) {
  const tn_type_t* x = tn_shape_operand(shape, 1);
  TN_TRY(tn_c_expect_type(shape, 0, "grad", x));
  TN_TRY(tn_c_expect_type(shape, 2, "mean", stat));
  TN_TRY(tn_c_expect_type(shape, 3, "rstd", stat));
  bool has_weight = tn_c_int(shape, TN_ATTR_FLAGS, 0) & HAS_WEIGHT;
  if (has_weight) TN_TRY(check_vector(shape, 4, "weight", channels));
  TN_TRY(check_count(shape, has_weight ? 5 : 4));
  shape->types[0] = *x;
  shape->types[1] =
      tn_type_make(has_weight ? tn_shape_operand(shape, 4)->dtype : x->dtype, 1, &channels);
  shape->types[2] = shape->types[1];
  shape->result_count = 3;
  return TN_OK;
}
tn_status_t tn_composite_types_group_norm_backward(tn_shape_t* shape) {
  int64_t channels = 0;
  tn_type_t stat;
  TN_TRY(check_channels(shape, 1, &channels));
  TN_TRY(check_groups(shape, tn_shape_operand(shape, 1), &stat));
  return backward_types(shape, &stat, channels);
}

static tn_type_t channel_type(const tn_type_t* x) {
  return tn_type_make(tn_dtype_compute(x->dtype), 1, &x->dims[1]);
}
tn_status_t tn_composite_types_batch_norm_backward(tn_shape_t* shape) {
  int64_t channels = 0;
  TN_TRY(check_channels(shape, 1, &channels));
  tn_type_t stat = channel_type(tn_shape_operand(shape, 1));
  return backward_types(shape, &stat, channels);
}
tn_status_t tn_composite_types_batch_norm_train(tn_shape_t* shape) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  int64_t channels = 0;
  int next = 1;
  TN_TRY(check_channels(shape, 0, &channels));
  TN_TRY(check_affine(shape, channels, &next));
  TN_TRY(check_count(shape, next));
  shape->types[0] = *x;
  for (int i = 1; i < 4; ++i) shape->types[i] = channel_type(x);
  shape->result_count = 4;
  return TN_OK;
}
tn_status_t tn_composite_types_batch_norm_infer(tn_shape_t* shape) {
  int64_t channels = 0;
  int next = 1;
  TN_TRY(check_channels(shape, 0, &channels));
  TN_TRY(check_affine(shape, channels, &next));
  TN_TRY(check_vector(shape, next, "mean", channels));
  TN_TRY(check_vector(shape, next + 1, "var", channels));
  TN_TRY(check_count(shape, next + 2));
  shape->types[0] = *tn_shape_operand(shape, 0);
  shape->result_count = 1;
  return TN_OK;
}

// ---- group norm -------------------------------------------------------------------------------------------
// x as [n, groups, elements of a group].
static const tn_node_t* to_groups(tn_graph_t* graph, const tn_node_t* x, int64_t groups) {
  if (!x) return NULL;
  const tn_type_t* type = &x->types[0];
  int64_t per_group = type->dims[1] / groups;
  for (int i = 2; i < type->rank; ++i) per_group *= type->dims[i];
  const int64_t dims[3] = {type->dims[0], groups, per_group};
  return tn_reshape(graph, x, 3, dims);
}
static const tn_node_t* like(tn_graph_t* graph, const tn_node_t* x, const tn_type_t* type) {
  return tn_reshape(graph, x, type->rank, type->dims);
}
static const tn_node_t* mean_over(tn_graph_t* graph, const tn_node_t* x, int count,
                                  const int64_t* dims) {
  if (!x) return NULL;
  double elements = 1;
  for (int i = 0; i < count; ++i) elements *= (double)x->types[0].dims[dims[i]];
  const tn_node_t* sum = tn_reduce(graph, TN_REDUCE_SUM, x, count, dims);
  return sum ? tn_c_div(graph, sum, tn_constant_like(graph, sum, elements)) : NULL;
}
static const tn_node_t* rsqrt_of(tn_graph_t* graph, const tn_node_t* variance, double epsilon) {
  if (!variance) return NULL;
  return tn_unary(graph, TN_OP_RSQRT,
                  tn_c_add(graph, variance, tn_constant_like(graph, variance, epsilon)));
}
// A weight per channel over x.
static const tn_node_t* per_channel(tn_graph_t* graph, const tn_node_t* vector,
                                    const tn_node_t* x) {
  if (!vector || !x) return NULL;
  return tn_c_spread_vector(graph, tn_convert(graph, vector, x->types[0].dtype), x, 1);
}
static const tn_node_t* affine(tn_graph_t* graph, const tn_node_t* composite,
                               const tn_node_t* const* operands, const tn_node_t* out) {
  int64_t flags = tn_node_int(composite, TN_ATTR_FLAGS, 0);
  int next = 1;
  if (flags & HAS_WEIGHT) out = tn_c_mul(graph, out, per_channel(graph, operands[next++], out));
  if (flags & HAS_BIAS) out = tn_c_add(graph, out, per_channel(graph, operands[next++], out));
  return tn_convert(graph, out, composite->types[0].dtype);
}
// Everything but the channel.
static int other_dims(const tn_type_t* type, int64_t* out_dims) {
  int count = 0;
  for (int i = 0; i < type->rank; ++i) {
    if (i != 1) out_dims[count++] = i;
  }
  return count;
}

static const int64_t group_row = 2;

void tn_composite_expand_group_norm(tn_graph_t* graph, const tn_node_t* composite,
                                    const tn_node_t* const* operands,
                                    const tn_node_t** out_results) {
  const int64_t groups = tn_node_int(composite, TN_ATTR_GROUPS, 1);
  const tn_node_t* x = to_groups(graph, tn_c_up(graph, operands[0]), groups);
  const tn_node_t* mean = mean_over(graph, x, 1, &group_row);
  const tn_node_t* centered = tn_c_sub(graph, x, tn_c_spread(graph, mean, x, 1, &group_row));
  const tn_node_t* variance = mean_over(graph, tn_c_mul(graph, centered, centered), 1, &group_row);
  const tn_node_t* rstd =
      rsqrt_of(graph, variance, tn_node_float(composite, TN_ATTR_EPSILON, 1e-5));
  const tn_node_t* out = tn_c_mul(graph, centered, tn_c_spread(graph, rstd, x, 1, &group_row));
  out_results[0] = affine(graph, composite, operands, like(graph, out, &composite->types[0]));
  out_results[1] = mean;
  out_results[2] = rstd;
}

void tn_composite_expand_group_norm_backward(tn_graph_t* graph, const tn_node_t* composite,
                                             const tn_node_t* const* operands,
                                             const tn_node_t** out_results) {
  const int64_t groups = tn_node_int(composite, TN_ATTR_GROUPS, 1);
  const tn_type_t* type = &composite->types[0];
  const tn_node_t *grad = tn_c_up(graph, operands[0]), *whole = tn_c_up(graph, operands[1]);
  const tn_node_t* x = to_groups(graph, whole, groups);
  const tn_node_t* scale = tn_c_spread(graph, operands[3], x, 1, &group_row);
  const tn_node_t* xhat =
      tn_c_mul(graph, tn_c_sub(graph, x, tn_c_spread(graph, operands[2], x, 1, &group_row)), scale);
  const tn_node_t* weighted = composite->operand_count > 4
                                  ? tn_c_mul(graph, grad, per_channel(graph, operands[4], grad))
                                  : grad;
  const tn_node_t* gw = to_groups(graph, weighted, groups);
  const tn_node_t* mean_gw =
      tn_c_spread(graph, mean_over(graph, gw, 1, &group_row), x, 1, &group_row);
  const tn_node_t* along = tn_c_spread(
      graph, mean_over(graph, tn_c_mul(graph, gw, xhat), 1, &group_row), x, 1, &group_row);
  const tn_node_t* dx = tn_c_mul(
      graph, scale, tn_c_sub(graph, tn_c_sub(graph, gw, mean_gw), tn_c_mul(graph, xhat, along)));
  int64_t dims[TN_MAX_RANK];
  int count = other_dims(type, dims);
  const tn_node_t* products = tn_c_mul(graph, grad, like(graph, xhat, type));
  out_results[0] = tn_convert(graph, like(graph, dx, type), type->dtype);
  out_results[1] = tn_convert(graph, tn_reduce(graph, TN_REDUCE_SUM, products, count, dims),
                              composite->types[1].dtype);
  out_results[2] = tn_convert(graph, tn_reduce(graph, TN_REDUCE_SUM, grad, count, dims),
                              composite->types[2].dtype);
}

// ---- batch norm -------------------------------------------------------------------------------------------
void tn_composite_expand_batch_norm_train(tn_graph_t* graph, const tn_node_t* composite,
                                          const tn_node_t* const* operands,
                                          const tn_node_t** out_results) {
  const tn_node_t* x = tn_c_up(graph, operands[0]);
  int64_t dims[TN_MAX_RANK];
  int count = other_dims(&operands[0]->types[0], dims);
  const tn_node_t* mean = mean_over(graph, x, count, dims);
  const tn_node_t* centered = tn_c_sub(graph, x, per_channel(graph, mean, x));
  const tn_node_t* variance = mean_over(graph, tn_c_mul(graph, centered, centered), count, dims);
  const tn_node_t* invstd =
      rsqrt_of(graph, variance, tn_node_float(composite, TN_ATTR_EPSILON, 1e-5));
  const tn_node_t* out = tn_c_mul(graph, centered, per_channel(graph, invstd, x));
  out_results[0] = affine(graph, composite, operands, out);
  out_results[1] = mean;
  out_results[2] = invstd;
  out_results[3] = variance;
}

void tn_composite_expand_batch_norm_infer(tn_graph_t* graph, const tn_node_t* composite,
                                          const tn_node_t* const* operands,
                                          const tn_node_t** out_results) {
  const tn_node_t* x = tn_c_up(graph, operands[0]);
  if (!x) return;
  const tn_node_t* mean =
      tn_convert(graph, operands[composite->operand_count - 2], x->types[0].dtype);
  const tn_node_t* variance =
      tn_convert(graph, operands[composite->operand_count - 1], x->types[0].dtype);
  const tn_node_t* invstd =
      rsqrt_of(graph, variance, tn_node_float(composite, TN_ATTR_EPSILON, 1e-5));
  const tn_node_t* centered = tn_c_sub(graph, x, per_channel(graph, mean, x));
  out_results[0] =
      affine(graph, composite, operands, tn_c_mul(graph, centered, per_channel(graph, invstd, x)));
}

void tn_composite_expand_batch_norm_backward(tn_graph_t* graph, const tn_node_t* composite,
                                             const tn_node_t* const* operands,
                                             const tn_node_t** out_results) {
  const tn_node_t *grad = tn_c_up(graph, operands[0]), *x = tn_c_up(graph, operands[1]);
  int64_t dims[TN_MAX_RANK];
  int count = other_dims(&composite->types[0], dims);
  const tn_node_t* scale = per_channel(graph, operands[3], x);
  const tn_node_t* xhat =
      tn_c_mul(graph, tn_c_sub(graph, x, per_channel(graph, operands[2], x)), scale);
  const tn_node_t* products = tn_c_mul(graph, grad, xhat);
  const tn_node_t* inner = grad;
  if (!(tn_node_int(composite, TN_ATTR_FLAGS, 0) & IS_INFERENCE)) {
    const tn_node_t* mean_grad = per_channel(graph, mean_over(graph, grad, count, dims), x);
    const tn_node_t* along = per_channel(graph, mean_over(graph, products, count, dims), x);
    inner = tn_c_sub(graph, tn_c_sub(graph, grad, mean_grad), tn_c_mul(graph, xhat, along));
  }
  const tn_node_t* dx = tn_c_mul(graph, inner, scale);
  if (composite->operand_count > 4) dx = tn_c_mul(graph, dx, per_channel(graph, operands[4], x));
  out_results[0] = tn_convert(graph, dx, composite->types[0].dtype);
  out_results[1] = tn_convert(graph, tn_reduce(graph, TN_REDUCE_SUM, products, count, dims),
                              composite->types[1].dtype);
  out_results[2] = tn_convert(graph, tn_reduce(graph, TN_REDUCE_SUM, grad, count, dims),
                              composite->types[2].dtype);
}
