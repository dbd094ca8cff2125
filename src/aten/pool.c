// Pooling over the last two or three dimensions.
#include <string.h>

#include "aten/lowering.h"

typedef struct pooling {
  int spatial;
  int64_t kernel[3], stride[3], low[3], high[3], dilation[3], size[3], out[3];
  bool is_empty;  // a batch of none
} pooling_t;

static int spatial_of(const tn_lowering_t* l) { return strstr(l->op->name, "3d") ? 3 : 2; }

// kernel_size, stride, padding from argument |first| on; dilation (if any) and ceil_mode.
static tn_status_t read_pooling(tn_lowering_t* l, const tn_node_t* x, int first, int dilation,
                                int ceil_mode, pooling_t* p) {
  memset(p, 0, sizeof(*p));
  p->spatial = spatial_of(l);
  const int rank = tn_rank(x);
  if (rank != p->spatial + 1 && rank != p->spatial + 2)
    return TN_DECLINE("%s: rank %d", l->op->name, rank);
  const int64_t* given;
  if (!tn_arg_spatial(l, first, p->spatial, p->kernel) ||
      !tn_arg_spatial(l, first + 2, p->spatial, p->low))
    return TN_DECLINE("%s: kernel_size or padding", l->op->name);
  if (tn_arg_ints(l, first + 1, &given) > 0) {
    if (!tn_arg_spatial(l, first + 1, p->spatial, p->stride))
      return TN_DECLINE("%s: stride", l->op->name);
  } else {
    memcpy(p->stride, p->kernel, sizeof(p->stride));
  }
  for (int d = 0; d < p->spatial; ++d) p->dilation[d] = 1;
  if (dilation >= 0 && !tn_arg_spatial(l, dilation, p->spatial, p->dilation))
    return TN_DECLINE("%s: dilation", l->op->name);
  const bool is_ceil = tn_arg_bool(l, ceil_mode, false);
  for (int d = 0; d < p->spatial; ++d) {
    p->size[d] = tn_dim(x, rank - p->spatial + d);
    const int64_t reach = p->dilation[d] * (p->kernel[d] - 1) + 1;
    if (p->kernel[d] < 1 || p->stride[d] < 1 || p->dilation[d] < 1 || p->low[d] < 0 ||
        2 * p->low[d] > p->kernel[d])
      return TN_DECLINE("%s: pad should be at most half of effective kernel size", l->op->name);
    const int64_t room = p->size[d] + 2 * p->low[d] - reach;
    if (room < 0 && !(is_ceil && room + p->stride[d] > 0))
      return TN_DECLINE("%s: Output size is too small", l->op->name);
    int64_t count = (room + (is_ceil ? p->stride[d] - 1 : 0)) / p->stride[d] + 1;
    // The last window starts inside the input or its left padding.
    if (is_ceil && (count - 1) * p->stride[d] >= p->size[d] + p->low[d]) --count;
    if (count < 1) return TN_DECLINE("%s: Output size is too small", l->op->name);
    p->out[d] = count;
    const int64_t needed = (count - 1) * p->stride[d] + reach - p->size[d] - p->low[d];
    p->high[d] =
        needed > p->low[d] ? needed : p->low[d];  // more than the left padding only in ceil mode
  }
  for (int d = 0; d < rank; ++d) {
    if (tn_dim(x, d) != 0) continue;
    p->is_empty = d == 0 && rank == p->spatial + 2;
    if (!p->is_empty) return TN_DECLINE("%s: only the batch may be empty", l->op->name);
  }
  return TN_OK;
}

// Besides floats CPU averages I64 alone, and finds the largest of all signed integers and U8.
enum { FLOATS = 0, AND_LONG = 1, AND_INTEGERS = 2 };
static tn_status_t check_dtype(tn_lowering_t* l, const tn_node_t* x, int and_also) {
  const tn_dtype_t dtype = tn_dtype_of(x);
  const bool is_integer = tn_dtype_class(dtype) == TN_CLASS_SIGNED || dtype == TN_U8;
  if (tn_dtype_is_float(dtype) || (and_also >= AND_LONG && dtype == TN_I64) ||
      (and_also >= AND_INTEGERS && is_integer))
    return TN_OK;
  return TN_DECLINE("%s of %s", l->op->name, tn_dtype_name(dtype));
}

static const tn_node_t* zeros_of(tn_lowering_t* l, const tn_type_t* type) {
  return tn_constant_splat(l->graph, type, (tn_scalar_t){0});
}

