// mirrors src/kernels/order.c
#include "src/kernels/order.h"

#include "tests/c/rows_check.h"

static const tn_dtype_t dtypes[] = {TN_BOOL, TN_I8,  TN_I16, TN_I32,      TN_I64,
                                    TN_U8,   TN_U16, TN_U32, TN_U64,      TN_F16,
                                    TN_BF16, TN_F32, TN_F64, TN_F8E4M3FN, TN_F8E5M2};

// -1, 0, 1 ascending, NaN last.
static int compare(tn_dtype_t dtype, tn_scalar_t a, tn_scalar_t b) {
  if (tn_dtype_is_float(dtype)) {
    const double x = tn_scalar_to_double(dtype, a), y = tn_scalar_to_double(dtype, b);
    if (x != x || y != y) return (x != x) - (y != y);
    return (x > y) - (x < y);
  }
  const int64_t x = tn_scalar_to_int(dtype, a), y = tn_scalar_to_int(dtype, b);
  if (dtype == TN_U64) return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
  return (x > y) - (x < y);
}

// An array with ties, NaNs, infinities and both zeros.
static test_array_t generate(tn_dtype_t dtype, int rank, const int64_t* dims) {
  test_array_t x = test_array(dtype, rank, dims, 1);
  int64_t at[TN_MAX_RANK] = {0};
  const bool few = test_between(0, 1);
  if (!tn_view_element_count(&x.view)) return x;
  do {
    if (tn_dtype_is_float(dtype)) {
      const int64_t pick = test_between(0, 20);
      const double v = pick == 0   ? NAN
                       : pick == 1 ? -0.0
                       : pick == 2 ? 0
                       : pick == 3 ? INFINITY
                       : pick == 4 ? -INFINITY
                       : few       ? (double)test_between(-3, 3)
                                   : (test_real() - 0.5) * 100;
      test_set(&x.view, at, tn_scalar_from_double(dtype, v));
    } else if (few) {
      test_set(&x.view, at, tn_scalar_from_int(dtype, test_between(-2, 2)));
    }
  } while (test_next(&x.view, at));
  if (dtype == TN_BOOL)
    for (size_t i = 0; i < x.size; ++i) x.memory[i] &= 1;
  return x;
}
static void pick_dims(int round, int rank, int d, int64_t* dims) {
  for (int i = 0; i < rank; ++i) dims[i] = test_between(1, 6);
  if (rank)
    dims[d] = round % 11 == 0   ? test_between(600, 3000)
              : round % 40 == 1 ? 20000
                                : test_between(1, 70);
}
static bool same_bits(tn_dtype_t dtype, tn_scalar_t a, tn_scalar_t b) {
  return memcmp(&a, &b, tn_dtype_size(dtype)) == 0;
}

TN_TEST(sort_and_topk) {
  for (int round = 0; round < 300; ++round) {
    const tn_dtype_t dtype = dtypes[round % 15];
    const int rank = (int)test_between(1, 3), d = (int)test_between(0, rank - 1),
              threads = 1 + round % 3;
    int64_t dims[3], top_dims[3];
    pick_dims(round, rank, d, dims);
    const bool descending = test_between(0, 1);
    test_array_t x = generate(dtype, rank, dims), values = test_array(dtype, rank, dims, 1);
    test_array_t positions = test_array(TN_I64, rank, dims, 1);
    void* workspace = aligned_alloc(64, tn_order_sort_workspace(&x.view, d, threads) + 64);
    tn_order_sort(test_pool(threads), &x.view, d, descending, workspace, &values.view,
                  &positions.view);
    memcpy(top_dims, dims, sizeof dims);
    const int64_t count = top_dims[d] =
        test_between(0, 2) ? test_between(0, dims[d] / 9) : test_between(0, dims[d]);
    test_array_t top = test_array(dtype, rank, top_dims, 1),
                 top_positions = test_array(TN_I64, rank, top_dims, 1);
    tn_order_topk(test_pool(threads), &x.view, d, count, descending, workspace, &top.view,
                  &top_positions.view);
    int64_t at[TN_MAX_RANK] = {0};
    bool good = true, top_good = true;
    do {
      // Each element is that at its position, and not before its predecessor; ties rise in position.
      int64_t from[TN_MAX_RANK], before[TN_MAX_RANK];
      memcpy(from, at, sizeof from);
      memcpy(before, at, sizeof before);
      from[d] = test_get(&positions.view, at).i64;
      good = good && same_bits(dtype, test_get(&values.view, at), test_get(&x.view, from));
      if (at[d] > 0) {
        --before[d];
        int order = compare(dtype, test_get(&values.view, before), test_get(&values.view, at));
        if (descending) order = -order;
        good =
            good && (order < 0 || (order == 0 && test_get(&positions.view, before).i64 < from[d]));
      }
      if (at[d] < count) {
        top_good = top_good && test_get(&top_positions.view, at).i64 == from[d] &&
                   same_bits(dtype, test_get(&top.view, at), test_get(&values.view, at));
      }
    } while (test_next(&x.view, at));
    if (!good || !top_good)
      fprintf(stderr, "%s of %s, n %d count %d\n", good ? "topk" : "sort", tn_dtype_name(dtype),
              (int)dims[d], (int)count);
    TN_EXPECT(good && top_good);
    free(workspace);
    test_array_t* all[] = {&x, &values, &positions, &top, &top_positions};
    for (int i = 0; i < 5; ++i) test_array_free(all[i]);
  }
}

