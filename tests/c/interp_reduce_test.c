// src/ir/interp_reduce.c, interp_window.c, interp_order.c: values by hand, the stated order, identities.
#include <math.h>

#include "ir/float_bits.h"
#include "ir/reduce_order.h"
#include "tests/c/interp_case.h"

static const float six[6] = {1, 2, 3, 4, 5, 6};

TN_TEST(reduce_kinds) {
  static const struct {
    tn_reduce_kind_t kind;
    float rows[2], columns[3], all;
  } table[] = {{TN_REDUCE_SUM, {6, 15}, {5, 7, 9}, 21},
               {TN_REDUCE_PROD, {6, 120}, {4, 10, 18}, 720},
               {TN_REDUCE_MAX, {3, 6}, {4, 5, 6}, 6},
               {TN_REDUCE_MIN, {1, 4}, {1, 2, 3}, 1}};
  float out[3];
  for (size_t k = 0; k < sizeof table / sizeof table[0]; ++k) {
    tn_graph_t* g = open_graph();
    TN_EXPECT_OK(run(g, tn_reduce(g, table[k].kind, param(g, TN_F32, 2, 2, 3), 1, (int64_t[]){1}),
                     six, 0, 0, out));
    EXPECT_BYTES(table[k].rows, out, 2 * sizeof(float));
    g = open_graph();
    TN_EXPECT_OK(run(g, tn_reduce(g, table[k].kind, param(g, TN_F32, 2, 2, 3), 1, (int64_t[]){0}),
                     six, 0, 0, out));
    EXPECT_BYTES(table[k].columns, out, 3 * sizeof(float));
    g = open_graph();
    TN_EXPECT_OK(run(g,
                     tn_reduce(g, table[k].kind, param(g, TN_F32, 2, 2, 3), 2, (int64_t[]){0, 1}),
                     six, 0, 0, out));
    EXPECT_FLOATS(out, table[k].all);
  }
}

TN_TEST(reduce_of_nothing_is_the_identity) {
  static const struct {
    tn_reduce_kind_t kind;
    float want;
  } table[] = {{TN_REDUCE_SUM, 0},
               {TN_REDUCE_PROD, 1},
               {TN_REDUCE_MAX, -INFINITY},
               {TN_REDUCE_MIN, INFINITY}};
  float out[2];
  for (size_t k = 0; k < sizeof table / sizeof table[0]; ++k) {
    for (int64_t dimension = 0; dimension < 2; ++dimension) {
      tn_graph_t* g = open_graph();
      const tn_node_t* x = dimension ? param(g, TN_F32, 2, 2, 0) : param(g, TN_F32, 2, 0, 2);
      TN_EXPECT_OK(run(g, tn_reduce(g, table[k].kind, x, 1, &dimension), six, 0, 0, out));
      EXPECT_FLOATS(out, table[k].want, table[k].want);
    }
  }
  int8_t low;
  tn_graph_t* g = open_graph();
  TN_EXPECT_OK(run(g, tn_reduce(g, TN_REDUCE_MAX, param(g, TN_I8, 1, 0), 1, (int64_t[]){0}), six, 0,
                   0, &low));
  TN_EXPECT_EQ(-128, low);
  uint8_t all;
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_reduce(g, TN_REDUCE_AND, param(g, TN_BOOL, 1, 0), 1, (int64_t[]){0}), six,
                   0, 0, &all));
  TN_EXPECT_EQ(1, all);
}

