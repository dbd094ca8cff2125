// Layer norm and RMS norm over trailing dimensions, and their gradients.
#include "ir/composite_util.h"

enum { HAS_WEIGHT = 1, HAS_BIAS = 2 };

typedef struct tn_norm {
  int axis, count;            // normalized dimensions axis..rank-1
  int64_t dims[TN_MAX_RANK];  // their numbers
  int64_t lead[TN_MAX_RANK];  // the others
  double elements;            // elements of a row
  int flags;
} tn_norm_t;

static tn_norm_t norm_of(const tn_type_t* x, int64_t axis, int64_t flags) {
  tn_norm_t norm = {
      .axis = (int)axis, .count = x->rank - (int)axis, .elements = 1, .flags = (int)flags};
  for (int i = 0; i < x->rank; ++i) {
    if (i < axis) {
      norm.lead[i] = i;
    } else {
      norm.dims[i - axis] = i;
      norm.elements *= (double)x->dims[i];
    }
  }
  return norm;
}

static tn_type_t stat_type(const tn_type_t* x, int64_t axis) {
  tn_type_t type = *x;
  type.dtype = tn_dtype_compute(x->dtype);
  for (int64_t i = axis; i < x->rank; ++i) type.dims[i] = 1;
  return type;
}

// |operand| has the dimensions of x from |axis| on.
static tn_status_t check_affine(const tn_shape_t* shape, int operand, const char* what,
                                const tn_type_t* x, int64_t axis) {
  if (operand >= shape->operand_count)
    return TN_ERROR(TN_INVALID_ARGUMENT, "operand %d (%s) is missing", operand, what);
  TN_TRY(tn_shape_check_class(shape, operand, TN_SHAPE_FLOAT));
  return tn_c_expect(shape, operand, what, tn_shape_operand(shape, operand)->dtype,
                     x->rank - (int)axis, x->dims + axis);
}

static tn_status_t check_axis(const tn_shape_t* shape, int operand, int64_t* out_axis) {
  TN_TRY(tn_shape_check_class(shape, operand, TN_SHAPE_FLOAT));
  TN_TRY(tn_shape_int(shape, TN_ATTR_AXIS, out_axis));
  return tn_shape_dimension(shape, "axis", *out_axis, tn_shape_operand(shape, operand)->rank);
}

static tn_status_t forward_types(tn_shape_t* shape, bool has_mean) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  int64_t axis, flags = tn_c_int(shape, TN_ATTR_FLAGS, 0);
  TN_TRY(check_axis(shape, 0, &axis));
  int next = 1;
  if (flags & HAS_WEIGHT) TN_TRY(check_affine(shape, next++, "weight", x, axis));
  if (flags & HAS_BIAS) TN_TRY(check_affine(shape, next++, "bias", x, axis));
  if (next != shape->operand_count)
    return TN_ERROR(TN_INVALID_ARGUMENT, "flags say %d operands, got %d", next,
                    shape->operand_count);
  shape->result_count = 0;
  shape->types[shape->result_count++] = *x;
  if (has_mean) shape->types[shape->result_count++] = stat_type(x, axis);
  shape->types[shape->result_count++] = stat_type(x, axis);
  return TN_OK;
}
tn_status_t tn_composite_types_layer_norm(tn_shape_t* shape) { return forward_types(shape, true); }
tn_status_t tn_composite_types_rms_norm(tn_shape_t* shape) { return forward_types(shape, false); }

