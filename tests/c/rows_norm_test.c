// mirrors src/kernels/rows_norm.c
#include "src/kernels/rows.h"

#include "tests/c/rows_check.h"

static tn_dtype_t wide_of(tn_dtype_t dtype) { return dtype == TN_F64 ? TN_F64 : TN_F32; }
static double* doubles(int64_t count) { return calloc((size_t)count + 1, sizeof(double)); }

// Everything over an array [n][c][inner] whose elements share statistics by |stat_of|: layer norm, group norm
// and batch norm differ only in that map and in which parameter an element has.
typedef struct naive {
  int64_t count, stats, params;
  int64_t (*stat_of)(int64_t i);
  int64_t (*param_of)(int64_t i);
  double *mean, *rstd, *var, *out, *dx, *dweight, *dbias;
} naive_t;
static int64_t map_c, map_inner, map_groups;
static int64_t row_stat(int64_t i) { return i / map_inner; }
static int64_t row_param(int64_t i) { return i % map_inner; }
static int64_t group_stat(int64_t i) { return i / (map_c / map_groups * map_inner); }
static int64_t channel_of(int64_t i) { return i / map_inner % map_c; }

static naive_t naive(tn_dtype_t dtype, tn_dtype_t param, int64_t count, int64_t stats,
                     int64_t params, int64_t (*stat_of)(int64_t), int64_t (*param_of)(int64_t),
                     bool is_rms, double epsilon, const void* x, const void* weight,
                     const void* bias, const void* dout, tn_dtype_t stat, const void* got_mean,
                     const void* got_rstd) {
  naive_t a = {count,          stats,          params,          stat_of,
               param_of,       doubles(stats), doubles(stats),  doubles(stats),
               doubles(count), doubles(count), doubles(params), doubles(params)};
  const double m = (double)count / (double)stats;
  double *sum = doubles(stats), *dot = doubles(stats);
  if (!is_rms)
    for (int64_t i = 0; i < count; ++i) a.mean[stat_of(i)] += row_at(dtype, x, i) / m;
  for (int64_t i = 0; i < count; ++i) {
    const double d = row_at(dtype, x, i) - a.mean[stat_of(i)];
    a.var[stat_of(i)] += d * d / m;
  }
  for (int64_t s = 0; s < stats; ++s) a.rstd[s] = 1 / sqrt(a.var[s] + epsilon);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t s = stat_of(i), p = param_of(i);
    const double w = weight ? row_at(param, weight, p) : 1;
    a.out[i] =
        (row_at(dtype, x, i) - a.mean[s]) * a.rstd[s] * w + (bias ? row_at(param, bias, p) : 0);
    // The backward starts from the statistics that the forward stored (and rounded).
    const double mean = is_rms ? 0 : row_at(stat, got_mean, s), rstd = row_at(stat, got_rstd, s);
    const double d = row_at(dtype, dout, i), xhat = (row_at(dtype, x, i) - mean) * rstd;
    sum[s] += d * w;
    dot[s] += d * w * xhat;
    a.dweight[p] += d * xhat;
    a.dbias[p] += d;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t s = stat_of(i), p = param_of(i);
    const double mean = is_rms ? 0 : row_at(stat, got_mean, s), rstd = row_at(stat, got_rstd, s);
    const double xhat = (row_at(dtype, x, i) - mean) * rstd,
                 w = weight ? row_at(param, weight, p) : 1;
    a.dx[i] = rstd * (row_at(dtype, dout, i) * w - (is_rms ? 0 : sum[s] / m) - xhat * dot[s] / m);
  }
  free(sum), free(dot);
  return a;
}
static void naive_free(naive_t* a) {
  free(a->mean), free(a->rstd), free(a->var), free(a->out), free(a->dx), free(a->dweight),
      free(a->dbias);
}

