// mirrors src/kernels/copy.c
#include "src/kernels/copy.h"

#include "tests/c/test.h"
#include "tests/c/views.h"

static bool is_same(tn_dtype_t dtype, tn_scalar_t a, tn_scalar_t b) {
  if (memcmp(&a, &b, tn_dtype_size(dtype)) == 0) return true;
  if (tn_dtype_is_float(dtype)) {
    double x = tn_scalar_to_double(dtype, a), y = tn_scalar_to_double(dtype, b);
    return x != x && y != y;
  }
  return false;
}

static void check_copy(tn_dtype_t from, tn_dtype_t to, int rank, const int64_t* dims, int threads) {
  test_array_t x = test_array(from, rank, dims, 2), out = test_array(to, rank, dims, 1);
  char* before = malloc(out.size + 1);
  memcpy(before, out.memory, out.size);
  tn_copy_strided(test_pool(threads), &x.view, &out.view);
  int64_t index[TN_MAX_RANK] = {0};
  if (tn_view_element_count(&x.view)) {
    do {
      tn_scalar_t expected = tn_scalar_convert(to, from, test_get(&x.view, index)),
                  got = test_get(&out.view, index);
      if (!is_same(to, expected, got)) {
        fprintf(stderr, "%s -> %s rank %d\n", tn_dtype_name(from), tn_dtype_name(to), rank);
        TN_EXPECT(!"copied element");
        break;
      }
      test_set(&out.view, index, (tn_scalar_t){0});
      // Put the old bytes back: what is left must be as before (gaps untouched).
      int64_t at = 0;
      for (int i = 0; i < rank; ++i)
        at += index[i] * out.view.strides[i] * (int64_t)tn_dtype_size(to);
      memcpy((char*)out.view.data + at, before + ((char*)out.view.data - out.memory) + at,
             tn_dtype_size(to));
    } while (test_next(&x.view, index));
  }
  TN_EXPECT(memcmp(before, out.memory, out.size) == 0);
  free(before);
  test_array_free(&x);
  test_array_free(&out);
}

TN_TEST(strided_copies_of_any_dtype) {
  for (int round = 0; round < 600; ++round) {
    int64_t dims[TN_MAX_RANK];
    const int rank = (int)test_between(0, round % 20 == 0 ? 9 : 4);
    const int64_t top = rank > 5 ? 3 : rank > 3 ? 7 : rank > 2 ? 20 : 90;
    for (int i = 0; i < rank; ++i) dims[i] = test_between(round % 10 == 0 ? 0 : 1, top);
    check_copy((tn_dtype_t)(round % TN_DTYPE_COUNT), (tn_dtype_t)(round % TN_DTYPE_COUNT), rank,
               dims, 1 + round % 3);
  }
}
TN_TEST(conversions_of_every_pair) {
  for (int from = 0; from < TN_DTYPE_COUNT; ++from)
    for (int to = 0; to < TN_DTYPE_COUNT; ++to)
      for (int shape = 0; shape < 3; ++shape) {
        const int64_t dims[2] = {test_between(1, 40), test_between(1, 90)};
        check_copy((tn_dtype_t)from, (tn_dtype_t)to, shape == 0 ? 1 : 2, dims, 1);
      }
}
TN_TEST(conversions_of_extreme_floats) {
  const double values[] = {0,      -0.0,   1,      -1,         0.5,         1.5,         255,
                           256,    -129,   65504,  65520,      65536,       448,         464,
                           480,    57344,  61440,  2147483647, 2147483648,  -2147483649, 4294967296,
                           9.2e18, 9.3e18, 1.8e19, 1e20,       -1e20,       1e39,        -1e300,
                           1e-8,   6e-8,   3e-39,  1e-45,      1 / 0.0 * 1, -1 / 0.0,    0 / 0.0};
  enum { COUNT = sizeof values / sizeof values[0] };
  for (int from = TN_F16; from <= TN_F8E5M2; ++from)
    for (int to = 0; to < TN_DTYPE_COUNT; ++to) {
      tn_scalar_t x[COUNT];
      char packed[COUNT * 16], out[COUNT * 16];
      const size_t size = tn_dtype_size((tn_dtype_t)from), to_size = tn_dtype_size((tn_dtype_t)to);
      for (int i = 0; i < COUNT; ++i) {
        x[i] = tn_scalar_from_double((tn_dtype_t)from, values[i]);
        memcpy(packed + (size_t)i * size, &x[i], size);
      }
      tn_copy_convert(NULL, COUNT, (tn_dtype_t)from, packed, (tn_dtype_t)to, out);
      for (int i = 0; i < COUNT; ++i) {
        tn_scalar_t expected = tn_scalar_convert((tn_dtype_t)to, (tn_dtype_t)from, x[i]), got = {0};
        memcpy(&got, out + (size_t)i * to_size, to_size);
        if (!is_same((tn_dtype_t)to, expected, got)) {
          fprintf(stderr, "%s -> %s of %g\n", tn_dtype_name((tn_dtype_t)from),
                  tn_dtype_name((tn_dtype_t)to), values[i]);
          TN_EXPECT(!"conversion");
        }
      }
    }
}
TN_TEST(large_copies_are_split) {
  for (int size = 0; size < 3; ++size) {
    const tn_dtype_t dtypes[] = {TN_F32, TN_BF16, TN_F64};
    const int64_t dims[2] = {test_between(300, 700), test_between(300, 700)}, one[1] = {200003};
    for (int threads = 1; threads <= 3; ++threads) {
      check_copy(dtypes[size], dtypes[size], 2, dims, threads);
      check_copy(dtypes[size], TN_F32, 2, dims, threads);
      check_copy(dtypes[size], dtypes[size], 1, one, threads);
    }
  }
}
TN_TEST(pads_and_fills) {
  for (int round = 0; round < 200; ++round) {
    const int rank = (int)test_between(1, 3);
    int64_t dims[3], low[3], interior[3], out_dims[3];
    for (int i = 0; i < rank; ++i) {
      dims[i] = test_between(0, 9);
      low[i] = test_between(-4, 4);
      interior[i] = test_between(0, 2);
      const int64_t high = test_between(-4, 4),
                    spread = dims[i] ? dims[i] + (dims[i] - 1) * interior[i] : 0;
      out_dims[i] = spread + low[i] + high > 0 ? spread + low[i] + high : 0;
    }
    test_array_t x = test_array(TN_I32, rank, dims, 1), out = test_array(TN_I32, rank, out_dims, 1);
    tn_copy_pad(NULL, &x.view, (tn_scalar_t){.i32 = 77}, low, interior, &out.view);
    int64_t index[3] = {0};
    if (tn_view_element_count(&out.view)) {
      do {
        int64_t from[3];
        bool inside = true;
        for (int i = 0; i < rank; ++i) {
          const int64_t at = index[i] - low[i];
          from[i] = at / (interior[i] + 1);
          inside = inside && at >= 0 && at % (interior[i] + 1) == 0 && from[i] < dims[i];
        }
        TN_EXPECT_EQ(inside ? test_get(&x.view, from).i32 : 77, test_get(&out.view, index).i32);
      } while (test_next(&out.view, index));
    }
    test_array_free(&x);
    test_array_free(&out);
  }
}
