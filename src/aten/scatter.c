// Writing at positions: index_put, index_add, scatter.
#include <math.h>
#include <string.h>

#include "aten/index_util.h"
#include "aten/lowering.h"

const tn_node_t* tn_put_rows(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* index,
                             const tn_node_t* updates, int dim, tn_reduce_kind_t kind,
                             tn_bounds_t bounds) {
  tn_gather_dims_t dims = {0};
  for (int d = 0; d < tn_rank(x); ++d)
    if (d != dim) dims.offset[dims.offset_count++] = d;
  dims.collapsed[dims.collapsed_count++] = dim;
  dims.map[dims.map_count++] = dim;
  dims.index_vector_dim = 1;
  const int64_t column[] = {tn_dim(index, 0), 1};
  return tn_scatter(l->graph, x, tn_reshape(l->graph, index, 2, column), updates, &dims, kind,
                    bounds);
}

// x[mask] = value with one value is a select.
static bool is_mask_fill(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* values) {
  const tn_node_t* mask = tn_arg_list_count(l, 1) == 1 ? tn_arg_list_tensor(l, 1, 0) : NULL;
  if (!mask || tn_dtype_of(mask) != TN_BOOL || tn_arg_bool(l, 3, false) ||
      tn_rank(mask) > tn_rank(x) || tn_type_element_count(&values->types[0]) != 1 ||
      tn_dtype_of(values) != tn_dtype_of(x))
    return false;
  for (int d = 0; d < tn_rank(mask); ++d)
    if (tn_dim(mask, d) != tn_dim(x, d)) return false;
  return true;
}

// x, indices[], values, accumulate
tn_status_t tn_lower_index_put(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *x = tn_arg_tensor(l, 0), *values = tn_arg_tensor(l, 2);
  if (!x || !values) return TN_DECLINE("index_put: missing operand");
  if (is_mask_fill(l, x, values)) {
    const tn_node_t* mask = tn_arg_list_tensor(l, 1, 0);
    int64_t map[TN_MAX_RANK];
    for (int d = 0; d < tn_rank(mask); ++d) map[d] = d;
    mask = tn_broadcast_in_dim(g, mask, tn_rank(x), x->types[0].dims, map);
    values = tn_broadcast_to(g, tn_reshape(g, values, 0, NULL), tn_rank(x), x->types[0].dims);
    tn_return(l, tn_select(g, mask, values, x));
    return TN_OK;
  }
  if (tn_dtype_of(values) != tn_dtype_of(x))
    return TN_DECLINE("Index put requires the source and destination dtypes match");
  const bool accumulate = tn_arg_bool(l, 3, false);
  tn_indexing_t indexing;
  TN_TRY(tn_read_indexing(l, x, 1, &indexing));
  if (tn_rank(values) > indexing.result_rank) {  // leading dimensions of 1 fall away
    const int extra = tn_rank(values) - indexing.result_rank;
    for (int d = 0; d < extra; ++d)
      if (tn_dim(values, d) != 1) return TN_DECLINE("index_put: shape of the values");
    values = tn_reshape(g, values, indexing.result_rank, values->types[0].dims + extra);
  }
  const int lead = indexing.result_rank - tn_rank(values);
  for (int d = 0; d < tn_rank(values); ++d)
    if (tn_dim(values, d) != 1 && tn_dim(values, d) != indexing.result_dims[d + lead])
      return TN_DECLINE("shape mismatch: value tensor cannot be broadcast to indexing result");
  const tn_node_t* updates = tn_broadcast_to(g, values, indexing.result_rank, indexing.result_dims);
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (accumulate && dtype == TN_BOOL) {
    tn_return(l, tn_scatter(g, x, indexing.starts, updates, &indexing.dims, TN_REDUCE_OR,
                            TN_BOUNDS_WRAP));
    return TN_OK;
  }
  tn_return(l, tn_scatter(g, x, indexing.starts, updates, &indexing.dims,
                          accumulate ? TN_REDUCE_SUM : TN_REDUCE_ASSIGN, TN_BOUNDS_WRAP));
  return TN_OK;
}

static tn_status_t return_like(tn_lowering_t* l, const tn_node_t* node, const tn_node_t* like) {
  tn_return(l, like ? tn_reshape(l->graph, node, tn_rank(like), like->types[0].dims) : NULL);
  return TN_OK;
}

// One call's operands, brought to one rank >= 1.
typedef struct scattering {
  const tn_node_t* self;  // as given
  const tn_node_t *x, *index, *source;
  int dim;
  bool is_untouched;  // there is no index
  bool is_of_rows;    // the index is a list of positions along |dim|, not an array of x's rank
} scattering_t;

