// Types, constants and small helpers of the emitter.
#include "codegen/llvm/emit.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const uint8_t sizes[] = {
#define TN_EMIT_SIZE(name, text, size, kind) size,
    TN_DTYPES(TN_EMIT_SIZE)
#undef TN_EMIT_SIZE
};
static const uint8_t kinds[] = {
#define TN_EMIT_KIND(name, text, size, kind) kind,
    TN_DTYPES(TN_EMIT_KIND)
#undef TN_EMIT_KIND
};
static const int8_t operand_counts[] = {
#define TN_OP(name, text, operands, results, fusion, cheap) operands,
#include "tn/ops.inc"
#undef TN_OP
};

void tn_emit_fail(tn_emit_t* e, int code, const char* format, ...) {
  if (e->code != TN_SUCCESS) return;
  e->code = code;
  va_list args;
  va_start(args, format);
  vsnprintf(e->error, TN_CODEGEN_ERROR_SIZE, format, args);
  va_end(args);
}

size_t tn_emit_dtype_size(int dtype) { return sizes[dtype]; }
bool tn_emit_is_float(int dtype) { return kinds[dtype] == TN_CLASS_FLOAT; }
bool tn_emit_is_small_float(int dtype) {
  return kinds[dtype] == TN_CLASS_FLOAT && sizes[dtype] < 4;
}
bool tn_emit_is_signed(int dtype) { return kinds[dtype] == TN_CLASS_SIGNED; }
int tn_emit_operand_count(int op) { return operand_counts[op]; }

static LLVMTypeRef int_type(const tn_emit_t* e, size_t size) {
  return size == 1 ? e->i8 : size == 2 ? e->i16 : size == 4 ? e->i32 : e->i64;
}

LLVMTypeRef tn_emit_memory_type(const tn_emit_t* e, int dtype) {
  if (dtype == TN_F32) return e->f32;
  if (dtype == TN_F64) return e->f64;
  return int_type(e, sizes[dtype]);
}

LLVMTypeRef tn_emit_element_type(const tn_emit_t* e, int dtype) {
  if (dtype == TN_BOOL) return e->i1;
  if (tn_emit_is_small_float(dtype)) return e->f32;
  return tn_emit_memory_type(e, dtype);
}

LLVMTypeRef tn_emit_vector(const tn_emit_t* e, LLVMTypeRef element) {
  return LLVMVectorType(element, (unsigned)e->lanes);
}

LLVMValueRef tn_emit_splat(tn_emit_t* e, LLVMValueRef element) {
  LLVMTypeRef vector = tn_emit_vector(e, LLVMTypeOf(element));
  LLVMValueRef one =
      LLVMBuildInsertElement(e->b, LLVMGetPoison(vector), element, LLVMConstInt(e->i32, 0, 0), "");
  return LLVMBuildShuffleVector(e->b, one, LLVMGetPoison(vector),
                                LLVMConstNull(LLVMVectorType(e->i32, (unsigned)e->lanes)), "");
}

static LLVMValueRef constant_splat(const tn_emit_t* e, LLVMValueRef element) {
  LLVMValueRef lanes[TN_KERNEL_LANES];
  for (int i = 0; i < e->lanes; ++i) lanes[i] = element;
  return LLVMConstVector(lanes, (unsigned)e->lanes);
}

LLVMValueRef tn_emit_iota(const tn_emit_t* e, LLVMTypeRef element) {
  LLVMValueRef lanes[TN_KERNEL_LANES];
  for (int i = 0; i < e->lanes; ++i) lanes[i] = LLVMConstInt(element, (unsigned)i, 0);
  return LLVMConstVector(lanes, (unsigned)e->lanes);
}

LLVMValueRef tn_emit_int(const tn_emit_t* e, LLVMTypeRef element, uint64_t value) {
  // Constants must fit their type: LLVM asserts on bits above it.
  unsigned width = LLVMGetIntTypeWidth(element);
  if (width < 64) value &= (UINT64_C(1) << width) - 1;
  return constant_splat(e, LLVMConstInt(element, value, 0));
}

LLVMValueRef tn_emit_float(const tn_emit_t* e, LLVMTypeRef element, double value) {
  return constant_splat(e, LLVMConstReal(element, value));
}

LLVMValueRef tn_emit_f32_bits(const tn_emit_t* e, uint32_t bits) {
  LLVMValueRef integer = tn_emit_int(e, e->i32, bits);
  return LLVMConstBitCast(integer, tn_emit_vector(e, e->f32));
}

