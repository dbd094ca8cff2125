// tests/c/graph_test.c mirrors src/ir/graph.c and src/ir/node.c
#include "tests/c/test.h"

#include <time.h>

#include "tn/graph.h"

static tn_graph_t* new_graph(void) {
  tn_graph_t* graph = NULL;
  TN_EXPECT_OK(tn_graph_create(&graph));
  return graph;
}
static tn_type_t f32_type(int64_t rows, int64_t columns) {
  const int64_t dims[2] = {rows, columns};
  return tn_type_make(TN_F32, 2, dims);
}

TN_TEST(equal_nodes_are_one) {
  tn_graph_t* graph = new_graph();
  tn_type_t type = f32_type(2, 3);
  const tn_node_t *x = tn_graph_param(graph, &type, NULL), *y = tn_graph_param(graph, &type, NULL);
  TN_EXPECT(x != y);
  TN_EXPECT(tn_binary(graph, TN_OP_ADD, x, y) == tn_binary(graph, TN_OP_ADD, x, y));
  TN_EXPECT(tn_binary(graph, TN_OP_ADD, x, y) != tn_binary(graph, TN_OP_ADD, y, x));
  TN_EXPECT(tn_convert(graph, x, TN_F16) != tn_convert(graph, x, TN_BF16));
  TN_EXPECT(tn_convert(graph, x, TN_F32) == x);
  TN_EXPECT(tn_constant_double(graph, TN_F32, 0.0) != tn_constant_double(graph, TN_F32, -0.0));
  const int64_t dims[2] = {0, 1};
  TN_EXPECT(tn_reduce(graph, TN_REDUCE_SUM, x, 1, dims) !=
            tn_reduce(graph, TN_REDUCE_SUM, x, 2, dims));
  TN_EXPECT(tn_reduce(graph, TN_REDUCE_SUM, x, 1, dims) ==
            tn_reduce(graph, TN_REDUCE_SUM, x, 1, dims));
  TN_EXPECT_OK(tn_graph_verify(graph));
  tn_graph_destroy(graph);
}

TN_TEST(many_nodes_survive_table_growth_and_reset) {
  tn_graph_t* graph = new_graph();
  for (int round = 0; round < 3; ++round) {
    tn_type_t type = f32_type(4, 4);
    const tn_node_t* first = tn_graph_param(graph, &type, NULL);
    const tn_node_t* chain[3000];
    const tn_node_t* node = first;
    for (int i = 0; i < 3000; ++i) chain[i] = node = tn_binary(graph, TN_OP_ADD, node, first);
    TN_EXPECT_EQ(3001, tn_graph_node_limit(graph));
    node = first;
    for (int i = 0; i < 3000; ++i) {
      node = tn_binary(graph, TN_OP_ADD, node, first);
      if (node != chain[i]) TN_EXPECT(node == chain[i]);
    }
    TN_EXPECT_EQ(3001, tn_graph_node_limit(graph));
    TN_EXPECT_OK(tn_graph_verify(graph));
    tn_graph_reset(graph);
    TN_EXPECT_EQ(0, tn_graph_node_limit(graph));
    TN_EXPECT_EQ(0, tn_graph_param_count(graph));
  }
  tn_graph_destroy(graph);
}

TN_TEST(first_error_stays_and_nothing_is_built_after_it) {
  tn_graph_t* graph = new_graph();
  tn_type_t type = f32_type(2, 3), other = f32_type(3, 2);
  const tn_node_t *x = tn_graph_param(graph, &type, NULL), *y = tn_graph_param(graph, &other, NULL);
  TN_EXPECT(tn_binary(graph, TN_OP_ADD, x, y) == NULL);
  TN_EXPECT(tn_unary(graph, TN_OP_NEG, NULL) == NULL);
  TN_EXPECT(tn_unary(graph, TN_OP_NEG, x) == NULL);
  tn_status_t status = tn_graph_status(graph);
  TN_EXPECT_STR(
      "stablehlo.add: expected operands 0 and 1 of equal types, got tensor<2x3xf32> and "
      "tensor<3x2xf32>",
      tn_status_message(status));
  TN_EXPECT_CODE(TN_INVALID_ARGUMENT, status);
  tn_graph_reset(graph);
  TN_EXPECT_OK(tn_graph_status(graph));
  TN_EXPECT(tn_unary(graph, TN_OP_NEG, NULL) == NULL);
  TN_EXPECT_CODE(TN_INTERNAL, tn_graph_status(graph));
  tn_graph_destroy(graph);
}

