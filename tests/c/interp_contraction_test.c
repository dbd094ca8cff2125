// src/ir/interp_contraction.c and interp.c: products, convolution, graphs, composites.
#include <math.h>

#include "ir/contract_order.h"
#include "ir/float_bits.h"
#include "ir/interp.h"
#include "kernels/gemm.h"
#include "tests/c/interp_case.h"

TN_TEST(matmul_by_hand) {
  const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1};
  float out[4];
  tn_graph_t* g = open_graph();
  const tn_node_t *x = param(g, TN_F32, 2, 2, 3), *y = param(g, TN_F32, 2, 3, 2);
  TN_EXPECT_OK(run(g, tn_matmul(g, x, y), a, b, 0, out));
  EXPECT_FLOATS(out, 4, 5, 10, 11);
  const float z[4] = {1, 2, 3, -1};  // (1 + 2i)(3 - i)
  g = open_graph();
  x = param(g, TN_C64, 2, 1, 1), y = param(g, TN_C64, 2, 1, 1);
  TN_EXPECT_OK(run(g, tn_matmul(g, x, y), z, z + 2, 0, out));
  EXPECT_FLOATS(out, 5, 5);
  const int8_t bytes[2] = {127, 127};
  int32_t wide;
  const int64_t zero = 0;
  g = open_graph();
  x = param(g, TN_I8, 1, 2), y = param(g, TN_I8, 1, 2);
  TN_EXPECT_OK(run(g, tn_dot_general(g, x, y, 0, NULL, NULL, 1, &zero, &zero, TN_I32), bytes, bytes,
                   0, &wide));
  TN_EXPECT_EQ(2 * 127 * 127, wide);
}

// Random dimension numbers against sums of exact products.
TN_TEST(dot_general_against_loops) {
  for (int round = 0; round < 40; ++round) {
    // lhs [k0, b, m, k1] in a random order of dimensions, rhs likewise
    const int64_t extent[4] = {case_range(1, 4), case_range(1, 3), case_range(1, 5),
                               case_range(1, 6)},
                  n = case_range(1, 5);
    int lhs_at[4] = {0, 1, 2, 3}, rhs_at[4] = {0, 1, 2, 3};  // where k0, b, free, k1 lie
    for (int i = 3; i > 0; --i) {
      int k = case_range(0, i), swap = lhs_at[i];
      lhs_at[i] = lhs_at[k], lhs_at[k] = swap;
      k = case_range(0, i), swap = rhs_at[i];
      rhs_at[i] = rhs_at[k], rhs_at[k] = swap;
    }
    int64_t ld[4], rd[4], ls[4], rs[4];
    for (int i = 0; i < 4; ++i) ld[lhs_at[i]] = extent[i], rd[rhs_at[i]] = i == 2 ? n : extent[i];
    for (int i = 3, a = 1, b = 1; i >= 0; --i)
      ls[i] = a, rs[i] = b, a *= (int)ld[i], b *= (int)rd[i];
    float x[400], y[400], out[80], want[80];
    case_fill(x, 400), case_fill(y, 400);
    tn_graph_t* g = open_graph();
    const tn_type_t lt = tn_type_make(TN_F32, 4, ld), rt = tn_type_make(TN_F32, 4, rd);
    const tn_node_t *l = tn_graph_param(g, &lt, NULL), *r = tn_graph_param(g, &rt, NULL);
    const int64_t lb = lhs_at[1], rb = rhs_at[1], lc[2] = {lhs_at[0], lhs_at[3]},
                  rc[2] = {rhs_at[0], rhs_at[3]};
    TN_EXPECT_OK(run(g, tn_dot_general(g, l, r, 1, &lb, &rb, 2, lc, rc, TN_F32), x, y, 0, out));
    for (int64_t b = 0, at = 0; b < extent[1]; ++b) {
      for (int64_t i = 0; i < extent[2]; ++i) {
        for (int64_t j = 0; j < n; ++j, ++at) {
          want[at] = 0;
          for (int64_t k0 = 0; k0 < extent[0]; ++k0) {
            for (int64_t k1 = 0; k1 < extent[3]; ++k1) {
              want[at] += x[b * ls[lhs_at[1]] + i * ls[lhs_at[2]] + k0 * ls[lhs_at[0]] +
                            k1 * ls[lhs_at[3]]] *
                          y[b * rs[rhs_at[1]] + j * rs[rhs_at[2]] + k0 * rs[rhs_at[0]] +
                            k1 * rs[rhs_at[3]]];
            }
          }
        }
      }
    }
    EXPECT_BYTES(want, out, (size_t)(extent[1] * extent[2] * n) * sizeof(float));
  }
}

