// Reductions over dimensions, running sums, norms, variance.
#include <math.h>
#include <string.h>

#include "aten/lowering.h"

typedef struct dims {
  int count;
  int64_t dim[TN_MAX_RANK];
  bool is_reduced[TN_MAX_RANK];
} dims_t;

// The list (or single number) at |index|; absent or empty means all dimensions.
static dims_t dims_at(tn_lowering_t* l, const tn_node_t* x, int index) {
  dims_t dims = {0};
  const int64_t* given = NULL;
  const int count = index < 0 ? -1 : tn_arg_ints(l, index, &given);
  dims.count = tn_wrap_dims(l, count, given, tn_rank(x), dims.dim);
  for (int i = 0; i < dims.count; ++i) dims.is_reduced[dims.dim[i]] = true;
  return dims;
}

static int64_t reduced_count(const tn_node_t* x, const dims_t* dims) {
  int64_t count = 1;
  for (int i = 0; i < dims->count; ++i) count *= tn_dim(x, (int)dims->dim[i]);
  return count;
}

// |reduced| with the reduced dimensions put back as 1.
static const tn_node_t* keep(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* reduced,
                             const dims_t* dims, bool keepdim) {
  if (!keepdim || !x) return reduced;
  int64_t sizes[TN_MAX_RANK];
  for (int d = 0; d < tn_rank(x); ++d) sizes[d] = dims->is_reduced[d] ? 1 : tn_dim(x, d);
  return tn_reshape(l->graph, reduced, tn_rank(x), sizes);
}

static const tn_node_t* reduce(tn_lowering_t* l, tn_reduce_kind_t kind, const tn_node_t* x,
                               const dims_t* dims, bool keepdim) {
  if (dims->count == 0) return x;
  return keep(l, x, tn_reduce(l->graph, kind, x, dims->count, dims->dim), dims, keepdim);
}

// Broadcasts a reduced value (with kept dims of 1) back over x.
static const tn_node_t* spread(tn_lowering_t* l, const tn_node_t* value, const tn_node_t* x) {
  return x ? tn_broadcast_to(l->graph, value, tn_rank(x), x->types[0].dims) : NULL;
}

// Sums of integers and bool are int64.
static tn_dtype_t sum_dtype(tn_lowering_t* l, const tn_node_t* x, int index) {
  const tn_dtype_t dtype = tn_dtype_of(x);
  return tn_arg_dtype(l, index, tn_dtype_class(dtype) <= TN_CLASS_UNSIGNED ? TN_I64 : dtype);
}

// Position of dtype and dims: sum(x, *, dtype), sum.dim_IntList(x, dims, keepdim, *, dtype).
static bool has_dims(const tn_lowering_t* l) { return strchr(l->op->name, '.') != NULL; }

// A sum that is rounded once: low precision accumulates in f32.
static tn_status_t sum_or_mean(tn_lowering_t* l, bool is_mean) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const bool with_dims = has_dims(l);
  const dims_t dims = dims_at(l, x, with_dims ? 1 : -1);
  const bool keepdim = with_dims && tn_arg_bool(l, 2, false);
  const int dtype_index = with_dims ? 3 : 1;
  const tn_dtype_t dtype =
      is_mean ? tn_arg_dtype(l, dtype_index, tn_dtype_of(x)) : sum_dtype(l, x, dtype_index);
  if (is_mean && !tn_dtype_is_float(dtype) && !tn_dtype_is_complex(dtype))
    return TN_DECLINE(
        "mean(): could not infer output dtype. Input dtype must be either a floating point or "
        "complex dtype");
  if (!is_mean) {
    tn_return(l, reduce(l, TN_REDUCE_SUM, tn_convert(l->graph, x, dtype), &dims, keepdim));
    return TN_OK;
  }
  const tn_dtype_t opmath = tn_opmath_dtype(dtype);
  const tn_node_t* wide = tn_convert(l->graph, tn_convert(l->graph, x, dtype), opmath);
  const tn_node_t* sum = reduce(l, TN_REDUCE_SUM, wide, &dims, keepdim);
  sum = tn_binary(l->graph, TN_OP_DIV, sum,
                  tn_constant_like(l->graph, sum, (double)reduced_count(x, &dims)));
  tn_return(l, tn_convert(l->graph, sum, dtype));
  return TN_OK;
}
tn_status_t tn_lower_sum(tn_lowering_t* l) { return sum_or_mean(l, false); }
tn_status_t tn_lower_mean(tn_lowering_t* l) { return sum_or_mean(l, true); }

