// src/ir/interp_unary.c, interp_binary.c, interp_complex.c, interp_leaf.c: values by hand.
#include <math.h>

#include "base/math_scalar.h"
#include "ir/float_bits.h"
#include "tests/c/interp_case.h"

#define INF INFINITY

// ---- unary on f32 ------------------------------------------------------------------------------------------------
static const struct {
  tn_op_t op;
  float x, want;
} unary_rows[] = {
    {TN_OP_NEG, 0.0f, -0.0f},
    {TN_OP_ABS, -3.0f, 3.0f},
    {TN_OP_SIGN, -2.0f, -1.0f},
    {TN_OP_SIGN, NAN, NAN},
    {TN_OP_SIGN, -0.0f, -0.0f},
    {TN_OP_CEIL, -1.5f, -1.0f},
    {TN_OP_FLOOR, -1.5f, -2.0f},
    {TN_OP_ROUND_EVEN, 2.5f, 2.0f},
    {TN_OP_ROUND_EVEN, 3.5f, 4.0f},
    {TN_OP_ROUND_AFZ, 2.5f, 3.0f},
    {TN_OP_ROUND_AFZ, -2.5f, -3.0f},
    {TN_OP_TRUNC, -2.7f, -2.0f},
    {TN_OP_ROUND_AFZ, 0.49999997f, 0.0f},
    {TN_OP_SQRT, 2.25f, 1.5f},
    {TN_OP_SQRT, -1.0f, NAN},
    {TN_OP_RSQRT, 4.0f, 0.5f},
    {TN_OP_RSQRT, 0.0f, INF},
    {TN_OP_CBRT, -27.0f, -3.0f},
    {TN_OP_EXP, 0.0f, 1.0f},
    {TN_OP_EXP, -INF, 0.0f},
    {TN_OP_EXP2, 10.0f, 1024.0f},
    {TN_OP_EXPM1, -INF, -1.0f},
    {TN_OP_LOG, 1.0f, 0.0f},
    {TN_OP_LOG, 0.0f, -INF},
    {TN_OP_LOG2, 8.0f, 3.0f},
    {TN_OP_LOG1P, -1.0f, -INF},
    {TN_OP_LOGISTIC, 0.0f, 0.5f},
    {TN_OP_SIN, 0.0f, 0.0f},
    {TN_OP_COS, 0.0f, 1.0f},
    {TN_OP_TAN, INF, NAN},
    {TN_OP_TANH, INF, 1.0f},
    {TN_OP_ERF, -INF, -1.0f},
    {TN_OP_ERFC, INF, 0.0f},
    {TN_OP_ERFINV, 1.0f, INF},
    {TN_OP_ASIN, 2.0f, NAN},
    {TN_OP_ACOS, 1.0f, 0.0f},
    {TN_OP_ATAN, INF, 1.57079637f},
    {TN_OP_SINH, 0.0f, 0.0f},
    {TN_OP_COSH, 0.0f, 1.0f},
    {TN_OP_ASINH, -INF, -INF},
    {TN_OP_ACOSH, 0.5f, NAN},
    {TN_OP_ATANH, -1.0f, -INF},
    {TN_OP_LGAMMA, 3.0f, 0.693147182f},
    {TN_OP_DIGAMMA, 1.0f, -0.577215672f},
};

TN_TEST(unary_f32) {
  for (size_t i = 0; i < sizeof unary_rows / sizeof unary_rows[0]; ++i) {
    tn_graph_t* g = open_graph();
    float out;
    TN_EXPECT_OK(run(g, tn_unary(g, unary_rows[i].op, param(g, TN_F32, 1, 1)), &unary_rows[i].x, 0,
                     0, &out));
    const float want = unary_rows[i].want;
    const bool is_same = out == want ? signbit(out) == signbit(want) : out != out && want != want;
    if (!is_same)
      fprintf(stderr, "%s(%g): got %g\n", tn_op_info(unary_rows[i].op)->name,
              (double)unary_rows[i].x, (double)out);
    TN_EXPECT(is_same);
  }
}