TN_TEST(order_of_products) {
  enum { K = 5000 };
  static float x[K], y[K];
  for (int i = 0; i < K; ++i) {
    x[i] = (float)case_random() * 0x1p-31f - 0.4f;
    y[i] = (float)case_random() * 0x1p-31f - 0.6f;
  }
  const int64_t length = tn_contract_slice_length(TN_F32, 1, K);
  TN_EXPECT(length < K && length % TN_CONTRACT_BLOCK == 0);
  float want = 0;
  for (int64_t s = 0; s < K; s += length) {
    float slice = 0;
    for (int64_t b = s; b < K && b < s + length; b += TN_CONTRACT_BLOCK) {
      float chain[8] = {0};
      for (int64_t k = b; k < K && k < s + length && k < b + TN_CONTRACT_BLOCK; ++k) {
        chain[(k - b) % 8] = fmaf(x[k], y[k], chain[(k - b) % 8]);
      }
      const float block = ((chain[0] + chain[4]) + (chain[2] + chain[6])) +
                          ((chain[1] + chain[5]) + (chain[3] + chain[7]));
      slice = b == s ? block : slice + block;
    }
    want = s ? want + slice : slice;
  }
  float out;
  const int64_t zero = 0;
  tn_graph_t* g = open_graph();
  const tn_node_t *a = param(g, TN_F32, 1, K), *b = param(g, TN_F32, 1, K);
  TN_EXPECT_OK(
      run(g, tn_dot_general(g, a, b, 0, NULL, NULL, 1, &zero, &zero, TN_F32), x, y, 0, &out));
  EXPECT_FLOATS(&out, want);
}

// The kernel's order is the interpreter's, in all shapes.
TN_TEST(products_equal_the_kernels) {
  static float a[3 * 40 * 700], b[3 * 40 * 700], want[4096], got[4096];
  for (int i = 0; i < 3 * 40 * 700; ++i) {
    a[i] = (float)case_random() * 0x1p-31f - 0.4f;
    b[i] = (float)case_random() * 0x1p-31f - 0.6f;
  }
  for (int round = 0; round < 150; ++round) {
    const int batch = case_range(1, 3), m = round % 3 ? case_range(1, 8) : 1,
              n = round % 3 == 1 ? 1 : case_range(1, 40);
    const int k = case_range(0, round % 5 ? 40 : 700);
    tn_gemm_t gemm = {.dtype = TN_F32,
                      .out_dtype = TN_F32,
                      .batch_rank = 1,
                      .batch_dims = {batch},
                      .m = m,
                      .n = n,
                      .k = k,
                      .a = a,
                      .b = b,
                      .c = got,
                      .a_batch = {m * k},
                      .a_row = k,
                      .a_col = 1,
                      .b_batch = {k * n},
                      .b_row = n,
                      .b_col = 1,
                      .c_batch = {m * n},
                      .c_row = n,
                      .c_col = 1};
    void* workspace = aligned_alloc(64, (tn_gemm_workspace(&gemm, 1) + 127) / 64 * 64);
    tn_gemm_run(&gemm, NULL, workspace);
    free(workspace);
    tn_graph_t* g = open_graph();
    const tn_node_t *x = param(g, TN_F32, 3, batch, m, k), *y = param(g, TN_F32, 3, batch, k, n);
    TN_EXPECT_OK(run(g, tn_matmul(g, x, y), a, b, 0, want));
    EXPECT_BYTES(want, got, (size_t)(batch * m * n) * sizeof(float));
  }
}

TN_TEST(slices_are_those_of_the_kernels) {
  TN_EXPECT_EQ(TN_GEMM_BLOCK, TN_CONTRACT_BLOCK);
  for (int round = 0; round < 2000; ++round) {
    const int64_t outputs = case_range(1, 6000), k = case_range(0, round % 2 ? 5000 : 100000);
    const tn_dtype_t dtype = (tn_dtype_t)(round % TN_DTYPE_COUNT);
    TN_EXPECT_EQ(tn_gemm_slice_length(dtype, outputs, k),
                 tn_contract_slice_length(dtype, outputs, k));
  }
}

