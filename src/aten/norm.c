// Layer, RMS, group and batch norm with their gradients, as composites.
#include <string.h>

#include "aten/lowering.h"

// Operands of a composite: the fixed ones, then those that are given, with a flag bit for each.
typedef struct operands {
  const tn_node_t* node[8];
  int count;
  int64_t flags;
} operands_t;

static void add(operands_t* o, const tn_node_t* node) { o->node[o->count++] = node; }
static void add_optional(operands_t* o, const tn_node_t* node, int64_t flag) {
  if (!node) return;
  add(o, node);
  o->flags |= flag;
}

static const tn_node_t* result_as(tn_lowering_t* l, const tn_node_t* node, int index,
                                  tn_dtype_t dtype) {
  return tn_convert(l->graph, tn_result(l->graph, node, index), dtype);
}

static tn_status_t check_float(tn_lowering_t* l, const tn_node_t* x) {
  if (tn_dtype_is_float(tn_dtype_of(x))) return TN_OK;
  return TN_DECLINE("%s of %s", l->op->name, tn_dtype_name(tn_dtype_of(x)));
}

// Statistics have the parameters' dtype, or x's without parameters.
static tn_dtype_t stat_dtype(const tn_node_t* x, const tn_node_t* weight, const tn_node_t* bias) {
  return weight ? tn_dtype_of(weight) : bias ? tn_dtype_of(bias) : tn_dtype_of(x);
}

// Checks |weight| against the normalized shape (argument |index|) and x's last dimensions; gives the first of these.
static tn_status_t normalized_axis(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* weight,
                                   int index, int* out_axis) {
  const int64_t* shape;
  const int count = tn_arg_ints(l, index, &shape);
  if (count < 1 || count > tn_rank(x)) return TN_DECLINE("%s: normalized_shape", l->op->name);
  *out_axis = tn_rank(x) - count;
  for (int i = 0; i < count; ++i)
    if (shape[i] != tn_dim(x, *out_axis + i) ||
        (weight && (tn_rank(weight) != count || tn_dim(weight, i) != shape[i])))
      return TN_DECLINE("%s: Given normalized_shape does not match the input or the weight",
                        l->op->name);
  return check_float(l, x);
}

// x, normalized_shape, weight, bias, eps
tn_status_t tn_lower_layer_norm(tn_lowering_t* l) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *weight = tn_arg_tensor(l, 2),
                  *bias = tn_arg_tensor(l, 3);
  int axis;
  TN_TRY(normalized_axis(l, x, weight, 1, &axis));
  TN_TRY(normalized_axis(l, x, bias, 1, &axis));
  operands_t o = {0};
  add(&o, x);
  add_optional(&o, weight, 1);
  add_optional(&o, bias, 2);
  const tn_attr_t attrs[] = {tn_attr_float(TN_ATTR_EPSILON, tn_arg_double(l, 4, 1e-5)),
                             tn_attr_int(TN_ATTR_AXIS, axis), tn_attr_int(TN_ATTR_FLAGS, o.flags)};
  const tn_node_t* y = tn_composite(l->graph, "layer_norm", o.count, o.node, 3, attrs);
  const tn_dtype_t stat = stat_dtype(x, weight, bias);
  tn_return(l, tn_result(l->graph, y, 0));
  tn_return(l, result_as(l, y, 1, stat));
  tn_return(l, result_as(l, y, 2, stat));
  return TN_OK;
}

// |node| where the caller's mask asks for it, else an undefined tensor.
static void return_masked(tn_lowering_t* l, bool is_wanted, const tn_node_t* node) {
  if (is_wanted) {
    tn_return(l, node);
  } else {
    tn_return_none(l);
  }
}

static const tn_node_t* compute_stat(tn_lowering_t* l, const tn_node_t* stat, const tn_node_t* x) {
  return tn_convert(l->graph, stat, tn_opmath_dtype(tn_dtype_of(x)));
}

// grad, x, normalized_shape, mean, rstd, weight, bias, mask[3]
tn_status_t tn_lower_layer_norm_backward(tn_lowering_t* l) {
  const tn_node_t *grad = tn_arg_tensor(l, 0), *x = tn_arg_tensor(l, 1),
                  *weight = tn_arg_tensor(l, 5);
  const int64_t* mask;
  int axis;
  TN_TRY(normalized_axis(l, x, weight, 2, &axis));
  if (tn_arg_ints(l, 7, &mask) != 3) return TN_DECLINE("native_layer_norm_backward: output_mask");
  operands_t o = {0};
  add(&o, grad);
  add(&o, x);
  add(&o, compute_stat(l, tn_arg_tensor(l, 3), x));
  add(&o, compute_stat(l, tn_arg_tensor(l, 4), x));
  add_optional(&o, weight, 1);
  const tn_attr_t attrs[] = {tn_attr_int(TN_ATTR_AXIS, axis), tn_attr_int(TN_ATTR_FLAGS, o.flags)};
  const tn_node_t* y = tn_composite(l->graph, "layer_norm_backward", o.count, o.node, 2, attrs);
  return_masked(l, mask[0], tn_result(l->graph, y, 0));
  for (int i = 1; i < 3; ++i) {
    const tn_node_t* parameter = tn_arg_tensor(l, 4 + i);
    return_masked(l, mask[i] && parameter, result_as(l, y, i, tn_dtype_of(parameter)));
  }
  return TN_OK;
}

