// Fused optimizer steps: every tensor's update as one chain of elementwise operations.
#include "aten/lowering.h"

typedef struct step {
  tn_lowering_t* l;
  const tn_node_t* like;  // the parameter in the compute type
} step_t;

static const tn_node_t* spread(const step_t* s, const tn_node_t* scalar) {
  return s->like ? tn_broadcast_to(s->l->graph, scalar, tn_rank(s->like), s->like->types[0].dims)
                 : NULL;
}
static const tn_node_t* binary(const step_t* s, tn_op_t op, const tn_node_t* x,
                               const tn_node_t* y) {
  return tn_binary(s->l->graph, op, x, y);
}
static const tn_node_t* add(const step_t* s, const tn_node_t* x, const tn_node_t* y) {
  return binary(s, TN_OP_ADD, x, y);
}
static const tn_node_t* sub(const step_t* s, const tn_node_t* x, const tn_node_t* y) {
  return binary(s, TN_OP_SUB, x, y);
}
static const tn_node_t* mul(const step_t* s, const tn_node_t* x, const tn_node_t* y) {
  return binary(s, TN_OP_MUL, x, y);
}
static const tn_node_t* divide(const step_t* s, const tn_node_t* x, const tn_node_t* y) {
  return binary(s, TN_OP_DIV, x, y);
}

static const tn_node_t* wide(tn_lowering_t* l, const tn_node_t* x, tn_dtype_t dtype) {
  return tn_convert(l->graph, x, dtype);
}

// Argument |index| (number or tensor of one element) as a rank-0 node of |dtype|; stays symbolic.
static const tn_node_t* number(tn_lowering_t* l, int index, tn_dtype_t dtype) {
  const tn_node_t* x = tn_convert(l->graph, tn_arg_node(l, index), dtype);
  return x && tn_rank(x) != 0 ? tn_reshape(l->graph, x, 0, NULL) : x;
}

static const tn_node_t* one_minus(tn_lowering_t* l, const tn_node_t* x) {
  return tn_binary(l->graph, TN_OP_SUB, tn_constant_like(l->graph, x, 1.0), x);
}

// What a step that met an infinite gradient keeps: |old| where found_inf is set.
static const tn_node_t* unless_found(const step_t* s, const tn_node_t* found_inf,
                                     const tn_node_t* old, const tn_node_t* updated) {
  if (!found_inf || !old) return updated;
  tn_graph_t* g = s->l->graph;
  const tn_node_t* flag = tn_rank(found_inf) ? tn_reshape(g, found_inf, 0, NULL) : found_inf;
  flag = tn_compare(g, TN_EQ, flag, tn_constant_like(g, flag, 1.0));
  flag = tn_broadcast_to(g, flag, tn_rank(old), old->types[0].dims);
  return tn_select(g, flag, old, updated);
}

