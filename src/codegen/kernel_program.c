// Kernel programs: checks, text form, canonical bytes.
//
// Text, one line each (comments start with '#'):
//   loops P R vector V          parallel and reduced loops, index of the vector loop
//   phase loop|point            one per phase, in order
//   operand N DTYPE input|output|index contiguous|scalar|strided
//   scalar N DTYPE
//   %N = OP[.WHICH] DTYPE phase P [%A [%B [%C]]]    load.K, scalar.K, index.K, acc.KIND, compare.DIRECTION, OP
//   store.K phase P %A
#include "codegen/kernel_eval.h"
#include "codegen/kernel_program_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tn_op_row {
  const char* name;
  int8_t operands;
  uint8_t fusion;
} tn_op_row_t;
static const tn_op_row_t op_rows[] = {
#define TN_OP(name, text, operands, results, fusion, cheap) {text, operands, TN_FUSION_##fusion},
#include "tn/ops.inc"
#undef TN_OP
};
static const char* const reduce_names[] = {"sum", "prod", "max", "min", "and", "or"};
static const char* const compare_names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
static const char* const kind_names[] = {"input", "output", "index"};
static const char* const class_names[] = {"contiguous", "scalar", "strided"};
enum { REDUCE_KINDS = 6, COMPARES = 6 };

int tn_kernel_inst_operand_count(const tn_kernel_inst_t* inst) {
  switch (inst->op) {
    case TN_KOP_LOAD:
    case TN_KOP_SCALAR:
    case TN_KOP_INDEX: return 0;
    case TN_KOP_STORE:
    case TN_KOP_ACC: return 1;
    default: return inst->op < TN_OP_COUNT ? op_rows[inst->op].operands : 0;
  }
}

size_t tn_kernel_program_pack(const tn_kernel_program_t* program, uint8_t* out_bytes) {
  uint8_t* at = out_bytes;
  const uint8_t head[] = {
      program->loop_count,    program->parallel_count, program->vector_loop, program->phase_count,
      program->operand_count, program->scalar_count,   program->inst_count,  0};
#define TN_PACK(data, size) (memcpy(at, (data), (size)), at += (size))
  TN_PACK(head, sizeof head);
  TN_PACK(program->phase_is_point, program->phase_count);
  TN_PACK(program->scalar_dtype, program->scalar_count);
  TN_PACK(program->operand, program->operand_count * sizeof program->operand[0]);
  TN_PACK(program->inst, program->inst_count * sizeof program->inst[0]);
#undef TN_PACK
  return (size_t)(at - out_bytes);
}

bool tn_kernel_program_unpack(const uint8_t* bytes, size_t size, tn_kernel_program_t* out_program) {
  tn_kernel_program_t* p = out_program;
  memset(p, 0, sizeof *p);
  if (size < 8) return false;
  p->loop_count = bytes[0];
  p->parallel_count = bytes[1];
  p->vector_loop = bytes[2];
  p->phase_count = bytes[3];
  p->operand_count = bytes[4];
  p->scalar_count = bytes[5];
  p->inst_count = bytes[6];
  if (p->phase_count > TN_KERNEL_PHASES || p->operand_count > TN_KERNEL_OPERANDS ||
      p->scalar_count > TN_KERNEL_SCALARS || p->inst_count > TN_KERNEL_INSTRUCTIONS)
    return false;
  const size_t operands = p->operand_count * sizeof p->operand[0],
               insts = p->inst_count * sizeof p->inst[0];
  if (size != 8u + p->phase_count + p->scalar_count + operands + insts) return false;
  const uint8_t* at = bytes + 8;
  memcpy(p->phase_is_point, at, p->phase_count);
  memcpy(p->scalar_dtype, at += p->phase_count, p->scalar_count);
  memcpy(p->operand, at += p->scalar_count, operands);
  memcpy(p->inst, at + operands, insts);
  return true;
}

// ---- checks ------------------------------------------------------------------------------------------------
static bool is_supported_dtype(int dtype) { return dtype <= TN_F64; }
static bool is_float(int dtype) {
  return is_supported_dtype(dtype) && tn_dtype_is_float((tn_dtype_t)dtype);
}

#define BAD(...) return TN_ERROR(TN_INTERNAL, "kernel program: " __VA_ARGS__)

