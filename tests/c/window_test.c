// mirrors src/kernels/window.c and window_reduce.c
#include "src/kernels/window.h"

#include "tests/c/rows_check.h"

static void* zeros(tn_dtype_t dtype, int64_t count) {
  return calloc((size_t)count + 1, tn_dtype_size(dtype));
}

typedef struct geometry {
  tn_pooling_t s;
  int64_t count, outputs;  // per plane
} geometry_t;
static geometry_t generate(tn_dtype_t dtype, bool dilates, int64_t top) {
  geometry_t g = {
      .s = {.dtype = dtype, .spatial = (int)test_between(1, 3), .planes = test_between(1, 4)}};
  g.count = g.outputs = 1;
  for (int i = 0; i < g.s.spatial; ++i) {
    g.s.kernel[i] = test_between(1, 4);
    g.s.stride[i] = test_between(1, 3);
    g.s.dilation[i] = dilates ? test_between(1, 2) : 1;
    g.s.padding[i] = test_between(0, g.s.kernel[i] / 2);
    const int64_t reach = (g.s.kernel[i] - 1) * g.s.dilation[i] + 1;
    g.s.size[i] = test_between(reach, reach + (i == g.s.spatial - 1 ? top : 9));
    const bool ceil_mode = test_between(0, 1);
    g.s.out_size[i] =
        (g.s.size[i] + 2 * g.s.padding[i] - reach + (ceil_mode ? g.s.stride[i] - 1 : 0)) /
            g.s.stride[i] +
        1;
    if (ceil_mode && (g.s.out_size[i] - 1) * g.s.stride[i] >= g.s.size[i] + g.s.padding[i])
      --g.s.out_size[i];
    g.count *= g.s.size[i];
    g.outputs *= g.s.out_size[i];
  }
  return g;
}
// Coordinates of a flat position, missing leading dimensions are 0.
static void split(int64_t flat, const int64_t* size, int spatial, int64_t* out) {
  for (int i = spatial - 1; i >= 0; --i) out[i] = flat % size[i], flat /= size[i];
}
// Calls for every element of output |o|'s window that lies in x: sets *position, returns false at the end.
typedef struct taps {
  int64_t tap, total;
} taps_t;
static bool next_tap(const tn_pooling_t* s, taps_t* t, int64_t o, int64_t* position) {
  int64_t total = 1, at[3], k[3];
  for (int i = 0; i < s->spatial; ++i) total *= s->kernel[i];
  split(o, s->out_size, s->spatial, at);
  while (t->tap < total) {
    split(t->tap++, s->kernel, s->spatial, k);
    int64_t flat = 0;
    bool inside = true;
    for (int i = 0; i < s->spatial; ++i) {
      const int64_t p = at[i] * s->stride[i] - s->padding[i] + k[i] * s->dilation[i];
      inside = inside && p >= 0 && p < s->size[i];
      flat = flat * s->size[i] + p;
    }
    if (inside) {
      *position = flat;
      return true;
    }
  }
  return false;
}