// self[], grads[], exp_avgs[], exp_avg_sqs[], max_exp_avg_sqs[], state_steps[], lr, beta1, beta2, weight_decay, eps,
// amsgrad, maximize, grad_scale, found_inf -> the first five lists
static tn_status_t adam(tn_lowering_t* l, bool is_decoupled) {
  tn_graph_t* g = l->graph;
  const int count = tn_arg_list_count(l, 0);
  const bool amsgrad = tn_arg_bool(l, 11, false), maximize = tn_arg_bool(l, 12, false);
  const bool has_decay = tn_arg_double(l, 9, 0.0) != 0.0;
  const tn_node_t *grad_scale = tn_arg_tensor(l, 13), *found_inf = tn_arg_tensor(l, 14);
  const tn_node_t** lists = tn_graph_alloc(g, sizeof(*lists) * 5 * (size_t)(count + 1));
  if (!lists) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "%s: out of host memory", l->op->name);
  for (int i = 0; i < count; ++i) {
    const tn_node_t *old_param = tn_arg_list_tensor(l, 0, i),
                    *old_grad = tn_arg_list_tensor(l, 1, i), *old_avg = tn_arg_list_tensor(l, 2, i),
                    *old_sq = tn_arg_list_tensor(l, 3, i),
                    *old_max = amsgrad ? tn_arg_list_tensor(l, 4, i) : NULL;
    const tn_dtype_t dtype = tn_dtype_of(old_param), opmath = tn_opmath_dtype(dtype);
    if (!tn_dtype_is_float(dtype) || tn_dtype_of(old_grad) != dtype ||
        tn_dtype_of(old_avg) != dtype)
      return TN_DECLINE("%s: parameters, gradients and states of one floating dtype", l->op->name);
    const tn_node_t* param = wide(l, old_param, opmath);
    const step_t s = {l, param};
    const tn_node_t* grad = wide(l, old_grad, opmath);
    const tn_node_t* count_node = wide(l, tn_arg_list_tensor(l, 5, i), TN_F64);
    if (count_node && tn_rank(count_node)) count_node = tn_reshape(g, count_node, 0, NULL);
    // Coefficients in double, as the host would compute them.
    const tn_node_t *lr = number(l, 6, TN_F64), *beta1 = number(l, 7, TN_F64),
                    *beta2 = number(l, 8, TN_F64), *decay = number(l, 9, TN_F64),
                    *eps = number(l, 10, TN_F64);
    if (grad_scale) {
      const tn_node_t* scale =
          wide(l, tn_rank(grad_scale) ? tn_reshape(g, grad_scale, 0, NULL) : grad_scale, opmath);
      grad = divide(&s, grad, spread(&s, scale));
    }
    const tn_node_t* scaled_grad = grad;
    if (maximize) grad = tn_unary(g, TN_OP_NEG, grad);
    if (has_decay && is_decoupled) {
      const tn_node_t* shrink = one_minus(l, tn_binary(g, TN_OP_MUL, lr, decay));
      param = mul(&s, param, spread(&s, wide(l, shrink, opmath)));
    } else if (has_decay) {
      grad = add(&s, grad, mul(&s, param, spread(&s, wide(l, decay, opmath))));
    }
    const tn_node_t *avg = wide(l, old_avg, opmath), *sq = wide(l, old_sq, opmath);
    const tn_node_t* weight1 = spread(&s, wide(l, one_minus(l, beta1), opmath));
    avg = add(&s, avg, mul(&s, weight1, sub(&s, grad, avg)));
    sq = add(&s, mul(&s, sq, spread(&s, wide(l, beta2, opmath))),
             mul(&s, mul(&s, grad, grad), spread(&s, wide(l, one_minus(l, beta2), opmath))));
    const tn_node_t* correction1 = one_minus(l, tn_binary(g, TN_OP_POW, beta1, count_node));
    const tn_node_t* correction2 =
        tn_unary(g, TN_OP_SQRT, one_minus(l, tn_binary(g, TN_OP_POW, beta2, count_node)));
    const tn_node_t* step_size = wide(l, tn_binary(g, TN_OP_DIV, lr, correction1), opmath);
    const tn_node_t* largest =
        old_max ? tn_binary(g, TN_OP_MAX, wide(l, old_max, opmath), sq) : NULL;
    const tn_node_t* root = tn_unary(g, TN_OP_SQRT, largest ? largest : sq);
    const tn_node_t* denominator =
        add(&s, divide(&s, root, spread(&s, wide(l, correction2, opmath))),
            spread(&s, wide(l, eps, opmath)));
    param = sub(&s, param, divide(&s, mul(&s, spread(&s, step_size), avg), denominator));
    lists[i] = unless_found(&s, found_inf, old_param, wide(l, param, dtype));
    lists[count + i] = unless_found(&s, found_inf, old_grad, wide(l, scaled_grad, dtype));
    lists[2 * count + i] = unless_found(&s, found_inf, old_avg, wide(l, avg, dtype));
    lists[3 * count + i] = unless_found(&s, found_inf, old_sq, wide(l, sq, dtype));
    if (old_max)
      lists[4 * count + i] = unless_found(&s, found_inf, old_max, wide(l, largest, dtype));
  }
  for (int i = 0; i < (amsgrad ? 5 : 4) * count; ++i) tn_return(l, lists[i]);
  return TN_OK;
}
tn_status_t tn_lower_fused_adam(tn_lowering_t* l) { return adam(l, false); }
tn_status_t tn_lower_fused_adamw(tn_lowering_t* l) { return adam(l, true); }