TN_TEST(first_extremes) {
  for (int round = 0; round < 300; ++round) {
    const tn_dtype_t dtype = dtypes[round % 15];
    const int rank = (int)test_between(1, 3), d = (int)test_between(0, rank - 1);
    int64_t dims[3], out_dims[3];
    pick_dims(round, rank, d, dims);
    if (d != rank - 1 && round % 2) dims[rank - 1] = test_between(1, 300);
    for (int i = 0, n = 0; i < rank; ++i)
      if (i != d) out_dims[n++] = dims[i];
    const bool is_min = test_between(0, 1);
    test_array_t x = generate(dtype, rank, dims), values = test_array(dtype, rank - 1, out_dims, 1);
    test_array_t positions = test_array(TN_I64, rank - 1, out_dims, 1);
    if (round % 3 == 0) {  // contiguous, so that lines lie side by side
      test_array_free(&x);
      x = test_array(dtype, rank, dims, 0);
      if (dtype == TN_BOOL)
        for (size_t i = 0; i < x.size; ++i) x.memory[i] &= 1;
    }
    tn_order_arg_reduce(test_pool(1 + round % 3), is_min ? TN_REDUCE_MIN : TN_REDUCE_MAX, &x.view,
                        d, &values.view, &positions.view);
    int64_t at[TN_MAX_RANK] = {0};
    bool good = true;
    do {
      int64_t from[TN_MAX_RANK] = {0}, best = 0;
      for (int i = 0, n = 0; i < rank; ++i)
        if (i != d) from[i] = at[n++];
      tn_scalar_t value = test_get(&x.view, from);
      for (int64_t i = 1; i < dims[d]; ++i) {
        from[d] = i;
        const tn_scalar_t v = test_get(&x.view, from);
        const bool is_nan = tn_dtype_is_float(dtype) && isnan(tn_scalar_to_double(dtype, v));
        if (tn_dtype_is_float(dtype) && isnan(tn_scalar_to_double(dtype, value))) break;
        if (is_nan || (is_min ? compare(dtype, v, value) < 0 : compare(dtype, v, value) > 0))
          best = i, value = v;
      }
      good = good && test_get(&positions.view, at).i64 == best &&
             same_bits(dtype, value, test_get(&values.view, at));
    } while (test_next(&values.view, at));
    if (!good) fprintf(stderr, "arg_reduce of %s\n", tn_dtype_name(dtype));
    TN_EXPECT(good);
    test_array_free(&x), test_array_free(&values), test_array_free(&positions);
  }
}

