// Transcendental functions: recipes of src/base/math_recipes.inc for f32, libm calls per lane for f64.
#include "codegen/llvm/emit.h"

LLVMValueRef tn_emit_math(tn_emit_t* e, int op, int dtype, LLVMValueRef a, LLVMValueRef b) {
  (void)e, (void)op, (void)dtype, (void)a, (void)b;
  return NULL;
}