// x, normalized_shape, weight, eps
tn_status_t tn_lower_rms_norm(tn_lowering_t* l) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *weight = tn_arg_tensor(l, 2);
  int axis;
  TN_TRY(normalized_axis(l, x, weight, 1, &axis));
  if (weight && tn_dtype_of(weight) != tn_dtype_of(x))
    return TN_DECLINE("rms_norm: dtype of the weight");
  // Without an epsilon PyTorch takes that of the compute type.
  const tn_dtype_t opmath = tn_opmath_dtype(tn_dtype_of(x));
  const double epsilon = opmath == TN_F64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  operands_t o = {0};
  add(&o, x);
  add_optional(&o, weight, 1);
  const tn_attr_t attrs[] = {tn_attr_float(TN_ATTR_EPSILON, tn_arg_double(l, 3, epsilon)),
                             tn_attr_int(TN_ATTR_AXIS, axis), tn_attr_int(TN_ATTR_FLAGS, o.flags)};
  const tn_node_t* y = tn_composite(l->graph, "rms_norm", o.count, o.node, 3, attrs);
  tn_return(l, tn_result(l->graph, y, 0));
  tn_return(l, tn_result(l->graph, y, 1));
  return TN_OK;
}

// grad, x, normalized_shape, rstd, weight, mask[2]
tn_status_t tn_lower_rms_norm_backward(tn_lowering_t* l) {
  const tn_node_t *grad = tn_arg_tensor(l, 0), *x = tn_arg_tensor(l, 1),
                  *weight = tn_arg_tensor(l, 4);
  const int64_t* mask;
  int axis;
  TN_TRY(normalized_axis(l, x, weight, 2, &axis));
  if (tn_arg_ints(l, 5, &mask) != 2) return TN_DECLINE("_fused_rms_norm_backward: output_mask");
  operands_t o = {0};
  add(&o, grad);
  add(&o, x);
  add(&o, compute_stat(l, tn_arg_tensor(l, 3), x));
  add_optional(&o, weight, 1);
  const tn_attr_t attrs[] = {tn_attr_int(TN_ATTR_AXIS, axis), tn_attr_int(TN_ATTR_FLAGS, o.flags)};
  const tn_node_t* y = tn_composite(l->graph, "rms_norm_backward", o.count, o.node, 2, attrs);
  return_masked(l, mask[0], tn_result(l->graph, y, 0));
  return_masked(l, mask[1] && weight, tn_result(l->graph, y, 1));
  return TN_OK;
}

// ---- group norm ---------------------------------------------------------------------------------------------

// x, weight, bias, N, C, HxW, group, eps
tn_status_t tn_lower_group_norm(tn_lowering_t* l) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *weight = tn_arg_tensor(l, 1),
                  *bias = tn_arg_tensor(l, 2);
  TN_TRY(check_float(l, x));
  const int64_t groups = tn_arg_int(l, 6, 1);
  if (tn_rank(x) < 2 || groups < 1 || tn_dim(x, 1) % groups)
    return TN_DECLINE("native_group_norm: groups");
  operands_t o = {0};
  add(&o, x);
  add_optional(&o, weight, 1);
  add_optional(&o, bias, 2);
  const tn_attr_t attrs[] = {tn_attr_float(TN_ATTR_EPSILON, tn_arg_double(l, 7, 1e-5)),
                             tn_attr_int(TN_ATTR_GROUPS, groups),
                             tn_attr_int(TN_ATTR_FLAGS, o.flags)};
  const tn_node_t* y = tn_composite(l->graph, "group_norm", o.count, o.node, 3, attrs);
  const tn_dtype_t stat = stat_dtype(x, weight, bias);
  tn_return(l, tn_result(l->graph, y, 0));
  tn_return(l, result_as(l, y, 1, stat));
  tn_return(l, result_as(l, y, 2, stat));
  return TN_OK;
}

