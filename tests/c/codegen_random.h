// Random kernel programs and data, for tests of generated code against the interpreter.
#ifndef TESTS_C_CODEGEN_RANDOM_H_
#define TESTS_C_CODEGEN_RANDOM_H_

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tn/kernel_program.h"

static uint64_t random_state = 1;
static uint32_t random_u32(void) {
  random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(random_state >> 33);
}
static int random_below(int n) { return (int)(random_u32() % (uint32_t)n); }
static bool one_in(int n) { return random_below(n) == 0; }

// A value of |dtype| with the special ones not too rare.
static tn_scalar_t random_scalar(tn_dtype_t dtype) {
  static const double special[] = {
      0.0,      -0.0,      1,     -1,           0.5,           -0.5,   1.5,   2.5,
      INFINITY, -INFINITY, NAN,   1e30,         -1e30,         3e9,    1e-40, 65504,
      70000,    88.0,      -88.0, 2147483648.0, -2147483904.0, 9.3e18, 1e19};
  tn_scalar_t value = {0};
  if (dtype == TN_BOOL) {
    value.b = random_below(2) != 0;
    return value;
  }
  if (tn_dtype_is_float(dtype)) {
    if (one_in(6))
      return tn_scalar_from_double(dtype,
                                   special[random_below(sizeof special / sizeof special[0])]);
    const double x = (double)(int)random_u32() / 1073741824.0;
    return tn_scalar_from_double(dtype, one_in(4) ? x * 50 : x * 2);
  }
  const int64_t bits =
      (int64_t)((uint64_t)random_u32() << 33 ^ (uint64_t)random_u32() << 8 ^ random_u32());
  if (one_in(3)) return tn_scalar_from_int(dtype, bits);
  static const int64_t edges[] = {0,         1,         -1,        2,   INT8_MIN, INT16_MIN,
                                  INT32_MIN, INT64_MIN, INT64_MAX, 255, 65535};
  return tn_scalar_from_int(dtype, one_in(3) ? edges[random_below(11)] : random_below(40) - 8);
}

static tn_dtype_t random_dtype(void) {
  static const uint8_t dtypes[] = {TN_F32, TN_F32,  TN_F32, TN_F32, TN_BF16, TN_F16,
                                   TN_F64, TN_BOOL, TN_I8,  TN_I16, TN_I32,  TN_I32,
                                   TN_I64, TN_U8,   TN_U16, TN_U32, TN_U64};
  return (tn_dtype_t)dtypes[random_below(sizeof dtypes)];
}

typedef struct random_case {
  tn_kernel_program_t program;
  tn_dtype_t main_dtype;
  int64_t dim[TN_KERNEL_LOOPS];
  int64_t stride[TN_KERNEL_OPERANDS][TN_KERNEL_LOOPS];
  size_t bytes[TN_KERNEL_OPERANDS];  // extent of the operand's memory
  tn_scalar_t scalar[TN_KERNEL_SCALARS];
  int64_t index_start[TN_KERNEL_OPERANDS];
  int in_place[TN_KERNEL_OPERANDS];  // input whose memory an output shares, or -1
} random_case_t;

static int add_operand(random_case_t* c, tn_dtype_t dtype, tn_operand_kind_t kind,
                       tn_operand_class_t vector) {
  tn_kernel_program_t* p = &c->program;
  p->operand[p->operand_count] =
      (tn_kernel_operand_t){(uint8_t)dtype, (uint8_t)kind, (uint8_t)vector, 0};
  return p->operand_count++;
}
static int add_inst(random_case_t* c, int op, tn_dtype_t dtype, int phase, int index, int a, int b,
                    int x) {
  tn_kernel_program_t* p = &c->program;
  p->inst[p->inst_count] =
      (tn_kernel_inst_t){(uint8_t)op, (uint8_t)dtype, (uint8_t)phase, (uint8_t)index,
                         (uint8_t)a,  (uint8_t)b,     (uint8_t)x,     0};
  return p->inst_count++;
}

