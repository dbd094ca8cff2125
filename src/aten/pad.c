// Padding with values of the input (reflection, replication), and gradients of views that overlap.
#include <string.h>

#include "aten/index_util.h"
#include "aten/lowering.h"

// Padding of the last |spatial| dimensions: per dimension the position in x of every position of the result.
typedef struct padding {
  int rank, spatial;
  int64_t low[3], extent[3];  // of dimension rank - spatial + i
  bool is_reflected;
} padding_t;

static tn_status_t read_padding(tn_lowering_t* l, const tn_node_t* x, int index, padding_t* out) {
  memset(out, 0, sizeof(*out));
  const int64_t* pad;
  const int count = tn_arg_ints(l, index, &pad);
  out->rank = tn_rank(x);
  out->spatial = count / 2;
  out->is_reflected = strstr(l->op->name, "reflection") != NULL;
  if (!x || count < 2 || count > 6 || count % 2 || out->rank < out->spatial + 1 ||
      out->rank > out->spatial + 2)
    return TN_DECLINE("%s: padding or number of dimensions", l->op->name);
  for (int d = out->rank - out->spatial - 1; d < out->rank; ++d)
    if (tn_dim(x, d) == 0) return TN_DECLINE("%s: expected a non-empty input", l->op->name);
  for (int i = 0; i < out->spatial; ++i) {
    const int64_t low = pad[2 * (out->spatial - 1 - i)], high = pad[2 * (out->spatial - 1 - i) + 1];
    const int64_t size = tn_dim(x, out->rank - out->spatial + i);
    if (out->is_reflected && (low >= size || high >= size))
      return TN_DECLINE("%s: Padding size should be less than the corresponding input dimension",
                        l->op->name);
    out->low[i] = low;
    out->extent[i] = size + low + high;
    if (out->extent[i] < 1) return TN_DECLINE("%s: the result would be empty", l->op->name);
  }
  return TN_OK;
}

static const tn_node_t* source_positions(tn_lowering_t* l, const padding_t* p, int i,
                                         int64_t size) {
  int64_t* at = tn_graph_alloc(l->graph, sizeof(*at) * (size_t)p->extent[i]);
  if (!at) return NULL;
  for (int64_t o = 0; o < p->extent[i]; ++o) {
    int64_t from = o - p->low[i];
    if (p->is_reflected) {
      if (from < 0) from = -from;
      if (from >= size) from = 2 * (size - 1) - from;
    } else {
      from = from < 0 ? 0 : from >= size ? size - 1 : from;
    }
    at[o] = from;
  }
  const tn_type_t type = tn_type_make(TN_I64, 1, &p->extent[i]);
  return tn_constant(l->graph, &type, at);
}

// |count| elements beside x: behind its last position, or before its first.
static const tn_node_t* edge(tn_lowering_t* l, const padding_t* p, const tn_node_t* x, int dim,
                             int64_t count, bool is_behind) {
  tn_graph_t* g = l->graph;
  const int64_t size = tn_dim(x, dim), reversed = dim;
  if (p->is_reflected) {
    const int64_t start = is_behind ? size - 1 - count : 1;
    return tn_reverse(g, tn_slice_dim(g, x, dim, start, start + count, 1), 1, &reversed);
  }
  int64_t dims[TN_MAX_RANK];
  memcpy(dims, x->types[0].dims, sizeof(dims));
  dims[dim] = count;
  const int64_t last = is_behind ? size - 1 : 0;
  return tn_broadcast_to(g, tn_slice_dim(g, x, dim, last, last + 1, 1), tn_rank(x), dims);
}

// x, padding
tn_status_t tn_lower_pad_from_input(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  padding_t p;
  TN_TRY(read_padding(l, x, 1, &p));
  if (!p.is_reflected && tn_dtype_of(x) == TN_BOOL) return TN_DECLINE("%s of bool", l->op->name);
  for (int i = 0; i < p.spatial && x; ++i) {
    const int dim = p.rank - p.spatial + i;
    const int64_t size = tn_dim(x, dim), low = p.low[i], high = p.extent[i] - size - low;
    const tn_node_t* parts[3];
    int count = 0;
    if (low > 0) parts[count++] = edge(l, &p, x, dim, low, false);
    parts[count++] =
        tn_slice_dim(l->graph, x, dim, low < 0 ? -low : 0, high < 0 ? size + high : size, 1);
    if (high > 0) parts[count++] = edge(l, &p, x, dim, high, true);
    x = count == 1 ? parts[0] : tn_concat(l->graph, count, parts, dim);
  }
  tn_return(l, x);
  return TN_OK;
}

