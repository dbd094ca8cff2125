// Sorting and selecting along one dimension.
#include "aten/lowering.h"

static tn_status_t sort(tn_lowering_t* l, int dim_index) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (!x || tn_dtype_is_complex(dtype)) return TN_DECLINE("sort of %s", tn_dtype_name(dtype));
  const int dim = tn_wrap_dim(l, tn_arg_int(l, dim_index, -1), tn_rank(x));
  const bool descending = tn_arg_bool(l, dim_index + 1, false);
  if (tn_rank(x) == 0) {
    tn_return(l, x);
    tn_return(l, tn_constant_int(g, TN_I64, 0));
    return TN_OK;
  }
  tn_type_t type = x->types[0];
  type.dtype = TN_I64;
  const tn_node_t* operands[] = {dtype == TN_BOOL ? tn_convert(g, x, TN_U8) : x,
                                 tn_iota(g, &type, dim)};
  const tn_node_t* y = tn_sort(g, 2, operands, dim, descending);
  tn_return(l, tn_convert(g, tn_result(g, y, 0), dtype));
  tn_return(l, tn_result(g, y, 1));
  return TN_OK;
}
// x, dim, descending
tn_status_t tn_lower_sort(tn_lowering_t* l) { return sort(l, 1); }
// x, *, stable, dim, descending
tn_status_t tn_lower_sort_stable(tn_lowering_t* l) { return sort(l, 2); }

// x, k, dim, largest, sorted: always sorted
tn_status_t tn_lower_topk(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int rank = tn_rank(x), dim = tn_wrap_dim(l, tn_arg_int(l, 2, -1), rank);
  const int64_t k = tn_arg_int(l, 1, 0);
  const tn_dtype_t dtype = tn_dtype_of(x);
  if (rank == 0 || k < 0 || k > tn_dim(x, dim) || tn_dtype_is_complex(dtype) || dtype == TN_BOOL)
    return TN_DECLINE("selected index k out of range");
  int64_t permutation[TN_MAX_RANK];
  for (int d = 0; d < rank; ++d) permutation[d] = d == dim ? rank - 1 : d == rank - 1 ? dim : d;
  const tn_node_t* y = tn_topk(g, tn_transpose(g, x, permutation), k, tn_arg_bool(l, 3, true));
  tn_return(l, tn_transpose(g, tn_result(g, y, 0), permutation));
  tn_return(l, tn_transpose(g, tn_result(g, y, 1), permutation));
  return TN_OK;
}