// x, dims, keepdim, *, dtype
tn_status_t tn_lower_nansum(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (tn_dtype_is_complex(tn_dtype_of(x)))
    return TN_DECLINE("nansum does not support complex inputs");
  const dims_t dims = dims_at(l, x, 1);
  if (tn_dtype_is_float(tn_dtype_of(x)))
    x = tn_select(l->graph, tn_compare(l->graph, TN_NE, x, x), tn_constant_like(l->graph, x, 0.0),
                  x);
  x = tn_convert(l->graph, x, sum_dtype(l, x, 3));
  tn_return(l, reduce(l, TN_REDUCE_SUM, x, &dims, tn_arg_bool(l, 2, false)));
  return TN_OK;
}

// x[, dims]
tn_status_t tn_lower_count_nonzero(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const dims_t dims = dims_at(l, x, 1);
  const tn_node_t* is_set = tn_compare(l->graph, TN_NE, x, tn_constant_like(l->graph, x, 0.0));
  tn_return(l, reduce(l, TN_REDUCE_SUM, tn_convert(l->graph, is_set, TN_I64), &dims, false));
  return TN_OK;
}

tn_status_t tn_lower_trace(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (tn_rank(x) != 2 || tn_dtype_of(x) == TN_BOOL)
    return TN_DECLINE("trace: expected a matrix of numbers");
  const tn_value_t args[] = {{.kind = TN_VALUE_TENSOR, .node = x}};
  TN_TRY(tn_lower_nested(l, "diagonal", 1, args));
  const tn_node_t* diagonal = l->results[--l->result_count].node;
  const int64_t dim = 0;
  diagonal = tn_convert(l->graph, diagonal, sum_dtype(l, x, 1));
  tn_return(l, tn_reduce(l->graph, TN_REDUCE_SUM, diagonal, 1, &dim));
  return TN_OK;
}

tn_status_t tn_lower_prod(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const dims_t dims = dims_at(l, x, -1);
  tn_return(l,
            reduce(l, TN_REDUCE_PROD, tn_convert(l->graph, x, sum_dtype(l, x, 1)), &dims, false));
  return TN_OK;
}

tn_status_t tn_lower_prod_dim(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const dims_t dims = dims_at(l, x, 1);
  x = tn_convert(l->graph, x, sum_dtype(l, x, 3));
  tn_return(l, reduce(l, TN_REDUCE_PROD, x, &dims, tn_arg_bool(l, 2, false)));
  return TN_OK;
}

// ---- extremes -----------------------------------------------------------------------------------------------

static const tn_node_t* extreme(tn_lowering_t* l, tn_reduce_kind_t kind, const tn_node_t* x,
                                const dims_t* dims, bool keepdim) {
  if (tn_dtype_of(x) == TN_BOOL) kind = kind == TN_REDUCE_MAX ? TN_REDUCE_OR : TN_REDUCE_AND;
  return reduce(l, kind, x, dims, keepdim);
}

static tn_status_t check_extreme(tn_lowering_t* l, const tn_node_t* x, const dims_t* dims) {
  if (tn_dtype_is_complex(tn_dtype_of(x))) return TN_DECLINE("%s of complex", l->op->name);
  for (int i = 0; i < dims->count; ++i)
    if (tn_dim(x, (int)dims->dim[i]) == 0)
      return TN_DECLINE("%s(): Expected reduction dim to have non-zero size", l->op->name);
  return TN_OK;
}

