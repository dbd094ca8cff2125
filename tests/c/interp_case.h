// Short forms for tests of the interpreter: parameters, running a graph of up to three parameters, random data.
#ifndef TESTS_C_INTERP_CASE_H_
#define TESTS_C_INTERP_CASE_H_

#include <stdarg.h>
#include <stdlib.h>

#include "tests/c/test.h"
#include "tn/graph.h"

static inline __attribute__((unused)) tn_graph_t* open_graph(void) {
  tn_graph_t* graph = NULL;
  TN_EXPECT_OK(tn_graph_create(&graph));
  return graph;
}

// A parameter of |rank| extents given as ints.
static inline __attribute__((unused)) const tn_node_t* param(tn_graph_t* graph, tn_dtype_t dtype,
                                                             int rank, ...) {
  int64_t dims[TN_MAX_RANK];
  va_list extents;
  va_start(extents, rank);
  for (int i = 0; i < rank; ++i) dims[i] = va_arg(extents, int);
  va_end(extents);
  const tn_type_t type = tn_type_make(dtype, rank, dims);
  return tn_graph_param(graph, &type, NULL);
}

// Runs the graph for |result| into |out| and destroys it. |a|, |b|, |c|: its parameters.
static inline __attribute__((unused)) tn_status_t run(tn_graph_t* graph, const tn_node_t* result,
                                                      const void* a, const void* b, const void* c,
                                                      void* out) {
  const void* params[] = {a, b, c};
  void* results[] = {out};
  tn_status_t status = tn_graph_status(graph);
  if (!status) {
    tn_graph_add_result(graph, result, NULL);
    status = tn_graph_verify(graph);
  }
  if (!status) status = tn_graph_interpret(graph, params, results);
  tn_graph_destroy(graph);
  return status;
}

#define EXPECT_BYTES(expected, actual, size) TN_EXPECT(memcmp(expected, actual, size) == 0)
#define EXPECT_FLOATS(actual, ...)                                                     \
  do {                                                                                 \
    const float want_[] = {__VA_ARGS__};                                               \
    for (size_t i_ = 0; i_ < sizeof want_ / sizeof want_[0]; ++i_) {                   \
      const float got_ = (actual)[i_];                                                 \
      if (!(got_ == want_[i_] || (got_ != got_ && want_[i_] != want_[i_]))) {          \
        ++tn_test_failures;                                                            \
        fprintf(stderr, "%s:%d: [%zu]: expected %a, got %a\n", __FILE__, __LINE__, i_, \
                (double)want_[i_], (double)got_);                                      \
      }                                                                                \
    }                                                                                  \
  } while (0)
#define EXPECT_INTS(actual, ...)                                     \
  do {                                                               \
    const long long want_[] = {__VA_ARGS__};                         \
    for (size_t i_ = 0; i_ < sizeof want_ / sizeof want_[0]; ++i_) { \
      TN_EXPECT_EQ(want_[i_], (actual)[i_]);                         \
    }                                                                \
  } while (0)

// A small reproducible generator.
static uint64_t case_state = 1;
static inline __attribute__((unused)) uint32_t case_random(void) {
  case_state = case_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(case_state >> 33);
}
static inline __attribute__((unused)) int case_range(int low, int high) {  // inclusive
  return low + (int)(case_random() % (uint32_t)(high - low + 1));
}
// Small whole numbers: sums of products of them are exact in f32.
static inline __attribute__((unused)) void case_fill(float* data, int64_t count) {
  for (int64_t i = 0; i < count; ++i) data[i] = (float)case_range(-4, 4);
}

#endif  // TESTS_C_INTERP_CASE_H_
