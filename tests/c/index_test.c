// mirrors src/kernels/index.c
#include "src/kernels/index.h"

#include "tests/c/test.h"
#include "tests/c/views.h"

// Naive combination of one element.
static tn_scalar_t combine(tn_dtype_t dtype, tn_reduce_kind_t kind, tn_scalar_t a, tn_scalar_t b) {
  if (kind == TN_REDUCE_ASSIGN) return b;
  if (dtype == TN_F64) {
    const double x = a.f64, y = b.f64;
    return tn_scalar_from_double(dtype, kind == TN_REDUCE_SUM    ? x + y
                                        : kind == TN_REDUCE_PROD ? x * y
                                        : kind == TN_REDUCE_MAX  ? (x > y || x != x ? x : y)
                                                                 : (x < y || x != x ? x : y));
  }
  if (tn_dtype_is_float(dtype)) {
    const float x = (float)tn_scalar_to_double(dtype, a), y = (float)tn_scalar_to_double(dtype, b);
    return tn_scalar_from_double(dtype, kind == TN_REDUCE_SUM    ? x + y
                                        : kind == TN_REDUCE_PROD ? x * y
                                        : kind == TN_REDUCE_MAX  ? (x > y || x != x ? x : y)
                                                                 : (x < y || x != x ? x : y));
  }
  const int64_t x = tn_scalar_to_int(dtype, a), y = tn_scalar_to_int(dtype, b);
  const bool less = dtype == TN_U64 ? (uint64_t)x < (uint64_t)y : x < y;
  return tn_scalar_from_int(dtype, kind == TN_REDUCE_SUM    ? (int64_t)((uint64_t)x + (uint64_t)y)
                                   : kind == TN_REDUCE_PROD ? (int64_t)((uint64_t)x * (uint64_t)y)
                                   : kind == TN_REDUCE_MAX  ? (less ? y : x)
                                   : kind == TN_REDUCE_MIN  ? (less ? x : y)
                                   : kind == TN_REDUCE_AND  ? (x & y)
                                                            : (x | y));
}

// Fills indices with values in [0, size), or [-size, size) for WRAP, or a little beyond for CLAMP.
static void fill_indices(const tn_view_t* indices, int64_t size, tn_bounds_t bounds) {
  int64_t at[TN_MAX_RANK] = {0};
  if (!tn_view_element_count(indices)) return;
  do {
    int64_t low = bounds == TN_BOUNDS_WRAP ? -size : bounds == TN_BOUNDS_CLAMP ? -2 : 0;
    test_set(indices, at,
             tn_scalar_from_int(indices->dtype,
                                test_between(low, size - 1 + (bounds == TN_BOUNDS_CLAMP ? 2 : 0))));
  } while (test_next(indices, at));
}
// The position meant, or -1: drop.
static int64_t meant(tn_scalar_t raw, tn_dtype_t dtype, int64_t size, tn_bounds_t bounds,
                     bool is_scatter) {
  int64_t i = tn_scalar_to_int(dtype, raw);
  if (bounds == TN_BOUNDS_WRAP) return i < 0 ? i + size : i;
  if (i >= 0 && i < size) return i;
  return is_scatter ? -1 : i < 0 ? 0 : size - 1;
}
static void expect_equal(const tn_view_t* expected, const tn_view_t* got, const char* what) {
  int64_t at[TN_MAX_RANK] = {0};
  if (!tn_view_element_count(got)) return;
  do {
    tn_scalar_t e = test_get(expected, at), g = test_get(got, at);
    if (memcmp(&e, &g, tn_dtype_size(got->dtype)) != 0) {
      if (tn_dtype_is_float(got->dtype) &&
          tn_scalar_to_double(got->dtype, e) != tn_scalar_to_double(got->dtype, e) &&
          tn_scalar_to_double(got->dtype, g) != tn_scalar_to_double(got->dtype, g))
        continue;
      fprintf(stderr, "%s of %s\n", what, tn_dtype_name(got->dtype));
      TN_EXPECT(!"element");
      return;
    }
  } while (test_next(got, at));
}
static void copy_view(const tn_view_t* from, const tn_view_t* to) {
  int64_t at[TN_MAX_RANK] = {0};
  if (!tn_view_element_count(to)) return;
  do test_set(to, at, test_get(from, at));
  while (test_next(to, at));
}

