#include "kernels/isa.h"

#include <stdatomic.h>
#include <string.h>

#include "base/options.h"

static const char* const kNames[TN_ISA_LEVEL_COUNT] = {"generic", "avx2", "avx512"};

const char* tn_isa_name(tn_isa_t isa) { return kNames[isa]; }

static tn_isa_t isa_detect(void) {
  tn_isa_t best = TN_ISA_LEVEL_GENERIC;
#ifdef TN_HAVE_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2")) {
    best = TN_ISA_LEVEL_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      best = TN_ISA_LEVEL_AVX512;
    }
  }
#endif
  const char* cap = tn_option_string(TN_OPTION_TN_ISA);
  for (int i = 0; i < (int)best; ++i) {
    if (strcmp(cap, kNames[i]) == 0) best = (tn_isa_t)i;
  }
  return best;
}

tn_isa_t tn_isa_current(void) {
  static _Atomic int known = -1;  // a cache: every thread computes the same value
  int isa = atomic_load_explicit(&known, memory_order_relaxed);
  if (isa < 0) {
    isa = (int)isa_detect();
    atomic_store_explicit(&known, isa, memory_order_relaxed);
  }
  return (tn_isa_t)isa;
}
