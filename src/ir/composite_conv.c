// Gradients of convolution, as convolutions.
#include "ir/composite_util.h"

#include <string.h>

// ---- types ----------------------------------------------------------------------------------------------
// The forward convolution's attributes from a composite's.
static tn_status_t conv_of(int attr_count, const tn_attr_t* attrs, int spatial, tn_conv_t* out) {
  static const tn_attr_name_t names[5] = {TN_ATTR_STRIDE, TN_ATTR_LOW, TN_ATTR_HIGH,
                                          TN_ATTR_BASE_DILATION, TN_ATTR_WINDOW_DILATION};
  memset(out, 0, sizeof *out);
  out->spatial = spatial;
  out->batch_groups = 1;
  int64_t* lists[5] = {out->stride, out->low, out->high, out->lhs_dilation, out->rhs_dilation};
  for (int k = 0; k < 5; ++k) {
    const tn_attr_t* attr = tn_attr_find(attr_count, attrs, names[k]);
    if (!attr || attr->kind != TN_ATTR_INTS || attr->count != spatial) {
      return TN_ERROR(TN_INVALID_ARGUMENT, "'%s': expected %d integers", tn_attr_text(names[k]),
                      spatial);
    }
    for (int i = 0; i < spatial; ++i) {
      lists[k][i] = attr->as.ints[i];
      if (k != 1 && k != 2 && lists[k][i] < 1) {
        return TN_ERROR(TN_INVALID_ARGUMENT, "'%s': expected values >= 1, got %lld",
                        tn_attr_text(names[k]), (long long)lists[k][i]);
      }
    }
  }
  const tn_attr_t* groups = tn_attr_find(attr_count, attrs, TN_ATTR_GROUPS);
  out->groups = groups && groups->kind == TN_ATTR_INT ? groups->as.integer : 0;
  if (out->groups < 1) return TN_ERROR(TN_INVALID_ARGUMENT, "'groups': expected an integer >= 1");
  return TN_OK;
}

// Extent of a dimension with gaps between its elements.
static int64_t span(int64_t extent, int64_t dilation) {
  return extent ? (extent - 1) * dilation + 1 : 0;
}

// The forward convolution of x and weight gives grad.
static tn_status_t check_forward(const tn_conv_t* conv, const tn_type_t* x, const tn_type_t* weight,
                                 const tn_type_t* grad) {
  bool fits = x->dims[0] == grad->dims[0] && grad->dims[1] == weight->dims[0] &&
              x->dims[1] % conv->groups == 0 && x->dims[1] / conv->groups == weight->dims[1] &&
              weight->dims[0] % conv->groups == 0;
  for (int i = 0; fits && i < conv->spatial; ++i) {
    int64_t extent;
    fits = tn_shape_window(x->dims[2 + i], conv->lhs_dilation[i], conv->low[i], conv->high[i],
                           weight->dims[2 + i], conv->rhs_dilation[i], conv->stride[i], &extent) &&
           extent == grad->dims[2 + i];
  }
  if (fits) return TN_OK;
  char a[TN_TYPE_TEXT_SIZE], b[TN_TYPE_TEXT_SIZE], c[TN_TYPE_TEXT_SIZE];
  return TN_ERROR(TN_INVALID_ARGUMENT, "grad %s is not that of x %s with weight %s",
                  tn_type_format(grad, a), tn_type_format(x, b), tn_type_format(weight, c));
}

static tn_status_t begin_types(tn_shape_t* shape, tn_conv_t* out_conv, const int64_t** out_sizes) {
  const tn_type_t *grad = tn_shape_operand(shape, 0), *other = tn_shape_operand(shape, 1);
  TN_TRY(tn_shape_check_class(shape, 0, TN_SHAPE_REAL));
  if (grad->dtype != other->dtype || grad->rank != other->rank || grad->rank < 3 ||
      grad->rank > 5) {
    char a[TN_TYPE_TEXT_SIZE], b[TN_TYPE_TEXT_SIZE];
    return TN_ERROR(TN_INVALID_ARGUMENT,
                    "expected operands of one dtype and equal rank 3..5, got %s and %s",
                    tn_type_format(grad, a), tn_type_format(other, b));
  }
  TN_TRY(conv_of(shape->attr_count, shape->attrs, grad->rank - 2, out_conv));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_SIZES, grad->rank - 2, out_sizes, NULL));
  shape->result_count = 1;
  return TN_OK;
}
tn_status_t tn_composite_types_conv_backward_input(tn_shape_t* shape) {
  tn_conv_t conv;
  const int64_t* sizes;
  TN_TRY(begin_types(shape, &conv, &sizes));
  const tn_type_t *grad = tn_shape_operand(shape, 0), *weight = tn_shape_operand(shape, 1);
  tn_type_t* out = &shape->types[0];
  *out = *grad;
  out->dims[1] = weight->dims[1] * conv.groups;
  for (int i = 0; i < conv.spatial; ++i) out->dims[2 + i] = sizes[i];
  TN_TRY(tn_shape_check_type(shape, out));
  return check_forward(&conv, out, weight, grad);
}
tn_status_t tn_composite_types_conv_backward_weight(tn_shape_t* shape) {
  tn_conv_t conv;
  const int64_t* sizes;
  TN_TRY(begin_types(shape, &conv, &sizes));
  const tn_type_t *grad = tn_shape_operand(shape, 0), *x = tn_shape_operand(shape, 1);
  tn_type_t* out = &shape->types[0];
  *out = *grad;
  out->dims[0] = grad->dims[1];
  out->dims[1] = x->dims[1] / conv.groups;
  for (int i = 0; i < conv.spatial; ++i) out->dims[2 + i] = sizes[i];
  TN_TRY(tn_shape_check_type(shape, out));
  return check_forward(&conv, x, out, grad);
}