static tn_status_t verify_elementwise(const tn_kernel_program_t* p, int i) {
  const tn_kernel_inst_t* inst = &p->inst[i];
  const char* name = op_rows[inst->op].name;
  if (op_rows[inst->op].fusion != TN_FUSION_ELEMENTWISE)
    BAD("instruction %d: %s is not elementwise", i, name);
  const int a = p->inst[inst->a].dtype;
  const int b = op_rows[inst->op].operands > 1 ? p->inst[inst->b].dtype : a;
  const int c = op_rows[inst->op].operands > 2 ? p->inst[inst->c].dtype : b;
  switch (inst->op) {
    case TN_OP_CONVERT: return TN_OK;
    case TN_OP_BITCAST:
      if (tn_dtype_size((tn_dtype_t)a) != tn_dtype_size((tn_dtype_t)inst->dtype))
        BAD("instruction %d: %s changes the element size", i, name);
      return TN_OK;
    case TN_OP_COMPARE:
      if (inst->dtype != TN_BOOL || inst->index >= COMPARES || a != b)
        BAD("instruction %d: compare of dtypes %d and %d to %d", i, a, b, inst->dtype);
      return TN_OK;
    case TN_OP_IS_FINITE:
      if (inst->dtype != TN_BOOL) BAD("instruction %d: %s gives dtype %d", i, name, inst->dtype);
      return TN_OK;
    case TN_OP_SELECT:
      if (a != TN_BOOL || b != c || b != inst->dtype)
        BAD("instruction %d: select of dtypes %d, %d, %d", i, a, b, c);
      return TN_OK;
    case TN_OP_COMPLEX:
    case TN_OP_REAL:
    case TN_OP_IMAG:
      return TN_ERROR(TN_UNIMPLEMENTED, "kernel program: %s is not in kernels", name);
    default:
      if (a != b || b != c || a != inst->dtype)
        BAD("instruction %d: %s of dtypes %d, %d, %d to %d", i, name, a, b, c, inst->dtype);
      return TN_OK;
  }
}

static tn_status_t verify_inst(const tn_kernel_program_t* p, int i) {
  const tn_kernel_inst_t* inst = &p->inst[i];
  if (inst->phase >= p->phase_count)
    BAD("instruction %d: phase %d of %d", i, inst->phase, p->phase_count);
  if (i > 0 && inst->phase < p->inst[i - 1].phase)
    BAD("instruction %d: phases are not in order", i);
  if (inst->op != TN_KOP_STORE && !is_supported_dtype(inst->dtype))
    return TN_ERROR(TN_UNIMPLEMENTED, "kernel program: instruction %d: dtype %d is not in kernels",
                    i, inst->dtype);
  if (inst->op < TN_KOP_LOAD && inst->op >= TN_OP_COUNT)
    BAD("instruction %d: operation %d is unknown", i, inst->op);
  if (inst->op > TN_KOP_ACC) BAD("instruction %d: operation %d is unknown", i, inst->op);
  const uint8_t refs[] = {inst->a, inst->b, inst->c};
  const int count = tn_kernel_inst_operand_count(inst);
  if (count < 0 || count > 3) BAD("instruction %d: operation %d is not elementwise", i, inst->op);
  for (int r = 0; r < count; ++r) {
    if (refs[r] >= i) BAD("instruction %d: operand %d is a later instruction", i, refs[r]);
    const tn_kernel_inst_t* source = &p->inst[refs[r]];
    if (source->op == TN_KOP_STORE) BAD("instruction %d: operand %d is a store", i, refs[r]);
    if (source->op == TN_KOP_ACC && source->phase == inst->phase)
      BAD("instruction %d: uses accumulator %d in its own phase", i, refs[r]);
    if (source->phase != inst->phase && source->op != TN_KOP_ACC &&
        !p->phase_is_point[source->phase])
      BAD("instruction %d: value %d is out of scope", i, refs[r]);
  }
  switch (inst->op) {
    case TN_KOP_LOAD:
    case TN_KOP_STORE: {
      if (inst->index >= p->operand_count)
        BAD("instruction %d: operand %d of %d", i, inst->index, p->operand_count);
      const tn_kernel_operand_t* o = &p->operand[inst->index];
      if (o->kind == TN_OPERAND_INDEX || (inst->op == TN_KOP_STORE && o->kind != TN_OPERAND_OUTPUT))
        BAD("instruction %d: operand %d is of kind %d", i, inst->index, o->kind);
      const int dtype = inst->op == TN_KOP_LOAD ? inst->dtype : p->inst[inst->a].dtype;
      if (dtype != o->dtype)
        BAD("instruction %d: dtype %d for operand of dtype %d", i, dtype, o->dtype);
      return TN_OK;
    }
    case TN_KOP_SCALAR:
      if (inst->index >= p->scalar_count || inst->dtype != p->scalar_dtype[inst->index])
        BAD("instruction %d: scalar %d of dtype %d", i, inst->index, inst->dtype);
      return TN_OK;
    case TN_KOP_INDEX:
      if (inst->index >= p->operand_count || p->operand[inst->index].kind != TN_OPERAND_INDEX ||
          inst->dtype != TN_I64)
        BAD("instruction %d: index operand %d", i, inst->index);
      return TN_OK;
    case TN_KOP_ACC:
      if (p->phase_is_point[inst->phase] || p->parallel_count == p->loop_count)
        BAD("instruction %d: accumulator outside a reduced loop", i);
      if (inst->index >= REDUCE_KINDS || inst->dtype != p->inst[inst->a].dtype ||
          (inst->index >= TN_REDUCE_AND && is_float(inst->dtype)))
        BAD("instruction %d: reduction kind %d of dtype %d", i, inst->index, inst->dtype);
      return TN_OK;
    default: {
      TN_TRY(verify_elementwise(p, i));
      tn_eval_t zero = {0}, out;
      if (!tn_kernel_eval(inst, p->inst[inst->a].dtype, 1, &zero, &zero, &zero, &out))
        return TN_ERROR(TN_UNIMPLEMENTED, "kernel program: instruction %d: %s has no meaning on %s",
                        i, op_rows[inst->op].name, tn_dtype_name((tn_dtype_t)inst->dtype));
      return TN_OK;
    }
  }
}