static const tn_dtype_t index_dtypes[] = {TN_I64, TN_I32, TN_I64, TN_I16};

TN_TEST(take_and_put) {
  for (int round = 0; round < 400; ++round) {
    const tn_dtype_t dtype = (tn_dtype_t)(round % TN_DTYPE_COUNT),
                     index_dtype = index_dtypes[round % 4];
    const tn_bounds_t bounds = (tn_bounds_t)(round % 3);
    const int rank = (int)test_between(1, 3), index_rank = (int)test_between(0, 2),
              d = (int)test_between(0, rank - 1);
    const bool is_large = round % 25 == 0;
    int64_t dims[4], index_dims[3], out_dims[8];
    int n = 0;
    for (int i = 0; i < rank; ++i) dims[i] = test_between(1, is_large ? 40 : 7);
    if (is_large) dims[rank - 1] *= 8;
    for (int i = 0; i < index_rank; ++i) index_dims[i] = test_between(0, is_large ? 20 : 6);
    for (int i = 0; i < d; ++i) out_dims[n++] = dims[i];
    for (int i = 0; i < index_rank; ++i) out_dims[n++] = index_dims[i];
    for (int i = d + 1; i < rank; ++i) out_dims[n++] = dims[i];
    test_array_t x = test_array(dtype, rank, dims, 2),
                 indices = test_array(index_dtype, index_rank, index_dims, 1);
    test_array_t out = test_array(dtype, n, out_dims, 1),
                 expected = test_array(dtype, n, out_dims, 0);
    fill_indices(&indices.view, dims[d], bounds);
    int64_t at[TN_MAX_RANK] = {0}, from[TN_MAX_RANK];
    const bool any = tn_view_element_count(&out.view) > 0;
    if (any) {
      do {
        for (int i = 0; i < d; ++i) from[i] = at[i];
        for (int i = d + 1; i < rank; ++i) from[i] = at[i - 1 + index_rank];
        from[d] = meant(test_get(&indices.view, at + d), index_dtype, dims[d], bounds, false);
        test_set(&expected.view, at, test_get(&x.view, from));
      } while (test_next(&out.view, at));
    }
    TN_EXPECT_OK(
        tn_index_take(test_pool(1 + round % 3), &x.view, &indices.view, d, bounds, &out.view));
    expect_equal(&expected.view, &out.view, "take");

    // put: |out| now serves as the updates, applied in row-major order of the indices.
    const tn_reduce_kind_t kinds[] = {TN_REDUCE_ASSIGN, TN_REDUCE_SUM, TN_REDUCE_MAX,
                                      TN_REDUCE_PROD, TN_REDUCE_MIN};
    const tn_reduce_kind_t kind =
        tn_dtype_is_complex(dtype) || dtype == TN_BOOL ? TN_REDUCE_ASSIGN : kinds[round / 17 % 5];
    test_array_t base = test_array(dtype, rank, dims, 1), naive = test_array(dtype, rank, dims, 0);
    copy_view(&base.view, &naive.view);
    memset(at, 0, sizeof at);
    if (any) {
      do {
        for (int i = 0; i < d; ++i) from[i] = at[i];
        for (int i = d + 1; i < rank; ++i) from[i] = at[i - 1 + index_rank];
        from[d] = meant(test_get(&indices.view, at + d), index_dtype, dims[d], bounds, true);
        if (from[d] >= 0)
          test_set(&naive.view, from,
                   combine(dtype, kind, test_get(&naive.view, from), test_get(&out.view, at)));
      } while (test_next(&out.view, at));
    }
    TN_EXPECT_OK(tn_index_put(test_pool(1 + round % 3), &indices.view, &out.view, d, kind, bounds,
                              &base.view));
    expect_equal(&naive.view, &base.view, "put");
    test_array_t* all[] = {&x, &indices, &out, &expected, &base, &naive};
    for (int i = 0; i < 6; ++i) test_array_free(all[i]);
  }
}