TN_TEST(reduce_of_other_dtypes) {
  const uint8_t bools[4] = {1, 0, 1, 1};
  uint8_t bits[2];
  tn_graph_t* g = open_graph();
  TN_EXPECT_OK(run(g, tn_reduce(g, TN_REDUCE_AND, param(g, TN_BOOL, 2, 2, 2), 1, (int64_t[]){1}),
                   bools, 0, 0, bits));
  EXPECT_INTS(bits, 0, 1);
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_reduce(g, TN_REDUCE_OR, param(g, TN_U8, 1, 4), 1, (int64_t[]){0}),
                   (uint8_t[]){1, 8, 2, 0}, 0, 0, bits));
  EXPECT_INTS(bits, 11);
  int32_t sum;
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_reduce(g, TN_REDUCE_SUM, param(g, TN_I32, 1, 2), 1, (int64_t[]){0}),
                   (int32_t[]){INT32_MAX, 1}, 0, 0, &sum));
  TN_EXPECT_EQ(INT32_MIN, sum);
  float nan_out;
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_reduce(g, TN_REDUCE_MAX, param(g, TN_F32, 1, 3), 1, (int64_t[]){0}),
                   (float[]){1, NAN, 2}, 0, 0, &nan_out));
  EXPECT_FLOATS(&nan_out, NAN);
  float z[2];
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_reduce(g, TN_REDUCE_PROD, param(g, TN_C64, 1, 3), 1, (int64_t[]){0}), six,
                   0, 0, z));
  EXPECT_FLOATS(z, -85, 20);  // (1 + 2i)(3 + 4i)(5 + 6i)
  // bf16 accumulates in f32: 256 + 1 + ... + 1 would stay 256 if every step rounded
  uint16_t small[65], total;
  for (int i = 0; i < 65; ++i) small[i] = tn_f32_to_bf16(i ? 1.0f : 256.0f);
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_reduce(g, TN_REDUCE_SUM, param(g, TN_BF16, 1, 65), 1, (int64_t[]){0}),
                   small, 0, 0, &total));
  TN_EXPECT_EQ(tn_f32_to_bf16(320.0f), total);
}

// reduce_order.h written down once more, for one row and for one column.
static float row_block(const float* x, int64_t count) {
  float lane[64] = {0};
  for (int64_t i = 0; i < count; ++i) lane[i & 63] += x[i];
  for (int half = 32; half; half >>= 1) {
    for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
  }
  return lane[0];
}
TN_TEST(order_of_sums) {
  enum { N = 3 * TN_REDUCE_BLOCK + 1000 };
  static float x[N];
  for (int i = 0; i < N; ++i) x[i] = (float)case_random() * 0x1p-31f - 0.3f;
  float out, want = row_block(x, TN_REDUCE_BLOCK);
  for (int64_t at = TN_REDUCE_BLOCK; at < N; at += TN_REDUCE_BLOCK) {
    want += row_block(x + at, N - at < TN_REDUCE_BLOCK ? N - at : TN_REDUCE_BLOCK);
  }
  tn_graph_t* g = open_graph();
  TN_EXPECT_OK(run(g, tn_reduce(g, TN_REDUCE_SUM, param(g, TN_F32, 1, N), 1, (int64_t[]){0}), x, 0,
                   0, &out));
  EXPECT_FLOATS(&out, want);
  // lead 5, kept 2, tail 1000: no blocks, lanes run through all leads
  float two[2];
  g = open_graph();
  TN_EXPECT_OK(
      run(g, tn_reduce(g, TN_REDUCE_SUM, param(g, TN_F32, 3, 5, 2, 1000), 2, (int64_t[]){0, 2}), x,
          0, 0, two));
  for (int kept = 0; kept < 2; ++kept) {
    float lane[64] = {0};
    for (int lead = 0; lead < 5; ++lead) {
      for (int i = 0; i < 1000; ++i) lane[i % 64] += x[(lead * 2 + kept) * 1000 + i];
    }
    for (int half = 32; half; half >>= 1) {
      for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
    }
    EXPECT_FLOATS(&two[kept], lane[0]);
  }
  // columns: blocks of 256 rows
  float columns[3];
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_reduce(g, TN_REDUCE_SUM, param(g, TN_F32, 2, 1000, 3), 1, (int64_t[]){0}),
                   x, 0, 0, columns));
  for (int c = 0; c < 3; ++c) {
    float total = 0;
    for (int block = 0; block < 1000; block += TN_REDUCE_ROWS) {
      float sum = 0;
      for (int r = block; r < 1000 && r < block + TN_REDUCE_ROWS; ++r) sum += x[r * 3 + c];
      total = block ? total + sum : sum;
    }
    EXPECT_FLOATS(&columns[c], total);
  }
  // a trailing 1 does not make it a column reduction
  float same;
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_reduce(g, TN_REDUCE_SUM, param(g, TN_F32, 3, 1, N, 1), 1, (int64_t[]){1}),
                   x, 0, 0, &same));
  EXPECT_FLOATS(&same, want);
}

