// Losses and their gradients. Reduction: 0 none, 1 mean, 2 sum.
#include "aten/lowering.h"

enum { REDUCTION_NONE, REDUCTION_MEAN, REDUCTION_SUM };

typedef struct loss {
  tn_lowering_t* l;
  tn_graph_t* g;
  tn_dtype_t dtype, opmath;
  tn_type_t type;  // of x and target together
} loss_t;

static const tn_node_t* bin(const loss_t* s, tn_op_t op, const tn_node_t* x, const tn_node_t* y) {
  return tn_binary(s->g, op, x, y);
}
static const tn_node_t* wide(const loss_t* s, const tn_node_t* x) {
  return tn_convert(s->g, x, s->opmath);
}
static const tn_node_t* constant(const loss_t* s, const tn_node_t* like, double value) {
  return tn_constant_like(s->g, like, value);
}
static const tn_node_t* spread(const loss_t* s, const tn_node_t* x, const tn_node_t* like) {
  return like ? tn_broadcast_to(s->g, x, tn_rank(like), like->types[0].dims) : NULL;
}

static const tn_node_t* sum_all(const loss_t* s, const tn_node_t* x) {
  int64_t dims[TN_MAX_RANK];
  for (int d = 0; d < tn_rank(x); ++d) dims[d] = d;
  return x && tn_rank(x) ? tn_reduce(s->g, TN_REDUCE_SUM, x, tn_rank(x), dims) : x;
}

static int64_t count_of(const tn_node_t* x) { return x ? tn_type_element_count(&x->types[0]) : 1; }

static tn_status_t finish(const loss_t* s, const tn_node_t* value, int64_t reduction) {
  if (reduction != REDUCTION_NONE) {
    const double count = (double)count_of(value);
    value = sum_all(s, value);
    if (reduction == REDUCTION_MEAN) value = bin(s, TN_OP_DIV, value, constant(s, value, count));
  }
  tn_return(s->l, tn_convert(s->g, value, s->dtype));
  return TN_OK;
}

// ---- negative log likelihood ----------------------------------------------------------------------------------
// Input [c], [n, c] or [n, c, any..] with target lacking c.

typedef struct nll {
  loss_t s;
  const tn_node_t *x, *target, *weight;
  int channel;
  const tn_node_t* index;    // target with 0 where ignored
  const tn_node_t* is_used;  // bool
  const tn_node_t* factor;   // weight of each target, 0 where ignored
} nll_t;

static tn_status_t read_nll(tn_lowering_t* l, int first, int64_t ignore_index, nll_t* out) {
  tn_graph_t* g = l->graph;
  out->x = tn_arg_tensor(l, first);
  out->target = tn_arg_tensor(l, first + 1);
  out->weight = tn_arg_tensor(l, first + 2);
  const tn_dtype_t dtype = tn_dtype_of(out->x);
  out->s = (loss_t){.l = l, .g = g, .dtype = dtype, .opmath = tn_opmath_dtype(dtype)};
  const int rank = tn_rank(out->x);
  out->channel = rank == 1 ? 0 : 1;
  if (!out->x || !out->target || rank < 1 || tn_rank(out->target) != rank - 1 ||
      !tn_dtype_is_float(dtype) || tn_dtype_of(out->target) != TN_I64)
    return TN_DECLINE("%s: shapes or dtypes of input and target", l->op->name);
  for (int d = 0, t = 0; d < rank; ++d)
    if (d != out->channel && tn_dim(out->x, d) != tn_dim(out->target, t++))
      return TN_DECLINE("%s: sizes of input and target", l->op->name);
  const int64_t classes = tn_dim(out->x, out->channel);
  if (out->weight && (tn_rank(out->weight) != 1 || tn_dim(out->weight, 0) != classes ||
                      tn_dtype_of(out->weight) != dtype))
    return TN_DECLINE("%s: weight", l->op->name);
  out->is_used =
      tn_compare(g, TN_NE, out->target, tn_constant_like(g, out->target, (double)ignore_index));
  out->index = tn_select(g, out->is_used, out->target, tn_constant_like(g, out->target, 0.0));
  if (out->weight) {
    const tn_node_t* weight =
        wide(&out->s, tn_take(g, out->weight, out->index, 0, TN_BOUNDS_ERROR));
    out->factor = tn_select(g, out->is_used, weight, constant(&out->s, weight, 0.0));
  } else {
    out->factor = tn_convert(g, out->is_used, out->s.opmath);
  }
  return tn_graph_status(g);
}