static const tn_node_t* scatter_into(tn_lowering_t* l, const scattering_t* s, const tn_node_t* x,
                                     const tn_node_t* source, tn_reduce_kind_t kind) {
  if (s->is_of_rows) return tn_put_rows(l, x, s->index, source, s->dim, kind, TN_BOUNDS_ERROR);
  return tn_put_along(l->graph, x, s->index, source, s->dim, kind, TN_BOUNDS_ERROR);
}

// Arguments 1 and 2 are dim and index; |source| has the index's length at dim.
static tn_status_t read_rows(tn_lowering_t* l, const tn_node_t* source, scattering_t* out) {
  memset(out, 0, sizeof(*out));
  const tn_node_t* index = tn_arg_tensor(l, 2);
  out->self = tn_arg_tensor(l, 0);
  TN_TRY(tn_check_index(l, index));
  out->dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(out->self));
  if (tn_rank(index) > 1 || tn_dtype_of(source) != tn_dtype_of(out->self))
    return TN_DECLINE("%s: index of more dimensions, or source of another dtype", l->op->name);
  out->x = tn_at_least_1d(l, out->self);
  out->source = tn_at_least_1d(l, source);
  if (tn_rank(out->x) != tn_rank(out->source))
    return TN_DECLINE("%s: rank of the source", l->op->name);
  const int64_t count = tn_type_element_count(&index->types[0]);
  for (int d = 0; d < tn_rank(out->x); ++d)
    if (tn_dim(out->source, d) != (d == out->dim ? count : tn_dim(out->x, d)))
      return TN_DECLINE("%s: size of the source", l->op->name);
  out->index = tn_reshape(l->graph, index, 1, &count);
  out->is_of_rows = true;
  return TN_OK;
}

static tn_status_t put_rows(tn_lowering_t* l, const tn_node_t* source, tn_reduce_kind_t kind) {
  scattering_t s;
  TN_TRY(read_rows(l, source, &s));
  if (kind == TN_REDUCE_SUM && tn_dtype_of(s.x) == TN_BOOL) kind = TN_REDUCE_OR;
  return return_like(l, scatter_into(l, &s, s.x, s.source, kind), s.self);
}

// x, dim, index, source, *, alpha
tn_status_t tn_lower_index_add(tn_lowering_t* l) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *source = tn_arg_tensor(l, 3);
  if ((tn_rank(x) == 0) != (tn_rank(source) == 0))
    return TN_DECLINE("%s: rank of the source", l->op->name);
  if (source && !tn_arg_is_none(l, 4) && tn_arg_double(l, 4, 1.0) != 1.0) {
    const tn_dtype_t dtype = tn_dtype_of(source);
    const tn_node_t* alpha = tn_arg_scalar(l, 4, dtype);
    source = tn_binary(l->graph, dtype == TN_BOOL ? TN_OP_AND : TN_OP_MUL, source,
                       tn_broadcast_to(l->graph, alpha, tn_rank(source), source->types[0].dims));
  }
  return put_rows(l, source, TN_REDUCE_SUM);
}

tn_status_t tn_lower_index_copy(tn_lowering_t* l) {
  if (tn_dtype_of(tn_arg_tensor(l, 2)) != TN_I64)
    return TN_DECLINE("index_copy_(): Expected a long tensor for index");
  return put_rows(l, tn_arg_tensor(l, 3), TN_REDUCE_ASSIGN);
}

// x, dim, index, value
tn_status_t tn_lower_index_fill(tn_lowering_t* l) {
  const tn_node_t *self = tn_arg_tensor(l, 0), *index = tn_arg_tensor(l, 2);
  const tn_node_t* value = tn_convert(l->graph, tn_arg_node(l, 3), tn_dtype_of(self));
  if (!index || tn_dtype_of(index) != TN_I64 || tn_rank(index) > 1 || tn_rank(value) != 0)
    return TN_DECLINE("%s: expected int64 indices of one dimension and one value", l->op->name);
  const int dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(self));
  const tn_node_t* x = tn_at_least_1d(l, self);
  if (!x) return tn_graph_status(l->graph);
  const int64_t count = tn_type_element_count(&index->types[0]);
  int64_t dims[TN_MAX_RANK];
  memcpy(dims, x->types[0].dims, sizeof(dims));
  dims[dim] = count;
  index = tn_reshape(l->graph, index, 1, &count);
  // Negative positions count from the end here, unlike index_copy.
  return return_like(l,
                     tn_put_rows(l, x, index, tn_broadcast_to(l->graph, value, tn_rank(x), dims),
                                 dim, TN_REDUCE_ASSIGN, TN_BOUNDS_WRAP),
                     self);
}

