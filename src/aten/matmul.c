// Matrix products. f16 and bf16 products accumulate in f32 and are rounded once, additions of a bias included.
#include <string.h>

#include "aten/lowering.h"

static tn_status_t check_dtypes(tn_lowering_t* l, const tn_node_t* a, const tn_node_t* b) {
  if (!a || !b) return TN_DECLINE("%s: missing operand", l->op->name);
  if (tn_dtype_of(a) != tn_dtype_of(b))
    return TN_DECLINE("%s: expected operands of the same dtype", l->op->name);
  if (tn_dtype_of(a) == TN_BOOL) return TN_DECLINE("%s of bool", l->op->name);
  return TN_OK;
}

// [.., m, k] x [.., k, n] in the accumulation dtype.
static tn_status_t product(tn_lowering_t* l, const tn_node_t* a, const tn_node_t* b,
                           const tn_node_t** out) {
  TN_TRY(check_dtypes(l, a, b));
  const int rank = tn_rank(a);
  if (rank < 2 || rank != tn_rank(b) || tn_dim(a, rank - 1) != tn_dim(b, rank - 2))
    return TN_DECLINE("%s: shapes cannot be multiplied", l->op->name);
  int64_t batch[TN_MAX_RANK], lhs = rank - 1, rhs = rank - 2;
  for (int d = 0; d < rank - 2; ++d) {
    batch[d] = d;
    if (tn_dim(a, d) != tn_dim(b, d)) return TN_DECLINE("%s: batch sizes differ", l->op->name);
  }
  *out = tn_dot_general(l->graph, a, b, rank - 2, batch, batch, 1, &lhs, &rhs,
                        tn_opmath_dtype(tn_dtype_of(a)));
  return TN_OK;
}

tn_status_t tn_lower_mm(tn_lowering_t* l) {
  const tn_node_t *a = tn_arg_tensor(l, 0), *b = tn_arg_tensor(l, 1), *y = NULL;
  if (tn_rank(a) != (l->op->name[0] == 'b' ? 3 : 2))
    return TN_DECLINE("%s: rank of the operands", l->op->name);
  TN_TRY(product(l, a, b, &y));
  tn_return(l, tn_convert(l->graph, y, tn_dtype_of(a)));
  return TN_OK;
}

static const tn_node_t* as_column(tn_lowering_t* l, const tn_node_t* x) {
  const int64_t dims[] = {tn_dim(x, 0), 1};
  return tn_reshape(l->graph, x, 2, dims);
}

tn_status_t tn_lower_mv(tn_lowering_t* l) {
  const tn_node_t *a = tn_arg_tensor(l, 0), *x = tn_arg_tensor(l, 1), *y = NULL;
  if (tn_rank(a) != 2 || tn_rank(x) != 1) return TN_DECLINE("mv: expected a matrix and a vector");
  TN_TRY(product(l, a, as_column(l, x), &y));
  const int64_t m = tn_dim(a, 0);
  tn_return(l, tn_convert(l->graph, tn_reshape(l->graph, y, 1, &m), tn_dtype_of(a)));
  return TN_OK;
}

tn_status_t tn_lower_dot(tn_lowering_t* l) {
  const tn_node_t *a = tn_arg_tensor(l, 0), *b = tn_arg_tensor(l, 1);
  TN_TRY(check_dtypes(l, a, b));
  if (tn_rank(a) != 1 || tn_rank(b) != 1 || tn_dim(a, 0) != tn_dim(b, 0) ||
      tn_dtype_is_complex(tn_dtype_of(a)))
    return TN_DECLINE("%s: 1D tensors of one size expected", l->op->name);
  const int64_t zero = 0;
  const tn_node_t* y = tn_dot_general(l->graph, a, b, 0, NULL, NULL, 1, &zero, &zero,
                                      tn_opmath_dtype(tn_dtype_of(a)));
  tn_return(l, tn_convert(l->graph, y, tn_dtype_of(a)));
  return TN_OK;
}