TN_TEST(transcendental_functions_are_the_recipes) {
  static const struct {
    tn_op_t op;
    tn_math_fn_t fn;
  } rows[] = {{TN_OP_EXP, TN_MATH_EXP},           {TN_OP_EXP2, TN_MATH_EXP2},
              {TN_OP_EXPM1, TN_MATH_EXPM1},       {TN_OP_LOG, TN_MATH_LOG},
              {TN_OP_LOG2, TN_MATH_LOG2},         {TN_OP_LOG1P, TN_MATH_LOG1P},
              {TN_OP_TANH, TN_MATH_TANH},         {TN_OP_ERF, TN_MATH_ERF},
              {TN_OP_LOGISTIC, TN_MATH_LOGISTIC}, {TN_OP_ERFC, TN_MATH_ERFC},
              {TN_OP_SIN, TN_MATH_SIN},           {TN_OP_COS, TN_MATH_COS},
              {TN_OP_TAN, TN_MATH_TAN},           {TN_OP_ASIN, TN_MATH_ASIN},
              {TN_OP_ACOS, TN_MATH_ACOS},         {TN_OP_ATAN, TN_MATH_ATAN},
              {TN_OP_SINH, TN_MATH_SINH},         {TN_OP_COSH, TN_MATH_COSH},
              {TN_OP_ASINH, TN_MATH_ASINH},       {TN_OP_ACOSH, TN_MATH_ACOSH},
              {TN_OP_ATANH, TN_MATH_ATANH},       {TN_OP_CBRT, TN_MATH_CBRT},
              {TN_OP_RSQRT, TN_MATH_RSQRT},       {TN_OP_ERFINV, TN_MATH_ERFINV}};
  float x[600], want[600], out[600];
  uint16_t small[600], small_out[600];
  for (int i = 0; i < 600; ++i) {
    x[i] = (float)(i - 300) * 0.0117f;
    small[i] = tn_f32_to_bf16(x[i]);
  }
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; ++k) {
    tn_graph_t* g = open_graph();
    TN_EXPECT_OK(run(g, tn_unary(g, rows[k].op, param(g, TN_F32, 2, 20, 30)), x, 0, 0, out));
    tn_math_map_f32(rows[k].fn, x, NULL, want, 600);
    for (int i = 0; i < 600; ++i)
      TN_EXPECT(out[i] == want[i] || (out[i] != out[i] && want[i] != want[i]));
    // bf16 computes in f32 and rounds once
    g = open_graph();
    TN_EXPECT_OK(
        run(g, tn_unary(g, rows[k].op, param(g, TN_BF16, 1, 600)), small, 0, 0, small_out));
    for (int i = 0; i < 600; ++i) want[i] = tn_bf16_to_f32(small[i]);
    tn_math_map_f32(rows[k].fn, want, NULL, want, 600);
    for (int i = 0; i < 600; ++i) TN_EXPECT_EQ(tn_f32_to_bf16(want[i]), small_out[i]);
    // f64 is close to it
    g = open_graph();
    double wide[600], wide_out[600];
    for (int i = 0; i < 600; ++i) wide[i] = (double)x[i];
    TN_EXPECT_OK(run(g, tn_unary(g, rows[k].op, param(g, TN_F64, 1, 600)), wide, 0, 0, wide_out));
    for (int i = 0; i < 600; ++i) {
      const double given = (double)out[i];
      TN_EXPECT(given == wide_out[i] || fabs(given - wide_out[i]) <= 2.5e-7 * fabs(given) ||
                given != given);
    }
  }
}

