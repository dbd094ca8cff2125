// LSTM and GRU cells after their matrix products, and their gradients. Gates stand side by side in the last dimension.
#include "aten/lowering.h"

static const tn_node_t* binary(tn_lowering_t* l, tn_op_t op, const tn_node_t* x,
                               const tn_node_t* y) {
  return tn_binary(l->graph, op, x, y);
}
static const tn_node_t* add(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* y) {
  return binary(l, TN_OP_ADD, x, y);
}
static const tn_node_t* sub(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* y) {
  return binary(l, TN_OP_SUB, x, y);
}
static const tn_node_t* mul(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* y) {
  return binary(l, TN_OP_MUL, x, y);
}

// 1 - x
static const tn_node_t* rest(tn_lowering_t* l, const tn_node_t* x) {
  return sub(l, tn_constant_like(l->graph, x, 1.0), x);
}

// Gate |index| of |count| in [n, count * h].
static const tn_node_t* gate(tn_lowering_t* l, const tn_node_t* x, int index, int count) {
  if (!x) return NULL;
  const int64_t h = tn_dim(x, 1) / count;
  return tn_slice_dim(l->graph, x, 1, index * h, (index + 1) * h, 1);
}

static const tn_node_t* with_bias(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* bias) {
  return bias && x ? add(l, x, tn_broadcast_to(l->graph, bias, tn_rank(x), x->types[0].dims)) : x;
}

static tn_status_t check_gates(tn_lowering_t* l, const tn_node_t* x, int count) {
  if (!x || tn_rank(x) != 2 || tn_dim(x, 1) % count || !tn_dtype_is_float(tn_dtype_of(x)))
    return TN_DECLINE("%s: gates of shape [n, %d * hidden] expected", l->op->name, count);
  return TN_OK;
}

static const tn_node_t* wide(tn_lowering_t* l, const tn_node_t* x) {
  return x ? tn_convert(l->graph, x, tn_opmath_dtype(tn_dtype_of(x))) : NULL;
}

// input_gates, hidden_gates, cx, input_bias, hidden_bias -> hy, cy, workspace (the four gates after activation)
tn_status_t tn_lower_lstm_cell(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *input = tn_arg_tensor(l, 0), *hidden = tn_arg_tensor(l, 1),
                  *cx = tn_arg_tensor(l, 2);
  TN_TRY(check_gates(l, input, 4));
  TN_TRY(check_gates(l, hidden, 4));
  const tn_dtype_t dtype = tn_dtype_of(input);
  const tn_node_t* gates = add(l, with_bias(l, wide(l, input), wide(l, tn_arg_tensor(l, 3))),
                               with_bias(l, wide(l, hidden), wide(l, tn_arg_tensor(l, 4))));
  const tn_node_t* in_gate = tn_unary(g, TN_OP_LOGISTIC, gate(l, gates, 0, 4));
  const tn_node_t* forget = tn_unary(g, TN_OP_LOGISTIC, gate(l, gates, 1, 4));
  const tn_node_t* cell = tn_unary(g, TN_OP_TANH, gate(l, gates, 2, 4));
  const tn_node_t* out_gate = tn_unary(g, TN_OP_LOGISTIC, gate(l, gates, 3, 4));
  const tn_node_t* cy = add(l, mul(l, forget, wide(l, cx)), mul(l, in_gate, cell));
  const tn_node_t* hy = mul(l, out_gate, tn_unary(g, TN_OP_TANH, cy));
  const tn_node_t* parts[] = {in_gate, forget, cell, out_gate};
  tn_return(l, tn_convert(g, hy, dtype));
  tn_return(l, tn_convert(g, cy, dtype));
  tn_return(l, tn_convert(g, tn_concat(g, 4, parts, 1), dtype));
  return TN_OK;
}

// grad_hy, grad_cy, cx, cy, workspace, has_bias -> grad_gates, grad_cx, grad_bias
tn_status_t tn_lower_lstm_cell_backward(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *grad_hy = wide(l, tn_arg_tensor(l, 0)), *grad_cy = wide(l, tn_arg_tensor(l, 1)),
                  *cx = wide(l, tn_arg_tensor(l, 2)), *cy = wide(l, tn_arg_tensor(l, 3)),
                  *workspace = tn_arg_tensor(l, 4);
  TN_TRY(check_gates(l, workspace, 4));
  const tn_dtype_t dtype = tn_dtype_of(workspace);
  const tn_node_t* gates = wide(l, workspace);
  const tn_node_t *i = gate(l, gates, 0, 4), *f = gate(l, gates, 1, 4), *c = gate(l, gates, 2, 4),
                  *o = gate(l, gates, 3, 4);
  const tn_node_t* tanh_cy = tn_unary(g, TN_OP_TANH, cy);
  const tn_node_t* d_cell = grad_cy;
  const tn_node_t* d_out = tn_constant_like(g, o, 0.0);
  if (grad_hy) {
    const tn_node_t* through = mul(l, mul(l, grad_hy, o), rest(l, mul(l, tanh_cy, tanh_cy)));
    d_cell = d_cell ? add(l, d_cell, through) : through;
    d_out = mul(l, mul(l, grad_hy, tanh_cy), mul(l, o, rest(l, o)));
  }
  if (!d_cell) return TN_DECLINE("%s: no gradient given", l->op->name);
  const tn_node_t* parts[] = {mul(l, mul(l, d_cell, c), mul(l, i, rest(l, i))),
                              mul(l, mul(l, d_cell, cx), mul(l, f, rest(l, f))),
                              mul(l, mul(l, d_cell, i), rest(l, mul(l, c, c))), d_out};
  const tn_node_t* grad_gates = tn_concat(g, 4, parts, 1);
  tn_return(l, tn_convert(g, grad_gates, dtype));
  tn_return(l, tn_convert(g, mul(l, d_cell, f), dtype));
  const int64_t rows = 0;
  if (tn_arg_bool(l, 5, false)) {
    tn_return(l, tn_convert(g, tn_reduce(g, TN_REDUCE_SUM, grad_gates, 1, &rows), dtype));
  } else {
    tn_return_none(l);
  }
  return TN_OK;
}

