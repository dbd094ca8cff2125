// tests/c/text_test.c mirrors src/ir/text*.c
#include "tests/c/test.h"

#include "tests/c/random_graph.h"

static tn_graph_t* parse(const char* text) {
  tn_graph_t* graph = NULL;
  TN_EXPECT_OK(tn_graph_parse("test.mlir", text, strlen(text), &graph));
  return graph;
}
static char* print(const tn_graph_t* graph) {
  char* text = NULL;
  TN_EXPECT_OK(tn_graph_print(graph, &text));
  return text;
}

// print(parse(print(g))) == print(g), for every op.
TN_TEST(print_and_parse_are_inverse_on_random_graphs) {
  tn_random_t random = {0};
  tn_graph_t* graph = NULL;
  TN_EXPECT_OK(tn_graph_create(&graph));
  for (uint64_t seed = 1; seed <= 400 && tn_test_failures == 0; ++seed) {
    tn_graph_reset(graph);
    random_graph(&random, graph, seed, 30, true);
    for (int op = 0; op < TN_OP_COUNT;
         ++op) {  // dead nodes are not printed: make everything a result
      if (seed % 8 == 0 && op < random.count) tn_graph_add_result(graph, random.pool[op], NULL);
    }
    TN_EXPECT_OK(tn_graph_verify(graph));
    char* text = print(graph);
    if (!text) break;
    tn_graph_t* again = parse(text);
    if (!again) {
      fprintf(stderr, "seed %llu:\n%s", (unsigned long long)seed, text);
    } else {
      TN_EXPECT_OK(tn_graph_verify(again));
      char* text_again = print(again);
      if (text_again) TN_EXPECT_STR(text, text_again);
      free(text_again);
    }
    tn_graph_destroy(again);
    free(text);
  }
  for (int op = 0; op < TN_OP_COUNT; ++op) {
    if (!random.seen[op])
      fprintf(stderr, "%s was never generated\n", tn_op_info((tn_op_t)op)->name);
    TN_EXPECT(random.seen[op] > 0);
  }
  tn_graph_destroy(graph);
}

// No prefix, and no text with one byte changed, may crash the parser.
TN_TEST(damaged_text_gives_a_status) {
  tn_random_t random = {0};
  tn_graph_t* graph = NULL;
  TN_EXPECT_OK(tn_graph_create(&graph));
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    tn_graph_reset(graph);
    random_graph(&random, graph, seed, 30, true);
    char* text = print(graph);
    size_t length = strlen(text);
    for (int i = 0; i < 400; ++i) {
      size_t at = (size_t)random_below(&random, (int64_t)length);
      char saved = text[at];
      text[at] = (char)(i % 2 ? "0123456789x<>{}[]():,%#@\"-"[random_below(&random, 26)]
                              : random_below(&random, 128));
      tn_graph_t* damaged = NULL;
      tn_status_t status = tn_graph_parse("t", text, i % 4 ? length : at, &damaged);
      TN_EXPECT((status == TN_OK) == (damaged != NULL));
      if (damaged) TN_EXPECT_OK(tn_graph_verify(damaged));
      tn_status_free(status);
      tn_graph_destroy(damaged);
      text[at] = saved;
    }
    free(text);
  }
  tn_graph_destroy(graph);
}

static void expect_error(const char* text, const char* message) {
  tn_graph_t* graph = NULL;
  tn_status_t status = tn_graph_parse("a.mlir", text, strlen(text), &graph);
  TN_EXPECT(graph == NULL);
  TN_EXPECT_STR(message, tn_status_message(status));
  tn_status_free(status);
  tn_graph_destroy(graph);
}

TN_TEST(errors_name_the_place_and_what_is_supported) {
  expect_error(
      "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.add %a, %b : "
      "tensor<2xf32>\n",
      "a.mlir:2:26: %b is not defined here");
  expect_error("func.func @main(%a: tensor<?xf32>)",
               "a.mlir:1:28: dynamic extents are not supported; expected a number");
  expect_error(
      "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.all_reduce %a : "
      "tensor<2xf32>\n",
      "a.mlir:2:8: operation 'stablehlo.all_reduce' is not supported; docs/ir.md lists the "
      "supported "
      "ones");
  expect_error(
      "func.func @main(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<2xf32> {\n"
      "  %0 = stablehlo.add %a, %b : tensor<2xf32>\n",
      "a.mlir:2:8: stablehlo.add: expected operands 0 and 1 of equal types, got tensor<2xf32> and "
      "tensor<3xf32>");
  expect_error(
      "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  return %a : tensor<2xf32>\n",
      "a.mlir:3:1: expected '}', got the end");
  expect_error("", "a.mlir:1:1: expected a function @main");
}