// ---- integers ----------------------------------------------------------------------------------------------------
static const struct {
  tn_op_t op;
  tn_dtype_t dtype;
  int64_t x, y, want;
} int_rows[] = {
    {TN_OP_ADD, TN_I8, 127, 1, -128},
    {TN_OP_ADD, TN_U8, 255, 2, 1},
    {TN_OP_SUB, TN_U16, 0, 1, 65535},
    {TN_OP_MUL, TN_I32, 65536, 65536, 0},
    {TN_OP_DIV, TN_I32, 7, 0, 0},
    {TN_OP_DIV, TN_I32, -7, 2, -3},
    {TN_OP_DIV, TN_I32, INT32_MIN, -1, INT32_MIN},
    {TN_OP_DIV, TN_I64, INT64_MIN, -1, INT64_MIN},
    {TN_OP_DIV, TN_U64, -1, 2, INT64_MAX},
    {TN_OP_REM, TN_I32, -7, 2, -1},
    {TN_OP_REM, TN_I8, -128, -1, 0},
    {TN_OP_REM, TN_U8, 200, 7, 4},
    {TN_OP_REM, TN_I16, 5, 0, 0},
    {TN_OP_POW, TN_I32, 3, 5, 243},
    {TN_OP_POW, TN_I32, 2, -1, 0},
    {TN_OP_POW, TN_I32, -1, -3, -1},
    {TN_OP_POW, TN_I8, 2, 7, -128},
    {TN_OP_MIN, TN_U8, 200, 100, 100},
    {TN_OP_MIN, TN_I8, -56, 100, -56},
    {TN_OP_MAX, TN_U64, -1, 1, -1},
    {TN_OP_AND, TN_I16, 12, 10, 8},
    {TN_OP_OR, TN_I16, 12, 10, 14},
    {TN_OP_XOR, TN_I16, 12, 10, 6},
    {TN_OP_SHL, TN_I8, 1, 7, -128},
    {TN_OP_SHL, TN_I8, 1, 8, 0},
    {TN_OP_SHL, TN_I8, 1, -1, 0},
    {TN_OP_SHR_A, TN_I8, -128, 3, -16},
    {TN_OP_SHR_A, TN_I32, -5, 32, -1},
    {TN_OP_SHR_A, TN_I32, 5, 40, 0},
    {TN_OP_SHR_A, TN_U8, 128, 7, 255},
    {TN_OP_SHR_L, TN_I8, -128, 3, 16},
    {TN_OP_SHR_L, TN_I64, -1, 63, 1},
    {TN_OP_SHR_L, TN_U32, 7, 32, 0},
};

TN_TEST(binary_integers) {
  for (size_t i = 0; i < sizeof int_rows / sizeof int_rows[0]; ++i) {
    tn_graph_t* g = open_graph();
    const tn_dtype_t dtype = int_rows[i].dtype;
    const tn_scalar_t x = tn_scalar_from_int(dtype, int_rows[i].x),
                      y = tn_scalar_from_int(dtype, int_rows[i].y);
    tn_scalar_t out = {{0}};
    const tn_node_t *a = param(g, dtype, 0), *b = param(g, dtype, 0);
    TN_EXPECT_OK(run(g, tn_binary(g, int_rows[i].op, a, b), &x, &y, 0, &out));
    if (tn_scalar_to_int(dtype, out) != int_rows[i].want)
      fprintf(stderr, "%s row %zu\n", tn_op_info(int_rows[i].op)->name, i);
    TN_EXPECT_EQ(int_rows[i].want, tn_scalar_to_int(dtype, out));
  }
}

TN_TEST(unary_integers) {
  static const struct {
    tn_op_t op;
    tn_dtype_t dtype;
    int64_t x, want;
  } rows[] = {
      {TN_OP_NEG, TN_I8, -128, -128}, {TN_OP_ABS, TN_I8, -128, -128}, {TN_OP_ABS, TN_U8, 200, 200},
      {TN_OP_SIGN, TN_I32, -9, -1},   {TN_OP_SIGN, TN_U64, -1, 1},    {TN_OP_NOT, TN_I16, 0, -1},
      {TN_OP_NOT, TN_U8, 1, 254},     {TN_OP_NOT, TN_BOOL, 1, 0},     {TN_OP_POPCNT, TN_I8, -1, 8},
      {TN_OP_POPCNT, TN_U64, -1, 64}, {TN_OP_CLZ, TN_I8, 1, 7},       {TN_OP_CLZ, TN_I8, -1, 0},
      {TN_OP_CLZ, TN_U32, 0, 32},     {TN_OP_CLZ, TN_I64, 0, 64}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    tn_graph_t* g = open_graph();
    const tn_scalar_t x = tn_scalar_from_int(rows[i].dtype, rows[i].x);
    tn_scalar_t out = {{0}};
    TN_EXPECT_OK(run(g, tn_unary(g, rows[i].op, param(g, rows[i].dtype, 0)), &x, 0, 0, &out));
    TN_EXPECT_EQ(rows[i].want, tn_scalar_to_int(rows[i].dtype, out));
  }
}

