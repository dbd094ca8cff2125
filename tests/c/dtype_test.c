// tests/c/dtype_test.c mirrors src/ir/dtype.c and src/ir/float_bits.h
#include "tests/c/test.h"

#include <math.h>

#include "ir/float_bits.h"
#include "tn/dtype.h"

// Every value of a small format comes back from f32, and halfway values go to the even neighbour.
TN_TEST(f16_round_trips_and_rounds_to_even) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = tn_f16_to_f32((uint16_t)bits);
    if (value == value && tn_f32_to_f16(value) != bits) TN_EXPECT_EQ(bits, tn_f32_to_f16(value));
    if (value != value)
      TN_EXPECT(tn_f16_to_f32(tn_f32_to_f16(value)) != tn_f16_to_f32(tn_f32_to_f16(value)));
    uint32_t magnitude = bits & 0x7fff;
    if (magnitude >= 0x7bff) continue;
    // Exact in f32: neighbours have 11 bits, their mean 12.
    float next = tn_f16_to_f32((uint16_t)(bits + 1)), middle = (value + next) / 2;
    uint32_t even = bits & 1 ? bits + 1 : bits;
    if (tn_f32_to_f16(middle) != even) TN_EXPECT_EQ(even, tn_f32_to_f16(middle));
    if (tn_f32_to_f16(nextafterf(middle, next)) != bits + 1)
      TN_EXPECT_EQ(bits + 1, tn_f32_to_f16(nextafterf(middle, next)));
    if (tn_f32_to_f16(nextafterf(middle, value)) != bits)
      TN_EXPECT_EQ(bits, tn_f32_to_f16(nextafterf(middle, value)));
  }
  TN_EXPECT_EQ(0x7c00, tn_f32_to_f16(65520.0f));
  TN_EXPECT_EQ(0x7bff, tn_f32_to_f16(65519.0f));
  TN_EXPECT_EQ(0x0000, tn_f32_to_f16(0x1p-25f));
  TN_EXPECT_EQ(0x0001, tn_f32_to_f16(0x1.8p-25f));
}

static void check_f8(float (*wide)(uint8_t), uint8_t (*narrow)(float), uint32_t last) {
  for (uint32_t bits = 0; bits < 256; ++bits) {
    float value = wide((uint8_t)bits);
    if (value == value) TN_EXPECT_EQ(bits, narrow(value));
    if ((bits & 0x7f) >= last) continue;
    float next = wide((uint8_t)(bits + 1)), middle = (value + next) / 2;
    TN_EXPECT_EQ(bits & 1 ? bits + 1 : bits, narrow(middle));
    TN_EXPECT_EQ(bits + 1, narrow(nextafterf(middle, next)));
    TN_EXPECT_EQ(bits, narrow(nextafterf(middle, value)));
  }
}
TN_TEST(f8_round_trips_and_rounds_to_even) {
  check_f8(tn_f8e4m3fn_to_f32, tn_f32_to_f8e4m3fn, 0x7e);
  check_f8(tn_f8e5m2_to_f32, tn_f32_to_f8e5m2, 0x7b);
  TN_EXPECT_EQ(0x7e, tn_f32_to_f8e4m3fn(464.0f));  // halfway to the next step goes to the even 448
  TN_EXPECT_EQ(0x7f, tn_f32_to_f8e4m3fn(465.0f));
  TN_EXPECT_EQ(0x7f, tn_f32_to_f8e4m3fn(INFINITY));
  TN_EXPECT_EQ(0x7c, tn_f32_to_f8e5m2(INFINITY));
}
TN_TEST(bf16_rounds_to_even) {
  TN_EXPECT_EQ(0x3f80, tn_f32_to_bf16(tn_f32_from_bits(0x3f808000)));
  TN_EXPECT_EQ(0x3f82, tn_f32_to_bf16(tn_f32_from_bits(0x3f818000)));
  TN_EXPECT_EQ(0x3f81, tn_f32_to_bf16(tn_f32_from_bits(0x3f808001)));
  TN_EXPECT_EQ(0x7f80, tn_f32_to_bf16(3.4e38f));
  TN_EXPECT_EQ(0x7fc0, tn_f32_to_bf16(NAN));
}

TN_TEST(conversions_truncate_and_wrap) {
  TN_EXPECT_EQ(-2, tn_scalar_from_double(TN_I8, -2.9).i8);
  TN_EXPECT_EQ(44, tn_scalar_from_double(TN_I8, 300.0).i8);
  TN_EXPECT_EQ(0, tn_scalar_from_double(TN_I32, NAN).i32);
  TN_EXPECT_EQ(INT64_MIN, tn_scalar_from_double(TN_I64, 1e30).i64);
  TN_EXPECT(tn_scalar_from_double(TN_U64, 0x1.8p63).u64 == 3ull << 62);
  TN_EXPECT_EQ(255, tn_scalar_from_double(TN_U8, -1.0).u8);
  TN_EXPECT_EQ(1, tn_scalar_from_double(TN_BOOL, NAN).b);
  TN_EXPECT_EQ(1, tn_scalar_from_complex(TN_BOOL, 0, 2).b);
  // One rounding from the integer: through f64 this would become 2^60.
  tn_scalar_t odd = {.i64 = (1ll << 60) + (1ll << 36) + 1};
  TN_EXPECT(tn_scalar_convert(TN_F32, TN_I64, odd).f32 == 0x1.000002p60f);
  tn_scalar_t big = {.u64 = ~0ull};
  TN_EXPECT(tn_scalar_convert(TN_F64, TN_U64, big).f64 == 0x1p64);
  TN_EXPECT_EQ(-1, tn_scalar_convert(TN_I32, TN_U64, big).i32);
  TN_EXPECT(tn_scalar_convert(TN_F32, TN_C64, (tn_scalar_t){.c64 = {2, 3}}).f32 == 2);
}

TN_TEST(names_are_found_again) {
  for (int i = 0; i < TN_DTYPE_COUNT; ++i) {
    const char* name = tn_dtype_name((tn_dtype_t)i);
    TN_EXPECT_EQ(i, tn_dtype_from_name(name, strlen(name)));
  }
  TN_EXPECT_EQ(TN_DTYPE_NONE, tn_dtype_from_name("f33", 3));
}
