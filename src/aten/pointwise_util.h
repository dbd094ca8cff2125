// Shared by the elementwise operators of two operands.
#ifndef TN_ATEN_POINTWISE_UTIL_H_
#define TN_ATEN_POINTWISE_UTIL_H_

#include "aten/lowering.h"

typedef struct tn_pair {
  const tn_node_t *x, *y;
  tn_dtype_t dtype;   // result type of promotion
  tn_dtype_t opmath;  // both operands have it
} tn_pair_t;

// A tensor is rounded to the type of promotion before the arithmetic (257 beside bf16 is 256); a number is not.
static inline const tn_node_t* tn_round_tensor(tn_lowering_t* l, int index, const tn_node_t* node,
                                               tn_dtype_t dtype) {
  const tn_value_t* arg = &l->args[index];
  const bool is_tensor = arg->kind == TN_VALUE_TENSOR && !arg->is_wrapped_number;
  return node && is_tensor ? tn_convert(l->graph, node, dtype) : node;
}

// Arguments 0 and 1, promoted, broadcast, in the type the arithmetic is done in (f16 and bf16: f32).
// |keeps_scalar|: a second tensor without dimensions is read as it is, which products and quotients do on the CPU.
static inline tn_pair_t tn_pair_operands_of(tn_lowering_t* l, bool is_float, bool keeps_scalar) {
  tn_pair_t p = {.x = tn_arg_node(l, 0), .y = tn_arg_node(l, 1)};
  p.dtype = tn_promote_args(l, 0, 2);
  if (is_float) p.dtype = tn_to_float_dtype(p.dtype);
  p.opmath = tn_opmath_dtype(p.dtype);
  if (p.opmath != p.dtype) {
    p.x = tn_round_tensor(l, 0, p.x, p.dtype);
    if (!keeps_scalar || tn_rank(p.y) > 0) p.y = tn_round_tensor(l, 1, p.y, p.dtype);
  }
  tn_broadcast_pair(l, p.opmath, &p.x, &p.y);
  return p;
}
static inline tn_pair_t tn_pair_operands(tn_lowering_t* l, bool is_float) {
  return tn_pair_operands_of(l, is_float, false);
}

static inline tn_status_t tn_return_as(tn_lowering_t* l, const tn_node_t* value, tn_dtype_t dtype) {
  tn_return(l, tn_convert(l->graph, value, dtype));
  return TN_OK;
}

#endif  // TN_ATEN_POINTWISE_UTIL_H_
