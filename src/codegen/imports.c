// C functions that generated code may call.
#include <math.h>
#include <string.h>

#include "codegen/loader.h"
#include "codegen/math_calls.h"

// The first two by our own code; the others by LLVM where the instruction set lacks an instruction.
// clang-format off
#define TN_IMPORTS(X)                                                                                          \
  X(tn_math_call_f32) X(tn_math_call_f64) X(fma) X(fmaf) X(ceil) X(ceilf) X(floor) X(floorf) X(trunc) X(truncf) \
  X(rint) X(rintf) X(memcpy) X(memset)
// clang-format on

void* tn_loader_import(const char* name) {
  static const struct {
    const char* name;
    void* address;
  } table[] = {
#define TN_IMPORT(function) {#function, (void*)(function)},
      TN_IMPORTS(TN_IMPORT)
#undef TN_IMPORT
  };
  for (size_t i = 0; i < sizeof table / sizeof table[0]; ++i)
    if (strcmp(table[i].name, name) == 0) return table[i].address;
  return NULL;
}
