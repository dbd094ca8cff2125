// Unary elementwise ops.
#include <math.h>
#include <string.h>

#include "base/math_scalar.h"
#include "ir/float_bits.h"
#include "ir/interp_complex.h"
#include "ir/interp_internal.h"

// The recipe of an op, or TN_MATH_COUNT_OF_FUNCTIONS.
static tn_math_fn_t recipe_of(tn_op_t op) {
  switch (op) {
    case TN_OP_RSQRT: return TN_MATH_RSQRT;
    case TN_OP_CBRT: return TN_MATH_CBRT;
    case TN_OP_EXP: return TN_MATH_EXP;
    case TN_OP_EXP2: return TN_MATH_EXP2;
    case TN_OP_EXPM1: return TN_MATH_EXPM1;
    case TN_OP_LOG: return TN_MATH_LOG;
    case TN_OP_LOG2: return TN_MATH_LOG2;
    case TN_OP_LOG1P: return TN_MATH_LOG1P;
    case TN_OP_LOGISTIC: return TN_MATH_LOGISTIC;
    case TN_OP_SIN: return TN_MATH_SIN;
    case TN_OP_COS: return TN_MATH_COS;
    case TN_OP_TAN: return TN_MATH_TAN;
    case TN_OP_TANH: return TN_MATH_TANH;
    case TN_OP_ERF: return TN_MATH_ERF;
    case TN_OP_ERFC: return TN_MATH_ERFC;
    case TN_OP_ERFINV: return TN_MATH_ERFINV;
    case TN_OP_ASIN: return TN_MATH_ASIN;
    case TN_OP_ACOS: return TN_MATH_ACOS;
    case TN_OP_ATAN: return TN_MATH_ATAN;
    case TN_OP_SINH: return TN_MATH_SINH;
    case TN_OP_COSH: return TN_MATH_COSH;
    case TN_OP_ASINH: return TN_MATH_ASINH;
    case TN_OP_ACOSH: return TN_MATH_ACOSH;
    case TN_OP_ATANH: return TN_MATH_ATANH;
    default: return TN_MATH_COUNT_OF_FUNCTIONS;
  }
}

static float unary_f32(tn_op_t op, float x) {
  switch (op) {
    case TN_OP_NEG: return -x;
    case TN_OP_ABS: return fabsf(x);
    case TN_OP_SIGN: return x > 0 ? 1.0f : x < 0 ? -1.0f : x;  // zeros and NaN are themselves
    case TN_OP_CEIL: return ceilf(x);
    case TN_OP_FLOOR: return floorf(x);
    case TN_OP_ROUND_EVEN: return rintf(x);
    case TN_OP_ROUND_AFZ: return roundf(x);
    case TN_OP_TRUNC: return truncf(x);
    case TN_OP_SQRT: return sqrtf(x);
    case TN_OP_LGAMMA: return tn_math_lgamma_f32(x);
    case TN_OP_DIGAMMA: return tn_math_digamma_f32(x);
    default: return NAN;
  }
}

static double unary_f64(tn_op_t op, double x) {
  switch (op) {
    case TN_OP_NEG: return -x;
    case TN_OP_ABS: return fabs(x);
    case TN_OP_SIGN: return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
    case TN_OP_CEIL: return ceil(x);
    case TN_OP_FLOOR: return floor(x);
    case TN_OP_ROUND_EVEN: return rint(x);
    case TN_OP_ROUND_AFZ: return round(x);
    case TN_OP_TRUNC: return trunc(x);
    case TN_OP_SQRT: return sqrt(x);
    case TN_OP_LGAMMA: return tn_math_lgamma_f64(x);
    case TN_OP_DIGAMMA: return tn_math_digamma_f64(x);
    default: return tn_math_apply_f64(recipe_of(op), x, 0.0);
  }
}

static uint64_t unary_int(tn_op_t op, tn_dtype_t dtype, uint64_t x) {
  const bool is_signed = tn_dtype_class(dtype) == TN_CLASS_SIGNED;
  const int width = (int)tn_dtype_size(dtype) * 8;
  const uint64_t low = width == 64 ? x : x & ((UINT64_C(1) << width) - 1);
  switch (op) {
    case TN_OP_NEG: return UINT64_C(0) - x;
    case TN_OP_ABS: return is_signed && (int64_t)x < 0 ? UINT64_C(0) - x : x;
    case TN_OP_SIGN: return is_signed && (int64_t)x < 0 ? UINT64_MAX : x != 0;
    case TN_OP_NOT: return dtype == TN_BOOL ? !x : ~x;
    case TN_OP_POPCNT: return (uint64_t)__builtin_popcountll(low);
    case TN_OP_CLZ: return (uint64_t)(low ? __builtin_clzll(low) - (64 - width) : width);
    default: return x;
  }
}

