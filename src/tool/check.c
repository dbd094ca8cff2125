#include "tool/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tn_scalar_t load(tn_dtype_t dtype, const void* data, int64_t index) {
  const size_t size = tn_dtype_size(dtype);
  tn_scalar_t value = {0};
  memcpy(value.bytes, (const uint8_t*)data + (size_t)index * size, size);
  return value;
}

// Position of a float in the order of all floats of its type; both zeros are 0.
static int64_t float_position(tn_dtype_t dtype, tn_scalar_t value) {
  const int bits = (int)tn_dtype_size(dtype) * 8;
  const uint64_t sign = UINT64_C(1) << (bits - 1), magnitude = value.u64 & (sign - 1);
  return value.u64 & sign ? -(int64_t)magnitude : (int64_t)magnitude;
}

static bool holds_float(const tn_text_check_t* check, tn_dtype_t dtype, tn_scalar_t got,
                        tn_scalar_t expected) {
  const double a = tn_scalar_to_double(dtype, got), b = tn_scalar_to_double(dtype, expected);
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  if (check->kind == TN_CHECK_EQ) return a == b;
  if (isinf(a) || isinf(b)) return a == b;
  if (check->kind == TN_CHECK_ALMOST_EQ) return fabs(a - b) <= check->tolerance;
  const int64_t x = float_position(dtype, got), y = float_position(dtype, expected);
  const uint64_t apart = x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x;
  return apart >= (uint64_t)check->min_ulps && apart <= (uint64_t)check->max_ulps;
}

int64_t tn_tool_check(const tn_text_check_t* check, const tn_type_t* type, const void* got,
                      const void* expected) {
  int64_t count = tn_type_element_count(type);
  const bool is_complex = tn_dtype_is_complex(type->dtype);
  const tn_dtype_t part = !is_complex ? type->dtype : type->dtype == TN_C64 ? TN_F32 : TN_F64;
  const int parts = is_complex ? 2 : 1;
  for (int64_t i = 0; i < count * parts; ++i) {
    const tn_scalar_t a = load(part, got, i), b = load(part, expected, i);
    const bool holds = tn_dtype_is_float(part) ? holds_float(check, part, a, b)
                                               : memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
    if (!holds) return i / parts;
  }
  return -1;
}

void tn_tool_report(const char* place, const tn_text_check_t* check, const tn_type_t* type,
                    int64_t element, const void* got, const void* expected) {
  tn_text_t text = {0};
  int64_t index[TN_MAX_RANK], rest = element;
  for (int d = type->rank - 1; d >= 0; --d) {
    index[d] = rest % type->dims[d];
    rest /= type->dims[d];
  }
  const size_t size = tn_dtype_size(type->dtype);
  tn_text_add(&text, "%s: check failed: element [", place);
  tn_text_ints(&text, type->rank, index);
  tn_text_add(&text, "] is ");
  tn_text_element(&text, type->dtype, (const uint8_t*)got + (size_t)element * size);
  tn_text_add(&text, ", expected ");
  tn_text_element(&text, type->dtype, (const uint8_t*)expected + (size_t)element * size);
  if (check->kind == TN_CHECK_ALMOST_EQ) tn_text_add(&text, " within %g", check->tolerance);
  if (check->kind == TN_CHECK_CLOSE) {
    tn_text_add(&text, " within %lld..%lld ulps", (long long)check->min_ulps,
                (long long)check->max_ulps);
  }
  fprintf(stderr, "%s\n", text.is_out_of_memory ? place : text.data);
  free(text.data);
}