// An earlier value of |dtype| in scope of |phase|; makes a conversion if there is none.
static int pick(random_case_t* c, int phase, tn_dtype_t dtype) {
  tn_kernel_program_t* p = &c->program;
  int found = -1, any = -1, seen = 0;
  for (int i = 0; i < p->inst_count; ++i) {
    const tn_kernel_inst_t* inst = &p->inst[i];
    const bool in_scope = inst->phase == phase
                              ? inst->op != TN_KOP_ACC
                              : inst->op == TN_KOP_ACC || p->phase_is_point[inst->phase];
    if (inst->op == TN_KOP_STORE || !in_scope) continue;
    any = any < 0 || one_in(3) ? i : any;
    if (inst->dtype == dtype && one_in(++seen)) found = i;
  }
  if (found >= 0 && !one_in(8)) return found;
  if (any < 0) {
    p->scalar_dtype[p->scalar_count] = (uint8_t)dtype;
    return add_inst(c, TN_KOP_SCALAR, dtype, phase, p->scalar_count++, 0, 0, 0);
  }
  if (p->inst[any].dtype == dtype) return any;
  const bool can_cast = tn_dtype_size((tn_dtype_t)p->inst[any].dtype) == tn_dtype_size(dtype) &&
                        dtype != TN_BOOL && p->inst[any].dtype != TN_BOOL;
  return add_inst(c, can_cast && one_in(4) ? TN_OP_BITCAST : TN_OP_CONVERT, dtype, phase, 0, any, 0,
                  0);
}

static void add_random_inst(random_case_t* c, int phase) {
  static const uint8_t float_unary[] = {TN_OP_NEG,       TN_OP_ABS,   TN_OP_SIGN,
                                        TN_OP_CEIL,      TN_OP_FLOOR, TN_OP_ROUND_EVEN,
                                        TN_OP_ROUND_AFZ, TN_OP_TRUNC, TN_OP_SQRT};
  static const uint8_t int_unary[] = {TN_OP_NEG, TN_OP_ABS,    TN_OP_SIGN,
                                      TN_OP_NOT, TN_OP_POPCNT, TN_OP_CLZ};
  static const uint8_t math[] = {
      TN_OP_RSQRT, TN_OP_CBRT,     TN_OP_EXP,   TN_OP_EXP2,   TN_OP_EXPM1,  TN_OP_LOG,  TN_OP_LOG2,
      TN_OP_LOG1P, TN_OP_LOGISTIC, TN_OP_SIN,   TN_OP_COS,    TN_OP_TAN,    TN_OP_TANH, TN_OP_ERF,
      TN_OP_ERFC,  TN_OP_ERFINV,   TN_OP_ASIN,  TN_OP_ACOS,   TN_OP_ATAN,   TN_OP_SINH, TN_OP_COSH,
      TN_OP_ASINH, TN_OP_ACOSH,    TN_OP_ATANH, TN_OP_LGAMMA, TN_OP_DIGAMMA};
  static const uint8_t float_binary[] = {TN_OP_ADD,   TN_OP_SUB,      TN_OP_MUL, TN_OP_DIV,
                                         TN_OP_MIN,   TN_OP_MAX,      TN_OP_REM, TN_OP_POW,
                                         TN_OP_ATAN2, TN_OP_NEXTAFTER};
  static const uint8_t int_binary[] = {TN_OP_ADD, TN_OP_SUB,   TN_OP_MUL,   TN_OP_DIV, TN_OP_REM,
                                       TN_OP_MIN, TN_OP_MAX,   TN_OP_AND,   TN_OP_OR,  TN_OP_XOR,
                                       TN_OP_SHL, TN_OP_SHR_A, TN_OP_SHR_L, TN_OP_POW};
  const tn_dtype_t dtype = one_in(3) ? random_dtype() : c->main_dtype;
  const bool is_float = tn_dtype_is_float(dtype);
#define ONE_OF(table) table[random_below(sizeof table)]
  switch (random_below(8)) {
    case 0: {
      const int a = pick(c, phase, dtype);
      add_inst(c,
               is_float           ? ONE_OF(float_unary)
               : dtype == TN_BOOL ? TN_OP_NOT
                                  : ONE_OF(int_unary),
               dtype, phase, 0, a, 0, 0);
      break;
    }
    case 1: {
      const int a = pick(c, phase, dtype);
      if (is_float) add_inst(c, ONE_OF(math), dtype, phase, 0, a, 0, 0);
      break;
    }
    case 2: {
      const int a = pick(c, phase, dtype), b = pick(c, phase, dtype);
      add_inst(c, TN_OP_COMPARE, TN_BOOL, phase, random_below(6), a, b, 0);
      break;
    }
    case 3: {
      const int a = pick(c, phase, TN_BOOL), b = pick(c, phase, dtype), x = pick(c, phase, dtype);
      add_inst(c, TN_OP_SELECT, dtype, phase, 0, a, b, x);
      break;
    }
    case 4: {
      const int a = pick(c, phase, dtype), b = pick(c, phase, dtype), x = pick(c, phase, dtype);
      if (dtype != TN_BOOL)
        add_inst(c, one_in(2) ? TN_OP_FMA : TN_OP_CLAMP, dtype, phase, 0, a, b, x);
      break;
    }
    default: {
      const int a = pick(c, phase, dtype), b = pick(c, phase, dtype);
      if (dtype == TN_BOOL) {
        add_inst(c, TN_OP_AND + random_below(3), dtype, phase, 0, a, b, 0);
      } else {
        add_inst(c,
                 is_float ? float_binary[random_below(one_in(4) ? 10 : 6)]
                          : int_binary[random_below(one_in(6) ? 14 : 13)],
                 dtype, phase, 0, a, b, 0);
      }
      break;
    }
  }
#undef ONE_OF
}

