// Elementwise instructions, lane by lane.
#include "codegen/kernel_eval.h"

#include <math.h>
#include <string.h>

#include "base/math_scalar.h"
#include "codegen/math_calls.h"
#include "ir/float_bits.h"

static tn_dtype_class_t class_of(int dtype) { return tn_dtype_class((tn_dtype_t)dtype); }
static unsigned width_of(int dtype) {
  return dtype == TN_BOOL ? 1 : 8 * (unsigned)tn_dtype_size((tn_dtype_t)dtype);
}
static bool is_f64(int dtype) { return dtype == TN_F64; }

// Keeps the low bits that |dtype| has, extended to 64.
static tn_eval_t wrap(int dtype, uint64_t bits) {
  switch (dtype) {
    case TN_BOOL: return (tn_eval_t){.i = bits & 1};
    case TN_I8: return (tn_eval_t){.i = (int8_t)bits};
    case TN_I16: return (tn_eval_t){.i = (int16_t)bits};
    case TN_I32: return (tn_eval_t){.i = (int32_t)bits};
    case TN_U8: return (tn_eval_t){.i = (uint8_t)bits};
    case TN_U16: return (tn_eval_t){.i = (uint16_t)bits};
    case TN_U32: return (tn_eval_t){.i = (uint32_t)bits};
    default: return (tn_eval_t){.i = (int64_t)bits};
  }
}

tn_eval_t tn_eval_load(int dtype, const void* address) {
  tn_scalar_t s;
  memcpy(&s, address, tn_dtype_size((tn_dtype_t)dtype));
  switch (dtype) {
    case TN_BOOL: return (tn_eval_t){.i = s.b != 0};
    case TN_F16: return (tn_eval_t){.f = tn_f16_to_f32(s.bits16)};
    case TN_BF16: return (tn_eval_t){.f = tn_bf16_to_f32(s.bits16)};
    case TN_F32: return (tn_eval_t){.f = s.f32};
    case TN_F64: return (tn_eval_t){.d = s.f64};
    case TN_I8:
    case TN_U8: return wrap(dtype, s.u8);
    case TN_I16:
    case TN_U16: return wrap(dtype, s.u16);
    case TN_I32:
    case TN_U32: return wrap(dtype, s.u32);
    default: return (tn_eval_t){.i = s.i64};
  }
}

void tn_eval_store(int dtype, void* address, tn_eval_t value) {
  tn_scalar_t s;
  switch (dtype) {
    case TN_F16: s.bits16 = tn_f32_to_f16(value.f); break;
    case TN_BF16: s.bits16 = tn_f32_to_bf16(value.f); break;
    case TN_F32: s.f32 = value.f; break;
    case TN_F64: s.f64 = value.d; break;
    default: s.i64 = value.i; break;
  }
  memcpy(address, &s, tn_dtype_size((tn_dtype_t)dtype));
}

tn_eval_t tn_eval_round(int dtype, tn_eval_t value) {
  if (dtype == TN_F16) value.f = tn_f16_to_f32(tn_f32_to_f16(value.f));
  if (dtype == TN_BF16) value.f = tn_bf16_to_f32(tn_f32_to_bf16(value.f));
  return value;
}

// ---- conversion ------------------------------------------------------------------------------------------------
static tn_eval_t convert(int to, int from, tn_eval_t x) {
  tn_scalar_t in = {0};
  tn_eval_store(from, &in, x);
  const tn_scalar_t out = tn_scalar_convert((tn_dtype_t)to, (tn_dtype_t)from, in);
  return tn_eval_load(to, &out);
}
static tn_eval_t bitcast(int to, int from, tn_eval_t x) {
  tn_scalar_t memory = {0};
  tn_eval_store(from, &memory, x);
  return tn_eval_load(to, &memory);
}

// ---- floats ----------------------------------------------------------------------------------------------------
// min and max: a NaN wins, the first one if both are; equal values give b.
#define FLOAT_EXTREME(a, b, relation) (isnan(a) ? (a) : (a)relation(b) ? (a) : (b))