TN_TEST(take_along_and_put_along) {
  for (int round = 0; round < 400; ++round) {
    const tn_dtype_t dtype = (tn_dtype_t)(round % TN_DTYPE_COUNT),
                     index_dtype = index_dtypes[round % 4];
    const tn_bounds_t bounds = (tn_bounds_t)(round % 3);
    const int rank = (int)test_between(1, 3), d = (int)test_between(0, rank - 1);
    int64_t dims[4], index_dims[4];
    for (int i = 0; i < rank; ++i) dims[i] = test_between(1, round % 25 == 0 ? 90 : 8);
    for (int i = 0; i < rank; ++i)
      index_dims[i] = i == d ? test_between(0, 12) : test_between(0, dims[i]);
    test_array_t x = test_array(dtype, rank, dims, 2),
                 indices = test_array(index_dtype, rank, index_dims, 1);
    test_array_t out = test_array(dtype, rank, index_dims, 1),
                 expected = test_array(dtype, rank, index_dims, 0);
    fill_indices(&indices.view, dims[d], bounds);
    int64_t at[TN_MAX_RANK] = {0}, from[TN_MAX_RANK];
    const bool any = tn_view_element_count(&out.view) > 0;
    if (any) {
      do {
        memcpy(from, at, sizeof from);
        from[d] = meant(test_get(&indices.view, at), index_dtype, dims[d], bounds, false);
        test_set(&expected.view, at, test_get(&x.view, from));
      } while (test_next(&out.view, at));
    }
    TN_EXPECT_OK(tn_index_take_along(test_pool(1 + round % 3), &x.view, &indices.view, d, bounds,
                                     &out.view));
    expect_equal(&expected.view, &out.view, "take_along");
    const tn_reduce_kind_t kinds[] = {TN_REDUCE_SUM, TN_REDUCE_ASSIGN, TN_REDUCE_MIN,
                                      TN_REDUCE_PROD, TN_REDUCE_MAX};
    const tn_reduce_kind_t kind =
        tn_dtype_is_complex(dtype) || dtype == TN_BOOL ? TN_REDUCE_ASSIGN : kinds[round / 17 % 5];
    test_array_t base = test_array(dtype, rank, dims, 1), naive = test_array(dtype, rank, dims, 0);
    copy_view(&base.view, &naive.view);
    memset(at, 0, sizeof at);
    if (any) {
      do {
        memcpy(from, at, sizeof from);
        from[d] = meant(test_get(&indices.view, at), index_dtype, dims[d], bounds, true);
        if (from[d] >= 0)
          test_set(&naive.view, from,
                   combine(dtype, kind, test_get(&naive.view, from), test_get(&out.view, at)));
      } while (test_next(&out.view, at));
    }
    TN_EXPECT_OK(tn_index_put_along(test_pool(1 + round % 3), &indices.view, &out.view, d, kind,
                                    bounds, &base.view));
    expect_equal(&naive.view, &base.view, "put_along");
    test_array_t* all[] = {&x, &indices, &out, &expected, &base, &naive};
    for (int i = 0; i < 6; ++i) test_array_free(all[i]);
  }
}

