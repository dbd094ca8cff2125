// View operators inside compiled graphs, and their gradients. In eager execution views alias and are not lowered.
#include <string.h>

#include "aten/lowering.h"

tn_status_t tn_lower_identity(tn_lowering_t* l) {
  tn_return(l, tn_arg_tensor(l, 0));
  return TN_OK;
}

// Sizes with at most one -1, which the number of elements decides.
tn_status_t tn_lower_view(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int64_t* sizes;
  const int rank = tn_arg_ints(l, 1, &sizes);
  if (!x || rank < 0 || rank > TN_MAX_RANK)
    return TN_DECLINE("%s: to a dtype, or rank %d", l->op->name, rank);
  int64_t dims[TN_MAX_RANK], known = 1;
  int inferred = -1;
  for (int d = 0; d < rank; ++d) {
    dims[d] = sizes[d];
    if (sizes[d] == -1) {
      inferred = d;
    } else {
      known *= sizes[d];
    }
  }
  const int64_t count = tn_type_element_count(&x->types[0]);
  if (inferred >= 0) {
    if (known == 0 || count % known)
      return TN_DECLINE("%s: shape is invalid for input of size %lld", l->op->name,
                        (long long)count);
    dims[inferred] = count / known;
  } else if (known != count) {
    return TN_DECLINE("%s: shape is invalid for input of size %lld", l->op->name, (long long)count);
  }
  tn_return(l, tn_reshape(l->graph, x, rank, dims));
  return TN_OK;
}

tn_status_t tn_lower_permute(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int64_t* dims;
  const int count = tn_arg_ints(l, 1, &dims);
  if (count != tn_rank(x)) return TN_DECLINE("permute: %d dims for rank %d", count, tn_rank(x));
  int64_t permutation[TN_MAX_RANK];
  for (int d = 0; d < count; ++d) permutation[d] = tn_wrap_dim(l, dims[d], count);
  tn_return(l, tn_transpose(l->graph, x, permutation));
  return TN_OK;
}

static const tn_node_t* swap_dims(tn_lowering_t* l, const tn_node_t* x, int a, int b) {
  int64_t permutation[TN_MAX_RANK];
  for (int d = 0; d < tn_rank(x); ++d) permutation[d] = d == a ? b : d == b ? a : d;
  return tn_transpose(l->graph, x, permutation);
}

tn_status_t tn_lower_t(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (tn_rank(x) > 2) return TN_DECLINE("t() expects a tensor with <= 2 dimensions");
  tn_return(l, tn_rank(x) < 2 ? x : swap_dims(l, x, 0, 1));
  return TN_OK;
}

tn_status_t tn_lower_transpose(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int a = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(x)),
            b = tn_wrap_dim(l, tn_arg_int(l, 2, 0), tn_rank(x));
  tn_return(l, tn_rank(x) == 0 ? x : swap_dims(l, x, a, b));
  return TN_OK;
}

tn_status_t tn_lower_unsqueeze(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int at = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(x) + 1);
  if (!x || tn_rank(x) == TN_MAX_RANK) return TN_DECLINE("unsqueeze: rank");
  int64_t dims[TN_MAX_RANK];
  for (int d = 0, from = 0; d <= tn_rank(x); ++d) dims[d] = d == at ? 1 : tn_dim(x, from++);
  tn_return(l, tn_reshape(l->graph, x, tn_rank(x) + 1, dims));
  return TN_OK;
}

tn_status_t tn_lower_squeeze(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int64_t* given = NULL;
  const int count = l->arg_count > 1 ? tn_arg_ints(l, 1, &given) : -1;
  bool may_drop[TN_MAX_RANK];
  for (int d = 0; d < tn_rank(x); ++d) may_drop[d] = count < 0;
  for (int i = 0; i < count; ++i) {
    const int dim = tn_wrap_dim(l, given[i], tn_rank(x));
    if (tn_rank(x)) may_drop[dim] = true;
  }
  int64_t dims[TN_MAX_RANK];
  int rank = 0;
  for (int d = 0; d < tn_rank(x); ++d)
    if (!may_drop[d] || tn_dim(x, d) != 1) dims[rank++] = tn_dim(x, d);
  tn_return(l, tn_reshape(l->graph, x, rank, dims));
  return TN_OK;
}

