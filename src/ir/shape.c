// Dispatch of the shape rules, and what they share.
#include "ir/shape.h"

#include <string.h>

tn_status_t tn_shape_check_type(const tn_shape_t* shape, const tn_type_t* type) {
  if ((unsigned)type->dtype >= TN_DTYPE_COUNT) {
    return TN_SHAPE_ERROR(shape, "expected a valid dtype, got number %d", (int)type->dtype);
  }
  if (type->rank < 0 || type->rank > TN_MAX_RANK) {
    return TN_SHAPE_ERROR(shape, "expected rank 0..%d, got %d", TN_MAX_RANK, type->rank);
  }
  int64_t bytes = (int64_t)tn_dtype_size(type->dtype);
  for (int i = 0; i < type->rank; ++i) {
    if (type->dims[i] < 0) {
      return TN_SHAPE_ERROR(shape, "expected extents >= 0, got %lld in dimension %d",
                            (long long)type->dims[i], i);
    }
    if (__builtin_mul_overflow(bytes, type->dims[i] ? type->dims[i] : 1, &bytes)) {
      return TN_SHAPE_ERROR(shape, "the tensor's bytes exceed the address space");
    }
  }
  return TN_OK;
}

tn_status_t tn_shape_int(const tn_shape_t* shape, tn_attr_name_t name, int64_t* out_value) {
  const tn_attr_t* attr = tn_attr_find(shape->attr_count, shape->attrs, name);
  if (!attr || attr->kind != TN_ATTR_INT) {
    return TN_SHAPE_ERROR(shape, "expected an integer attribute '%s'", tn_attr_text(name));
  }
  *out_value = attr->as.integer;
  return TN_OK;
}

tn_status_t tn_shape_ints(const tn_shape_t* shape, tn_attr_name_t name, int count,
                          const int64_t** out_values, int* out_count) {
  const tn_attr_t* attr = tn_attr_find(shape->attr_count, shape->attrs, name);
  if (!attr || attr->kind != TN_ATTR_INTS) {
    return TN_SHAPE_ERROR(shape, "expected an integer list '%s'", tn_attr_text(name));
  }
  if (count >= 0 ? attr->count != count : attr->count > TN_MAX_RANK) {
    return TN_SHAPE_ERROR(shape, "'%s': expected %d values, got %lld", tn_attr_text(name),
                          count >= 0 ? count : TN_MAX_RANK, (long long)attr->count);
  }
  *out_values = attr->as.ints;
  if (out_count) *out_count = (int)attr->count;
  return TN_OK;
}

tn_status_t tn_shape_dimension(const tn_shape_t* shape, const char* what, int64_t dimension,
                               int rank) {
  if (dimension >= 0 && dimension < rank) return TN_OK;
  if (rank == 0)
    return TN_SHAPE_ERROR(shape, "%s is %lld, the operand has rank 0", what, (long long)dimension);
  return TN_SHAPE_ERROR(shape, "%s: expected 0..%d, got %lld", what, rank - 1,
                        (long long)dimension);
}

static tn_status_t mismatch(const tn_shape_t* shape, const char* what, int a, int b) {
  char first[TN_TYPE_TEXT_SIZE], second[TN_TYPE_TEXT_SIZE];
  return TN_SHAPE_ERROR(shape, "expected operands %d and %d of equal %s, got %s and %s", a, b, what,
                        tn_type_format(tn_shape_operand(shape, a), first),
                        tn_type_format(tn_shape_operand(shape, b), second));
}

tn_status_t tn_shape_same_dims(const tn_shape_t* shape, int a, int b) {
  const tn_type_t *x = tn_shape_operand(shape, a), *y = tn_shape_operand(shape, b);
  if (x->rank != y->rank) return mismatch(shape, "shapes", a, b);
  for (int i = 0; i < x->rank; ++i) {
    if (x->dims[i] != y->dims[i]) return mismatch(shape, "shapes", a, b);
  }
  return TN_OK;
}
tn_status_t tn_shape_same_type(const tn_shape_t* shape, int a, int b) {
  if (tn_type_equal(tn_shape_operand(shape, a), tn_shape_operand(shape, b))) return TN_OK;
  return mismatch(shape, "types", a, b);
}

tn_status_t tn_shape_check_class(const tn_shape_t* shape, int operand, int classes) {
  tn_dtype_t dtype = tn_shape_operand(shape, operand)->dtype;
  if (1 << tn_dtype_class(dtype) & classes) return TN_OK;
  return TN_SHAPE_ERROR(
      shape, "operand %d: expected%s%s%s%s, got %s", operand, classes & TN_SHAPE_BOOL ? " i1" : "",
      classes & TN_SHAPE_INT ? " integer" : "", classes & TN_SHAPE_FLOAT ? " float" : "",
      classes & TN_SHAPE_COMPLEX ? " complex" : "", tn_dtype_name(dtype));
}

bool tn_shape_window(int64_t extent, int64_t base, int64_t low, int64_t high, int64_t size,
                     int64_t dilation, int64_t stride, int64_t* out_extent) {
  // Products of two int64 and a few sums fit 128 bits.
  __int128 span = (extent ? (__int128)(extent - 1) * base + 1 : 0) + low + high;
  __int128 room = span - (size ? (__int128)(size - 1) * dilation + 1 : 0);
  __int128 count = room < 0 ? 0 : room / stride + 1;
  *out_extent = (int64_t)count;
  return count <= INT64_MAX;
}

