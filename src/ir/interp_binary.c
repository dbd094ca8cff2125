// Binary and ternary elementwise ops.
#include <math.h>
#include <string.h>

#include "base/math_scalar.h"
#include "ir/float_bits.h"
#include "ir/interp_complex.h"
#include "ir/interp_internal.h"

#define EACH(expression) \
  for (int64_t i = 0; i < count; ++i) out[i] = (expression)
static void binary_f32(tn_op_t op, const float* x, const float* y, float* out, int64_t count) {
  switch (op) {
    case TN_OP_ADD: EACH(x[i] + y[i]); break;
    case TN_OP_SUB: EACH(x[i] - y[i]); break;
    case TN_OP_MUL: EACH(x[i] * y[i]); break;
    case TN_OP_DIV: EACH(x[i] / y[i]); break;
    case TN_OP_REM: EACH(fmodf(x[i], y[i])); break;
    case TN_OP_MIN: EACH(tn_extreme_f32(false, x[i], y[i])); break;
    case TN_OP_MAX: EACH(tn_extreme_f32(true, x[i], y[i])); break;
    case TN_OP_POW: tn_math_map_f32(TN_MATH_POW, x, y, out, count); break;
    case TN_OP_ATAN2: tn_math_map_f32(TN_MATH_ATAN2, x, y, out, count); break;
    case TN_OP_NEXTAFTER: EACH(nextafterf(x[i], y[i])); break;
    default: EACH(NAN);
  }
}

static double binary_f64(tn_op_t op, double x, double y) {
  switch (op) {
    case TN_OP_ADD: return x + y;
    case TN_OP_SUB: return x - y;
    case TN_OP_MUL: return x * y;
    case TN_OP_DIV: return x / y;
    case TN_OP_REM: return fmod(x, y);
    case TN_OP_MIN: return tn_extreme_f64(false, x, y);
    case TN_OP_MAX: return tn_extreme_f64(true, x, y);
    case TN_OP_POW: return pow(x, y);
    case TN_OP_ATAN2: return atan2(x, y);
    case TN_OP_NEXTAFTER: return nextafter(x, y);
    default: return NAN;
  }
}

// The next value of a 16-bit or 8-bit float is one bit pattern away, in sign-magnitude order.
static uint32_t next_bits(uint32_t x, uint32_t sign_bit, bool is_up) {
  const bool is_negative = (x & sign_bit) != 0, is_zero = (x & (sign_bit - 1)) == 0;
  if (is_zero) return is_up ? 1 : sign_bit | 1;
  return is_negative == is_up ? x - 1 : x + 1;
}
static void nextafter_small(tn_dtype_t dtype, const void* x, const void* y, void* out, int64_t i) {
  const float a = tn_elem_load(dtype, x, i).f32, b = tn_elem_load(dtype, y, i).f32;
  const size_t size = tn_dtype_size(dtype);
  if (a != a || b != b || a == b) {
    tn_elem_t lane = {.f32 = a != a ? a : b};
    tn_elem_store(dtype, out, i, lane);
    return;
  }
  uint16_t bits = 0;
  memcpy(&bits, (const uint8_t*)x + (size_t)i * size, size);
  bits = (uint16_t)next_bits(bits, size == 2 ? 0x8000 : 0x80, a < b);
  memcpy((uint8_t*)out + (size_t)i * size, &bits, size);
}

static uint64_t power_int(bool is_signed, uint64_t x, uint64_t y) {
  if (is_signed && (int64_t)y < 0) {
    if (x == 1) return 1;
    return x == UINT64_MAX ? (y & 1 ? UINT64_MAX : 1) : 0;
  }
  uint64_t result = 1;
  for (; y; y >>= 1, x *= x) {
    if (y & 1) result *= x;
  }
  return result;
}

