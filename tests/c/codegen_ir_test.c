// Every elementwise operation of the IR on every dtype: interpreter of kernel programs and generated code against the
// reference interpreter of graphs, bit for bit (NaNs: any payload).
#include "codegen/kernel_interp.h"
#include "ir/interp.h"
#include "tests/c/codegen_random.h"
#include "tests/c/test.h"

enum { COUNT = 203 };  // whole vectors and a tail of every width

__attribute__((constructor)) static void use_no_disk(void) {
  setenv("TORCH_NEURONX_DISABLE_NEFF_CACHE", "1", 1);
}

static const struct {
  const char* name;
  int operands, fusion;
} ops[] = {
#define TN_OP(name, text, operands, results, fusion, cheap) {text, operands, TN_FUSION_##fusion},
#include "tn/ops.inc"
#undef TN_OP
};

static int cases, missing;

static const tn_node_t* build(tn_graph_t* graph, int op, tn_dtype_t from, tn_dtype_t to,
                              int direction) {
  const tn_node_t* p[3];
  const int64_t dims[] = {COUNT};
  for (int i = 0; i < ops[op].operands; ++i) {
    const tn_type_t type = tn_type_make(op == TN_OP_SELECT && i == 0 ? TN_BOOL : from, 1, dims);
    p[i] = tn_graph_param(graph, &type, NULL);
  }
  switch (op) {
    case TN_OP_CONVERT: return tn_convert(graph, p[0], to);
    case TN_OP_BITCAST: return tn_bitcast(graph, p[0], to);
    case TN_OP_COMPARE: return tn_compare(graph, (tn_compare_t)direction, p[0], p[1]);
    case TN_OP_SELECT: return tn_select(graph, p[0], p[1], p[2]);
    case TN_OP_CLAMP: return tn_clamp(graph, p[0], p[1], p[2]);
    case TN_OP_FMA: return tn_fma(graph, p[0], p[1], p[2]);
    default:
      return ops[op].operands == 1 ? tn_unary(graph, (tn_op_t)op, p[0])
                                   : tn_binary(graph, (tn_op_t)op, p[0], p[1]);
  }
}

static void program_of(int op, tn_dtype_t from, tn_dtype_t to, int direction,
                       tn_kernel_program_t* p) {
  memset(p, 0, sizeof *p);
  p->loop_count = p->parallel_count = p->phase_count = 1;
  const int n = ops[op].operands;
  for (int i = 0; i < n; ++i) {
    const tn_dtype_t dtype = op == TN_OP_SELECT && i == 0 ? TN_BOOL : from;
    p->operand[i] =
        (tn_kernel_operand_t){(uint8_t)dtype, TN_OPERAND_INPUT, TN_OPERAND_CONTIGUOUS, 0};
    p->inst[i] =
        (tn_kernel_inst_t){.op = TN_KOP_LOAD, .dtype = (uint8_t)dtype, .index = (uint8_t)i};
  }
  p->operand[n] = (tn_kernel_operand_t){(uint8_t)to, TN_OPERAND_OUTPUT, TN_OPERAND_CONTIGUOUS, 0};
  p->inst[n] = (tn_kernel_inst_t){.op = (uint8_t)op,
                                  .dtype = (uint8_t)to,
                                  .index = (uint8_t)direction,
                                  .a = 0,
                                  .b = (uint8_t)(n > 1),
                                  .c = (uint8_t)(n > 2 ? 2 : 0)};
  p->inst[n + 1] = (tn_kernel_inst_t){
      .op = TN_KOP_STORE, .dtype = (uint8_t)to, .index = (uint8_t)n, .a = (uint8_t)n};
  p->operand_count = (uint8_t)(n + 1);
  p->inst_count = (uint8_t)(n + 2);
}

static bool same(tn_dtype_t dtype, const uint8_t* x, const uint8_t* y) {
  const size_t size = tn_dtype_size(dtype);
  if (memcmp(x, y, size) == 0) return true;
  tn_scalar_t a = {0}, b = {0};
  memcpy(&a, x, size);
  memcpy(&b, y, size);
  return tn_dtype_is_float(dtype) && isnan(tn_scalar_to_double(dtype, a)) &&
         isnan(tn_scalar_to_double(dtype, b));
}