// self[], grads[], momentum_buffers[], *, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step,
// grad_scale, found_inf -> the three lists
tn_status_t tn_lower_fused_sgd(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const int count = tn_arg_list_count(l, 0), buffers = tn_arg_list_count(l, 2);
  const double momentum = tn_arg_double(l, 4, 0.0), weight_decay = tn_arg_double(l, 3, 0.0);
  const bool nesterov = tn_arg_bool(l, 7, false), maximize = tn_arg_bool(l, 8, false),
             is_first = tn_arg_bool(l, 9, false);
  const tn_node_t *grad_scale = tn_arg_tensor(l, 10), *found_inf = tn_arg_tensor(l, 11);
  const tn_node_t** lists = tn_graph_alloc(g, sizeof(*lists) * 3 * (size_t)(count + 1));
  if (!lists) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "%s: out of host memory", l->op->name);
  for (int i = 0; i < count; ++i) {
    const tn_node_t *old_param = tn_arg_list_tensor(l, 0, i),
                    *old_grad = tn_arg_list_tensor(l, 1, i),
                    *old_buffer = i < buffers ? tn_arg_list_tensor(l, 2, i) : NULL;
    const tn_dtype_t dtype = tn_dtype_of(old_param), opmath = tn_opmath_dtype(dtype);
    if (!tn_dtype_is_float(dtype) || tn_dtype_of(old_grad) != dtype)
      return TN_DECLINE("%s: parameters and gradients of one floating dtype", l->op->name);
    const tn_node_t* param = wide(l, old_param, opmath);
    const step_t s = {l, param};
    const tn_node_t* grad = wide(l, old_grad, opmath);
    if (grad_scale) {
      const tn_node_t* scale =
          wide(l, tn_rank(grad_scale) ? tn_reshape(g, grad_scale, 0, NULL) : grad_scale, opmath);
      grad = divide(&s, grad, spread(&s, scale));
    }
    const tn_node_t* scaled_grad = grad;
    if (maximize) grad = tn_unary(g, TN_OP_NEG, grad);
    if (weight_decay != 0.0) grad = add(&s, grad, mul(&s, param, spread(&s, number(l, 3, opmath))));
    const tn_node_t* buffer = NULL;
    if (momentum != 0.0 && old_buffer) {
      const tn_node_t* factor = spread(&s, number(l, 4, opmath));
      const tn_node_t* damped =
          mul(&s, grad, spread(&s, wide(l, one_minus(l, number(l, 6, TN_F64)), opmath)));
      buffer = is_first ? grad : add(&s, mul(&s, wide(l, old_buffer, opmath), factor), damped);
      grad = nesterov ? add(&s, grad, mul(&s, buffer, factor)) : buffer;
    }
    param = sub(&s, param, mul(&s, spread(&s, number(l, 5, opmath)), grad));
    lists[i] = unless_found(&s, found_inf, old_param, wide(l, param, dtype));
    lists[count + i] = unless_found(&s, found_inf, old_grad, wide(l, scaled_grad, dtype));
    if (old_buffer)
      lists[2 * count + i] =
          buffer ? unless_found(&s, found_inf, old_buffer, wide(l, buffer, dtype)) : old_buffer;
  }
  for (int i = 0; i < 2 * count + buffers; ++i) tn_return(l, lists[i]);
  return TN_OK;
}