// beta * self + alpha * y, computed in y's dtype. beta 0 ignores self, NaNs included.
static tn_status_t add_scaled(tn_lowering_t* l, const tn_node_t* self, const tn_node_t* y,
                              int beta_index, int alpha_index) {
  tn_graph_t* g = l->graph;
  if (!self || !y) return tn_graph_status(g);
  const tn_dtype_t dtype = tn_dtype_of(self), opmath = tn_dtype_of(y);
  const int rank = tn_rank(y), lead = rank - tn_rank(self);
  if (lead < 0) return TN_DECLINE("%s: the added tensor has too many dimensions", l->op->name);
  for (int d = lead; d < rank; ++d)
    if (tn_dim(self, d - lead) != 1 && tn_dim(self, d - lead) != tn_dim(y, d))
      return TN_DECLINE("%s: the added tensor cannot be expanded", l->op->name);
  const double beta = tn_arg_double(l, beta_index, 1.0), alpha = tn_arg_double(l, alpha_index, 1.0);
  if (alpha != 1.0)
    y = tn_binary(
        g, TN_OP_MUL, y,
        tn_broadcast_to(g, tn_arg_scalar(l, alpha_index, opmath), rank, y->types[0].dims));
  if (beta != 0.0 && y) {
    const tn_node_t* addend =
        tn_broadcast_to(g, tn_convert(g, self, opmath), rank, y->types[0].dims);
    if (beta != 1.0)
      addend = tn_binary(
          g, TN_OP_MUL, addend,
          tn_broadcast_to(g, tn_arg_scalar(l, beta_index, opmath), rank, y->types[0].dims));
    y = tn_binary(g, TN_OP_ADD, y, addend);
  }
  tn_return(l, tn_convert(g, y, dtype));
  return TN_OK;
}

// addmm, baddbmm: self, a, b, *, beta, alpha
tn_status_t tn_lower_addmm(tn_lowering_t* l) {
  const tn_node_t *self = tn_arg_tensor(l, 0), *a = tn_arg_tensor(l, 1), *b = tn_arg_tensor(l, 2),
                  *y = NULL;
  if (tn_rank(a) != (l->op->name[0] == 'b' ? 3 : 2))
    return TN_DECLINE("%s: rank of the operands", l->op->name);
  if (tn_dtype_of(self) != tn_dtype_of(a))
    return TN_DECLINE("%s: expected operands of the same dtype", l->op->name);
  TN_TRY(product(l, a, b, &y));
  return add_scaled(l, self, y, 3, 4);
}

tn_status_t tn_lower_addmv(tn_lowering_t* l) {
  const tn_node_t *self = tn_arg_tensor(l, 0), *a = tn_arg_tensor(l, 1), *x = tn_arg_tensor(l, 2),
                  *y = NULL;
  if (tn_rank(a) != 2 || tn_rank(x) != 1 || tn_dtype_of(self) != tn_dtype_of(a))
    return TN_DECLINE("addmv: expected a matrix and a vector of one dtype");
  TN_TRY(product(l, a, as_column(l, x), &y));
  const int64_t m = tn_dim(a, 0);
  return add_scaled(l, self, tn_reshape(l->graph, y, 1, &m), 3, 4);
}

tn_status_t tn_lower_addbmm(tn_lowering_t* l) {
  const tn_node_t *self = tn_arg_tensor(l, 0), *a = tn_arg_tensor(l, 1), *b = tn_arg_tensor(l, 2);
  TN_TRY(check_dtypes(l, a, b));
  if (tn_rank(a) != 3 || tn_rank(b) != 3 || tn_dim(a, 0) != tn_dim(b, 0) ||
      tn_dim(a, 2) != tn_dim(b, 1) || tn_dtype_of(self) != tn_dtype_of(a))
    return TN_DECLINE("addbmm: shapes cannot be multiplied");
  // The batch is summed too: one long k of batch times k.
  const int64_t permutation[] = {1, 0, 2}, k = tn_dim(a, 0) * tn_dim(a, 2);
  const int64_t lhs[] = {tn_dim(a, 1), k}, rhs[] = {k, tn_dim(b, 2)}, last = 1, first = 0;
  a = tn_reshape(l->graph, tn_transpose(l->graph, a, permutation), 2, lhs);
  b = tn_reshape(l->graph, b, 2, rhs);
  const tn_node_t* y = tn_dot_general(l->graph, a, b, 0, NULL, NULL, 1, &last, &first,
                                      tn_opmath_dtype(tn_dtype_of(a)));
  return add_scaled(l, self, y, 3, 4);
}