// One step of the wide type, as the interpreter's lanes do it.
static tn_scalar_t step(tn_reduce_kind_t kind, tn_dtype_t wide, tn_scalar_t a, tn_scalar_t b) {
  tn_scalar_t r = {0};
  if (wide == TN_F32) {
    r.f32 = kind == TN_REDUCE_SUM    ? a.f32 + b.f32
            : kind == TN_REDUCE_PROD ? a.f32 * b.f32
            : kind == TN_REDUCE_MAX  ? (a.f32 > b.f32 || a.f32 != a.f32 ? a.f32 : b.f32)
                                     : (a.f32 < b.f32 || a.f32 != a.f32 ? a.f32 : b.f32);
  } else if (wide == TN_F64) {
    r.f64 = kind == TN_REDUCE_SUM    ? a.f64 + b.f64
            : kind == TN_REDUCE_PROD ? a.f64 * b.f64
            : kind == TN_REDUCE_MAX  ? (a.f64 > b.f64 || a.f64 != a.f64 ? a.f64 : b.f64)
                                     : (a.f64 < b.f64 || a.f64 != a.f64 ? a.f64 : b.f64);
  } else {
    const bool less = wide == TN_U64 ? a.u64 < b.u64 : a.i64 < b.i64;
    r.u64 = kind == TN_REDUCE_SUM    ? a.u64 + b.u64
            : kind == TN_REDUCE_PROD ? a.u64 * b.u64
            : kind == TN_REDUCE_MAX  ? (less ? b.u64 : a.u64)
                                     : (less ? a.u64 : b.u64);
  }
  return r;
}
TN_TEST(scans) {
  for (int round = 0; round < 300; ++round) {
    const tn_dtype_t dtype = dtypes[1 + round % 14];
    const tn_dtype_t wide = dtype == TN_F64                            ? TN_F64
                            : tn_dtype_is_float(dtype)                 ? TN_F32
                            : tn_dtype_class(dtype) == TN_CLASS_SIGNED ? TN_I64
                                                                       : TN_U64;
    const tn_reduce_kind_t kind = (tn_reduce_kind_t)(round / 15 % 4);
    const int rank = (int)test_between(1, 3), d = (int)test_between(0, rank - 1);
    int64_t dims[3];
    pick_dims(round, rank, d, dims);
    if (round % 40 == 1) dims[d] = 500;
    const bool reverse = test_between(0, 1), exclusive = test_between(0, 1);
    test_array_t x = generate(dtype, rank, dims), out = test_array(dtype, rank, dims, 1);
    if (round % 3 == 0) {
      if (d != rank - 1) dims[rank - 1] = test_between(8, 200);
      test_array_free(&x), test_array_free(&out);
      x = test_array(dtype, rank, dims, 0), out = test_array(dtype, rank, dims, 0);
    }
    tn_order_scan(test_pool(1 + round % 3), kind, &x.view, d, reverse, exclusive, &out.view, NULL);
    int64_t at[TN_MAX_RANK] = {0};
    bool good = true;
    do {
      if (at[d]) continue;
      // The identity is that of the dtype itself.
      const int bits = 8 * (int)tn_dtype_size(dtype);
      const bool is_signed = tn_dtype_class(dtype) == TN_CLASS_SIGNED;
      tn_scalar_t sum = {0};
      if (kind == TN_REDUCE_PROD) sum = tn_scalar_from_double(wide, 1);
      if (kind == TN_REDUCE_MAX)
        sum = tn_dtype_is_float(wide) ? tn_scalar_from_double(wide, -INFINITY)
                                      : (tn_scalar_t){.u64 = is_signed ? ~0ull << (bits - 1) : 0};
      if (kind == TN_REDUCE_MIN)
        sum = tn_dtype_is_float(wide) ? tn_scalar_from_double(wide, INFINITY)
                                      : (tn_scalar_t){.u64 = ~0ull >> (64 - bits + is_signed)};
      int64_t from[TN_MAX_RANK];
      memcpy(from, at, sizeof from);
      for (int64_t i = 0; i < dims[d]; ++i) {
        from[d] = reverse ? dims[d] - 1 - i : i;
        const tn_scalar_t old = sum;
        sum = step(kind, wide, sum, tn_scalar_convert(wide, dtype, test_get(&x.view, from)));
        const tn_scalar_t e = tn_scalar_convert(dtype, wide, exclusive ? old : sum),
                          g = test_get(&out.view, from);
        const bool nans = tn_dtype_is_float(dtype) && isnan(tn_scalar_to_double(dtype, e)) &&
                          isnan(tn_scalar_to_double(dtype, g));
        const bool zeros = tn_dtype_is_float(dtype) &&
                           tn_scalar_to_double(dtype, e) == tn_scalar_to_double(dtype, g);
        good = good && (same_bits(dtype, e, g) || nans || zeros);
      }
    } while (test_next(&x.view, at));
    if (!good) fprintf(stderr, "scan %d of %s\n", kind, tn_dtype_name(dtype));
    TN_EXPECT(good);
    test_array_free(&x), test_array_free(&out);
  }
}
TN_TEST(running_extremes_with_positions) {
  float x[6] = {1, 3, 3, NAN, 5, NAN}, values[6];
  int64_t positions[6];
  const int64_t six[] = {6};
  tn_view_t xv = tn_view_make(x, TN_F32, 1, six, NULL),
            vv = tn_view_make(values, TN_F32, 1, six, NULL);
  tn_view_t pv = tn_view_make(positions, TN_I64, 1, six, NULL);
  tn_order_scan(NULL, TN_REDUCE_MAX, &xv, 0, false, false, &vv, &pv);
  const int64_t expected[6] = {0, 1, 2, 3, 3, 5};  // as torch.cummax
  TN_EXPECT(memcmp(positions, expected, sizeof expected) == 0 && values[1] == 3 &&
            isnan(values[4]));
}
