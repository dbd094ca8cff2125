// Checked size arithmetic: false on overflow, and |out| is then unspecified.
#ifndef TN_BASE_SIZE_H_
#define TN_BASE_SIZE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool tn_size_add(size_t a, size_t b, size_t* out) {
  return !__builtin_add_overflow(a, b, out);
}
static inline bool tn_size_mul(size_t a, size_t b, size_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}

// |header| + |count| * |element| bytes.
static inline bool tn_size_array(size_t header, size_t count, size_t element, size_t* out) {
  size_t body;
  return tn_size_mul(count, element, &body) && tn_size_add(header, body, out);
}

// |size| rounded up to a multiple of |alignment|, a power of two.
static inline bool tn_size_align(size_t size, size_t alignment, size_t* out) {
  if (!tn_size_add(size, alignment - 1, out)) return false;
  *out &= ~(alignment - 1);
  return true;
}

// Product of |count| extents, all >= 0; false when it exceeds INT64_MAX or an extent is negative. 0 wins over overflow.
static inline bool tn_size_extents(const int64_t* extents, int count, int64_t* out) {
  int64_t product = 1;
  bool overflow = false, empty = false;
  for (int i = 0; i < count; ++i) {
    if (extents[i] < 0) return false;
    if (extents[i] == 0) empty = true;
    else overflow |= __builtin_mul_overflow(product, extents[i], &product);
  }
  *out = empty ? 0 : product;
  return empty || !overflow;
}

#endif  // TN_BASE_SIZE_H_