static tn_status_t backward_types(tn_shape_t* shape, bool has_mean) {
  const tn_type_t* x = tn_shape_operand(shape, 1);
  int64_t axis, flags = tn_c_int(shape, TN_ATTR_FLAGS, 0);
  TN_TRY(check_axis(shape, 1, &axis));
  TN_TRY(tn_c_expect_type(shape, 0, "grad", x));
  tn_type_t stat = stat_type(x, axis);
  int next = 2;
  if (has_mean) TN_TRY(tn_c_expect_type(shape, next++, "mean", &stat));
  TN_TRY(tn_c_expect_type(shape, next++, "rstd", &stat));
  tn_dtype_t dtype = x->dtype;
  if (flags & HAS_WEIGHT) {
    TN_TRY(check_affine(shape, next, "weight", x, axis));
    dtype = tn_shape_operand(shape, next++)->dtype;
  }
  shape->types[0] = *x;
  shape->types[1] = tn_type_make(dtype, x->rank - (int)axis, x->dims + axis);
  shape->types[2] = shape->types[1];
  shape->result_count = has_mean ? 3 : 2;
  return TN_OK;
}
tn_status_t tn_composite_types_layer_norm_backward(tn_shape_t* shape) {
  return backward_types(shape, true);
}
tn_status_t tn_composite_types_rms_norm_backward(tn_shape_t* shape) {
  return backward_types(shape, false);
}

// Mean over the normalized dimensions, with extent 1 there.
static const tn_node_t* row_mean(tn_graph_t* graph, const tn_node_t* x, const tn_norm_t* norm) {
  if (!x) return NULL;
  const tn_node_t* sum = tn_reduce(graph, TN_REDUCE_SUM, x, norm->count, norm->dims);
  tn_type_t type = stat_type(&x->types[0], norm->axis);
  // Division, not multiplication by 1/n: exact for equal elements.
  const tn_node_t* mean =
      sum ? tn_c_div(graph, sum, tn_constant_like(graph, sum, norm->elements)) : NULL;
  return tn_reshape(graph, mean, type.rank, type.dims);
}
static const tn_node_t* spread_stat(tn_graph_t* graph, const tn_node_t* stat, const tn_node_t* x) {
  return x ? tn_broadcast_to(graph, stat, x->types[0].rank, x->types[0].dims) : NULL;
}
static const tn_node_t* spread_weight(tn_graph_t* graph, const tn_node_t* weight,
                                      const tn_node_t* x) {
  if (!weight || !x) return NULL;
  return tn_broadcast_to(graph, tn_convert(graph, weight, x->types[0].dtype), x->types[0].rank,
                         x->types[0].dims);
}

static const tn_node_t* rstd_of(tn_graph_t* graph, const tn_node_t* variance, double epsilon) {
  if (!variance) return NULL;
  return tn_unary(graph, TN_OP_RSQRT,
                  tn_c_add(graph, variance, tn_constant_like(graph, variance, epsilon)));
}

void tn_composite_expand_layer_norm(tn_graph_t* graph, const tn_node_t* composite,
                                    const tn_node_t* const* operands,
                                    const tn_node_t** out_results) {
  tn_norm_t norm = norm_of(&operands[0]->types[0], tn_node_int(composite, TN_ATTR_AXIS, 0),
                           tn_node_int(composite, TN_ATTR_FLAGS, 0));
  const tn_node_t* x = tn_c_up(graph, operands[0]);
  const tn_node_t* mean = row_mean(graph, x, &norm);
  const tn_node_t* centered = tn_c_sub(graph, x, spread_stat(graph, mean, x));
  const tn_node_t* variance = row_mean(graph, tn_c_mul(graph, centered, centered), &norm);
  const tn_node_t* rstd = rstd_of(graph, variance, tn_node_float(composite, TN_ATTR_EPSILON, 1e-5));
  const tn_node_t* out = tn_c_mul(graph, centered, spread_stat(graph, rstd, x));
  int next = 1;
  if (norm.flags & HAS_WEIGHT)
    out = tn_c_mul(graph, out, spread_weight(graph, operands[next++], x));
  if (norm.flags & HAS_BIAS) out = tn_c_add(graph, out, spread_weight(graph, operands[next++], x));
  out_results[0] = tn_convert(graph, out, composite->types[0].dtype);
  out_results[1] = mean;
  out_results[2] = rstd;
}