// grad, x, mean, rstd, weight, N, C, HxW, group, mask[3]
tn_status_t tn_lower_group_norm_backward(tn_lowering_t* l) {
  const tn_node_t *grad = tn_arg_tensor(l, 0), *x = tn_arg_tensor(l, 1),
                  *weight = tn_arg_tensor(l, 4);
  const int64_t* mask;
  TN_TRY(check_float(l, x));
  const int64_t groups = tn_arg_int(l, 8, 1);
  if (tn_arg_ints(l, 9, &mask) != 3) return TN_DECLINE("native_group_norm_backward: output_mask");
  operands_t o = {0};
  add(&o, grad);
  add(&o, x);
  add(&o, compute_stat(l, tn_arg_tensor(l, 2), x));
  add(&o, compute_stat(l, tn_arg_tensor(l, 3), x));
  add_optional(&o, weight, 1);
  const tn_attr_t attrs[] = {tn_attr_int(TN_ATTR_GROUPS, groups),
                             tn_attr_int(TN_ATTR_FLAGS, o.flags)};
  const tn_node_t* y = tn_composite(l->graph, "group_norm_backward", o.count, o.node, 2, attrs);
  for (int i = 0; i < 3; ++i) return_masked(l, mask[i], tn_result(l->graph, y, i));
  return TN_OK;
}

// ---- batch norm ---------------------------------------------------------------------------------------------

static tn_status_t check_channels(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* vector) {
  TN_TRY(check_float(l, x));
  if (tn_rank(x) < 2) return TN_DECLINE("%s: expected at least 2 dimensions", l->op->name);
  if (vector && (tn_rank(vector) != 1 || tn_dim(vector, 0) != tn_dim(x, 1)))
    return TN_DECLINE("%s: number of channels", l->op->name);
  return TN_OK;
}

static const tn_node_t* no_elements(tn_lowering_t* l, tn_dtype_t dtype) {
  const int64_t zero = 0;
  const tn_type_t type = tn_type_make(dtype, 1, &zero);
  const tn_scalar_t value = {{0}};
  return tn_constant_splat(l->graph, &type, value);
}

// running + momentum * (batch - running), in the compute type.
static const tn_node_t* blend(tn_lowering_t* l, const tn_node_t* running, const tn_node_t* batch,
                              double momentum) {
  tn_graph_t* g = l->graph;
  if (!running || !batch) return NULL;
  const tn_dtype_t dtype = tn_dtype_of(running);
  running = tn_convert(g, running, tn_dtype_of(batch));
  const tn_node_t* old =
      tn_binary(g, TN_OP_MUL, running, tn_constant_like(g, running, 1.0 - momentum));
  const tn_node_t* new_part = tn_binary(g, TN_OP_MUL, batch, tn_constant_like(g, batch, momentum));
  return tn_convert(g, tn_binary(g, TN_OP_ADD, new_part, old), dtype);
}

static tn_status_t batch_norm(tn_lowering_t* l, const tn_node_t* running_mean,
                              const tn_node_t* running_var, bool is_training, double momentum,
                              double epsilon, bool returns_running) {
  tn_graph_t* g = l->graph;
  const tn_node_t *x = tn_arg_tensor(l, 0), *weight = tn_arg_tensor(l, 1),
                  *bias = tn_arg_tensor(l, 2);
  const tn_node_t* vectors[] = {weight, bias, running_mean, running_var};
  for (int i = 0; i < 4; ++i) TN_TRY(check_channels(l, x, vectors[i]));
  operands_t o = {0};
  add(&o, x);
  add_optional(&o, weight, 1);
  add_optional(&o, bias, 2);
  const tn_dtype_t stat = stat_dtype(x, weight, bias), opmath = tn_opmath_dtype(tn_dtype_of(x));
  if (!is_training) {
    if (!running_mean || !running_var)
      return TN_DECLINE("%s: running statistics are missing", l->op->name);
    add(&o, tn_convert(g, running_mean, opmath));
    add(&o, tn_convert(g, running_var, opmath));
    const tn_attr_t attrs[] = {tn_attr_float(TN_ATTR_EPSILON, epsilon),
                               tn_attr_int(TN_ATTR_FLAGS, o.flags)};
    tn_return(l, tn_composite(g, "batch_norm_infer", o.count, o.node, 2, attrs));
    tn_return(l, no_elements(l, stat));
    tn_return(l, no_elements(l, stat));
    if (returns_running) {
      tn_return(l, running_mean);
      tn_return(l, running_var);
    }
    return TN_OK;
  }
  const int64_t count = x && tn_dim(x, 1) ? tn_type_element_count(&x->types[0]) / tn_dim(x, 1) : 0;
  if (count == 0) return TN_DECLINE("%s of an empty batch", l->op->name);
  const tn_attr_t attrs[] = {tn_attr_float(TN_ATTR_EPSILON, epsilon),
                             tn_attr_int(TN_ATTR_FLAGS, o.flags)};
  const tn_node_t* y = tn_composite(g, "batch_norm_train", o.count, o.node, 2, attrs);
  const tn_node_t *mean = tn_result(g, y, 1), *var = tn_result(g, y, 3);
  tn_return(l, tn_result(g, y, 0));
  tn_return(l, tn_convert(g, mean, stat));
  tn_return(l, tn_convert(g, tn_result(g, y, 2), stat));
  if (!returns_running) return TN_OK;
  if (!running_mean || !running_var)
    return TN_DECLINE("%s: running statistics are missing", l->op->name);
  // The running variance is the unbiased one.
  const double unbiased = (double)count / (double)(count > 1 ? count - 1 : 1);
  tn_return(l, blend(l, running_mean, mean, momentum));
  tn_return(l, blend(l, running_var,
                     tn_binary(g, TN_OP_MUL, var, tn_constant_like(g, var, unbiased)), momentum));
  return TN_OK;
}