// Random convolutions in two dimensions against the definition, exact.
TN_TEST(convolution_against_loops) {
  for (int round = 0; round < 60; ++round) {
    const int64_t groups = case_range(1, 2), batch_groups = groups == 1 ? case_range(1, 2) : 1;
    const int64_t images = case_range(1, 2), c = case_range(1, 3),
                  features = case_range(1, 2) * groups * batch_groups;
    tn_conv_t conv = {.spatial = 2, .groups = groups, .batch_groups = batch_groups};
    int64_t in[2], kernel[2];
    for (int i = 0; i < 2; ++i) {
      in[i] = case_range(3, 6), kernel[i] = case_range(1, 3);
      conv.stride[i] = case_range(1, 2), conv.low[i] = case_range(-1, 2),
      conv.high[i] = case_range(0, 2);
      conv.lhs_dilation[i] = case_range(1, 2), conv.rhs_dilation[i] = case_range(1, 2);
    }
    static float x[2 * 2 * 6 * 36], w[4 * 3 * 9], out[4096];
    case_fill(x, 2 * 2 * 6 * 36), case_fill(w, 4 * 3 * 9);
    tn_graph_t* g = open_graph();
    const tn_node_t* l = param(g, TN_F32, 4, (int)(images * batch_groups), (int)(c * groups),
                               (int)in[0], (int)in[1]);
    const tn_node_t* r = param(g, TN_F32, 4, (int)features, (int)c, (int)kernel[0], (int)kernel[1]);
    const tn_node_t* y = tn_convolution(g, l, r, &conv);
    if (!y) {  // nothing fits
      TN_EXPECT_CODE(TN_SUCCESS, tn_graph_status(g));
      tn_graph_destroy(g);
      continue;
    }
    const int64_t oh = y->types[0].dims[2], ow = y->types[0].dims[3];
    TN_EXPECT_OK(run(g, y, x, w, 0, out));
    for (int64_t n = 0, at = 0; n < images; ++n) {
      for (int64_t o = 0; o < features; ++o) {
        const int64_t group = o / (features / (groups * batch_groups));
        const int64_t image = batch_groups > 1 ? group * images + n : n,
                      first = groups > 1 ? group * c : 0;
        for (int64_t i = 0; i < oh; ++i) {
          for (int64_t j = 0; j < ow; ++j, ++at) {
            float sum = 0;
            for (int64_t ch = 0; ch < c; ++ch) {
              for (int64_t a = 0; a < kernel[0]; ++a) {
                for (int64_t b = 0; b < kernel[1]; ++b) {
                  const int64_t h = i * conv.stride[0] + a * conv.rhs_dilation[0] - conv.low[0];
                  const int64_t v = j * conv.stride[1] + b * conv.rhs_dilation[1] - conv.low[1];
                  if (h < 0 || v < 0 || h % conv.lhs_dilation[0] || v % conv.lhs_dilation[1])
                    continue;
                  if (h / conv.lhs_dilation[0] >= in[0] || v / conv.lhs_dilation[1] >= in[1])
                    continue;
                  sum += x[((image * c * groups + first + ch) * in[0] + h / conv.lhs_dilation[0]) *
                               in[1] +
                           v / conv.lhs_dilation[1]] *
                         w[((o * c + ch) * kernel[0] + a) * kernel[1] + b];
                }
              }
            }
            TN_EXPECT(out[at] == sum);
          }
        }
      }
    }
  }
}

TN_TEST(sixteen_bit_products_round_once) {
  uint16_t x[300], y[300], out[4];
  float sum = 0;
  for (int i = 0; i < 300; ++i) {
    x[i] = tn_f32_to_f16((float)i * 0.01f), y[i] = tn_f32_to_f16(1.0f - (float)i * 0.002f);
  }
  for (int b = 0; b < 300; b += 256) {
    float block = 0;
    for (int i = b; i < 300 && i < b + 256; ++i)
      block = fmaf(tn_f16_to_f32(x[i]), tn_f16_to_f32(y[i]), block);
    sum = b ? sum + block : block;
  }
  tn_graph_t* g = open_graph();  // [2, 300] x [300, 2] of equal rows and columns
  const tn_node_t *a = param(g, TN_F16, 2, 1, 300), *b = param(g, TN_F16, 2, 300, 1);
  a = tn_broadcast_to(g, a, 2, (int64_t[]){2, 300}),
  b = tn_broadcast_to(g, b, 2, (int64_t[]){300, 2});
  TN_EXPECT_OK(run(g, tn_matmul(g, a, b), x, y, 0, out));
  for (int i = 0; i < 4; ++i) TN_EXPECT_EQ(tn_f32_to_f16(sum), out[i]);
}

