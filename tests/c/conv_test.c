// Convolutions against a plain loop in the order of kernels/conv.h (bit for bit), and gradients against sums in f64.
#include "kernels/conv.h"

#include <math.h>
#include <stdlib.h>

#include "ir/float_bits.h"
#include "tests/c/test.h"

static uint64_t random_state = 7;
static int64_t random_below(int64_t limit) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((random_state >> 33) % (uint64_t)limit);
}

static double get(tn_dtype_t dtype, const void* data, int64_t i) {
  switch (dtype) {
    case TN_F16: return tn_f16_to_f32(((const uint16_t*)data)[i]);
    case TN_BF16: return tn_bf16_to_f32(((const uint16_t*)data)[i]);
    case TN_F32: return ((const float*)data)[i];
    default: return ((const double*)data)[i];
  }
}
static void put(tn_dtype_t dtype, void* data, int64_t i, double value) {
  switch (dtype) {
    case TN_F16: ((uint16_t*)data)[i] = tn_f32_to_f16((float)value); break;
    case TN_BF16: ((uint16_t*)data)[i] = tn_f32_to_bf16((float)value); break;
    case TN_F32: ((float*)data)[i] = (float)value; break;
    default: ((double*)data)[i] = value;
  }
}

// Memory of one operand: dims in the order of |order| (outermost first), with optional gaps.
static void* make(tn_dtype_t dtype, int rank, const int64_t* dims, const int* order, int64_t pad,
                  int64_t* strides, int64_t* out_count) {
  int64_t size = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[order[i]] = size;
    size = size * dims[order[i]] + (i == rank - 1 ? pad : 0);
  }
  *out_count = size + 1;
  char* data = malloc((size_t)(size + 1) * tn_dtype_size(dtype));
  for (int64_t i = 0; i <= size; ++i)
    put(dtype, data, i, (double)(random_below(20001) - 10000) / 10000.0);
  return data;
}

typedef struct tn_case {
  tn_convolve_t f;
  void *in, *weight, *out;
  int64_t in_count, weight_count, out_count;
} tn_case_t;

// |layout| 0: channels first, 1: channels last, 2: channels first with gaps.
static tn_case_t make_case(tn_convolve_t f, int layout) {
  tn_case_t c = {0};
  for (int a = 0; a < f.spatial; ++a) {
    const int64_t span =
        (f.in_dims[a] - 1) * f.in_dilation[a] + 1 + f.low[a] + random_below(2) * f.low[a];
    const int64_t needed = (f.kernel[a] - 1) * f.dilation[a] + 1;
    f.out_dims[a] = span < needed ? 1 : (span - needed) / f.stride[a] + 1;
  }
  const int rank = f.spatial + 2;
  int order[5] = {0};
  for (int i = 0; i < rank; ++i)
    order[i] = layout != 1 ? i : i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
  int64_t strides[5], dims[5];
  const int64_t pad = layout == 2 ? 3 : 0;
  dims[0] = f.batch, dims[1] = f.groups * f.in_channels;
  for (int a = 0; a < f.spatial; ++a) dims[2 + a] = f.in_dims[a];
  c.in = make(f.dtype, rank, dims, order, pad, strides, &c.in_count);
  f.in = c.in, f.in_batch = strides[0], f.in_channel = strides[1],
  f.in_group = strides[1] * f.in_channels;
  for (int a = 0; a < f.spatial; ++a) f.in_strides[a] = strides[2 + a];
  dims[0] = f.groups * f.out_channels, dims[1] = f.in_channels;
  for (int a = 0; a < f.spatial; ++a) dims[2 + a] = f.kernel[a];
  c.weight = make(f.dtype, rank, dims, order, pad, strides, &c.weight_count);
  f.weight = c.weight, f.weight_out = strides[0], f.weight_in = strides[1];
  f.weight_group = strides[0] * f.out_channels;
  for (int a = 0; a < f.spatial; ++a) f.weight_strides[a] = strides[2 + a];
  dims[0] = f.batch, dims[1] = f.groups * f.out_channels;
  for (int a = 0; a < f.spatial; ++a) dims[2 + a] = f.out_dims[a];
  c.out = make(f.out_dtype, rank, dims, order, pad, strides, &c.out_count);
  f.out = c.out, f.out_batch = strides[0], f.out_channel = strides[1],
  f.out_group = strides[1] * f.out_channels;
  for (int a = 0; a < f.spatial; ++a) f.out_strides[a] = strides[2 + a];
  c.f = f;
  return c;
}
static void free_case(tn_case_t* c) { free(c->in), free(c->weight), free(c->out); }