tn_status_t tn_kernel_program_verify(const tn_kernel_program_t* p) {
  if (p->loop_count < 1 || p->loop_count > TN_KERNEL_LOOPS || p->parallel_count > p->loop_count)
    BAD("%d loops, %d of them parallel", p->loop_count, p->parallel_count);
  if (p->vector_loop >= p->loop_count ||
      (p->vector_loop + 1 != p->parallel_count && p->vector_loop + 1 != p->loop_count))
    BAD("vector loop %d of %d", p->vector_loop, p->loop_count);
  if (p->phase_count < 1 || p->phase_count > TN_KERNEL_PHASES) BAD("%d phases", p->phase_count);
  if (p->operand_count > TN_KERNEL_OPERANDS || p->scalar_count > TN_KERNEL_SCALARS ||
      p->inst_count > TN_KERNEL_INSTRUCTIONS || p->inst_count == 0)
    BAD("%d operands, %d scalars, %d instructions", p->operand_count, p->scalar_count,
        p->inst_count);
  for (int k = 0; k < p->operand_count; ++k) {
    const tn_kernel_operand_t* o = &p->operand[k];
    if (!is_supported_dtype(o->dtype))
      return TN_ERROR(TN_UNIMPLEMENTED, "kernel program: operand %d: dtype %d is not in kernels", k,
                      o->dtype);
    if (o->kind > TN_OPERAND_INDEX || o->vector > TN_OPERAND_STRIDED ||
        (o->kind == TN_OPERAND_INDEX && o->dtype != TN_I64))
      BAD("operand %d: kind %d, class %d, dtype %d", k, o->kind, o->vector, o->dtype);
  }
  for (int s = 0; s < p->scalar_count; ++s) {
    if (!is_supported_dtype(p->scalar_dtype[s]))
      return TN_ERROR(TN_UNIMPLEMENTED, "kernel program: scalar %d: dtype %d is not in kernels", s,
                      p->scalar_dtype[s]);
  }
  for (int i = 0; i < p->inst_count; ++i) TN_TRY(verify_inst(p, i));
  return TN_OK;
}

// ---- text --------------------------------------------------------------------------------------------------
typedef struct tn_text {
  char* data;
  size_t size, capacity;
  bool failed;
} tn_text_t;

