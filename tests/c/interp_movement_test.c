// src/ir/interp_movement.c and interp_index.c: values by hand, identities on random shapes, bounds.
#include <math.h>

#include "tests/c/interp_case.h"

static const float six[6] = {1, 2, 3, 4, 5, 6};

TN_TEST(movement_by_hand) {
  float out[12];
  tn_graph_t* g = open_graph();
  TN_EXPECT_OK(
      run(g, tn_broadcast_in_dim(g, param(g, TN_F32, 1, 2), 2, (int64_t[]){2, 3}, (int64_t[]){0}),
          six, 0, 0, out));
  EXPECT_FLOATS(out, 1, 1, 1, 2, 2, 2);
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_broadcast_to(g, param(g, TN_F32, 2, 2, 1), 3, (int64_t[]){2, 2, 3}), six,
                   0, 0, out));
  EXPECT_FLOATS(out, 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2);
  g = open_graph();
  TN_EXPECT_OK(
      run(g, tn_transpose(g, param(g, TN_F32, 2, 2, 3), (int64_t[]){1, 0}), six, 0, 0, out));
  EXPECT_FLOATS(out, 1, 4, 2, 5, 3, 6);
  g = open_graph();
  TN_EXPECT_OK(
      run(g, tn_reverse(g, param(g, TN_F32, 2, 2, 3), 2, (int64_t[]){0, 1}), six, 0, 0, out));
  EXPECT_FLOATS(out, 6, 5, 4, 3, 2, 1);
  g = open_graph();
  TN_EXPECT_OK(run(g,
                   tn_slice(g, param(g, TN_F32, 2, 2, 3), (int64_t[]){1, 0}, (int64_t[]){2, 3},
                            (int64_t[]){1, 2}),
                   six, 0, 0, out));
  EXPECT_FLOATS(out, 4, 6);
  g = open_graph();
  const tn_node_t* x = param(g, TN_F32, 1, 3);
  TN_EXPECT_OK(run(g,
                   tn_pad(g, x, tn_constant_double(g, TN_F32, 9), (int64_t[]){1}, (int64_t[]){-1},
                          (int64_t[]){1}),
                   six, 0, 0, out));
  EXPECT_FLOATS(out, 9, 1, 9, 2, 9);
  g = open_graph();
  const tn_node_t *a = param(g, TN_F32, 2, 2, 1), *b = param(g, TN_F32, 2, 2, 2);
  TN_EXPECT_OK(run(g, tn_concat(g, 2, (const tn_node_t*[]){a, b}, 1), six, six + 2, 0, out));
  EXPECT_FLOATS(out, 1, 3, 4, 2, 5, 6);
}

TN_TEST(dynamic_windows_are_clamped) {
  float out[6];
  const int32_t starts[2] = {-3, 7};
  tn_graph_t* g = open_graph();
  const tn_node_t *x = param(g, TN_F32, 2, 2, 3), *i = param(g, TN_I32, 0),
                  *j = param(g, TN_I32, 0);
  TN_EXPECT_OK(run(g, tn_dynamic_slice(g, x, (const tn_node_t*[]){i, j}, (int64_t[]){1, 2}), six,
                   &starts[0], &starts[1], out));
  EXPECT_FLOATS(out, 2, 3);
  const float update[2] = {-1, -2};
  const uint8_t one = 255;
  g = open_graph();
  x = param(g, TN_F32, 2, 2, 3);
  const tn_node_t* u = param(g, TN_F32, 2, 1, 2);
  i = param(g, TN_U8, 0);
  TN_EXPECT_OK(run(
      g, tn_dynamic_update_slice(g, x, u, (const tn_node_t*[]){i, tn_constant_int(g, TN_U8, 0)}),
      six, update, &one, out));
  EXPECT_FLOATS(out, 1, 2, 3, -1, -2, 6);
}