static bool float_unary_f32(int op, float x, float* out) {
  switch (op) {
    case TN_OP_NEG: *out = -x; return true;
    case TN_OP_ABS: *out = fabsf(x); return true;
    case TN_OP_SIGN: *out = x < 0 || x > 0 ? copysignf(1, x) : x; return true;
    case TN_OP_CEIL: *out = ceilf(x); return true;
    case TN_OP_FLOOR: *out = floorf(x); return true;
    case TN_OP_TRUNC: *out = truncf(x); return true;
    case TN_OP_ROUND_EVEN: *out = rintf(x); return true;
    case TN_OP_ROUND_AFZ: *out = roundf(x); return true;
    case TN_OP_SQRT: *out = sqrtf(x); return true;
    case TN_OP_REAL: *out = x; return true;
    case TN_OP_IMAG: *out = 0; return true;
    default: return false;
  }
}
static bool float_unary_f64(int op, double x, double* out) {
  switch (op) {
    case TN_OP_NEG: *out = -x; return true;
    case TN_OP_ABS: *out = fabs(x); return true;
    case TN_OP_SIGN: *out = x < 0 || x > 0 ? copysign(1, x) : x; return true;
    case TN_OP_CEIL: *out = ceil(x); return true;
    case TN_OP_FLOOR: *out = floor(x); return true;
    case TN_OP_TRUNC: *out = trunc(x); return true;
    case TN_OP_ROUND_EVEN: *out = rint(x); return true;
    case TN_OP_ROUND_AFZ: *out = round(x); return true;
    case TN_OP_SQRT: *out = sqrt(x); return true;
    case TN_OP_REAL: *out = x; return true;
    case TN_OP_IMAG: *out = 0; return true;
    default: return false;
  }
}

#define FLOAT_BINARY(name, type)                                  \
  static bool name(int op, type x, type y, type* out) {           \
    switch (op) {                                                 \
      case TN_OP_ADD: *out = x + y; return true;                  \
      case TN_OP_SUB: *out = x - y; return true;                  \
      case TN_OP_MUL: *out = x * y; return true;                  \
      case TN_OP_DIV: *out = x / y; return true;                  \
      case TN_OP_MIN: *out = FLOAT_EXTREME(x, y, <); return true; \
      case TN_OP_MAX: *out = FLOAT_EXTREME(x, y, >); return true; \
      default: return false;                                      \
    }                                                             \
  }
FLOAT_BINARY(float_binary_f32, float)
FLOAT_BINARY(float_binary_f64, double)

// ---- integers ----------------------------------------------------------------------------------------------------
static uint64_t int_divide(int dtype, bool is_remainder, tn_eval_t a, tn_eval_t b) {
  if (b.i == 0) return 0;
  if (class_of(dtype) == TN_CLASS_SIGNED) {
    if (b.i == -1) return is_remainder ? 0 : -(uint64_t)a.i;
    return (uint64_t)(is_remainder ? a.i % b.i : a.i / b.i);
  }
  const uint64_t x = (uint64_t)a.i, y = (uint64_t)b.i;
  return is_remainder ? x % y : x / y;
}

static uint64_t int_power(int dtype, tn_eval_t a, tn_eval_t b) {
  if (class_of(dtype) == TN_CLASS_SIGNED && b.i < 0)
    return a.i == 1 ? 1 : a.i == -1 ? (b.i & 1 ? UINT64_MAX : 1) : 0;
  uint64_t result = 1, square = (uint64_t)a.i;
  for (uint64_t n = (uint64_t)b.i; n; n >>= 1, square *= square)
    if (n & 1) result *= square;
  return result;
}

