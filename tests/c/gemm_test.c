// Matrix products against a plain loop that follows the order of sums in kernels/gemm.h: bit for bit.
#include "kernels/gemm.h"

#include <math.h>
#include <stdlib.h>

#include "ir/float_bits.h"
#include "tests/c/test.h"

static uint64_t random_state = 1;
static uint32_t random_u32(void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33);
}
static int64_t random_below(int64_t limit) { return (int64_t)(random_u32() % (uint32_t)limit); }

static void fill(tn_dtype_t dtype, void* data, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = (float)(int32_t)(random_u32() % 20001) / 10000.0f - 1.0f;
    switch (dtype) {
      case TN_F16: ((uint16_t*)data)[i] = tn_f32_to_f16(value); break;
      case TN_BF16: ((uint16_t*)data)[i] = tn_f32_to_bf16(value); break;
      case TN_F32: ((float*)data)[i] = value; break;
      case TN_F64: ((double*)data)[i] = (double)value * 1.0001; break;
      case TN_C64:
        ((float*)data)[2 * i] = value, ((float*)data)[2 * i + 1] = value * 0.75f - 0.1f;
        break;
      default:
        for (size_t b = 0; b < tn_dtype_size(dtype); ++b) {
          ((uint8_t*)data)[(size_t)i * tn_dtype_size(dtype) + b] =
              (uint8_t)(random_u32() & (dtype == TN_BOOL ? 1 : 255));
        }
    }
  }
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

// The order of kernels/gemm.h for one result, in f32 or f64.
#define REFERENCE(T, FMA, name)                                                                  \
  static T name(const tn_gemm_t* g, int64_t a, int64_t b, int64_t outputs) {                     \
    const int64_t slice = tn_gemm_slice_length(g->dtype, outputs, g->k);                         \
    T sum = 0;                                                                                   \
    for (int64_t s = 0; s < g->k; s += slice) {                                                  \
      T slice_sum = 0;                                                                           \
      const int64_t slice_end = s + slice < g->k ? s + slice : g->k;                             \
      for (int64_t k0 = s; k0 < slice_end; k0 += TN_GEMM_BLOCK) {                                \
        T lane[8] = {0};                                                                         \
        for (int64_t k = k0; k < slice_end && k < k0 + TN_GEMM_BLOCK; ++k) {                     \
          T* acc = &lane[g->m == 1 || g->n == 1 ? (k - k0) % 8 : 0];                             \
          *acc = FMA((T)get(g->dtype, g->a, a + k * g->a_col),                                   \
                     (T)get(g->dtype, g->b, b + k * g->b_row), *acc);                            \
        }                                                                                        \
        const T block = g->m == 1 || g->n == 1 ? ((lane[0] + lane[4]) + (lane[2] + lane[6])) +   \
                                                     ((lane[1] + lane[5]) + (lane[3] + lane[7])) \
                                               : lane[0];                                        \
        slice_sum = k0 == s ? block : slice_sum + block;                                         \
      }                                                                                          \
      sum = s == 0 ? slice_sum : sum + slice_sum;                                                \
    }                                                                                            \
    return sum;                                                                                  \
  }
REFERENCE(float, fmaf, reference_f32)
REFERENCE(double, fma, reference_f64)

