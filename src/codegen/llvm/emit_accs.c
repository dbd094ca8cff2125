// Accumulators of reductions: 64 lanes of a reduced row in memory or registers, and the places of partial results.
#include "codegen/llvm/emit_accs.h"

enum { LANES = TN_KERNEL_LANES };

static int accumulated(const tn_kernel_inst_t* inst) {
  return tn_emit_is_small_float(inst->dtype) ? TN_F32 : inst->dtype;
}

void tn_accs_find(const tn_emit_t* e, int phase, tn_accs_t* out_accs) {
  const tn_kernel_program_t* p = e->program;
  out_accs->count = 0;
  for (int i = 0; i < p->inst_count; ++i) {
    if (p->inst[i].phase != phase || p->inst[i].op != TN_KOP_ACC) continue;
    out_accs->inst[out_accs->count] = i;
    out_accs->dtype[out_accs->count++] = accumulated(&p->inst[i]);
  }
}

static LLVMValueRef acc_slot(tn_emit_t* e, const tn_accs_t* accs, int which, LLVMValueRef lane) {
  return LLVMBuildInBoundsGEP2(e->b, tn_emit_memory_type(e, accs->dtype[which]), accs->slots[which],
                               &lane, 1, "");
}
LLVMValueRef tn_accs_load_memory(tn_emit_t* e, const tn_accs_t* accs, int which,
                                 LLVMValueRef lane) {
  LLVMTypeRef type = tn_emit_vector(e, tn_emit_memory_type(e, accs->dtype[which]));
  LLVMValueRef x = LLVMBuildLoad2(e->b, type, acc_slot(e, accs, which, lane), "");
  LLVMSetAlignment(x, (unsigned)(tn_emit_dtype_size(accs->dtype[which]) * (size_t)e->lanes));
  return x;
}
void tn_accs_store_memory(tn_emit_t* e, const tn_accs_t* accs, int which, LLVMValueRef lane,
                          LLVMValueRef x) {
  LLVMValueRef store = LLVMBuildStore(e->b, x, acc_slot(e, accs, which, lane));
  LLVMSetAlignment(store, (unsigned)(tn_emit_dtype_size(accs->dtype[which]) * (size_t)e->lanes));
  // Else load, select, store become one masked store, which takes tens of cycles and cannot be forwarded.
  LLVMSetVolatile(store, 1);
}
LLVMValueRef tn_accs_load(tn_emit_t* e, const tn_accs_t* accs, int which, LLVMValueRef lane) {
  LLVMValueRef x = tn_accs_load_memory(e, accs, which, lane);
  return accs->dtype[which] == TN_BOOL ? tn_emit_widen(e, TN_BOOL, x) : x;
}
void tn_accs_store(tn_emit_t* e, const tn_accs_t* accs, int which, LLVMValueRef lane,
                   LLVMValueRef x) {
  tn_accs_store_memory(e, accs, which, lane,
                       accs->dtype[which] == TN_BOOL ? tn_emit_narrow(e, TN_BOOL, x) : x);
}

LLVMValueRef tn_accs_combine(tn_emit_t* e, const tn_accs_t* accs, int which) {
  const tn_kernel_inst_t* inst = &e->program->inst[accs->inst[which]];
  const int dtype = accs->dtype[which];
  int count = LANES / e->lanes;
  LLVMValueRef part[LANES];
  for (int i = 0; i < count; ++i)
    part[i] = accs->in_registers
                  ? accs->part[i]
                  : tn_accs_load(e, accs, which, tn_emit_i64(e, (int64_t)i * e->lanes));
  for (; count > 1; count /= 2) {
    for (int i = 0; i < count / 2; ++i)
      part[i] = tn_emit_combine(e, inst->index, dtype, part[i], part[i + count / 2]);
  }
  LLVMValueRef lanes[LANES];
  for (int half = e->lanes / 2; half >= 1; half /= 2) {
    for (int i = 0; i < e->lanes; ++i)
      lanes[i] = LLVMConstInt(e->i32, (unsigned)((i + half) % e->lanes), 0);
    LLVMValueRef other = LLVMBuildShuffleVector(e->b, part[0], LLVMGetPoison(LLVMTypeOf(part[0])),
                                                LLVMConstVector(lanes, (unsigned)e->lanes), "");
    part[0] = tn_emit_combine(e, inst->index, dtype, part[0], other);
  }
  // Only lane 0 has combined in the right order.
  return LLVMBuildShuffleVector(e->b, part[0], LLVMGetPoison(LLVMTypeOf(part[0])),
                                LLVMConstNull(LLVMVectorType(e->i32, (unsigned)e->lanes)), "");
}