// self, a, b, *, beta, alpha; in bool the sum is or and the product and
tn_status_t tn_lower_addr(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *self = tn_arg_tensor(l, 0), *a = tn_arg_tensor(l, 1), *b = tn_arg_tensor(l, 2);
  const tn_dtype_t dtype = tn_dtype_of(a), opmath = tn_opmath_dtype(dtype);
  if (tn_rank(a) != 1 || tn_rank(b) != 1 || tn_dtype_of(self) != dtype || tn_dtype_of(b) != dtype)
    return TN_DECLINE("addr: expected vectors of one dtype");
  const int64_t dims[] = {tn_dim(a, 0), tn_dim(b, 0)};
  const tn_node_t* x = tn_broadcast_to(g, as_column(l, tn_convert(g, a, opmath)), 2, dims);
  const tn_node_t* y = tn_broadcast_to(g, tn_convert(g, b, opmath), 2, dims);
  if (dtype != TN_BOOL) {
    if (!tn_dtype_is_float(dtype) && !tn_dtype_is_complex(dtype) &&
        (tn_arg_is_number_of(l, 3, TN_F64) || tn_arg_is_number_of(l, 4, TN_F64)))
      return TN_DECLINE(
          "For integral input tensors, beta and alpha must not be floating point numbers.");
    if (tn_arg_is_number_of(l, 3, TN_BOOL) || tn_arg_is_number_of(l, 4, TN_BOOL))
      return TN_DECLINE("Boolean beta and alpha only supported for Boolean results.");
    return add_scaled(l, self, tn_binary(g, TN_OP_MUL, x, y), 3, 4);
  }
  const bool has_self = tn_arg_double(l, 3, 1.0) != 0.0,
             has_product = tn_arg_double(l, 4, 1.0) != 0.0;
  const tn_node_t* value = tn_broadcast_to(g, tn_constant_int(g, TN_BOOL, 0), 2, dims);
  if (has_product) value = tn_binary(g, TN_OP_AND, x, y);
  if (tn_rank(self) > 2) return TN_DECLINE("addr: the added tensor has too many dimensions");
  if (has_self) value = tn_binary(g, TN_OP_OR, value, tn_broadcast_to(g, self, 2, dims));
  tn_return(l, value);
  return TN_OK;
}

// ---- linear -------------------------------------------------------------------------------------------------

// x [.., in] times weight [out, in] transposed, without a copy of either.
tn_status_t tn_lower_linear(tn_lowering_t* l) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *weight = tn_arg_tensor(l, 1),
                  *bias = tn_arg_tensor(l, 2);
  TN_TRY(check_dtypes(l, x, weight));
  if (tn_rank(x) < 1 || tn_rank(weight) != 2 || tn_dim(x, tn_rank(x) - 1) != tn_dim(weight, 1))
    return TN_DECLINE("linear: shapes cannot be multiplied");
  if (bias && (tn_rank(bias) != 1 || tn_dim(bias, 0) != tn_dim(weight, 0) ||
               tn_dtype_of(bias) != tn_dtype_of(x)))
    return TN_DECLINE("linear: bias");
  const int64_t lhs = tn_rank(x) - 1, rhs = 1;
  const tn_dtype_t opmath = tn_opmath_dtype(tn_dtype_of(x));
  const tn_node_t* y = tn_dot_general(l->graph, x, weight, 0, NULL, NULL, 1, &lhs, &rhs, opmath);
  if (bias && y)
    y = tn_binary(l->graph, TN_OP_ADD, y,
                  tn_broadcast_to(l->graph, tn_convert(l->graph, bias, opmath), tn_rank(y),
                                  y->types[0].dims));
  tn_return(l, tn_convert(l->graph, y, tn_dtype_of(x)));
  return TN_OK;
}

// x, grad, weight, mask[3] -> dx, dweight, dbias
tn_status_t tn_lower_linear_backward(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *x = tn_arg_tensor(l, 0), *grad = tn_arg_tensor(l, 1),
                  *weight = tn_arg_tensor(l, 2);
  const int64_t* mask;
  if (tn_arg_ints(l, 3, &mask) != 3) return TN_DECLINE("linear_backward: mask");
  TN_TRY(check_dtypes(l, x, weight));
  TN_TRY(check_dtypes(l, x, grad));
  const tn_dtype_t dtype = tn_dtype_of(x), opmath = tn_opmath_dtype(dtype);
  const int rank = tn_rank(grad);
  int64_t lead[TN_MAX_RANK];
  for (int d = 0; d < rank - 1; ++d) lead[d] = d;
  const int64_t last = rank - 1, first = 0;
  if (mask[0]) {
    tn_return(
        l, tn_convert(g, tn_dot_general(g, grad, weight, 0, NULL, NULL, 1, &last, &first, opmath),
                      dtype));
  } else {
    tn_return_none(l);
  }
  if (mask[1]) {
    tn_return(l,
              tn_convert(g, tn_dot_general(g, grad, x, 0, NULL, NULL, rank - 1, lead, lead, opmath),
                         dtype));
  } else {
    tn_return_none(l);
  }
  if (mask[2]) {
    tn_return(l, rank == 1 ? grad : tn_reduce(g, TN_REDUCE_SUM, grad, rank - 1, lead));
  } else {
    tn_return_none(l);
  }
  return TN_OK;
}