// Random shapes: what moves forth and back is unchanged.
TN_TEST(movement_identities) {
  static float x[4000], out[4000];
  for (int round = 0; round < 60; ++round) {
    const int rank = case_range(1, 4);
    int64_t dims[TN_MAX_RANK], start[TN_MAX_RANK], limit[TN_MAX_RANK], ones[TN_MAX_RANK],
        low[TN_MAX_RANK], high[TN_MAX_RANK], interior[TN_MAX_RANK], minus[TN_MAX_RANK],
        minus_high[TN_MAX_RANK], permutation[TN_MAX_RANK], inverse[TN_MAX_RANK],
        stride[TN_MAX_RANK];
    for (int i = 0; i < rank; ++i) {
      dims[i] = case_range(round % 7 == 0 ? 0 : 1, 7);
      low[i] = case_range(0, 3), high[i] = case_range(0, 3), interior[i] = case_range(0, 2);
      minus[i] = -low[i], minus_high[i] = -high[i];
      start[i] = 0, ones[i] = 1, limit[i] = dims[i], permutation[i] = i,
      stride[i] = interior[i] + 1;
    }
    for (int i = rank - 1; i > 0; --i) {
      const int k = case_range(0, i);
      const int64_t swap = permutation[i];
      permutation[i] = permutation[k], permutation[k] = swap;
    }
    for (int i = 0; i < rank; ++i) inverse[permutation[i]] = i;
    const tn_type_t type = tn_type_make(TN_F32, rank, dims);
    const int64_t count = tn_type_element_count(&type);
    for (int64_t i = 0; i < count; ++i) x[i] = (float)i;
    for (int kind = 0; kind < 5; ++kind) {
      tn_graph_t* g = open_graph();
      const tn_node_t *p = tn_graph_param(g, &type, NULL), *y = p,
                      *zero = tn_constant_double(g, TN_F32, 0);
      switch (kind) {
        case 0: y = tn_transpose(g, tn_transpose(g, p, permutation), inverse); break;
        case 1: y = tn_reverse(g, tn_reverse(g, p, rank, permutation), rank, inverse); break;
        case 2: {  // pad, then crop and take every stride-th
          int64_t zeros[TN_MAX_RANK] = {0}, padded[TN_MAX_RANK];
          y = tn_pad(g, p, zero, low, high, interior);
          y = tn_pad(g, y, zero, minus, minus_high, zeros);
          for (int i = 0; i < rank; ++i) padded[i] = dims[i] ? (dims[i] - 1) * stride[i] + 1 : 0;
          y = tn_slice(g, y, start, padded, stride);
          break;
        }
        case 3: {  // cut in two and join
          limit[0] = dims[0] / 2;
          const tn_node_t* a = tn_slice(g, p, start, limit, ones);
          start[0] = limit[0], limit[0] = dims[0];
          const tn_node_t* b = tn_slice(g, p, start, limit, ones);
          start[0] = 0;
          y = tn_concat(g, 2, (const tn_node_t*[]){a, b}, 0);
          break;
        }
        default: y = tn_reshape(g, tn_reshape(g, p, 1, &count), rank, dims); break;
      }
      memset(out, 255, sizeof out);
      TN_EXPECT_OK(run(g, y, x, 0, 0, out));
      EXPECT_BYTES(x, out, (size_t)count * sizeof(float));
    }
  }
}

TN_TEST(take_and_gather_by_hand) {
  float out[6];
  const int64_t rows[3] = {1, 0, 1};
  tn_graph_t* g = open_graph();
  const tn_node_t *x = param(g, TN_F32, 2, 2, 2), *i = param(g, TN_I64, 1, 3);
  TN_EXPECT_OK(run(g, tn_take(g, x, i, 0, TN_BOUNDS_ERROR), six, rows, 0, out));
  EXPECT_FLOATS(out, 3, 4, 1, 2, 3, 4);
  const int32_t columns[4] = {2, 0, -1, 1};
  g = open_graph();
  x = param(g, TN_F32, 2, 2, 3), i = param(g, TN_I32, 2, 2, 2);
  TN_EXPECT_OK(run(g, tn_take_along(g, x, i, 1, TN_BOUNDS_WRAP), six, columns, 0, out));
  EXPECT_FLOATS(out, 3, 1, 6, 5);
  // StableHLO form: 1 x 2 windows at two positions, clamped
  const int64_t starts[4] = {0, 5, 1, -2};
  const tn_gather_dims_t dims = {
      .offset_count = 2, .offset = {1, 2}, .map_count = 2, .map = {0, 1}, .index_vector_dim = 1};
  g = open_graph();
  x = param(g, TN_F32, 2, 2, 3), i = param(g, TN_I64, 2, 2, 2);
  TN_EXPECT_OK(
      run(g, tn_gather(g, x, i, &dims, (int64_t[]){1, 2}, TN_BOUNDS_CLAMP), six, starts, 0, out));
  EXPECT_FLOATS(out, 2, 3, 4, 5);
}