// |node| with a dimension of 1 for the channel.
static const tn_node_t* with_channel(const nll_t* n, const tn_node_t* node) {
  int64_t dims[TN_MAX_RANK];
  for (int d = 0, t = 0; d < tn_rank(n->x); ++d) dims[d] = d == n->channel ? 1 : tn_dim(node, t++);
  return tn_reshape(n->s.g, node, tn_rank(n->x), dims);
}

// x, target, weight, reduction, ignore_index -> output, total_weight
tn_status_t tn_lower_nll_loss(tn_lowering_t* l) {
  const int64_t reduction = tn_arg_int(l, 3, REDUCTION_MEAN);
  nll_t n;
  TN_TRY(read_nll(l, 0, tn_arg_int(l, 4, -100), &n));
  const loss_t* s = &n.s;
  const tn_node_t* picked =
      tn_take_along(s->g, n.x, with_channel(&n, n.index), n.channel, TN_BOUNDS_ERROR);
  picked = tn_reshape(s->g, wide(s, picked), tn_rank(n.target), n.target->types[0].dims);
  // Not a product: an ignored -inf or NaN must not matter.
  const tn_node_t* losses = tn_unary(s->g, TN_OP_NEG, bin(s, TN_OP_MUL, picked, n.factor));
  losses = tn_select(s->g, n.is_used, losses, constant(s, losses, 0.0));
  const tn_node_t* total = sum_all(s, n.factor);
  if (reduction == REDUCTION_NONE) {
    tn_return(l, tn_convert(s->g, losses, s->dtype));
    total = tn_constant_double(s->g, s->opmath, 0.0);
  } else {
    const tn_node_t* sum = sum_all(s, losses);
    if (reduction == REDUCTION_MEAN) sum = bin(s, TN_OP_DIV, sum, total);
    tn_return(l, tn_convert(s->g, sum, s->dtype));
  }
  tn_return(l, tn_convert(s->g, total, s->dtype));
  return TN_OK;
}

// grad, x, target, weight, reduction, ignore_index, total_weight
tn_status_t tn_lower_nll_loss_backward(tn_lowering_t* l) {
  const tn_node_t *grad = tn_arg_tensor(l, 0), *total = tn_arg_tensor(l, 6);
  const int64_t reduction = tn_arg_int(l, 4, REDUCTION_MEAN);
  nll_t n;
  TN_TRY(read_nll(l, 1, tn_arg_int(l, 5, -100), &n));
  const loss_t* s = &n.s;
  grad = wide(s, grad);
  if (reduction == REDUCTION_MEAN) grad = bin(s, TN_OP_DIV, grad, wide(s, total));
  if (reduction == REDUCTION_NONE && tn_rank(grad) != tn_rank(n.target))
    return TN_DECLINE("nll_loss_backward: gradient");
  if (reduction != REDUCTION_NONE && tn_rank(grad) != 0)
    return TN_DECLINE("nll_loss_backward: gradient");
  grad = spread(s, grad, n.target);
  const tn_node_t* value = tn_unary(s->g, TN_OP_NEG, bin(s, TN_OP_MUL, grad, n.factor));
  value = tn_select(s->g, n.is_used, value, constant(s, value, 0.0));
  // One hot along the channel: elementwise, no scatter.
  tn_type_t type = n.x->types[0];
  type.dtype = TN_I64;
  const tn_node_t* channel = tn_iota(s->g, &type, n.channel);
  const tn_node_t* index = spread(s, with_channel(&n, n.index), channel);
  const tn_node_t* spread_value = spread(s, with_channel(&n, value), n.x);
  const tn_node_t* dx = tn_select(s->g, tn_compare(s->g, TN_EQ, channel, index), spread_value,
                                  constant(s, spread_value, 0.0));
  tn_return(l, tn_convert(s->g, dx, s->dtype));
  return TN_OK;
}

// ---- pointwise losses -----------------------------------------------------------------------------------------

// Input and target from argument |first| on, in the compute type and of one shape.
static tn_status_t read_pair(tn_lowering_t* l, int first, loss_t* s, const tn_node_t** x,
                             const tn_node_t** y) {
  *x = tn_arg_tensor(l, first);
  *y = tn_arg_tensor(l, first + 1);
  s->l = l;
  s->g = l->graph;
  s->dtype = tn_promote_args(l, first, 2);
  s->opmath = tn_opmath_dtype(s->dtype);
  if (!tn_dtype_is_float(s->dtype))
    return TN_DECLINE("%s of %s", l->op->name, tn_dtype_name(s->dtype));
  tn_broadcast_pair(l, s->opmath, x, y);
  return tn_graph_status(l->graph);
}

