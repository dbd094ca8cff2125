// Element types and scalar values.
#ifndef TN_DTYPE_H_
#define TN_DTYPE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// enum, StableHLO name, bytes, class
#define TN_DTYPES(X)                               \
  X(TN_BOOL, "i1", 1, TN_CLASS_BOOL)               \
  X(TN_I8, "i8", 1, TN_CLASS_SIGNED)               \
  X(TN_I16, "i16", 2, TN_CLASS_SIGNED)             \
  X(TN_I32, "i32", 4, TN_CLASS_SIGNED)             \
  X(TN_I64, "i64", 8, TN_CLASS_SIGNED)             \
  X(TN_U8, "ui8", 1, TN_CLASS_UNSIGNED)            \
  X(TN_U16, "ui16", 2, TN_CLASS_UNSIGNED)          \
  X(TN_U32, "ui32", 4, TN_CLASS_UNSIGNED)          \
  X(TN_U64, "ui64", 8, TN_CLASS_UNSIGNED)          \
  X(TN_F16, "f16", 2, TN_CLASS_FLOAT)              \
  X(TN_BF16, "bf16", 2, TN_CLASS_FLOAT)            \
  X(TN_F32, "f32", 4, TN_CLASS_FLOAT)              \
  X(TN_F64, "f64", 8, TN_CLASS_FLOAT)              \
  X(TN_C64, "complex<f32>", 8, TN_CLASS_COMPLEX)   \
  X(TN_C128, "complex<f64>", 16, TN_CLASS_COMPLEX) \
  X(TN_F8E4M3FN, "f8E4M3FN", 1, TN_CLASS_FLOAT)    \
  X(TN_F8E5M2, "f8E5M2", 1, TN_CLASS_FLOAT)

typedef enum tn_dtype_class {
  TN_CLASS_BOOL,
  TN_CLASS_SIGNED,
  TN_CLASS_UNSIGNED,
  TN_CLASS_FLOAT,
  TN_CLASS_COMPLEX,
} tn_dtype_class_t;

typedef enum tn_dtype {
#define TN_DTYPE_ENUM(name, text, size, kind) name,
  TN_DTYPES(TN_DTYPE_ENUM)
#undef TN_DTYPE_ENUM
      TN_DTYPE_COUNT,
  TN_DTYPE_NONE = 255,  // absent
} tn_dtype_t;

// Facts of a dtype; |dtype| is a valid enum value. Bodies in src/ir/dtype.c.
size_t tn_dtype_size(tn_dtype_t dtype);       // bytes of one element
const char* tn_dtype_name(tn_dtype_t dtype);  // StableHLO element type, e.g. "f32"
tn_dtype_class_t tn_dtype_class(tn_dtype_t dtype);
bool tn_dtype_is_integer(tn_dtype_t dtype);  // signed or unsigned, not bool
bool tn_dtype_is_float(tn_dtype_t dtype);
bool tn_dtype_is_complex(tn_dtype_t dtype);
// Finds the dtype of a StableHLO element type name; TN_DTYPE_NONE if there is none.
tn_dtype_t tn_dtype_from_name(const char* name, size_t length);
// Type in which arithmetic on |dtype| is done: f32 for f16, bf16 and fp8; itself otherwise.
tn_dtype_t tn_dtype_compute(tn_dtype_t dtype);

// One element of any dtype, in its memory representation at offset 0.
typedef union tn_scalar {
  uint8_t bytes[16];
  uint8_t b;  // 0 or 1
  int8_t i8;
  int16_t i16;
  int32_t i32;
  int64_t i64;
  uint8_t u8;
  uint16_t u16;
  uint32_t u32;
  uint64_t u64;
  uint16_t bits16;  // f16, bf16
  float f32;
  double f64;
  float c64[2];
  double c128[2];
} tn_scalar_t;

// Converts with the rules of the IR's convert: float to integer truncates; out of range wraps as C on x86-64
// does through int64; integer to narrower integer wraps; float narrowing rounds to nearest even; to bool is != 0.
tn_scalar_t tn_scalar_from_double(tn_dtype_t dtype, double value);
tn_scalar_t tn_scalar_from_int(tn_dtype_t dtype, int64_t value);
tn_scalar_t tn_scalar_from_complex(tn_dtype_t dtype, double real, double imag);
tn_scalar_t tn_scalar_convert(tn_dtype_t to, tn_dtype_t from, tn_scalar_t value);
double tn_scalar_to_double(tn_dtype_t dtype, tn_scalar_t value);  // real part of a complex one
int64_t tn_scalar_to_int(tn_dtype_t dtype, tn_scalar_t value);

#ifdef __cplusplus
}
#endif
#endif  // TN_DTYPE_H_
