// PyTorch's type promotion, and broadcasting of operands to a common shape and dtype.
#include <string.h>

#include "aten/lowering.h"

// Widths within one class; f16 with bf16 goes to f32, which no width order expresses.
static int signed_width(tn_dtype_t dtype) { return (int)tn_dtype_size(dtype); }

tn_dtype_t tn_promote_types(tn_dtype_t a, tn_dtype_t b) {
  if (a == b) return a;
  tn_dtype_class_t class_a = tn_dtype_class(a), class_b = tn_dtype_class(b);
  if (class_a > class_b) {
    const tn_dtype_t dtype = a;
    a = b;
    b = dtype;
    const tn_dtype_class_t kind = class_a;
    class_a = class_b;
    class_b = kind;
  }
  if (class_b == TN_CLASS_COMPLEX) {
    if (class_a == TN_CLASS_COMPLEX || a == TN_F64)
      return a == TN_C64 && b == TN_C64 ? TN_C64 : TN_C128;
    return b;
  }
  if (class_b == TN_CLASS_FLOAT) {
    if (class_a != TN_CLASS_FLOAT) return b;
    if (a == TN_F64 || b == TN_F64) return TN_F64;
    if (a == TN_F32 || b == TN_F32) return TN_F32;
    const bool a_is_fp8 = tn_dtype_size(a) == 1, b_is_fp8 = tn_dtype_size(b) == 1;
    if (a_is_fp8 && !b_is_fp8) return b;
    if (b_is_fp8 && !a_is_fp8) return a;
    return TN_F32;  // f16 with bf16
  }
  if (class_a == TN_CLASS_BOOL) return b;
  if (class_a == class_b) return signed_width(a) >= signed_width(b) ? a : b;
  // Signed with unsigned: the signed type, widened until it holds the unsigned one.
  const tn_dtype_t by_width[] = {TN_I8, TN_I16, TN_I32, TN_I64};
  int step = 0;
  while (step < 3 && (signed_width(by_width[step]) < signed_width(a) ||
                      signed_width(by_width[step]) <= signed_width(b)))
    ++step;
  return by_width[step];
}

tn_dtype_t tn_to_float_dtype(tn_dtype_t dtype) {
  return tn_dtype_is_float(dtype) || tn_dtype_is_complex(dtype) ? dtype : TN_F32;
}

tn_dtype_t tn_opmath_dtype(tn_dtype_t dtype) { return tn_dtype_compute(dtype); }

// Result type of each category so far; TN_DTYPE_NONE if none was seen.
typedef struct promotion {
  tn_dtype_t dimensioned, zero_dim, wrapped;
} promotion_t;

static void promotion_add(promotion_t* state, tn_dtype_t dtype, bool is_wrapped, int rank) {
  tn_dtype_t* category = is_wrapped  ? &state->wrapped
                         : rank == 0 ? &state->zero_dim
                                     : &state->dimensioned;
  if (is_wrapped) {  // a Python float means the default dtype, a complex number its complex form
    if (dtype == TN_F64) dtype = TN_F32;
    if (dtype == TN_C128) dtype = TN_C64;
  }
  *category = *category == TN_DTYPE_NONE ? dtype : tn_promote_types(*category, dtype);
}

static void promotion_add_value(promotion_t* state, const tn_value_t* value) {
  if (value->kind == TN_VALUE_SCALAR) {
    promotion_add(state, (tn_dtype_t)value->dtype, true, 0);
  } else if (value->kind == TN_VALUE_TENSOR && value->node) {
    promotion_add(state, value->node->types[0].dtype, value->is_wrapped_number,
                  value->node->types[0].rank);
  } else if (value->kind == TN_VALUE_LIST) {
    for (int i = 0; i < value->count; ++i) promotion_add_value(state, &value->as.list[i]);
  }
}

// A weaker category takes part only if its kind (bool < integer < float < complex) is higher.
static tn_dtype_t combine(tn_dtype_t strong, tn_dtype_t weak) {
  if (strong == TN_DTYPE_NONE) return weak;
  if (weak == TN_DTYPE_NONE) return strong;
  const tn_dtype_class_t strong_class = tn_dtype_class(strong), weak_class = tn_dtype_class(weak);
  const bool both_integers = strong_class != TN_CLASS_BOOL && weak_class != TN_CLASS_BOOL &&
                             strong_class <= TN_CLASS_UNSIGNED && weak_class <= TN_CLASS_UNSIGNED;
  if (both_integers || strong_class >= weak_class) return strong;
  return tn_promote_types(strong, weak);
}

tn_dtype_t tn_promote_args(tn_lowering_t* lowering, int first, int count) {
  promotion_t state = {TN_DTYPE_NONE, TN_DTYPE_NONE, TN_DTYPE_NONE};
  for (int i = first; i < first + count && i < lowering->arg_count; ++i)
    promotion_add_value(&state, &lowering->args[i]);
  const tn_dtype_t dtype = combine(combine(state.dimensioned, state.zero_dim), state.wrapped);
  return dtype == TN_DTYPE_NONE ? TN_F32 : dtype;
}

tn_type_t tn_broadcast_type(tn_lowering_t* lowering, const tn_node_t* a, const tn_node_t* b) {
  tn_type_t type = {.dtype = tn_dtype_of(a)};
  if (!a || !b) return type;
  const tn_type_t *x = &a->types[0], *y = &b->types[0];
  type.rank = x->rank > y->rank ? x->rank : y->rank;
  for (int i = 1; i <= type.rank; ++i) {
    const int64_t dx = i <= x->rank ? x->dims[x->rank - i] : 1,
                  dy = i <= y->rank ? y->dims[y->rank - i] : 1;
    if (dx != dy && dx != 1 && dy != 1)
      tn_graph_fail(lowering->graph,
                    TN_ERROR(TN_INVALID_ARGUMENT,
                             "%s: The size of tensor a (%lld) must match the size of tensor b "
                             "(%lld) at non-singleton "
                             "dimension %d",
                             lowering->op->name, (long long)dx, (long long)dy, type.rank - i));
    type.dims[type.rank - i] = dx == 1 ? dy : dx;
  }
  return type;
}

void tn_broadcast_pair(tn_lowering_t* lowering, tn_dtype_t dtype, const tn_node_t** a,
                       const tn_node_t** b) {
  const tn_type_t type = tn_broadcast_type(lowering, *a, *b);
  *a = tn_broadcast_to(lowering->graph, tn_convert(lowering->graph, *a, dtype), type.rank,
                       type.dims);
  *b = tn_broadcast_to(lowering->graph, tn_convert(lowering->graph, *b, dtype), type.rank,
                       type.dims);
}
