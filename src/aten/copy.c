// Casts, copies, fills.
#include "aten/lowering.h"

static const tn_node_t* spread(tn_lowering_t* l, const tn_node_t* value, const tn_node_t* x) {
  return x ? tn_broadcast_to(l->graph, value, tn_rank(x), x->types[0].dims) : NULL;
}

// self, source: the source in self's dtype and shape.
tn_status_t tn_lower_copy(tn_lowering_t* l) {
  const tn_node_t *x = tn_arg_tensor(l, 0), *source = tn_arg_tensor(l, 1);
  if (tn_rank(source) > tn_rank(x)) return TN_DECLINE("copy: the source has more dimensions");
  tn_return(l, spread(l, tn_convert(l->graph, source, tn_dtype_of(x)), x));
  return TN_OK;
}

// self, *, dtype, ...
tn_status_t tn_lower_to_copy(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  tn_return(l, tn_convert(l->graph, x, tn_arg_dtype(l, 1, tn_dtype_of(x))));
  return TN_OK;
}

tn_status_t tn_lower_clone(tn_lowering_t* l) {
  tn_return(l, tn_arg_tensor(l, 0));
  return TN_OK;
}

tn_status_t tn_lower_fill(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_node_t* value = tn_arg_scalar(l, 1, tn_dtype_of(x));
  if (tn_rank(value) != 0) return TN_DECLINE("fill_ only supports 0-dimension value tensor");
  tn_return(l, spread(l, value, x));
  return TN_OK;
}

// The dtype argument of zeros_like, ones_like, full_like stands at |index|.
static tn_status_t constant_like(tn_lowering_t* l, double value, int index) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_t dtype = tn_arg_dtype(l, index, tn_dtype_of(x));
  tn_return(l, spread(l, tn_constant_double(l->graph, dtype, value), x));
  return TN_OK;
}
tn_status_t tn_lower_zero(tn_lowering_t* l) { return constant_like(l, 0.0, 1); }
tn_status_t tn_lower_ones_like(tn_lowering_t* l) { return constant_like(l, 1.0, 1); }

// self, value, *, dtype
tn_status_t tn_lower_full_like(tn_lowering_t* l) {
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const tn_dtype_t dtype = tn_arg_dtype(l, 2, tn_dtype_of(x));
  tn_return(l, spread(l, tn_arg_scalar(l, 1, dtype), x));
  return TN_OK;
}