tn_status_t tn_lower_expand(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int64_t* sizes;
  const int rank = tn_arg_ints(l, 1, &sizes), lead = rank - tn_rank(x);
  if (rank < 0 || lead < 0 || rank > TN_MAX_RANK)
    return TN_DECLINE("expand: %d sizes for rank %d", rank, tn_rank(x));
  int64_t dims[TN_MAX_RANK];
  for (int d = 0; d < rank; ++d) {
    const int64_t own = d < lead ? 1 : tn_dim(x, d - lead);
    dims[d] = sizes[d] == -1 && d >= lead ? own : sizes[d];
    if (dims[d] < 0 || (own != 1 && own != dims[d]))
      return TN_DECLINE("expand: size %lld", (long long)sizes[d]);
  }
  tn_return(l, tn_broadcast_to(l->graph, x, rank, dims));
  return TN_OK;
}

static const tn_node_t* drop_dim(tn_lowering_t* l, const tn_node_t* x, int dim) {
  int64_t dims[TN_MAX_RANK];
  int rank = 0;
  for (int d = 0; d < tn_rank(x); ++d)
    if (d != dim) dims[rank++] = tn_dim(x, d);
  return tn_reshape(l->graph, x, rank, dims);
}

static const tn_node_t* add_dim(tn_lowering_t* l, const tn_node_t* x, int dim) {
  int64_t dims[TN_MAX_RANK];
  for (int d = 0, from = 0; d <= tn_rank(x); ++d) dims[d] = d == dim ? 1 : tn_dim(x, from++);
  return tn_reshape(l->graph, x, tn_rank(x) + 1, dims);
}

tn_status_t tn_lower_select(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (tn_rank(x) == 0) return TN_DECLINE("select() cannot be applied to a 0-dim tensor.");
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(x));
  int64_t index = tn_arg_int(l, 2, 0);
  if (index < -tn_dim(x, dim) || index >= tn_dim(x, dim))
    return TN_DECLINE("select(): index %lld out of range", (long long)index);
  if (index < 0) index += tn_dim(x, dim);
  tn_return(l, drop_dim(l, tn_slice_dim(l->graph, x, dim, index, index + 1, 1), dim));
  return TN_OK;
}

// start and end of a Python slice within |extent|.
static void clip_slice(int64_t extent, int64_t* start, int64_t* end) {
  if (*start < 0) *start += extent;
  if (*end < 0) *end += extent;
  if (*start < 0) *start = 0;
  if (*start > extent) *start = extent;
  if (*end < *start) *end = *start;
  if (*end > extent) *end = extent;
}

static int64_t slice_extent(int64_t start, int64_t end, int64_t step) {
  return (end - start + step - 1) / step;
}

tn_status_t tn_lower_slice(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (tn_rank(x) == 0) return TN_DECLINE("slice() cannot be applied to a 0-dim tensor.");
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(x));
  int64_t start = tn_arg_int(l, 2, 0), end = tn_arg_int(l, 3, INT64_MAX);
  const int64_t step = tn_arg_int(l, 4, 1);
  if (step <= 0) return TN_DECLINE("slice step must be positive");
  clip_slice(tn_dim(x, dim), &start, &end);
  tn_return(l, tn_slice_dim(l->graph, x, dim, start, end, step));
  return TN_OK;
}

tn_status_t tn_lower_split(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int64_t size = tn_arg_int(l, 1, 1);
  if (tn_rank(x) == 0) return TN_DECLINE("split expects at least a 1-dimensional tensor");
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 2, 0), tn_rank(x));
  const int64_t extent = tn_dim(x, dim);
  if (size < 0 || (size == 0 && extent != 0))
    return TN_DECLINE("split: size %lld", (long long)size);
  if (extent == 0) {
    tn_return(l, x);
    return TN_OK;
  }
  for (int64_t start = 0; start < extent; start += size)
    tn_return(
        l, tn_slice_dim(l->graph, x, dim, start, start + size < extent ? start + size : extent, 1));
  return TN_OK;
}

tn_status_t tn_lower_split_with_sizes(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int64_t* sizes;
  const int count = tn_arg_ints(l, 1, &sizes),
            dim = tn_wrap_dim(l, tn_arg_int(l, 2, 0), tn_rank(x));
  int64_t start = 0;
  for (int i = 0; i < count; ++i) {
    tn_return(l, tn_slice_dim(l->graph, x, dim, start, start + sizes[i], 1));
    start += sizes[i];
  }
  return start == tn_dim(x, dim) ? TN_OK : TN_DECLINE("split_with_sizes: sizes do not add up");
}

tn_status_t tn_lower_unbind(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (tn_rank(x) == 0)
    return TN_DECLINE("unbind: dimension specified as 0 but tensor has no dimensions");
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(x));
  for (int64_t i = 0; i < tn_dim(x, dim); ++i)
    tn_return(l, drop_dim(l, tn_slice_dim(l->graph, x, dim, i, i + 1, 1), dim));
  return TN_OK;
}

