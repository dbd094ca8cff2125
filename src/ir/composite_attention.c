// Scaled dot-product attention and its gradient.
//
// Heads of q that share a head of k and v are one more dimension: q [batch, hk, group * l, e] against k
// [batch, hk, s, e], so that grouped queries cost no copy of k and v.
#include "ir/composite_util.h"

#include <math.h>

enum { HAS_MASK = 1, HAS_RANDOM = 2 };

typedef struct tn_attention {
  int lead;  // dimensions before the head
  int64_t batch, kv_heads, group, l, s, e, ev;
  int flags;
  bool is_causal;
  double scale, probability;
} tn_attention_t;

static tn_attention_t attention_of(const tn_type_t* q, const tn_type_t* k, const tn_type_t* v) {
  tn_attention_t a = {.lead = q->rank - 3, .batch = 1};
  for (int i = 0; i < a.lead; ++i) a.batch *= q->dims[i];
  a.kv_heads = k->dims[a.lead];
  a.group = a.kv_heads ? q->dims[a.lead] / a.kv_heads : 1;
  a.l = q->dims[a.lead + 1];
  a.e = q->dims[a.lead + 2];
  a.s = k->dims[a.lead + 1];
  a.ev = v->dims[a.lead + 2];
  return a;
}
static tn_attention_t attention_of_node(const tn_node_t* composite, const tn_node_t* const* qkv) {
  tn_attention_t a = attention_of(&qkv[0]->types[0], &qkv[1]->types[0], &qkv[2]->types[0]);
  a.flags = (int)tn_node_int(composite, TN_ATTR_FLAGS, 0);
  a.is_causal = tn_node_int(composite, TN_ATTR_IS_CAUSAL, 0) != 0;
  a.scale = tn_node_float(composite, TN_ATTR_SCALE, a.e ? 1 / sqrt((double)a.e) : 1);
  a.probability = tn_node_float(composite, TN_ATTR_PROBABILITY, 0);
  return a;
}

// ---- types ----------------------------------------------------------------------------------------------
// Checks q, k, v from operand |first| and mask, random_state from operand |extra|.
static tn_status_t check_attention(const tn_shape_t* shape, int first, int extra) {
  const tn_type_t *q = tn_shape_operand(shape, first), *k = tn_shape_operand(shape, first + 1),
                  *v = tn_shape_operand(shape, first + 2);
  TN_TRY(tn_shape_check_class(shape, first, TN_SHAPE_FLOAT));
  int r = q->rank;
  bool fits =
      r >= 3 && k->rank == r && v->rank == r && k->dtype == q->dtype && v->dtype == q->dtype;
  for (int i = 0; fits && i < r - 3; ++i)
    fits = q->dims[i] == k->dims[i] && q->dims[i] == v->dims[i];
  fits = fits && k->dims[r - 3] == v->dims[r - 3] && k->dims[r - 2] == v->dims[r - 2] &&
         k->dims[r - 1] == q->dims[r - 1] &&
         (k->dims[r - 3] ? q->dims[r - 3] % k->dims[r - 3] == 0 : q->dims[r - 3] == 0);
  if (!fits) {
    char a[TN_TYPE_TEXT_SIZE], b[TN_TYPE_TEXT_SIZE], c[TN_TYPE_TEXT_SIZE];
    return TN_ERROR(TN_INVALID_ARGUMENT, "q %s, k %s and v %s do not fit together",
                    tn_type_format(q, a), tn_type_format(k, b), tn_type_format(v, c));
  }
  int64_t flags = tn_c_int(shape, TN_ATTR_FLAGS, 0);
  int expected = extra + !!(flags & HAS_MASK) + !!(flags & HAS_RANDOM);
  if (shape->operand_count != expected) {
    return TN_ERROR(TN_INVALID_ARGUMENT, "flags say %d operands, got %d", expected,
                    shape->operand_count);
  }
  if (flags & HAS_MASK) {
    TN_TRY(tn_shape_check_class(shape, extra, TN_SHAPE_BOOL | TN_SHAPE_FLOAT));
    const tn_type_t* mask = tn_shape_operand(shape, extra);
    tn_type_t full = *q;
    full.dims[r - 1] = k->dims[r - 2];
    bool broadcasts = mask->rank <= r;
    for (int i = 0; broadcasts && i < mask->rank; ++i) {
      broadcasts = mask->dims[i] == 1 || mask->dims[i] == full.dims[r - mask->rank + i];
    }
    if (!broadcasts) {
      char a[TN_TYPE_TEXT_SIZE], b[TN_TYPE_TEXT_SIZE];
      return TN_ERROR(TN_INVALID_ARGUMENT, "mask %s does not broadcast to %s",
                      tn_type_format(mask, a), tn_type_format(&full, b));
    }
    ++extra;
  }
  const int64_t two = 2;
  return flags & HAS_RANDOM ? tn_c_expect(shape, extra, "random_state", TN_U64, 1, &two) : TN_OK;
}