// On lanes widened to 64 bits, signed ones with their sign.
static uint64_t binary_int(tn_op_t op, tn_dtype_t dtype, uint64_t x, uint64_t y) {
  const bool is_signed = tn_dtype_class(dtype) == TN_CLASS_SIGNED;
  const uint64_t width = tn_dtype_size(dtype) * 8;
  const uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
  switch (op) {
    case TN_OP_ADD: return x + y;
    case TN_OP_SUB: return x - y;
    case TN_OP_MUL: return x * y;
    case TN_OP_DIV:
      if (y == 0) return 0;
      if (!is_signed) return x / y;
      return y == UINT64_MAX ? UINT64_C(0) - x : (uint64_t)((int64_t)x / (int64_t)y);
    case TN_OP_REM:
      if (y == 0) return 0;
      if (!is_signed) return x % y;
      return y == UINT64_MAX ? 0 : (uint64_t)((int64_t)x % (int64_t)y);
    case TN_OP_POW: return power_int(is_signed, x, y);
    case TN_OP_MIN: return (is_signed ? (int64_t)x < (int64_t)y : x < y) ? x : y;
    case TN_OP_MAX: return (is_signed ? (int64_t)x > (int64_t)y : x > y) ? x : y;
    case TN_OP_AND: return x & y;
    case TN_OP_OR: return x | y;
    case TN_OP_XOR: return x ^ y;
    // a negative amount is a large unsigned one
    case TN_OP_SHL: return y < width ? x << y : 0;
    case TN_OP_SHR_A: {
      const uint64_t sign =
          is_signed ? x : (uint64_t)((int64_t)(x << (64 - width)) >> (64 - width));
      return (uint64_t)((int64_t)sign >> (y < width ? y : width - 1));
    }
    case TN_OP_SHR_L: return y < width ? (x & mask) >> y : 0;
    default: return 0;
  }
}

// Arithmetic on bools: add is or, multiply is and, subtract is xor.
static uint64_t binary_bool(tn_op_t op, uint64_t x, uint64_t y) {
  switch (op) {
    case TN_OP_SUB:
    case TN_OP_XOR: return x ^ y;
    case TN_OP_ADD:
    case TN_OP_MAX:
    case TN_OP_OR: return x | y;
    case TN_OP_POW: return x | !y;
    case TN_OP_REM: return 0;
    default: return x & y;
  }
}

static void binary_c64(tn_op_t op, const float x[2], const float y[2], float out[2]) {
  switch (op) {
    case TN_OP_ADD: out[0] = x[0] + y[0], out[1] = x[1] + y[1]; return;
    case TN_OP_SUB: out[0] = x[0] - y[0], out[1] = x[1] - y[1]; return;
    case TN_OP_MUL: out[0] = x[0] * y[0] - x[1] * y[1], out[1] = x[0] * y[1] + x[1] * y[0]; return;
    default: {
      const tn_complex_t a = {(double)x[0], (double)x[1]}, b = {(double)y[0], (double)y[1]};
      const tn_complex_t z = tn_complex_binary(op, a, b);
      out[0] = (float)z.re, out[1] = (float)z.im;
    }
  }
}
static void binary_c128(tn_op_t op, const double x[2], const double y[2], double out[2]) {
  switch (op) {
    case TN_OP_ADD: out[0] = x[0] + y[0], out[1] = x[1] + y[1]; return;
    case TN_OP_SUB: out[0] = x[0] - y[0], out[1] = x[1] - y[1]; return;
    case TN_OP_MUL: out[0] = x[0] * y[0] - x[1] * y[1], out[1] = x[0] * y[1] + x[1] * y[0]; return;
    default: {
      const tn_complex_t z =
          tn_complex_binary(op, (tn_complex_t){x[0], x[1]}, (tn_complex_t){y[0], y[1]});
      out[0] = z.re, out[1] = z.im;
    }
  }
}

tn_status_t tn_interp_binary(const tn_node_t* node, const void* const* operands,
                             void* const* results) {
  const tn_dtype_t dtype = node->types[0].dtype;
  const tn_op_t op = node->op;
  const int64_t total = tn_type_element_count(&node->types[0]);
  if (op == TN_OP_NEXTAFTER && tn_dtype_size(dtype) < 4) {
    for (int64_t i = 0; i < total; ++i)
      nextafter_small(dtype, operands[0], operands[1], results[0], i);
    return TN_OK;
  }
  for (int64_t start = 0; start < total; start += TN_CHUNK) {
    const int64_t count = total - start < TN_CHUNK ? total - start : TN_CHUNK;
    tn_elems_t x, y, z;
    tn_elems_load(dtype, operands[0], start, count, &x);
    tn_elems_load(dtype, operands[1], start, count, &y);
    if (tn_elem_kind(dtype) == TN_ELEM_F32) binary_f32(op, x.f32, y.f32, z.f32, count);
    for (int64_t i = 0; i < count && tn_elem_kind(dtype) != TN_ELEM_F32; ++i) {
      switch (tn_elem_kind(dtype)) {
        case TN_ELEM_F32: break;
        case TN_ELEM_F64: z.f64[i] = binary_f64(op, x.f64[i], y.f64[i]); break;
        case TN_ELEM_I64:
        case TN_ELEM_U64:
          z.u64[i] = dtype == TN_BOOL ? binary_bool(op, x.u64[i], y.u64[i])
                                      : binary_int(op, dtype, x.u64[i], y.u64[i]);
          break;
        case TN_ELEM_C64: binary_c64(op, x.c64[i], y.c64[i], z.c64[i]); break;
        case TN_ELEM_C128: binary_c128(op, x.c128[i], y.c128[i], z.c128[i]); break;
      }
    }
    tn_elems_store(dtype, results[0], start, count, &z);
  }
  return TN_OK;
}