// The diagonal of two dimensions becomes the last one: a window of the flattened pair with a step of width + 1.
tn_status_t tn_lower_diagonal(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int rank = tn_rank(x);
  const int64_t offset = tn_arg_int(l, 1, 0);
  const int a = tn_wrap_dim(l, tn_arg_int(l, 2, 0), rank),
            b = tn_wrap_dim(l, tn_arg_int(l, 3, 1), rank);
  if (rank < 2 || a == b) return TN_DECLINE("diagonal dimensions cannot be identical");
  int64_t permutation[TN_MAX_RANK], dims[TN_MAX_RANK];
  int n = 0;
  for (int d = 0; d < rank; ++d)
    if (d != a && d != b) permutation[n++] = d;
  permutation[n] = a;
  permutation[n + 1] = b;
  x = tn_transpose(l->graph, x, permutation);
  const int64_t rows = tn_dim(x, n), columns = tn_dim(x, n + 1);
  const int64_t first_row = offset < 0 ? -offset : 0, first_column = offset > 0 ? offset : 0;
  int64_t count =
      rows - first_row < columns - first_column ? rows - first_row : columns - first_column;
  if (count < 0) count = 0;
  x = tn_slice_dim(l->graph, x, n, count ? first_row : 0, count ? rows : 0, 1);
  for (int d = 0; d < n; ++d) dims[d] = tn_dim(x, d);
  dims[n] = (count ? rows - first_row : 0) * columns;
  x = tn_reshape(l->graph, x, n + 1, dims);
  tn_return(l, count ? tn_slice_dim(l->graph, x, n, first_column,
                                    first_column + (count - 1) * (columns + 1) + 1, columns + 1)
                     : tn_slice_dim(l->graph, x, n, 0, 0, 1));
  return TN_OK;
}

// Windows of |size| every |step|: the window's elements become a new last dimension.
tn_status_t tn_lower_unfold(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(x));
  const int64_t size = tn_arg_int(l, 2, 1), step = tn_arg_int(l, 3, 1);
  if (tn_rank(x) == 0 || size > tn_dim(x, dim) || step <= 0)
    return TN_DECLINE("unfold: window %lld", (long long)size);
  const int64_t windows = (tn_dim(x, dim) - size) / step + 1;
  enum { MOST = 256 };
  if (windows > MOST) return TN_DECLINE("unfold into more than %d windows", MOST);
  const tn_node_t* pieces[MOST];
  int64_t permutation[TN_MAX_RANK];
  const int rank = tn_rank(x);
  // [.., size, ..] -> [.., 1, .., size]
  for (int d = 0; d < rank; ++d) permutation[d] = d < dim ? d : d == dim ? rank : d;
  for (int64_t i = 0; i < windows; ++i) {
    const tn_node_t* piece =
        add_dim(l, tn_slice_dim(l->graph, x, dim, i * step, i * step + size, 1), rank);
    for (int d = 0; d <= rank; ++d) permutation[d] = d == dim ? rank : d == rank ? dim : d;
    pieces[i] = tn_transpose(l->graph, piece, permutation);
  }
  tn_return(l, tn_concat(l->graph, (int)windows, pieces, dim));
  return TN_OK;
}

// ---- gradients and writes ------------------------------------------------------------------------------------

static const tn_node_t* zero_of(tn_lowering_t* l, tn_dtype_t dtype) {
  return tn_constant_double(l->graph, dtype, 0.0);
}

// |x| placed at start, start + step, .. along |dim| of a zero tensor of extent |extent|.
static const tn_node_t* place(tn_lowering_t* l, const tn_node_t* x, int dim, int64_t extent,
                              int64_t start, int64_t step) {
  int64_t low[TN_MAX_RANK] = {0}, high[TN_MAX_RANK] = {0}, interior[TN_MAX_RANK] = {0};
  const int64_t count = tn_dim(x, dim);
  low[dim] = start;
  interior[dim] = step - 1;
  high[dim] = extent - start - (count > 0 ? (count - 1) * step + 1 : 0);
  return tn_pad(l->graph, x, zero_of(l, tn_dtype_of(x)), low, high, interior);
}

tn_status_t tn_lower_select_backward(tn_lowering_t* l) {
  const tn_node_t* grad = tn_arg_tensor(l, 0);
  const int64_t* sizes;
  const int rank = tn_arg_ints(l, 1, &sizes), dim = tn_wrap_dim(l, tn_arg_int(l, 2, 0), rank);
  int64_t index = tn_arg_int(l, 3, 0);
  if (rank != tn_rank(grad) + 1) return TN_DECLINE("select_backward: rank");
  if (index < 0) index += sizes[dim];
  tn_return(l, place(l, add_dim(l, grad, dim), dim, sizes[dim], index, 1));
  return TN_OK;
}