// input_gates, hidden_gates, hx, input_bias, hidden_bias -> hy, workspace (r, z, n, hx, hidden part of n with bias)
tn_status_t tn_lower_gru_cell(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *input = tn_arg_tensor(l, 0), *hidden = tn_arg_tensor(l, 1),
                  *hx = wide(l, tn_arg_tensor(l, 2));
  TN_TRY(check_gates(l, input, 3));
  TN_TRY(check_gates(l, hidden, 3));
  const tn_dtype_t dtype = tn_dtype_of(input);
  const tn_node_t* x = with_bias(l, wide(l, input), wide(l, tn_arg_tensor(l, 3)));
  const tn_node_t* h = with_bias(l, wide(l, hidden), wide(l, tn_arg_tensor(l, 4)));
  const tn_node_t* r = tn_unary(g, TN_OP_LOGISTIC, add(l, gate(l, x, 0, 3), gate(l, h, 0, 3)));
  const tn_node_t* z = tn_unary(g, TN_OP_LOGISTIC, add(l, gate(l, x, 1, 3), gate(l, h, 1, 3)));
  const tn_node_t* hidden_new = gate(l, h, 2, 3);
  const tn_node_t* n = tn_unary(g, TN_OP_TANH, add(l, gate(l, x, 2, 3), mul(l, r, hidden_new)));
  const tn_node_t* hy = add(l, n, mul(l, z, sub(l, hx, n)));
  const tn_node_t* parts[] = {r, z, n, hx, hidden_new};
  tn_return(l, tn_convert(g, hy, dtype));
  tn_return(l, tn_convert(g, tn_concat(g, 5, parts, 1), dtype));
  return TN_OK;
}

// grad_hy, workspace, has_bias -> grad_input_gates, grad_hidden_gates, grad_hx, grad_input_bias, grad_hidden_bias
tn_status_t tn_lower_gru_cell_backward(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *grad = wide(l, tn_arg_tensor(l, 0)), *workspace = tn_arg_tensor(l, 1);
  TN_TRY(check_gates(l, workspace, 5));
  const tn_dtype_t dtype = tn_dtype_of(workspace);
  const tn_node_t* saved = wide(l, workspace);
  const tn_node_t *r = gate(l, saved, 0, 5), *z = gate(l, saved, 1, 5), *n = gate(l, saved, 2, 5),
                  *hx = gate(l, saved, 3, 5), *hidden_new = gate(l, saved, 4, 5);
  const tn_node_t* d_n = mul(l, mul(l, grad, rest(l, z)), rest(l, mul(l, n, n)));
  const tn_node_t* d_z = mul(l, mul(l, grad, sub(l, hx, n)), mul(l, z, rest(l, z)));
  const tn_node_t* d_r = mul(l, mul(l, d_n, hidden_new), mul(l, r, rest(l, r)));
  const tn_node_t *input_parts[] = {d_r, d_z, d_n}, *hidden_parts[] = {d_r, d_z, mul(l, d_n, r)};
  const tn_node_t *d_input = tn_concat(g, 3, input_parts, 1),
                  *d_hidden = tn_concat(g, 3, hidden_parts, 1);
  tn_return(l, tn_convert(g, d_input, dtype));
  tn_return(l, tn_convert(g, d_hidden, dtype));
  tn_return(l, tn_convert(g, mul(l, grad, z), dtype));
  const int64_t rows = 0;
  if (tn_arg_bool(l, 2, false)) {
    tn_return(l, tn_convert(g, tn_reduce(g, TN_REDUCE_SUM, d_input, 1, &rows), dtype));
    tn_return(l, tn_convert(g, tn_reduce(g, TN_REDUCE_SUM, d_hidden, 1, &rows), dtype));
  } else {
    tn_return_none(l);
    tn_return_none(l);
  }
  return TN_OK;
}
