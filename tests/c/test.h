// A small test frame: TN_TEST defines a test, TN_EXPECT* check, the main function runs all tests of the file.
//
// A failed check prints its place and values and fails its test; the others still run. The last line is
// "N passed, N failed". An argument runs only the tests whose name contains it.
#ifndef TESTS_C_TEST_H_
#define TESTS_C_TEST_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tn/status.h"

typedef void (*tn_test_fn_t)(void);
typedef struct tn_test_case {
  const char* name;
  tn_test_fn_t run;
} tn_test_case_t;

static tn_test_case_t tn_test_cases[512];
static int tn_test_count;
static int tn_test_failures;

#define TN_TEST(test_name)                                                           \
  static void test_##test_name(void);                                                \
  __attribute__((constructor)) static void register_##test_name(void) {              \
    tn_test_cases[tn_test_count++] = (tn_test_case_t){#test_name, test_##test_name}; \
  }                                                                                  \
  static void test_##test_name(void)

#define TN_EXPECT(condition)                                                   \
  do {                                                                         \
    if (!(condition)) {                                                        \
      ++tn_test_failures;                                                      \
      fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
    }                                                                          \
  } while (0)

#define TN_EXPECT_EQ(expected, actual)                                                           \
  do {                                                                                           \
    long long tn_e = (long long)(expected), tn_a = (long long)(actual);                          \
    if (tn_e != tn_a) {                                                                          \
      ++tn_test_failures;                                                                        \
      fprintf(stderr, "%s:%d: %s: expected %lld, got %lld\n", __FILE__, __LINE__, #actual, tn_e, \
              tn_a);                                                                             \
    }                                                                                            \
  } while (0)

#define TN_EXPECT_STR(expected, actual)                                                  \
  do {                                                                                   \
    const char *tn_e = (expected), *tn_a = (actual);                                     \
    if (strcmp(tn_e, tn_a) != 0) {                                                       \
      ++tn_test_failures;                                                                \
      fprintf(stderr, "%s:%d: expected\n%s\ngot\n%s\n", __FILE__, __LINE__, tn_e, tn_a); \
    }                                                                                    \
  } while (0)

// The status has this code; it is freed.
#define TN_EXPECT_CODE(expected, expression)                                                   \
  do {                                                                                         \
    tn_status_t tn_s = (expression);                                                           \
    if (tn_status_code(tn_s) != (expected)) {                                                  \
      ++tn_test_failures;                                                                      \
      fprintf(stderr, "%s:%d: %s: expected %s, got %s: %s\n", __FILE__, __LINE__, #expression, \
              tn_code_name(expected), tn_code_name(tn_status_code(tn_s)),                      \
              tn_status_message(tn_s));                                                        \
    }                                                                                          \
    tn_status_free(tn_s);                                                                      \
  } while (0)
#define TN_EXPECT_OK(expression) TN_EXPECT_CODE(TN_SUCCESS, expression)

int main(int argc, char** argv) {
  int passed = 0, failed = 0;
  for (int i = 0; i < tn_test_count; ++i) {
    if (argc > 1 && strstr(tn_test_cases[i].name, argv[1]) == NULL) continue;
    tn_test_failures = 0;
    tn_test_cases[i].run();
    if (tn_test_failures) {
      ++failed;
      fprintf(stderr, "FAILED %s\n", tn_test_cases[i].name);
    } else {
      ++passed;
    }
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0 || passed + failed == 0;
}

#endif  // TESTS_C_TEST_H_