TN_TEST(parameters_and_results_keep_strides_only_when_they_say_something) {
  tn_graph_t* graph = new_graph();
  tn_type_t type = f32_type(2, 3), column = f32_type(5, 1), empty = f32_type(0, 4);
  const int64_t row_major[2] = {3, 1}, transposed[2] = {1, 2}, odd[2] = {1, 77};
  TN_EXPECT(tn_param_strides(tn_graph_param(graph, &type, row_major)) == NULL);
  TN_EXPECT(tn_param_strides(tn_graph_param(graph, &column, odd)) == NULL);
  TN_EXPECT(tn_param_strides(tn_graph_param(graph, &empty, odd)) == NULL);
  const tn_node_t* strided = tn_graph_param(graph, &type, transposed);
  TN_EXPECT(tn_param_strides(strided) != NULL && tn_param_strides(strided)[1] == 2);
  const tn_node_t* scalar = tn_graph_scalar_param(graph, TN_F64);
  TN_EXPECT(tn_param_is_scalar(scalar) && !tn_param_is_scalar(strided));
  TN_EXPECT(tn_graph_param_at(graph, 4) == scalar);
  tn_graph_add_result(graph, strided, NULL);
  tn_graph_add_result(graph, strided, transposed);
  tn_graph_alias_result(graph, 1, 3, false);
  TN_EXPECT_EQ(3, tn_graph_result_at(graph, 0)->strides[0]);
  TN_EXPECT(tn_graph_result_at(graph, 0)->is_contiguous &&
            !tn_graph_result_at(graph, 1)->is_contiguous);
  TN_EXPECT_EQ(-1, tn_graph_result_at(graph, 0)->same_as_param);
  TN_EXPECT_EQ(3, tn_graph_result_at(graph, 1)->same_as_param);
  TN_EXPECT_OK(tn_graph_verify(graph));
  tn_graph_destroy(graph);
}

TN_TEST(constants_of_equal_elements_are_splats) {
  tn_graph_t* graph = new_graph();
  tn_type_t type = f32_type(2, 2);
  const float equal[4] = {1.5f, 1.5f, 1.5f, 1.5f}, different[4] = {1.5f, 1.5f, 1.5f, 2};
  tn_scalar_t value;
  const tn_node_t* splat = tn_constant(graph, &type, equal);
  TN_EXPECT(tn_node_splat(splat, &value) && value.f32 == 1.5f);
  TN_EXPECT(splat == tn_constant_like(graph, splat, 1.5));
  TN_EXPECT(!tn_node_splat(tn_constant(graph, &type, different), &value));
  const int64_t dims[3] = {5, 2, 2};
  TN_EXPECT(tn_node_splat(tn_broadcast_to(graph, splat, 3, dims), &value) && value.f32 == 1.5f);
  tn_graph_destroy(graph);
}

TN_TEST(results_and_rebuild) {
  tn_graph_t *graph = new_graph(), *copy = new_graph();
  tn_type_t type = f32_type(4, 8);
  const tn_node_t *x = tn_graph_param(graph, &type, NULL), *y = tn_graph_param(copy, &type, NULL);
  const tn_node_t* top = tn_topk(graph, x, 3, true);
  TN_EXPECT_EQ(2, top->result_count);
  TN_EXPECT(tn_unary(graph, TN_OP_NEG, top) == NULL);
  TN_EXPECT_CODE(TN_INVALID_ARGUMENT, tn_graph_status(graph));
  const tn_node_t* again = tn_graph_rebuild(copy, top, &y);
  TN_EXPECT(again == tn_topk(copy, y, 3, true));
  TN_EXPECT_EQ(TN_I64, tn_result(copy, again, 1)->types[0].dtype);
  TN_EXPECT(tn_result(copy, y, 0) == y);
  TN_EXPECT(tn_result(copy, again, 2) == NULL);
  tn_graph_destroy(graph);
  tn_graph_destroy(copy);
}

TN_TEST(a_small_graph_builds_in_a_microsecond) {
  tn_graph_t* graph = new_graph();
  tn_type_t type = f32_type(16, 16);
  double best = 1e9;
  for (int round = 0; round < 50; ++round) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < 200; ++i) {
      tn_graph_reset(graph);
      const tn_node_t *x = tn_graph_param(graph, &type, NULL),
                      *y = tn_graph_param(graph, &type, NULL);
      tn_graph_add_result(graph, tn_binary(graph, TN_OP_ADD, x, y), NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
    if (ns / 200 < best) best = ns / 200;
  }
  printf("graph of one add: %.0f ns\n", best);
  TN_EXPECT(
      best <
      20000);  // generous: sanitizers and busy machines; the printed figure is the measurement
  tn_graph_destroy(graph);
}
