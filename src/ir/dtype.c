// Facts of element types and conversions of single elements.
#include "tn/dtype.h"

#include <string.h>

#include "ir/float_bits.h"

typedef struct tn_dtype_row {
  const char* name;
  uint8_t size;
  uint8_t kind;
} tn_dtype_row_t;

static const tn_dtype_row_t rows[] = {
#define TN_DTYPE_ROW(name, text, size, kind) {text, size, kind},
    TN_DTYPES(TN_DTYPE_ROW)
#undef TN_DTYPE_ROW
};

size_t tn_dtype_size(tn_dtype_t dtype) { return rows[dtype].size; }
const char* tn_dtype_name(tn_dtype_t dtype) {
  return dtype < TN_DTYPE_COUNT ? rows[dtype].name : "none";
}
tn_dtype_class_t tn_dtype_class(tn_dtype_t dtype) { return (tn_dtype_class_t)rows[dtype].kind; }
bool tn_dtype_is_integer(tn_dtype_t dtype) {
  return rows[dtype].kind == TN_CLASS_SIGNED || rows[dtype].kind == TN_CLASS_UNSIGNED;
}
bool tn_dtype_is_float(tn_dtype_t dtype) { return rows[dtype].kind == TN_CLASS_FLOAT; }
bool tn_dtype_is_complex(tn_dtype_t dtype) { return rows[dtype].kind == TN_CLASS_COMPLEX; }

tn_dtype_t tn_dtype_from_name(const char* name, size_t length) {
  for (int i = 0; i < TN_DTYPE_COUNT; ++i) {
    if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
      return (tn_dtype_t)i;
  }
  return TN_DTYPE_NONE;
}

tn_dtype_t tn_dtype_compute(tn_dtype_t dtype) {
  return tn_dtype_is_float(dtype) && rows[dtype].size < 4 ? TN_F32 : dtype;
}

// Rounds an f32 to a float dtype below 4 bytes.
static tn_scalar_t narrow_f32(tn_dtype_t dtype, float value) {
  tn_scalar_t out = {0};
  switch (dtype) {
    case TN_F16: out.bits16 = tn_f32_to_f16(value); break;
    case TN_BF16: out.bits16 = tn_f32_to_bf16(value); break;
    case TN_F8E4M3FN: out.u8 = tn_f32_to_f8e4m3fn(value); break;
    case TN_F8E5M2: out.u8 = tn_f32_to_f8e5m2(value); break;
    default: out.f32 = value; break;
  }
  return out;
}

// Keeps the low bytes of |bits| that |dtype| has.
static tn_scalar_t narrow_int(tn_dtype_t dtype, uint64_t bits) {
  tn_scalar_t out = {0};
  switch (rows[dtype].size) {
    case 1: out.u8 = (uint8_t)bits; break;
    case 2: out.u16 = (uint16_t)bits; break;
    case 4: out.u32 = (uint32_t)bits; break;
    default: out.u64 = bits; break;
  }
  return out;
}

tn_scalar_t tn_scalar_from_complex(tn_dtype_t dtype, double real, double imag) {
  tn_scalar_t out = {0};
  switch (rows[dtype].kind) {
    case TN_CLASS_BOOL: out.b = real != 0 || imag != 0; return out;
    case TN_CLASS_SIGNED: return narrow_int(dtype, (uint64_t)tn_f64_to_i64(real));
    case TN_CLASS_UNSIGNED:
      return narrow_int(dtype,
                        dtype == TN_U64 ? tn_f64_to_u64(real) : (uint64_t)tn_f64_to_i64(real));
    case TN_CLASS_FLOAT:
      if (dtype != TN_F64) return narrow_f32(dtype, (float)real);
      out.f64 = real;
      return out;
    default:
      if (dtype == TN_C64) {
        out.c64[0] = (float)real;
        out.c64[1] = (float)imag;
      } else {
        out.c128[0] = real;
        out.c128[1] = imag;
      }
      return out;
  }
}

tn_scalar_t tn_scalar_from_double(tn_dtype_t dtype, double value) {
  return tn_scalar_from_complex(dtype, value, 0);
}

tn_scalar_t tn_scalar_from_int(tn_dtype_t dtype, int64_t value) {
  tn_scalar_t out = {0};
  switch (rows[dtype].kind) {
    case TN_CLASS_BOOL: out.b = value != 0; return out;
    case TN_CLASS_SIGNED:
    case TN_CLASS_UNSIGNED: return narrow_int(dtype, (uint64_t)value);
    case TN_CLASS_FLOAT:
      // One rounding from the integer, not two through f64.
      if (dtype != TN_F64) return narrow_f32(dtype, (float)value);
      out.f64 = (double)value;
      return out;
    default:
      if (dtype == TN_C64) {
        out.c64[0] = (float)value;
      } else {
        out.c128[0] = (double)value;
      }
      return out;
  }
}

double tn_scalar_to_double(tn_dtype_t dtype, tn_scalar_t value) {
  switch (dtype) {
    case TN_BOOL: return value.b;
    case TN_I8: return value.i8;
    case TN_I16: return value.i16;
    case TN_I32: return value.i32;
    case TN_I64: return (double)value.i64;
    case TN_U8: return value.u8;
    case TN_U16: return value.u16;
    case TN_U32: return value.u32;
    case TN_U64: return (double)value.u64;
    case TN_F16: return tn_f16_to_f32(value.bits16);
    case TN_BF16: return tn_bf16_to_f32(value.bits16);
    case TN_F32: return value.f32;
    case TN_F64: return value.f64;
    case TN_C64: return value.c64[0];
    case TN_C128: return value.c128[0];
    case TN_F8E4M3FN: return tn_f8e4m3fn_to_f32(value.u8);
    case TN_F8E5M2: return tn_f8e5m2_to_f32(value.u8);
    default: return 0;
  }
}

int64_t tn_scalar_to_int(tn_dtype_t dtype, tn_scalar_t value) {
  switch (dtype) {
    case TN_BOOL: return value.b;
    case TN_I8: return value.i8;
    case TN_I16: return value.i16;
    case TN_I32: return value.i32;
    case TN_I64: return value.i64;
    case TN_U8: return value.u8;
    case TN_U16: return value.u16;
    case TN_U32: return value.u32;
    case TN_U64: return (int64_t)value.u64;
    default: return tn_f64_to_i64(tn_scalar_to_double(dtype, value));
  }
}

tn_scalar_t tn_scalar_convert(tn_dtype_t to, tn_dtype_t from, tn_scalar_t value) {
  if (to == from) return value;
  if (rows[from].kind == TN_CLASS_COMPLEX) {
    return from == TN_C64 ? tn_scalar_from_complex(to, value.c64[0], value.c64[1])
                          : tn_scalar_from_complex(to, value.c128[0], value.c128[1]);
  }
  if (rows[from].kind == TN_CLASS_FLOAT)
    return tn_scalar_from_double(to, tn_scalar_to_double(from, value));
  if (from == TN_U64 && rows[to].kind >= TN_CLASS_FLOAT && value.u64 > (uint64_t)INT64_MAX) {
    // The only integers that do not pass through int64; f32 rounds once, from the integer.
    return to == TN_F64 || to == TN_C128 ? tn_scalar_from_double(to, (double)value.u64)
                                         : tn_scalar_from_double(to, (double)(float)value.u64);
  }
  return tn_scalar_from_int(to, tn_scalar_to_int(from, value));
}
