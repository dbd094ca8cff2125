// Convolution and its gradients, 1 to 3 spatial dimensions, transposed ones included.
#include <string.h>

#include "aten/lowering.h"

typedef struct geometry {
  tn_conv_t conv;
  bool is_transposed;
  int64_t output_padding[3];
} geometry_t;

// stride, padding, dilation, transposed, output_padding, groups from argument |first| on.
static tn_status_t read_geometry(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* weight,
                                 int first, geometry_t* out) {
  memset(out, 0, sizeof(*out));
  const int spatial = tn_rank(weight) - 2;
  if (spatial < 1 || spatial > 3 || tn_rank(x) != spatial + 2)
    return TN_DECLINE(
        "convolution: expected an input of the weight's rank with 1 to 3 spatial dimensions");
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (dtype != tn_dtype_of(weight) || !(tn_dtype_is_float(dtype) || dtype == TN_I64))
    return TN_DECLINE("convolution of %s with %s", tn_dtype_name(tn_dtype_of(x)),
                      tn_dtype_name(tn_dtype_of(weight)));
  tn_conv_t* conv = &out->conv;
  conv->spatial = spatial;
  conv->batch_groups = 1;
  if (!tn_arg_spatial(l, first, spatial, conv->stride) ||
      !tn_arg_spatial(l, first + 1, spatial, conv->low) ||
      !tn_arg_spatial(l, first + 2, spatial, conv->rhs_dilation) ||
      !tn_arg_spatial(l, first + 4, spatial, out->output_padding))
    return TN_DECLINE(
        "convolution: stride, padding, dilation: one value or one per spatial dimension");
  out->is_transposed = tn_arg_bool(l, first + 3, false);
  conv->groups = tn_arg_int(l, first + 5, 1);
  for (int d = 0; d < spatial; ++d) {
    conv->lhs_dilation[d] = 1;
    conv->high[d] = conv->low[d];
    if (conv->stride[d] < 1 || conv->rhs_dilation[d] < 1 || conv->low[d] < 0)
      return TN_DECLINE("convolution: non-positive stride or dilation, or negative padding");
    const int64_t reach = conv->rhs_dilation[d] * (tn_dim(weight, d + 2) - 1) + 1;
    if (!out->is_transposed && tn_dim(x, d + 2) + 2 * conv->low[d] < reach)
      return TN_DECLINE("convolution: kernel size can't be greater than actual input size");
  }
  const int64_t channels =
      out->is_transposed ? tn_dim(weight, 0) : tn_dim(weight, 1) * conv->groups;
  if (conv->groups < 1 || tn_dim(x, 1) != channels || tn_dim(weight, 0) % conv->groups)
    return TN_DECLINE("convolution: channels and groups do not match");
  return TN_OK;
}

// The convolution whose input gradient is this transposed one. Output padding of a stride or more (allowed below the
// dilation) would be room for another window, which no window of that convolution may reach.
static tn_conv_t forward_of_transposed(const geometry_t* geometry) {
  tn_conv_t conv = geometry->conv;
  for (int d = 0; d < conv.spatial; ++d) {
    const int64_t beyond_stride = geometry->output_padding[d] - (conv.stride[d] - 1);
    if (beyond_stride > 0) conv.high[d] -= beyond_stride;
  }
  return conv;
}

enum { CONV_ATTRS = 8 };
// Attributes of the forward convolution for the gradient composites, and the result's spatial extents.
static int conv_attrs(const tn_conv_t* conv, const int64_t* sizes, tn_attr_t* out) {
  int n = 0;
  out[n++] = tn_attr_ints(TN_ATTR_STRIDE, conv->spatial, conv->stride);
  out[n++] = tn_attr_ints(TN_ATTR_LOW, conv->spatial, conv->low);
  out[n++] = tn_attr_ints(TN_ATTR_HIGH, conv->spatial, conv->high);
  out[n++] = tn_attr_ints(TN_ATTR_BASE_DILATION, conv->spatial, conv->lhs_dilation);
  out[n++] = tn_attr_ints(TN_ATTR_WINDOW_DILATION, conv->spatial, conv->rhs_dilation);
  out[n++] = tn_attr_int(TN_ATTR_GROUPS, conv->groups);
  out[n++] = tn_attr_ints(TN_ATTR_SIZES, conv->spatial, sizes);
  return n;
}

static const tn_node_t* backward_input(tn_lowering_t* l, const tn_conv_t* conv,
                                       const tn_node_t* grad, const tn_node_t* weight,
                                       const int64_t* sizes) {
  tn_attr_t attrs[CONV_ATTRS];
  const tn_node_t* operands[] = {grad, weight};
  return tn_composite(l->graph, "conv_backward_input", 2, operands, conv_attrs(conv, sizes, attrs),
                      attrs);
}

static const tn_node_t* backward_weight(tn_lowering_t* l, const tn_conv_t* conv,
                                        const tn_node_t* grad, const tn_node_t* x,
                                        const int64_t* sizes) {
  tn_attr_t attrs[CONV_ATTRS];
  const tn_node_t* operands[] = {grad, x};
  return tn_composite(l->graph, "conv_backward_weight", 2, operands, conv_attrs(conv, sizes, attrs),
                      attrs);
}

