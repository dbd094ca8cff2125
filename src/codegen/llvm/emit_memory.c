// Loads and stores of operands along the vector loop.
//
// Full vectors of CONTIGUOUS operands are one load or store; STRIDED ones go element by element. A tail of
// |remaining| lanes uses masked loads and stores where memory elements have 4 or 8 bytes; else it goes through a stack
// buffer (lanes of it behind the end hold old bytes: computed on, never stored).
#include "codegen/llvm/emit.h"

static LLVMValueRef byte_offset(tn_emit_t* e, LLVMValueRef base, LLVMValueRef bytes) {
  return LLVMBuildInBoundsGEP2(e->b, e->i8, base, &bytes, 1, "");
}

LLVMValueRef tn_emit_advance(tn_emit_t* e, int operand, LLVMValueRef base, LLVMValueRef count,
                             LLVMValueRef stride) {
  LLVMValueRef distance = LLVMBuildMul(e->b, count, stride, "");
  if (e->program->operand[operand].kind == TN_OPERAND_INDEX)
    return LLVMBuildAdd(e->b, base, distance, "");
  return byte_offset(e, base, distance);
}

LLVMValueRef tn_emit_load_element(tn_emit_t* e, int dtype, LLVMValueRef address) {
  LLVMTypeRef type = tn_emit_memory_type(e, dtype);
  LLVMValueRef x = LLVMBuildLoad2(e->b, type, address, "");
  LLVMSetAlignment(x, (unsigned)tn_emit_dtype_size(dtype));
  return x;
}

static bool has_masked_access(const tn_emit_t* e, int dtype) {
  return tn_emit_dtype_size(dtype) >= 4 && e->isa >= TN_CODEGEN_AVX2;
}

static LLVMValueRef masked_load(tn_emit_t* e, LLVMTypeRef type, LLVMValueRef address,
                                unsigned alignment) {
  LLVMTypeRef types[] = {type, e->ptr};
  unsigned id = LLVMLookupIntrinsicID("llvm.masked.load", 16);
  LLVMTypeRef signature = LLVMIntrinsicGetType(e->context, id, types, 2);
  LLVMValueRef args[4] = {address, e->mask, LLVMConstNull(type)};
  unsigned count = 3;
  if (LLVMCountParamTypes(signature) == 4) {  // before LLVM 22 the alignment is an operand
    args[1] = LLVMConstInt(e->i32, alignment, 0);
    args[2] = e->mask;
    args[3] = LLVMConstNull(type);
    count = 4;
  }
  LLVMValueRef call = LLVMBuildCall2(
      e->b, signature, LLVMGetIntrinsicDeclaration(e->module, id, types, 2), args, count, "");
  if (count == 3) {
    unsigned align = LLVMGetEnumAttributeKindForName("align", 5);
    LLVMAddCallSiteAttribute(call, 1, LLVMCreateEnumAttribute(e->context, align, alignment));
  }
  return call;
}

static void masked_store(tn_emit_t* e, LLVMValueRef value, LLVMValueRef address,
                         unsigned alignment) {
  LLVMTypeRef types[] = {LLVMTypeOf(value), e->ptr};
  unsigned id = LLVMLookupIntrinsicID("llvm.masked.store", 17);
  LLVMTypeRef signature = LLVMIntrinsicGetType(e->context, id, types, 2);
  LLVMValueRef args[4] = {value, address, e->mask};
  unsigned count = 3;
  if (LLVMCountParamTypes(signature) == 4) {
    args[2] = LLVMConstInt(e->i32, alignment, 0);
    args[3] = e->mask;
    count = 4;
  }
  LLVMValueRef call = LLVMBuildCall2(
      e->b, signature, LLVMGetIntrinsicDeclaration(e->module, id, types, 2), args, count, "");
  if (count == 3) {
    unsigned align = LLVMGetEnumAttributeKindForName("align", 5);
    LLVMAddCallSiteAttribute(call, 2, LLVMCreateEnumAttribute(e->context, align, alignment));
  }
}

