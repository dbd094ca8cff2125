// mirrors src/kernels/attention.c
#include "src/kernels/attention.h"

#include "src/kernels/philox.h"
#include "tests/c/rows_check.h"

typedef struct options {
  tn_dtype_t dtype;
  int64_t batch, heads, heads_kv, length, length_kv, size, size_v;
  bool is_causal;
  tn_dtype_t mask_dtype;  // NONE: no mask
  bool mask_per_head;
  double dropout;
  bool is_blhe;  // rows of different heads interleave
} options_t;

static void strides_of(const options_t* o, int64_t heads, int64_t length, int64_t size,
                       int64_t* out) {
  out[0] = heads * length * size;
  out[1] = o->is_blhe ? size : length * size;
  out[2] = o->is_blhe ? heads * size : size;
}
static double value(const options_t* o, const void* x, const int64_t* stride, int64_t b, int64_t h,
                    int64_t r, int64_t i) {
  return row_at(o->dtype, x, b * stride[0] + h * stride[1] + r * stride[2] + i);
}

static void check(options_t o) {
  const int64_t qn = o.batch * o.heads * o.length * o.size,
                kn = o.batch * o.heads_kv * o.length_kv * o.size;
  const int64_t vn = o.batch * o.heads_kv * o.length_kv * o.size_v,
                on = o.batch * o.heads * o.length * o.size_v;
  tn_attention_t att = {.dtype = o.dtype,
                        .batch = o.batch,
                        .heads = o.heads,
                        .heads_kv = o.heads_kv,
                        .length = o.length,
                        .length_kv = o.length_kv,
                        .size = o.size,
                        .size_v = o.size_v,
                        .is_causal = o.is_causal,
                        .scale = 0.3,
                        .dropout = o.dropout,
                        .seed = 12345678901234ull,
                        .offset = 77};
  att.q = row_array(o.dtype, qn, -1, 1);
  att.k = row_array(o.dtype, kn, -1, 1);
  att.v = row_array(o.dtype, vn, -1, 1);
  strides_of(&o, o.heads, o.length, o.size, att.q_stride);
  strides_of(&o, o.heads_kv, o.length_kv, o.size, att.k_stride);
  strides_of(&o, o.heads_kv, o.length_kv, o.size_v, att.v_stride);
  const int64_t mask_heads = o.mask_per_head ? o.heads : 1,
                mask_count = mask_heads * o.length * o.length_kv;
  att.mask_dtype = o.mask_dtype;
  void* mask = NULL;
  if (o.mask_dtype == TN_BOOL) {
    uint8_t* bytes = mask = malloc((size_t)mask_count + 1);
    for (int64_t i = 0; i < mask_count; ++i) bytes[i] = test_between(0, 3) != 0;
    for (int64_t i = 0; i < o.length_kv && o.length; ++i) bytes[i] = 0;  // one row with nothing
  } else if (o.mask_dtype != TN_DTYPE_NONE) {
    mask = row_array(o.mask_dtype, mask_count, -2, 2);
  }
  att.mask = mask;
  att.mask_stride[1] = o.mask_per_head ? o.length * o.length_kv : 0;
  att.mask_stride[2] = o.length_kv;
  att.mask_stride[3] = 1;
  int64_t out_stride[3];
  strides_of(&o, o.heads, o.length, o.size_v, out_stride);
  const size_t es = tn_dtype_size(o.dtype);
  void* dout = row_array(o.dtype, on, -1, 1);
  void *out[4], *dq[4], *dk[4], *dv[4];
  float* lse[4];
  for (int t = 1; t <= 3; ++t) {
    out[t] = malloc((size_t)on * es + 1), dq[t] = malloc((size_t)qn * es + 1);
    dk[t] = malloc((size_t)kn * es + 1), dv[t] = malloc((size_t)vn * es + 1);
    lse[t] = malloc(sizeof(float) * (size_t)(o.batch * o.heads * o.length) + 1);
    void* workspace = malloc(tn_attention_forward_workspace(&att, t));
    tn_attention_forward(test_pool(t), &att, workspace, out[t], out_stride, lse[t]);
    free(workspace);
    tn_attention_grad_t grad = {
        .out = out[t], .dout = dout, .lse = lse[t], .dq = dq[t], .dk = dk[t], .dv = dv[t]};
    for (int i = 0; i < 3; ++i) {
      grad.out_stride[i] = grad.dout_stride[i] = out_stride[i];
      grad.dq_stride[i] = att.q_stride[i];
      grad.dk_stride[i] = att.k_stride[i];
      grad.dv_stride[i] = att.v_stride[i];
    }
    workspace = malloc(tn_attention_backward_workspace(&att, t));
    tn_attention_backward(test_pool(t), &att, &grad, workspace);
    free(workspace);
  }
  for (int t = 2; t <= 3; ++t) {
    row_expect_same("out", out[1], out[t], (size_t)on * es);
    row_expect_same("dq", dq[1], dq[t], (size_t)qn * es);
    row_expect_same("dk", dk[1], dk[t], (size_t)kn * es);
    row_expect_same("dv", dv[1], dv[t], (size_t)vn * es);
  }

  double *e_out = calloc((size_t)on + 1, 8),
         *e_lse = calloc((size_t)(o.batch * o.heads * o.length) + 1, 8);
  double *e_dq = calloc((size_t)qn + 1, 8), *e_dk = calloc((size_t)kn + 1, 8),
         *e_dv = calloc((size_t)vn + 1, 8);
  double *prob = calloc((size_t)o.length_kv + 1, 8), *dprob = calloc((size_t)o.length_kv + 1, 8);
  double* keep = calloc((size_t)o.length_kv + 1, 8);
  for (int64_t b = 0; b < o.batch; ++b)
    for (int64_t h = 0; h < o.heads; ++h)
      for (int64_t r = 0; r < o.length; ++r) {
        const int64_t kh = h / (o.heads / o.heads_kv), row = (b * o.heads + h) * o.length + r;
        double high = -INFINITY, sum = 0, dot = 0;
        for (int64_t j = 0; j < o.length_kv; ++j) {
          double s = 0;
          for (int64_t i = 0; i < o.size; ++i)
            s += value(&o, att.q, att.q_stride, b, h, r, i) *
                 value(&o, att.k, att.k_stride, b, kh, j, i);
          s *= 0.3;
          const int64_t m = h * att.mask_stride[1] + r * o.length_kv + j;
          if (o.mask_dtype == TN_BOOL) {
            if (!((const uint8_t*)mask)[m]) s = -INFINITY;
          } else if (mask) {
            s += row_at(o.mask_dtype, mask, m);
          }
          if (o.is_causal && j > r) s = -INFINITY;
          prob[j] = s;
          high = fmax(high, s);
          uint32_t words[4];
          const uint64_t index = (uint64_t)(row * o.length_kv + j);
          tn_philox(att.seed, att.offset + index / 4, words);
          keep[j] = o.dropout == 0                                      ? 1
                    : words[index % 4] < (uint32_t)(o.dropout * 0x1p32) ? 0
                                                                        : 1 / (1 - o.dropout);
        }
        for (int64_t j = 0; j < o.length_kv; ++j)
          sum += high == -INFINITY ? 0 : exp(prob[j] - high);
        e_lse[row] = high == -INFINITY ? -INFINITY : high + log(sum);
        for (int64_t j = 0; j < o.length_kv; ++j) {
          prob[j] = high == -INFINITY ? 0 : exp(prob[j] - high) / sum;
          dprob[j] = 0;
          for (int64_t i = 0; i < o.size_v; ++i) {
            const int64_t at = b * out_stride[0] + h * out_stride[1] + r * out_stride[2] + i;
            const int64_t vat =
                b * att.v_stride[0] + kh * att.v_stride[1] + j * att.v_stride[2] + i;
            e_out[at] += prob[j] * keep[j] * row_at(o.dtype, att.v, vat);
            dprob[j] += row_at(o.dtype, dout, at) * row_at(o.dtype, att.v, vat) * keep[j];
            e_dv[vat] += prob[j] * keep[j] * row_at(o.dtype, dout, at);
          }
          dot += prob[j] * dprob[j];
        }
        for (int64_t j = 0; j < o.length_kv; ++j)
          for (int64_t i = 0; i < o.size; ++i) {
            const double ds = prob[j] * (dprob[j] - dot) * 0.3;
            const int64_t qat = b * att.q_stride[0] + h * att.q_stride[1] + r * att.q_stride[2] + i;
            const int64_t kat =
                b * att.k_stride[0] + kh * att.k_stride[1] + j * att.k_stride[2] + i;
            e_dq[qat] += ds * row_at(o.dtype, att.k, kat);
            e_dk[kat] += ds * row_at(o.dtype, att.q, qat);
          }
      }
  const double eps = row_eps(o.dtype) * 4, m = sqrt((double)(o.length * o.heads / o.heads_kv + 1));
  row_expect("out", o.dtype, on, e_out, out[1], eps);
  row_expect("lse", TN_F32, o.batch * o.heads * o.length, e_lse, lse[1], 1e-5);
  row_expect("dq", o.dtype, qn, e_dq, dq[1], eps * 2);
  row_expect("dk", o.dtype, kn, e_dk, dk[1], eps * m);
  row_expect("dv", o.dtype, vn, e_dv, dv[1], eps * m);
  free(e_out), free(e_lse), free(e_dq), free(e_dk), free(e_dv), free(prob), free(dprob), free(keep),
      free(mask), free(dout);
  free((void*)(uintptr_t)att.q), free((void*)(uintptr_t)att.k), free((void*)(uintptr_t)att.v);
  for (int t = 1; t <= 3; ++t) free(out[t]), free(dq[t]), free(dk[t]), free(dv[t]), free(lse[t]);
}

