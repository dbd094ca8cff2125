// Emitter of kernel programs: shared state and the functions of its files.
//
// A value of the program is one LLVM vector of |lanes| elements: BOOL <n x i1>, integers their own width, F16, BF16
// and F32 <n x float> (the small ones hold rounded values), F64 <n x double>. No IR pass runs afterwards, so what is
// written here is what instruction selection sees.
#ifndef TN_CODEGEN_LLVM_EMIT_H_
#define TN_CODEGEN_LLVM_EMIT_H_

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stdint.h>

#include "codegen/codegen_api.h"

enum { TN_EMIT_CARRIED = 2 * TN_KERNEL_OPERANDS + 64 };

typedef struct tn_emit {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef b;
  LLVMValueRef function;
  LLVMBasicBlockRef entry;  // holds the allocas
  const tn_kernel_program_t* program;
  int isa;
  int lanes;  // elements of a vector
  LLVMTypeRef i1, i8, i16, i32, i64, f32, f64, half, ptr, void_type;

  // Operand positions at the current point: a pointer, or an i64 for INDEX operands.
  LLVMValueRef base[TN_KERNEL_OPERANDS];
  LLVMValueRef stride[TN_KERNEL_OPERANDS][TN_KERNEL_LOOPS];  // loaded in the entry block when used
  LLVMValueRef dim[TN_KERNEL_LOOPS];
  LLVMValueRef scalar[TN_KERNEL_INSTRUCTIONS];  // SCALAR instructions, splat, by instruction
  LLVMValueRef splat[TN_KERNEL_INSTRUCTIONS];   // what is the same along the vector loop, or NULL
  LLVMValueRef value[TN_KERNEL_INSTRUCTIONS];
  LLVMValueRef stage[TN_KERNEL_OPERANDS];  // stack buffer of one vector, made on demand

  // Position inside the vector loop.
  LLVMValueRef index;      // i64, elements from base
  LLVMValueRef remaining;  // NULL in full vectors, else i64: lanes that exist
  LLVMValueRef mask;       // <lanes x i1>, with remaining
  // All lanes are equal: functions are called for one, stores write one element. POINT phases under a reduced vector
  // loop, and what is hoisted out of a vector loop.
  bool is_uniform;

  char* error;  // first problem, TN_CODEGEN_ERROR_SIZE bytes
  int code;     // tn_code_t
} tn_emit_t;

