// tests/c/shape_test.c mirrors src/ir/shape*.c and src/ir/builder_*.c
#include "tests/c/test.h"

#include <stdarg.h>

#include "tests/c/random_graph.h"

static tn_graph_t* graph;

static void begin(void) {
  if (!graph) TN_EXPECT_OK(tn_graph_create(&graph));
  tn_graph_reset(graph);
}
static const tn_node_t* param(tn_dtype_t dtype, int rank, ...) {
  int64_t dims[8];
  va_list args;
  va_start(args, rank);
  for (int i = 0; i < rank; ++i) dims[i] = va_arg(args, int);
  va_end(args);
  tn_type_t type = tn_type_make(dtype, rank, dims);
  return tn_graph_param(graph, &type, NULL);
}
// The builder refused |node| with this message; the graph is usable again afterwards.
static void expect_error(const tn_node_t* node, const char* message) {
  TN_EXPECT(node == NULL);
  tn_status_t status = tn_graph_status(graph);
  TN_EXPECT_STR(message, tn_status_message(status));
  tn_status_free(status);
  begin();
}
static void expect_dims(const tn_node_t* node, int index, tn_dtype_t dtype, int rank, ...) {
  TN_EXPECT_OK(tn_graph_status(graph));
  if (!node) return;
  const tn_type_t* type = &node->types[index];
  TN_EXPECT_EQ(dtype, type->dtype);
  TN_EXPECT_EQ(rank, type->rank);
  va_list args;
  va_start(args, rank);
  for (int i = 0; i < rank && i < type->rank; ++i) TN_EXPECT_EQ(va_arg(args, int), type->dims[i]);
  va_end(args);
}
#define INTS(...) ((const int64_t[]){__VA_ARGS__})

TN_TEST(elementwise) {
  begin();
  const tn_node_t* x = param(TN_F32, 2, 2, 3);
  expect_dims(tn_compare(graph, TN_LT, x, x), 0, TN_BOOL, 2, 2, 3);
  expect_dims(tn_unary(graph, TN_OP_IS_FINITE, x), 0, TN_BOOL, 2, 2, 3);
  expect_dims(tn_unary(graph, TN_OP_ABS, param(TN_C64, 1, 4)), 0, TN_F32, 1, 4);
  expect_dims(tn_binary(graph, TN_OP_COMPLEX, x, x), 0, TN_C64, 2, 2, 3);
  expect_dims(tn_unary(graph, TN_OP_IMAG, param(TN_C128, 0)), 0, TN_F64, 0);
  expect_dims(tn_bitcast(graph, x, TN_U32), 0, TN_U32, 2, 2, 3);
  expect_error(tn_bitcast(graph, x, TN_F64),
               "stablehlo.bitcast_convert: expected dtypes of equal size, got f32 and f64");
  expect_error(tn_binary(graph, TN_OP_ADD, param(TN_BOOL, 0), param(TN_BOOL, 0)),
               "stablehlo.add: operand 0: expected integer float complex, got i1");
  expect_error(tn_unary(graph, TN_OP_SQRT, param(TN_I32, 1, 2)),
               "stablehlo.sqrt: operand 0: expected float complex, got i32");
  x = param(TN_F32, 1, 2);
  expect_error(tn_select(graph, param(TN_BOOL, 1, 3), x, x),
               "stablehlo.select: expected operands 0 and 1 of equal shapes, got tensor<3xi1> and "
               "tensor<2xf32>");
  x = param(TN_C64, 0);
  expect_error(tn_compare(graph, TN_LT, x, x),
               "stablehlo.compare: complex numbers compare by EQ and NE only");
}

