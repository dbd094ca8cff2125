// Tensors made from sizes and numbers.
#include <math.h>
#include <string.h>

#include "aten/index_util.h"
#include "aten/lowering.h"

static tn_status_t filled(tn_lowering_t* l, int size_index, const tn_node_t* value) {
  const int64_t* sizes;
  const int rank = tn_arg_ints(l, size_index, &sizes);
  if (rank < 0 || rank > TN_MAX_RANK) return TN_DECLINE("%s: size", l->op->name);
  for (int d = 0; d < rank; ++d)
    if (sizes[d] < 0)
      return TN_DECLINE("Trying to create tensor with negative dimension %lld",
                        (long long)sizes[d]);
  tn_return(l, tn_broadcast_to(l->graph, value, rank, sizes));
  return TN_OK;
}

// dtype a factory infers from a number
static tn_dtype_t number_dtype(const tn_value_t* value) {
  const tn_dtype_t dtype = (tn_dtype_t)value->dtype;
  return dtype == TN_F64 ? TN_F32 : dtype == TN_C128 ? TN_C64 : dtype;
}

// size, fill_value, *, dtype
tn_status_t tn_lower_full(tn_lowering_t* l) {
  return filled(l, 0, tn_arg_scalar(l, 1, tn_arg_dtype(l, 2, number_dtype(&l->args[1]))));
}
// size, *, dtype
static tn_status_t constant(tn_lowering_t* l, double value) {
  return filled(l, 0, tn_constant_double(l->graph, tn_arg_dtype(l, 1, TN_F32), value));
}
tn_status_t tn_lower_zeros(tn_lowering_t* l) { return constant(l, 0.0); }
tn_status_t tn_lower_ones(tn_lowering_t* l) { return constant(l, 1.0); }
// Undefined contents: zeros are one choice.
tn_status_t tn_lower_empty(tn_lowering_t* l) {
  const int dtype_index = strcmp(l->op->name, "empty_permuted") == 0 ? 2 : 1;
  return filled(l, 0, tn_constant_double(l->graph, tn_arg_dtype(l, dtype_index, TN_F32), 0.0));
}
// self, size[, value], *, dtype
static tn_status_t new_constant(tn_lowering_t* l, double value) {
  const tn_dtype_t dtype = tn_arg_dtype(l, 2, tn_dtype_of(tn_arg_tensor(l, 0)));
  return filled(l, 1, tn_constant_double(l->graph, dtype, value));
}
tn_status_t tn_lower_new_zeros(tn_lowering_t* l) { return new_constant(l, 0.0); }
tn_status_t tn_lower_new_ones(tn_lowering_t* l) { return new_constant(l, 1.0); }
tn_status_t tn_lower_new_full(tn_lowering_t* l) {
  return filled(l, 1, tn_arg_scalar(l, 2, tn_arg_dtype(l, 3, tn_dtype_of(tn_arg_tensor(l, 0)))));
}
tn_status_t tn_lower_scalar_tensor(tn_lowering_t* l) {
  tn_return(l, tn_arg_scalar(l, 0, tn_arg_dtype(l, 1, TN_F32)));
  return TN_OK;
}

static bool is_integer(const tn_value_t* value) {
  return value->kind != TN_VALUE_SCALAR || value->dtype <= TN_I64;
}