// ---- emit.c: types, constants, small helpers ---------------------------------------------------------------
void tn_emit_fail(tn_emit_t* e, int code, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
size_t tn_emit_dtype_size(int dtype);
bool tn_emit_is_float(int dtype);
bool tn_emit_is_small_float(int dtype);  // F16, BF16
bool tn_emit_is_signed(int dtype);
int tn_emit_operand_count(int op);                               // of an elementwise tn_op_t
LLVMTypeRef tn_emit_memory_type(const tn_emit_t* e, int dtype);  // one element in memory (BOOL: i8)
LLVMTypeRef tn_emit_element_type(const tn_emit_t* e, int dtype);  // one lane in registers
LLVMTypeRef tn_emit_vector(const tn_emit_t* e, LLVMTypeRef element);
LLVMValueRef tn_emit_splat(tn_emit_t* e, LLVMValueRef element);
LLVMValueRef tn_emit_iota(const tn_emit_t* e, LLVMTypeRef element);  // 0, 1, ..
LLVMValueRef tn_emit_int(const tn_emit_t* e, LLVMTypeRef element,
                         uint64_t value);  // splat constants
LLVMValueRef tn_emit_float(const tn_emit_t* e, LLVMTypeRef element, double value);
LLVMValueRef tn_emit_f32_bits(const tn_emit_t* e, uint32_t bits);
LLVMValueRef tn_emit_i64(const tn_emit_t* e, int64_t value);  // scalar constant
// Calls intrinsic |name| overloaded on |types|.
LLVMValueRef tn_emit_intrinsic(tn_emit_t* e, const char* name, LLVMTypeRef* types,
                               unsigned type_count, LLVMValueRef* args, unsigned arg_count);
LLVMValueRef tn_emit_intrinsic1(tn_emit_t* e, const char* name, LLVMValueRef x);
LLVMValueRef tn_emit_intrinsic2(tn_emit_t* e, const char* name, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef tn_emit_fma(tn_emit_t* e, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z);
LLVMValueRef tn_emit_alloca(tn_emit_t* e, LLVMTypeRef type, unsigned alignment);
LLVMBasicBlockRef tn_emit_block(tn_emit_t* e);
void tn_emit_enter(tn_emit_t* e, LLVMBasicBlockRef block);

// A counted loop: start, start + step, .. < limit, with carried values. Tested before the first turn.
typedef struct tn_emit_loop {
  LLVMBasicBlockRef before, body, after;
  LLVMValueRef index, limit, step;
  int carried_count;
  LLVMValueRef carried
      [TN_EMIT_CARRIED];  // inside: the values of this turn; after tn_emit_loop_end: the last ones
  LLVMValueRef initial[TN_EMIT_CARRIED];
} tn_emit_loop_t;
// |initial| of the loop is filled by the caller before.
void tn_emit_loop_begin(tn_emit_t* e, tn_emit_loop_t* loop, LLVMValueRef start, LLVMValueRef limit,
                        int64_t step);
void tn_emit_loop_end(tn_emit_t* e, tn_emit_loop_t* loop, LLVMValueRef* next);

// ---- emit_memory.c -----------------------------------------------------------------------------------------
LLVMValueRef tn_emit_load(tn_emit_t* e, int operand);
void tn_emit_store(tn_emit_t* e, int operand, LLVMValueRef value);
LLVMValueRef tn_emit_load_memory(tn_emit_t* e, int operand);  // the same in memory form
void tn_emit_store_memory(tn_emit_t* e, int operand, LLVMValueRef x);
LLVMValueRef tn_emit_stage(tn_emit_t* e, int operand);  // stack buffer of one vector
LLVMValueRef tn_emit_index(tn_emit_t* e, int operand);
// Loads one element at |address| and converts it to its register form.
LLVMValueRef tn_emit_load_element(tn_emit_t* e, int dtype, LLVMValueRef address);
// Base moved by |count| steps of |stride| (bytes, or units of an INDEX operand).
LLVMValueRef tn_emit_advance(tn_emit_t* e, int operand, LLVMValueRef base, LLVMValueRef count,
                             LLVMValueRef stride);

// ---- emit_convert.c ----------------------------------------------------------------------------------------
// Memory form (vector of memory elements) to register form and back.
LLVMValueRef tn_emit_widen(tn_emit_t* e, int dtype, LLVMValueRef x);
LLVMValueRef tn_emit_narrow(tn_emit_t* e, int dtype, LLVMValueRef x);
// Rounds an f32 vector to the values of F16 or BF16; other dtypes pass.
LLVMValueRef tn_emit_round(tn_emit_t* e, int dtype, LLVMValueRef x);
// The same after one arithmetic operation on values of |dtype| (cheaper).
LLVMValueRef tn_emit_round_arithmetic(tn_emit_t* e, int dtype, LLVMValueRef x);
LLVMValueRef tn_emit_convert(tn_emit_t* e, int to, int from, LLVMValueRef x);
LLVMValueRef tn_emit_bitcast(tn_emit_t* e, int to, int from, LLVMValueRef x);

// ---- emit_ops.c, emit_math.c -------------------------------------------------------------------------------
// Elementwise instruction on register values; NULL after tn_emit_fail.
LLVMValueRef tn_emit_elementwise(tn_emit_t* e, const tn_kernel_inst_t* inst, LLVMValueRef a,
                                 LLVMValueRef b, LLVMValueRef c);
// Function of one or two floats by recipe or libm; NULL if |op| is not one.
LLVMValueRef tn_emit_math(tn_emit_t* e, int op, int dtype, LLVMValueRef a, LLVMValueRef b);
// combine(a, b) of a reduction, a the earlier; |dtype| as accumulated.
LLVMValueRef tn_emit_combine(tn_emit_t* e, int kind, int dtype, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef tn_emit_identity(tn_emit_t* e, int kind, int dtype);
// Vector instructions of one instruction, roughly; 0 for contiguous loads and stores and for accumulators.
int tn_emit_inst_cost(const tn_kernel_program_t* program, int inst);

// ---- emit_nest.c -------------------------------------------------------------------------------------------
// Writes the function of |e->program| into |e->module|.
void tn_emit_program(tn_emit_t* e);

#endif  // TN_CODEGEN_LLVM_EMIT_H_