// x, index, source, accumulate: x as one row of elements.
tn_status_t tn_lower_put(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *x = tn_arg_tensor(l, 0), *index = tn_arg_tensor(l, 1),
                  *source = tn_arg_tensor(l, 2);
  if (!x || !index || !source || tn_dtype_of(index) != TN_I64)
    return TN_DECLINE("put_(): Expected a long tensor for index");
  const int64_t size = tn_type_element_count(&x->types[0]),
                count = tn_type_element_count(&index->types[0]);
  if (tn_dtype_of(source) != tn_dtype_of(x) || tn_type_element_count(&source->types[0]) != count)
    return TN_DECLINE("put_(): dtype or number of elements of the source");
  const bool accumulates = tn_arg_bool(l, 3, false);
  const tn_reduce_kind_t kind = !accumulates                ? TN_REDUCE_ASSIGN
                                : tn_dtype_of(x) == TN_BOOL ? TN_REDUCE_OR
                                                            : TN_REDUCE_SUM;
  return return_like(l,
                     tn_put_rows(l, tn_reshape(g, x, 1, &size), tn_reshape(g, index, 1, &count),
                                 tn_reshape(g, source, 1, &count), 0, kind, TN_BOUNDS_WRAP),
                     x);
}

// ---- scatter ------------------------------------------------------------------------------------------------

// As read_rows; x and source are brought to the index's sizes.
// x, dim, index, src or value
static tn_status_t read_scattering(tn_lowering_t* l, const tn_node_t* source, scattering_t* out) {
  memset(out, 0, sizeof(*out));
  out->self = tn_arg_tensor(l, 0);
  const tn_node_t* index = tn_arg_tensor(l, 2);
  if (!out->self || !index || !source) return TN_DECLINE("%s: operand is missing", l->op->name);
  out->dim = tn_wrap_dim(l, tn_arg_int(l, 1, 0), tn_rank(out->self));
  if (tn_dtype_of(source) != tn_dtype_of(out->self))
    return TN_DECLINE("%s: expected the source to have the dtype of the input", l->op->name);
  if (tn_type_element_count(&index->types[0]) == 0) {
    out->is_untouched = true;
    return TN_OK;
  }
  TN_TRY(tn_check_index(l, index));
  out->x = tn_at_least_1d(l, out->self);
  out->index = tn_at_least_1d(l, index);
  source = tn_at_least_1d(l, source);
  const int rank = tn_rank(out->x);
  if (tn_rank(out->index) != rank || tn_rank(source) != rank)
    return TN_DECLINE("%s: Index tensor must have the same number of dimensions as self tensor",
                      l->op->name);
  int64_t start[TN_MAX_RANK] = {0}, limit[TN_MAX_RANK], step[TN_MAX_RANK];
  for (int d = 0; d < rank; ++d) {
    limit[d] = tn_dim(out->index, d);
    step[d] = 1;
    if (limit[d] > tn_dim(source, d) || (d != out->dim && limit[d] > tn_dim(out->x, d)))
      return TN_DECLINE("%s: size of the index", l->op->name);
  }
  out->source = tn_slice(l->graph, source, start, limit, step);
  return TN_OK;
}

static tn_status_t scatter(tn_lowering_t* l, const tn_node_t* source, tn_reduce_kind_t kind) {
  scattering_t s;
  TN_TRY(read_scattering(l, source, &s));
  if (s.is_untouched) return return_like(l, s.self, s.self);
  // Sums and products of narrow floats are kept in f32 and rounded once, as on CPU.
  const tn_dtype_t dtype = tn_dtype_of(s.self);
  const bool sums = kind == TN_REDUCE_SUM || kind == TN_REDUCE_PROD;
  const tn_dtype_t work = sums ? tn_opmath_dtype(dtype) : dtype;
  const tn_node_t* y = scatter_into(l, &s, tn_convert(l->graph, s.x, work),
                                    tn_convert(l->graph, s.source, work), kind);
  return return_like(l, tn_convert(l->graph, y, dtype), s.self);
}

// The kind that PyTorch's "add", "sum", .. mean on |dtype|; ASSIGN for a word that is none of them.
static tn_reduce_kind_t reduce_kind(const char* word, tn_dtype_t dtype) {
  static const struct {
    const char* word;
    tn_reduce_kind_t kind, on_bool;
  } kinds[] = {
      {"add", TN_REDUCE_SUM, TN_REDUCE_OR},  {"multiply", TN_REDUCE_PROD, TN_REDUCE_AND},
      {"sum", TN_REDUCE_SUM, TN_REDUCE_OR},  {"prod", TN_REDUCE_PROD, TN_REDUCE_AND},
      {"amax", TN_REDUCE_MAX, TN_REDUCE_OR}, {"amin", TN_REDUCE_MIN, TN_REDUCE_AND},
  };
  for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); ++i)
    if (strcmp(kinds[i].word, word) == 0)
      return dtype == TN_BOOL ? kinds[i].on_bool : kinds[i].kind;
  return TN_REDUCE_ASSIGN;
}