tn_status_t tn_lower_slice_backward(tn_lowering_t* l) {
  const tn_node_t* grad = tn_arg_tensor(l, 0);
  const int64_t* sizes;
  const int rank = tn_arg_ints(l, 1, &sizes), dim = tn_wrap_dim(l, tn_arg_int(l, 2, 0), rank);
  int64_t start = tn_arg_int(l, 3, 0), end = tn_arg_int(l, 4, INT64_MAX);
  const int64_t step = tn_arg_int(l, 5, 1);
  if (rank != tn_rank(grad) || step <= 0) return TN_DECLINE("slice_backward: rank");
  clip_slice(sizes[dim], &start, &end);
  if (slice_extent(start, end, step) != tn_dim(grad, dim))
    return TN_DECLINE("slice_backward: size of the gradient");
  tn_return(l, place(l, grad, dim, sizes[dim], start, step));
  return TN_OK;
}

// x with the window of |dim| replaced by |source|: pieces around it for step 1, a select by position otherwise.
static const tn_node_t* write_window(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* source,
                                     int dim, int64_t start, int64_t step) {
  const int64_t count = tn_dim(source, dim), extent = tn_dim(x, dim);
  source = tn_convert(l->graph, source, tn_dtype_of(x));
  if (step == 1) {
    const tn_node_t* pieces[3];
    int n = 0;
    if (start > 0) pieces[n++] = tn_slice_dim(l->graph, x, dim, 0, start, 1);
    if (count > 0) pieces[n++] = source;
    if (start + count < extent)
      pieces[n++] = tn_slice_dim(l->graph, x, dim, start + count, extent, 1);
    return n == 0 ? x : n == 1 ? pieces[0] : tn_concat(l->graph, n, pieces, dim);
  }
  tn_type_t type = x->types[0];
  type.dtype = TN_I64;
  const tn_node_t* position = tn_iota(l->graph, &type, dim);
  const tn_node_t* offset =
      tn_binary(l->graph, TN_OP_SUB, position, tn_constant_like(l->graph, position, (double)start));
  const tn_node_t* rest =
      tn_binary(l->graph, TN_OP_REM, offset, tn_constant_like(l->graph, offset, (double)step));
  const tn_node_t* is_inside =
      tn_compare(l->graph, TN_EQ, rest, tn_constant_like(l->graph, rest, 0.0));
  is_inside = tn_binary(
      l->graph, TN_OP_AND, is_inside,
      tn_compare(l->graph, TN_GE, position, tn_constant_like(l->graph, position, (double)start)));
  const double last = (double)(start + (count - 1) * step);
  is_inside =
      tn_binary(l->graph, TN_OP_AND, is_inside,
                tn_compare(l->graph, TN_LE, position, tn_constant_like(l->graph, position, last)));
  return tn_select(l->graph, is_inside, place(l, source, dim, extent, start, step), x);
}

tn_status_t tn_lower_slice_scatter(tn_lowering_t* l) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *source = tn_arg_tensor(l, 1);
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 2, 0), tn_rank(x));
  int64_t start = tn_arg_int(l, 3, 0), end = tn_arg_int(l, 4, INT64_MAX);
  const int64_t step = tn_arg_int(l, 5, 1);
  if (tn_rank(x) == 0 || tn_rank(x) != tn_rank(source) || step <= 0)
    return TN_DECLINE("slice_scatter: rank");
  clip_slice(tn_dim(x, dim), &start, &end);
  for (int d = 0; d < tn_rank(x); ++d)
    if (tn_dim(source, d) != (d == dim ? slice_extent(start, end, step) : tn_dim(x, d)))
      return TN_DECLINE("slice_scatter: size of the source");
  tn_return(l, write_window(l, x, source, dim, start, step));
  return TN_OK;
}

tn_status_t tn_lower_select_scatter(tn_lowering_t* l) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *source = tn_arg_tensor(l, 1);
  if (tn_rank(x) != tn_rank(source) + 1) return TN_DECLINE("select_scatter: rank");
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 2, 0), tn_rank(x));
  int64_t index = tn_arg_int(l, 3, 0);
  if (index < -tn_dim(x, dim) || index >= tn_dim(x, dim))
    return TN_DECLINE("select_scatter: index out of range");
  if (index < 0) index += tn_dim(x, dim);
  source = add_dim(l, source, dim);
  for (int d = 0; d < tn_rank(x); ++d)
    if (d != dim && tn_dim(source, d) != tn_dim(x, d))
      return TN_DECLINE("select_scatter: size of the source");
  tn_return(l, write_window(l, x, source, dim, index, 1));
  return TN_OK;
}