// grad, x, padding
tn_status_t tn_lower_pad_from_input_backward(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *grad = tn_arg_tensor(l, 0), *x = tn_arg_tensor(l, 1);
  padding_t p;
  TN_TRY(read_padding(l, x, 2, &p));
  if (tn_rank(grad) != p.rank) return TN_DECLINE("%s: rank of the gradient", l->op->name);
  for (int d = 0; d < p.rank; ++d) {
    const int i = d - (p.rank - p.spatial);
    if (tn_dim(grad, d) != (i >= 0 ? p.extent[i] : tn_dim(x, d)))
      return TN_DECLINE("%s: size of the gradient", l->op->name);
  }
  const tn_dtype_t dtype = tn_dtype_of(grad), opmath = tn_opmath_dtype(dtype);
  const tn_node_t* dx = tn_convert(g, grad, opmath);
  for (int i = 0; i < p.spatial && dx; ++i) {
    const int dim = p.rank - p.spatial + i;
    tn_type_t type = dx->types[0];
    type.dims[dim] = tn_dim(x, dim);
    const tn_node_t* zeros = tn_constant_splat(g, &type, (tn_scalar_t){0});
    dx = tn_put_rows(l, zeros, source_positions(l, &p, i, tn_dim(x, dim)), dx, dim, TN_REDUCE_SUM,
                     TN_BOUNDS_CLAMP);
  }
  tn_return(l, tn_convert(g, dx, dtype));
  return TN_OK;
}

// grad [.., windows, .., size], sizes of the input, dim, size, step
tn_status_t tn_lower_unfold_backward(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t* grad = tn_arg_tensor(l, 0);
  const int64_t* sizes;
  const int rank = tn_arg_ints(l, 1, &sizes);
  const int64_t size = tn_arg_int(l, 3, 1), step = tn_arg_int(l, 4, 1);
  if (rank == 0 && tn_rank(grad) == 1 && tn_dim(grad, 0) <= 1) {  // of a 0-dim input
    const tn_type_t scalar = tn_type_make(tn_dtype_of(grad), 0, NULL);
    tn_return(l, tn_dim(grad, 0) ? tn_reshape(g, grad, 0, NULL)
                                 : tn_constant_splat(g, &scalar, (tn_scalar_t){0}));
    return TN_OK;
  }
  if (!grad || rank < 1 || rank >= TN_MAX_RANK || tn_rank(grad) != rank + 1 ||
      tn_dim(grad, rank) != size)
    return TN_DECLINE("%s: shape of the gradient", l->op->name);
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 2, 0), rank);
  const int64_t windows = tn_dim(grad, dim), count = windows * size;
  const tn_dtype_t dtype = tn_dtype_of(grad), opmath = tn_opmath_dtype(dtype);
  int64_t permutation[TN_MAX_RANK], dims[TN_MAX_RANK];
  for (int d = 0, next = 0; d < rank; ++d) {
    permutation[next++] = d;
    if (d == dim) permutation[next++] = rank;
    dims[d] = d == dim ? count : tn_dim(grad, d);
  }
  const tn_node_t* updates =
      tn_reshape(g, tn_transpose(g, tn_convert(g, grad, opmath), permutation), rank, dims);
  int64_t* at = tn_graph_alloc(g, sizeof(*at) * (size_t)(count + 1));
  if (!at) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "%s: out of host memory", l->op->name);
  for (int64_t i = 0; i < count; ++i) at[i] = i / size * step + i % size;
  const tn_type_t type = tn_type_make(TN_I64, 1, &count), out = tn_type_make(opmath, rank, sizes);
  const tn_node_t* zeros = tn_constant_splat(g, &out, (tn_scalar_t){0});
  const tn_node_t* dx = tn_put_rows(l, zeros, tn_constant(g, &type, at), updates, dim,
                                    TN_REDUCE_SUM, TN_BOUNDS_ERROR);
  tn_return(l, tn_convert(g, dx, dtype));
  return TN_OK;
}

// x, dim, start, length
tn_status_t tn_lower_narrow_copy(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int64_t given = tn_arg_int(l, 1, 0), length = tn_arg_int(l, 3, 0);
  int64_t start = tn_arg_int(l, 2, 0);
  if (!x || given < -tn_rank(x) || given >= tn_rank(x) || length < 0)
    return TN_DECLINE("%s: dimension or length", l->op->name);
  const int dim = (int)(given < 0 ? given + tn_rank(x) : given);
  if (start < 0) start += tn_dim(x, dim);
  if (start < 0 || start + length > tn_dim(x, dim))
    return TN_DECLINE("%s: start + length exceeds the dimension", l->op->name);
  tn_return(l, tn_slice_dim(l->graph, x, dim, start, start + length, 1));
  return TN_OK;
}