// The incoming gradient over x's shape, divided by the count for the mean.
static const tn_node_t* incoming(const loss_t* s, const tn_node_t* x, int64_t reduction) {
  const tn_node_t* grad = spread(s, wide(s, tn_arg_tensor(s->l, 0)), x);
  if (reduction != REDUCTION_MEAN) return grad;
  return bin(s, TN_OP_DIV, grad, constant(s, grad, (double)count_of(x)));
}

tn_status_t tn_lower_mse_loss(tn_lowering_t* l) {
  loss_t s;
  const tn_node_t *x, *y;
  TN_TRY(read_pair(l, 0, &s, &x, &y));
  const tn_node_t* difference = bin(&s, TN_OP_SUB, x, y);
  return finish(&s, bin(&s, TN_OP_MUL, difference, difference), tn_arg_int(l, 2, REDUCTION_MEAN));
}

tn_status_t tn_lower_mse_loss_backward(tn_lowering_t* l) {
  loss_t s;
  const tn_node_t *x, *y;
  TN_TRY(read_pair(l, 1, &s, &x, &y));
  const int64_t reduction = tn_arg_int(l, 3, REDUCTION_MEAN);
  const tn_node_t* grad = spread(&s, wide(&s, tn_arg_tensor(l, 0)), x);
  const double norm = reduction == REDUCTION_MEAN ? 2.0 / (double)count_of(x) : 2.0;
  const tn_node_t* dx = bin(&s, TN_OP_MUL, constant(&s, x, norm), bin(&s, TN_OP_SUB, x, y));
  tn_return(l, tn_convert(s.g, bin(&s, TN_OP_MUL, dx, grad), s.dtype));
  return TN_OK;
}

// Number |index| spread over x.
static const tn_node_t* number(const loss_t* s, int index, const tn_node_t* x) {
  return spread(s, tn_arg_scalar(s->l, index, s->opmath), x);
}

// x, target, reduction, beta
tn_status_t tn_lower_smooth_l1_loss(tn_lowering_t* l) {
  loss_t s;
  const tn_node_t *x, *y;
  TN_TRY(read_pair(l, 0, &s, &x, &y));
  const tn_node_t *z = tn_unary(s.g, TN_OP_ABS, bin(&s, TN_OP_SUB, x, y)), *beta = number(&s, 3, x);
  const tn_node_t* half = constant(&s, z, 0.5);
  const tn_node_t* inner =
      bin(&s, TN_OP_DIV, bin(&s, TN_OP_MUL, bin(&s, TN_OP_MUL, half, z), z), beta);
  const tn_node_t* outer = bin(&s, TN_OP_SUB, z, bin(&s, TN_OP_MUL, half, beta));
  return finish(&s, tn_select(s.g, tn_compare(s.g, TN_LT, z, beta), inner, outer),
                tn_arg_int(l, 2, REDUCTION_MEAN));
}

// grad, x, target, reduction, beta
tn_status_t tn_lower_smooth_l1_loss_backward(tn_lowering_t* l) {
  loss_t s;
  const tn_node_t *x, *y;
  TN_TRY(read_pair(l, 1, &s, &x, &y));
  const tn_node_t *difference = bin(&s, TN_OP_SUB, x, y), *beta = number(&s, 4, x);
  const tn_node_t* grad = incoming(&s, x, tn_arg_int(l, 3, REDUCTION_MEAN));
  const tn_node_t* inner = bin(&s, TN_OP_DIV, bin(&s, TN_OP_MUL, difference, grad), beta);
  const tn_node_t* is_low = tn_compare(s.g, TN_LE, difference, tn_unary(s.g, TN_OP_NEG, beta));
  const tn_node_t* is_high = tn_compare(s.g, TN_GE, difference, beta);
  const tn_node_t* dx =
      tn_select(s.g, is_low, tn_unary(s.g, TN_OP_NEG, grad), tn_select(s.g, is_high, grad, inner));
  tn_return(l, tn_convert(s.g, dx, s.dtype));
  return TN_OK;
}