// Element of c at its memory index -> expected value.
static void reference(const tn_gemm_t* g, void* c) {
  int64_t batch = 1;
  for (int i = 0; i < g->batch_rank; ++i) batch *= g->batch_dims[i];
  for (int64_t t = 0; t < batch; ++t) {
    int64_t at_a = 0, at_b = 0, at_c = 0, at_d = 0, rest = t;
    for (int d = g->batch_rank - 1; d >= 0; --d) {
      const int64_t position = rest % g->batch_dims[d];
      rest /= g->batch_dims[d];
      at_a += position * g->a_batch[d], at_b += position * g->b_batch[d];
      at_c += position * g->c_batch[d], at_d += position * g->addend_batch[d];
    }
    for (int64_t i = 0; i < g->m; ++i) {
      for (int64_t j = 0; j < g->n; ++j) {
        const int64_t a = at_a + i * g->a_row, b = at_b + j * g->b_col,
                      to = at_c + i * g->c_row + j * g->c_col;
        const int64_t d = at_d + i * g->addend_row + j * g->addend_col;
        if (g->dtype == TN_F64) {
          double v = reference_f64(g, a, b, batch * g->m * g->n);
          if (g->alpha != 0) v *= (double)g->alpha;
          if (g->addend) v = fma((double)g->beta, get(TN_F64, g->addend, d), v);
          if (g->bias) v += get(TN_F64, g->bias, j * g->bias_stride);
          if (g->row_bias) v += get(TN_F64, g->row_bias, i * g->row_bias_stride);
          if (g->activation == TN_ACTIVATION_RELU) v = v < 0 ? 0 : v;
          put(TN_F64, c, to, v);
        } else {
          float v = reference_f32(g, a, b, batch * g->m * g->n);
          if (g->alpha != 0) v *= g->alpha;
          if (g->addend) v = fmaf(g->beta, (float)get(g->out_dtype, g->addend, d), v);
          if (g->bias) v += (float)get(g->out_dtype, g->bias, j * g->bias_stride);
          if (g->row_bias) v += (float)get(g->out_dtype, g->row_bias, i * g->row_bias_stride);
          if (g->activation == TN_ACTIVATION_RELU) v = v < 0 ? 0 : v;
          put(g->out_dtype, c, to, (double)v);
        }
      }
    }
  }
}

static tn_pool_t* pools[3];
static void make_pools(void) {
  for (int i = 0; i < 3; ++i) {
    if (pools[i] == NULL) TN_EXPECT_OK(tn_pool_create(i + 1, &pools[i]));
  }
}

static void run(const tn_gemm_t* g, tn_pool_t* pool, int threads) {
  const size_t size = tn_gemm_workspace(g, threads);
  void* workspace = aligned_alloc(64, (size + 127) & ~(size_t)63);
  memset(workspace, 0xff, size);  // NaN: nothing may be read before it is written
  tn_gemm_run(g, pool, workspace);
  free(workspace);
}

// Strides of a [outer.., rows, cols] array in one of several layouts; returns the elements it spans.
static int64_t choose_layout(int batch_rank, const int64_t* batch_dims, int64_t rows, int64_t cols,
                             bool may_repeat, int64_t* batch, int64_t* row, int64_t* col,
                             int64_t* offset) {
  const int kind = (int)random_below(may_repeat ? 6 : 4);
  *offset = 0;
  const int64_t pad = random_below(3) * random_below(9);
  if (kind == 1 || kind == 3) {  // column-major
    *row = 1, *col = rows + pad;
  } else {
    *row = cols + pad, *col = 1;
  }
  if (kind == 2 || kind == 3) *row *= 2, *col *= 2;
  int64_t size = (rows - 1) * *row + (cols - 1) * *col + 1;
  if (kind == 5) *row = 0;
  if (size < 1) size = 1;
  int64_t total = size + pad;
  for (int i = batch_rank - 1; i >= 0; --i) {
    batch[i] = may_repeat && random_below(4) == 0 ? 0 : total;
    total *= batch_dims[i] ? batch_dims[i] : 1;
  }
  if (may_repeat && random_below(5) == 0 && rows > 0) {  // backwards
    *offset = (rows - 1) * *row;
    *row = -*row;
  }
  return total + 8;
}