void tn_composite_expand_rms_norm(tn_graph_t* graph, const tn_node_t* composite,
                                  const tn_node_t* const* operands, const tn_node_t** out_results) {
  tn_norm_t norm = norm_of(&operands[0]->types[0], tn_node_int(composite, TN_ATTR_AXIS, 0),
                           tn_node_int(composite, TN_ATTR_FLAGS, 0));
  const tn_node_t* x = tn_c_up(graph, operands[0]);
  const tn_node_t* square = row_mean(graph, tn_c_mul(graph, x, x), &norm);
  const tn_node_t* rstd = rstd_of(graph, square, tn_node_float(composite, TN_ATTR_EPSILON, 1e-5));
  const tn_node_t* out = tn_c_mul(graph, x, spread_stat(graph, rstd, x));
  if (norm.flags & HAS_WEIGHT) out = tn_c_mul(graph, out, spread_weight(graph, operands[1], x));
  out_results[0] = tn_convert(graph, out, composite->types[0].dtype);
  out_results[1] = rstd;
}

// With gw = grad * weight and xhat the normalized x:
//   dx = rstd * (gw - mean(gw) - xhat * mean(gw * xhat)); RMS norm has no mean(gw).
static void backward(tn_graph_t* graph, const tn_node_t* composite,
                     const tn_node_t* const* operands, const tn_node_t* mean, const tn_node_t* rstd,
                     const tn_node_t* weight, const tn_node_t** out_results) {
  tn_norm_t norm = norm_of(&operands[1]->types[0], tn_node_int(composite, TN_ATTR_AXIS, 0),
                           tn_node_int(composite, TN_ATTR_FLAGS, 0));
  const tn_node_t *grad = tn_c_up(graph, operands[0]), *x = tn_c_up(graph, operands[1]);
  const tn_node_t* scale = spread_stat(graph, rstd, x);
  const tn_node_t* centered = mean ? tn_c_sub(graph, x, spread_stat(graph, mean, x)) : x;
  const tn_node_t* xhat = tn_c_mul(graph, centered, scale);
  const tn_node_t* gw =
      norm.flags & HAS_WEIGHT ? tn_c_mul(graph, grad, spread_weight(graph, weight, x)) : grad;
  const tn_node_t* inner =
      mean ? tn_c_sub(graph, gw, spread_stat(graph, row_mean(graph, gw, &norm), x)) : gw;
  const tn_node_t* along = spread_stat(graph, row_mean(graph, tn_c_mul(graph, gw, xhat), &norm), x);
  const tn_node_t* dx =
      tn_c_mul(graph, scale, tn_c_sub(graph, inner, tn_c_mul(graph, xhat, along)));
  const tn_node_t* dweight =
      tn_reduce(graph, TN_REDUCE_SUM, tn_c_mul(graph, grad, xhat), norm.axis, norm.lead);
  out_results[0] = tn_convert(graph, dx, composite->types[0].dtype);
  out_results[1] = tn_convert(graph, dweight, composite->types[1].dtype);
  if (mean) {
    const tn_node_t* dbias = tn_reduce(graph, TN_REDUCE_SUM, grad, norm.axis, norm.lead);
    out_results[2] = tn_convert(graph, dbias, composite->types[2].dtype);
  }
}

void tn_composite_expand_layer_norm_backward(tn_graph_t* graph, const tn_node_t* composite,
                                             const tn_node_t* const* operands,
                                             const tn_node_t** out_results) {
  const tn_node_t* weight = composite->operand_count > 4 ? operands[4] : NULL;
  backward(graph, composite, operands, operands[2], operands[3], weight, out_results);
}
void tn_composite_expand_rms_norm_backward(tn_graph_t* graph, const tn_node_t* composite,
                                           const tn_node_t* const* operands,
                                           const tn_node_t** out_results) {
  const tn_node_t* weight = composite->operand_count > 3 ? operands[3] : NULL;
  backward(graph, composite, operands, NULL, operands[2], weight, out_results);
}
