// Generated strided arrays for kernel tests.
#ifndef TESTS_C_VIEWS_H_
#define TESTS_C_VIEWS_H_

#include <stdlib.h>
#include <string.h>

#include "src/base/pool.h"
#include "src/kernels/view.h"

static uint64_t test_state = 88172645463325252ull;
static inline uint64_t test_random(void) {  // xorshift64
  test_state ^= test_state << 13;
  test_state ^= test_state >> 7;
  test_state ^= test_state << 17;
  return test_state;
}
// In [low, high].
static inline int64_t test_between(int64_t low, int64_t high) {
  return low + (int64_t)(test_random() % (uint64_t)(high - low + 1));
}
static inline double test_real(void) { return (double)(test_random() >> 11) * 0x1p-53; }

// An array with its memory: random order of strides, gaps and signs.
typedef struct test_array {
  tn_view_t view;
  char* memory;
  size_t size;
} test_array_t;

static inline void test_set(const tn_view_t* view, const int64_t* index, tn_scalar_t value) {
  int64_t at = 0;
  for (int i = 0; i < view->rank; ++i) at += index[i] * view->strides[i];
  const size_t size = tn_dtype_size(view->dtype);
  memcpy((char*)view->data + at * (int64_t)size, &value, size);
}
static inline tn_scalar_t test_get(const tn_view_t* view, const int64_t* index) {
  int64_t at = 0;
  tn_scalar_t value = {0};
  for (int i = 0; i < view->rank; ++i) at += index[i] * view->strides[i];
  const size_t size = tn_dtype_size(view->dtype);
  memcpy(&value, (const char*)view->data + at * (int64_t)size, size);
  return value;
}
// Advances a row-major index; false at the end.
static inline bool test_next(const tn_view_t* view, int64_t* index) {
  for (int i = view->rank - 1; i >= 0; --i) {
    if (++index[i] < view->dims[i]) return true;
    index[i] = 0;
  }
  return false;
}

// |wild|: 0 contiguous, 1 any dense or gapped order, 2 also negative strides and repeats (stride 0).
static inline test_array_t test_array(tn_dtype_t dtype, int rank, const int64_t* dims, int wild) {
  test_array_t array = {.view = tn_view_make(NULL, dtype, rank, dims, NULL)};
  tn_view_t* view = &array.view;
  int order[TN_MAX_RANK];
  for (int i = 0; i < rank; ++i) order[i] = i;
  int64_t span = 1, shift = 0;
  if (wild) {
    for (int i = rank - 1; i > 0; --i) {
      int j = (int)test_between(0, i), t = order[i];
      order[i] = order[j];
      order[j] = t;
    }
    for (int i = rank - 1; i >= 0; --i) {
      const int d = order[i];
      if (test_between(0, 3) == 0) span += test_between(1, 3);
      view->strides[d] = span;
      if (wild == 2 && test_between(0, 5) == 0) {
        view->strides[d] = 0;
      } else {
        if (wild == 2 && test_between(0, 4) == 0) {
          view->strides[d] = -span;
          shift += dims[d] > 0 ? (dims[d] - 1) * span : 0;
        }
        span *= dims[d] > 0 ? dims[d] : 1;
      }
    }
  } else {
    span = tn_view_element_count(view);
  }
  const size_t size = tn_dtype_size(dtype);
  array.size = (size_t)span * size;
  array.memory = malloc(array.size + 64);
  view->data = array.memory + shift * (int64_t)size;
  // Values: bytes at random for a start; floats small.
  for (size_t i = 0; i < array.size; ++i) array.memory[i] = (char)test_random();
  if (tn_dtype_class(dtype) >= TN_CLASS_FLOAT || dtype == TN_BOOL) {
    const tn_dtype_t part = dtype == TN_C64 ? TN_F32 : dtype == TN_C128 ? TN_F64 : dtype;
    const size_t step = tn_dtype_size(part);
    for (size_t i = 0; i + step <= array.size; i += step) {
      tn_scalar_t value = tn_scalar_from_double(
          part, dtype == TN_BOOL ? (double)test_between(0, 1) : (test_real() - 0.5) * 8);
      memcpy(array.memory + i, &value, step);
    }
  }
  return array;
}
static inline void test_array_free(test_array_t* array) { free(array->memory); }

// Pools of 1 (none), 2 and 3 threads.
static inline tn_pool_t* test_pool(int threads) {
  static tn_pool_t* pools[4];
  if (threads <= 1) return NULL;
  if (!pools[threads]) tn_status_free(tn_pool_create(threads, &pools[threads]));
  return pools[threads];
}

#endif  // TESTS_C_VIEWS_H_
