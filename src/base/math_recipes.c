// The step tables: math_recipes.inc expanded over value numbers, each operation appending a step.
#include "base/math_recipes.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct tracer {
  tn_math_step_t* steps;
  int count;
} tracer_t;

static const char op_types[] = {
#define TN_MATH_OP_TYPE(name, operands) #name[0],
    TN_MATH_OPS(TN_MATH_OP_TYPE)
#undef TN_MATH_OP_TYPE
};

static int append(tracer_t* t, tn_math_step_t step) {
  assert(t->count < TN_MATH_MAX_STEPS);
  step.type = op_types[step.op];
  t->steps[t->count] = step;
  return t->count++;
}

static int constant(tracer_t* t, tn_math_op_t op, const void* data, size_t size) {
  tn_math_step_t step;
  memset(&step, 0, sizeof step);
  step.op = (uint8_t)op;
  step.a = step.b = step.c = -1;
  memcpy(&step.imm, data, size);
  for (int i = 0; i < t->count; ++i) {
    if (t->steps[i].op == op && memcmp(&t->steps[i].imm, &step.imm, sizeof step.imm) == 0) return i;
  }
  return append(t, step);
}
static int constant_f(tracer_t* t, float value) {
  return constant(t, TN_MATH_OP_F_CONST, &value, sizeof value);
}
static int constant_i(tracer_t* t, int32_t value) {
  return constant(t, TN_MATH_OP_I_CONST, &value, sizeof value);
}
static int constant_d(tracer_t* t, double value) {
  return constant(t, TN_MATH_OP_D_CONST, &value, sizeof value);
}

static int emit(tracer_t* t, tn_math_op_t op, int a, int b, int c, int32_t imm) {
  tn_math_step_t step;
  memset(&step, 0, sizeof step);
  step.op = (uint8_t)op;
  step.a = (int16_t)a;
  step.b = (int16_t)b;
  step.c = (int16_t)c;
  step.imm.i = imm;
  return append(t, step);
}

#define TN_MF                       int
#define TN_MI                       int
#define TN_MD                       int
#define TN_MFN(name)                trace_##name
#define TN_MATTR                    static
#define TN_MATTR_RARE               static
#define TN_MPARAM                   tracer_t *t_,
#define TN_MARG                     t_,
#define STEP1(op, x)                emit(t_, TN_MATH_OP_##op, x, -1, -1, 0)
#define STEP2(op, x, y)             emit(t_, TN_MATH_OP_##op, x, y, -1, 0)
#define STEP3(op, x, y, z)          emit(t_, TN_MATH_OP_##op, x, y, z, 0)
#define M_F(value)                  constant_f(t_, value)
#define M_I(value)                  constant_i(t_, value)
#define M_D(value)                  constant_d(t_, value)
#define M_ADD(x, y)                 STEP2(F_ADD, x, y)
#define M_SUB(x, y)                 STEP2(F_SUB, x, y)
#define M_MUL(x, y)                 STEP2(F_MUL, x, y)
#define M_DIV(x, y)                 STEP2(F_DIV, x, y)
#define M_FMA(x, y, z)              STEP3(F_FMA, x, y, z)
#define M_SQRT(x)                   STEP1(F_SQRT, x)
#define M_NEG(x)                    STEP1(F_NEG, x)
#define M_ABS(x)                    STEP1(F_ABS, x)
#define M_MIN(x, y)                 STEP2(F_MIN, x, y)
#define M_MAX(x, y)                 STEP2(F_MAX, x, y)
#define M_LT(x, y)                  STEP2(I_LT, x, y)
#define M_LE(x, y)                  STEP2(I_LE, x, y)
#define M_EQ(x, y)                  STEP2(I_EQ, x, y)
#define M_SEL(m, x, y)              STEP3(F_SEL, m, x, y)
#define M_BITS(x)                   STEP1(I_BITS, x)
#define M_FLOAT(x)                  STEP1(F_BITS, x)
#define M_TOI(x)                    STEP1(I_FROM_F, x)
#define M_TOF(x)                    STEP1(F_FROM_I, x)
#define M_IADD(x, y)                STEP2(I_ADD, x, y)
#define M_ISUB(x, y)                STEP2(I_SUB, x, y)
#define M_IAND(x, y)                STEP2(I_AND, x, y)
#define M_IOR(x, y)                 STEP2(I_OR, x, y)
#define M_IXOR(x, y)                STEP2(I_XOR, x, y)
#define M_ISHL(x, n)                emit(t_, TN_MATH_OP_I_SHL, x, -1, -1, n)
#define M_ISHR(x, n)                emit(t_, TN_MATH_OP_I_SHR, x, -1, -1, n)
#define M_ISRL(x, n)                emit(t_, TN_MATH_OP_I_SRL, x, -1, -1, n)
#define M_IEQ(x, y)                 STEP2(I_IEQ, x, y)
#define M_ILT(x, y)                 STEP2(I_ILT, x, y)
#define M_TOD(x)                    STEP1(D_FROM_F, x)
#define M_FROMD(x)                  STEP1(F_FROM_D, x)
#define M_DADD(x, y)                STEP2(D_ADD, x, y)
#define M_DSUB(x, y)                STEP2(D_SUB, x, y)
#define M_DMUL(x, y)                STEP2(D_MUL, x, y)
#define M_DDIV(x, y)                STEP2(D_DIV, x, y)
#define M_DFMA(x, y, z)             STEP3(D_FMA, x, y, z)
#define M_DSQRT(x)                  STEP1(D_SQRT, x)
#define M_DSEL(m, x, y)             STEP3(D_SEL, m, x, y)
#define M_RARE(m, y, name, NAME, x) emit(t_, TN_MATH_OP_F_RARE, m, y, x, TN_MATH_##NAME)
#include "base/math_recipes.inc"

static int trace_1(tracer_t* t, int (*body)(tracer_t*, int)) {
  return body(t, emit(t, TN_MATH_OP_F_ARG, -1, -1, -1, 0));
}
static int trace_2(tracer_t* t, int (*body)(tracer_t*, int, int)) {
  const int x = emit(t, TN_MATH_OP_F_ARG, -1, -1, -1, 0);
  return body(t, x, emit(t, TN_MATH_OP_F_ARG, -1, -1, -1, 1));
}

int tn_math_recipe(tn_math_fn_t fn, tn_math_step_t out_steps[TN_MATH_MAX_STEPS]) {
  tracer_t tracer = {.steps = out_steps};
  int result = -1;
  switch (fn) {
#define TN_MATH_CASE(name, NAME, arguments) \
  case TN_MATH_##NAME: result = trace_##arguments(&tracer, trace_##name); break;
    TN_MATH_FUNCTIONS(TN_MATH_CASE)
#undef TN_MATH_CASE
    case TN_MATH_COUNT_OF_FUNCTIONS: break;
  }
  assert(result == tracer.count - 1);
  (void)result;
  return tracer.count;
}

static const struct {
  const char* name;
  int arguments;
} functions[] = {
#define TN_MATH_ROW(name, NAME, arguments) {#name, arguments},
    TN_MATH_FUNCTIONS(TN_MATH_ROW)
#undef TN_MATH_ROW
};
const char* tn_math_name(tn_math_fn_t fn) { return functions[fn].name; }
int tn_math_argument_count(tn_math_fn_t fn) { return functions[fn].arguments; }

const char* tn_math_op_name(tn_math_op_t op) {
  static const char* const names[] = {
#define TN_MATH_OP_NAME(name, operands) #name,
      TN_MATH_OPS(TN_MATH_OP_NAME)
#undef TN_MATH_OP_NAME
  };
  return names[op];
}