static void check_case(tn_gemm_t g, bool with_epilogue) {
  int64_t oa, ob, oc, od = 0;
  const size_t in = tn_dtype_size(g.dtype), out = tn_dtype_size(g.out_dtype);
  const int64_t na =
      choose_layout(g.batch_rank, g.batch_dims, g.m, g.k, true, g.a_batch, &g.a_row, &g.a_col, &oa);
  const int64_t nb =
      choose_layout(g.batch_rank, g.batch_dims, g.k, g.n, true, g.b_batch, &g.b_row, &g.b_col, &ob);
  const int64_t nc = choose_layout(g.batch_rank, g.batch_dims, g.m, g.n, false, g.c_batch, &g.c_row,
                                   &g.c_col, &oc);
  int64_t nd = 1;
  char *a = malloc((size_t)na * in), *b = malloc((size_t)nb * in), *d = NULL, *bias = NULL,
       *row_bias = NULL;
  fill(g.dtype, a, na);
  fill(g.dtype, b, nb);
  g.a = a + oa * (int64_t)in;
  g.b = b + ob * (int64_t)in;
  bool in_place = false;
  char* initial = malloc((size_t)nc * out);
  fill(g.out_dtype, initial, nc);
  if (with_epilogue) {
    if (random_below(2)) g.alpha = 0.5f + (float)random_below(4);
    if (random_below(2)) {
      g.beta = (float)random_below(3) - 0.75f;
      in_place = random_below(3) == 0;
      if (in_place) {
        memcpy(g.addend_batch, g.c_batch, sizeof(g.c_batch));
        g.addend_row = g.c_row, g.addend_col = g.c_col;
      } else {
        nd = choose_layout(g.batch_rank, g.batch_dims, g.m, g.n, true, g.addend_batch,
                           &g.addend_row, &g.addend_col, &od);
        d = malloc((size_t)nd * out);
        fill(g.out_dtype, d, nd);
        g.addend = d + od * (int64_t)out;
      }
    }
    if (random_below(2)) {
      g.bias_stride = random_below(3);
      bias = malloc((size_t)(g.n * 2 + 1) * out);
      fill(g.out_dtype, bias, g.n * 2 + 1);
      g.bias = bias;
    }
    if (random_below(3) == 0) {
      g.row_bias_stride = 1;
      row_bias = malloc((size_t)(g.m + 1) * out);
      fill(g.out_dtype, row_bias, g.m + 1);
      g.row_bias = row_bias;
    }
    if (random_below(2)) g.activation = TN_ACTIVATION_RELU;
  }
  char *expected = malloc((size_t)nc * out), *actual = malloc((size_t)nc * out);
  memcpy(expected, initial, (size_t)nc * out);
  if (in_place) g.addend = initial;
  reference(&g, expected);
  for (int i = 0; i < 4; ++i) {
    memcpy(actual, initial, (size_t)nc * out);
    g.c = actual;
    if (in_place) g.addend = actual;
    run(&g, i ? pools[i - 1] : NULL, i ? i : 1);
    if (memcmp(expected, actual, (size_t)nc * out) != 0) {
      int64_t at = 0;
      while (memcmp(expected + at * (int64_t)out, actual + at * (int64_t)out, out) == 0) ++at;
      fprintf(stderr,
              "%s->%s m %lld n %lld k %lld batch %d threads %d a %lld,%lld b %lld,%lld c "
              "%lld,%lld%s: element %lld: %.9g, got %.9g\n",
              tn_dtype_name(g.dtype), tn_dtype_name(g.out_dtype), (long long)g.m, (long long)g.n,
              (long long)g.k, g.batch_rank, i, (long long)g.a_row, (long long)g.a_col,
              (long long)g.b_row, (long long)g.b_col, (long long)g.c_row, (long long)g.c_col,
              g.addend ? (in_place ? " in place" : " addend") : "", (long long)at,
              get(g.out_dtype, expected, at), get(g.out_dtype, actual, at));
      ++tn_test_failures;
      break;
    }
  }
  free(a), free(b), free(d), free(bias), free(row_bias), free(initial), free(expected),
      free(actual);
}

static int64_t random_extent(void) {
  static const int64_t kSizes[] = {0,  1,  1,  2,  3,  5,  6,  7,  8,  9,  12,
                                   13, 15, 16, 17, 24, 31, 33, 47, 64, 65, 97};
  return kSizes[random_below((int64_t)(sizeof(kSizes) / sizeof(kSizes[0])))];
}

TN_TEST(small_shapes_any_strides_bitwise) {
  make_pools();
  static const tn_dtype_t kPairs[][2] = {{TN_F32, TN_F32},  {TN_F32, TN_F32},   {TN_F32, TN_F32},
                                         {TN_F64, TN_F64},  {TN_BF16, TN_BF16}, {TN_F16, TN_F16},
                                         {TN_BF16, TN_F32}, {TN_F16, TN_F32}};
  for (int i = 0; i < 1500 && tn_test_failures < 5; ++i) {
    tn_gemm_t g = {.dtype = kPairs[i % 8][0], .out_dtype = kPairs[i % 8][1]};
    g.m = random_extent(), g.n = random_extent(), g.k = random_extent();
    g.batch_rank = (int)random_below(3);
    for (int d = 0; d < g.batch_rank; ++d) g.batch_dims[d] = 1 + random_below(3);
    check_case(g, i % 2);
  }
}