// ---- graphs --------------------------------------------------------------------------------------------------
TN_TEST(graphs_share_values_and_return_parameters) {
  tn_graph_t* g = open_graph();
  const tn_node_t *x = param(g, TN_F32, 1, 3), *s = tn_graph_scalar_param(g, TN_F32);
  const tn_node_t* y = tn_binary(g, TN_OP_MUL, x, tn_broadcast_to(g, s, 1, (int64_t[]){3}));
  const tn_node_t* z = tn_binary(g, TN_OP_ADD, y, y);
  const tn_node_t* top = tn_topk(g, z, 1, true);
  tn_graph_add_result(g, z, NULL);
  tn_graph_add_result(g, x, NULL);
  tn_graph_add_result(g, tn_result(g, top, 1), NULL);
  tn_graph_add_result(g, y, NULL);
  const float data[3] = {1, 3, 2}, scale = 10;
  float out[3], same[3], half[3];
  int64_t position;
  TN_EXPECT_OK(
      tn_graph_interpret(g, (const void*[]){data, &scale}, (void*[]){out, same, &position, half}));
  EXPECT_FLOATS(out, 20, 60, 40);
  EXPECT_FLOATS(same, 1, 3, 2);
  EXPECT_FLOATS(half, 10, 30, 20);
  TN_EXPECT_EQ(1, position);
  tn_graph_destroy(g);
}

TN_TEST(composites_run_through_their_expansion) {
  tn_graph_t* g = open_graph();
  const tn_node_t* x = param(g, TN_F32, 2, 2, 3);
  const tn_attr_t axis = tn_attr_int(TN_ATTR_AXIS, 1);
  const tn_node_t* y = tn_composite(g, "softmax", 1, &x, 1, &axis);
  float out[6];
  TN_EXPECT_OK(run(g, y, (float[]){0, 0, 0, 100, 0, -100}, 0, 0, out));
  TN_EXPECT(fabsf(out[0] - 1.0f / 3) < 1e-7f && out[3] == 1.0f && out[5] == 0.0f);
  TN_EXPECT(fabsf(out[0] + out[1] + out[2] - 1) < 1e-6f);
}

TN_TEST(custom_calls_are_unimplemented_by_name) {
  tn_graph_t* g = open_graph();
  const tn_node_t* x = param(g, TN_F32, 1, 1);
  const tn_node_t* y = tn_custom_call(g, "mine", 1, &x, 0, NULL, 1, &x->types[0]);
  float out;
  tn_status_t status = run(g, y, &(float){1}, 0, 0, &out);
  TN_EXPECT(strstr(tn_status_message(status), "mine"));
  TN_EXPECT_CODE(TN_UNIMPLEMENTED, status);
}

TN_TEST(empty_and_rank_0_values_pass_through_all_kinds_of_ops) {
  tn_graph_t* g = open_graph();
  const tn_node_t* x = param(g, TN_F32, 2, 0, 3);
  const tn_node_t* y = tn_unary(g, TN_OP_EXP, tn_binary(g, TN_OP_ADD, x, x));
  y = tn_transpose(g, y, (int64_t[]){1, 0});
  y = tn_matmul(g, y, x);  // [3, 0] x [0, 3]: zeros
  y = tn_result(g, tn_sort(g, 1, &y, 1, false), 0);
  float out[9] = {1};
  TN_EXPECT_OK(run(g, tn_scan(g, TN_REDUCE_SUM, y, 1, false, false), NULL, 0, 0, out));
  EXPECT_FLOATS(out, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  g = open_graph();
  const tn_node_t* s = param(g, TN_F32, 0);
  y = tn_reduce(g, TN_REDUCE_SUM, tn_transpose(g, tn_reshape(g, s, 0, NULL), NULL), 0, NULL);
  TN_EXPECT_OK(run(g, tn_unary(g, TN_OP_NEG, y), &(float){2}, 0, 0, out));
  EXPECT_FLOATS(out, -2);
}

TN_TEST(one_node_at_a_time) {
  tn_graph_t* g = open_graph();
  const tn_node_t *x = param(g, TN_F32, 1, 2), *y = tn_binary(g, TN_OP_SUB, x, x);
  const tn_node_t* z = tn_binary(g, TN_OP_ADD, x, y);
  float a[2] = {1, 2}, b[2] = {10, 20}, out[2];
  TN_EXPECT_OK(tn_interp_node(z, (const void*[]){a, b}, (void*[]){out}));
  EXPECT_FLOATS(out, 11, 22);
  tn_graph_destroy(g);
}
