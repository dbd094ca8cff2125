// Elementwise instructions on a few lanes in plain C: the meaning that generated code is tested against.
#ifndef TN_CODEGEN_KERNEL_EVAL_H_
#define TN_CODEGEN_KERNEL_EVAL_H_

#include "tn/kernel_program.h"

// Register form of one lane: integers and BOOL extended to 64 bits by their own signedness, F16, BF16 and F32 as f32
// (the small ones rounded), F64 as f64.
typedef union tn_lane {
  int64_t i;
  float f;
  double d;
} tn_eval_t;

tn_eval_t tn_eval_load(int dtype, const void* address);
void tn_eval_store(int dtype, void* address, tn_eval_t value);
// Rounds an f32 to F16 or BF16; other dtypes pass.
tn_eval_t tn_eval_round(int dtype, tn_eval_t value);

// out[0..count) of one elementwise instruction; |from| is the dtype of its first operand. |out| may be an operand.
// UNIMPLEMENTED (false) if the operation has no meaning on the dtype.
bool tn_kernel_eval(const tn_kernel_inst_t* inst, int from, int count, const tn_eval_t* a,
                    const tn_eval_t* b, const tn_eval_t* c, tn_eval_t* out);
// combine(a, b) of a reduction, and its identity; |dtype| as accumulated (F32 for small floats).
tn_eval_t tn_eval_combine(int kind, int dtype, tn_eval_t a, tn_eval_t b);
tn_eval_t tn_eval_identity(int kind, int dtype);

#endif  // TN_CODEGEN_KERNEL_EVAL_H_