// Forms that other tools write.
TN_TEST(generic_forms_regions_and_layouts_are_understood) {
  tn_graph_t* pretty = parse(
      "func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> (tensor<2x4xf32>, "
      "tensor<2xf32>) {\n"
      "  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3xf32>, "
      "tensor<3x4xf32>) -> "
      "tensor<2x4xf32>\n"
      "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [1] : "
      "(tensor<2x4xf32>, "
      "tensor<f32>) -> tensor<2xf32>\n"
      "  return %0, %1 : tensor<2x4xf32>, tensor<2xf32>\n}\n");
  tn_graph_t* generic = parse(
      "#loc = loc(unknown)\n"
      "module @jit_f attributes {mhlo.num_partitions = 1 : i32} {\n"
      "  func.func public @main(%arg0: tensor<2x3xf32> {mhlo.sharding = \"x\"} loc(unknown), "
      "%arg1: "
      "tensor<3x4xf32>) -> "
      "(tensor<2x4xf32> {jax.result_info = \"\"}, tensor<2xf32>) {\n"
      "    %0 = \"stablehlo.dot_general\"(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<"
      "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = "
      "[#stablehlo<precision "
      "DEFAULT>]} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32> loc(#loc)\n"
      "    %1 = \"stablehlo.constant\"() {value = dense<0.000000e+00> : tensor<f32>} : () -> "
      "tensor<f32>\n"
      "    %2 = \"stablehlo.reduce\"(%0, %1) ({\n"
      "    ^bb0(%x: tensor<f32> loc(unknown), %y: tensor<f32>):\n"
      "      %s = \"stablehlo.add\"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
      "      \"stablehlo.return\"(%s) : (tensor<f32>) -> ()\n"
      "    }) {dimensions = dense<1> : tensor<1xi64>} : (tensor<2x4xf32>, tensor<f32>) -> "
      "tensor<2xf32>\n"
      "    \"func.return\"(%0, %2) : (tensor<2x4xf32>, tensor<2xf32>) -> ()\n"
      "  }\n}\n");
  if (!pretty || !generic) return;
  char *a = print(pretty), *b = print(generic);
  TN_EXPECT_STR(a, b);
  free(a);
  free(b);
  tn_graph_destroy(pretty);
  tn_graph_destroy(generic);
}

TN_TEST(calls_and_foreign_composites_are_inlined) {
  tn_graph_t* graph = parse(
      "module {\n"
      "  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    %1 = stablehlo.composite \"their.op\" %0 {composite_attributes = {}, decomposition = "
      "@twice} : "
      "(tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %1 : tensor<4xf32>\n  }\n"
      "  func.func private @twice(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.add %a, %a : tensor<4xf32>\n    return %0 : tensor<4xf32>\n  }\n}\n");
  if (!graph) return;
  TN_EXPECT_EQ(3, tn_graph_node_limit(graph));
  tn_graph_destroy(graph);
}

TN_TEST(constants_keep_their_bits) {
  static const struct {
    const char *element, *type;
    uint64_t bits;
  } cases[] = {
      {"1.0", "f32", 0x3f800000},
      {"0x7FC00001", "f32", 0x7fc00001},
      {"-0.000000e+00", "f64", 1ull << 63},
      {"0xFF80", "bf16", 0xff80},
      {"1.000000e-07", "f16", 2},
      {"-128", "i8", 0x80},
      {"18446744073709551615", "ui64", ~0ull},
      {"true", "i1", 1},
      {"4.480000e+02", "f8E4M3FN", 0x7e},
      {"\"0x0000803F\"", "f32", 0x3f800000},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    char text[512];
    snprintf(text, sizeof text,
             "func.func @main() -> tensor<%s> {\n  %%0 = stablehlo.constant dense<%s> : "
             "tensor<%s>\n  return "
             "%%0 : "
             "tensor<%s>\n}\n",
             cases[i].type, cases[i].element, cases[i].type, cases[i].type);
    tn_graph_t* graph = parse(text);
    tn_scalar_t value = {0};
    TN_EXPECT(graph && tn_node_splat(tn_graph_result_at(graph, 0)->node, &value));
    if (value.u64 != cases[i].bits) {
      fprintf(stderr, "%s : %s gives %llx\n", cases[i].element, cases[i].type,
              (unsigned long long)value.u64);
      TN_EXPECT(value.u64 == cases[i].bits);
    }
    tn_graph_destroy(graph);
  }
}
