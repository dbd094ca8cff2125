// Mirrors src/base/status.c and size.h.
#include "tests/c/test.h"

#include "base/size.h"

TN_TEST(ok_is_nothing) {
  TN_EXPECT_EQ(TN_SUCCESS, tn_status_code(TN_OK));
  TN_EXPECT_STR("", tn_status_message(TN_OK));
  TN_EXPECT_STR("", tn_status_place(TN_OK));
  TN_EXPECT(tn_status_annotate(TN_OK, "never") == TN_OK);
  tn_status_free(TN_OK);
}

TN_TEST(an_error_carries_code_message_and_place) {
  const int line = __LINE__ + 1;
  tn_status_t status = TN_ERROR(TN_OUT_OF_RANGE, "dimension is %d, expected 0..%d", 7, 3);
  char place[64];
  snprintf(place, sizeof(place), "status_test.c:%d", line);
  TN_EXPECT_EQ(TN_OUT_OF_RANGE, tn_status_code(status));
  TN_EXPECT_STR("dimension is 7, expected 0..3", tn_status_message(status));
  TN_EXPECT_STR(place, tn_status_place(status));
  status = tn_status_annotate(status, "slice of %s", "x");
  TN_EXPECT_EQ(TN_OUT_OF_RANGE, tn_status_code(status));
  TN_EXPECT_STR("slice of x: dimension is 7, expected 0..3", tn_status_message(status));
  TN_EXPECT_STR(place, tn_status_place(status));
  tn_status_free(status);
}

TN_TEST(long_messages_and_places_are_safe) {
  char text[5001];
  memset(text, 'x', 5000);
  text[5000] = 0;
  tn_status_t status = tn_status_create(TN_INTERNAL, text, 123456789, "%s", text);
  TN_EXPECT_STR(text, tn_status_message(status));
  TN_EXPECT(strlen(tn_status_place(status)) < 60);
  tn_status_free(status);
}

static tn_status_t fails_second(int* calls) {
  TN_TRY((++*calls, TN_OK));
  TN_TRY((++*calls, TN_ERROR(TN_DATA_LOSS, "second")));
  TN_TRY((++*calls, TN_OK));
  return TN_OK;
}

TN_TEST(try_returns_the_first_error) {
  int calls = 0;
  TN_EXPECT_CODE(TN_DATA_LOSS, fails_second(&calls));
  TN_EXPECT_EQ(2, calls);
}

TN_TEST(code_names) {
  TN_EXPECT_STR("OK", tn_code_name(TN_SUCCESS));
  TN_EXPECT_STR("INTERNAL", tn_code_name(TN_INTERNAL));
  TN_EXPECT_STR("UNKNOWN", tn_code_name((tn_code_t)99));
}

TN_TEST(checked_sizes) {
  size_t size;
  TN_EXPECT(tn_size_array(16, 3, 8, &size) && size == 40);
  TN_EXPECT(!tn_size_array(16, SIZE_MAX / 4, 8, &size));
  TN_EXPECT(!tn_size_array(16, SIZE_MAX / 8, 8, &size));
  TN_EXPECT(tn_size_align(65, 64, &size) && size == 128);
  TN_EXPECT(tn_size_align(0, 64, &size) && size == 0);
  TN_EXPECT(!tn_size_align(SIZE_MAX - 3, 64, &size));
  int64_t count;
  const int64_t plain[] = {2, 3, 4}, huge[] = {INT64_MAX / 2, 3},
                empty[] = {INT64_MAX, INT64_MAX, 0}, wrong[] = {2, -1};
  TN_EXPECT(tn_size_extents(plain, 3, &count) && count == 24);
  TN_EXPECT(tn_size_extents(plain, 0, &count) && count == 1);
  TN_EXPECT(!tn_size_extents(huge, 2, &count));
  TN_EXPECT(tn_size_extents(empty, 3, &count) && count == 0);
  TN_EXPECT(!tn_size_extents(wrong, 2, &count));
}