#define COMPARE(x, y)                \
  (direction == TN_EQ   ? (x) == (y) \
   : direction == TN_NE ? (x) != (y) \
   : direction == TN_LT ? (x) < (y)  \
   : direction == TN_LE ? (x) <= (y) \
   : direction == TN_GT ? (x) > (y)  \
                        : (x) >= (y))
#define COMPARE_COMPLEX(x, y) (((x)[0] == (y)[0] && (x)[1] == (y)[1]) == (direction == TN_EQ))

tn_status_t tn_interp_compare(const tn_node_t* node, const void* const* operands,
                              void* const* results) {
  const tn_dtype_t dtype = node->operands[0]->types[0].dtype;
  const int64_t total = tn_type_element_count(&node->types[0]);
  const tn_compare_t direction = (tn_compare_t)tn_node_int(node, TN_ATTR_DIRECTION, TN_EQ);
  uint8_t* out = results[0];
  for (int64_t i = 0; i < total; ++i) {
    const tn_elem_t x = tn_elem_load(dtype, operands[0], i),
                    y = tn_elem_load(dtype, operands[1], i);
    bool result = false;
    switch (tn_elem_kind(dtype)) {
      case TN_ELEM_F32: result = COMPARE(x.f32, y.f32); break;
      case TN_ELEM_F64: result = COMPARE(x.f64, y.f64); break;
      case TN_ELEM_I64: result = COMPARE(x.i64, y.i64); break;
      case TN_ELEM_U64: result = COMPARE(x.u64, y.u64); break;
      case TN_ELEM_C64: result = COMPARE_COMPLEX(x.c64, y.c64); break;
      case TN_ELEM_C128: result = COMPARE_COMPLEX(x.c128, y.c128); break;
    }
    out[i] = result;
  }
  return TN_OK;
}

tn_status_t tn_interp_complex(const tn_node_t* node, const void* const* operands,
                              void* const* results) {
  const size_t size = tn_dtype_size(node->types[0].dtype) / 2;
  const int64_t total = tn_type_element_count(&node->types[0]);
  for (int64_t i = 0; i < 2 * total; ++i) {
    memcpy((uint8_t*)results[0] + (size_t)i * size,
           (const uint8_t*)operands[i % 2] + (size_t)(i / 2) * size, size);
  }
  return TN_OK;
}

tn_status_t tn_interp_select(const tn_node_t* node, const void* const* operands,
                             void* const* results) {
  const size_t size = tn_dtype_size(node->types[0].dtype);
  const int64_t total = tn_type_element_count(&node->types[0]);
  const uint8_t* predicate = operands[0];
  for (int64_t i = 0; i < total; ++i) {
    const uint8_t* from = operands[predicate[i] ? 1 : 2];
    memcpy((uint8_t*)results[0] + (size_t)i * size, from + (size_t)i * size, size);
  }
  return TN_OK;
}

// min(max(x, low), high)
tn_status_t tn_interp_clamp(const tn_node_t* node, const void* const* operands,
                            void* const* results) {
  const tn_dtype_t dtype = node->types[0].dtype;
  const tn_elem_kind_t lanes = tn_elem_kind(dtype);
  const int64_t total = tn_type_element_count(&node->types[0]);
  for (int64_t i = 0; i < total; ++i) {
    tn_elem_t x = tn_elem_load(dtype, operands[1], i);
    x = tn_elem_combine(TN_REDUCE_MAX, lanes, x, tn_elem_load(dtype, operands[0], i));
    x = tn_elem_combine(TN_REDUCE_MIN, lanes, x, tn_elem_load(dtype, operands[2], i));
    tn_elem_store(dtype, results[0], i, x);
  }
  return TN_OK;
}

tn_status_t tn_interp_fma(const tn_node_t* node, const void* const* operands,
                          void* const* results) {
  const tn_dtype_t dtype = node->types[0].dtype;
  const int64_t total = tn_type_element_count(&node->types[0]);
  for (int64_t i = 0; i < total; ++i) {
    tn_elem_t x = tn_elem_load(dtype, operands[0], i);
    const tn_elem_t y = tn_elem_load(dtype, operands[1], i),
                    z = tn_elem_load(dtype, operands[2], i);
    if (dtype == TN_F64) {
      x.f64 = fma(x.f64, y.f64, z.f64);
    } else {
      x.f32 = fmaf(x.f32, y.f32, z.f32);
    }
    tn_elem_store(dtype, results[0], i, x);
  }
  return TN_OK;
}