static tn_status_t amax_or_amin(tn_lowering_t* l, tn_reduce_kind_t kind, int dims_index) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const dims_t dims = dims_at(l, x, dims_index);
  TN_TRY(check_extreme(l, x, &dims));
  tn_return(l, extreme(l, kind, x, &dims, dims_index > 0 && tn_arg_bool(l, 2, false)));
  return TN_OK;
}
tn_status_t tn_lower_amax(tn_lowering_t* l) { return amax_or_amin(l, TN_REDUCE_MAX, 1); }
tn_status_t tn_lower_amin(tn_lowering_t* l) { return amax_or_amin(l, TN_REDUCE_MIN, 1); }
tn_status_t tn_lower_max_all(tn_lowering_t* l) { return amax_or_amin(l, TN_REDUCE_MAX, -1); }
tn_status_t tn_lower_min_all(tn_lowering_t* l) { return amax_or_amin(l, TN_REDUCE_MIN, -1); }

// x, *, dim, keepdim -> min, max
tn_status_t tn_lower_aminmax(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const dims_t dims = dims_at(l, x, 1);
  const bool keepdim = tn_arg_bool(l, 2, false);
  TN_TRY(check_extreme(l, x, &dims));
  tn_return(l, extreme(l, TN_REDUCE_MIN, x, &dims, keepdim));
  tn_return(l, extreme(l, TN_REDUCE_MAX, x, &dims, keepdim));
  return TN_OK;
}

// Both results of an arg_reduce over one dimension; x of rank 0 counts as rank 1.
static const tn_node_t* arg_reduce(tn_lowering_t* l, tn_reduce_kind_t kind, const tn_node_t* x,
                                   int dim) {
  if (tn_dtype_of(x) == TN_BOOL) x = tn_convert(l->graph, x, TN_U8);
  return tn_arg_reduce(l->graph, kind, x, dim);
}

static tn_status_t max_or_min_dim(tn_lowering_t* l, tn_reduce_kind_t kind) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (tn_dtype_is_complex(dtype)) return TN_DECLINE("%s of complex", l->op->name);
  if (tn_rank(x) == 0) {
    tn_wrap_dim(l, tn_arg_int(l, 1, 0), 0);
    tn_return(l, x);
    tn_return(l, tn_constant_int(l->graph, TN_I64, 0));
    return TN_OK;
  }
  dims_t dims = dims_at(l, x, 1);
  TN_TRY(check_extreme(l, x, &dims));
  const bool keepdim = tn_arg_bool(l, 2, false);
  const tn_node_t* both = arg_reduce(l, kind, x, (int)dims.dim[0]);
  const tn_node_t* value = tn_convert(l->graph, tn_result(l->graph, both, 0), dtype);
  tn_return(l, keep(l, x, value, &dims, keepdim));
  tn_return(l, keep(l, x, tn_result(l->graph, both, 1), &dims, keepdim));
  return TN_OK;
}
tn_status_t tn_lower_max_dim(tn_lowering_t* l) { return max_or_min_dim(l, TN_REDUCE_MAX); }
tn_status_t tn_lower_min_dim(tn_lowering_t* l) { return max_or_min_dim(l, TN_REDUCE_MIN); }