TN_TEST(max_pool_and_gradient) {
  const tn_dtype_t dtypes[] = {TN_F32, TN_BF16, TN_F16, TN_F64, TN_I32, TN_U8, TN_I64, TN_I8};
  for (int round = 0; round < 120; ++round) {
    const tn_dtype_t dtype = dtypes[round % 8];
    geometry_t g = generate(dtype, true, round % 10 ? 40 : 700);
    const int64_t count = g.count * g.s.planes, outputs = g.outputs * g.s.planes;
    void *x = row_array(dtype, count, dtype == TN_U8 ? 0 : -9, 9),
         *dout = row_array(dtype, outputs, 0, 5);
    if (dtype == TN_F32 && round % 3 == 0) ((float*)x)[test_between(0, count - 1)] = NAN;
    void *out = zeros(dtype, outputs), *dx = zeros(dtype, count);
    int64_t* indices = zeros(TN_I64, outputs);
    double* sums = calloc((size_t)count + 1, 8);
    tn_window_max_pool(test_pool(1 + round % 3), &g.s, x, out, indices);
    tn_window_max_pool_backward(test_pool(1 + round % 3), &g.s, dout, indices, dx);
    bool is_good = true;
    for (int64_t o = 0; o < outputs && is_good; ++o) {
      double best = 0;
      int64_t at = -1, position;
      const int64_t plane = o / g.outputs * g.count;
      for (taps_t t = {0}; next_tap(&g.s, &t, o % g.outputs, &position);) {
        const double v = row_at(dtype, x, plane + position);
        if (at < 0 || (best == best && (v > best || v != v))) best = v, at = position;
      }
      is_good = at == indices[o] && row_near(best, row_at(dtype, out, o), 0);
      sums[plane + at] += row_at(dtype, dout, o);
    }
    TN_EXPECT(is_good);
    if (tn_dtype_is_float(dtype))
      row_expect("max pool backward", dtype, count, sums, dx, row_eps(dtype) * 4);
    free(x), free(dout), free(out), free(dx), free(indices), free(sums);
  }
  // A window wider than the stage of converted elements.
  tn_pooling_t s = {.dtype = TN_BF16,
                    .spatial = 1,
                    .planes = 1,
                    .size = {3000},
                    .out_size = {2},
                    .kernel = {2000},
                    .stride = {1000},
                    .dilation = {1}};
  void* x = row_array(TN_BF16, 3000, 0, 1);
  uint16_t out[2];
  tn_window_max_pool(NULL, &s, x, out, NULL);
  double best = 0;
  for (int i = 0; i < 2000; ++i) best = fmax(best, row_at(TN_BF16, x, i));
  TN_EXPECT(row_at(TN_BF16, out, 0) == best);
  free(x);
}

TN_TEST(avg_pool_and_gradient) {
  for (int round = 0; round < 120; ++round) {
    const tn_dtype_t dtype = row_dtypes[round % 4];
    geometry_t g = generate(dtype, false, round % 10 ? 40 : 700);
    g.s.count_include_pad = round & 4;
    g.s.divisor = round % 7 ? 0 : 5;
    const int64_t count = g.count * g.s.planes, outputs = g.outputs * g.s.planes;
    void *x = row_array(dtype, count, -3, 3), *dout = row_array(dtype, outputs, -1, 1);
    void *out = zeros(dtype, outputs), *dx = zeros(dtype, count), *dx2 = zeros(dtype, count);
    double *means = calloc((size_t)outputs + 1, 8), *sums = calloc((size_t)count + 1, 8);
    tn_window_avg_pool(test_pool(1 + round % 3), &g.s, x, out);
    tn_window_avg_pool_backward(test_pool(2), &g.s, dout, dx);
    tn_window_avg_pool_backward(NULL, &g.s, dout, dx2);
    row_expect_same("avg pool backward", dx, dx2, (size_t)count * tn_dtype_size(dtype));
    for (int64_t o = 0; o < outputs; ++o) {
      int64_t position, inside = 0, padded = 1, at[3];
      const int64_t plane = o / g.outputs * g.count;
      for (taps_t t = {0}; next_tap(&g.s, &t, o % g.outputs, &position); ++inside)
        means[o] += row_at(dtype, x, plane + position);
      split(o % g.outputs, g.s.out_size, g.s.spatial, at);
      for (int i = 0; i < g.s.spatial; ++i) {
        const int64_t start = at[i] * g.s.stride[i] - g.s.padding[i],
                      limit = g.s.size[i] + g.s.padding[i];
        padded *= (start + g.s.kernel[i] < limit ? start + g.s.kernel[i] : limit) - start;
      }
      const double divisor = (double)(g.s.divisor             ? g.s.divisor
                                      : g.s.count_include_pad ? padded
                                                              : inside);
      means[o] /= divisor;
      for (taps_t t = {0}; next_tap(&g.s, &t, o % g.outputs, &position);)
        sums[plane + position] += row_at(dtype, dout, o) / divisor;
    }
    row_expect("avg pool", dtype, outputs, means, out, row_eps(dtype) * 4);
    row_expect("avg pool backward", dtype, count, sums, dx, row_eps(dtype) * 4);
    free(x), free(dout), free(out), free(dx), free(dx2), free(means), free(sums);
  }
}

