// C functions that generated code may call: one scalar call per lane where no recipe exists.
#include <math.h>
#include <string.h>

#include "codegen/loader.h"

#define TN_IMPORTS(X)                                                                                              \
  X(fma) X(fmaf) X(fmod) X(fmodf) X(pow) X(powf) X(atan2) X(atan2f) X(nextafter) X(nextafterf) X(cbrt) X(cbrtf)       \
  X(exp) X(exp2) X(expm1) X(log) X(log2) X(log1p) X(sin) X(cos) X(tan) X(tanh) X(erf) X(erfc) X(asin) X(acos) X(atan) \
  X(sinh) X(cosh) X(asinh) X(acosh) X(atanh) X(ceil) X(ceilf) X(floor) X(floorf) X(trunc) X(truncf) X(rint) X(rintf)   \
  X(memcpy) X(memset)

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