static tn_status_t argmax_or_argmin(tn_lowering_t* l, tn_reduce_kind_t kind) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const bool keepdim = tn_arg_bool(l, 2, false);
  if (tn_arg_is_none(l, 1)) {
    const dims_t all = dims_at(l, x, -1);
    const int64_t count = x ? tn_type_element_count(&x->types[0]) : 0;
    if (count == 0)
      return TN_DECLINE("%s(): Expected reduction dim to be specified for input.numel() == 0",
                        l->op->name);
    if (tn_dtype_is_complex(tn_dtype_of(x)) || tn_dtype_of(x) == TN_BOOL)
      return TN_DECLINE("%s of %s", l->op->name, tn_dtype_name(tn_dtype_of(x)));
    const tn_node_t* flat = tn_reshape(l->graph, x, 1, &count);
    tn_return(l, keep(l, x, tn_result(l->graph, arg_reduce(l, kind, flat, 0), 1), &all, keepdim));
    return TN_OK;
  }
  const dims_t dims = dims_at(l, x, 1);
  if (tn_dtype_of(x) == TN_BOOL) return TN_DECLINE("%s of bool", l->op->name);
  TN_TRY(check_extreme(l, x, &dims));
  if (tn_rank(x) == 0) {
    tn_return(l, tn_constant_int(l->graph, TN_I64, 0));
    return TN_OK;
  }
  tn_return(l, keep(l, x, tn_result(l->graph, arg_reduce(l, kind, x, (int)dims.dim[0]), 1), &dims,
                    keepdim));
  return TN_OK;
}
tn_status_t tn_lower_argmax(tn_lowering_t* l) { return argmax_or_argmin(l, TN_REDUCE_MAX); }
tn_status_t tn_lower_argmin(tn_lowering_t* l) { return argmax_or_argmin(l, TN_REDUCE_MIN); }

// uint8 answers in uint8, all others in bool.
static tn_status_t any_or_all(tn_lowering_t* l, tn_reduce_kind_t kind) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const bool with_dims = has_dims(l);
  dims_t dims = dims_at(l, x, with_dims ? 1 : -1);
  const int64_t* given;
  // Unlike elsewhere an empty list is no dimension here, not all of them.
  if (with_dims && !tn_arg_is_none(l, 1) && tn_arg_ints(l, 1, &given) == 0) dims.count = 0;
  const tn_dtype_t dtype = tn_dtype_of(x) == TN_U8 ? TN_U8 : TN_BOOL;
  const tn_node_t* y = reduce(l, kind, tn_convert(l->graph, x, TN_BOOL), &dims,
                              with_dims && tn_arg_bool(l, 2, false));
  tn_return(l, tn_convert(l->graph, y, dtype));
  return TN_OK;
}
tn_status_t tn_lower_any(tn_lowering_t* l) { return any_or_all(l, TN_REDUCE_OR); }
tn_status_t tn_lower_all(tn_lowering_t* l) { return any_or_all(l, TN_REDUCE_AND); }

// ---- variance -----------------------------------------------------------------------------------------------

// Arguments: x, dims, *, correction (number or None), keepdim.
static tn_status_t variance(tn_lowering_t* l, bool is_std, bool with_mean) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (!tn_dtype_is_float(dtype))
    return TN_DECLINE("%s only supports floating point dtypes", l->op->name);
  const dims_t dims = dims_at(l, x, 1);
  const double correction = tn_arg_double(l, 2, 1.0);
  const bool keepdim = tn_arg_bool(l, 3, false);
  tn_graph_t* g = l->graph;
  const double count = (double)reduced_count(x, &dims);
  const tn_node_t* wide = tn_convert(g, x, tn_opmath_dtype(dtype));
  const tn_node_t* sum = reduce(l, TN_REDUCE_SUM, wide, &dims, true);
  const tn_node_t* mean = tn_binary(g, TN_OP_DIV, sum, tn_constant_like(g, sum, count));
  const tn_node_t* centred = tn_binary(g, TN_OP_SUB, wide, spread(l, mean, wide));
  const tn_node_t* squares =
      reduce(l, TN_REDUCE_SUM, tn_binary(g, TN_OP_MUL, centred, centred), &dims, true);
  const double freedom = count - correction > 0.0 ? count - correction : 0.0;
  const tn_node_t* value = tn_binary(g, TN_OP_DIV, squares, tn_constant_like(g, squares, freedom));
  if (is_std) value = tn_unary(g, TN_OP_SQRT, value);
  const tn_node_t* results[] = {value, mean};
  for (int i = 0; i < (with_mean ? 2 : 1); ++i) {
    const tn_node_t* y = results[i];
    if (!keepdim && y) {
      int64_t sizes[TN_MAX_RANK];
      int rank = 0;
      for (int d = 0; d < tn_rank(x); ++d)
        if (!dims.is_reduced[d]) sizes[rank++] = tn_dim(x, d);
      y = tn_reshape(g, y, rank, sizes);
    }
    tn_return(l, tn_convert(g, y, dtype));
  }
  return TN_OK;
}
tn_status_t tn_lower_var(tn_lowering_t* l) { return variance(l, false, false); }
tn_status_t tn_lower_std(tn_lowering_t* l) { return variance(l, true, false); }
tn_status_t tn_lower_var_mean(tn_lowering_t* l) { return variance(l, false, true); }
tn_status_t tn_lower_std_mean(tn_lowering_t* l) { return variance(l, true, true); }