// Bytes from one lane to the next.
static LLVMValueRef lane_stride(tn_emit_t* e, int operand) {
  const tn_kernel_operand_t* o = &e->program->operand[operand];
  if (o->vector == TN_OPERAND_CONTIGUOUS)
    return tn_emit_i64(e, (int64_t)tn_emit_dtype_size(o->dtype));
  return e->stride[operand][e->program->vector_loop];
}

// Address of the first lane of this vector.
static LLVMValueRef vector_address(tn_emit_t* e, int operand) {
  const tn_kernel_operand_t* o = &e->program->operand[operand];
  LLVMValueRef base = e->base[operand];
  if (o->vector == TN_OPERAND_SCALAR || e->is_uniform) return base;
  if (o->vector == TN_OPERAND_CONTIGUOUS)
    return LLVMBuildInBoundsGEP2(e->b, tn_emit_memory_type(e, o->dtype), base, &e->index, 1, "");
  return byte_offset(e, base, LLVMBuildMul(e->b, e->index, lane_stride(e, operand), ""));
}

static LLVMValueRef load_lanes(tn_emit_t* e, int operand, LLVMValueRef address) {
  const int dtype = e->program->operand[operand].dtype;
  LLVMTypeRef vector = tn_emit_vector(e, tn_emit_memory_type(e, dtype));
  LLVMValueRef result = LLVMGetPoison(vector), stride = lane_stride(e, operand);
  for (int i = 0; i < e->lanes; ++i) {
    if (i > 0) address = byte_offset(e, address, stride);
    LLVMValueRef x = tn_emit_load_element(e, dtype, address);
    result = LLVMBuildInsertElement(e->b, result, x, LLVMConstInt(e->i32, (unsigned)i, 0), "");
  }
  return result;
}

LLVMValueRef tn_emit_stage(tn_emit_t* e, int operand) {
  if (!e->stage[operand]) {
    LLVMTypeRef element = tn_emit_memory_type(e, e->program->operand[operand].dtype);
    e->stage[operand] = tn_emit_alloca(e, LLVMVectorType(element, (unsigned)e->lanes), 64);
  }
  return e->stage[operand];
}

// Copies |remaining| elements between the operand's memory and its stack buffer.
static void copy_remaining(tn_emit_t* e, int operand, LLVMValueRef address, bool is_store) {
  const tn_kernel_operand_t* o = &e->program->operand[operand];
  const int64_t size = (int64_t)tn_emit_dtype_size(o->dtype);
  LLVMValueRef stage = tn_emit_stage(e, operand);
  if (o->vector == TN_OPERAND_CONTIGUOUS) {
    LLVMValueRef bytes = LLVMBuildMul(e->b, e->remaining, tn_emit_i64(e, size), "");
    LLVMBuildMemCpy(e->b, is_store ? address : stage, 1, is_store ? stage : address, 1, bytes);
    return;
  }
  tn_emit_loop_t loop;
  loop.carried_count = 1;
  loop.initial[0] = address;
  tn_emit_loop_begin(e, &loop, tn_emit_i64(e, 0), e->remaining, 1);
  LLVMTypeRef element = tn_emit_memory_type(e, o->dtype);
  LLVMValueRef slot = LLVMBuildInBoundsGEP2(e->b, element, stage, &loop.index, 1, "");
  LLVMValueRef x = tn_emit_load_element(e, o->dtype, is_store ? slot : loop.carried[0]);
  LLVMSetAlignment(LLVMBuildStore(e->b, x, is_store ? loop.carried[0] : slot), (unsigned)size);
  LLVMValueRef next = byte_offset(e, loop.carried[0], lane_stride(e, operand));
  tn_emit_loop_end(e, &loop, &next);
}