// ---- binary floats, compare, select ------------------------------------------------------------------------------
TN_TEST(binary_floats) {
  static const struct {
    tn_op_t op;
    float x, y, want;
  } rows[] = {{TN_OP_ADD, 1.5f, 2.25f, 3.75f},
              {TN_OP_SUB, 1.0f, 3.0f, -2.0f},
              {TN_OP_MUL, -0.0f, 3.0f, -0.0f},
              {TN_OP_DIV, 1.0f, -0.0f, -INF},
              {TN_OP_REM, -7.5f, 2.0f, -1.5f},
              {TN_OP_REM, 1.0f, 0.0f, NAN},
              {TN_OP_POW, 2.0f, -2.0f, 0.25f},
              {TN_OP_POW, -8.0f, 0.5f, NAN},
              {TN_OP_MIN, NAN, 1.0f, NAN},
              {TN_OP_MIN, 1.0f, NAN, NAN},
              {TN_OP_MAX, 1.0f, NAN, NAN},
              {TN_OP_MAX, -1.0f, 2.0f, 2.0f},
              {TN_OP_ATAN2, 1.0f, -1.0f, 2.35619449f},
              {TN_OP_NEXTAFTER, 1.0f, 2.0f, 0x1.000002p0f},
              {TN_OP_NEXTAFTER, 0.0f, -1.0f, -0x1p-149f}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    tn_graph_t* g = open_graph();
    const tn_node_t *a = param(g, TN_F32, 0), *b = param(g, TN_F32, 0);
    float out;
    TN_EXPECT_OK(run(g, tn_binary(g, rows[i].op, a, b), &rows[i].x, &rows[i].y, 0, &out));
    EXPECT_FLOATS(&out, rows[i].want);
    TN_EXPECT(out != out || signbit(out) == signbit(rows[i].want));
    double x = (double)rows[i].x, y = (double)rows[i].y, wide;
    if (rows[i].op == TN_OP_NEXTAFTER) continue;
    g = open_graph();
    a = param(g, TN_F64, 0), b = param(g, TN_F64, 0);
    TN_EXPECT_OK(run(g, tn_binary(g, rows[i].op, a, b), &x, &y, 0, &wide));
    const float narrow = (float)wide;
    EXPECT_FLOATS(&narrow, rows[i].want);
  }
}

TN_TEST(sixteen_bit_floats_round_once_per_node) {
  // 1 + 2^-8 is a tie in bf16: to even, 1
  const uint16_t x = tn_f32_to_bf16(1.0f), y = tn_f32_to_bf16(0x1p-8f);
  uint16_t out;
  tn_graph_t* g = open_graph();
  const tn_node_t *a = param(g, TN_BF16, 0), *b = param(g, TN_BF16, 0);
  TN_EXPECT_OK(run(g, tn_binary(g, TN_OP_ADD, a, b), &x, &y, 0, &out));
  TN_EXPECT_EQ(x, out);
  const uint16_t big = tn_f32_to_f16(60000.0f);
  g = open_graph();
  a = param(g, TN_F16, 0), b = param(g, TN_F16, 0);
  TN_EXPECT_OK(run(g, tn_binary(g, TN_OP_ADD, a, b), &big, &big, 0, &out));
  TN_EXPECT_EQ(0x7c00, out);
  const uint16_t one = 0x3c00, two = 0x4000;
  g = open_graph();
  a = param(g, TN_F16, 0), b = param(g, TN_F16, 0);
  TN_EXPECT_OK(run(g, tn_binary(g, TN_OP_NEXTAFTER, a, b), &one, &two, 0, &out));
  TN_EXPECT_EQ(0x3c01, out);
}

TN_TEST(compare_in_all_directions) {
  static const struct {
    tn_compare_t direction;
    uint8_t want[4];
  } rows[] = {{TN_EQ, {0, 1, 0, 0}}, {TN_NE, {1, 0, 1, 1}}, {TN_LT, {1, 0, 0, 0}},
              {TN_LE, {1, 1, 0, 0}}, {TN_GT, {0, 0, 1, 0}}, {TN_GE, {0, 1, 1, 0}}};
  const float x[4] = {1, 2, 3, NAN}, y[4] = {2, 2, 2, 2};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    tn_graph_t* g = open_graph();
    const tn_node_t *a = param(g, TN_F32, 1, 4), *b = param(g, TN_F32, 1, 4);
    uint8_t out[4];
    TN_EXPECT_OK(run(g, tn_compare(g, rows[i].direction, a, b), x, y, 0, out));
    EXPECT_BYTES(rows[i].want, out, 4);
  }
  tn_graph_t* g = open_graph();
  const tn_node_t *a = param(g, TN_U64, 0), *b = param(g, TN_U64, 0);
  const uint64_t top = UINT64_MAX, low = 1;
  uint8_t is_less;
  TN_EXPECT_OK(run(g, tn_compare(g, TN_LT, a, b), &top, &low, 0, &is_less));
  TN_EXPECT_EQ(0, is_less);
}

