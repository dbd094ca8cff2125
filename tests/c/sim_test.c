// Programs of the sim driver: fusion, reductions in blocks, strides, aliases, whole nodes.
#include "tests/c/test.h"

#include <math.h>
#include <stdlib.h>

#include "tn/driver.h"

static tn_graph_t* new_graph(void) {
  tn_graph_t* graph = NULL;
  TN_EXPECT_OK(tn_graph_create(&graph));
  return graph;
}

// Runs |graph| on sim and on the interpreter; both results have |bytes| bytes and must be equal bit for bit.
static void expect_equal_runs(tn_graph_t* graph, void* const* params, size_t bytes) {
  TN_EXPECT_OK(tn_graph_status(graph));
  const tn_driver_t* driver;
  TN_EXPECT_OK(tn_driver_find("sim", &driver));
  tn_program_t* program = NULL;
  TN_EXPECT_OK(driver->compile(graph, &program));
  char* actual = calloc(1, bytes + 64);
  char* expected = calloc(1, bytes + 64);
  void *actual_results[] = {actual}, *expected_results[] = {expected};
  if (program) {
    const tn_launch_t launch = {.params = params, .results = actual_results};
    TN_EXPECT_OK(driver->launch(program, &launch));
  }
  TN_EXPECT_OK(tn_graph_interpret(graph, (const void* const*)params, expected_results));
  if (memcmp(actual, expected, bytes) != 0) {
    char* text = NULL;
    tn_status_free(driver->describe(program, &text));
    fprintf(stderr, "%s\n", text ? text : "");
    free(text);
    for (size_t i = 0; i < bytes / 4 && i < 8; ++i)
      fprintf(stderr, "[%zu] %g %g\n", i, (double)((float*)actual)[i],
              (double)((float*)expected)[i]);
    TN_EXPECT(false);
  }
  driver->destroy(program);
  free(actual);
  free(expected);
}

static float* ramp(int64_t count) {
  float* data = malloc(sizeof(float) * (size_t)(count + 1));
  for (int64_t i = 0; i < count; ++i) data[i] = (float)((i * 7919 % 1000) - 500) / 77.0f;
  return data;
}

TN_TEST(elementwise_chain) {
  for (int64_t n = 0; n < 200; n = n < 70 ? n + 1 : n * 2) {
    tn_graph_t* g = new_graph();
    const tn_type_t type = tn_type_make(TN_F32, 1, &n);
    const tn_node_t *x = tn_graph_param(g, &type, NULL), *y = tn_graph_param(g, &type, NULL);
    const tn_node_t* z =
        tn_unary(g, TN_OP_TANH, tn_binary(g, TN_OP_ADD, x, tn_binary(g, TN_OP_MUL, y, y)));
    tn_graph_add_result(g, z, NULL);
    float *a = ramp(n), *b = ramp(n);
    void* params[] = {a, b};
    expect_equal_runs(g, params, sizeof(float) * (size_t)n);
    free(a);
    free(b);
    tn_graph_destroy(g);
  }
}

static void reduce_case(int rank, const int64_t* dims, int count, const int64_t* reduced,
                        tn_reduce_kind_t kind) {
  tn_graph_t* g = new_graph();
  const tn_type_t type = tn_type_make(TN_F32, rank, dims);
  const tn_node_t* x = tn_graph_param(g, &type, NULL);
  const tn_node_t* y = tn_reduce(g, kind, tn_binary(g, TN_OP_MUL, x, x), count, reduced);
  tn_graph_add_result(g, y, NULL);
  float* a = ramp(tn_type_element_count(&type));
  void* params[] = {a};
  expect_equal_runs(g, params, sizeof(float) * (size_t)tn_type_element_count(&y->types[0]));
  free(a);
  tn_graph_destroy(g);
}

TN_TEST(reductions_follow_the_interpreter) {
  static const int64_t k_dims[][4] = {{3, 5, 7, 9},     {1, 64, 1, 65}, {2, 1, 300, 4},
                                      {1, 3, 200, 129}, {1, 1, 0, 3},   {1, 1, 130, 257},
                                      {2, 2, 2, 2}};
  for (size_t s = 0; s < sizeof(k_dims) / sizeof(k_dims[0]); ++s)
    for (int mask = 1; mask < 16; ++mask) {
      int64_t reduced[4];
      int count = 0;
      for (int d = 0; d < 4; ++d)
        if (mask >> d & 1) reduced[count++] = d;
      reduce_case(4, k_dims[s], count, reduced, TN_REDUCE_SUM);
      if (s != 4) reduce_case(4, k_dims[s], count, reduced, TN_REDUCE_MAX);
    }
}