// Chooses extents and strides for the program, and how much memory each operand needs.
static void random_layout(random_case_t* c) {
  static const int sizes[] = {0,  1,  2,  3,  4,  5,  7,  8,   9,   15,
                              16, 17, 31, 33, 63, 64, 65, 127, 130, 257};
  tn_kernel_program_t* p = &c->program;
  for (int l = 0; l < p->loop_count; ++l)
    c->dim[l] = l == p->vector_loop ? sizes[random_below(sizeof sizes / sizeof sizes[0])]
                : one_in(12)        ? 0
                                    : 1 + random_below(4);
  for (int k = 0; k < p->operand_count; ++k) {
    const tn_kernel_operand_t* o = &p->operand[k];
    const int64_t size =
        o->kind == TN_OPERAND_INDEX ? 1 : (int64_t)tn_dtype_size((tn_dtype_t)o->dtype);
    bool in_loop = false;  // an output that a LOOP phase stores has one place per reduced point
    for (int i = 0; i < p->inst_count; ++i)
      in_loop |= p->inst[i].op == TN_KOP_STORE && p->inst[i].index == k &&
                 !p->phase_is_point[p->inst[i].phase];
    int64_t unit = size;
    c->in_place[k] = -1;
    for (int n = 0; n < p->loop_count; ++n) {
      // The vector loop is innermost in memory, then the others from the last outwards.
      const int l = n == 0                ? p->vector_loop
                    : n <= p->vector_loop ? p->vector_loop - n
                                          : p->vector_loop + 1 + (p->loop_count - 1 - n);
      int64_t stride = unit;
      if (l == p->vector_loop && o->vector == TN_OPERAND_STRIDED)
        stride = unit * (2 + random_below(2));
      bool is_broadcast = l == p->vector_loop ? o->vector == TN_OPERAND_SCALAR
                                              : o->kind != TN_OPERAND_OUTPUT && one_in(4);
      if (o->kind == TN_OPERAND_OUTPUT && l >= p->parallel_count && !in_loop) is_broadcast = true;
      if (o->kind == TN_OPERAND_INDEX && l != p->vector_loop) stride = random_below(9) - 3;
      if (is_broadcast) stride = 0;
      c->stride[k][l] = stride;
      if (stride > 0 && o->kind != TN_OPERAND_INDEX && c->dim[l] > 0) unit = stride * c->dim[l];
    }
    c->bytes[k] = (size_t)unit;
    c->index_start[k] = random_below(100) - 50;
  }
  // An elementwise output may lie exactly on an input of equal layout.
  for (int k = 0; k < p->operand_count && p->loop_count == p->parallel_count && one_in(3); ++k) {
    for (int j = 0; j < p->operand_count && p->operand[k].kind == TN_OPERAND_OUTPUT; ++j) {
      if (p->operand[j].kind != TN_OPERAND_INPUT || p->operand[j].dtype != p->operand[k].dtype ||
          p->operand[j].vector != p->operand[k].vector)
        continue;
      memcpy(c->stride[j], c->stride[k], sizeof c->stride[j]);
      c->bytes[j] = c->bytes[k];
      c->in_place[k] = j;
      k = p->operand_count;  // one is enough
      break;
    }
  }
  for (int s = 0; s < p->scalar_count; ++s)
    c->scalar[s] = random_scalar((tn_dtype_t)p->scalar_dtype[s]);
}