TN_TEST(generated_shapes) {
  const tn_dtype_t masks[] = {TN_DTYPE_NONE, TN_BOOL, TN_F32, TN_BF16, TN_F16};
  for (int round = 0; round < 70; ++round) {
    options_t o = {.dtype = row_dtypes[round % 3],
                   .batch = test_between(1, 2),
                   .heads_kv = test_between(1, 2),
                   .length = test_between(round % 9 == 0 ? 0 : 1, round % 4 ? 20 : 100),
                   .length_kv = test_between(round % 9 == 0 ? 0 : 1, round % 4 ? 40 : 100),
                   .size = test_between(1, 40),
                   .size_v = test_between(1, 40),
                   .is_causal = round & 8,
                   .mask_dtype = masks[round % 5],
                   .mask_per_head = round & 2,
                   .dropout = round % 7 == 0 ? 0.25 : 0,
                   .is_blhe = round & 4};
    o.heads = o.heads_kv * test_between(1, 3);
    check(o);
  }
}
TN_TEST(long_and_wide) {
  check((options_t){TN_F32, 1, 1, 1, 300, 300, 64, 64, true, TN_DTYPE_NONE, false, 0, true});
  check((options_t){TN_F32, 1, 1, 1, 1, 300, 128, 128, false, TN_DTYPE_NONE, false, 0, false});
  check((options_t){TN_BF16, 1, 2, 1, 70, 70, 256, 40, false, TN_F32, false, 0, false});
  check((options_t){TN_F32, 1, 1, 1, 70, 200, 16, 16, true, TN_F32, false, 0, false});
}
TN_TEST(not_a_number_shows) {
  float q[4] = {NAN, 1, 1, 1}, k[4] = {1, 1, 1, 1}, v[4] = {1, 2, 3, 4}, out[4];
  tn_attention_t att = {.dtype = TN_F32,
                        .batch = 1,
                        .heads = 1,
                        .heads_kv = 1,
                        .length = 2,
                        .length_kv = 2,
                        .size = 2,
                        .size_v = 2,
                        .q = q,
                        .k = k,
                        .v = v,
                        .q_stride = {4, 4, 2},
                        .k_stride = {4, 4, 2},
                        .v_stride = {4, 4, 2}};
  void* workspace = malloc(tn_attention_forward_workspace(&att, 1));
  tn_attention_forward(NULL, &att, workspace, out, att.q_stride, NULL);
  TN_EXPECT(isnan(out[0]) && out[2] == 2 && out[3] == 3);
  free(workspace);
}