// What leaves any element as it is.
static const tn_node_t* neutral_like(tn_lowering_t* l, const tn_node_t* x, tn_reduce_kind_t kind) {
  tn_graph_t* g = l->graph;
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (kind == TN_REDUCE_PROD || kind == TN_REDUCE_AND) return tn_constant_like(g, x, 1.0);
  if (!x || (kind != TN_REDUCE_MAX && kind != TN_REDUCE_MIN)) return tn_constant_like(g, x, 0.0);
  if (tn_dtype_is_float(dtype))
    return tn_constant_like(g, x, kind == TN_REDUCE_MAX ? -INFINITY : INFINITY);
  const int bits = 8 * (int)tn_dtype_size(dtype);
  const bool is_signed = tn_dtype_class(dtype) == TN_CLASS_SIGNED;
  const uint64_t ones = ~(uint64_t)0 >> (64 - bits + is_signed);
  const int64_t most = (int64_t)ones, least = is_signed ? -most - 1 : 0;
  const tn_node_t* value = tn_constant_int(g, dtype, kind == TN_REDUCE_MAX ? least : most);
  return tn_broadcast_to(g, value, tn_rank(x), x->types[0].dims);
}

// x, dim, index, src or value, *, reduce
tn_status_t tn_lower_scatter(tn_lowering_t* l) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *index = tn_arg_tensor(l, 2);
  if (!index) return TN_DECLINE("%s: operand is missing", l->op->name);
  const bool is_value = l->arg_count > 3 && l->args[3].kind == TN_VALUE_SCALAR;
  const tn_node_t* source = is_value
                                ? tn_broadcast_to(l->graph, tn_arg_scalar(l, 3, tn_dtype_of(x)),
                                                  tn_rank(index), index->types[0].dims)
                                : tn_arg_tensor(l, 3);
  if (l->arg_count <= 4 || tn_arg_is_none(l, 4)) return scatter(l, source, TN_REDUCE_ASSIGN);
  const char* word = tn_arg_string(l, 4, "");
  const tn_reduce_kind_t kind = reduce_kind(word, tn_dtype_of(x));
  if (strcmp(word, "add") != 0 && strcmp(word, "multiply") != 0)
    return TN_DECLINE("reduce argument must be either add or multiply.");
  return scatter(l, source, kind);
}

tn_status_t tn_lower_scatter_add(tn_lowering_t* l) {
  const bool is_bool = tn_dtype_of(tn_arg_tensor(l, 0)) == TN_BOOL;
  return scatter(l, tn_arg_tensor(l, 3), is_bool ? TN_REDUCE_OR : TN_REDUCE_SUM);
}

// sum / count, rounded towards minus infinity on integers; counts are positive.
static const tn_node_t* mean_of(tn_lowering_t* l, const tn_node_t* sum, const tn_node_t* count) {
  tn_graph_t* g = l->graph;
  const tn_node_t* quotient = tn_binary(g, TN_OP_DIV, sum, count);
  if (!quotient || tn_dtype_class(tn_dtype_of(sum)) != TN_CLASS_SIGNED) return quotient;
  const tn_node_t* rest = tn_binary(g, TN_OP_REM, sum, count);
  const tn_node_t* is_below = tn_compare(g, TN_LT, rest, tn_constant_like(g, rest, 0.0));
  return tn_binary(g, TN_OP_SUB, quotient, tn_convert(g, is_below, tn_dtype_of(sum)));
}

// |kind| over the elements that come to one place, with the input's own or without.
static tn_status_t reduce_into(tn_lowering_t* l, const scattering_t* s, tn_reduce_kind_t kind,
                               bool is_mean, bool includes_self) {
  tn_graph_t* g = l->graph;
  const tn_dtype_t dtype = tn_dtype_of(s->self);
  const bool keeps_dtype = kind == TN_REDUCE_MAX || kind == TN_REDUCE_MIN;
  const tn_dtype_t work = keeps_dtype ? dtype : tn_opmath_dtype(dtype);
  const tn_node_t *x = tn_convert(g, s->x, work), *source = tn_convert(g, s->source, work);
  const tn_node_t* start = x;
  if (!includes_self)
    start = scatter_into(l, s, x, neutral_like(l, source, kind), TN_REDUCE_ASSIGN);
  const tn_node_t* y = scatter_into(l, s, start, source, kind);
  if (is_mean) {
    const tn_node_t *one = tn_constant_like(g, x, 1.0), *each = tn_constant_like(g, source, 1.0);
    const tn_node_t* from = one;
    if (!includes_self)
      from = scatter_into(l, s, one, tn_constant_like(g, source, 0.0), TN_REDUCE_ASSIGN);
    y = mean_of(l, y, scatter_into(l, s, from, each, TN_REDUCE_SUM));
  }
  return return_like(l, tn_convert(g, y, dtype), s->self);
}

