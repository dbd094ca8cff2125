// Chooses the instruction set of generated code.
#include "codegen/isa.h"

#include <stdatomic.h>
#include <string.h>

#include "base/options.h"
#include "codegen/codegen_api.h"

static const char* const names[TN_CODEGEN_ISA_COUNT] = {"generic", "avx2", "avx512"};

const char* tn_codegen_isa_name(int isa) { return names[isa]; }

static int detect(void) {
  int isa = TN_CODEGEN_GENERIC;
#ifdef TN_HAVE_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2")) {
    isa = TN_CODEGEN_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
      isa = TN_CODEGEN_AVX512;
  }
#endif
  const char* cap = tn_option_string(TN_OPTION_TN_ISA);
  for (int i = 0; i < isa; ++i)
    if (strcmp(cap, names[i]) == 0) return i;
  return isa;
}

int tn_codegen_isa(void) {
  static _Atomic int found;  // isa + 1
  int isa = atomic_load_explicit(&found, memory_order_relaxed);
  if (isa == 0) {
    isa = detect() + 1;
    atomic_store_explicit(&found, isa, memory_order_relaxed);
  }
  return isa - 1;
}