// ---- norms --------------------------------------------------------------------------------------------------

static tn_status_t vector_norm(tn_lowering_t* l, double order, int dims_index, bool keepdim,
                               tn_dtype_t dtype) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  if (!tn_dtype_is_float(tn_dtype_of(x)) || !tn_dtype_is_float(dtype))
    return TN_DECLINE("%s of %s", l->op->name, tn_dtype_name(tn_dtype_of(x)));
  const dims_t dims = dims_at(l, x, dims_index);
  const tn_node_t* y = tn_convert(g, tn_convert(g, x, dtype), tn_opmath_dtype(dtype));
  if (isinf(order)) {
    if (reduced_count(x, &dims) == 0)
      return TN_DECLINE("%s: infinity norm of an empty tensor", l->op->name);
    y = reduce(l, order > 0 ? TN_REDUCE_MAX : TN_REDUCE_MIN, tn_unary(g, TN_OP_ABS, y), &dims,
               keepdim);
  } else if (order == 0.0) {
    const tn_node_t* nonzero = tn_compare(g, TN_NE, y, tn_constant_like(g, y, 0.0));
    y = reduce(l, TN_REDUCE_SUM, tn_convert(g, nonzero, tn_dtype_of(y)), &dims, keepdim);
  } else if (order == 1.0) {
    y = reduce(l, TN_REDUCE_SUM, tn_unary(g, TN_OP_ABS, y), &dims, keepdim);
  } else if (order == 2.0) {
    y = tn_unary(g, TN_OP_SQRT,
                 reduce(l, TN_REDUCE_SUM, tn_binary(g, TN_OP_MUL, y, y), &dims, keepdim));
  } else {
    const tn_node_t* power =
        tn_binary(g, TN_OP_POW, tn_unary(g, TN_OP_ABS, y), tn_constant_like(g, y, order));
    const tn_node_t* sum = reduce(l, TN_REDUCE_SUM, power, &dims, keepdim);
    y = tn_binary(g, TN_OP_POW, sum, tn_constant_like(g, sum, 1.0 / order));
  }
  tn_return(l, tn_convert(g, y, dtype));
  return TN_OK;
}

// x, ord, dims, keepdim, *, dtype
tn_status_t tn_lower_vector_norm(tn_lowering_t* l) {
  const tn_dtype_t dtype = tn_arg_dtype(l, 4, tn_dtype_of(tn_arg_tensor(l, 0)));
  return vector_norm(l, tn_arg_double(l, 1, 2.0), 2, tn_arg_bool(l, 3, false), dtype);
}

// x, p, dims, keepdim[, *, dtype]
tn_status_t tn_lower_norm(tn_lowering_t* l) {
  const tn_dtype_t dtype =
      l->arg_count > 4 ? tn_arg_dtype(l, 4, TN_F32) : tn_dtype_of(tn_arg_tensor(l, 0));
  return vector_norm(l, tn_arg_double(l, 1, 2.0), 2, tn_arg_bool(l, 3, false), dtype);
}