tn_status_t tn_shape_check_kind(const tn_shape_t* shape, int operand, int64_t kind,
                                bool allow_assign) {
  switch (kind) {
    case TN_REDUCE_SUM:
    case TN_REDUCE_PROD: return tn_shape_check_class(shape, operand, TN_SHAPE_NUMBER);
    case TN_REDUCE_MAX:
    case TN_REDUCE_MIN: return tn_shape_check_class(shape, operand, TN_SHAPE_REAL | TN_SHAPE_BOOL);
    case TN_REDUCE_AND:
    case TN_REDUCE_OR: return tn_shape_check_class(shape, operand, TN_SHAPE_INT | TN_SHAPE_BOOL);
    case TN_REDUCE_ASSIGN:
      if (allow_assign) return TN_OK;
      // fall through
    default:
      return TN_SHAPE_ERROR(shape, "kind %lld is not one of this op's reductions", (long long)kind);
  }
}

tn_status_t tn_shape_result(tn_shape_t* shape) {
  int64_t index;
  TN_TRY(tn_shape_int(shape, TN_ATTR_INDEX, &index));
  const tn_node_t* node = shape->operands[0];
  if (index < 0 || index >= node->result_count) {
    return TN_SHAPE_ERROR(shape, "expected index 0..%d of %s, got %lld", node->result_count - 1,
                          tn_op_info(node->op)->name, (long long)index);
  }
  shape->types[0] = node->types[index];
  return TN_OK;
}

tn_status_t tn_shape_custom_call(tn_shape_t* shape) {
  const tn_attr_t* name = tn_attr_find(shape->attr_count, shape->attrs, TN_ATTR_NAME);
  if (!name || name->kind != TN_ATTR_STRING) return TN_SHAPE_ERROR(shape, "expected a name");
  for (int i = 0; i < shape->result_count; ++i)
    TN_TRY(tn_shape_check_type(shape, &shape->types[i]));
  return TN_OK;
}

static tn_shape_fn_t rule_of(tn_op_t op) {
  switch (op) {
    case TN_OP_PARAM:
    case TN_OP_CONST:
    case TN_OP_IOTA: return tn_shape_leaf;
    case TN_OP_COMPARE:
    case TN_OP_COMPLEX: return tn_shape_binary;
    case TN_OP_SELECT:
    case TN_OP_CLAMP:
    case TN_OP_FMA: return tn_shape_ternary;
    case TN_OP_BROADCAST_IN_DIM: return tn_shape_broadcast_in_dim;
    case TN_OP_RESHAPE: return tn_shape_reshape;
    case TN_OP_TRANSPOSE: return tn_shape_transpose;
    case TN_OP_REVERSE: return tn_shape_reverse;
    case TN_OP_SLICE: return tn_shape_slice;
    case TN_OP_PAD: return tn_shape_pad;
    case TN_OP_CONCAT: return tn_shape_concat;
    case TN_OP_DYNAMIC_SLICE: return tn_shape_dynamic_slice;
    case TN_OP_DYNAMIC_UPDATE_SLICE: return tn_shape_dynamic_update_slice;
    case TN_OP_GATHER: return tn_shape_gather;
    case TN_OP_SCATTER: return tn_shape_scatter;
    case TN_OP_REDUCE: return tn_shape_reduce;
    case TN_OP_ARG_REDUCE: return tn_shape_arg_reduce;
    case TN_OP_REDUCE_WINDOW: return tn_shape_reduce_window;
    case TN_OP_WINDOW_GRAD: return tn_shape_window_grad;
    case TN_OP_SCAN: return tn_shape_scan;
    case TN_OP_SORT: return tn_shape_sort;
    case TN_OP_TOPK: return tn_shape_topk;
    case TN_OP_DOT_GENERAL: return tn_shape_dot_general;
    case TN_OP_CONVOLUTION: return tn_shape_convolution;
    case TN_OP_RNG_BITS: return tn_shape_rng_bits;
    case TN_OP_RESULT: return tn_shape_result;
    case TN_OP_COMPOSITE: return tn_shape_composite;
    case TN_OP_CUSTOM_CALL: return tn_shape_custom_call;
    default: return tn_op_info(op)->operand_count == 1 ? tn_shape_unary : tn_shape_binary;
  }
}

tn_status_t tn_shape_infer(tn_shape_t* shape) {
  const tn_op_info_t* info = tn_op_info(shape->op);
  if (info->operand_count >= 0 && shape->operand_count != info->operand_count) {
    return TN_SHAPE_ERROR(shape, "expected %d operands, got %d", info->operand_count,
                          shape->operand_count);
  }
  if (shape->op != TN_OP_RESULT) {
    for (int i = 0; i < shape->operand_count; ++i) {
      if (shape->operands[i]->result_count != 1) {
        return TN_SHAPE_ERROR(shape, "operand %d has %d results; take one with tn_result", i,
                              shape->operands[i]->result_count);
      }
    }
  }
  if (info->result_count >= 0) shape->result_count = info->result_count;
  return rule_of(shape->op)(shape);
}