static uint64_t int_shift(int op, int dtype, tn_eval_t a, tn_eval_t b) {
  const unsigned width = width_of(dtype);
  const uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
  const uint64_t amount = (uint64_t)b.i & mask;
  const bool is_inside = amount < width;
  if (op == TN_OP_SHL) return is_inside ? (uint64_t)a.i << amount : 0;
  if (op == TN_OP_SHR_L) return is_inside ? ((uint64_t)a.i & mask) >> amount : 0;
  // The sign is that of the bits, also for unsigned dtypes.
  const int64_t x = (int64_t)((uint64_t)a.i << (64 - width)) >> (64 - width);
  return (uint64_t)(x >> (is_inside ? amount : width - 1));
}

static bool int_unary(int op, int dtype, tn_eval_t a, uint64_t* out) {
  const unsigned width = width_of(dtype);
  const uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1,
                 bits = (uint64_t)a.i & mask;
  switch (op) {
    case TN_OP_NEG: *out = -(uint64_t)a.i; return true;
    case TN_OP_ABS:
      *out = class_of(dtype) == TN_CLASS_SIGNED && a.i < 0 ? -(uint64_t)a.i : (uint64_t)a.i;
      return true;
    case TN_OP_SIGN:
      *out = a.i == 0 ? 0 : class_of(dtype) == TN_CLASS_SIGNED && a.i < 0 ? UINT64_MAX : 1;
      return true;
    case TN_OP_NOT: *out = ~(uint64_t)a.i; return true;
    case TN_OP_POPCNT: *out = (uint64_t)__builtin_popcountll(bits); return true;
    case TN_OP_CLZ:
      *out = bits ? (uint64_t)__builtin_clzll(bits) - (64 - width) : width;
      return true;
    case TN_OP_CEIL:
    case TN_OP_FLOOR:
    case TN_OP_TRUNC:
    case TN_OP_ROUND_EVEN:
    case TN_OP_ROUND_AFZ:
    case TN_OP_REAL: *out = (uint64_t)a.i; return true;
    case TN_OP_IMAG: *out = 0; return true;
    default: return false;
  }
}

static bool int_less(int dtype, tn_eval_t a, tn_eval_t b) {
  return class_of(dtype) == TN_CLASS_SIGNED ? a.i < b.i : (uint64_t)a.i < (uint64_t)b.i;
}

static bool int_binary(int op, int dtype, tn_eval_t a, tn_eval_t b, uint64_t* out) {
  const uint64_t x = (uint64_t)a.i, y = (uint64_t)b.i;
  const bool is_bool = dtype == TN_BOOL;
  switch (op) {
    case TN_OP_ADD: *out = is_bool ? x | y : x + y; return true;
    case TN_OP_SUB: *out = is_bool ? x ^ y : x - y; return true;
    case TN_OP_MUL: *out = is_bool ? x & y : x * y; return true;
    case TN_OP_DIV: *out = is_bool ? x & y : int_divide(dtype, false, a, b); return true;
    case TN_OP_REM: *out = is_bool ? 0 : int_divide(dtype, true, a, b); return true;
    case TN_OP_POW: *out = is_bool ? x | (y ^ 1) : int_power(dtype, a, b); return true;
    case TN_OP_MIN: *out = int_less(dtype, a, b) ? x : y; return true;
    case TN_OP_MAX: *out = int_less(dtype, a, b) ? y : x; return true;
    case TN_OP_AND: *out = x & y; return true;
    case TN_OP_OR: *out = x | y; return true;
    case TN_OP_XOR: *out = x ^ y; return true;
    case TN_OP_SHL:
    case TN_OP_SHR_A:
    case TN_OP_SHR_L:
      if (is_bool) return false;
      *out = int_shift(op, dtype, a, b);
      return true;
    default: return false;
  }
}

