// Shape rules of leaves and elementwise ops.
#include "ir/shape.h"

tn_status_t tn_shape_leaf(tn_shape_t* shape) {
  const tn_type_t* type = &shape->types[0];
  TN_TRY(tn_shape_check_type(shape, type));
  if (shape->op == TN_OP_IOTA) {
    int64_t dimension;
    TN_TRY(tn_shape_int(shape, TN_ATTR_DIMENSION, &dimension));
    TN_TRY(tn_shape_dimension(shape, "dimension", dimension, type->rank));
    if (type->dtype == TN_BOOL) return TN_SHAPE_ERROR(shape, "expected a number type, got i1");
  } else if (shape->op == TN_OP_CONST) {
    const tn_attr_t* value = tn_attr_find(shape->attr_count, shape->attrs, TN_ATTR_VALUE);
    int64_t size = (int64_t)tn_dtype_size(type->dtype), count = tn_type_element_count(type);
    if (!value || value->kind != TN_ATTR_BYTES)
      return TN_SHAPE_ERROR(shape, "expected bytes 'value'");
    if (value->count != size && value->count != size * count) {
      return TN_SHAPE_ERROR(shape, "expected %lld or %lld bytes, got %lld", (long long)size,
                            (long long)(size * count), (long long)value->count);
    }
  }
  return TN_OK;
}

// Classes of the operand of each unary op.
static int unary_classes(tn_op_t op) {
  switch (op) {
    case TN_OP_CONVERT:
    case TN_OP_BITCAST: return TN_SHAPE_ANY;
    case TN_OP_NEG:
    case TN_OP_ABS:
    case TN_OP_SIGN: return TN_SHAPE_NUMBER;
    case TN_OP_NOT: return TN_SHAPE_INT | TN_SHAPE_BOOL;
    case TN_OP_POPCNT:
    case TN_OP_CLZ: return TN_SHAPE_INT;
    case TN_OP_REAL:
    case TN_OP_IMAG: return TN_SHAPE_COMPLEX;
    case TN_OP_CEIL:
    case TN_OP_FLOOR:
    case TN_OP_ROUND_EVEN:
    case TN_OP_ROUND_AFZ:
    case TN_OP_TRUNC:
    case TN_OP_CBRT:
    case TN_OP_ERF:
    case TN_OP_ERFC:
    case TN_OP_ERFINV:
    case TN_OP_LGAMMA:
    case TN_OP_DIGAMMA:
    case TN_OP_IS_FINITE: return TN_SHAPE_FLOAT;
    default: return TN_SHAPE_FLOAT | TN_SHAPE_COMPLEX;
  }
}

static tn_dtype_t real_of(tn_dtype_t dtype) {
  return dtype == TN_C64 ? TN_F32 : dtype == TN_C128 ? TN_F64 : dtype;
}

static void copy_shape(tn_type_t* to, const tn_type_t* from, tn_dtype_t dtype) {
  to->dtype = dtype;
  to->rank = from->rank;
  for (int i = 0; i < from->rank; ++i) to->dims[i] = from->dims[i];
}

tn_status_t tn_shape_unary(tn_shape_t* shape) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  TN_TRY(tn_shape_check_class(shape, 0, unary_classes(shape->op)));
  tn_dtype_t dtype = x->dtype;
  switch (shape->op) {
    case TN_OP_CONVERT:
    case TN_OP_BITCAST:
      dtype = shape->types[0].dtype;
      if ((unsigned)dtype >= TN_DTYPE_COUNT)
        return TN_SHAPE_ERROR(shape, "expected a valid result dtype");
      if (shape->op == TN_OP_BITCAST && tn_dtype_size(dtype) != tn_dtype_size(x->dtype)) {
        return TN_SHAPE_ERROR(shape, "expected dtypes of equal size, got %s and %s",
                              tn_dtype_name(x->dtype), tn_dtype_name(dtype));
      }
      break;
    case TN_OP_ABS:
    case TN_OP_REAL:
    case TN_OP_IMAG: dtype = real_of(dtype); break;
    case TN_OP_IS_FINITE: dtype = TN_BOOL; break;
    default: break;
  }
  copy_shape(&shape->types[0], x, dtype);
  return TN_OK;
}

static int binary_classes(tn_op_t op) {
  switch (op) {
    case TN_OP_ADD:
    case TN_OP_SUB:
    case TN_OP_MUL:
    case TN_OP_DIV:
    case TN_OP_POW: return TN_SHAPE_NUMBER;
    case TN_OP_REM: return TN_SHAPE_REAL;
    case TN_OP_MIN:
    case TN_OP_MAX: return TN_SHAPE_REAL | TN_SHAPE_BOOL;
    case TN_OP_ATAN2:
    case TN_OP_NEXTAFTER:
    case TN_OP_COMPLEX: return TN_SHAPE_FLOAT;
    case TN_OP_AND:
    case TN_OP_OR:
    case TN_OP_XOR: return TN_SHAPE_INT | TN_SHAPE_BOOL;
    case TN_OP_SHL:
    case TN_OP_SHR_A:
    case TN_OP_SHR_L: return TN_SHAPE_INT;
    default: return TN_SHAPE_ANY;
  }
}

tn_status_t tn_shape_binary(tn_shape_t* shape) {
  const tn_type_t* x = tn_shape_operand(shape, 0);
  TN_TRY(tn_shape_check_class(shape, 0, binary_classes(shape->op)));
  TN_TRY(tn_shape_same_type(shape, 0, 1));
  tn_dtype_t dtype = x->dtype;
  if (shape->op == TN_OP_COMPARE) {
    int64_t direction;
    TN_TRY(tn_shape_int(shape, TN_ATTR_DIRECTION, &direction));
    if (direction < TN_EQ || direction > TN_GE) {
      return TN_SHAPE_ERROR(shape, "direction %lld is none of EQ NE LT LE GT GE",
                            (long long)direction);
    }
    if (tn_dtype_is_complex(dtype) && direction > TN_NE) {
      return TN_SHAPE_ERROR(shape, "complex numbers compare by EQ and NE only");
    }
    dtype = TN_BOOL;
  } else if (shape->op == TN_OP_COMPLEX) {
    if (dtype != TN_F32 && dtype != TN_F64) {
      return TN_SHAPE_ERROR(shape, "expected f32 or f64 parts, got %s", tn_dtype_name(dtype));
    }
    dtype = dtype == TN_F32 ? TN_C64 : TN_C128;
  }
  copy_shape(&shape->types[0], x, dtype);
  return TN_OK;
}

tn_status_t tn_shape_ternary(tn_shape_t* shape) {
  if (shape->op == TN_OP_SELECT) {
    TN_TRY(tn_shape_check_class(shape, 0, TN_SHAPE_BOOL));
    TN_TRY(tn_shape_same_type(shape, 1, 2));
    TN_TRY(tn_shape_same_dims(shape, 0, 1));
  } else {
    TN_TRY(
        tn_shape_check_class(shape, 0, shape->op == TN_OP_CLAMP ? TN_SHAPE_REAL : TN_SHAPE_FLOAT));
    TN_TRY(tn_shape_same_type(shape, 0, 1));
    TN_TRY(tn_shape_same_type(shape, 1, 2));
  }
  const tn_type_t* x = tn_shape_operand(shape, 1);
  copy_shape(&shape->types[0], x, x->dtype);
  return TN_OK;
}