// The pooled shape of x, filled with zeros: what an empty batch gives.
static const tn_node_t* pooled_zeros(tn_lowering_t* l, const tn_node_t* x, const pooling_t* p) {
  tn_type_t type = x->types[0];
  for (int d = 0; d < p->spatial; ++d) type.dims[type.rank - p->spatial + d] = p->out[d];
  return zeros_of(l, &type);
}

static int window_attrs(const pooling_t* p, tn_attr_t* out) {
  int n = 0;
  out[n++] = tn_attr_ints(TN_ATTR_WINDOW, p->spatial, p->kernel);
  out[n++] = tn_attr_ints(TN_ATTR_STRIDE, p->spatial, p->stride);
  out[n++] = tn_attr_ints(TN_ATTR_LOW, p->spatial, p->low);
  out[n++] = tn_attr_ints(TN_ATTR_HIGH, p->spatial, p->high);
  return n;
}

static void return_max_pool(tn_lowering_t* l, const tn_node_t* x, const pooling_t* p) {
  tn_attr_t attrs[8];
  int n = window_attrs(p, attrs);
  attrs[n++] = tn_attr_ints(TN_ATTR_WINDOW_DILATION, p->spatial, p->dilation);
  const tn_node_t* y = tn_composite(l->graph, "max_pool", 1, &x, n, attrs);
  tn_return(l, tn_result(l->graph, y, 0));
  tn_return(l, tn_result(l->graph, y, 1));
}

// x, kernel_size, stride, padding, dilation, ceil_mode
tn_status_t tn_lower_max_pool(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  pooling_t p;
  TN_TRY(check_dtype(l, x, AND_INTEGERS));
  TN_TRY(read_pooling(l, x, 1, 4, 5, &p));
  if (p.is_empty) {
    const tn_node_t* values = pooled_zeros(l, x, &p);
    tn_return(l, values);
    tn_return(l, tn_convert(l->graph, values, TN_I64));
    return TN_OK;
  }
  return_max_pool(l, x, &p);
  return TN_OK;
}

// Each element of |grad| added at its index, in the shape of x.
static tn_status_t return_max_pool_backward(tn_lowering_t* l, const tn_node_t* grad,
                                            const tn_node_t* x, const tn_node_t* indices) {
  const int spatial = spatial_of(l);
  const tn_attr_t attr =
      tn_attr_ints(TN_ATTR_SIZES, spatial, x->types[0].dims + tn_rank(x) - spatial);
  const tn_node_t* operands[] = {grad, indices};
  tn_return(l, tn_composite(l->graph, "max_pool_backward", 2, operands, 1, &attr));
  return TN_OK;
}

// grad, x, kernel_size, stride, padding, dilation, ceil_mode, indices
tn_status_t tn_lower_max_pool_backward(tn_lowering_t* l) {
  const tn_node_t *grad = tn_arg_tensor(l, 0), *x = tn_arg_tensor(l, 1),
                  *indices = tn_arg_tensor(l, 7);
  if (!x || tn_rank(x) < spatial_of(l) || !tn_dtype_is_float(tn_dtype_of(x)))
    return TN_DECLINE("%s: input", l->op->name);
  return return_max_pool_backward(l, grad, x, indices);
}

static int average_attrs(tn_lowering_t* l, const pooling_t* p, int first, tn_attr_t* out) {
  int n = window_attrs(p, out);
  out[n++] = tn_attr_int(TN_ATTR_COUNT_INCLUDE_PAD, tn_arg_bool(l, first, true));
  out[n++] = tn_attr_int(TN_ATTR_DIVISOR, tn_arg_int(l, first + 1, 0));
  return n;
}

// x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
tn_status_t tn_lower_avg_pool(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  pooling_t p;
  TN_TRY(check_dtype(l, x, AND_LONG));
  TN_TRY(read_pooling(l, x, 1, -1, 4, &p));
  if (!tn_arg_is_none(l, 6) && tn_arg_int(l, 6, 0) == 0)
    return TN_DECLINE("divisor must be not zero");
  if (p.is_empty) {
    tn_return(l, pooled_zeros(l, x, &p));
    return TN_OK;
  }
  tn_attr_t attrs[8];
  const int n = average_attrs(l, &p, 5, attrs);
  tn_return(l, tn_composite(l->graph, "avg_pool", 1, &x, n, attrs));
  return TN_OK;
}