TN_TEST(arg_reduce_finds_the_first) {
  const float x[8] = {1, 5, 5, 2, NAN, 7, NAN, 0};
  float value[4];
  int64_t position[4];
  tn_graph_t* g = open_graph();
  const tn_node_t* y = tn_arg_reduce(g, TN_REDUCE_MAX, param(g, TN_F32, 2, 2, 4), 1);
  TN_EXPECT_OK(run(g, tn_result(g, y, 1), x, 0, 0, position));
  EXPECT_INTS(position, 1, 0);
  g = open_graph();
  y = tn_arg_reduce(g, TN_REDUCE_MIN, param(g, TN_F32, 2, 2, 4), 0);
  TN_EXPECT_OK(run(g, tn_result(g, y, 1), x, 0, 0, position));
  EXPECT_INTS(position, 1, 0, 1, 1);
  g = open_graph();
  y = tn_arg_reduce(g, TN_REDUCE_MIN, param(g, TN_F32, 2, 2, 4), 0);
  TN_EXPECT_OK(run(g, tn_result(g, y, 0), x, 0, 0, value));
  EXPECT_FLOATS(value, NAN, 5, NAN, 0);
}

TN_TEST(scan_directions) {
  static const struct {
    bool is_reverse, is_exclusive;
    float want[6];
  } rows[] = {{false, false, {1, 3, 6, 4, 9, 15}},
              {false, true, {0, 1, 3, 0, 4, 9}},
              {true, false, {6, 5, 3, 15, 11, 6}},
              {true, true, {5, 3, 0, 11, 6, 0}}};
  float out[6];
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; ++k) {
    tn_graph_t* g = open_graph();
    TN_EXPECT_OK(run(g,
                     tn_scan(g, TN_REDUCE_SUM, param(g, TN_F32, 2, 2, 3), 1, rows[k].is_reverse,
                             rows[k].is_exclusive),
                     six, 0, 0, out));
    EXPECT_BYTES(rows[k].want, out, sizeof out);
  }
  tn_graph_t* g = open_graph();
  TN_EXPECT_OK(run(g, tn_scan(g, TN_REDUCE_PROD, param(g, TN_F32, 2, 2, 3), 0, false, false), six,
                   0, 0, out));
  EXPECT_FLOATS(out, 1, 2, 3, 4, 10, 18);
}

static tn_window_t window_1d(int64_t size, int64_t stride, int64_t low, int64_t high, int64_t base,
                             int64_t dilation) {
  return (tn_window_t){.size = {1, size},
                       .stride = {1, stride},
                       .low = {0, low},
                       .high = {0, high},
                       .base_dilation = {1, base},
                       .window_dilation = {1, dilation}};
}

TN_TEST(windows_by_hand) {
  float out[12];
  tn_window_t w = window_1d(2, 1, 1, 0, 1, 1);
  tn_graph_t* g = open_graph();
  TN_EXPECT_OK(
      run(g, tn_reduce_window(g, TN_REDUCE_SUM, param(g, TN_F32, 2, 2, 3), &w), six, 0, 0, out));
  EXPECT_FLOATS(out, 1, 3, 5, 4, 9, 11);
  w = window_1d(2, 2, 0, 1, 2, 2);  // x with holes: 1 . 2 . 3 pad
  g = open_graph();
  TN_EXPECT_OK(
      run(g, tn_reduce_window(g, TN_REDUCE_MAX, param(g, TN_F32, 2, 2, 3), &w), six, 0, 0, out));
  EXPECT_FLOATS(out, 2, 3, 5, 6);
  // gradient of a maximum: overlapping windows add up
  const float x[6] = {1, 5, 2, 7, 7, 0}, grad[4] = {10, 20, 30, 40};
  w = window_1d(2, 1, 0, 0, 1, 1);
  g = open_graph();
  const tn_node_t *p = param(g, TN_F32, 2, 2, 3), *d = param(g, TN_F32, 2, 2, 2);
  TN_EXPECT_OK(run(g, tn_window_grad(g, TN_REDUCE_MAX, p, d, &w), x, grad, 0, out));
  EXPECT_FLOATS(out, 0, 30, 0, 30, 40, 0);
}