// One result in the documented order; |exact| instead sums in f64.
static double reference_at(const tn_convolve_t* g, int64_t n, int64_t group, int64_t o,
                           const int64_t* p, bool exact) {
  int64_t taps = 1, pixels = g->batch;
  int64_t t0[3] = {0}, period[3] = {1, 1, 1}, count[3] = {1, 1, 1};
  for (int a = 0; a < g->spatial; ++a) {
    const int64_t d = g->in_dilation[a], first = p[a] % d;
    while (t0[a] < g->kernel[a] &&
           (first * g->stride[a] + t0[a] * g->dilation[a] - g->low[a]) % d != 0)
      ++t0[a];
    while (period[a] * g->dilation[a] % d != 0) ++period[a];
    count[a] = t0[a] < g->kernel[a] ? (g->kernel[a] - t0[a] + period[a] - 1) / period[a] : 0;
    taps *= count[a];
    pixels *= (g->out_dims[a] - first + d - 1) / d;
  }
  const int64_t k_count = taps * g->in_channels;
  const int64_t slice =
      k_count ? tn_conv_slice_length(pixels * g->groups * g->out_channels, k_count) : 1;
  float total = 0, slice_sum = 0, block = 0;
  double total64 = 0, slice64 = 0, block64 = 0, sum = 0;
  bool first_slice = true, first_block = true;
  for (int64_t k = 0; k < k_count; ++k) {
    const int64_t c = k / taps;
    int64_t t = k % taps, tap[3] = {0};
    for (int a = g->spatial - 1; a >= 0; --a) {
      tap[a] = t0[a] + t % count[a] * period[a];
      t /= count[a];
    }
    int64_t in = n * g->in_batch + group * g->in_group + c * g->in_channel;
    int64_t weight = group * g->weight_group + o * g->weight_out + c * g->weight_in;
    bool inside = true;
    for (int a = 0; a < g->spatial; ++a) {
      const int64_t x = p[a] * g->stride[a] + tap[a] * g->dilation[a] - g->low[a];
      inside = inside && x >= 0 && x / g->in_dilation[a] < g->in_dims[a];
      in += x / g->in_dilation[a] * g->in_strides[a];
      weight += tap[a] * g->weight_strides[a];
    }
    const double x = inside ? get(g->dtype, g->in, in) : 0, w = get(g->dtype, g->weight, weight);
    sum += x * w;
    block = fmaf((float)w, (float)x, block);
    block64 = fma(w, x, block64);
    const bool ends_slice = (k + 1) % slice == 0 || k + 1 == k_count;
    if (ends_slice || (k % slice + 1) % TN_GEMM_BLOCK == 0) {
      slice_sum = first_block ? block : slice_sum + block;
      slice64 = first_block ? block64 : slice64 + block64;
      block = 0, block64 = 0, first_block = false;
    }
    if (ends_slice) {
      total = first_slice ? slice_sum : total + slice_sum;
      total64 = first_slice ? slice64 : total64 + slice64;
      first_slice = false, first_block = true;
    }
  }
  if (exact) return sum;
  const double bias =
      g->bias ? get(g->out_dtype, g->bias, group * g->bias_group + o * g->bias_stride) : 0;
  if (g->dtype == TN_F64) return total64 + bias;
  return g->bias ? total + (float)bias : total;
}

static tn_pool_t* pools[3];

static void run(const tn_convolve_t* g, tn_pool_t* pool, int threads) {
  const size_t size = tn_conv_workspace(g, threads);
  void* workspace = aligned_alloc(64, (size + 127) & ~(size_t)63);
  memset(workspace, 0xff, size);
  tn_conv_run(g, pool, workspace);
  free(workspace);
}