// grad, x, then as avg_pool
tn_status_t tn_lower_avg_pool_backward(tn_lowering_t* l) {
  const tn_node_t *grad = tn_arg_tensor(l, 0), *x = tn_arg_tensor(l, 1);
  pooling_t p;
  TN_TRY(check_dtype(l, x, FLOATS));
  TN_TRY(read_pooling(l, x, 2, -1, 5, &p));
  if (p.is_empty) {
    tn_return(l, zeros_of(l, &x->types[0]));
    return TN_OK;
  }
  tn_attr_t attrs[8];
  int n = average_attrs(l, &p, 6, attrs);
  attrs[n++] = tn_attr_ints(TN_ATTR_SIZES, p.spatial, p.size);
  tn_return(l, tn_composite(l->graph, "avg_pool_backward", 1, &grad, n, attrs));
  return TN_OK;
}

// ---- adaptive -----------------------------------------------------------------------------------------------

// Averages along dimension |dim| into |out| windows [floor(i n / out), ceil((i + 1) n / out)), as a product with the
// matrix of weights; |is_backward| applies its transpose.
static const tn_node_t* average_windows(tn_lowering_t* l, const tn_node_t* x, int dim, int64_t n,
                                        int64_t out, bool is_backward) {
  tn_graph_t* g = l->graph;
  if (!x) return NULL;
  const tn_dtype_t dtype = tn_dtype_of(x);
  const int64_t dims[] = {n, out};
  const tn_type_t type = tn_type_make(dtype, 2, dims);
  const size_t size = tn_dtype_size(dtype);
  uint8_t* weights = tn_graph_alloc(g, (size_t)(n * out + 1) * size);
  if (!weights) return NULL;
  for (int64_t j = 0; j < out; ++j) {
    const int64_t begin = j * n / out, end = ((j + 1) * n + out - 1) / out;
    const tn_scalar_t weight = tn_scalar_from_double(dtype, 1.0 / (double)(end - begin));
    for (int64_t i = begin; i < end; ++i)
      memcpy(weights + (size_t)(i * out + j) * size, weight.bytes, size);
  }
  const tn_node_t* matrix = tn_constant(g, &type, weights);
  const int64_t lhs = dim, rhs = is_backward ? 1 : 0;
  const tn_node_t* y = tn_dot_general(g, x, matrix, 0, NULL, NULL, 1, &lhs, &rhs, dtype);
  // The new dimension comes last; it belongs at |dim|.
  int64_t permutation[TN_MAX_RANK];
  const int rank = tn_rank(x);
  for (int d = 0; d < rank; ++d) permutation[d] = d < dim ? d : d == dim ? rank - 1 : d - 1;
  return tn_transpose(g, y, permutation);
}

static tn_status_t check_adaptive(tn_lowering_t* l, const tn_node_t* x, int spatial) {
  if (!x || tn_rank(x) < spatial + 1 || tn_rank(x) > spatial + 2 ||
      !tn_dtype_is_float(tn_dtype_of(x)))
    return TN_DECLINE("%s: rank or dtype", l->op->name);
  // A batch may be empty.
  for (int d = tn_rank(x) - spatial - 1; d < tn_rank(x); ++d)
    if (tn_dim(x, d) == 0 && d > 0)
      return TN_DECLINE("%s: Expected input to have non-zero size for non-batch dimensions",
                        l->op->name);
  return TN_OK;
}

// Checks x; its windows per dimension at argument 1, and the result's type.
static tn_status_t read_adaptive(tn_lowering_t* l, const tn_node_t* x, int64_t* out,
                                 tn_type_t* out_type) {
  const int spatial = spatial_of(l);
  TN_TRY(check_adaptive(l, x, spatial));
  if (!tn_arg_spatial(l, 1, spatial, out)) return TN_DECLINE("%s: output_size", l->op->name);
  *out_type = x->types[0];
  for (int d = 0; d < spatial; ++d) {
    if (out[d] < 0) return TN_DECLINE("%s: negative output size", l->op->name);
    out_type->dims[tn_rank(x) - spatial + d] = out[d];
  }
  return TN_OK;
}

// x, output_size
tn_status_t tn_lower_adaptive_avg_pool(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int spatial = spatial_of(l), rank = tn_rank(x);
  int64_t out[3];
  tn_type_t type;
  TN_TRY(read_adaptive(l, x, out, &type));
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (tn_type_element_count(&type) == 0) {
    tn_return(l, zeros_of(l, &type));
    return TN_OK;
  }
  const tn_node_t* y = tn_convert(l->graph, x, tn_opmath_dtype(dtype));
  for (int d = 0; d < spatial; ++d) {
    y = average_windows(l, y, rank - spatial + d, tn_dim(x, rank - spatial + d), out[d], false);
  }
  tn_return(l, tn_convert(l->graph, y, dtype));
  return TN_OK;
}