// A window as large as the line is a reduction of it; a running sum is a window with padding.
TN_TEST(window_identities) {
  for (int round = 0; round < 30; ++round) {
    const int rows = case_range(1, 4), columns = case_range(1, 12);
    float x[48], a[48], b[48];
    case_fill(x, 48);
    const tn_window_t w = window_1d(columns, 1, columns - 1, 0, 1, 1);
    tn_graph_t* g = open_graph();
    TN_EXPECT_OK(run(g, tn_reduce_window(g, TN_REDUCE_SUM, param(g, TN_F32, 2, rows, columns), &w),
                     x, 0, 0, a));
    g = open_graph();
    TN_EXPECT_OK(run(g,
                     tn_scan(g, TN_REDUCE_SUM, param(g, TN_F32, 2, rows, columns), 1, false, false),
                     x, 0, 0, b));
    EXPECT_BYTES(a, b, (size_t)(rows * columns) * sizeof(float));
  }
}

TN_TEST(sort_is_stable_and_puts_nan_at_the_end_of_greatness) {
  const float keys[6] = {2, NAN, 1, 2, -0.0f, 0.0f};
  const int32_t tags[6] = {0, 1, 2, 3, 4, 5};
  int32_t out[6];
  tn_graph_t* g = open_graph();
  const tn_node_t *k = param(g, TN_F32, 1, 6), *t = param(g, TN_I32, 1, 6);
  const tn_node_t* sorted = tn_sort(g, 2, (const tn_node_t*[]){k, t}, 0, false);
  TN_EXPECT_OK(run(g, tn_result(g, sorted, 1), keys, tags, 0, out));
  EXPECT_INTS(out, 4, 5, 2, 0, 3, 1);
  g = open_graph();
  k = param(g, TN_F32, 1, 6), t = param(g, TN_I32, 1, 6);
  sorted = tn_sort(g, 2, (const tn_node_t*[]){k, t}, 0, true);
  TN_EXPECT_OK(run(g, tn_result(g, sorted, 1), keys, tags, 0, out));
  EXPECT_INTS(out, 1, 0, 3, 2, 4, 5);
}

TN_TEST(topk_in_order) {
  const float x[10] = {1, 3, 3, NAN, 2, 5, 4, 3, 2, 1};
  float value[4];
  int64_t position[4];
  tn_graph_t* g = open_graph();
  const tn_node_t* y = tn_topk(g, param(g, TN_F32, 2, 2, 5), 2, true);
  TN_EXPECT_OK(run(g, tn_result(g, y, 0), x, 0, 0, value));
  EXPECT_FLOATS(value, NAN, 3, 5, 4);
  g = open_graph();
  y = tn_topk(g, param(g, TN_F32, 2, 2, 5), 2, false);
  TN_EXPECT_OK(run(g, tn_result(g, y, 1), x, 0, 0, position));
  EXPECT_INTS(position, 0, 4, 4, 3);
}

// Sorting random lines along the middle dimension: ordered, and the carried positions lead back to the values.
TN_TEST(sort_identities) {
  for (int round = 0; round < 30; ++round) {
    const int a = case_range(1, 3), n = case_range(1, 20), b = case_range(1, 3), count = a * n * b;
    float x[180], values[180], back[180];
    int64_t at[180];
    case_fill(x, count);
    for (int pass = 0; pass < 2; ++pass) {
      tn_graph_t* g = open_graph();
      const tn_node_t* p = param(g, TN_F32, 3, a, n, b);
      const tn_type_t type = tn_type_make(TN_I64, 3, (int64_t[]){a, n, b});
      const tn_node_t* s =
          tn_sort(g, 2, (const tn_node_t*[]){p, tn_iota(g, &type, 1)}, 1, round % 2);
      TN_EXPECT_OK(run(g, tn_result(g, s, pass), x, 0, 0, pass ? (void*)at : (void*)values));
    }
    tn_graph_t* g = open_graph();
    const tn_node_t *p = param(g, TN_F32, 3, a, n, b), *i = param(g, TN_I64, 3, a, n, b);
    TN_EXPECT_OK(run(g, tn_take_along(g, p, i, 1, TN_BOUNDS_ERROR), x, at, 0, back));
    EXPECT_BYTES(values, back, (size_t)count * sizeof(float));
    for (int k = 0; k < count; ++k) {
      if (k / b % n == 0) continue;
      TN_EXPECT(round % 2 ? values[k - b] >= values[k] : values[k - b] <= values[k]);
      if (values[k - b] == values[k]) TN_EXPECT(at[k - b] < at[k]);
    }
  }
}