// Arguments |start|, |end|, |step| (-1: absent), and |dtype|. An integer dtype counts with truncated bounds, but only
// int64 derives the number of elements from them.
static tn_status_t arange(tn_lowering_t* l, int start, int end, int step, int dtype_index) {
  tn_graph_t* g = l->graph;
  const bool all_integer = (start < 0 || is_integer(&l->args[start])) &&
                           is_integer(&l->args[end]) &&
                           (step < 0 || step >= l->arg_count || is_integer(&l->args[step]));
  const tn_dtype_t dtype = tn_arg_dtype(l, dtype_index, all_integer ? TN_I64 : TN_F32);
  const bool is_whole = !tn_dtype_is_float(dtype);
  double first = start < 0 ? 0.0 : tn_arg_double(l, start, 0.0), last = tn_arg_double(l, end, 0.0);
  double by = step < 0 ? 1.0 : tn_arg_double(l, step, 1.0);
  if (dtype == TN_BOOL || tn_dtype_is_complex(dtype))
    return TN_DECLINE("arange of %s", tn_dtype_name(dtype));
  if (dtype == TN_I64) {
    first = trunc(first);
    last = trunc(last);
    by = trunc(by);
  }
  if (by == 0.0 || !isfinite(first) || !isfinite(last) || !isfinite(by) ||
      (last - first) * by < 0.0 || (is_whole && trunc(by) == 0.0))
    return TN_DECLINE("upper bound and larger bound inconsistent with step sign");
  const int64_t count = (int64_t)ceil((last - first) / by);
  const tn_type_t type = tn_type_make(is_whole ? TN_I64 : TN_F64, 1, &count);
  const tn_node_t* x = tn_iota(g, &type, 0);
  const tn_node_t *origin, *stride;
  if (is_whole) {
    origin = tn_constant_int(g, TN_I64, start < 0 ? 0 : tn_arg_int(l, start, 0));
    stride = tn_constant_int(g, TN_I64, step < 0 ? 1 : tn_arg_int(l, step, 1));
  } else {
    origin = tn_constant_double(g, TN_F64, first);
    stride = tn_constant_double(g, TN_F64, by);
  }
  x = tn_binary(g, TN_OP_MUL, x, tn_broadcast_to(g, stride, 1, &count));
  x = tn_binary(g, TN_OP_ADD, x, tn_broadcast_to(g, origin, 1, &count));
  tn_return(l, tn_convert(g, x, dtype));
  return TN_OK;
}
// end, *, dtype / start, end, *, dtype / start, end, step, *, dtype
tn_status_t tn_lower_arange_end(tn_lowering_t* l) { return arange(l, -1, 0, -1, 1); }
tn_status_t tn_lower_arange_start(tn_lowering_t* l) { return arange(l, 0, 1, -1, 2); }
tn_status_t tn_lower_arange_step(tn_lowering_t* l) { return arange(l, 0, 1, 2, 3); }

// n[, m], *, dtype
tn_status_t tn_lower_eye(tn_lowering_t* l) {
  const bool has_m = strcmp(l->op->name, "eye.m") == 0;
  const int64_t n = tn_arg_int(l, 0, 0), m = has_m ? tn_arg_int(l, 1, 0) : n;
  if (n < 0 || m < 0) return TN_DECLINE("n must be greater or equal to 0, got %lld", (long long)n);
  const int64_t dims[] = {n, m};
  const tn_type_t type = tn_type_make(TN_I64, 2, dims);
  const tn_node_t* is_diagonal =
      tn_compare(l->graph, TN_EQ, tn_iota(l->graph, &type, 0), tn_iota(l->graph, &type, 1));
  tn_return(l, tn_convert(l->graph, is_diagonal, tn_arg_dtype(l, has_m ? 2 : 1, TN_F32)));
  return TN_OK;
}