tn_status_t tn_interp_unary(const tn_node_t* node, const void* const* operands,
                            void* const* results) {
  const tn_dtype_t from = node->operands[0]->types[0].dtype, to = node->types[0].dtype;
  const int64_t total = tn_type_element_count(&node->types[0]);
  const tn_math_fn_t recipe = recipe_of(node->op);
  for (int64_t start = 0; start < total; start += TN_CHUNK) {
    const int64_t count = total - start < TN_CHUNK ? total - start : TN_CHUNK;
    tn_elems_t x, y;
    tn_elems_load(from, operands[0], start, count, &x);
    switch (tn_elem_kind(from)) {
      case TN_ELEM_F32:
        if (recipe != TN_MATH_COUNT_OF_FUNCTIONS) {
          tn_math_map_f32(recipe, x.f32, NULL, y.f32, count);
        } else {
          for (int64_t i = 0; i < count; ++i) y.f32[i] = unary_f32(node->op, x.f32[i]);
        }
        break;
      case TN_ELEM_F64:
        for (int64_t i = 0; i < count; ++i) y.f64[i] = unary_f64(node->op, x.f64[i]);
        break;
      case TN_ELEM_I64:
      case TN_ELEM_U64:
        for (int64_t i = 0; i < count; ++i) y.u64[i] = unary_int(node->op, from, x.u64[i]);
        break;
      case TN_ELEM_C64:
        for (int64_t i = 0; i < count; ++i) {
          const tn_complex_t z =
              tn_complex_unary(node->op, (double)x.c64[i][0], (double)x.c64[i][1]);
          if (node->op == TN_OP_ABS) {
            y.f32[i] = (float)z.re;
          } else {
            y.c64[i][0] = (float)z.re, y.c64[i][1] = (float)z.im;
          }
        }
        break;
      case TN_ELEM_C128:
        for (int64_t i = 0; i < count; ++i) {
          const tn_complex_t z = tn_complex_unary(node->op, x.c128[i][0], x.c128[i][1]);
          if (node->op == TN_OP_ABS) {
            y.f64[i] = z.re;
          } else {
            y.c128[i][0] = z.re, y.c128[i][1] = z.im;
          }
        }
        break;
    }
    tn_elems_store(to, results[0], start, count, &y);
  }
  return TN_OK;
}

tn_status_t tn_interp_is_finite(const tn_node_t* node, const void* const* operands,
                                void* const* results) {
  const tn_dtype_t from = node->operands[0]->types[0].dtype;
  const int64_t total = tn_type_element_count(&node->types[0]);
  uint8_t* out = results[0];
  for (int64_t i = 0; i < total; ++i) {
    const tn_elem_t x = tn_elem_load(from, operands[0], i);
    out[i] = from == TN_F64 ? isfinite(x.f64) : isfinite(x.f32);
  }
  return TN_OK;
}

// Real or imaginary part.
tn_status_t tn_interp_parts(const tn_node_t* node, const void* const* operands,
                            void* const* results) {
  const size_t size = tn_dtype_size(node->types[0].dtype);
  const int64_t total = tn_type_element_count(&node->types[0]);
  const uint8_t* from = (const uint8_t*)operands[0] + (node->op == TN_OP_IMAG ? size : 0);
  for (int64_t i = 0; i < total; ++i) {
    memcpy((uint8_t*)results[0] + (size_t)i * size, from + 2 * (size_t)i * size, size);
  }
  return TN_OK;
}

tn_status_t tn_interp_bitcast(const tn_node_t* node, const void* const* operands,
                              void* const* results) {
  const size_t size =
      (size_t)tn_type_element_count(&node->types[0]) * tn_dtype_size(node->types[0].dtype);
  if (size) memcpy(results[0], operands[0], size);
  return TN_OK;
}

// Between floats through f32 lanes; everything else element by element.
tn_status_t tn_interp_convert(const tn_node_t* node, const void* const* operands,
                              void* const* results) {
  const tn_dtype_t from = node->operands[0]->types[0].dtype, to = node->types[0].dtype;
  const int64_t total = tn_type_element_count(&node->types[0]);
  if (tn_elem_kind(from) == TN_ELEM_F32 && tn_elem_kind(to) == TN_ELEM_F32) {
    for (int64_t start = 0; start < total; start += TN_CHUNK) {
      const int64_t count = total - start < TN_CHUNK ? total - start : TN_CHUNK;
      tn_elems_t x;
      tn_elems_load(from, operands[0], start, count, &x);
      tn_elems_store(to, results[0], start, count, &x);
    }
    return TN_OK;
  }
  const size_t from_size = tn_dtype_size(from), to_size = tn_dtype_size(to);
  for (int64_t i = 0; i < total; ++i) {
    tn_scalar_t x = {{0}};
    memcpy(&x, (const uint8_t*)operands[0] + (size_t)i * from_size, from_size);
    const tn_scalar_t y = tn_scalar_convert(to, from, x);
    memcpy((uint8_t*)results[0] + (size_t)i * to_size, &y, to_size);
  }
  return TN_OK;
}