static const tn_node_t* along_channels(tn_lowering_t* l, const tn_node_t* bias,
                                       const tn_node_t* y) {
  const int64_t map = 1;
  return y ? tn_broadcast_in_dim(l->graph, bias, tn_rank(y), y->types[0].dims, &map) : NULL;
}

// x, weight, bias, stride, padding, dilation, transposed, output_padding, groups
tn_status_t tn_lower_convolution(tn_lowering_t* l) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *weight = tn_arg_tensor(l, 1),
                  *bias = tn_arg_tensor(l, 2);
  geometry_t geometry;
  TN_TRY(read_geometry(l, x, weight, 3, &geometry));
  const tn_conv_t* conv = &geometry.conv;
  // f16 and bf16 compute in f32 and round once, the bias included.
  const tn_dtype_t dtype = tn_dtype_of(x), opmath = tn_opmath_dtype(dtype);
  x = tn_convert(l->graph, x, opmath);
  weight = tn_convert(l->graph, weight, opmath);
  const tn_node_t* y;
  if (geometry.is_transposed) {
    // A transposed convolution is the gradient of the convolution whose input it restores.
    int64_t sizes[3];
    for (int d = 0; d < conv->spatial; ++d) {
      if (geometry.output_padding[d] >= conv->stride[d] &&
          geometry.output_padding[d] >= conv->rhs_dilation[d])
        return TN_DECLINE(
            "convolution: output padding must be smaller than either stride or dilation");
      sizes[d] = (tn_dim(x, d + 2) - 1) * conv->stride[d] - 2 * conv->low[d] +
                 conv->rhs_dilation[d] * (tn_dim(weight, d + 2) - 1) + geometry.output_padding[d] +
                 1;
      if (sizes[d] < 0) return TN_DECLINE("convolution: negative output size");
    }
    const tn_conv_t forward = forward_of_transposed(&geometry);
    y = backward_input(l, &forward, x, weight, sizes);
  } else {
    y = tn_convolution(l->graph, x, weight, conv);
  }
  if (bias) {
    if (tn_rank(bias) != 1 || !y || tn_dim(bias, 0) != tn_dim(y, 1) || tn_dtype_of(bias) != dtype)
      return TN_DECLINE("convolution: bias");
    y = tn_binary(l->graph, TN_OP_ADD, y, along_channels(l, tn_convert(l->graph, bias, opmath), y));
  }
  tn_return(l, tn_convert(l->graph, y, dtype));
  return TN_OK;
}

static tn_status_t convolution_backward(tn_lowering_t* l, int first) {
  const tn_node_t *grad = tn_arg_tensor(l, 0), *x = tn_arg_tensor(l, 1),
                  *weight = tn_arg_tensor(l, 2);
  geometry_t geometry;
  TN_TRY(read_geometry(l, x, weight, first, &geometry));
  const int64_t* mask;
  if (tn_arg_ints(l, first + 6, &mask) != 3) return TN_DECLINE("%s: output_mask", l->op->name);
  const tn_conv_t* conv = &geometry.conv;
  const tn_dtype_t dtype = tn_dtype_of(x), opmath = tn_opmath_dtype(dtype);
  grad = tn_convert(l->graph, grad, opmath);
  x = tn_convert(l->graph, x, opmath);
  weight = tn_convert(l->graph, weight, opmath);
  const tn_node_t *dx = NULL, *dweight = NULL, *dbias = NULL;
  const int64_t *x_sizes = x->types[0].dims + 2, *weight_sizes = weight->types[0].dims + 2;
  if (!geometry.is_transposed) {
    if (mask[0]) dx = backward_input(l, conv, grad, weight, x_sizes);
    if (mask[1]) dweight = backward_weight(l, conv, grad, x, weight_sizes);
  } else {
    // Gradient and input change places: the forward convolution maps grad's space to x's.
    const tn_conv_t forward = forward_of_transposed(&geometry);
    if (mask[0]) dx = tn_convolution(l->graph, grad, weight, &forward);
    if (mask[1]) dweight = backward_weight(l, &forward, x, grad, weight_sizes);
  }
  if (mask[2]) {
    int64_t dims[TN_MAX_RANK];
    int count = 0;
    for (int d = 0; d < tn_rank(grad); ++d)
      if (d != 1) dims[count++] = d;
    dbias = tn_reduce(l->graph, TN_REDUCE_SUM, grad, count, dims);
  }
  const tn_node_t* results[] = {dx, dweight, dbias};
  for (int i = 0; i < 3; ++i) {
    if (mask[i]) {
      tn_return(l, tn_convert(l->graph, results[i], dtype));
    } else {
      tn_return_none(l);
    }
  }
  return TN_OK;
}
// grad, x, weight, stride, padding, dilation, transposed, output_padding, groups, mask[3]
tn_status_t tn_lower_convolution_backward_overrideable(tn_lowering_t* l) {
  return convolution_backward(l, 3);
}
// the same with bias_sizes after the weight
tn_status_t tn_lower_convolution_backward(tn_lowering_t* l) { return convolution_backward(l, 4); }