// start, end, steps, *, dtype: from the nearer end, as PyTorch. An integer dtype has truncated bounds and steps in f64.
tn_status_t tn_lower_linspace(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  double start = tn_arg_double(l, 0, 0.0), end = tn_arg_double(l, 1, 0.0);
  const int64_t steps = tn_arg_int(l, 2, 0);
  const tn_dtype_t dtype = tn_arg_dtype(l, 3, TN_F32);
  if (steps < 0 || tn_dtype_is_complex(dtype) || dtype == TN_BOOL)
    return TN_DECLINE("linspace: number of steps, or dtype");
  if (!tn_dtype_is_float(dtype)) {
    start = trunc(start);
    end = trunc(end);
    if (start != tn_scalar_to_double(dtype, tn_scalar_from_double(dtype, start)) ||
        end != tn_scalar_to_double(dtype, tn_scalar_from_double(dtype, end)))
      return TN_DECLINE("linspace: an end does not fit %s", tn_dtype_name(dtype));
  }
  const tn_type_t type = tn_type_make(TN_F64, 1, &steps);
  const double by = steps > 1 ? (end - start) / (double)(steps - 1) : 0.0;
  const tn_node_t* i = tn_iota(g, &type, 0);
  const tn_node_t* stride = tn_constant_like(g, i, by);
  const tn_node_t* low =
      tn_binary(g, TN_OP_ADD, tn_constant_like(g, i, start), tn_binary(g, TN_OP_MUL, stride, i));
  const tn_node_t* back = tn_binary(g, TN_OP_SUB, tn_constant_like(g, i, (double)(steps - 1)), i);
  const tn_node_t* high =
      tn_binary(g, TN_OP_SUB, tn_constant_like(g, i, end), tn_binary(g, TN_OP_MUL, stride, back));
  const tn_node_t* is_low = tn_compare(g, TN_LT, i, tn_constant_like(g, i, (double)(steps / 2)));
  tn_return(l, tn_convert(g, steps == 1 ? low : tn_select(g, is_low, low, high), dtype));
  return TN_OK;
}

// row, col, offset, *, dtype: positions [2, n] of a triangle, row by row. Each row of the matrix holds a run of columns;
// a running count of the runs' ends says which row a position belongs to.
static tn_status_t triangle_indices(tn_lowering_t* l, bool is_lower) {
  tn_graph_t* g = l->graph;
  const int64_t rows = tn_arg_int(l, 0, 0), columns = tn_arg_int(l, 1, 0),
                offset = tn_arg_int(l, 2, 0);
  if (rows < 0 || columns < 0)
    return TN_DECLINE("%s: row and col must be non-negative", l->op->name);
  int64_t* ends = tn_graph_alloc(g, sizeof(*ends) * (size_t)(rows + 1));
  int64_t* shifts = tn_graph_alloc(g, sizeof(*shifts) * (size_t)(rows + 1));  // column - position
  if (!ends || !shifts)
    return TN_ERROR(TN_RESOURCE_EXHAUSTED, "%s: out of host memory", l->op->name);
  int64_t count = 0;
  for (int64_t i = 0; i < rows; ++i) {
    int64_t first = is_lower ? 0 : i + offset, last = is_lower ? i + offset + 1 : columns;
    if (first < 0) first = 0;
    if (last > columns) last = columns;
    shifts[i] = first - count;
    if (last > first) count += last - first;
    ends[i] = count;
  }
  const int64_t places = count + 1, dims[] = {1, count};
  const tn_type_t place_type = tn_type_make(TN_I64, 1, &places),
                  row_type = tn_type_make(TN_I64, 1, &rows);
  const tn_node_t* marks = tn_constant_splat(g, &place_type, (tn_scalar_t){0});
  const tn_node_t* ones = tn_constant_splat(g, &row_type, tn_scalar_from_int(TN_I64, 1));
  marks = tn_put_rows(l, marks, tn_constant(g, &row_type, ends), ones, 0, TN_REDUCE_SUM,
                      TN_BOUNDS_ERROR);
  const int64_t start = 0, step = 1;
  const tn_node_t* row =
      tn_slice(g, tn_scan(g, TN_REDUCE_SUM, marks, 0, false, false), &start, &count, &step);
  const tn_type_t type = tn_type_make(TN_I64, 1, &count);
  const tn_node_t* column = tn_binary(
      g, TN_OP_ADD, tn_iota(g, &type, 0),
      rows ? tn_take(g, tn_constant(g, &row_type, shifts), row, 0, TN_BOUNDS_CLAMP) : row);
  const tn_node_t* both[] = {tn_reshape(g, row, 2, dims), tn_reshape(g, column, 2, dims)};
  tn_return(l, tn_convert(g, tn_concat(g, 2, both, 0), tn_arg_dtype(l, 3, TN_I64)));
  return TN_OK;
}
tn_status_t tn_lower_tril_indices(tn_lowering_t* l) { return triangle_indices(l, true); }
tn_status_t tn_lower_triu_indices(tn_lowering_t* l) { return triangle_indices(l, false); }
