// Max and average pooling over trailing spatial dimensions, and their gradients.
#include "ir/composite_util.h"

#include <math.h>
#include <string.h>

typedef struct tn_pool_window {
  int lead, spatial;  // spatial dimensions are lead..rank-1
  const int64_t *size, *stride, *low, *high, *dilation;
} tn_pool_window_t;

// ---- types ----------------------------------------------------------------------------------------------
static tn_status_t check_window(const tn_shape_t* shape, int rank, bool has_dilation,
                                tn_pool_window_t* out) {
  static const int64_t ones[TN_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  *out = (tn_pool_window_t){.dilation = ones};
  TN_TRY(tn_shape_ints(shape, TN_ATTR_WINDOW, -1, &out->size, &out->spatial));
  if (out->spatial < 1 || out->spatial > rank) {
    return TN_ERROR(TN_INVALID_ARGUMENT, "window: expected 1..%d dimensions, got %d", rank,
                    out->spatial);
  }
  out->lead = rank - out->spatial;
  TN_TRY(tn_shape_ints(shape, TN_ATTR_STRIDE, out->spatial, &out->stride, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_LOW, out->spatial, &out->low, NULL));
  TN_TRY(tn_shape_ints(shape, TN_ATTR_HIGH, out->spatial, &out->high, NULL));
  if (has_dilation)
    TN_TRY(tn_shape_ints(shape, TN_ATTR_WINDOW_DILATION, out->spatial, &out->dilation, NULL));
  for (int i = 0; i < out->spatial; ++i) {
    if (out->size[i] < 1 || out->stride[i] < 1 || out->dilation[i] < 1 || out->low[i] < 0 ||
        out->high[i] < 0) {
      return TN_ERROR(
          TN_INVALID_ARGUMENT,
          "spatial dimension %d: expected window, stride, dilation >= 1 and padding >= 0", i);
    }
  }
  return TN_OK;
}
static tn_type_t pooled_type(const tn_type_t* x, const tn_pool_window_t* w) {
  tn_type_t type = *x;
  for (int i = 0; i < w->spatial; ++i) {
    int64_t* extent = &type.dims[w->lead + i];
    if (!tn_shape_window(x->dims[w->lead + i], 1, w->low[i], w->high[i], w->size[i], w->dilation[i],
                         w->stride[i], extent)) {
      *extent = -1;  // found by tn_shape_check_type
    }
  }
  return type;
}
// |grad| with its trailing extents replaced by SIZES.
static tn_status_t unpooled_type(const tn_shape_t* shape, int expected, tn_type_t* out_type) {
  const int64_t* sizes;
  int count;
  *out_type = *tn_shape_operand(shape, 0);
  TN_TRY(tn_shape_ints(shape, TN_ATTR_SIZES, expected, &sizes, &count));
  if (count > out_type->rank) {
    return TN_ERROR(TN_INVALID_ARGUMENT, "sizes: expected at most %d, got %d", out_type->rank,
                    count);
  }
  for (int i = 0; i < count; ++i) out_type->dims[out_type->rank - count + i] = sizes[i];
  return tn_shape_check_type(shape, out_type);
}

tn_status_t tn_composite_types_max_pool(tn_shape_t* shape) {
  tn_pool_window_t w;
  TN_TRY(tn_shape_check_class(shape, 0, TN_SHAPE_REAL));
  TN_TRY(check_window(shape, tn_shape_operand(shape, 0)->rank, true, &w));
  shape->types[0] = shape->types[1] = pooled_type(tn_shape_operand(shape, 0), &w);
  shape->types[1].dtype = TN_I64;
  shape->result_count = 2;
  return tn_shape_check_type(shape, &shape->types[1]);
}
tn_status_t tn_composite_types_max_pool_backward(tn_shape_t* shape) {
  TN_TRY(tn_shape_check_class(shape, 0, TN_SHAPE_REAL));
  TN_TRY(tn_shape_same_dims(shape, 0, 1));
  TN_TRY(tn_shape_check_class(shape, 1, TN_SHAPE_INT));
  shape->result_count = 1;
  return unpooled_type(shape, -1, &shape->types[0]);
}
tn_status_t tn_composite_types_avg_pool(tn_shape_t* shape) {
  tn_pool_window_t w;
  TN_TRY(tn_shape_check_class(shape, 0, TN_SHAPE_REAL));
  TN_TRY(check_window(shape, tn_shape_operand(shape, 0)->rank, false, &w));
  shape->types[0] = pooled_type(tn_shape_operand(shape, 0), &w);
  shape->result_count = 1;
  return tn_shape_check_type(shape, &shape->types[0]);
}
tn_status_t tn_composite_types_avg_pool_backward(tn_shape_t* shape) {
  tn_pool_window_t w;
  TN_TRY(tn_shape_check_class(shape, 0, TN_SHAPE_FLOAT));
  TN_TRY(check_window(shape, tn_shape_operand(shape, 0)->rank, false, &w));
  TN_TRY(unpooled_type(shape, w.spatial, &shape->types[0]));
  shape->result_count = 1;
  tn_type_t back = pooled_type(&shape->types[0], &w);
  return tn_c_expect_type(shape, 0, "grad", &back);
}

static tn_pool_window_t window_of(const tn_node_t* composite) {
  tn_shape_t shape = {.op = composite->op,
                      .operand_count = composite->operand_count,
                      .operands = composite->operands,
                      .attr_count = composite->attr_count,
                      .attrs = composite->attrs};
  tn_pool_window_t w;
  tn_status_free(check_window(&shape, composite->types[0].rank,
                              tn_node_attr(composite, TN_ATTR_WINDOW_DILATION) != NULL, &w));
  return w;  // checked when the node was built
}

// ---- max --------------------------------------------------------------------------------------------------
// The windows as rows: x padded with |padding|, then per spatial dimension taken at o * stride + k * dilation, ends up
// as [lead.., out.., window elements]. |out| is the type of the pooled array.
static const tn_node_t* window_rows(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* padding,
                                    const tn_pool_window_t* w, const tn_type_t* out) {
  if (w->lead + 2 * w->spatial > TN_MAX_RANK)
    return tn_graph_fail(graph, TN_ERROR(TN_UNIMPLEMENTED, "pooling: rank %d", out->rank));
  int64_t low[TN_MAX_RANK] = {0}, high[TN_MAX_RANK] = {0}, interior[TN_MAX_RANK] = {0};
  for (int i = 0; i < w->spatial; ++i) {
    low[w->lead + i] = w->low[i];
    high[w->lead + i] = w->high[i];
  }
  x = tn_pad(graph, x, padding, low, high, interior);
  int64_t permutation[TN_MAX_RANK], rows[TN_MAX_RANK], elements = 1;
  for (int i = 0; i < w->lead; ++i) permutation[i] = i;
  for (int i = 0; i < w->spatial; ++i) {
    // Before this step dimensions lead.. are (out, window) pairs for the first i spatial ones.
    int at = w->lead + 2 * i;
    const int64_t dims[2] = {out->dims[w->lead + i], w->size[i]};
    tn_type_t index_type = tn_type_make(TN_I64, 2, dims);
    const tn_node_t* start =
        tn_c_scale(graph, tn_iota(graph, &index_type, 0), (double)w->stride[i]);
    const tn_node_t* step =
        tn_c_scale(graph, tn_iota(graph, &index_type, 1), (double)w->dilation[i]);
    x = tn_take(graph, x, tn_c_add(graph, start, step), at, TN_BOUNDS_CLAMP);
    permutation[w->lead + i] = at;
    permutation[w->lead + w->spatial + i] = at + 1;
    elements *= w->size[i];
  }
  memcpy(rows, out->dims, sizeof rows);
  rows[out->rank] = elements;
  return tn_reshape(graph, tn_transpose(graph, x, permutation), out->rank + 1, rows);
}

// The extreme of a row says value and place.
void tn_composite_expand_max_pool(tn_graph_t* graph, const tn_node_t* composite,
                                  const tn_node_t* const* operands, const tn_node_t** out_results) {
  const tn_pool_window_t w = window_of(composite);
  const tn_type_t *type = &operands[0]->types[0], *out = &composite->types[0];
  if (tn_type_element_count(out) == 0) {
    const tn_scalar_t zero = {0};
    for (int i = 0; i < 2; ++i)
      out_results[i] = tn_constant_splat(graph, &composite->types[i], zero);
    return;
  }
  tn_dtype_class_t kind = tn_dtype_class(type->dtype);
  const int bits = 8 * (int)tn_dtype_size(type->dtype);
  const tn_node_t* least = kind == TN_CLASS_FLOAT
                               ? tn_constant_double(graph, type->dtype, -INFINITY)
                           : kind == TN_CLASS_SIGNED
                               ? tn_constant_int(graph, type->dtype, (int64_t)(~0ull << (bits - 1)))
                               : tn_constant_int(graph, type->dtype, 0);
  const tn_node_t* x = window_rows(graph, operands[0], least, &w, out);
  const tn_node_t* extreme = tn_arg_reduce(graph, TN_REDUCE_MAX, x, out->rank);
  out_results[0] = tn_result(graph, extreme, 0);
  // Position in the window -> coordinates -> position in x. Where padding ties with an element of the least value,
  // the coordinate is moved into x.
  const tn_node_t* rest = tn_result(graph, extreme, 1);
  const tn_node_t* index = NULL;
  if (!rest) return;
  int64_t scale = 1;
  for (int i = w.spatial - 1; i >= 0; --i) {
    const int64_t extent = type->dims[w.lead + i];
    const tn_type_t* t = &rest->types[0];
    const tn_node_t* size = tn_constant_like(graph, rest, (double)w.size[i]);
    const tn_node_t* k = tn_binary(graph, TN_OP_REM, rest, size);
    rest = tn_c_div(graph, rest, size);
    const tn_node_t* o = tn_c_scale(graph, tn_iota(graph, t, w.lead + i), (double)w.stride[i]);
    const tn_node_t* at = tn_c_add(graph, tn_c_scale(graph, k, (double)w.dilation[i]), o);
    if (!at) return;
    at = tn_c_sub(graph, at, tn_constant_like(graph, at, (double)w.low[i]));
    const tn_node_t* zero = tn_constant_like(graph, k, 0);
    if (w.low[i]) {  // a place in the low padding: the window's first element in x
      int64_t up = (w.low[i] + w.dilation[i] - 1) / w.dilation[i] * w.dilation[i];
      const tn_node_t* first =
          tn_binary(graph, TN_OP_REM, tn_c_add(graph, at, tn_constant_like(graph, k, (double)up)),
                    tn_constant_like(graph, k, (double)w.dilation[i]));
      at = tn_select(graph, tn_compare(graph, TN_LT, at, zero), first, at);
    }
    if (w.high[i]) {
      at = tn_binary(graph, TN_OP_MIN, at,
                     tn_constant_like(graph, k, (double)(extent > 0 ? extent - 1 : 0)));
    }
    at = tn_c_scale(graph, at, (double)scale);
    index = index ? tn_c_add(graph, index, at) : at;
    scale *= extent;
  }
  out_results[1] = index;
}

void tn_composite_expand_max_pool_backward(tn_graph_t* graph, const tn_node_t* composite,
                                           const tn_node_t* const* operands,
                                           const tn_node_t** out_results) {
  const tn_type_t *type = &composite->types[0], *grad_type = &operands[0]->types[0];
  int64_t spatial;
  tn_node_ints(composite, TN_ATTR_SIZES, &spatial);
  int64_t grad_dims[2] = {1, 1}, dims[2] = {1, 1};
  for (int i = 0; i < type->rank; ++i) {
    bool is_spatial = i >= type->rank - spatial;
    grad_dims[is_spatial] *= grad_type->dims[i];
    dims[is_spatial] *= type->dims[i];
  }
  const tn_node_t* grad = tn_reshape(graph, tn_c_up(graph, operands[0]), 2, grad_dims);
  const tn_node_t* indices = tn_reshape(graph, operands[1], 2, grad_dims);
  if (!grad) return;
  tn_type_t flat = tn_type_make(grad->types[0].dtype, 2, dims);
  const tn_node_t* zero = tn_constant_splat(graph, &flat, (tn_scalar_t){0});
  const tn_node_t* dx = tn_put_along(graph, zero, indices, grad, 1, TN_REDUCE_SUM, TN_BOUNDS_ERROR);
  out_results[0] = tn_convert(graph, tn_reshape(graph, dx, type->rank, type->dims), type->dtype);
}

// ---- average ----------------------------------------------------------------------------------------------
// How many elements each window divides by, over the shape of |like|: a product of one vector per dimension.
static const tn_node_t* divide_by_counts(tn_graph_t* graph, const tn_node_t* composite,
                                         const tn_pool_window_t* w, const tn_node_t* like,
                                         const tn_type_t* x) {
  int64_t divisor = tn_node_int(composite, TN_ATTR_DIVISOR, 0);
  bool counts_padding = tn_node_int(composite, TN_ATTR_COUNT_INCLUDE_PAD, 1) != 0;
  if (!like) return NULL;
  if (divisor) return tn_c_div(graph, like, tn_constant_like(graph, like, (double)divisor));
  const tn_node_t* counts = NULL;
  for (int i = 0; i < w->spatial; ++i) {
    int64_t outs = like->types[0].dims[w->lead + i], extent = x->dims[w->lead + i];
    double* values = tn_graph_alloc(graph, sizeof(double) * (size_t)(outs + 1));
    if (!values) return NULL;
    for (int64_t o = 0; o < outs; ++o) {
      int64_t begin = o * w->stride[i] - w->low[i], end = begin + w->size[i];
      // What ceil mode adds beyond the padding never counts.
      int64_t limit = extent + (counts_padding ? w->low[i] : 0), least = counts_padding ? begin : 0;
      if (end > limit) end = limit;
      if (begin < least) begin = least;
      values[o] = end > begin ? (double)(end - begin) : 0;
    }
    tn_type_t type = tn_type_make(TN_F64, 1, &outs);
    const tn_node_t* vector =
        tn_convert(graph, tn_constant(graph, &type, values), like->types[0].dtype);
    const tn_node_t* spread = tn_c_spread_vector(graph, vector, like, w->lead + i);
    counts = counts ? tn_c_mul(graph, counts, spread) : spread;
  }
  return tn_c_div(graph, like, counts);
}

static tn_window_t identity_window(int rank) {
  tn_window_t window = {.low = {0}};
  for (int i = 0; i < rank; ++i) {
    window.size[i] = window.stride[i] = window.base_dilation[i] = window.window_dilation[i] = 1;
  }
  return window;
}

void tn_composite_expand_avg_pool(tn_graph_t* graph, const tn_node_t* composite,
                                  const tn_node_t* const* operands, const tn_node_t** out_results) {
  const tn_pool_window_t w = window_of(composite);
  const tn_type_t* type = &operands[0]->types[0];
  tn_window_t window = identity_window(type->rank);
  for (int i = 0; i < w.spatial; ++i) {
    window.size[w.lead + i] = w.size[i];
    window.stride[w.lead + i] = w.stride[i];
    window.low[w.lead + i] = w.low[i];
    window.high[w.lead + i] = w.high[i];
  }
  const tn_node_t* sum;
  if (tn_dtype_is_float(type->dtype)) {
    sum = tn_reduce_window(graph, TN_REDUCE_SUM, tn_c_up(graph, operands[0]), &window);
  } else {  // integers add up in any order: a plain reduction, which becomes one loop with the rest
    const tn_type_t* out = &composite->types[0];
    const int64_t last = out->rank;
    const tn_node_t* zero = tn_constant_int(graph, type->dtype, 0);
    sum = tn_reduce(graph, TN_REDUCE_SUM, window_rows(graph, operands[0], zero, &w, out), 1, &last);
  }
  out_results[0] =
      tn_convert(graph, divide_by_counts(graph, composite, &w, sum, type), type->dtype);
}

// An element of x receives from every window that has it: a window sum over the strided gradients.
void tn_composite_expand_avg_pool_backward(tn_graph_t* graph, const tn_node_t* composite,
                                           const tn_node_t* const* operands,
                                           const tn_node_t** out_results) {
  const tn_pool_window_t w = window_of(composite);
  const tn_type_t *type = &composite->types[0], *grad_type = &operands[0]->types[0];
  if (tn_type_element_count(grad_type) == 0) {
    out_results[0] = tn_constant_splat(graph, type, (tn_scalar_t){0});
    return;
  }
  tn_window_t window = identity_window(type->rank);
  for (int i = 0; i < w.spatial; ++i) {
    int at = w.lead + i;
    int64_t span = (grad_type->dims[at] - 1) * w.stride[i] + 1;
    window.size[at] = w.size[i];
    window.base_dilation[at] = w.stride[i];
    window.low[at] = w.size[i] - 1 - w.low[i];
    window.high[at] = type->dims[at] - 1 + w.size[i] - span - window.low[at];
  }
  const tn_node_t* share =
      divide_by_counts(graph, composite, &w, tn_c_up(graph, operands[0]), type);
  out_results[0] =
      tn_convert(graph, tn_reduce_window(graph, TN_REDUCE_SUM, share, &window), type->dtype);
}