// Runs |g| at all thread counts into |out| of |count| elements; compares all results.
static void check(tn_convolve_t g, void* out, int64_t count, const char* what) {
  const size_t size = tn_dtype_size(g.out_dtype);
  char *expected = malloc((size_t)count * size), *initial = malloc((size_t)count * size);
  memcpy(initial, out, (size_t)count * size);
  memcpy(expected, out, (size_t)count * size);
  // One tap and no padding is a matrix product with its own order: compared within rounding.
  bool is_bitwise = false;
  for (int a = 0; a < g.spatial; ++a) is_bitwise = is_bitwise || g.kernel[a] != 1 || g.low[a] != 0;
  const int64_t dims[3] = {g.out_dims[0], g.spatial > 1 ? g.out_dims[1] : 1,
                           g.spatial > 2 ? g.out_dims[2] : 1};
  for (int i = 0; i < 4; ++i) {
    memcpy(out, initial, (size_t)count * size);
    run(&g, i ? pools[i - 1] : NULL, i ? i : 1);
    if (i == 0) {
      for (int64_t n = 0; n < g.batch; ++n) {
        for (int64_t q = 0; q < g.groups; ++q) {
          for (int64_t o = 0; o < g.out_channels; ++o) {
            for (int64_t t = 0; t < dims[0] * dims[1] * dims[2]; ++t) {
              const int64_t p[3] = {t / dims[2] / dims[1], t / dims[2] % dims[1], t % dims[2]};
              int64_t at = n * g.out_batch + q * g.out_group + o * g.out_channel;
              for (int a = 0; a < g.spatial; ++a) at += p[a] * g.out_strides[a];
              const double value = reference_at(&g, n, q, o, p, false);
              put(g.out_dtype, expected, at, value);
              if (!is_bitwise && fabs(value - get(g.out_dtype, out, at)) <= 0.02) {
                memcpy(expected + at * (int64_t)size, (char*)out + at * (int64_t)size, size);
              }
            }
          }
        }
      }
    }
    if (memcmp(expected, out, (size_t)count * size) != 0) {
      int64_t at = 0;
      while (memcmp(expected + at * (int64_t)size, (char*)out + at * (int64_t)size, size) == 0)
        ++at;
      fprintf(stderr,
              "%s %s n %lld g %lld c %lld o %lld in %lldx%lldx%lld k %lldx%lldx%lld s %lld d %lld "
              "id %lld low %lld threads %d: element %lld of %lld: %.9g, got %.9g\n",
              what, tn_dtype_name(g.dtype), (long long)g.batch, (long long)g.groups,
              (long long)g.in_channels, (long long)g.out_channels, (long long)g.in_dims[0],
              (long long)g.in_dims[1], (long long)g.in_dims[2], (long long)g.kernel[0],
              (long long)g.kernel[1], (long long)g.kernel[2], (long long)g.stride[0],
              (long long)g.dilation[0], (long long)g.in_dilation[0], (long long)g.low[0], i,
              (long long)at, (long long)count, get(g.out_dtype, expected, at),
              get(g.out_dtype, out, at));
      ++tn_test_failures;
      break;
    }
  }
  free(expected), free(initial);
}

static tn_convolve_t random_geometry(void) {
  static const int64_t kChannels[] = {1, 2, 3, 4, 7, 8, 16, 20};
  static const int64_t kSizes[3][4] = {{1, 7, 20, 45}, {3, 6, 8, 13}, {2, 3, 4, 5}};
  tn_convolve_t f = {.spatial = 1 + (int)random_below(3)};
  f.batch = 1 + random_below(4);
  f.groups = random_below(3) ? 1 : 1 + random_below(4);
  f.in_channels = kChannels[random_below(8)], f.out_channels = kChannels[random_below(8)];
  if (random_below(6) == 0) f.in_channels = f.out_channels = 1, f.groups = 5;
  for (int a = 0; a < f.spatial; ++a) {
    f.in_dims[a] = kSizes[f.spatial - 1][random_below(4)];
    f.kernel[a] = 1 + random_below(f.spatial == 3 ? 3 : 5);
    f.stride[a] = 1 + (random_below(3) == 0) * random_below(3);
    f.dilation[a] = 1 + (random_below(4) == 0) * random_below(3);
    f.in_dilation[a] = 1;
    f.low[a] = random_below(3);
    // At least one position.
    const int64_t needed = (f.kernel[a] - 1) * f.dilation[a] + 1;
    if (f.in_dims[a] + f.low[a] < needed) f.in_dims[a] = needed;
  }
  return f;
}