TN_TEST(select_clamp_fma) {
  const uint8_t p[3] = {1, 0, 1};
  const float x[3] = {1, 2, 3}, y[3] = {-1, -2, -3};
  float out[3];
  tn_graph_t* g = open_graph();
  const tn_node_t *a = param(g, TN_BOOL, 1, 3), *b = param(g, TN_F32, 1, 3),
                  *c = param(g, TN_F32, 1, 3);
  TN_EXPECT_OK(run(g, tn_select(g, a, b, c), p, x, y, out));
  EXPECT_FLOATS(out, 1, -2, 3);
  const float low[3] = {0, 0, 0}, v[3] = {-5, NAN, 9}, high[3] = {4, 4, 4};
  g = open_graph();
  a = param(g, TN_F32, 1, 3), b = param(g, TN_F32, 1, 3), c = param(g, TN_F32, 1, 3);
  TN_EXPECT_OK(run(g, tn_clamp(g, a, b, c), low, v, high, out));
  EXPECT_FLOATS(out, 0, NAN, 4);
  const float e = 0x1p-12f, s[1] = {1 + e}, t[1] = {-1};
  g = open_graph();
  a = param(g, TN_F32, 1, 1), c = param(g, TN_F32, 1, 1);
  TN_EXPECT_OK(run(g, tn_fma(g, a, a, c), s, t, 0, out));
  EXPECT_FLOATS(out, 0x1p-11f + 0x1p-24f);  // without fusing the last term would be lost
}

// ---- conversions, leaves, complex ------------------------------------------------------------------------------------
TN_TEST(convert_and_bitcast) {
  const float x[4] = {-1.7f, 300.0f, 0.0f, 2.5f};
  int8_t bytes[4];
  uint8_t bools[4];
  uint16_t halves[4];
  float out[4];
  tn_graph_t* g = open_graph();
  TN_EXPECT_OK(run(g, tn_convert(g, param(g, TN_F32, 1, 4), TN_I8), x, 0, 0, bytes));
  EXPECT_INTS(bytes, -1, 44, 0, 2);
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_convert(g, param(g, TN_F32, 1, 4), TN_BOOL), x, 0, 0, bools));
  EXPECT_INTS(bools, 1, 1, 0, 1);
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_convert(g, param(g, TN_F32, 1, 4), TN_F16), x, 0, 0, halves));
  EXPECT_INTS(halves, 0xbecd, 0x5cb0, 0, 0x4100);
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_convert(g, tn_convert(g, param(g, TN_F32, 1, 4), TN_F8E4M3FN), TN_F32), x,
                   0, 0, out));
  EXPECT_FLOATS(out, -1.75f, 288.0f, 0.0f, 2.5f);
  int32_t bits[4];
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_bitcast(g, param(g, TN_F32, 1, 4), TN_I32), x, 0, 0, bits));
  EXPECT_BYTES(x, bits, sizeof x);
  const float odd[3] = {INF, NAN, 1};
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_unary(g, TN_OP_IS_FINITE, param(g, TN_F32, 1, 3)), odd, 0, 0, bools));
  EXPECT_INTS(bools, 0, 0, 1);
}