typedef struct arrays {
  void *x, *dout, *weight, *bias, *out[4], *mean[4], *rstd[4], *dx[4], *dweight[4], *dbias[4];
  size_t bytes, stat_bytes, param_bytes;
} arrays_t;
static arrays_t make(tn_dtype_t dtype, tn_dtype_t param, tn_dtype_t stat, int64_t count,
                     int64_t stats, int64_t params, bool has_weight, bool has_bias) {
  arrays_t a = {.x = row_array(dtype, count, -2, 4),
                .dout = row_array(dtype, count, -1, 1),
                .weight = has_weight ? row_array(param, params, 0.5, 1.5) : NULL,
                .bias = has_bias ? row_array(param, params, -1, 1) : NULL};
  a.bytes = (size_t)count * tn_dtype_size(dtype);
  a.stat_bytes = (size_t)stats * tn_dtype_size(stat);
  a.param_bytes = (size_t)params * tn_dtype_size(param);
  for (int t = 1; t <= 3; ++t) {
    a.out[t] = malloc(a.bytes + 1), a.dx[t] = malloc(a.bytes + 1);
    a.mean[t] = malloc(a.stat_bytes + 1), a.rstd[t] = malloc(a.stat_bytes + 1);
    a.dweight[t] = malloc(a.param_bytes + 1), a.dbias[t] = malloc(a.param_bytes + 1);
  }
  return a;
}
static void judge(const char* what, arrays_t* a, naive_t* e, tn_dtype_t dtype, tn_dtype_t param,
                  tn_dtype_t stat, bool is_rms) {
  for (int t = 2; t <= 3; ++t) {
    row_expect_same(what, a->out[1], a->out[t], a->bytes);
    row_expect_same(what, a->dx[1], a->dx[t], a->bytes);
    row_expect_same(what, a->rstd[1], a->rstd[t], a->stat_bytes);
    row_expect_same(what, a->dweight[1], a->dweight[t], a->param_bytes);
    if (!is_rms) row_expect_same(what, a->dbias[1], a->dbias[t], a->param_bytes);
  }
  const double eps = row_eps(dtype) * 2, m = sqrt((double)e->count / (double)e->params);
  row_expect(what, dtype, e->count, e->out, a->out[1], eps * 3);
  if (!is_rms) row_expect("mean", stat, e->stats, e->mean, a->mean[1], row_eps(stat) * 2);
  row_expect("rstd", stat, e->stats, e->rstd, a->rstd[1], row_eps(stat) * 4);
  row_expect("dx", dtype, e->count, e->dx, a->dx[1], eps * 4);
  row_expect("dweight", param, e->params, e->dweight, a->dweight[1], row_eps(param) * 8 * m);
  if (!is_rms) row_expect("dbias", param, e->params, e->dbias, a->dbias[1], row_eps(param) * 8 * m);
  free(a->x), free(a->dout), free(a->weight), free(a->bias);
  for (int t = 1; t <= 3; ++t)
    free(a->out[t]), free(a->dx[t]), free(a->mean[t]), free(a->rstd[t]), free(a->dweight[t]),
        free(a->dbias[t]);
  naive_free(e);
}

TN_TEST(layer_and_rms_norm) {
  for (int round = 0; round < 64; ++round) {
    const tn_dtype_t dtype = row_dtypes[round % 4], param = round & 4 ? wide_of(dtype) : dtype;
    const tn_dtype_t stat = round & 8 ? wide_of(dtype) : dtype;
    const bool is_rms = round & 16, has_weight = test_between(0, 3),
               has_bias = test_between(0, 3) && !is_rms;
    const int64_t rows = test_between(1, round % 5 ? 20 : 200),
                  n = test_between(2, round % 7 ? 300 : 2000);
    arrays_t a = make(dtype, param, stat, rows * n, rows, n, has_weight, has_bias);
    const tn_layer_norm_t shape = {dtype, param, stat, is_rms, rows, n, n, n, 1e-3};
    void* workspace =
        aligned_alloc(64, (tn_rows_layer_norm_backward_workspace(&shape) + 63) / 64 * 64);
    for (int t = 1; t <= 3; ++t) {
      tn_rows_layer_norm(test_pool(t), &shape, a.x, a.weight, a.bias, a.out[t], a.mean[t],
                         a.rstd[t]);
      tn_rows_layer_norm_backward(test_pool(t), &shape, a.dout, a.x, a.mean[t], a.rstd[t], a.weight,
                                  workspace, a.dx[t], a.dweight[t], a.dbias[t]);
    }
    map_inner = n;
    naive_t e = naive(dtype, param, rows * n, rows, n, row_stat, row_param, is_rms, 1e-3, a.x,
                      a.weight, a.bias, a.dout, stat, a.mean[1], a.rstd[1]);
    judge(is_rms ? "rms norm" : "layer norm", &a, &e, dtype, param, stat, is_rms);
    free(workspace);
  }
}