TN_TEST(reductions_of_nothing_are_identities) {
  static const int64_t k_dims[][2] = {{0, 5}, {5, 0}, {0, 0}, {0, 1}};
  static const tn_reduce_kind_t k_kinds[] = {TN_REDUCE_SUM, TN_REDUCE_PROD, TN_REDUCE_MAX,
                                             TN_REDUCE_MIN};
  for (size_t s = 0; s < sizeof(k_dims) / sizeof(k_dims[0]); ++s)
    for (size_t k = 0; k < sizeof(k_kinds) / sizeof(k_kinds[0]); ++k) {
      const int64_t both[] = {0, 1}, second[] = {1};
      reduce_case(2, k_dims[s], 2, both, k_kinds[k]);
      reduce_case(2, k_dims[s], 1, both, k_kinds[k]);
      reduce_case(2, k_dims[s], 1, second, k_kinds[k]);
    }
}

TN_TEST(long_reductions_run_in_blocks) {
  static const int64_t k_dims[][2] = {{1, 16384}, {1, 16385}, {3, 50000}, {1000, 3},
                                      {257, 64},  {512, 1},   {128, 300}};
  for (size_t s = 0; s < sizeof(k_dims) / sizeof(k_dims[0]); ++s)
    for (int mask = 1; mask < 4; ++mask) {
      const int64_t both[] = {0, 1}, second[] = {1};
      reduce_case(2, k_dims[s], mask == 3 ? 2 : 1, mask == 2 ? second : both, TN_REDUCE_SUM);
    }
}

TN_TEST(movement_becomes_strides) {
  tn_graph_t* g = new_graph();
  const int64_t dims[] = {4, 6, 10}, merged[] = {24, 10}, split[] = {2, 12, 10},
                permutation[] = {2, 0, 1};
  const tn_type_t type = tn_type_make(TN_F32, 3, dims);
  const tn_node_t* x = tn_graph_param(g, &type, NULL);
  const tn_node_t* y = tn_unary(g, TN_OP_EXP, x);
  y = tn_reshape(g, tn_unary(g, TN_OP_NEG, tn_reshape(g, y, 2, merged)), 3, split);
  y = tn_transpose(g, y, permutation);
  const int64_t dims_back[] = {10, 24};
  y = tn_binary(g, TN_OP_ADD, tn_reshape(g, y, 2, dims_back),
                tn_constant_like(g, tn_reshape(g, y, 2, dims_back), 2.0));
  tn_graph_add_result(g, y, NULL);
  float* a = ramp(240);
  void* params[] = {a};
  expect_equal_runs(g, params, sizeof(float) * 240);
  free(a);
  tn_graph_destroy(g);
}

TN_TEST(products_with_bias_and_views) {
  for (int transposed = 0; transposed < 2; ++transposed) {
    tn_graph_t* g = new_graph();
    const int64_t a_dims[] = {2, 17, 33}, b_dims[] = {transposed ? 9 : 33, transposed ? 33 : 9},
                  n = 9;
    const int64_t swap[] = {1, 0}, c_dims[] = {2, 17, 9};
    const tn_type_t at = tn_type_make(TN_F32, 3, a_dims), bt = tn_type_make(TN_F32, 2, b_dims),
                    ct = tn_type_make(TN_F32, 1, &n);
    const tn_node_t *a = tn_graph_param(g, &at, NULL), *b = tn_graph_param(g, &bt, NULL),
                    *c = tn_graph_param(g, &ct, NULL);
    if (transposed) b = tn_transpose(g, b, swap);
    const int64_t lhs = 2, rhs = 0;
    const tn_node_t* y = tn_dot_general(g, a, b, 0, NULL, NULL, 1, &lhs, &rhs, TN_F32);
    y = tn_binary(g, TN_OP_ADD, y, tn_broadcast_to(g, c, 3, c_dims));
    tn_graph_add_result(g, y, NULL);
    float *ad = ramp(2 * 17 * 33), *bd = ramp(33 * 9), *cd = ramp(9);
    void* params[] = {ad, bd, cd};
    expect_equal_runs(g, params, sizeof(float) * 2 * 17 * 9);
    free(ad);
    free(bd);
    free(cd);
    tn_graph_destroy(g);
  }
}
