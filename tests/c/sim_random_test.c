// Random graphs over all ops: the sim driver against the reference interpreter, bit for bit.
//
// A failure prints the seed, the node and the first difference. Arguments in the environment: TN_TEST_SEED runs one
// graph, TN_TEST_COUNT that many.
#include "tests/c/test.h"

#include <stdlib.h>

#include "tests/c/random_graph.h"
#include "tn/driver.h"

typedef struct buffers {
  int count;
  void** data;
} buffers_t;

static void buffers_free(buffers_t* b) {
  for (int i = 0; i < b->count; ++i) free(b->data[i]);
  free(b->data);
}
static size_t type_bytes(const tn_type_t* type) {
  return (size_t)tn_type_element_count(type) * tn_dtype_size(type->dtype);
}

// Row-major values for the interpreter and the same in the layout of each parameter for sim.
static void make_params(tn_random_t* r, const tn_graph_t* graph, buffers_t* rows,
                        buffers_t* laid_out) {
  rows->count = laid_out->count = tn_graph_param_count(graph);
  rows->data = calloc((size_t)rows->count + 1, sizeof(void*));
  laid_out->data = calloc((size_t)rows->count + 1, sizeof(void*));
  for (int i = 0; i < rows->count; ++i) {
    const tn_node_t* param = tn_graph_param_at(graph, i);
    const tn_type_t* type = &param->types[0];
    const size_t size = tn_dtype_size(type->dtype);
    const int64_t count = tn_type_element_count(type);
    uint8_t* row = rows->data[i] = calloc((size_t)count + 1, 16);
    uint8_t* other = laid_out->data[i] = calloc((size_t)count + 1, 16);
    for (int64_t k = 0; k < count; ++k) {
      const double value = (double)random_below(r, 64) / 8 -
                           (tn_dtype_class(type->dtype) == TN_CLASS_UNSIGNED ? 0 : 3);
      const tn_scalar_t scalar =
          tn_scalar_from_complex(type->dtype, value, (double)random_below(r, 9) / 4);
      memcpy(row + (size_t)k * size, scalar.bytes, size);
      int64_t at = k;
      if (!tn_param_is_scalar(param) && tn_param_strides(param)) {
        at = 0;
        for (int64_t d = type->rank - 1, rest = k; d >= 0; --d) {
          at += rest % type->dims[d] * tn_param_strides(param)[d];
          rest /= type->dims[d];
        }
      }
      memcpy(other + (size_t)at * size, scalar.bytes, size);
    }
  }
}

static bool same_float(tn_dtype_t dtype, const uint8_t* a, const uint8_t* b, size_t size) {
  if (memcmp(a, b, size) == 0) return true;
  tn_scalar_t x = {{0}}, y = {{0}};
  memcpy(&x, a, size), memcpy(&y, b, size);
  const double p = tn_scalar_to_double(dtype, x), q = tn_scalar_to_double(dtype, y);
  return p != p && q != q;
}
static bool same_element(tn_dtype_t dtype, const uint8_t* a, const uint8_t* b) {
  const size_t size = tn_dtype_size(dtype);
  if (!tn_dtype_is_complex(dtype)) {
    return tn_dtype_is_float(dtype) ? same_float(dtype, a, b, size) : memcmp(a, b, size) == 0;
  }
  const tn_dtype_t part = dtype == TN_C64 ? TN_F32 : TN_F64;
  return same_float(part, a, b, size / 2) && same_float(part, a + size / 2, b + size / 2, size / 2);
}

static void expect_same(uint64_t seed, const tn_node_t* node, const uint8_t* got,
                        const uint8_t* want) {
  const tn_type_t* type = &node->types[0];
  const size_t size = tn_dtype_size(type->dtype);
  const int64_t count = tn_type_element_count(type);
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t *a = got + (size_t)i * size, *b = want + (size_t)i * size;
    if (same_element(type->dtype, a, b)) continue;
    ++tn_test_failures;
    const tn_node_t* named = node->op == TN_OP_RESULT ? node->operands[0] : node;
    const char* name = tn_node_name(named);
    tn_scalar_t x = {{0}}, y = {{0}};
    memcpy(&x, a, size), memcpy(&y, b, size);
    fprintf(stderr, "seed %llu: node %u %s %s", (unsigned long long)seed, node->id,
            tn_op_info(named->op)->name, name ? name : "");
    for (int k = 0; k < named->operand_count; ++k) {
      const tn_type_t* from = &named->operands[k]->types[0];
      fprintf(stderr, " %s", tn_dtype_name(from->dtype));
      for (int d = 0; d < from->rank; ++d)
        fprintf(stderr, "%c%lld", d ? 'x' : '[', (long long)from->dims[d]);
      fprintf(stderr, "%s", from->rank ? "]" : "");
    }
    fprintf(stderr, " -> %s, element %lld of %lld: sim %.17g, interpreter %.17g\n",
            tn_dtype_name(type->dtype), (long long)i, (long long)count,
            tn_scalar_to_double(type->dtype, x), tn_scalar_to_double(type->dtype, y));
    return;
  }
}