TN_TEST(group_norm) {
  for (int round = 0; round < 32; ++round) {
    const tn_dtype_t dtype = row_dtypes[round % 4], param = round & 4 ? wide_of(dtype) : dtype,
                     stat = wide_of(dtype);
    map_groups = test_between(1, 4);
    map_c = map_groups * test_between(2, 5);
    map_inner = round % 3 ? test_between(1, 200) : 1;
    const int64_t n = test_between(1, 5), count = n * map_c * map_inner;
    arrays_t a = make(dtype, param, stat, count, n * map_groups, map_c, test_between(0, 3),
                      test_between(0, 3));
    const tn_group_norm_t shape = {dtype, param, stat, n, map_c, map_inner, map_groups, 1e-3};
    void* workspace =
        aligned_alloc(64, (tn_rows_group_norm_backward_workspace(&shape) + 63) / 64 * 64);
    for (int t = 1; t <= 3; ++t) {
      tn_rows_group_norm(test_pool(t), &shape, a.x, a.weight, a.bias, a.out[t], a.mean[t],
                         a.rstd[t]);
      tn_rows_group_norm_backward(test_pool(t), &shape, a.dout, a.x, a.mean[t], a.rstd[t], a.weight,
                                  workspace, a.dx[t], a.dweight[t], a.dbias[t]);
    }
    naive_t e = naive(dtype, param, count, n * map_groups, map_c, group_stat, channel_of, false,
                      1e-3, a.x, a.weight, a.bias, a.dout, stat, a.mean[1], a.rstd[1]);
    judge("group norm", &a, &e, dtype, param, stat, false);
    free(workspace);
  }
}

TN_TEST(batch_norm) {
  for (int round = 0; round < 48; ++round) {
    const tn_dtype_t dtype = row_dtypes[round % 4], param = round & 4 ? wide_of(dtype) : dtype,
                     stat = wide_of(dtype);
    map_c = test_between(1, round % 3 ? 9 : 150);
    map_inner = round % 3 ? test_between(2, 150) : 1;
    const int64_t n = test_between(2, round % 3 ? 6 : 300), count = n * map_c * map_inner;
    arrays_t a =
        make(dtype, param, stat, count, map_c, map_c, test_between(0, 3), test_between(0, 3));
    void* var = row_array(stat, map_c, 0, 0);
    const tn_batch_norm_t shape = {dtype, param, stat, n, map_c, map_inner, 1e-3, 0.25, var};
    void *mean0 = row_array(stat, map_c, -1, 1), *var0 = row_array(stat, map_c, 0.5, 2);
    void *mean1 = row_array(stat, map_c, 0, 0), *var1 = row_array(stat, map_c, 0, 0);
    for (int t = 1; t <= 3; ++t) {
      tn_rows_batch_norm_train(test_pool(t), &shape, a.x, a.weight, a.bias, mean0, var0, a.out[t],
                               a.mean[t], a.rstd[t], mean1, var1);
      tn_rows_batch_norm_backward(test_pool(t), &shape, true, a.dout, a.x, a.mean[t], a.rstd[t],
                                  a.weight, a.dx[t], a.dweight[t], a.dbias[t]);
    }
    naive_t e = naive(dtype, param, count, map_c, map_c, channel_of, channel_of, false, 1e-3, a.x,
                      a.weight, a.bias, a.dout, stat, a.mean[1], a.rstd[1]);
    const double m = (double)(n * map_inner);
    double *em = doubles(map_c), *ev = doubles(map_c), *eo = doubles(count), *edx = doubles(count);
    for (int64_t c = 0; c < map_c; ++c) {
      em[c] = 0.75 * row_at(stat, mean0, c) + 0.25 * e.mean[c];
      ev[c] = 0.75 * row_at(stat, var0, c) + 0.25 * e.var[c] * m / (m - 1);
    }
    row_expect("var", stat, map_c, e.var, var, row_eps(stat) * 4);
    row_expect("running mean", stat, map_c, em, mean1, row_eps(stat) * 2);
    row_expect("running var", stat, map_c, ev, var1, row_eps(stat) * 4);
    void* out = row_array(dtype, count, 0, 0);
    tn_rows_batch_norm_infer(test_pool(2), &shape, a.x, a.weight, a.bias, mean0, var0, out);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t c = channel_of(i);
      const double scale =
          (a.weight ? row_at(param, a.weight, c) : 1) / sqrt(row_at(stat, var0, c) + 1e-3);
      eo[i] = (row_at(dtype, a.x, i) - row_at(stat, mean0, c)) * scale +
              (a.bias ? row_at(param, a.bias, c) : 0);
      edx[i] = row_at(dtype, a.dout, i) * scale;
    }
    row_expect("batch norm inference", dtype, count, eo, out, row_eps(dtype) * 6);
    tn_rows_batch_norm_backward(test_pool(3), &shape, false, a.dout, a.x, mean0, var0, a.weight,
                                out, NULL, NULL);
    row_expect("batch norm inference backward", dtype, count, edx, out, row_eps(dtype) * 6);
    judge("batch norm", &a, &e, dtype, param, stat, false);
    free(var), free(mean0), free(var0), free(mean1), free(var1), free(em), free(ev), free(eo),
        free(edx), free(out);
  }
}
