// Recipes of the transcendental functions on f32: names, coefficients, and every recipe as a table of steps.
//
// Three ways to use one text (math_recipes.inc), all with bitwise equal results (NaNs: any payload):
//  - math_scalar.h  scalar C and loops over arrays;
//  - math_vector.h  GNU vectors of the width of the instruction set being compiled for;
//  - tn_math_recipe below, for code generators: a straight line of steps without names.
// Errors are at most 2 ulp (logistic, tanh: about 2, most others below 1.2; tests/c/math_recipes_test.c has the
// bounds); rsqrt is 1 / sqrt(x). Accuracy is that of default rounding, without flush-to-zero.
#ifndef TN_BASE_MATH_RECIPES_H_
#define TN_BASE_MATH_RECIPES_H_

#include <stdint.h>

// X(name, NAME, arguments)
// clang-format off
#define TN_MATH_FUNCTIONS(X)                                                                        \
  X(exp, EXP, 1) X(exp2, EXP2, 1) X(expm1, EXPM1, 1) X(log, LOG, 1) X(log2, LOG2, 1)                \
  X(log1p, LOG1P, 1) X(tanh, TANH, 1) X(logistic, LOGISTIC, 1) X(erf, ERF, 1) X(erfc, ERFC, 1)      \
  X(erfinv, ERFINV, 1) X(sin, SIN, 1) X(cos, COS, 1) X(tan, TAN, 1) X(rsqrt, RSQRT, 1)              \
  X(cbrt, CBRT, 1) X(asin, ASIN, 1) X(acos, ACOS, 1) X(atan, ATAN, 1) X(sinh, SINH, 1)              \
  X(cosh, COSH, 1) X(asinh, ASINH, 1) X(acosh, ACOSH, 1) X(atanh, ATANH, 1) X(pow, POW, 2)          \
  X(atan2, ATAN2, 2) X(sin_far, SIN_FAR, 1) X(cos_far, COS_FAR, 1) X(tan_far, TAN_FAR, 1)
// clang-format on

typedef enum tn_math_fn {
#define TN_MATH_ENUM(name, NAME, arguments) TN_MATH_##NAME,
  TN_MATH_FUNCTIONS(TN_MATH_ENUM)
#undef TN_MATH_ENUM
      TN_MATH_COUNT_OF_FUNCTIONS
} tn_math_fn_t;

// sin, cos and tan take the far recipe above this magnitude.
#define TN_MATH_TRIG_NEAR 65536.0f

#define TN_MATH_COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define TN_MATH_TABLE(name, type, count, ...) \
  static const type tn_math_##name[count] __attribute__((unused)) = {__VA_ARGS__};
#include "base/math_coefficients.inc"
#undef TN_MATH_TABLE

// One step defines one value, named by its position; a, b, c name earlier positions.
//  M(op, operands): result type is the first letter: F f32, I i32 or mask (0 / -1), D f64
// clang-format off
#define TN_MATH_OPS(M)                                                                              \
  M(F_ARG, 0) M(F_CONST, 0) M(I_CONST, 0) M(D_CONST, 0)                                             \
  M(F_ADD, 2) M(F_SUB, 2) M(F_MUL, 2) M(F_DIV, 2)                                                   \
  M(F_FMA, 3)      /* a * b + c, one rounding */                                                    \
  M(F_SQRT, 1) M(F_NEG, 1) M(F_ABS, 1)                                                              \
  M(F_MIN, 2)      /* a < b ? a : b (ordered compare) */                                            \
  M(F_MAX, 2)      /* a > b ? a : b */                                                              \
  M(I_LT, 2) M(I_LE, 2) M(I_EQ, 2)  /* ordered compares of f32 */                                   \
  M(F_SEL, 3)      /* a ? b : c; a is a mask */                                                     \
  M(I_BITS, 1)     /* bits of f32 */                                                                \
  M(F_BITS, 1)     /* f32 of bits */                                                                \
  M(I_FROM_F, 1)   /* truncates; always in range */                                                 \
  M(F_FROM_I, 1)                                                                                    \
  M(I_ADD, 2) M(I_SUB, 2) M(I_AND, 2) M(I_OR, 2) M(I_XOR, 2)  /* wrap */                            \
  M(I_SHL, 1) M(I_SHR, 1) M(I_SRL, 1)  /* by the constant imm.i; SHR arithmetic, SRL logical */     \
  M(I_IEQ, 2) M(I_ILT, 2)              /* compares of i32 (signed) */                               \
  M(D_FROM_F, 1) M(F_FROM_D, 1) M(D_ADD, 2) M(D_SUB, 2) M(D_MUL, 2) M(D_DIV, 2) M(D_FMA, 3)         \
  M(D_SQRT, 1) M(D_SEL, 3)                                                                          \
  M(F_RARE, 3)     /* a ? f(c) : b with f = imm.i, a tn_math_fn_t; f is needed only if a lane of a is set */
// clang-format on

typedef enum tn_math_op {
#define TN_MATH_OP_ENUM(name, operands) TN_MATH_OP_##name,
  TN_MATH_OPS(TN_MATH_OP_ENUM)
#undef TN_MATH_OP_ENUM
      TN_MATH_OP_COUNT
} tn_math_op_t;

typedef struct tn_math_step {
  uint8_t op;  // tn_math_op_t
  char type;   // 'F', 'I' or 'D': of the result
  int16_t a, b, c;
  union {
    float f;
    double d;
    int32_t i;  // I_CONST, shift counts, F_ARG: argument number, F_RARE: function
  } imm;
} tn_math_step_t;

enum { TN_MATH_MAX_STEPS = 192 };

// Writes the steps of |fn| and returns how many; the last one is the result, the first 1 or 2 are F_ARG. Equal
// constants appear once. Thread-safe, no allocation.
int tn_math_recipe(tn_math_fn_t fn, tn_math_step_t out_steps[TN_MATH_MAX_STEPS]);
const char* tn_math_name(tn_math_fn_t fn);
int tn_math_argument_count(tn_math_fn_t fn);
const char* tn_math_op_name(tn_math_op_t op);

#endif  // TN_BASE_MATH_RECIPES_H_