static void result_types(const tn_shape_t* shape, int first, tn_type_t* out, tn_type_t* lse) {
  const tn_type_t *q = tn_shape_operand(shape, first), *v = tn_shape_operand(shape, first + 2);
  *out = *q;
  out->dims[q->rank - 1] = v->dims[q->rank - 1];
  *lse = tn_type_make(tn_dtype_compute(q->dtype), q->rank - 1, q->dims);
}

tn_status_t tn_composite_types_sdpa(tn_shape_t* shape) {
  TN_TRY(check_attention(shape, 0, 3));
  result_types(shape, 0, &shape->types[0], &shape->types[1]);
  shape->result_count = 2;
  return TN_OK;
}
tn_status_t tn_composite_types_sdpa_backward(tn_shape_t* shape) {
  TN_TRY(check_attention(shape, 1, 6));
  tn_type_t out, lse;
  result_types(shape, 1, &out, &lse);
  TN_TRY(tn_c_expect_type(shape, 0, "dout", &out));
  TN_TRY(tn_c_expect_type(shape, 4, "out", &out));
  TN_TRY(tn_c_expect_type(shape, 5, "lse", &lse));
  for (int i = 0; i < 3; ++i) shape->types[i] = *tn_shape_operand(shape, 1 + i);
  shape->result_count = 3;
  return TN_OK;
}

// ---- expansion --------------------------------------------------------------------------------------------
// A tensor of q's heads as [batch * hk, group * l, last], of k's heads as [batch * hk, s, last].
static const tn_node_t* of_query(tn_graph_t* graph, const tn_attention_t* a, const tn_node_t* x,
                                 int64_t last) {
  const int64_t dims[3] = {a->batch * a->kv_heads, a->group * a->l, last};
  return tn_reshape(graph, tn_c_up(graph, x), 3, dims);
}
static const tn_node_t* of_key(tn_graph_t* graph, const tn_attention_t* a, const tn_node_t* x,
                               int64_t last) {
  const int64_t dims[3] = {a->batch * a->kv_heads, a->s, last};
  return tn_reshape(graph, tn_c_up(graph, x), 3, dims);
}
// x [b, m, k], y [b, n, k] -> [b, m, n], contracting the dimensions |cx| and |cy|.
static const tn_node_t* product(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* y,
                                int64_t cx, int64_t cy) {
  const int64_t batch = 0;
  return x ? tn_dot_general(graph, x, y, 1, &batch, &batch, 1, &cx, &cy, x->types[0].dtype) : NULL;
}
// Scores have this shape while masks and random bits apply: [.., hq, l, s].
static tn_type_t full_type(const tn_attention_t* a, const tn_type_t* q, tn_dtype_t dtype) {
  tn_type_t type = *q;
  type.dtype = dtype;
  type.dims[a->lead + 2] = a->s;
  return type;
}