// x, dim, index, src, reduce, *, include_self
tn_status_t tn_lower_scatter_reduce(tn_lowering_t* l) {
  const char* word = tn_arg_string(l, 4, "");
  const tn_dtype_t dtype = tn_dtype_of(tn_arg_tensor(l, 0));
  const bool is_mean = strcmp(word, "mean") == 0, includes_self = tn_arg_bool(l, 5, true);
  const tn_reduce_kind_t kind = reduce_kind(is_mean ? "sum" : word, dtype);
  if (kind == TN_REDUCE_ASSIGN || strcmp(word, "add") == 0 || strcmp(word, "multiply") == 0 ||
      (is_mean && dtype == TN_BOOL))
    return TN_DECLINE("%s with '%s'", l->op->name, word);
  scattering_t s;
  TN_TRY(read_scattering(l, tn_arg_tensor(l, 3), &s));
  if (s.is_untouched) return return_like(l, s.self, s.self);
  return reduce_into(l, &s, kind, is_mean, includes_self);
}

// x, dim, index, source, reduce, *, include_self
tn_status_t tn_lower_index_reduce(tn_lowering_t* l) {
  const char* word = tn_arg_string(l, 4, "");
  const tn_node_t *x = tn_arg_tensor(l, 0), *source = tn_arg_tensor(l, 3);
  const bool is_mean = strcmp(word, "mean") == 0;
  const tn_reduce_kind_t kind = reduce_kind(is_mean ? "sum" : word, tn_dtype_of(x));
  if (kind == TN_REDUCE_ASSIGN || (!is_mean && kind == TN_REDUCE_SUM) ||
      strcmp(word, "multiply") == 0 || tn_dtype_of(x) == TN_BOOL ||
      tn_dtype_is_complex(tn_dtype_of(x)))
    return TN_DECLINE("%s with '%s'", l->op->name, word);
  if ((tn_rank(x) == 0) != (tn_rank(source) == 0))
    return TN_DECLINE("%s: rank of the source", l->op->name);
  scattering_t s;
  TN_TRY(read_rows(l, source, &s));
  return reduce_into(l, &s, kind, is_mean, tn_arg_bool(l, 5, true));
}

// x, mask, source: true places take the source's elements in order.
tn_status_t tn_lower_masked_scatter(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *x = tn_arg_tensor(l, 0), *mask = tn_arg_tensor(l, 1),
                  *source = tn_arg_tensor(l, 2);
  if (!x || !mask || !source || tn_dtype_of(mask) != TN_BOOL)
    return TN_DECLINE("masked_scatter_ only supports boolean masks");
  if (tn_dtype_of(source) != tn_dtype_of(x))
    return TN_DECLINE("%s: expected self and source to have same dtypes", l->op->name);
  const tn_type_t type = tn_broadcast_type(l, x, mask);
  x = tn_broadcast_to(g, x, type.rank, type.dims);
  const int64_t count = tn_type_element_count(&type);
  mask = tn_reshape(g, tn_broadcast_to(g, mask, type.rank, type.dims), 1, &count);
  int64_t available = tn_type_element_count(&source->types[0]);
  const tn_node_t* place = tn_convert(g, mask, TN_I64);
  if (available == 0) {  // one element that a false place may read, and no true one
    available = 1;
    source = tn_constant_double(g, tn_dtype_of(x), 0.0);
  } else {
    place = tn_scan(g, TN_REDUCE_SUM, place, 0, false, true);
    if (!place) return tn_graph_status(g);
    place = tn_select(g, mask, place, tn_constant_like(g, place, 0.0));
  }
  source = tn_reshape(g, source, 1, &available);
  const tn_node_t* taken = tn_take(g, source, place, 0, TN_BOUNDS_ERROR);
  const tn_node_t* y = tn_select(g, mask, taken, tn_reshape(g, x, 1, &count));
  tn_return(l, tn_reshape(g, y, type.rank, type.dims));
  return TN_OK;
}
