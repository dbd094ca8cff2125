// Accumulators of reductions, and reductions that are run in parts.
#ifndef TN_CODEGEN_LLVM_EMIT_ACCS_H_
#define TN_CODEGEN_LLVM_EMIT_ACCS_H_

#include "codegen/llvm/emit.h"

// ---- accumulators of one phase -------------------------------------------------------------------------------
typedef struct tn_accs {
  int count;
  int inst[TN_KERNEL_INSTRUCTIONS];            // ACC instructions of the phase
  int dtype[TN_KERNEL_INSTRUCTIONS];           // as accumulated
  LLVMValueRef slots[TN_KERNEL_INSTRUCTIONS];  // 64 lanes in memory, reduced vector loops only
  bool in_registers;  // one short reduction without outer reduced loops: |part| instead of memory
  LLVMValueRef part[TN_KERNEL_LANES];
} tn_accs_t;

void tn_accs_find(const tn_emit_t* e, int phase, tn_accs_t* out_accs);  // instructions and dtypes
// The lanes from |lane| of one accumulator in memory, in memory form or in register form.
LLVMValueRef tn_accs_load_memory(tn_emit_t* e, const tn_accs_t* accs, int which, LLVMValueRef lane);
void tn_accs_store_memory(tn_emit_t* e, const tn_accs_t* accs, int which, LLVMValueRef lane,
                          LLVMValueRef x);
LLVMValueRef tn_accs_load(tn_emit_t* e, const tn_accs_t* accs, int which, LLVMValueRef lane);
void tn_accs_store(tn_emit_t* e, const tn_accs_t* accs, int which, LLVMValueRef lane,
                   LLVMValueRef x);
// Combines 64 lanes by halving; the result in every lane, as accumulated.
LLVMValueRef tn_accs_combine(tn_emit_t* e, const tn_accs_t* accs, int which);

// ---- parts ---------------------------------------------------------------------------------------------------
// The accumulators that tn_kernel_args_t.part_in and part_out hold: one place a point, see tn/kernel_program.h.
typedef struct tn_parts {
  bool is_on;  // the program is one reduction and its epilogue
  int kind, dtype;
  LLVMValueRef in, out, has_in, has_out;  // the arguments
  LLVMValueRef identity;                  // stack copy of one vector
  LLVMValueRef in_at, in_step, out_at;    // at the current outer point
  LLVMBasicBlockRef join;
} tn_parts_t;

void tn_parts_init(tn_emit_t* e, tn_parts_t* parts, LLVMValueRef args);
LLVMValueRef tn_parts_pitch(tn_emit_t* e, LLVMValueRef extent);  // places of one outer point
void tn_parts_place(tn_emit_t* e, tn_parts_t* parts, LLVMValueRef place);
// What a parallel vector starts with: its places of part_in, or the identity.
LLVMValueRef tn_parts_initial(tn_emit_t* e, const tn_parts_t* parts);
// The value of a reduced row: its place of part_in, or |x|.
LLVMValueRef tn_parts_finish(tn_emit_t* e, const tn_parts_t* parts, LLVMValueRef x);
// With part_out, stores |x| (one lane if |is_row|) and skips what is emitted until tn_parts_join.
void tn_parts_keep(tn_emit_t* e, tn_parts_t* parts, LLVMValueRef x, bool is_row);
void tn_parts_join(tn_emit_t* e, tn_parts_t* parts);

#endif  // TN_CODEGEN_LLVM_EMIT_ACCS_H_