TN_TEST(movement) {
  begin();
  const tn_node_t* x = param(TN_F32, 2, 2, 3);
  expect_dims(tn_broadcast_to(graph, param(TN_F32, 2, 1, 3), 3, INTS(4, 2, 3)), 0, TN_F32, 3, 4, 2,
              3);
  expect_dims(tn_transpose(graph, x, INTS(1, 0)), 0, TN_F32, 2, 3, 2);
  expect_dims(tn_slice(graph, x, INTS(0, 0), INTS(2, 3), INTS(1, 2)), 0, TN_F32, 2, 2, 2);
  expect_dims(tn_pad(graph, x, param(TN_F32, 0), INTS(1, -1), INTS(0, 0), INTS(2, 0)), 0, TN_F32, 2,
              5, 2);
  expect_dims(tn_concat(graph, 2, (const tn_node_t*[]){x, x}, 1), 0, TN_F32, 2, 2, 6);
  TN_EXPECT(tn_broadcast_to(graph, x, 2, INTS(2, 3)) == x &&
            tn_reshape(graph, x, 2, INTS(2, 3)) == x && tn_transpose(graph, x, INTS(0, 1)) == x);
  expect_error(tn_broadcast_to(graph, x, 2, INTS(2, 4)),
               "stablehlo.broadcast_in_dim: dimension 1 of tensor<2x3xf32> does not broadcast to "
               "dimension 1 of "
               "tensor<2x4xf32>");
  expect_error(
      tn_reshape(graph, param(TN_F32, 1, 6), 2, INTS(2, 4)),
      "stablehlo.reshape: tensor<6xf32> and tensor<2x4xf32> have different numbers of elements");
  expect_error(tn_transpose(graph, param(TN_F32, 2, 2, 2), INTS(1, 1)),
               "stablehlo.transpose: permutation names dimension 1 twice");
  expect_error(
      tn_slice(graph, param(TN_F32, 1, 4), INTS(1), INTS(5), INTS(1)),
      "stablehlo.slice: dimension 0: expected 0 <= start <= limit <= 4 and stride >= 1, got 1:5:1");
  expect_error(tn_pad(graph, param(TN_F32, 1, 2), param(TN_F32, 0), INTS(-3), INTS(0), INTS(0)),
               "stablehlo.pad: dimension 0: extent 2 with low -3, high 0, interior 0 leaves no "
               "valid extent");
  expect_error(
      tn_concat(graph, 2, (const tn_node_t*[]){param(TN_F32, 1, 2), param(TN_I32, 1, 2)}, 0),
      "stablehlo.concatenate: operand 1: expected tensor<2xf32> but for dimension 0, got "
      "tensor<2xi32>");
}

TN_TEST(gather_and_scatter) {
  begin();
  const tn_node_t *x = param(TN_F32, 3, 4, 5, 6), *i = param(TN_I64, 2, 2, 3);
  expect_dims(tn_take(graph, x, i, 1, TN_BOUNDS_WRAP), 0, TN_F32, 4, 4, 2, 3, 6);
  expect_dims(tn_take_along(graph, x, param(TN_I64, 3, 4, 9, 2), 1, TN_BOUNDS_ERROR), 0, TN_F32, 3,
              4, 9, 2);
  const tn_node_t* indices = param(TN_I64, 3, 2, 3, 1);
  expect_dims(
      tn_put_along(graph, x, indices, param(TN_F32, 3, 2, 3, 1), 0, TN_REDUCE_SUM, TN_BOUNDS_ERROR),
      0, TN_F32, 3, 4, 5, 6);
  expect_error(tn_take(graph, x, param(TN_F32, 1, 2), 0, TN_BOUNDS_CLAMP),
               "stablehlo.gather: operand 1: expected integer, got f32");
  expect_error(tn_take(graph, param(TN_F32, 1, 2), param(TN_I64, 0), 1, TN_BOUNDS_CLAMP),
               "take: dimension: expected 0..0, got 1");
  expect_error(
      tn_take_along(graph, param(TN_F32, 2, 2, 2), param(TN_I64, 2, 3, 2), 1, TN_BOUNDS_CLAMP),
      "take_along: indices tensor<3x2xi64> do not fit into tensor<2x2xf32> outside dimension 1");
}

TN_TEST(reductions_and_windows) {
  begin();
  const tn_node_t* x = param(TN_F32, 3, 2, 3, 4);
  expect_dims(tn_reduce(graph, TN_REDUCE_SUM, x, 2, INTS(0, 2)), 0, TN_F32, 1, 3);
  expect_dims(tn_arg_reduce(graph, TN_REDUCE_MAX, x, 1), 1, TN_I64, 2, 2, 4);
  expect_dims(tn_topk(graph, x, 2, true), 1, TN_I64, 3, 2, 3, 2);
  tn_window_t window = {{1, 2, 3}, {1, 1, 2}, {0, 1, 1}, {0, 0, 1}, {1, 1, 1}, {1, 1, 2}};
  expect_dims(tn_reduce_window(graph, TN_REDUCE_MAX, x, &window), 0, TN_F32, 3, 2, 3, 1);
  expect_error(tn_reduce(graph, TN_REDUCE_SUM, x, 2, INTS(1, 1)),
               "stablehlo.reduce: dimensions must be distinct and ascending");
  expect_error(tn_reduce(graph, TN_REDUCE_AND, param(TN_F32, 1, 2), 1, INTS(0)),
               "stablehlo.reduce: operand 0: expected i1 integer, got f32");
  expect_error(tn_arg_reduce(graph, TN_REDUCE_MAX, param(TN_F32, 2, 3, 0), 1),
               "tn.arg_reduce: dimension 1 is empty: there is no extreme");
  expect_error(tn_topk(graph, param(TN_F32, 1, 3), 4, true),
               "chlo.top_k: count: expected 0..3, got 4");
}