static void check(int op, tn_dtype_t from, tn_dtype_t to, int direction, bool generate) {
  tn_graph_t* graph;
  TN_EXPECT_OK(tn_graph_create(&graph));
  const tn_node_t* node = build(graph, op, from, to, direction);
  if (!node || node->op != (tn_op_t)op || node->types[0].dtype != to) {
    tn_graph_destroy(graph);
    return;
  }
  tn_kernel_program_t program;
  program_of(op, from, to, direction, &program);
  tn_status_t status = tn_kernel_program_verify(&program);
  if (status) {
    ++missing;
    fprintf(stderr, "%s on %s: %s\n", ops[op].name, tn_dtype_name(from), tn_status_message(status));
    tn_status_free(status);
    tn_graph_destroy(graph);
    return;
  }
  ++cases;
  const size_t size = tn_dtype_size(to);
  static uint8_t in[3][COUNT * 8], out[3][COUNT * 8];
  const int n = ops[op].operands;
  for (int i = 0; i < n; ++i) {
    const tn_dtype_t dtype = op == TN_OP_SELECT && i == 0 ? TN_BOOL : from;
    for (int j = 0; j < COUNT; ++j) {
      const tn_scalar_t value = random_scalar(dtype);
      memcpy(in[i] + (size_t)j * tn_dtype_size(dtype), &value, tn_dtype_size(dtype));
    }
  }
  const void* operands[] = {in[0], in[1], in[2]};
  void* results[] = {out[0]};
  TN_EXPECT_OK(tn_interp_node(node, operands, results));
  void* ptr[4] = {in[0], in[1], in[2], NULL};
  int64_t stride[4], dim = COUNT;
  for (int i = 0; i <= n; ++i)
    stride[i] = (int64_t)tn_dtype_size((tn_dtype_t)program.operand[i].dtype);
  const tn_kernel_args_t args = {.ptr = ptr, .stride = stride, .dim = &dim};
  ptr[n] = out[1];
  TN_EXPECT_OK(tn_kernel_program_interpret(&program, &args, 0, 1, 0, COUNT));
  tn_kernel_fn_t kernel = NULL;
  if (generate) {
    status = tn_kernel_lookup(&program, &kernel);
    TN_EXPECT(tn_status_code(status) == TN_SUCCESS || tn_status_code(status) == TN_UNAVAILABLE);
    tn_status_free(status);
  }
  ptr[n] = out[2];
  if (kernel) kernel(&args, 0, 1, 0, COUNT);
  for (int way = 1; way < (kernel ? 3 : 2); ++way) {
    for (int j = 0; j < COUNT; ++j) {
      const size_t at = (size_t)j * size;
      if (same(to, out[0] + at, out[way] + at)) continue;
      tn_scalar_t want = {0}, got = {0};
      memcpy(&want, out[0] + at, size);
      memcpy(&got, out[way] + at, size);
      fprintf(stderr, "%s %s -> %s, %s: element %d: want %llx, got %llx\n", ops[op].name,
              tn_dtype_name(from), tn_dtype_name(to), way == 1 ? "interpreted" : "generated", j,
              (unsigned long long)want.u64, (unsigned long long)got.u64);
      TN_EXPECT(!"equal");
      break;
    }
  }
  tn_graph_destroy(graph);
}

// Generates code for one in |stride| of the cases (TN_TEST_ALL: for all), since each takes milliseconds.
static void check_all(int first_op, int last_op, int stride) {
  int turn = 0;
  if (getenv("TN_TEST_ALL")) stride = 1;
  random_state = 99;
  for (int op = first_op; op <= last_op; ++op) {
    if (ops[op].fusion != TN_FUSION_ELEMENTWISE || op == TN_OP_COMPLEX || op == TN_OP_REAL ||
        op == TN_OP_IMAG)
      continue;
    for (int from = 0; from <= TN_F64; ++from) {
      for (int to = 0; to <= TN_F64; ++to) {
        const bool is_cast = op == TN_OP_CONVERT || op == TN_OP_BITCAST;
        const bool is_test = op == TN_OP_COMPARE || op == TN_OP_IS_FINITE;
        if (op == TN_OP_BITCAST && to == TN_BOOL)
          continue;  // bytes other than 0 and 1 are no bools
        if (!is_cast && to != (is_test ? TN_BOOL : from)) continue;
        for (int direction = 0; direction < (op == TN_OP_COMPARE ? 6 : 1); ++direction)
          check(op, (tn_dtype_t)from, (tn_dtype_t)to, direction, turn++ % stride == 0);
      }
    }
  }
}

TN_TEST(unary_operations) { check_all(0, TN_OP_IS_FINITE, 8); }
TN_TEST(conversions) { check_all(TN_OP_CONVERT, TN_OP_BITCAST, 10); }
TN_TEST(binary_and_ternary_operations) { check_all(TN_OP_ADD, TN_OP_FMA, 8); }
TN_TEST(nothing_elementwise_is_missing_in_kernels) {
  TN_EXPECT_EQ(0, missing);
  printf("%d cases\n", cases);
}