__attribute__((format(printf, 2, 3))) static void put(tn_text_t* text, const char* format, ...) {
  char line[160];
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (length < 0 || (size_t)length >= sizeof line) text->failed = true;
  if (text->failed) return;
  if (text->size + (size_t)length + 1 > text->capacity) {
    const size_t capacity = 2 * text->capacity + 1024;
    char* data = realloc(text->data, capacity);
    if (!data) {
      text->failed = true;
      return;
    }
    text->data = data;
    text->capacity = capacity;
  }
  memcpy(text->data + text->size, line, (size_t)length + 1);
  text->size += (size_t)length;
}

static void put_inst(tn_text_t* text, const tn_kernel_program_t* p, int i) {
  const tn_kernel_inst_t* inst = &p->inst[i];
  if (inst->op == TN_KOP_STORE) {
    put(text, "store.%d phase %d %%%d\n", inst->index, inst->phase, inst->a);
    return;
  }
  put(text, "%%%d = ", i);
  switch (inst->op) {
    case TN_KOP_LOAD: put(text, "load.%d", inst->index); break;
    case TN_KOP_SCALAR: put(text, "scalar.%d", inst->index); break;
    case TN_KOP_INDEX: put(text, "index.%d", inst->index); break;
    case TN_KOP_ACC:
      put(text, "acc.%s", inst->index < REDUCE_KINDS ? reduce_names[inst->index] : "?");
      break;
    default: {
      const char* name = inst->op < TN_OP_COUNT ? op_rows[inst->op].name : "?";
      put(text, "%s", name);
      if (inst->op == TN_OP_COMPARE)
        put(text, ".%s", inst->index < COMPARES ? compare_names[inst->index] : "?");
    }
  }
  put(text, " %s phase %d", tn_dtype_name((tn_dtype_t)inst->dtype), inst->phase);
  const uint8_t refs[] = {inst->a, inst->b, inst->c};
  for (int r = 0; r < tn_kernel_inst_operand_count(inst); ++r) put(text, " %%%d", refs[r]);
  put(text, "\n");
}

tn_status_t tn_kernel_program_print(const tn_kernel_program_t* p, char** out_text) {
  *out_text = NULL;
  tn_text_t text = {0};
  put(&text, "loops %d %d vector %d\n", p->parallel_count, p->loop_count - p->parallel_count,
      p->vector_loop);
  for (int i = 0; i < p->phase_count; ++i)
    put(&text, "phase %s\n", p->phase_is_point[i] ? "point" : "loop");
  for (int k = 0; k < p->operand_count; ++k) {
    const tn_kernel_operand_t* o = &p->operand[k];
    put(&text, "operand %d %s %s %s\n", k, tn_dtype_name((tn_dtype_t)o->dtype),
        o->kind < 3 ? kind_names[o->kind] : "?", o->vector < 3 ? class_names[o->vector] : "?");
  }
  for (int s = 0; s < p->scalar_count; ++s)
    put(&text, "scalar %d %s\n", s, tn_dtype_name((tn_dtype_t)p->scalar_dtype[s]));
  for (int i = 0; i < p->inst_count; ++i) put_inst(&text, p, i);
  if (text.failed) {
    free(text.data);
    return TN_ERROR(TN_RESOURCE_EXHAUSTED, "kernel program: no memory for its text");
  }
  *out_text = text.data;
  return TN_OK;
}

static int find(const char* name, const char* const* names, int count) {
  for (int i = 0; i < count; ++i)
    if (strcmp(name, names[i]) == 0) return i;
  return -1;
}
static int find_dtype(const char* name) { return (int)tn_dtype_from_name(name, strlen(name)); }

// "op.which": fills op and index of |inst|.
static bool parse_op(char* name, tn_kernel_inst_t* inst) {
  static const char* const kops[] = {"load", "store", "scalar", "index", "acc"};
  char* dot = strrchr(name, '.');
  if (dot) {
    *dot = 0;
    const int kop = find(name, kops, 5);
    if (kop >= 0) {
      const int index = kop == 4 ? find(dot + 1, reduce_names, REDUCE_KINDS) : atoi(dot + 1);
      inst->op = (uint8_t)(TN_KOP_LOAD + kop);
      inst->index = (uint8_t)index;
      return index >= 0 && index < 256;
    }
    if (strcmp(name, op_rows[TN_OP_COMPARE].name) == 0) {
      const int index = find(dot + 1, compare_names, COMPARES);
      inst->op = TN_OP_COMPARE;
      inst->index = (uint8_t)index;
      return index >= 0;
    }
    *dot = '.';
  }
  for (int op = 0; op < TN_OP_COUNT; ++op) {
    if (strcmp(op_rows[op].name, name) == 0) {
      inst->op = (uint8_t)op;
      return true;
    }
  }
  return false;
}