// x, target, reduction, delta
tn_status_t tn_lower_huber_loss(tn_lowering_t* l) {
  loss_t s;
  if (!(tn_arg_double(l, 3, 1.0) > 0.0))
    return TN_DECLINE("huber_loss does not support non-positive values for delta.");
  const tn_node_t *x, *y;
  TN_TRY(read_pair(l, 0, &s, &x, &y));
  const tn_node_t *z = tn_unary(s.g, TN_OP_ABS, bin(&s, TN_OP_SUB, x, y)),
                  *delta = number(&s, 3, x);
  const tn_node_t* half = constant(&s, z, 0.5);
  const tn_node_t* inner = bin(&s, TN_OP_MUL, bin(&s, TN_OP_MUL, half, z), z);
  const tn_node_t* outer =
      bin(&s, TN_OP_MUL, delta, bin(&s, TN_OP_SUB, z, bin(&s, TN_OP_MUL, half, delta)));
  return finish(&s, tn_select(s.g, tn_compare(s.g, TN_LT, z, delta), inner, outer),
                tn_arg_int(l, 2, REDUCTION_MEAN));
}

// grad, x, target, reduction, delta
tn_status_t tn_lower_huber_loss_backward(tn_lowering_t* l) {
  loss_t s;
  const tn_node_t *x, *y;
  TN_TRY(read_pair(l, 1, &s, &x, &y));
  const tn_node_t *difference = bin(&s, TN_OP_SUB, x, y), *delta = number(&s, 4, x);
  const tn_node_t* grad = incoming(&s, x, tn_arg_int(l, 3, REDUCTION_MEAN));
  const tn_node_t* limited =
      bin(&s, TN_OP_MIN, bin(&s, TN_OP_MAX, difference, tn_unary(s.g, TN_OP_NEG, delta)), delta);
  tn_return(l, tn_convert(s.g, bin(&s, TN_OP_MUL, limited, grad), s.dtype));
  return TN_OK;
}

// x, target, weight, reduction. Values outside [0, 1] raise on the CPU.
tn_status_t tn_lower_binary_cross_entropy(tn_lowering_t* l) {
  loss_t s;
  const tn_node_t *x, *y, *weight = tn_arg_tensor(l, 2);
  TN_TRY(read_pair(l, 0, &s, &x, &y));
  const tn_node_t *zero = constant(&s, x, 0.0), *one = constant(&s, x, 1.0);
  const tn_node_t* is_inside =
      bin(&s, TN_OP_AND, tn_compare(s.g, TN_GE, x, zero), tn_compare(s.g, TN_LE, x, one));
  x = tn_checked(l, x, tn_unary(s.g, TN_OP_NOT, is_inside), TN_CHECK_UNIT_INTERVAL);
  const tn_node_t* least = constant(&s, x, -100.0);
  const tn_node_t* log_x = bin(&s, TN_OP_MAX, tn_unary(s.g, TN_OP_LOG, x), least);
  const tn_node_t* log_rest =
      bin(&s, TN_OP_MAX, tn_unary(s.g, TN_OP_LOG1P, tn_unary(s.g, TN_OP_NEG, x)), least);
  const tn_node_t* value =
      bin(&s, TN_OP_SUB, bin(&s, TN_OP_MUL, bin(&s, TN_OP_SUB, y, one), log_rest),
          bin(&s, TN_OP_MUL, y, log_x));
  if (weight) value = bin(&s, TN_OP_MUL, value, spread(&s, wide(&s, weight), value));
  return finish(&s, value, tn_arg_int(l, 3, REDUCTION_MEAN));
}

// grad, x, target, weight, reduction
tn_status_t tn_lower_binary_cross_entropy_backward(tn_lowering_t* l) {
  loss_t s;
  const tn_node_t *x, *y, *weight = tn_arg_tensor(l, 3);
  TN_TRY(read_pair(l, 1, &s, &x, &y));
  const tn_node_t* grad = incoming(&s, x, tn_arg_int(l, 4, REDUCTION_MEAN));
  const tn_node_t* spreadness = bin(&s, TN_OP_MUL, bin(&s, TN_OP_SUB, constant(&s, x, 1.0), x), x);
  spreadness = bin(&s, TN_OP_MAX, spreadness, constant(&s, x, 1e-12));
  const tn_node_t* dx =
      bin(&s, TN_OP_DIV, bin(&s, TN_OP_MUL, grad, bin(&s, TN_OP_SUB, x, y)), spreadness);
  if (weight) dx = bin(&s, TN_OP_MUL, dx, spread(&s, wide(&s, weight), dx));
  tn_return(l, tn_convert(s.g, dx, s.dtype));
  return TN_OK;
}