// Scaled and masked scores [batch * hk, group * l, s].
static const tn_node_t* masked_scores(tn_graph_t* graph, const tn_attention_t* a,
                                      const tn_node_t* q, const tn_node_t* k, const tn_node_t* mask,
                                      const tn_type_t* q_type) {
  const tn_node_t* scores = tn_c_scale(graph, product(graph, q, k, 2, 2), a->scale);
  if (!scores || (!mask && !a->is_causal)) return scores;
  tn_type_t flat = scores->types[0], full = full_type(a, q_type, flat.dtype);
  scores = tn_reshape(graph, scores, full.rank, full.dims);
  const tn_node_t* nothing = tn_constant_like(graph, scores, -INFINITY);
  if (mask) {
    if (mask->types[0].dtype == TN_BOOL) {
      scores =
          tn_select(graph, tn_broadcast_to(graph, mask, full.rank, full.dims), scores, nothing);
    } else {
      const tn_node_t* added = tn_convert(graph, mask, full.dtype);
      scores = tn_c_add(graph, scores, tn_broadcast_to(graph, added, full.rank, full.dims));
    }
  }
  if (a->is_causal) {
    const int64_t dims[2] = {a->l, a->s};
    tn_type_t positions = tn_type_make(TN_I64, 2, dims);
    const tn_node_t* visible =
        tn_compare(graph, TN_LE, tn_iota(graph, &positions, 1), tn_iota(graph, &positions, 0));
    scores =
        tn_select(graph, tn_broadcast_to(graph, visible, full.rank, full.dims), scores, nothing);
  }
  return tn_reshape(graph, scores, 3, flat.dims);
}

// 1 / (1 - p) where a weight is kept, 0 where it is dropped; NULL without dropout.
static const tn_node_t* keep_factor(tn_graph_t* graph, const tn_attention_t* a,
                                    const tn_node_t* state, const tn_node_t* like,
                                    const tn_type_t* q_type) {
  if (!(a->flags & HAS_RANDOM) || a->probability <= 0 || !like) return NULL;
  const tn_node_t* zero = tn_constant_like(graph, like, 0);
  if (a->probability >= 1) return zero;
  tn_type_t bits_type = full_type(a, q_type, TN_U32);
  const tn_node_t* bits = tn_rng_bits(graph, state, &bits_type);
  tn_scalar_t limit = {.u32 = (uint32_t)(a->probability * 0x1p32)};
  const tn_node_t* dropped =
      tn_compare(graph, TN_LT, bits, tn_constant_splat(graph, &bits_type, limit));
  dropped = tn_reshape(graph, dropped, 3, like->types[0].dims);
  return tn_select(graph, dropped, zero, tn_constant_like(graph, like, 1 / (1 - a->probability)));
}

void tn_composite_expand_sdpa(tn_graph_t* graph, const tn_node_t* composite,
                              const tn_node_t* const* operands, const tn_node_t** out_results) {
  tn_attention_t a = attention_of_node(composite, operands);
  const tn_type_t* q_type = &operands[0]->types[0];
  const tn_node_t* mask = a.flags & HAS_MASK ? operands[3] : NULL;
  const tn_node_t* state = a.flags & HAS_RANDOM ? operands[composite->operand_count - 1] : NULL;
  const int64_t row = 2;
  const tn_node_t* scores = masked_scores(graph, &a, of_query(graph, &a, operands[0], a.e),
                                          of_key(graph, &a, operands[1], a.e), mask, q_type);
  const tn_node_t* most = tn_reduce(graph, TN_REDUCE_MAX, scores, 1, &row);
  if (!most) return;
  // A row with nothing to attend has the maximum -inf: shift it by 0, its exponentials are 0 all the same.
  const tn_node_t* is_empty =
      tn_compare(graph, TN_EQ, most, tn_constant_like(graph, most, -INFINITY));
  const tn_node_t* shift = tn_select(graph, is_empty, tn_constant_like(graph, most, 0), most);
  const tn_node_t* exps = tn_unary(
      graph, TN_OP_EXP, tn_c_sub(graph, scores, tn_c_spread(graph, shift, scores, 1, &row)));
  const tn_node_t* sum = tn_reduce(graph, TN_REDUCE_SUM, exps, 1, &row);
  const tn_node_t* divisor = tn_select(graph, is_empty, tn_constant_like(graph, most, 1), sum);
  const tn_node_t* weights = tn_c_div(graph, exps, tn_c_spread(graph, divisor, exps, 1, &row));
  const tn_node_t* keep = keep_factor(graph, &a, state, weights, q_type);
  if (keep) weights = tn_c_mul(graph, weights, keep);
  const tn_node_t* out = product(graph, weights, of_key(graph, &a, operands[2], a.ev), 2, 1);
  out = tn_reshape(graph, out, composite->types[0].rank, composite->types[0].dims);
  const tn_node_t* lse = tn_c_add(graph, shift, tn_unary(graph, TN_OP_LOG, sum));
  out_results[0] = tn_convert(graph, out, composite->types[0].dtype);
  out_results[1] = tn_reshape(graph, lse, composite->types[1].rank, composite->types[1].dims);
}

