// Convolution kernels against the definition, over generated shapes, and equal bits for any thread count.
#include "tests/c/test.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/conv.h"

static uint32_t g_seed = 1;
static float random_value(void) {
  g_seed = g_seed * 1664525u + 1013904223u;
  return (float)(int32_t)(g_seed >> 8 & 0xffff) / 32768.0f - 1.0f;
}
static int64_t pick(int64_t low, int64_t high) {
  g_seed = g_seed * 1664525u + 1013904223u;
  return low + (int64_t)(g_seed >> 10) % (high - low + 1);
}

static int64_t elements(int64_t lead, const int64_t* dims, int count) {
  for (int d = 0; d < count; ++d) lead *= dims[d];
  return lead;
}

// Visits every product of the convolution: y[yi] += x[xi] * weight[wi].
typedef void (*visit_t)(int64_t yi, int64_t xi, int64_t wi, const float* a, const float* b, double* out);
static void walk(const tn_conv_shape_t* s, visit_t visit, const float* a, const float* b, double* out) {
  int64_t size[3] = {1, 1, 1}, osize[3] = {1, 1, 1}, win[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, low[3] = {0}, dil[3] = {1, 1, 1};
  for (int d = 0; d < s->spatial; ++d) {
    size[d] = s->size[d];
    osize[d] = s->out_size[d];
    win[d] = s->window[d];
    stride[d] = s->stride[d];
    low[d] = s->low[d];
    dil[d] = s->dilation[d];
  }
  const int64_t gc = s->c / s->groups, go = s->o / s->groups;
  for (int64_t n = 0; n < s->n; ++n)
    for (int64_t o = 0; o < s->o; ++o)
      for (int64_t p0 = 0; p0 < osize[0]; ++p0)
        for (int64_t p1 = 0; p1 < osize[1]; ++p1)
          for (int64_t p2 = 0; p2 < osize[2]; ++p2)
            for (int64_t c = 0; c < gc; ++c)
              for (int64_t t0 = 0; t0 < win[0]; ++t0)
                for (int64_t t1 = 0; t1 < win[1]; ++t1)
                  for (int64_t t2 = 0; t2 < win[2]; ++t2) {
                    const int64_t i0 = p0 * stride[0] - low[0] + t0 * dil[0], i1 = p1 * stride[1] - low[1] + t1 * dil[1],
                                  i2 = p2 * stride[2] - low[2] + t2 * dil[2];
                    if (i0 < 0 || i0 >= size[0] || i1 < 0 || i1 >= size[1] || i2 < 0 || i2 >= size[2]) continue;
                    const int64_t channel = o / go * gc + c;
                    visit((((n * s->o + o) * osize[0] + p0) * osize[1] + p1) * osize[2] + p2,
                          (((n * s->c + channel) * size[0] + i0) * size[1] + i1) * size[2] + i2,
                          (((o * gc + c) * win[0] + t0) * win[1] + t1) * win[2] + t2, a, b, out);
                  }
}
static void to_y(int64_t yi, int64_t xi, int64_t wi, const float* x, const float* w, double* y) { y[yi] += (double)x[xi] * w[wi]; }
static void to_x(int64_t yi, int64_t xi, int64_t wi, const float* g, const float* w, double* dx) { dx[xi] += (double)g[yi] * w[wi]; }
static void to_w(int64_t yi, int64_t xi, int64_t wi, const float* g, const float* x, double* dw) { dw[wi] += (double)g[yi] * x[xi]; }

static float* random_array(int64_t count) {
  float* a = malloc(sizeof(float) * (size_t)(count + 1));
  for (int64_t i = 0; i < count; ++i) a[i] = random_value();
  return a;
}

static void expect_close(const double* expected, const float* actual, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (!(fabs(expected[i] - (double)actual[i]) <= 1e-4 * (1.0 + fabs(expected[i])))) {
      TN_EXPECT(false);
      fprintf(stderr, "[%lld] %g %g\n", (long long)i, expected[i], (double)actual[i]);
      return;
    }
}

typedef void (*kernel_t)(tn_pool_t*, const tn_conv_shape_t*, const void*, const void*, void*, void*);
static void forward(tn_pool_t* pool, const tn_conv_shape_t* s, const void* a, const void* b, void* w, void* out) {
  tn_conv_forward(pool, s, a, b, NULL, w, out);
}

static void check(const tn_conv_shape_t* s, visit_t visit, kernel_t kernel, size_t (*workspace)(const tn_conv_shape_t*, int),
                  int64_t a_count, int64_t b_count, int64_t out_count) {
  float *a = random_array(a_count), *b = random_array(b_count);
  double* expected = calloc((size_t)out_count + 1, sizeof(double));
  float* first = calloc((size_t)out_count + 1, sizeof(float));
  float* again = calloc((size_t)out_count + 1, sizeof(float));
  walk(s, visit, a, b, expected);
  for (int threads = 1; threads <= 3; ++threads) {
    tn_pool_t* pool = NULL;
    TN_EXPECT_OK(tn_pool_create(threads, &pool));
    void* scratch = aligned_alloc(64, (workspace(s, threads) + 127) & ~(size_t)63);
    kernel(pool, s, a, b, scratch, threads == 1 ? first : again);
    if (threads == 1) {
      expect_close(expected, first, out_count);
    } else {
      TN_EXPECT(memcmp(first, again, sizeof(float) * (size_t)out_count) == 0);
    }
    free(scratch);
    tn_pool_destroy(pool);
  }
  free(a);
  free(b);
  free(expected);
  free(first);
  free(again);
}

TN_TEST(forward_and_gradients_follow_the_definition) {
  for (int trial = 0; trial < 60; ++trial) {
    tn_conv_shape_t s = {.dtype = TN_F32, .spatial = (int)pick(1, 3), .n = pick(0, 3), .groups = pick(1, 2)};
    s.c = s.groups * pick(1, 4);
    s.o = s.groups * pick(1, 5);
    for (int d = 0; d < s.spatial; ++d) {
      s.window[d] = pick(1, 3);
      s.stride[d] = pick(1, 3);
      s.dilation[d] = pick(1, 2);
      s.low[d] = pick(0, 2);
      const int64_t reach = (s.window[d] - 1) * s.dilation[d] + 1;
      s.size[d] = pick(reach, reach + 7);
      s.out_size[d] = (s.size[d] + 2 * s.low[d] - reach) / s.stride[d] + 1;
    }
    const int64_t x = elements(s.n * s.c, s.size, s.spatial), y = elements(s.n * s.o, s.out_size, s.spatial),
                  w = elements(s.o * (s.c / s.groups), s.window, s.spatial);
    check(&s, to_y, forward, tn_conv_forward_workspace, x, w, y);
    check(&s, to_x, tn_conv_backward_input, tn_conv_backward_input_workspace, y, w, x);
    check(&s, to_w, tn_conv_backward_weight, tn_conv_backward_weight_workspace, y, x, w);
  }
}