TN_TEST(constant_and_iota) {
  tn_graph_t* g = open_graph();
  const int64_t dims[2] = {2, 3};
  const tn_type_t type = tn_type_make(TN_I16, 2, dims), wide = tn_type_make(TN_F32, 2, dims);
  int16_t out[6];
  float floats[6];
  TN_EXPECT_OK(run(g, tn_iota(g, &type, 1), 0, 0, 0, out));
  EXPECT_INTS(out, 0, 1, 2, 0, 1, 2);
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_iota(g, &wide, 0), 0, 0, 0, floats));
  EXPECT_FLOATS(floats, 0, 0, 0, 1, 1, 1);
  const int16_t data[6] = {1, 2, 3, 4, 5, 6};
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_constant(g, &type, data), 0, 0, 0, out));
  EXPECT_BYTES(data, out, sizeof out);
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_constant_splat(g, &type, tn_scalar_from_int(TN_I16, 7)), 0, 0, 0, out));
  EXPECT_INTS(out, 7, 7, 7, 7, 7, 7);
}

TN_TEST(complex_arithmetic) {
  const float x[4] = {1, 2, -3, 0.5f}, y[4] = {0.5f, -1, 2, 2};
  static const struct {
    tn_op_t op;
    float want[4];
  } rows[] = {{TN_OP_ADD, {1.5f, 1, -1, 2.5f}},
              {TN_OP_SUB, {0.5f, 3, -5, -1.5f}},
              {TN_OP_MUL, {2.5f, 0, -7, -5}},
              {TN_OP_DIV, {-1.2f, 1.6f, -0.625f, 0.875f}}};
  float out[4];
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    tn_graph_t* g = open_graph();
    const tn_node_t *a = param(g, TN_C64, 1, 2), *b = param(g, TN_C64, 1, 2);
    TN_EXPECT_OK(run(g, tn_binary(g, rows[i].op, a, b), x, y, 0, out));
    for (int k = 0; k < 4; ++k) TN_EXPECT(fabsf(out[k] - rows[i].want[k]) < 1e-6f);
  }
  tn_graph_t* g = open_graph();
  const tn_node_t *re = param(g, TN_F32, 1, 2), *im = param(g, TN_F32, 1, 2);
  TN_EXPECT_OK(run(g, tn_unary(g, TN_OP_ABS, tn_binary(g, TN_OP_COMPLEX, re, im)), (float[]){3, 0},
                   (float[]){4, -2}, 0, out));
  EXPECT_FLOATS(out, 5, 2);
  g = open_graph();
  TN_EXPECT_OK(run(g, tn_unary(g, TN_OP_IMAG, param(g, TN_C64, 1, 2)), x, 0, 0, out));
  EXPECT_FLOATS(out, 2, 0.5f);
  // log(exp z) = z and the like, in both precisions
  static const tn_op_t pairs[][2] = {{TN_OP_EXP, TN_OP_LOG},     {TN_OP_SIN, TN_OP_ASIN},
                                     {TN_OP_TANH, TN_OP_ATANH},  {TN_OP_EXP2, TN_OP_LOG2},
                                     {TN_OP_EXPM1, TN_OP_LOG1P}, {TN_OP_SINH, TN_OP_ASINH}};
  const double z[4] = {0.3, 0.4, -0.2, 0.1};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; ++i) {
    double back[4];
    g = open_graph();
    TN_EXPECT_OK(run(g, tn_unary(g, pairs[i][1], tn_unary(g, pairs[i][0], param(g, TN_C128, 1, 2))),
                     z, 0, 0, back));
    for (int k = 0; k < 4; ++k) TN_EXPECT(fabs(back[k] - z[k]) < 1e-14);
  }
}

// Known answers of Random123 (philox4x32 10, kat_vectors).
TN_TEST(philox_known_answers) {
  const uint64_t state[2] = {0, 0};
  uint32_t out[6];
  tn_graph_t* g = open_graph();
  const int64_t dims[1] = {6};
  const tn_type_t type = tn_type_make(TN_U32, 1, dims);
  TN_EXPECT_OK(run(g, tn_rng_bits(g, param(g, TN_U64, 1, 2), &type), state, 0, 0, out));
  EXPECT_INTS(out, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  // the fifth word is the first of the next counter
  const uint64_t next[2] = {0, 1};
  uint64_t wide[2];
  g = open_graph();
  const int64_t two[1] = {2};
  const tn_type_t wide_type = tn_type_make(TN_U64, 1, two);
  TN_EXPECT_OK(run(g, tn_rng_bits(g, param(g, TN_U64, 1, 2), &wide_type), next, 0, 0, wide));
  TN_EXPECT_EQ(out[4], (uint32_t)wide[0]);
  TN_EXPECT_EQ(out[5], wide[0] >> 32);
}