// dv = (p k)^T dout; dp = (dout v^T) k; ds = p (dp - sum(dout out)); dq = ds k scale; dk = ds^T q scale
// with p the weights and k the keep factor of dropout.
void tn_composite_expand_sdpa_backward(tn_graph_t* graph, const tn_node_t* composite,
                                       const tn_node_t* const* operands,
                                       const tn_node_t** out_results) {
  tn_attention_t a = attention_of_node(composite, operands + 1);
  const tn_type_t* q_type = &operands[1]->types[0];
  const tn_node_t* mask = a.flags & HAS_MASK ? operands[6] : NULL;
  const tn_node_t* state = a.flags & HAS_RANDOM ? operands[composite->operand_count - 1] : NULL;
  const int64_t row = 2, lse_dims[2] = {a.batch * a.kv_heads, a.group * a.l};
  const tn_node_t *dout = of_query(graph, &a, operands[0], a.ev),
                  *q = of_query(graph, &a, operands[1], a.e),
                  *k = of_key(graph, &a, operands[2], a.e),
                  *v = of_key(graph, &a, operands[3], a.ev),
                  *out = of_query(graph, &a, operands[4], a.ev);
  const tn_node_t* lse = tn_reshape(graph, operands[5], 2, lse_dims);
  const tn_node_t* scores = masked_scores(graph, &a, q, k, mask, q_type);
  if (!scores || !lse) return;
  const tn_node_t* is_empty =
      tn_compare(graph, TN_EQ, lse, tn_constant_like(graph, lse, -INFINITY));
  const tn_node_t* shift = tn_select(graph, is_empty, tn_constant_like(graph, lse, 0), lse);
  const tn_node_t* weights = tn_unary(
      graph, TN_OP_EXP, tn_c_sub(graph, scores, tn_c_spread(graph, shift, scores, 1, &row)));
  const tn_node_t* keep = keep_factor(graph, &a, state, weights, q_type);
  const tn_node_t* kept = keep ? tn_c_mul(graph, weights, keep) : weights;
  const tn_node_t* dv = product(graph, kept, dout, 1, 1);
  const tn_node_t* dp = product(graph, dout, v, 2, 2);
  if (keep) dp = tn_c_mul(graph, dp, keep);
  const tn_node_t* per_row = tn_reduce(graph, TN_REDUCE_SUM, tn_c_mul(graph, dout, out), 1, &row);
  const tn_node_t* delta = tn_c_spread(graph, per_row, scores, 1, &row);
  const tn_node_t* ds =
      tn_c_scale(graph, tn_c_mul(graph, weights, tn_c_sub(graph, dp, delta)), a.scale);
  const tn_node_t* results[3] = {product(graph, ds, k, 2, 1), product(graph, ds, q, 1, 1), dv};
  for (int i = 0; i < 3; ++i) {
    const tn_type_t* type = &composite->types[i];
    out_results[i] =
        tn_convert(graph, tn_reshape(graph, results[i], type->rank, type->dims), type->dtype);
  }
}