static bool compare(int direction, int dtype, tn_eval_t a, tn_eval_t b) {
#define COMPARE(x, y)              \
  switch (direction) {             \
    case TN_EQ: return (x) == (y); \
    case TN_NE: return (x) != (y); \
    case TN_LT: return (x) < (y);  \
    case TN_LE: return (x) <= (y); \
    case TN_GT: return (x) > (y);  \
    default: return (x) >= (y);    \
  }
  switch (class_of(dtype)) {
    case TN_CLASS_FLOAT:
      if (is_f64(dtype)) COMPARE(a.d, b.d)
      COMPARE(a.f, b.f)
    case TN_CLASS_SIGNED: COMPARE(a.i, b.i)
    default: COMPARE((uint64_t)a.i, (uint64_t)b.i)
  }
#undef COMPARE
}

// ---- C functions that kernels call -----------------------------------------------------------------------------

// The neighbour of a 16-bit float in the direction of |y|: one bit pattern away, in sign-magnitude order.
static uint16_t next_bits(uint16_t bits, bool is_up) {
  const bool is_negative = (bits & 0x8000) != 0;
  if ((bits & 0x7fff) == 0) return is_up ? 1 : 0x8001;
  return (uint16_t)(is_negative == is_up ? bits - 1 : bits + 1);
}
static float nextafter_small(bool is_bf16, float x, float y) {
  if (isnan(x)) return x;
  if (isnan(y) || x == y) return y;
  return is_bf16 ? tn_bf16_to_f32(next_bits(tn_f32_to_bf16(x), x < y))
                 : tn_f16_to_f32(next_bits(tn_f32_to_f16(x), x < y));
}

void tn_math_call_f32(int32_t function, const float* x, const float* y, float* out, int64_t lanes) {
  if (function < TN_MATH_COUNT_OF_FUNCTIONS) {
    tn_math_map_f32((tn_math_fn_t)function, x, y, out, lanes);
    return;
  }
  for (int64_t i = 0; i < lanes; ++i) {
    switch (function) {
      case TN_MATH_CALL_LGAMMA: out[i] = tn_math_lgamma_f32(x[i]); break;
      case TN_MATH_CALL_DIGAMMA: out[i] = tn_math_digamma_f32(x[i]); break;
      case TN_MATH_CALL_FMOD: out[i] = fmodf(x[i], y[i]); break;
      case TN_MATH_CALL_NEXTAFTER_F16: out[i] = nextafter_small(false, x[i], y[i]); break;
      case TN_MATH_CALL_NEXTAFTER_BF16: out[i] = nextafter_small(true, x[i], y[i]); break;
      default: out[i] = nextafterf(x[i], y[i]); break;
    }
  }
}

void tn_math_call_f64(int32_t function, const double* x, const double* y, double* out,
                      int64_t lanes) {
  for (int64_t i = 0; i < lanes; ++i) {
    switch (function) {
      case TN_MATH_CALL_LGAMMA: out[i] = tn_math_lgamma_f64(x[i]); break;
      case TN_MATH_CALL_DIGAMMA: out[i] = tn_math_digamma_f64(x[i]); break;
      case TN_MATH_CALL_FMOD: out[i] = fmod(x[i], y[i]); break;
      case TN_MATH_CALL_NEXTAFTER: out[i] = nextafter(x[i], y[i]); break;
      default: out[i] = tn_math_apply_f64((tn_math_fn_t)function, x[i], y[i]); break;
    }
  }
}

// ---- instructions --------------------------------------------------------------------------------------------------
static bool eval_lane(int op, int dtype, tn_eval_t a, tn_eval_t b, tn_eval_t* out) {
  if (class_of(dtype) != TN_CLASS_FLOAT) {
    uint64_t bits;
    if (!int_unary(op, dtype, a, &bits) && !int_binary(op, dtype, a, b, &bits)) return false;
    *out = wrap(dtype, bits);
    return true;
  }
  const int function = tn_math_call_function(op, dtype);
  tn_eval_t result = {0};
  if (is_f64(dtype)) {
    if (!float_unary_f64(op, a.d, &result.d) && !float_binary_f64(op, a.d, b.d, &result.d)) {
      if (function < 0) return false;
      tn_math_call_f64(function, &a.d, &b.d, &result.d, 1);
    }
  } else if (!float_unary_f32(op, a.f, &result.f) && !float_binary_f32(op, a.f, b.f, &result.f)) {
    if (function < 0) return false;
    tn_math_call_f32(function, &a.f, &b.f, &result.f, 1);
  }
  *out = tn_eval_round(dtype, result);
  return true;
}