// ---- parts -----------------------------------------------------------------------------------------------------
static LLVMValueRef argument(tn_emit_t* e, LLVMValueRef args, int64_t index) {
  LLVMValueRef at = tn_emit_i64(e, index);
  return LLVMBuildLoad2(e->b, e->ptr, LLVMBuildInBoundsGEP2(e->b, e->ptr, args, &at, 1, ""), "");
}
// Not "in bounds": |base| may be NULL.
static LLVMValueRef moved(tn_emit_t* e, LLVMValueRef base, LLVMValueRef bytes) {
  return LLVMBuildGEP2(e->b, e->i8, base, &bytes, 1, "");
}
static LLVMValueRef places(tn_emit_t* e, const tn_parts_t* parts, LLVMValueRef count) {
  return LLVMBuildMul(e->b, count, tn_emit_i64(e, (int64_t)tn_emit_dtype_size(parts->dtype)), "");
}

void tn_parts_init(tn_emit_t* e, tn_parts_t* parts, LLVMValueRef args) {
  if (!tn_kernel_program_has_parts(e->program)) return;
  int acc = 0;
  while (e->program->inst[acc].op != TN_KOP_ACC) ++acc;
  parts->is_on = true;
  parts->kind = e->program->inst[acc].index;
  parts->dtype = accumulated(&e->program->inst[acc]);
  parts->in = argument(e, args, 4);
  parts->out = argument(e, args, 5);
  parts->has_in = LLVMBuildIsNotNull(e->b, parts->in, "");
  parts->has_out = LLVMBuildIsNotNull(e->b, parts->out, "");
  LLVMTypeRef type = tn_emit_vector(e, tn_emit_memory_type(e, parts->dtype));
  parts->identity = tn_emit_alloca(e, type, 64);
  LLVMValueRef x = tn_emit_identity(e, parts->kind, parts->dtype);
  if (parts->dtype == TN_BOOL) x = tn_emit_narrow(e, TN_BOOL, x);
  LLVMSetAlignment(LLVMBuildStore(e->b, x, parts->identity), 64);
}

LLVMValueRef tn_parts_pitch(tn_emit_t* e, LLVMValueRef extent) {
  return LLVMBuildAnd(e->b, LLVMBuildNSWAdd(e->b, extent, tn_emit_i64(e, LANES - 1), ""),
                      tn_emit_i64(e, -LANES), "");
}

void tn_parts_place(tn_emit_t* e, tn_parts_t* parts, LLVMValueRef place) {
  LLVMValueRef bytes = places(e, parts, place);
  parts->in_at =
      LLVMBuildSelect(e->b, parts->has_in, moved(e, parts->in, bytes), parts->identity, "");
  parts->in_step = LLVMBuildSelect(e->b, parts->has_in,
                                   tn_emit_i64(e, (int64_t)tn_emit_dtype_size(parts->dtype)),
                                   tn_emit_i64(e, 0), "");
  parts->out_at = moved(e, parts->out, bytes);
}

LLVMValueRef tn_parts_initial(tn_emit_t* e, const tn_parts_t* parts) {
  LLVMValueRef at = moved(e, parts->in_at, LLVMBuildMul(e->b, e->index, parts->in_step, ""));
  // Whole vectors even in a tail: places are padded to whole vectors.
  LLVMValueRef x =
      LLVMBuildLoad2(e->b, tn_emit_vector(e, tn_emit_memory_type(e, parts->dtype)), at, "");
  LLVMSetAlignment(x, (unsigned)tn_emit_dtype_size(parts->dtype));
  return parts->dtype == TN_BOOL ? tn_emit_widen(e, TN_BOOL, x) : x;
}

LLVMValueRef tn_parts_finish(tn_emit_t* e, const tn_parts_t* parts, LLVMValueRef x) {
  LLVMValueRef old = tn_emit_splat(e, tn_emit_load_element(e, parts->dtype, parts->in_at));
  if (parts->dtype == TN_BOOL) old = tn_emit_widen(e, TN_BOOL, old);
  return LLVMBuildSelect(e->b, parts->has_in, old, x, "");
}

void tn_parts_keep(tn_emit_t* e, tn_parts_t* parts, LLVMValueRef x, bool is_row) {
  LLVMBasicBlockRef keep = tn_emit_block(e), rest = tn_emit_block(e);
  parts->join = tn_emit_block(e);
  LLVMBuildCondBr(e->b, parts->has_out, keep, rest);
  tn_emit_enter(e, keep);
  if (parts->dtype == TN_BOOL) x = tn_emit_narrow(e, TN_BOOL, x);
  LLVMValueRef at = parts->out_at;
  if (is_row) {
    x = LLVMBuildExtractElement(e->b, x, LLVMConstInt(e->i32, 0, 0), "");
  } else {
    at = moved(e, at, places(e, parts, e->index));
  }
  LLVMSetAlignment(LLVMBuildStore(e->b, x, at), (unsigned)tn_emit_dtype_size(parts->dtype));
  LLVMBuildBr(e->b, parts->join);
  tn_emit_enter(e, rest);
}

void tn_parts_join(tn_emit_t* e, tn_parts_t* parts) {
  LLVMBuildBr(e->b, parts->join);
  tn_emit_enter(e, parts->join);
}