LLVMValueRef tn_emit_load_memory(tn_emit_t* e, int operand) {
  const tn_kernel_operand_t* o = &e->program->operand[operand];
  LLVMValueRef address = vector_address(e, operand);
  LLVMTypeRef type = tn_emit_vector(e, tn_emit_memory_type(e, o->dtype));
  unsigned alignment = (unsigned)tn_emit_dtype_size(o->dtype);
  if (o->vector == TN_OPERAND_SCALAR || e->is_uniform)
    return tn_emit_splat(e, tn_emit_load_element(e, o->dtype, address));
  if (e->remaining) {
    if (o->vector == TN_OPERAND_CONTIGUOUS && has_masked_access(e, o->dtype))
      return masked_load(e, type, address, alignment);
    copy_remaining(e, operand, address, false);
    address = tn_emit_stage(e, operand);
    alignment = 64;
  } else if (o->vector == TN_OPERAND_STRIDED) {
    return load_lanes(e, operand, address);
  }
  LLVMValueRef x = LLVMBuildLoad2(e->b, type, address, "");
  LLVMSetAlignment(x, alignment);
  return x;
}

LLVMValueRef tn_emit_load(tn_emit_t* e, int operand) {
  return tn_emit_widen(e, e->program->operand[operand].dtype, tn_emit_load_memory(e, operand));
}

void tn_emit_store(tn_emit_t* e, int operand, LLVMValueRef value) {
  tn_emit_store_memory(e, operand, tn_emit_narrow(e, e->program->operand[operand].dtype, value));
}

void tn_emit_store_memory(tn_emit_t* e, int operand, LLVMValueRef x) {
  const tn_kernel_operand_t* o = &e->program->operand[operand];
  LLVMValueRef address = vector_address(e, operand);
  const unsigned alignment = (unsigned)tn_emit_dtype_size(o->dtype);
  if (o->vector == TN_OPERAND_SCALAR || e->is_uniform) {
    // Every lane writes the same place; the last existing one stays.
    LLVMValueRef lane = LLVMConstInt(e->i32, 0, 0);
    if (!e->is_uniform) {
      lane = LLVMConstInt(e->i32, (unsigned)e->lanes - 1, 0);
      if (e->remaining)
        lane = LLVMBuildTrunc(e->b, LLVMBuildSub(e->b, e->remaining, tn_emit_i64(e, 1), ""), e->i32,
                              "");
    }
    LLVMSetAlignment(LLVMBuildStore(e->b, LLVMBuildExtractElement(e->b, x, lane, ""), address),
                     alignment);
  } else if (e->remaining && o->vector == TN_OPERAND_CONTIGUOUS && has_masked_access(e, o->dtype)) {
    masked_store(e, x, address, alignment);
  } else if (e->remaining) {
    LLVMSetAlignment(LLVMBuildStore(e->b, x, tn_emit_stage(e, operand)), 64);
    copy_remaining(e, operand, address, true);
  } else if (o->vector == TN_OPERAND_CONTIGUOUS) {
    LLVMSetAlignment(LLVMBuildStore(e->b, x, address), alignment);
  } else {
    LLVMValueRef stride = lane_stride(e, operand);
    for (int i = 0; i < e->lanes; ++i) {
      if (i > 0) address = byte_offset(e, address, stride);
      LLVMValueRef y = LLVMBuildExtractElement(e->b, x, LLVMConstInt(e->i32, (unsigned)i, 0), "");
      LLVMSetAlignment(LLVMBuildStore(e->b, y, address), alignment);
    }
  }
}

LLVMValueRef tn_emit_index(tn_emit_t* e, int operand) {
  const tn_kernel_operand_t* o = &e->program->operand[operand];
  LLVMValueRef base = e->base[operand];
  if (o->vector == TN_OPERAND_SCALAR || e->is_uniform) return tn_emit_splat(e, base);
  // CONTIGUOUS means a stride of one element size in memory; indices count units, so they always have a stride.
  LLVMValueRef stride = e->stride[operand][e->program->vector_loop];
  LLVMValueRef first = LLVMBuildAdd(e->b, base, LLVMBuildMul(e->b, e->index, stride, ""), "");
  LLVMValueRef steps = LLVMBuildMul(e->b, tn_emit_iota(e, e->i64), tn_emit_splat(e, stride), "");
  return LLVMBuildAdd(e->b, tn_emit_splat(e, first), steps, "");
}
