// mirrors src/kernels/rows_softmax.c
#include "src/kernels/rows.h"

#include "base/math_scalar.h"
#include "tests/c/rows_check.h"

static void check(tn_dtype_t dtype, bool is_log, int64_t outer, int64_t n, int64_t inner) {
  const int64_t count = outer * n * inner;
  const size_t bytes = (size_t)count * tn_dtype_size(dtype);
  void *x = row_array(dtype, count, -9, 9), *dout = row_array(dtype, count, -1, 1), *out[4], *dx[4];
  const tn_softmax_t shape = {dtype, is_log, outer, n, inner, n * inner, n * inner};
  for (int t = 1; t <= 3; ++t) {
    out[t] = malloc(bytes + 1);
    dx[t] = malloc(bytes + 1);
    tn_rows_softmax(test_pool(t), &shape, x, out[t]);
    tn_rows_softmax_backward(test_pool(t), &shape, dout, out[t], dx[t]);
  }
  row_expect_same("softmax", out[1], out[2], bytes);
  row_expect_same("softmax", out[1], out[3], bytes);
  row_expect_same("softmax backward", dx[1], dx[2], bytes);
  row_expect_same("softmax backward", dx[1], dx[3], bytes);
  double* expected = malloc(sizeof(double) * (size_t)count + 1);
  double* expected_dx = malloc(sizeof(double) * (size_t)count + 1);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t j = 0; j < inner; ++j) {
      const int64_t base = o * n * inner + j;
      double high = -INFINITY, sum = 0, dot = 0;
      for (int64_t i = 0; i < n; ++i) high = fmax(high, row_at(dtype, x, base + i * inner));
      for (int64_t i = 0; i < n; ++i) sum += exp(row_at(dtype, x, base + i * inner) - high);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = base + i * inner;
        const double shifted = row_at(dtype, x, at) - high, y = row_at(dtype, out[1], at);
        expected[at] = is_log ? shifted - log(sum) : exp(shifted) / sum;
        dot += row_at(dtype, dout, at) * (is_log ? 1 : y);
      }
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = base + i * inner;
        const double d = row_at(dtype, dout, at), y = row_at(dtype, out[1], at);
        expected_dx[at] = is_log ? d - exp(y) * dot : y * (d - dot);
      }
    }
  row_expect("softmax", dtype, count, expected, out[1], row_eps(dtype));
  row_expect("softmax backward", dtype, count, expected_dx, dx[1],
             row_eps(dtype) * (1 + sqrt((double)n)));
  free(x), free(dout), free(expected), free(expected_dx);
  for (int t = 1; t <= 3; ++t) free(out[t]), free(dx[t]);
}

TN_TEST(rows_and_columns) {
  for (int round = 0; round < 160; ++round) {
    const int64_t inner = round % 2 ? 1 : test_between(2, 150);
    check(row_dtypes[round / 2 % 4], round / 8 % 2, test_between(1, 9),
          test_between(1, round % 5 ? 90 : 600), inner);
  }
}
TN_TEST(long_rows) {
  for (int i = 0; i < 8; ++i) check(row_dtypes[i % 4], i / 4, 3, test_between(4000, 40000), 1);
  check(TN_F32, false, 300, 200, 1);
  check(TN_BF16, false, 300, 200, 1);
}
TN_TEST(special_values) {
  float x[3] = {-INFINITY, 0, -INFINITY}, out[3];
  tn_softmax_t shape = {TN_F32, false, 1, 3, 1, 3, 3};
  tn_rows_softmax(NULL, &shape, x, out);
  TN_EXPECT(out[0] == 0 && out[1] == 1 && out[2] == 0);
  x[2] = NAN;
  tn_rows_softmax(NULL, &shape, x, out);
  TN_EXPECT(isnan(out[0]) && isnan(out[1]));
  x[1] = x[2] = -INFINITY;
  tn_rows_softmax(NULL, &shape, x, out);
  TN_EXPECT(isnan(out[0]));
}
// Bit for bit the IR's decomposition: 64 lanes of exp(x - max), halved, one division.
TN_TEST(equals_the_decomposition) {
  float x[777], out[777], e[777], lane[64] = {0}, high = -INFINITY;
  for (int i = 0; i < 777; ++i) {
    x[i] = (float)(test_real() * 20);
    high = x[i] > high ? x[i] : high;
  }
  tn_softmax_t shape = {TN_F32, false, 1, 777, 1, 777, 777};
  tn_rows_softmax(NULL, &shape, x, out);
  for (int i = 0; i < 777; ++i) {
    e[i] = tn_math_exp_f32(x[i] - high);
    lane[i % 64] += e[i];
  }
  for (int half = 32; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) lane[k] += lane[k + half];
  for (int i = 0; i < 777; ++i) TN_EXPECT(out[i] == e[i] / lane[0]);
  shape.is_log = true;
  tn_rows_softmax(NULL, &shape, x, out);
  for (int i = 0; i < 777; ++i) TN_EXPECT(out[i] == (x[i] - high) - tn_math_log_f32(lane[0]));
}
TN_TEST(cross_entropy_and_gradient) {
  for (int round = 0; round < 24; ++round) {
    const tn_dtype_t dtype = row_dtypes[round % 4], wide = dtype == TN_F64 ? TN_F64 : TN_F32;
    const int64_t rows = test_between(1, 40), n = test_between(1, 300);
    void *x = row_array(dtype, rows * n, -5, 5), *loss = row_array(dtype, rows, 0, 1),
         *lse = row_array(wide, rows, 0, 1);
    void *scale = row_array(wide, rows, 0, 1), *dx = row_array(dtype, rows * n, 0, 1);
    int64_t* target = malloc(sizeof(int64_t) * (size_t)rows);
    double *e = malloc(sizeof(double) * (size_t)rows),
           *edx = malloc(sizeof(double) * (size_t)(rows * n));
    for (int64_t r = 0; r < rows; ++r) {
      target[r] = test_between(0, 4) ? test_between(0, n - 1) : -100;
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += exp(row_at(dtype, x, r * n + i));
      e[r] = target[r] == -100 ? 0 : log(sum) - row_at(dtype, x, r * n + target[r]);
      for (int64_t i = 0; i < n; ++i)
        edx[r * n + i] = target[r] == -100
                             ? 0
                             : row_at(wide, scale, r) *
                                   (exp(row_at(dtype, x, r * n + i)) / sum - (i == target[r]));
    }
    TN_EXPECT_OK(
        tn_rows_cross_entropy(test_pool(2), dtype, rows, n, n, x, target, -100, loss, lse));
    row_expect("cross entropy", dtype, rows, e, loss, row_eps(dtype) * 2);
    tn_rows_cross_entropy_backward(test_pool(2), dtype, rows, n, n, x, target, -100, lse, scale,
                                   dx);
    row_expect("cross entropy backward", dtype, rows * n, edx, dx, row_eps(dtype));
    target[0] = n;
    TN_EXPECT_CODE(TN_OUT_OF_RANGE,
                   tn_rows_cross_entropy(NULL, dtype, rows, n, n, x, target, -100, loss, lse));
    free(x), free(loss), free(lse), free(scale), free(dx), free(target), free(e), free(edx);
  }
}