TN_TEST(contractions) {
  begin();
  expect_dims(tn_matmul(graph, param(TN_BF16, 3, 5, 2, 3), param(TN_BF16, 3, 5, 3, 4)), 0, TN_BF16,
              3, 5, 2, 4);
  const tn_node_t* a = param(TN_I8, 2, 3, 2);
  expect_dims(tn_dot_general(graph, a, a, 0, NULL, NULL, 1, INTS(0), INTS(0), TN_I32), 0, TN_I32, 2,
              2, 2);
  tn_conv_t conv = {.spatial = 2,
                    .stride = {2, 1},
                    .low = {1, 0},
                    .high = {1, 0},
                    .lhs_dilation = {1, 1},
                    .rhs_dilation = {1, 2},
                    .groups = 2,
                    .batch_groups = 1};
  expect_dims(
      tn_convolution(graph, param(TN_F32, 4, 1, 4, 7, 9), param(TN_F32, 4, 6, 2, 3, 3), &conv), 0,
      TN_F32, 4, 1, 6, 4, 5);
  expect_error(tn_matmul(graph, param(TN_F32, 2, 2, 3), param(TN_F32, 2, 4, 2)),
               "stablehlo.dot_general: contraction: dimensions 1 and 0 differ: 3 and 4 in "
               "tensor<2x3xf32> and "
               "tensor<4x2xf32>");
  expect_error(
      tn_convolution(graph, param(TN_F32, 4, 1, 3, 7, 9), param(TN_F32, 4, 6, 2, 3, 3), &conv),
      "stablehlo.convolution: channels do not match: tensor<1x3x7x9xf32> with weight "
      "tensor<6x2x3x3xf32>, 2 "
      "groups, 1 batch groups");
}

TN_TEST(composites_check_their_operands) {
  begin();
  const tn_node_t* x = param(TN_F32, 2, 2, 3);
  expect_error(
      tn_composite(graph, "sofmax", 1, &x, 0, NULL),
      "stablehlo.composite: no composite is called 'sofmax'; src/ir/composites.inc lists them");
  x = param(TN_F32, 2, 2, 3);
  tn_attr_t axis = tn_attr_int(TN_ATTR_AXIS, 2);
  expect_error(tn_composite(graph, "softmax", 1, &x, 1, &axis),
               "softmax: stablehlo.composite: axis: expected 0..1, got 2");
  const tn_node_t* two[2] = {param(TN_F32, 2, 2, 3), param(TN_F32, 1, 2)};
  const tn_attr_t attrs[2] = {tn_attr_int(TN_ATTR_AXIS, 1), tn_attr_int(TN_ATTR_FLAGS, 1)};
  expect_error(tn_composite(graph, "layer_norm", 2, two, 2, attrs),
               "layer_norm: operand 1 (weight): expected tensor<3xf32>, got tensor<2xf32>");
}

// Attributes come in one order, whoever builds the node.
TN_TEST(composite_attributes_have_one_order) {
  begin();
  const tn_node_t* x = param(TN_F32, 2, 2, 3);
  const tn_attr_t a[2] = {tn_attr_float(TN_ATTR_EPSILON, 1e-5), tn_attr_int(TN_ATTR_AXIS, 1)},
                  b[2] = {a[1], a[0]};
  TN_EXPECT(tn_composite(graph, "rms_norm", 1, &x, 2, a) ==
            tn_composite(graph, "rms_norm", 1, &x, 2, b));
}

TN_TEST(every_composite_of_random_graphs_expands_to_its_types) {
  begin();
  tn_random_t random = {0};
  for (uint64_t seed = 1; seed < 100; ++seed) {
    tn_graph_reset(graph);
    random_graph(&random, graph, seed, 10, false);
    for (int i = 0; i < 6; ++i) random_node(&random, TN_OP_COMPOSITE);
    for (uint32_t id = 0; id < tn_graph_node_limit(graph); ++id) {
      const tn_node_t *node = tn_graph_node_at(graph, id), *results[16];
      if (node->op == TN_OP_COMPOSITE)
        TN_EXPECT_OK(tn_composite_expand(graph, node, node->operands, results));
    }
    TN_EXPECT_OK(tn_graph_verify(graph));
  }
}

// What the builder accepts, the verifier accepts: they share the rules, and types are stored whole.
TN_TEST(verifier_accepts_random_graphs) {
  begin();
  tn_random_t random = {0};
  for (uint64_t seed = 1000; seed < 1300; ++seed) {
    tn_graph_reset(graph);
    random_graph(&random, graph, seed, 40, true);
    TN_EXPECT_OK(tn_graph_verify(graph));
  }
}

TN_TEST(verifier_names_node_and_rule) {
  begin();
  const tn_node_t* x = param(TN_F32, 1, 4);
  const tn_node_t* y = tn_unary(graph, TN_OP_NEG, x);
  ((tn_type_t*)(uintptr_t)y->types)->dims[0] = 5;  // damage
  tn_status_t status = tn_graph_verify(graph);
  TN_EXPECT_STR("node 1 stablehlo.negate: result 0 is tensor<5xf32>, its rule gives tensor<4xf32>",
                tn_status_message(status));
  TN_EXPECT_CODE(TN_INTERNAL, status);
}