TN_TEST(larger_shapes_bitwise) {
  make_pools();
  static const int64_t kShapes[][3] = {
      {1, 300, 700},  {8, 770, 300}, {130, 190, 530}, {300, 64, 257}, {7, 9, 5000},
      {1, 1, 9000},   {2, 600, 900}, {600, 2, 300},   {600, 1, 600},  {200, 700, 40},
      {64, 64, 2100}, {1, 5000, 12}, {520, 530, 20},  {3, 129, 513}};
  for (int i = 0; i < 56 && tn_test_failures < 5; ++i) {
    const int64_t* s = kShapes[i % 14];
    const tn_dtype_t dtype = i % 5 == 3 ? TN_F64 : i % 5 == 4 ? TN_BF16 : TN_F32;
    check_case((tn_gemm_t){.dtype = dtype, .out_dtype = dtype, .m = s[0], .n = s[1], .k = s[2]},
               i % 2);
  }
}

TN_TEST(integers_wrap) {
  make_pools();
  static const tn_dtype_t kPairs[][2] = {{TN_I8, TN_I8},   {TN_I8, TN_I32},  {TN_U8, TN_U8},
                                         {TN_U8, TN_I32},  {TN_I16, TN_I16}, {TN_I32, TN_I32},
                                         {TN_I32, TN_I64}, {TN_I64, TN_I64}, {TN_BOOL, TN_I64}};
  const int64_t m = 5, n = 67, k = 33;
  for (int t = 0; t < 9; ++t) {
    const tn_dtype_t in = kPairs[t][0], out = kPairs[t][1];
    TN_EXPECT(tn_gemm_supports(in, out));
    const size_t is = tn_dtype_size(in), os = tn_dtype_size(out);
    char *a = malloc((size_t)(m * k) * is), *b = malloc((size_t)(k * n) * is),
         *c = malloc((size_t)(m * n) * os);
    fill(in, a, m * k);
    fill(in, b, k * n);
    tn_gemm_t g = {.dtype = in,
                   .out_dtype = out,
                   .m = m,
                   .n = n,
                   .k = k,
                   .a = a,
                   .b = b,
                   .c = c,
                   .a_row = k,
                   .a_col = 1,
                   .b_row = n,
                   .b_col = 1,
                   .c_row = n,
                   .c_col = 1};
    run(&g, pools[1], 2);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        uint64_t sum = 0;
        for (int64_t q = 0; q < k; ++q) {
          tn_scalar_t x = {0}, y = {0};
          memcpy(&x, a + (size_t)(i * k + q) * is, is);
          memcpy(&y, b + (size_t)(q * n + j) * is, is);
          sum += (uint64_t)tn_scalar_to_int(in, x) * (uint64_t)tn_scalar_to_int(in, y);
        }
        TN_EXPECT(memcmp(&sum, c + (size_t)(i * n + j) * os, os) == 0);  // little-endian low bytes
      }
    }
    free(a), free(b), free(c);
  }
}

TN_TEST(complex_products) {
  float a[6] = {1, 2, 3, -1, 0.5f, 4}, b[6] = {2, 1, -1, 3, 0.25f, -2}, c[2];
  tn_gemm_t g = {.dtype = TN_C64,
                 .out_dtype = TN_C64,
                 .m = 1,
                 .n = 1,
                 .k = 3,
                 .a = a,
                 .b = b,
                 .c = c,
                 .a_row = 3,
                 .a_col = 1,
                 .b_row = 1,
                 .b_col = 1,
                 .c_row = 1,
                 .c_col = 1};
  run(&g, NULL, 1);
  TN_EXPECT(c[0] ==
            0 + 0 + 8.125f);  // (1+2i)(2+i) = 5i; (3-i)(-1+3i) = 10i; (0.5+4i)(0.25-2i) = 8.125
  TN_EXPECT(c[1] == 15.0f);
}