// grad, x
tn_status_t tn_lower_adaptive_avg_pool_backward(tn_lowering_t* l) {
  const tn_node_t *grad = tn_arg_tensor(l, 0), *x = tn_arg_tensor(l, 1);
  const int spatial = spatial_of(l), rank = tn_rank(x);
  TN_TRY(check_adaptive(l, x, spatial));
  if (tn_rank(grad) != rank) return TN_DECLINE("%s: rank of the gradient", l->op->name);
  const tn_dtype_t dtype = tn_dtype_of(grad);
  if (tn_type_element_count(&grad->types[0]) == 0) {
    tn_return(l, zeros_of(l, &x->types[0]));
    return TN_OK;
  }
  const tn_node_t* y = tn_convert(l->graph, grad, tn_opmath_dtype(dtype));
  for (int d = 0; d < spatial; ++d) {
    const int at = rank - spatial + d;
    y = average_windows(l, y, at, tn_dim(x, at), tn_dim(grad, at), true);
  }
  tn_return(l, tn_convert(l->graph, y, dtype));
  return TN_OK;
}

// Window o of |out| over |n| positions, as a row of positions: rows are filled up with their last one. [out, longest]
static const tn_node_t* window_table(tn_lowering_t* l, int64_t n, int64_t out, int64_t* longest) {
  *longest = 1;
  for (int64_t o = 0; o < out; ++o) {
    const int64_t size = ((o + 1) * n + out - 1) / out - o * n / out;
    if (size > *longest) *longest = size;
  }
  const int64_t dims[] = {out, *longest};
  int64_t* at = tn_graph_alloc(l->graph, sizeof(*at) * (size_t)(out * *longest));
  if (!at) return NULL;
  for (int64_t o = 0; o < out; ++o) {
    const int64_t begin = o * n / out, last = ((o + 1) * n + out - 1) / out - 1;
    for (int64_t k = 0; k < *longest; ++k)
      at[o * *longest + k] = begin + k < last ? begin + k : last;
  }
  const tn_type_t type = tn_type_make(TN_I64, 2, dims);
  return tn_constant(l->graph, &type, at);
}

// Windows of one size beside each other: ordinary pooling.
static bool is_even(const tn_node_t* x, int spatial, const int64_t* out) {
  for (int i = 0; i < spatial; ++i)
    if (tn_dim(x, tn_rank(x) - spatial + i) % out[i] != 0) return false;
  return true;
}

// x, output_size: the windows become rows, whose first extreme says value and place. A repeated position comes after
// itself and so changes nothing.
tn_status_t tn_lower_adaptive_max_pool(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int spatial = spatial_of(l), rank = tn_rank(x), lead = rank - spatial;
  int64_t out[3];
  tn_type_t type;
  TN_TRY(read_adaptive(l, x, out, &type));
  if (tn_type_element_count(&type) == 0) {
    tn_return(l, zeros_of(l, &type));
    type.dtype = TN_I64;
    tn_return(l, zeros_of(l, &type));
    return TN_OK;
  }
  int64_t windows = 1, plane[TN_MAX_RANK];
  memcpy(plane, x->types[0].dims, sizeof(plane));
  plane[lead] = 1;
  for (int i = 0; i < spatial; ++i) {
    windows *= out[i];
    plane[lead] *= tn_dim(x, lead + i);
  }
  if (windows == 1) {  // the extreme of each plane
    const tn_node_t* extreme =
        tn_arg_reduce(g, TN_REDUCE_MAX, tn_reshape(g, x, lead + 1, plane), lead);
    for (int i = 0; i < 2; ++i)
      tn_return(l, tn_reshape(g, tn_result(g, extreme, i), rank, type.dims));
    return TN_OK;
  }
  if (is_even(x, spatial, out)) {
    pooling_t p = {.spatial = spatial, .dilation = {1, 1, 1}};
    for (int i = 0; i < spatial; ++i) p.kernel[i] = p.stride[i] = tn_dim(x, lead + i) / out[i];
    return_max_pool(l, x, &p);
    return TN_OK;
  }
  const tn_node_t *rows = x, *table[3];
  int64_t longest[3], permutation[TN_MAX_RANK], dims[TN_MAX_RANK], elements = 1;
  for (int d = 0; d < lead; ++d) permutation[d] = d;
  for (int i = 0; i < spatial; ++i) {
    const int at = lead + 2 * i;  // dimensions before it are pairs of window and position in it
    table[i] = window_table(l, tn_dim(x, lead + i), out[i], &longest[i]);
    rows = tn_take(g, rows, table[i], at, TN_BOUNDS_CLAMP);
    permutation[lead + i] = at;
    permutation[rank + i] = at + 1;
    elements *= longest[i];
  }
  memcpy(dims, type.dims, sizeof(dims));
  dims[rank] = elements;
  rows = tn_reshape(g, tn_transpose(g, rows, permutation), rank + 1, dims);
  const tn_node_t* extreme = tn_arg_reduce(g, TN_REDUCE_MAX, rows, rank);
  tn_return(l, tn_result(g, extreme, 0));
  // Place in the row -> place in each window -> position in x.
  const tn_node_t *rest = tn_result(g, extreme, 1), *index = NULL;
  type.dtype = TN_I64;
  int64_t scale = 1;
  for (int i = spatial - 1; i >= 0 && rest; --i) {
    const tn_node_t* size = tn_constant_like(g, rest, (double)longest[i]);
    const tn_node_t* window = tn_binary(g, TN_OP_MUL, tn_iota(g, &type, lead + i), size);
    const tn_node_t* entry = tn_binary(g, TN_OP_ADD, window, tn_binary(g, TN_OP_REM, rest, size));
    const int64_t count = out[i] * longest[i];
    const tn_node_t* at = tn_take(g, tn_reshape(g, table[i], 1, &count), entry, 0, TN_BOUNDS_CLAMP);
    rest = tn_binary(g, TN_OP_DIV, rest, size);
    at = tn_binary(g, TN_OP_MUL, at, tn_constant_like(g, at, (double)scale));
    index = index ? tn_binary(g, TN_OP_ADD, index, at) : at;
    scale *= tn_dim(x, lead + i);
  }
  tn_return(l, index);
  return TN_OK;
}

