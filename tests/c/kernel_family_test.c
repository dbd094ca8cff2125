// A kernel of more loops in place of a narrower one: what fits, and the same bytes from both.
#include "codegen/kernel_family.h"

#include "codegen/kernel_interp.h"
#include "tests/c/test.h"

// out = x + y over |loops| loops, the operands of the given classes; reduced: out = sum of x + y.
static tn_kernel_program_t sum_of(int loops, int x, int y, bool is_reduced) {
  tn_kernel_program_t p = {.loop_count = (uint8_t)loops,
                           .parallel_count = (uint8_t)(is_reduced ? 1 : loops),
                           .vector_loop = (uint8_t)(loops - 1),
                           .phase_count = is_reduced ? 2 : 1,
                           .operand_count = 3};
  p.phase_is_point[1] = is_reduced;
  p.operand[0] = (tn_kernel_operand_t){TN_F32, TN_OPERAND_INPUT, (uint8_t)x, 0};
  p.operand[1] = (tn_kernel_operand_t){TN_F32, TN_OPERAND_INPUT, (uint8_t)y, 0};
  p.operand[2] = (tn_kernel_operand_t){TN_F32, TN_OPERAND_OUTPUT,
                                       is_reduced ? TN_OPERAND_SCALAR : TN_OPERAND_CONTIGUOUS, 0};
  p.inst[p.inst_count++] = (tn_kernel_inst_t){.op = TN_KOP_LOAD, .dtype = TN_F32};
  p.inst[p.inst_count++] = (tn_kernel_inst_t){.op = TN_KOP_LOAD, .dtype = TN_F32, .index = 1};
  p.inst[p.inst_count++] = (tn_kernel_inst_t){.op = TN_OP_ADD, .dtype = TN_F32, .a = 0, .b = 1};
  if (is_reduced)
    p.inst[p.inst_count++] =
        (tn_kernel_inst_t){.op = TN_KOP_ACC, .dtype = TN_F32, .index = TN_REDUCE_SUM, .a = 2};
  p.inst[p.inst_count] = (tn_kernel_inst_t){.op = TN_KOP_STORE,
                                            .dtype = TN_F32,
                                            .phase = is_reduced,
                                            .index = 2,
                                            .a = (uint8_t)(p.inst_count - 1)};
  ++p.inst_count;
  return p;
}

static void run(const tn_kernel_sizes_t* sizes, float* out, float* x, float* y) {
  void* ptr[] = {x, y, out};
  const tn_kernel_program_t* p = &sizes->program;
  const tn_kernel_args_t args = {.ptr = ptr, .stride = sizes->stride, .dim = sizes->dim};
  int64_t outer = 1;
  for (int l = 0; l < p->parallel_count; ++l)
    if (l != p->vector_loop) outer *= sizes->dim[l];
  TN_EXPECT_OK(tn_kernel_program_verify(p));
  TN_EXPECT_OK(tn_kernel_program_interpret(
      p, &args, 0, outer, 0, p->vector_loop < p->parallel_count ? sizes->dim[p->vector_loop] : 1));
}

static void expect_same(const tn_kernel_program_t* member, const tn_kernel_sizes_t* asked) {
  tn_kernel_sizes_t found;
  bool fits = tn_kernel_family_fit(member, asked, 1, &found);
  TN_EXPECT(fits);
  if (!fits) return;
  float x[64], y[64], a[64] = {0}, b[64] = {0};
  for (int i = 0; i < 64; ++i) x[i] = (float)(i * 37 % 23) / 7, y[i] = (float)(i * 11 % 29) / 3;
  run(asked, a, x, y);
  run(&found, b, x, y);
  TN_EXPECT(memcmp(a, b, sizeof a) == 0);
}

enum { C = TN_OPERAND_CONTIGUOUS, S = TN_OPERAND_SCALAR, G = TN_OPERAND_STRIDED };

TN_TEST(loops_that_are_not_asked_for_turn_once) {
  const tn_kernel_sizes_t row = {
      .program = sum_of(1, C, C, false), .dim = {21}, .stride = {4, 4, 4}};
  for (int loops = 1; loops <= 4; ++loops) {
    const tn_kernel_program_t member = sum_of(loops, C, C, false);
    expect_same(&member, &row);
  }
}

TN_TEST(a_single_point_is_any_operand_class) {
  const tn_kernel_sizes_t point = {.program = sum_of(1, S, S, false), .dim = {1}};
  for (int x = C; x <= G; ++x)
    for (int y = C; y <= G; ++y) {
      const tn_kernel_program_t member = sum_of(2, x, y, false);
      expect_same(&member, &point);
    }
}

TN_TEST(few_points_run_one_by_one_many_do_not) {
  const tn_kernel_program_t member = sum_of(3, C, S, false);
  tn_kernel_sizes_t rows = {.program = sum_of(2, C, C, false),
                            .dim = {3, 5},
                            .stride = {20, 4, 20, 4, 20, 4}},
                    found;
  expect_same(&member, &rows);
  rows.dim[0] = 100000;
  TN_EXPECT(!tn_kernel_family_fit(&member, &rows, 1, &found));
}

TN_TEST(the_lanes_of_a_sum_stay) {
  const tn_kernel_sizes_t row = {
      .program = sum_of(2, C, C, true), .dim = {1, 21}, .stride = {0, 4, 0, 4, 0, 0}};
  tn_kernel_sizes_t found;
  const tn_kernel_program_t same = sum_of(3, C, C, true), other = sum_of(3, C, G, true);
  expect_same(&same, &row);
  TN_EXPECT(!tn_kernel_family_fit(&other, &row, 1, &found));
}

TN_TEST(more_loops_than_the_kernel_has_do_not_fit) {
  const tn_kernel_program_t member = sum_of(1, C, C, false);
  const tn_kernel_sizes_t rows = {
      .program = sum_of(2, C, C, false), .dim = {3, 5}, .stride = {0, 4, 20, 4, 20, 4}};
  tn_kernel_sizes_t found;
  TN_EXPECT(!tn_kernel_family_fit(&member, &rows, 1, &found));
}