// Two-component index vectors with a window, against take over the flattened pair of dimensions.
TN_TEST(general_gather_and_scatter) {
  for (int round = 0; round < 200; ++round) {
    const int64_t a = test_between(1, 6), b = test_between(1, 6),
                  c = test_between(1, round % 10 ? 5 : 400);
    const int64_t points = test_between(0, round % 10 ? 7 : 60), width = test_between(1, b);
    const int64_t dims[3] = {a, b, c}, index_dims[2] = {points, 2},
                  out_dims[3] = {points, width, c};
    const tn_bounds_t bounds = round % 2 ? TN_BOUNDS_CLAMP : TN_BOUNDS_ERROR;
    test_array_t x = test_array(TN_F32, 3, dims, 2), indices = test_array(TN_I64, 2, index_dims, 1);
    test_array_t out = test_array(TN_F32, 3, out_dims, 1);
    const int64_t spare = bounds == TN_BOUNDS_CLAMP ? 2 : 0;
    for (int64_t i = 0; i < points; ++i) {
      test_set(&indices.view, (int64_t[]){i, 0},
               tn_scalar_from_int(TN_I64, test_between(-spare, b - width + spare)));
      test_set(&indices.view, (int64_t[]){i, 1},
               tn_scalar_from_int(TN_I64, test_between(-spare, a - 1 + spare)));
    }
    tn_gather_dims_t g = {.offset_count = 2,
                          .collapsed_count = 1,
                          .map_count = 2,
                          .offset = {1, 2},
                          .collapsed = {0},
                          .map = {1, 0},
                          .index_vector_dim = 1};
    const int64_t slice[3] = {1, width, c};
    TN_EXPECT_OK(tn_index_gather(test_pool(1 + round % 3), &x.view, &indices.view, &g, slice,
                                 bounds, &out.view));
    test_array_t base = test_array(TN_F32, 3, dims, 1), naive = test_array(TN_F32, 3, dims, 0);
    copy_view(&base.view, &naive.view);
    for (int64_t i = 0; i < points; ++i) {
      int64_t s1 = test_get(&indices.view, (int64_t[]){i, 0}).i64,
              s0 = test_get(&indices.view, (int64_t[]){i, 1}).i64;
      const bool drop = s0 < 0 || s0 >= a || s1 < 0 || s1 > b - width;
      for (int64_t j = 0; j < width; ++j)
        for (int64_t k = 0; k < c; ++k) {
          if (!drop) {
            tn_scalar_t sum = test_get(&naive.view, (int64_t[]){s0, s1 + j, k});
            sum.f32 += test_get(&out.view, (int64_t[]){i, j, k}).f32;
            test_set(&naive.view, (int64_t[]){s0, s1 + j, k}, sum);
          }
          const int64_t c0 = s0 < 0    ? 0
                             : s0 >= a ? a - 1
                                       : s0,
                        c1 = s1 < 0           ? 0
                             : s1 > b - width ? b - width
                                              : s1;
          TN_EXPECT(test_get(&x.view, (int64_t[]){c0, c1 + j, k}).f32 ==
                    test_get(&out.view, (int64_t[]){i, j, k}).f32);
        }
    }
    TN_EXPECT_OK(tn_index_scatter(test_pool(1 + round % 3), &indices.view, &out.view, &g,
                                  TN_REDUCE_SUM, bounds, &base.view));
    expect_equal(&naive.view, &base.view, "scatter");
    test_array_t* all[] = {&x, &indices, &out, &base, &naive};
    for (int i = 0; i < 5; ++i) test_array_free(all[i]);
  }
}

TN_TEST(bad_indices_are_named) {
  float x[5] = {1, 2, 3, 4, 5}, out[4] = {9, 9, 9, 9};
  int64_t index[4] = {0, -5, 7, 8};
  const int64_t five[] = {5}, four[] = {4};
  tn_view_t xv = tn_view_make(x, TN_F32, 1, five, NULL),
            ov = tn_view_make(out, TN_F32, 1, four, NULL);
  tn_view_t iv = tn_view_make(index, TN_I64, 1, four, NULL);
  tn_status_t status = tn_index_take(NULL, &xv, &iv, 0, TN_BOUNDS_WRAP, &ov);
  TN_EXPECT_STR("index 7 is out of bounds for dimension 0 with size 5", tn_status_message(status));
  TN_EXPECT_CODE(TN_OUT_OF_RANGE, status);
  status = tn_index_put_along(NULL, &iv, &ov, 0, TN_REDUCE_SUM, TN_BOUNDS_ERROR, &xv);
  TN_EXPECT_STR("index -5 is out of bounds for dimension 0 with size 5", tn_status_message(status));
  TN_EXPECT_CODE(TN_OUT_OF_RANGE, status);
  TN_EXPECT(x[0] == 1);
}

TN_TEST(scatter_add_is_equal_for_any_thread_count) {
  enum { SIZE = 1000, COUNT = 100000 };
  static float base[3][SIZE], updates[COUNT];
  static int64_t index[COUNT];
  for (int i = 0; i < COUNT; ++i)
    index[i] = test_between(0, SIZE - 1), updates[i] = (float)test_real();
  const int64_t size[] = {SIZE}, count[] = {COUNT};
  tn_view_t iv = tn_view_make(index, TN_I64, 1, count, NULL),
            uv = tn_view_make(updates, TN_F32, 1, count, NULL);
  for (int threads = 1; threads <= 3; ++threads) {
    tn_view_t bv = tn_view_make(base[threads - 1], TN_F32, 1, size, NULL);
    TN_EXPECT_OK(
        tn_index_put(test_pool(threads), &iv, &uv, 0, TN_REDUCE_SUM, TN_BOUNDS_ERROR, &bv));
  }
  TN_EXPECT(memcmp(base[0], base[1], sizeof base[0]) == 0 &&
            memcmp(base[0], base[2], sizeof base[0]) == 0);
}