// x, weight, bias, running_mean, running_var, training, momentum, eps
tn_status_t tn_lower_batch_norm(tn_lowering_t* l) {
  return batch_norm(l, tn_arg_tensor(l, 3), tn_arg_tensor(l, 4), tn_arg_bool(l, 5, false),
                    tn_arg_double(l, 6, 0.1), tn_arg_double(l, 7, 1e-5), true);
}
// x, weight, bias, running_mean, running_var, momentum, eps: training, with a reserve that holds nothing
tn_status_t tn_lower_batch_norm_with_update(tn_lowering_t* l) {
  const int first = l->result_count;
  TN_TRY(batch_norm(l, tn_arg_tensor(l, 3), tn_arg_tensor(l, 4), true, tn_arg_double(l, 5, 0.1),
                    tn_arg_double(l, 6, 1e-5), true));
  tn_return(l, no_elements(l, TN_U8));  // behind out, mean, invstd; before the running statistics
  const tn_value_t reserve = l->results[first + 5];
  memmove(&l->results[first + 4], &l->results[first + 3], 2 * sizeof(reserve));
  l->results[first + 3] = reserve;
  return TN_OK;
}
// x, weight, bias, training, momentum, eps
tn_status_t tn_lower_batch_norm_no_stats(tn_lowering_t* l) {
  return batch_norm(l, NULL, NULL, tn_arg_bool(l, 3, false), tn_arg_double(l, 4, 0.1),
                    tn_arg_double(l, 5, 1e-5), false);
}
// x, weight, bias, running_mean, running_var, momentum, eps
tn_status_t tn_lower_batch_norm_no_training(tn_lowering_t* l) {
  return batch_norm(l, tn_arg_tensor(l, 3), tn_arg_tensor(l, 4), false, tn_arg_double(l, 5, 0.1),
                    tn_arg_double(l, 6, 1e-5), false);
}

// grad, x, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask[3][, reserve]
tn_status_t tn_lower_batch_norm_backward(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t *grad = tn_arg_tensor(l, 0), *x = tn_arg_tensor(l, 1),
                  *weight = tn_arg_tensor(l, 2);
  TN_TRY(check_channels(l, x, weight));
  const bool is_training = tn_arg_bool(l, 7, false);
  const int64_t* mask;
  if (tn_arg_ints(l, 9, &mask) != 3) return TN_DECLINE("native_batch_norm_backward: output_mask");
  const tn_dtype_t opmath = tn_opmath_dtype(tn_dtype_of(x));
  const tn_node_t* mean = tn_arg_tensor(l, is_training ? 5 : 3);
  const tn_node_t* invstd = tn_arg_tensor(l, is_training ? 6 : 4);
  if (!mean || !invstd) return TN_DECLINE("native_batch_norm_backward: statistics are missing");
  mean = tn_convert(g, mean, opmath);
  invstd = tn_convert(g, invstd, opmath);
  if (!is_training)
    invstd = tn_unary(
        g, TN_OP_RSQRT,
        tn_binary(g, TN_OP_ADD, invstd, tn_constant_like(g, invstd, tn_arg_double(l, 8, 1e-5))));
  operands_t o = {0};
  add(&o, grad);
  add(&o, x);
  add(&o, mean);
  add(&o, invstd);
  add_optional(&o, weight, 1);
  if (!is_training) o.flags |= 4;
  const tn_attr_t attr = tn_attr_int(TN_ATTR_FLAGS, o.flags);
  const tn_node_t* y = tn_composite(g, "batch_norm_backward", o.count, o.node, 1, &attr);
  for (int i = 0; i < 3; ++i) return_masked(l, mask[i], tn_result(g, y, i));
  return TN_OK;
}
