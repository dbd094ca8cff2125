// Fused scaled dot product attention and its gradient, as composites.
#include <math.h>

#include "aten/lowering.h"

typedef struct attention {
  const tn_node_t *q, *k, *v, *mask;
  double scale, probability;
  bool is_causal;
} attention_t;

static tn_status_t check(tn_lowering_t* l, const attention_t* a) {
  if (!a->q || !a->k || !a->v) return TN_DECLINE("%s: missing operand", l->op->name);
  const tn_dtype_t dtype = tn_dtype_of(a->q);
  if (dtype != tn_dtype_of(a->k) || dtype != tn_dtype_of(a->v) || !tn_dtype_is_float(dtype))
    return TN_DECLINE("%s: dtypes of query, key and value", l->op->name);
  const int rank = tn_rank(a->q);
  if (rank != 4 || tn_rank(a->k) != 4 || tn_rank(a->v) != 4)
    return TN_DECLINE("%s: rank %d", l->op->name, rank);
  if (tn_dim(a->k, 1) == 0 || tn_dim(a->q, 1) % tn_dim(a->k, 1) ||
      tn_dim(a->k, 1) != tn_dim(a->v, 1) || tn_dim(a->q, 0) != tn_dim(a->k, 0) ||
      tn_dim(a->q, 0) != tn_dim(a->v, 0) || tn_dim(a->q, 3) != tn_dim(a->k, 3) ||
      tn_dim(a->k, 2) != tn_dim(a->v, 2))
    return TN_DECLINE("%s: sizes of query, key and value", l->op->name);
  if (a->probability != 0.0) return TN_DECLINE("%s: dropout", l->op->name);
  return TN_OK;
}

static int attributes(const attention_t* a, int64_t flags, tn_attr_t* out) {
  out[0] = tn_attr_float(TN_ATTR_SCALE, a->scale);
  out[1] = tn_attr_int(TN_ATTR_IS_CAUSAL, a->is_causal);
  out[2] = tn_attr_float(TN_ATTR_PROBABILITY, a->probability);
  out[3] = tn_attr_int(TN_ATTR_FLAGS, flags);
  return 4;
}

static double scale_of(tn_lowering_t* l, int index, const tn_node_t* q) {
  const int64_t size = q ? tn_dim(q, tn_rank(q) - 1) : 1;
  return tn_arg_double(l, index, size ? 1.0 / sqrt((double)size) : 1.0);
}

// query, key, value, attn_bias, dropout_p, is_causal, return_debug_mask, *, scale
// -> out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, philox_seed, philox_offset, debug_attn_mask
tn_status_t tn_lower_fused_attention(tn_lowering_t* l) {
  attention_t a = {.q = tn_arg_tensor(l, 0),
                   .k = tn_arg_tensor(l, 1),
                   .v = tn_arg_tensor(l, 2),
                   .mask = tn_arg_tensor(l, 3),
                   .probability = tn_arg_double(l, 4, 0.0),
                   .is_causal = tn_arg_bool(l, 5, false)};
  a.scale = scale_of(l, 7, a.q);
  TN_TRY(check(l, &a));
  const tn_node_t* operands[] = {a.q, a.k, a.v, a.mask};
  tn_attr_t attrs[4];
  const int count = attributes(&a, a.mask != NULL, attrs);
  const tn_node_t* y = tn_composite(l->graph, "sdpa", a.mask ? 4 : 3, operands, count, attrs);
  const int64_t none = 0;
  const tn_type_t empty = tn_type_make(TN_I64, 1, &none);
  const tn_node_t* nothing = tn_constant_splat(l->graph, &empty, (tn_scalar_t){{0}});
  tn_return(l, tn_result(l->graph, y, 0));
  tn_return(l, tn_result(l->graph, y, 1));
  tn_return(l, nothing);
  tn_return(l, nothing);
  tn_return_int(l, tn_dim(a.q, 2));
  tn_return_int(l, tn_dim(a.k, 2));
  tn_return(l, tn_constant_int(l->graph, TN_I64, 0));
  tn_return(l, tn_constant_int(l->graph, TN_I64, 0));
  tn_return(l, tn_convert(l->graph, nothing, tn_dtype_of(a.q)));
  return TN_OK;
}

// grad_out, query, key, value, attn_bias, grad_input_mask[4], out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k,
// dropout_p, is_causal, philox_seed, philox_offset, *, scale
tn_status_t tn_lower_fused_attention_backward(tn_lowering_t* l) {
  attention_t a = {.q = tn_arg_tensor(l, 1),
                   .k = tn_arg_tensor(l, 2),
                   .v = tn_arg_tensor(l, 3),
                   .mask = tn_arg_tensor(l, 4),
                   .probability = tn_arg_double(l, 12, 0.0),
                   .is_causal = tn_arg_bool(l, 13, false)};
  a.scale = scale_of(l, 16, a.q);
  TN_TRY(check(l, &a));
  const int64_t* wanted;
  if (tn_arg_ints(l, 5, &wanted) != 4) return TN_DECLINE("%s: grad_input_mask", l->op->name);
  if (a.mask && wanted[3]) return TN_DECLINE("%s: gradient of the attention bias", l->op->name);
  const tn_node_t* operands[] = {tn_arg_tensor(l, 0), a.q,   a.k, a.v, tn_arg_tensor(l, 6),
                                 tn_arg_tensor(l, 7), a.mask};
  tn_attr_t attrs[4];
  const int count = attributes(&a, a.mask != NULL, attrs);
  const tn_node_t* y =
      tn_composite(l->graph, "sdpa_backward", a.mask ? 7 : 6, operands, count, attrs);
  for (int i = 0; i < 3; ++i) {
    if (wanted[i]) {
      tn_return(l, tn_result(l->graph, y, i));
    } else {
      tn_return_none(l);
    }
  }
  tn_return_none(l);
  return TN_OK;
}