static tn_eval_t fma_lane(int dtype, tn_eval_t a, tn_eval_t b, tn_eval_t c) {
  if (class_of(dtype) != TN_CLASS_FLOAT)
    return wrap(dtype, (uint64_t)a.i * (uint64_t)b.i + (uint64_t)c.i);
  if (is_f64(dtype)) return (tn_eval_t){.d = fma(a.d, b.d, c.d)};
  return tn_eval_round(dtype, (tn_eval_t){.f = fmaf(a.f, b.f, c.f)});
}

bool tn_kernel_eval(const tn_kernel_inst_t* inst, int from, int count, const tn_eval_t* a,
                    const tn_eval_t* b, const tn_eval_t* c, tn_eval_t* out) {
  for (int i = 0; i < count; ++i) {
    switch (inst->op) {
      case TN_OP_CONVERT: out[i] = convert(inst->dtype, from, a[i]); break;
      case TN_OP_BITCAST: out[i] = bitcast(inst->dtype, from, a[i]); break;
      case TN_OP_COMPARE: out[i] = (tn_eval_t){.i = compare(inst->index, from, a[i], b[i])}; break;
      case TN_OP_SELECT: out[i] = a[i].i ? b[i] : c[i]; break;
      case TN_OP_FMA: out[i] = fma_lane(inst->dtype, a[i], b[i], c[i]); break;
      case TN_OP_IS_FINITE:
        out[i] =
            (tn_eval_t){.i = is_f64(from) ? isfinite(a[i].d)
                                          : class_of(from) != TN_CLASS_FLOAT || isfinite(a[i].f)};
        break;
      case TN_OP_CLAMP: {  // min(max(x, low), high)
        tn_eval_t x;
        if (!eval_lane(TN_OP_MAX, inst->dtype, b[i], a[i], &x) ||
            !eval_lane(TN_OP_MIN, inst->dtype, x, c[i], &x))
          return false;
        out[i] = x;
        break;
      }
      default:
        if (!eval_lane(inst->op, inst->dtype, a[i], b ? b[i] : a[i], &out[i])) return false;
        break;
    }
  }
  return true;
}

tn_eval_t tn_eval_combine(int kind, int dtype, tn_eval_t a, tn_eval_t b) {
  static const uint8_t ops[] = {TN_OP_ADD, TN_OP_MUL, TN_OP_MAX, TN_OP_MIN, TN_OP_AND, TN_OP_OR};
  tn_eval_t out = {0};
  eval_lane(ops[kind], dtype, a, b, &out);
  return out;
}

tn_eval_t tn_eval_identity(int kind, int dtype) {
  if (class_of(dtype) == TN_CLASS_FLOAT) {
    const float x = kind == TN_REDUCE_PROD  ? 1
                    : kind == TN_REDUCE_MAX ? -INFINITY
                    : kind == TN_REDUCE_MIN ? INFINITY
                                            : 0;
    return is_f64(dtype) ? (tn_eval_t){.d = x} : (tn_eval_t){.f = x};
  }
  const uint64_t top = UINT64_C(1) << (width_of(dtype) - 1);
  const bool is_signed = class_of(dtype) == TN_CLASS_SIGNED;
  switch (kind) {
    case TN_REDUCE_PROD: return wrap(dtype, 1);
    case TN_REDUCE_MAX: return wrap(dtype, is_signed ? top : 0);
    case TN_REDUCE_MIN: return wrap(dtype, is_signed ? top - 1 : UINT64_MAX);
    case TN_REDUCE_AND: return wrap(dtype, UINT64_MAX);
    default: return wrap(dtype, 0);
  }
}