// log(sum(exp(x - max))) + max, with an infinite maximum left out of the shift.
tn_status_t tn_lower_logsumexp(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_t dtype = tn_to_float_dtype(tn_dtype_of(x)), opmath = tn_opmath_dtype(dtype);
  if (tn_dtype_is_complex(dtype)) return TN_DECLINE("logsumexp of complex");
  const dims_t dims = dims_at(l, x, 1);
  const bool keepdim = tn_arg_bool(l, 2, false);
  x = tn_convert(g, tn_convert(g, x, dtype), opmath);
  const tn_node_t* y;
  if (x && reduced_count(x, &dims) == 0) {
    y = tn_unary(g, TN_OP_LOG, reduce(l, TN_REDUCE_SUM, tn_unary(g, TN_OP_EXP, x), &dims, keepdim));
  } else {
    const tn_node_t* top = reduce(l, TN_REDUCE_MAX, x, &dims, true);
    const tn_node_t* zero = tn_constant_like(g, top, 0.0);
    const tn_node_t* is_infinite =
        tn_compare(g, TN_EQ, tn_unary(g, TN_OP_ABS, top), tn_constant_like(g, top, INFINITY));
    const tn_node_t* shift = tn_select(g, is_infinite, zero, top);
    const tn_node_t* e = tn_unary(g, TN_OP_EXP, tn_binary(g, TN_OP_SUB, x, spread(l, shift, x)));
    y = tn_binary(g, TN_OP_ADD, tn_unary(g, TN_OP_LOG, reduce(l, TN_REDUCE_SUM, e, &dims, true)),
                  shift);
    if (!keepdim && y) {
      int64_t sizes[TN_MAX_RANK];
      int rank = 0;
      for (int d = 0; d < tn_rank(x); ++d)
        if (!dims.is_reduced[d]) sizes[rank++] = tn_dim(x, d);
      y = tn_reshape(g, y, rank, sizes);
    }
  }
  tn_return(l, tn_convert(g, y, dtype));
  return TN_OK;
}

// ---- running ------------------------------------------------------------------------------------------------

static tn_status_t running(tn_lowering_t* l, tn_reduce_kind_t kind) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(x));
  x = tn_convert(l->graph, x, sum_dtype(l, x, 2));
  tn_return(l, tn_rank(x) == 0 ? x : tn_scan(l->graph, kind, x, dim, false, false));
  return TN_OK;
}
tn_status_t tn_lower_cumsum(tn_lowering_t* l) { return running(l, TN_REDUCE_SUM); }
tn_status_t tn_lower_cumprod(tn_lowering_t* l) { return running(l, TN_REDUCE_PROD); }

// x, dim -> values, indices. An element that equals the running extreme, or is NaN, is the newest holder of it: so the
// running maximum of their positions is the index, the last one among equals.
static tn_status_t running_extreme(tn_lowering_t* l, tn_reduce_kind_t kind) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (!x || tn_dtype_is_complex(dtype)) return TN_DECLINE("%s of complex", l->op->name);
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(x));
  tn_type_t type = x->types[0];
  type.dtype = TN_I64;
  if (tn_rank(x) == 0) {
    tn_return(l, x);
    tn_return(l, tn_constant_int(g, TN_I64, 0));
    return TN_OK;
  }
  if (dtype == TN_BOOL) x = tn_convert(g, x, TN_U8);
  const tn_node_t* values = tn_scan(g, kind, x, dim, false, false);
  const tn_node_t* is_holder =
      tn_binary(g, TN_OP_OR, tn_compare(g, TN_EQ, x, values), tn_compare(g, TN_NE, x, x));
  const tn_node_t* position = tn_iota(g, &type, dim);
  position = tn_select(g, is_holder, position, tn_constant_like(g, position, 0.0));
  tn_return(l, tn_convert(g, values, dtype));
  tn_return(l, tn_scan(g, TN_REDUCE_MAX, position, dim, false, false));
  return TN_OK;
}
tn_status_t tn_lower_cummax(tn_lowering_t* l) { return running_extreme(l, TN_REDUCE_MAX); }
tn_status_t tn_lower_cummin(tn_lowering_t* l) { return running_extreme(l, TN_REDUCE_MIN); }