static void random_loads(random_case_t* c, int phase, int count) {
  for (int i = 0; i < count; ++i) {
    const tn_dtype_t dtype = one_in(2) ? c->main_dtype : random_dtype();
    const int r = random_below(8);
    if (r == 0) {
      const int k = add_operand(c, TN_I64, TN_OPERAND_INDEX,
                                one_in(3) ? TN_OPERAND_SCALAR : TN_OPERAND_STRIDED);
      add_inst(c, TN_KOP_INDEX, TN_I64, phase, k, 0, 0, 0);
    } else if (r == 1) {
      c->program.scalar_dtype[c->program.scalar_count] = (uint8_t)dtype;
      add_inst(c, TN_KOP_SCALAR, dtype, phase, c->program.scalar_count++, 0, 0, 0);
    } else {
      const tn_operand_class_t vector = r == 2   ? TN_OPERAND_SCALAR
                                        : r == 3 ? TN_OPERAND_STRIDED
                                                 : TN_OPERAND_CONTIGUOUS;
      const int k = add_operand(c, dtype, TN_OPERAND_INPUT, vector);
      add_inst(c, TN_KOP_LOAD, dtype, phase, k, 0, 0, 0);
    }
  }
}

// Stores the value |which| into a new output.
static void random_store(random_case_t* c, int phase, int which, bool is_row_point) {
  const tn_dtype_t dtype = (tn_dtype_t)c->program.inst[which].dtype;
  const tn_operand_class_t vector = is_row_point ? TN_OPERAND_SCALAR
                                    : one_in(5)  ? TN_OPERAND_STRIDED
                                                 : TN_OPERAND_CONTIGUOUS;
  const int k = add_operand(c, dtype, TN_OPERAND_OUTPUT, vector);
  add_inst(c, TN_KOP_STORE, dtype, phase, k, which, 0, 0);
}

// A program with or without reductions; |length| is about the number of elementwise instructions.
__attribute__((unused)) static void random_program(random_case_t* c, int length) {
  memset(c, 0, sizeof *c);
  tn_kernel_program_t* p = &c->program;
  c->main_dtype = random_dtype();
  const int kind = random_below(
      4);  // 0, 1: elementwise; 2: reduced vector loop; 3: parallel vector loop with reductions
  p->parallel_count = (uint8_t)(kind == 2 ? random_below(3) : 1 + random_below(3));
  p->loop_count = (uint8_t)(p->parallel_count + (kind < 2 ? 0 : 1 + random_below(2)));
  p->vector_loop = (uint8_t)(kind == 2 ? p->loop_count - 1 : p->parallel_count - 1);
  p->phase_count = 1;
  if (kind < 2) {
    random_loads(c, 0, 1 + random_below(4));
    for (int i = 0; i < length; ++i) add_random_inst(c, 0);
    const int stores = 1 + random_below(2);
    for (int i = 0; i < stores; ++i)
      random_store(c, 0, pick(c, 0, one_in(2) ? c->main_dtype : random_dtype()), false);
  } else {
    p->phase_count = (uint8_t)(2 + random_below(3));  // loop, point, loop, point
    for (int phase = 0; phase < p->phase_count; ++phase) {
      p->phase_is_point[phase] = phase % 2 == 1;
      const bool is_row_point = p->phase_is_point[phase] && kind == 2;
      if (!p->phase_is_point[phase] || one_in(2)) random_loads(c, phase, 1 + random_below(2));
      for (int i = 0; i < 1 + length / 2; ++i) add_random_inst(c, phase);
      if (p->phase_is_point[phase] || one_in(3))
        random_store(c, phase, pick(c, phase, c->main_dtype), is_row_point);
      if (!p->phase_is_point[phase]) {
        const int accs = 1 + random_below(2);
        int values[2];
        for (int i = 0; i < accs; ++i)
          values[i] = pick(c, phase, one_in(2) ? c->main_dtype : random_dtype());
        for (int i = 0; i < accs; ++i) {
          const tn_dtype_t dtype = (tn_dtype_t)p->inst[values[i]].dtype;
          const int reduce = dtype == TN_BOOL           ? TN_REDUCE_AND + random_below(2)
                             : tn_dtype_is_float(dtype) ? random_below(4)
                                                        : random_below(6);
          add_inst(c, TN_KOP_ACC, dtype, phase, reduce, values[i], 0, 0);
        }
      }
    }
  }
  random_layout(c);
}

#endif  // TESTS_C_CODEGEN_RANDOM_H_
