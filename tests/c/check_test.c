// The check composite: a launch that fails before what depends on it is written; mirrors src/ir/composite_check.c.
#include "tests/c/test.h"

#include "tn/driver.h"

enum { COUNT = 100 };

// x / (y + check(any y is 0))
static tn_graph_t* division(void) {
  tn_graph_t* g = NULL;
  TN_EXPECT_OK(tn_graph_create(&g));
  const int64_t count = COUNT, dim = 0;
  const tn_type_t type = tn_type_make(TN_I32, 1, &count);
  const tn_node_t *x = tn_graph_param(g, &type, NULL), *y = tn_graph_param(g, &type, NULL);
  const tn_node_t* is_zero = tn_compare(g, TN_EQ, y, tn_constant_like(g, y, 0.0));
  const tn_node_t* zero =
      tn_check(g, tn_reduce(g, TN_REDUCE_OR, is_zero, 1, &dim), TN_CHECK_ZERO_DIVISOR);
  const tn_node_t* divisor = tn_binary(g, TN_OP_ADD, y, tn_broadcast_to(g, zero, 1, &count));
  tn_graph_add_result(g, tn_binary(g, TN_OP_DIV, x, divisor), NULL);
  TN_EXPECT_OK(tn_graph_status(g));
  return g;
}

TN_TEST(a_failing_check_leaves_the_results_alone) {
  tn_graph_t* g = division();
  const tn_driver_t* driver;
  TN_EXPECT_OK(tn_driver_find("sim", &driver));
  tn_program_t* program = NULL;
  TN_EXPECT_OK(driver->compile(g, &program));
  for (int wrong = -1; wrong < COUNT; wrong += 11) {  // -1: nowhere
    int32_t x[COUNT], y[COUNT], out[COUNT];
    for (int i = 0; i < COUNT; ++i) {
      x[i] = 7 * i - 300;
      y[i] = i == wrong ? 0 : i % 5 + 1;
      out[i] = -12345;
    }
    void *params[] = {x, y}, *results[] = {out};
    const tn_launch_t launch = {.params = params, .results = results};
    TN_EXPECT_CODE(wrong < 0 ? TN_SUCCESS : TN_INVALID_ARGUMENT, driver->launch(program, &launch));
    for (int i = 0; i < COUNT; ++i) TN_EXPECT(out[i] == (wrong < 0 ? x[i] / y[i] : -12345));
  }
  driver->destroy(program);
  tn_graph_destroy(g);
}

TN_TEST(the_interpreter_fails_too) {
  tn_graph_t* g = division();
  int32_t x[COUNT], y[COUNT], out[COUNT];
  for (int i = 0; i < COUNT; ++i) x[i] = y[i] = i + 1;
  const void* params[] = {x, y};
  void* results[] = {out};
  TN_EXPECT_OK(tn_graph_interpret(g, params, results));
  y[COUNT / 2] = 0;
  tn_status_t status = tn_graph_interpret(g, params, results);
  TN_EXPECT(status != TN_OK);
  tn_status_free(status);
  tn_graph_destroy(g);
}

TN_TEST(kinds_are_checked_and_have_texts) {
  for (int kind = -1; kind <= TN_CHECK_COUNT; ++kind) {
    tn_graph_t* g = NULL;
    TN_EXPECT_OK(tn_graph_create(&g));
    const tn_node_t* flag = tn_constant_int(g, TN_BOOL, 0);
    const bool is_known = kind >= 0 && kind < TN_CHECK_COUNT;
    TN_EXPECT((tn_check(g, flag, (tn_check_kind_t)kind) != NULL) == is_known);
    TN_EXPECT(tn_check_text((tn_check_kind_t)kind)[0] != 0);
    tn_graph_destroy(g);
  }
}