TN_TEST(adaptive_pools) {
  for (int round = 0; round < 60; ++round) {
    const tn_dtype_t dtype = row_dtypes[round % 4];
    geometry_t g = {
        .s = {.dtype = dtype, .spatial = (int)test_between(1, 3), .planes = test_between(1, 5)}};
    g.count = g.outputs = 1;
    for (int i = 0; i < g.s.spatial; ++i) {
      g.s.size[i] = test_between(1, i == g.s.spatial - 1 && round % 9 == 0 ? 3000 : 12);
      g.s.out_size[i] = test_between(1, 9);
      g.count *= g.s.size[i];
      g.outputs *= g.s.out_size[i];
    }
    const int64_t count = g.count * g.s.planes, outputs = g.outputs * g.s.planes;
    void *x = row_array(dtype, count, -3, 3), *dout = row_array(dtype, outputs, -1, 1);
    void *out = zeros(dtype, outputs), *dx = zeros(dtype, count), *most = zeros(dtype, outputs);
    int64_t* indices = zeros(TN_I64, outputs);
    double *means = calloc((size_t)outputs + 1, 8), *sums = calloc((size_t)count + 1, 8),
           *high = calloc((size_t)outputs + 1, 8);
    tn_window_adaptive_avg_pool(test_pool(1 + round % 3), &g.s, x, out);
    tn_window_adaptive_max_pool(test_pool(1 + round % 3), &g.s, x, most, indices);
    tn_window_adaptive_avg_pool_backward(test_pool(1 + round % 3), &g.s, dout, dx);
    for (int64_t o = 0; o < outputs; ++o) {
      int64_t at[3], p[3];
      split(o % g.outputs, g.s.out_size, g.s.spatial, at);
      double n = 1;
      high[o] = -INFINITY;
      for (int i = 0; i < g.s.spatial; ++i)
        n *= (double)(((at[i] + 1) * g.s.size[i] + g.s.out_size[i] - 1) / g.s.out_size[i] -
                      at[i] * g.s.size[i] / g.s.out_size[i]);
      for (int64_t e = 0; e < g.count; ++e) {
        split(e, g.s.size, g.s.spatial, p);
        bool inside = true;
        for (int i = 0; i < g.s.spatial; ++i)
          inside = inside && p[i] >= at[i] * g.s.size[i] / g.s.out_size[i] &&
                   p[i] < ((at[i] + 1) * g.s.size[i] + g.s.out_size[i] - 1) / g.s.out_size[i];
        if (!inside) continue;
        const double v = row_at(dtype, x, o / g.outputs * g.count + e);
        means[o] += v / n;
        high[o] = fmax(high[o], v);
        sums[o / g.outputs * g.count + e] += row_at(dtype, dout, o) / n;
      }
      TN_EXPECT(row_at(dtype, x, o / g.outputs * g.count + indices[o]) == high[o]);
    }
    row_expect("adaptive avg", dtype, outputs, means, out, row_eps(dtype) * 4);
    row_expect("adaptive max", dtype, outputs, high, most, 0);
    row_expect("adaptive avg backward", dtype, count, sums, dx, row_eps(dtype) * 8);
    free(x), free(dout), free(out), free(dx), free(most), free(indices), free(means), free(sums),
        free(high);
  }
}

