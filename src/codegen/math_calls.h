// Functions that generated code calls on the lanes of a vector, and the function number of an IR operation: those of
// tn_math_fn_t, then the ones below, which have no recipe.
#ifndef TN_CODEGEN_MATH_CALLS_H_
#define TN_CODEGEN_MATH_CALLS_H_

#include <stdint.h>

#include "base/math_recipes.h"
#include "tn/kernel_program.h"

enum {
  TN_MATH_CALL_LGAMMA = TN_MATH_COUNT_OF_FUNCTIONS,
  TN_MATH_CALL_DIGAMMA,
  TN_MATH_CALL_FMOD,
  TN_MATH_CALL_NEXTAFTER,
  TN_MATH_CALL_NEXTAFTER_F16,  // on f32 lanes that hold values of the small type
  TN_MATH_CALL_NEXTAFTER_BF16,
};

// void f(int32_t function, const T* x, const T* y, T* out, int64_t lanes); y is x for functions of one argument.
#define TN_MATH_CALL_F32 "tn_math_call_f32"
#define TN_MATH_CALL_F64 "tn_math_call_f64"
void tn_math_call_f32(int32_t function, const float* x, const float* y, float* out, int64_t lanes);
void tn_math_call_f64(int32_t function, const double* x, const double* y, double* out,
                      int64_t lanes);

// -1 if |op| is no such function.
static inline int tn_math_call_function(int op, int dtype) {
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
    case TN_OP_POW: return TN_MATH_POW;
    case TN_OP_ATAN2: return TN_MATH_ATAN2;
    case TN_OP_LGAMMA: return TN_MATH_CALL_LGAMMA;
    case TN_OP_DIGAMMA: return TN_MATH_CALL_DIGAMMA;
    case TN_OP_REM: return TN_MATH_CALL_FMOD;
    case TN_OP_NEXTAFTER:
      return dtype == TN_F16    ? TN_MATH_CALL_NEXTAFTER_F16
             : dtype == TN_BF16 ? TN_MATH_CALL_NEXTAFTER_BF16
                                : TN_MATH_CALL_NEXTAFTER;
    default: return -1;
  }
}

#endif  // TN_CODEGEN_MATH_CALLS_H_