// grad, x, indices
tn_status_t tn_lower_adaptive_max_pool_backward(tn_lowering_t* l) {
  const tn_node_t *grad = tn_arg_tensor(l, 0), *x = tn_arg_tensor(l, 1),
                  *indices = tn_arg_tensor(l, 2);
  TN_TRY(check_adaptive(l, x, spatial_of(l)));
  if (tn_rank(grad) != tn_rank(x)) return TN_DECLINE("%s: rank of the gradient", l->op->name);
  if (tn_type_element_count(&grad->types[0]) == 0) {
    tn_return(l, zeros_of(l, &x->types[0]));
    return TN_OK;
  }
  return return_max_pool_backward(l, grad, x, indices);
}

// x, indices, output_size[, stride, padding]: every element back at its place among zeros.
tn_status_t tn_lower_max_unpool(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *x = tn_arg_tensor(l, 0), *indices = tn_arg_tensor(l, 1);
  const int spatial = spatial_of(l), rank = tn_rank(x), lead = rank - spatial;
  const tn_dtype_t dtype = tn_dtype_of(x);
  int64_t out[3];
  if (!x || !indices || lead < 1 || lead > 2 || !tn_dtype_is_float(dtype) ||
      tn_dtype_of(indices) != TN_I64 || tn_rank(indices) != rank ||
      memcmp(x->types[0].dims, indices->types[0].dims, sizeof(int64_t) * (size_t)rank) != 0 ||
      tn_type_element_count(&x->types[0]) == 0)
    return TN_DECLINE("%s: input or indices", l->op->name);
  const int64_t* given;
  if (tn_arg_ints(l, 2, &given) != spatial || !tn_arg_spatial(l, 2, spatial, out))
    return TN_DECLINE("%s: output_size", l->op->name);
  if (spatial == 3) {
    int64_t stride[3];
    if (tn_arg_ints(l, 3, &given) != 3 || !tn_arg_spatial(l, 3, 3, stride) ||
        tn_arg_ints(l, 4, &given) != 3 || stride[0] < 1 || stride[1] < 1 || stride[2] < 1)
      return TN_DECLINE("%s: stride or padding", l->op->name);
  }
  tn_type_t type = x->types[0];
  int64_t planes = 1, from[2] = {1, 1}, to[2] = {1, 1};
  for (int d = 0; d < rank; ++d) {
    if (d < lead) planes *= tn_dim(x, d);
    else from[1] *= tn_dim(x, d);
  }
  for (int i = 0; i < spatial; ++i) {
    type.dims[lead + i] = out[i];
    to[1] *= out[i];
  }
  if (to[1] < 1) return TN_DECLINE("%s: output_size", l->op->name);
  from[0] = to[0] = planes;
  const tn_type_t flat = tn_type_make(dtype, 2, to);
  const tn_node_t* y =
      tn_put_along(g, zeros_of(l, &flat), tn_reshape(g, indices, 2, from),
                   tn_reshape(g, x, 2, from), 1, TN_REDUCE_ASSIGN, TN_BOUNDS_ERROR);
  tn_return(l, tn_reshape(g, y, rank, type.dims));
  return TN_OK;
}