TN_TEST(bad_indices_are_named_as_pytorch_does) {
  float out[2];
  const int64_t bad[2] = {0, 7}, low[2] = {-1, -3};
  tn_graph_t* g = open_graph();
  const tn_node_t *x = param(g, TN_F32, 1, 5), *i = param(g, TN_I64, 1, 2);
  tn_status_t status = run(g, tn_take(g, x, i, 0, TN_BOUNDS_ERROR), six, bad, 0, out);
  TN_EXPECT(
      strstr(tn_status_message(status), "index 7 is out of bounds for dimension 0 with size 5"));
  TN_EXPECT_CODE(TN_OUT_OF_RANGE, status);
  g = open_graph();
  x = param(g, TN_F32, 1, 5), i = param(g, TN_I64, 1, 2);
  TN_EXPECT_CODE(TN_OUT_OF_RANGE, run(g, tn_take(g, x, i, 0, TN_BOUNDS_ERROR), six, low, 0, out));
  g = open_graph();
  x = param(g, TN_F32, 1, 2), i = param(g, TN_I64, 1, 2);
  status = run(g, tn_take(g, x, i, 0, TN_BOUNDS_WRAP), six, low, 0, out);
  TN_EXPECT(
      strstr(tn_status_message(status), "index -3 is out of bounds for dimension 0 with size 2"));
  TN_EXPECT_CODE(TN_OUT_OF_RANGE, status);
  g = open_graph();  // nothing can be taken from nothing
  x = param(g, TN_F32, 1, 0), i = param(g, TN_I64, 1, 2);
  TN_EXPECT_CODE(TN_OUT_OF_RANGE,
                 run(g, tn_take(g, x, i, 0, TN_BOUNDS_ERROR), six, (int64_t[]){0, 0}, 0, out));
}

TN_TEST(scatter_kinds_apply_in_order) {
  static const struct {
    tn_reduce_kind_t kind;
    float want[3];
  } rows[] = {{TN_REDUCE_SUM, {14, 2, 23}},
              {TN_REDUCE_PROD, {30, 2, 60}},
              {TN_REDUCE_MAX, {10, 2, 20}},
              {TN_REDUCE_MIN, {1, 2, 3}},
              {TN_REDUCE_ASSIGN, {3, 2, 20}}};
  const int64_t at[3] = {0, 2, 0};
  const float updates[3] = {10, 20, 3};
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; ++k) {
    float out[3];
    tn_graph_t* g = open_graph();
    const tn_node_t *x = param(g, TN_F32, 1, 3), *i = param(g, TN_I64, 1, 3),
                    *u = param(g, TN_F32, 1, 3);
    TN_EXPECT_OK(
        run(g, tn_put_along(g, x, i, u, 0, rows[k].kind, TN_BOUNDS_ERROR), six, at, updates, out));
    EXPECT_BYTES(rows[k].want, out, sizeof out);
  }
}

TN_TEST(scatter_drops_or_refuses_what_is_outside) {
  const int64_t at[2] = {4, 1};
  const float updates[2] = {10, 20};
  float out[3] = {-1, -1, -1};
  tn_graph_t* g = open_graph();
  const tn_node_t *x = param(g, TN_F32, 1, 3), *i = param(g, TN_I64, 1, 2),
                  *u = param(g, TN_F32, 1, 2);
  TN_EXPECT_OK(
      run(g, tn_put_along(g, x, i, u, 0, TN_REDUCE_SUM, TN_BOUNDS_CLAMP), six, at, updates, out));
  EXPECT_FLOATS(out, 1, 22, 3);
  out[0] = -1;
  g = open_graph();
  x = param(g, TN_F32, 1, 3), i = param(g, TN_I64, 1, 2), u = param(g, TN_F32, 1, 2);
  TN_EXPECT_CODE(
      TN_OUT_OF_RANGE,
      run(g, tn_put_along(g, x, i, u, 0, TN_REDUCE_SUM, TN_BOUNDS_ERROR), six, at, updates, out));
  EXPECT_FLOATS(out, -1);
}

// Putting at a permutation and taking there again gives the updates; and adding into zeros counts indices.
TN_TEST(index_identities) {
  for (int round = 0; round < 40; ++round) {
    const int rows = case_range(1, 6), columns = case_range(1, 9);
    float x[64] = {0}, updates[64], out[64];
    int64_t index[64];
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) index[r * columns + c] = c;
      for (int c = columns - 1; c > 0; --c) {
        const int k = case_range(0, c);
        const int64_t swap = index[r * columns + c];
        index[r * columns + c] = index[r * columns + k], index[r * columns + k] = swap;
      }
    }
    case_fill(updates, 64);
    tn_graph_t* g = open_graph();
    const tn_node_t *p = param(g, TN_F32, 2, rows, columns),
                    *i = param(g, TN_I64, 2, rows, columns),
                    *u = param(g, TN_F32, 2, rows, columns);
    const tn_node_t* put = tn_put_along(g, p, i, u, 1, TN_REDUCE_ASSIGN, TN_BOUNDS_ERROR);
    TN_EXPECT_OK(run(g, tn_take_along(g, put, i, 1, TN_BOUNDS_ERROR), x, index, updates, out));
    EXPECT_BYTES(updates, out, (size_t)(rows * columns) * sizeof(float));
  }
}