static bool one_seed;  // says more

static void run_seed(const tn_driver_t* driver, uint64_t seed) {
  tn_graph_t* graph = NULL;
  TN_EXPECT_OK(tn_graph_create(&graph));
  tn_random_t r = {.graph = graph, .state = seed * 7919 + 1};
  random_node(&r, TN_OP_PARAM);
  random_node(&r, TN_OP_CONST);
  for (int i = 0; i < 14;
       ++i) {  // no bit casts: they show the sign of NaNs, which is nobody's business
    const tn_op_t op = (tn_op_t)random_below(&r, TN_OP_COUNT);
    if (op != TN_OP_CUSTOM_CALL && op != TN_OP_BITCAST) random_node(&r, op);
  }
  // Every second graph shows all values; the others only the last few, so that the rest can be fused away.
  for (int i = seed % 2 ? 0 : r.count > 3 ? r.count - 3 : 0; i < r.count; ++i) {
    const tn_op_t op = r.pool[i]->op;
    if (op != TN_OP_PARAM && op != TN_OP_CONST) tn_graph_add_result(graph, r.pool[i], NULL);
  }
  TN_EXPECT_OK(tn_graph_status(graph));
  const int results = tn_graph_result_count(graph);
  buffers_t rows, laid_out, got = {results, calloc((size_t)results + 1, sizeof(void*))},
                            want = {results, calloc((size_t)results + 1, sizeof(void*))};
  make_params(&r, graph, &rows, &laid_out);
  for (int i = 0; i < results; ++i) {
    const size_t bytes = type_bytes(&tn_graph_result_at(graph, i)->node->types[0]);
    got.data[i] = calloc(1, bytes + 64), want.data[i] = calloc(1, bytes + 64);
  }
  TN_EXPECT_OK(tn_graph_interpret(graph, (const void* const*)rows.data, want.data));
  tn_program_t* program = NULL;
  tn_status_t status = results ? driver->compile(graph, &program) : TN_OK;
  if (!status && results) {
    const tn_launch_t launch = {.params = laid_out.data, .results = got.data};
    status = driver->launch(program, &launch);
  }
  if (status) {
    ++tn_test_failures;
    fprintf(stderr, "seed %llu: %s %s\n", (unsigned long long)seed, tn_status_place(status),
            tn_status_message(status));
    tn_status_free(status);
    char* text = NULL;
    if (one_seed && program) tn_status_free(driver->describe(program, &text));
    if (text) fprintf(stderr, "%s\n", text);
    free(text);
    text = NULL;
    if (one_seed) tn_status_free(tn_graph_print(graph, &text));
    if (text) fprintf(stderr, "%s\n", text);
    free(text);
  } else {
    for (int i = 0; i < results; ++i)
      expect_same(seed, tn_graph_result_at(graph, i)->node, got.data[i], want.data[i]);
  }
  driver->destroy(program);
  buffers_free(&rows), buffers_free(&laid_out), buffers_free(&got), buffers_free(&want);
  tn_graph_destroy(graph);
}

TN_TEST(sim_equals_the_interpreter_on_random_graphs) {
  const tn_driver_t* driver = NULL;
  TN_EXPECT_OK(tn_driver_find("sim", &driver));
  const char *one = getenv("TN_TEST_SEED"), *many = getenv("TN_TEST_COUNT");
  one_seed = one != NULL;
  const uint64_t first = one ? strtoull(one, NULL, 10) : 1, count = one ? 1
                                                                    : many
                                                                        ? strtoull(many, NULL, 10)
                                                                        : 40;
  for (uint64_t seed = first; seed < first + count; ++seed) run_seed(driver, seed);
}