// ---- expansion --------------------------------------------------------------------------------------------
// [outer * groups, inner, rest..] or [inner, outer * groups, rest..] regrouped: splits dimension |split| into
// (groups, part), exchanges |part| with the other leading dimension and merges the groups there.
static const tn_node_t* regroup(tn_graph_t* graph, const tn_node_t* x, int split, int64_t groups) {
  if (!x) return NULL;
  const tn_type_t* type = &x->types[0];
  int64_t dims[TN_MAX_RANK], permutation[TN_MAX_RANK];
  int rank = type->rank + 1;
  int64_t part = type->dims[split] / groups, other = type->dims[1 - split];
  for (int i = 2; i < type->rank; ++i) {
    dims[i + 1] = type->dims[i];
    permutation[i + 1] = i + 1;
  }
  if (split == 0) {  // [g, part, other] -> [g, other, part] -> [g * other, part]
    dims[0] = groups, dims[1] = part, dims[2] = other;
    permutation[0] = 0, permutation[1] = 2, permutation[2] = 1;
  } else {  // [other, g, part] -> [part, g, other] -> [part, g * other]
    dims[0] = other, dims[1] = groups, dims[2] = part;
    permutation[0] = 2, permutation[1] = 1, permutation[2] = 0;
  }
  const tn_node_t* moved = tn_transpose(graph, tn_reshape(graph, x, rank, dims), permutation);
  dims[1] = split == 0 ? groups * other : part;
  dims[2] = split == 0 ? part : groups * other;
  return tn_reshape(graph, moved, rank - 1, dims + 1);
}

static bool is_trivial(tn_graph_t* graph, const tn_node_t* composite,
                       const tn_node_t* const* operands, const tn_node_t** out_results) {
  if (tn_type_element_count(&operands[0]->types[0]) &&
      tn_type_element_count(&operands[1]->types[0]) &&
      tn_type_element_count(&composite->types[0])) {
    return false;
  }
  out_results[0] = tn_constant_splat(graph, &composite->types[0], (tn_scalar_t){0});
  return true;
}

// dx = grad, spread by the stride, with the flipped weight.
void tn_composite_expand_conv_backward_input(tn_graph_t* graph, const tn_node_t* composite,
                                             const tn_node_t* const* operands,
                                             const tn_node_t** out_results) {
  if (is_trivial(graph, composite, operands, out_results)) return;
  const tn_type_t *grad = &operands[0]->types[0], *weight = &operands[1]->types[0],
                  *x = &composite->types[0];
  tn_conv_t forward, back;
  tn_status_free(conv_of(composite->attr_count, composite->attrs, grad->rank - 2, &forward));
  back = forward;
  int64_t flipped[3];
  for (int i = 0; i < forward.spatial; ++i) {
    int64_t window = span(weight->dims[2 + i], forward.rhs_dilation[i]);
    back.stride[i] = forward.lhs_dilation[i];
    back.lhs_dilation[i] = forward.stride[i];
    back.low[i] = window - 1 - forward.low[i];
    back.high[i] = (x->dims[2 + i] - 1) * back.stride[i] + window -
                   span(grad->dims[2 + i], forward.stride[i]) - back.low[i];
    flipped[i] = 2 + i;
  }
  // [o, c / g, ..] -> [c, o / g, ..]
  const tn_node_t* turned =
      tn_reverse(graph, regroup(graph, operands[1], 0, forward.groups), forward.spatial, flipped);
  out_results[0] = tn_convolution(graph, operands[0], turned, &back);
}

// dweight: x slides over grad, batch and channels exchanged; the groups become feature groups.
void tn_composite_expand_conv_backward_weight(tn_graph_t* graph, const tn_node_t* composite,
                                              const tn_node_t* const* operands,
                                              const tn_node_t** out_results) {
  if (is_trivial(graph, composite, operands, out_results)) return;
  const tn_type_t *grad = &operands[0]->types[0], *x = &operands[1]->types[0],
                  *weight = &composite->types[0];
  tn_conv_t forward, back;
  tn_status_free(conv_of(composite->attr_count, composite->attrs, grad->rank - 2, &forward));
  back = forward;
  for (int i = 0; i < forward.spatial; ++i) {
    back.stride[i] = forward.rhs_dilation[i];
    back.rhs_dilation[i] = forward.stride[i];
    back.high[i] = (weight->dims[2 + i] - 1) * back.stride[i] +
                   span(grad->dims[2 + i], forward.stride[i]) -
                   span(x->dims[2 + i], forward.lhs_dilation[i]) - forward.low[i];
  }
  int64_t swap[5] = {1, 0, 2, 3, 4};
  const tn_node_t* lhs = regroup(graph, operands[1], 1, forward.groups);  // [c / g, g * n, ..]
  const tn_node_t* rhs = tn_transpose(graph, operands[0], swap);          // [o, n, ..]
  out_results[0] = tn_transpose(graph, tn_convolution(graph, lhs, rhs, &back), swap);
}
