// Arrays and bounds shared by the tests of row kernels.
#ifndef TESTS_C_ROWS_CHECK_H_
#define TESTS_C_ROWS_CHECK_H_

#include <math.h>

#include "tests/c/test.h"
#include "tests/c/views.h"

static const tn_dtype_t row_dtypes[] = {TN_F32, TN_BF16, TN_F16, TN_F64};

// |count| values of |dtype|, uniform in [low, high].
static inline void* row_array(tn_dtype_t dtype, int64_t count, double low, double high) {
  const size_t size = tn_dtype_size(dtype);
  char* data = malloc((size_t)count * size + 1);
  for (int64_t i = 0; i < count; ++i) {
    tn_scalar_t value = tn_scalar_from_double(dtype, low + (high - low) * test_real());
    memcpy(data + (size_t)i * size, &value, size);
  }
  return data;
}
static inline double row_at(tn_dtype_t dtype, const void* data, int64_t i) {
  tn_scalar_t value = {0};
  memcpy(&value, (const char*)data + (size_t)i * tn_dtype_size(dtype), tn_dtype_size(dtype));
  return tn_scalar_to_double(dtype, value);
}
// Half an ulp of the dtype at 1, plus what f32 sums lose.
static inline double row_eps(tn_dtype_t dtype) {
  return dtype == TN_F64 ? 1e-13 : dtype == TN_F32 ? 2e-6 : dtype == TN_F16 ? 1e-3 : 6e-3;
}
static inline bool row_near(double expected, double got, double bound) {
  return expected == got || fabs(expected - got) <= bound * (1 + fabs(expected)) ||
         (isnan(expected) && isnan(got));
}

// Compares |got| with f64 values; prints the first difference.
static inline void row_expect(const char* what, tn_dtype_t dtype, int64_t count,
                              const double* expected, const void* got, double bound) {
  for (int64_t i = 0; i < count; ++i) {
    const double value = row_at(dtype, got, i);
    if (row_near(expected[i], value, bound)) continue;
    fprintf(stderr, "%s %s [%lld of %lld]: expected %.9g, got %.9g\n", what, tn_dtype_name(dtype),
            (long long)i, (long long)count, expected[i], value);
    TN_EXPECT(!"near");
    return;
  }
}
static inline void row_expect_same(const char* what, const void* a, const void* b, size_t size) {
  if (memcmp(a, b, size) != 0) {
    fprintf(stderr, "%s differs between thread counts\n", what);
    TN_EXPECT(!"bitwise equal");
  }
}

#endif  // TESTS_C_ROWS_CHECK_H_