// One line; false if it is malformed.
static bool parse_line(const char* line, tn_kernel_program_t* p) {
  char a[48], b[48], c[48];
  int x, y, z, used = 0;
  if (sscanf(line, "loops %d %d vector %d %n", &x, &y, &z, &used) == 3) {
    if (x < 0 || y < 0 || x + y > TN_KERNEL_LOOPS || z < 0 || z >= TN_KERNEL_LOOPS) return false;
    p->loop_count = (uint8_t)(x + y);
    p->parallel_count = (uint8_t)x;
    p->vector_loop = (uint8_t)z;
    return line[used] == 0;
  }
  if (sscanf(line, "phase %47s %n", a, &used) == 1) {
    if (p->phase_count >= TN_KERNEL_PHASES) return false;
    p->phase_is_point[p->phase_count++] = strcmp(a, "point") == 0;
    return line[used] == 0;
  }
  if (sscanf(line, "operand %d %47s %47s %47s %n", &x, a, b, c, &used) == 4) {
    const int kind = find(b, kind_names, 3), vector = find(c, class_names, 3);
    if (x != p->operand_count || x >= TN_KERNEL_OPERANDS || kind < 0 || vector < 0) return false;
    p->operand[p->operand_count++] =
        (tn_kernel_operand_t){(uint8_t)find_dtype(a), (uint8_t)kind, (uint8_t)vector, 0};
    return line[used] == 0;
  }
  if (sscanf(line, "scalar %d %47s %n", &x, a, &used) == 2) {
    if (x != p->scalar_count || x >= TN_KERNEL_SCALARS) return false;
    p->scalar_dtype[p->scalar_count++] = (uint8_t)find_dtype(a);
    return line[used] == 0;
  }
  if (p->inst_count >= TN_KERNEL_INSTRUCTIONS) return false;
  tn_kernel_inst_t inst = {0};
  if (sscanf(line, "store.%d phase %d %%%d %n", &x, &y, &z, &used) == 3) {
    if (x < 0 || x > 255 || y < 0 || y > 255 || z < 0 || z > 255) return false;
    inst = (tn_kernel_inst_t){
        .op = TN_KOP_STORE, .index = (uint8_t)x, .phase = (uint8_t)y, .a = (uint8_t)z};
    if (z < p->inst_count) inst.dtype = p->inst[z].dtype;
  } else if (sscanf(line, "%%%d = %47s %47s phase %d %n", &x, a, b, &y, &used) == 4) {
    if (x != p->inst_count || y < 0 || y > 255 || !parse_op(a, &inst)) return false;
    inst.dtype = (uint8_t)find_dtype(b);
    inst.phase = (uint8_t)y;
    uint8_t* refs[] = {&inst.a, &inst.b, &inst.c};
    for (int r = 0; r < tn_kernel_inst_operand_count(&inst); ++r) {
      int more = 0;
      if (sscanf(line + used, "%%%d %n", &z, &more) != 1 || z < 0 || z > 255) return false;
      *refs[r] = (uint8_t)z;
      used += more;
    }
  } else {
    return false;
  }
  p->inst[p->inst_count++] = inst;
  return line[used] == 0;
}

tn_status_t tn_kernel_program_parse(const char* text, tn_kernel_program_t* out_program) {
  memset(out_program, 0, sizeof *out_program);
  for (int number = 1; *text; ++number) {
    char line[160];
    const size_t length = strcspn(text, "\n");
    if (length >= sizeof line)
      return TN_ERROR(TN_INVALID_ARGUMENT, "kernel program: line %d is too long", number);
    memcpy(line, text, length);
    line[length] = 0;
    text += length + (text[length] == '\n');
    char* comment = strchr(line, '#');
    if (comment) *comment = 0;
    const char* start = line + strspn(line, " \t");
    if (*start == 0) continue;
    if (!parse_line(start, out_program))
      return TN_ERROR(TN_INVALID_ARGUMENT, "kernel program: line %d is malformed: %s", number,
                      line);
  }
  return TN_OK;
}