TN_TEST(generic_windows) {
  const tn_dtype_t dtypes[] = {TN_F32, TN_BF16, TN_I32, TN_U8, TN_F64, TN_I8, TN_BOOL};
  for (int round = 0; round < 140; ++round) {
    const tn_dtype_t dtype = dtypes[round % 7];
    const int rank = (int)test_between(0, 3);
    tn_window_t w;
    memset(&w, 0, sizeof w);
    int64_t dims[3], out_dims[3];
    const bool is_select = round % 3 == 0 && dtype != TN_BOOL;
    for (int i = 0; i < rank; ++i) {
      w.size[i] = test_between(1, 3), w.stride[i] = test_between(1, 3);
      w.low[i] = test_between(0, 2), w.high[i] = test_between(0, 2);
      w.base_dilation[i] = is_select ? 1 : test_between(1, 2),
      w.window_dilation[i] = is_select ? 1 : test_between(1, 2);
      dims[i] = test_between(1, round % 10 ? 7 : 40);
      const int64_t spread = (dims[i] - 1) * w.base_dilation[i] + 1 + w.low[i] + w.high[i];
      const int64_t reach = (w.size[i] - 1) * w.window_dilation[i] + 1;
      out_dims[i] = spread < reach ? 0 : (spread - reach) / w.stride[i] + 1;
    }
    test_array_t x = test_array(dtype, rank, dims, 2),
                 out = test_array(dtype, rank, is_select ? dims : out_dims, 1);
    test_array_t source = test_array(dtype, rank, out_dims, 1);
    const tn_reduce_kind_t kind = is_select          ? (round & 1 ? TN_REDUCE_MAX : TN_REDUCE_MIN)
                                  : dtype == TN_BOOL ? TN_REDUCE_OR
                                                     : (tn_reduce_kind_t)(round / 7 % 4);
    double* sums = calloc((size_t)tn_view_element_count(&x.view) + 1, 8);
    if (is_select) {
      tn_window_select_and_scatter(test_pool(1 + round % 3), kind, &x.view, &source.view, &w,
                                   &out.view);
    } else {
      tn_window_reduce(test_pool(1 + round % 3), kind, &x.view, &w, &out.view);
    }
    int64_t at[TN_MAX_RANK] = {0};
    if (tn_view_element_count(&source.view)) {
      do {
        int64_t in[TN_MAX_RANK] = {0}, chosen = -1;
        tn_view_t window_view = tn_view_make(NULL, dtype, rank, w.size, NULL);
        double value = kind == TN_REDUCE_PROD  ? 1
                       : kind == TN_REDUCE_MAX ? -INFINITY
                       : kind == TN_REDUCE_MIN ? INFINITY
                                               : 0;
        do {
          int64_t from[TN_MAX_RANK] = {0}, flat = 0;
          bool inside = true;
          for (int i = 0; i < rank; ++i) {
            const int64_t p = at[i] * w.stride[i] + in[i] * w.window_dilation[i] - w.low[i];
            inside =
                inside && p >= 0 && p % w.base_dilation[i] == 0 && p / w.base_dilation[i] < dims[i];
            from[i] = p / w.base_dilation[i];
            flat = flat * dims[i] + from[i];
          }
          if (!inside) continue;
          const double v = tn_scalar_to_double(dtype, test_get(&x.view, from));
          const bool beyond = kind == TN_REDUCE_MAX ? v > value : v < value;
          if (kind == TN_REDUCE_MAX || kind == TN_REDUCE_MIN) {
            if (beyond || chosen < 0) value = v, chosen = flat;
          } else {
            value = kind == TN_REDUCE_SUM    ? value + v
                    : kind == TN_REDUCE_PROD ? value * v
                                             : (value || v);
          }
        } while (test_next(&window_view, in));
        if (is_select) {
          if (chosen >= 0) sums[chosen] += tn_scalar_to_double(dtype, test_get(&source.view, at));
        } else if (fabs(value) < 1e15) {
          tn_scalar_t got = test_get(&out.view, at), expected = tn_scalar_from_double(dtype, value);
          if (!row_near(tn_scalar_to_double(dtype, expected), tn_scalar_to_double(dtype, got),
                        tn_dtype_is_float(dtype) ? row_eps(dtype) * 20 : 0)) {
            fprintf(stderr, "reduce_window kind %d %s: %g %g\n", kind, tn_dtype_name(dtype), value,
                    tn_scalar_to_double(dtype, got));
            TN_EXPECT(!"reduce_window");
          }
        }
      } while (test_next(&source.view, at));
    }
    if (is_select) {
      int64_t flat = 0;
      memset(at, 0, sizeof at);
      do {
        const double got = tn_scalar_to_double(dtype, test_get(&out.view, at));
        const double expected =
            tn_scalar_to_double(dtype, tn_scalar_from_double(dtype, sums[flat++]));
        TN_EXPECT(row_near(expected, got, tn_dtype_is_float(dtype) ? row_eps(dtype) * 8 : 0));
      } while (test_next(&out.view, at));
    }
    test_array_free(&x), test_array_free(&out), test_array_free(&source), free(sums);
  }
}