LLVMValueRef tn_emit_i64(const tn_emit_t* e, int64_t value) {
  return LLVMConstInt(e->i64, (uint64_t)value, 1);
}

LLVMValueRef tn_emit_intrinsic(tn_emit_t* e, const char* name, LLVMTypeRef* types,
                               unsigned type_count, LLVMValueRef* args, unsigned arg_count) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  assert(id != 0);
  LLVMValueRef declaration = LLVMGetIntrinsicDeclaration(e->module, id, types, type_count);
  LLVMTypeRef type = LLVMIntrinsicGetType(e->context, id, types, type_count);
  return LLVMBuildCall2(e->b, type, declaration, args, arg_count, "");
}

LLVMValueRef tn_emit_intrinsic1(tn_emit_t* e, const char* name, LLVMValueRef x) {
  LLVMTypeRef type = LLVMTypeOf(x);
  return tn_emit_intrinsic(e, name, &type, 1, &x, 1);
}

LLVMValueRef tn_emit_intrinsic2(tn_emit_t* e, const char* name, LLVMValueRef x, LLVMValueRef y) {
  LLVMTypeRef type = LLVMTypeOf(x);
  return tn_emit_intrinsic(e, name, &type, 1, (LLVMValueRef[]){x, y}, 2);
}

LLVMValueRef tn_emit_fma(tn_emit_t* e, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z) {
  LLVMTypeRef type = LLVMTypeOf(x);
  return tn_emit_intrinsic(e, "llvm.fma", &type, 1, (LLVMValueRef[]){x, y, z}, 3);
}

LLVMValueRef tn_emit_alloca(tn_emit_t* e, LLVMTypeRef type, unsigned alignment) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
  LLVMValueRef first = LLVMGetFirstInstruction(e->entry);
  if (first) {
    LLVMPositionBuilderBefore(e->b, first);
  } else {
    LLVMPositionBuilderAtEnd(e->b, e->entry);
  }
  LLVMValueRef slot = LLVMBuildAlloca(e->b, type, "");
  LLVMSetAlignment(slot, alignment);
  LLVMPositionBuilderAtEnd(e->b, here);
  return slot;
}

LLVMBasicBlockRef tn_emit_block(tn_emit_t* e) {
  return LLVMAppendBasicBlockInContext(e->context, e->function, "");
}

void tn_emit_enter(tn_emit_t* e, LLVMBasicBlockRef block) { LLVMPositionBuilderAtEnd(e->b, block); }

void tn_emit_loop_begin(tn_emit_t* e, tn_emit_loop_t* loop, LLVMValueRef start, LLVMValueRef limit,
                        int64_t step) {
  loop->before = LLVMGetInsertBlock(e->b);
  loop->body = tn_emit_block(e);
  loop->after = tn_emit_block(e);
  loop->limit = limit;
  loop->step = tn_emit_i64(e, step);
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, start, limit, ""), loop->body, loop->after);
  tn_emit_enter(e, loop->body);
  loop->index = LLVMBuildPhi(e->b, e->i64, "");
  LLVMAddIncoming(loop->index, &start, &loop->before, 1);
  for (int i = 0; i < loop->carried_count; ++i) {
    loop->carried[i] = LLVMBuildPhi(e->b, LLVMTypeOf(loop->initial[i]), "");
    LLVMAddIncoming(loop->carried[i], &loop->initial[i], &loop->before, 1);
  }
}

void tn_emit_loop_end(tn_emit_t* e, tn_emit_loop_t* loop, LLVMValueRef* next) {
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
  LLVMValueRef advanced = LLVMBuildNSWAdd(e->b, loop->index, loop->step, "");
  LLVMAddIncoming(loop->index, &advanced, &latch, 1);
  for (int i = 0; i < loop->carried_count; ++i)
    LLVMAddIncoming(loop->carried[i], &next[i], &latch, 1);
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, advanced, loop->limit, ""), loop->body,
                  loop->after);
  tn_emit_enter(e, loop->after);
  for (int i = 0; i < loop->carried_count; ++i) {
    LLVMValueRef phi = LLVMBuildPhi(e->b, LLVMTypeOf(next[i]), "");
    LLVMAddIncoming(phi, (LLVMValueRef[]){loop->initial[i], next[i]},
                    (LLVMBasicBlockRef[]){loop->before, latch}, 2);
    loop->carried[i] = phi;
  }
}