TN_TEST(forward_and_gradients_bitwise) {
  for (int i = 0; i < 3; ++i) TN_EXPECT_OK(tn_pool_create(i + 1, &pools[i]));
  static const tn_dtype_t kTypes[] = {TN_F32, TN_F32, TN_F32, TN_BF16, TN_F16, TN_F64};
  for (int i = 0; i < 150 && tn_test_failures < 5; ++i) {
    tn_convolve_t f = random_geometry();
    f.dtype = f.out_dtype = kTypes[i % 6];
    if (f.dtype == TN_BF16 && i % 4 == 0) f.out_dtype = TN_F32;
    tn_case_t c = make_case(f, (int)random_below(3));
    void* bias = NULL;
    if (random_below(2)) {
      bias = malloc((size_t)(c.f.groups * c.f.out_channels) * 8);
      for (int64_t j = 0; j < c.f.groups * c.f.out_channels; ++j)
        put(c.f.out_dtype, bias, j, (double)random_below(99) / 7);
      c.f.bias = bias, c.f.bias_stride = 1, c.f.bias_group = c.f.out_channels;
    }
    check(c.f, c.out, c.out_count, "forward");
    c.f.out_dtype =
        c.f.dtype;  // |out| is random data of some dtype no wider than allocated; refill it
    free(c.out);
    c.out = malloc((size_t)c.out_count * 8);
    for (int64_t j = 0; j < c.out_count; ++j)
      put(c.f.dtype, c.out, j, (double)(random_below(2001) - 1000) / 1000);
    check(tn_conv_backward_data(&c.f, c.out, c.in), c.in, c.in_count, "data");
    check(tn_conv_backward_weight(&c.f, c.out, c.weight), c.weight, c.weight_count, "weight");
    free(bias);
    free_case(&c);
  }
}

// <out, forward(in, w)> = <backward_data(out, w), in> = <backward_weight(out, in), w>, in f64.
TN_TEST(gradients_are_adjoint) {
  for (int i = 0; i < 40; ++i) {
    tn_convolve_t f = random_geometry();
    f.dtype = f.out_dtype = TN_F64;
    tn_case_t c = make_case(f, (int)random_below(2));
    double* out = malloc((size_t)c.out_count * 8);
    memcpy(out, c.out, (size_t)c.out_count * 8);
    double* grad = c.out;
    tn_convolve_t forward = c.f;
    forward.out = out;
    run(&forward, NULL, 1);
    double* grad_in = calloc((size_t)c.in_count, 8);
    double* grad_weight = calloc((size_t)c.weight_count, 8);
    tn_convolve_t data = tn_conv_backward_data(&c.f, grad, grad_in);
    tn_convolve_t weight = tn_conv_backward_weight(&c.f, grad, grad_weight);
    run(&data, NULL, 1);
    run(&weight, NULL, 1);
    double products[3] = {0};
    for (int64_t j = 0; j < c.out_count - 1; ++j) products[0] += out[j] * grad[j];
    for (int64_t j = 0; j < c.in_count - 1; ++j) products[1] += grad_in[j] * ((double*)c.in)[j];
    for (int64_t j = 0; j < c.weight_count - 1; ++j)
      products[2] += grad_weight[j] * ((double*)c.weight)[j];
    const double bound = 1e-9 * (1 + fabs(products[0])) * (double)c.out_count;
    TN_EXPECT(fabs(products[0] - products[1]) <= bound);
    TN_EXPECT(fabs(products[0] - products[2]) <= bound);
    free(out), free(grad_in), free(grad_weight);
    free_case(&c);
  }
}

TN_TEST(larger_shapes_bitwise) {
  static const int64_t kShapes[][6] = {// batch, c, o, size, kernel, stride
                                       {3, 40, 50, 14, 3, 1},
                                       {2, 64, 8, 8, 3, 2},
                                       {5, 3, 16, 30, 5, 2},
                                       {2, 33, 65, 7, 1, 1},
                                       {9, 16, 16, 8, 3, 1}};
  for (int i = 0; i < 10 && tn_test_failures < 5; ++i) {
    const int64_t* s = kShapes[i % 5];
    tn_convolve_t f = {.dtype = TN_F32,
                       .out_dtype = TN_F32,
                       .spatial = 2,
                       .batch = s[0],
                       .groups = 1,
                       .in_channels = s[1],
                       .out_channels = s[2]};
    for (int a = 0; a < 2; ++a) {
      f.in_dims[a] = s[3], f.kernel[a] = s[4], f.stride[a] = s[5], f.low[a] = s[4] / 2;
      f.dilation[a] = f.in_dilation[a] = 1;
    }
    tn_case_t c = make_case(f, i / 5);
    check(c.f, c.out, c.out_count, "forward");
    check(tn_conv_backward_data(&c.f, c.out, c.in), c.in, c.in_count, "data");
    check(tn_conv_backward_weight(&c.f, c.out, c.weight), c.weight, c.weight_count, "weight");
    free_case(&c);
  }
}
