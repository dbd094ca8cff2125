// The parser on damaged text: every file of tests/ir, changed at random, gives a graph or an error with a place.
#define _GNU_SOURCE  // nftw
#include <ftw.h>
#include <stdlib.h>

#include "ir/text.h"
#include "tests/c/test.h"

typedef struct tn_file {
  char* text;
  size_t length;
} tn_file_t;

enum { TN_MOST_FILES = 256, TN_ROUNDS = 40, TN_MOST_LENGTH = 1 << 16 };
static tn_file_t files[TN_MOST_FILES];
static int file_count;

static int add_file(const char* path, const struct stat* info, int kind, struct FTW* where) {
  (void)where;
  const size_t length = strlen(path);
  if (kind != FTW_F || length < 5 || strcmp(path + length - 5, ".mlir") != 0) return 0;
  if (file_count == TN_MOST_FILES || info->st_size > TN_MOST_LENGTH / 2) return 0;
  FILE* file = fopen(path, "rb");
  if (!file) return 0;
  tn_file_t* out = &files[file_count++];
  out->text = malloc((size_t)info->st_size + 1);
  out->length = out->text ? fread(out->text, 1, (size_t)info->st_size, file) : 0;
  fclose(file);
  return 0;
}

static uint64_t state = 0x9E3779B97F4A7C15u;
static size_t below(size_t limit) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return limit ? (size_t)(state >> 11) % limit : 0;
}

// One change of |length| bytes at |text|, which has room for TN_MOST_LENGTH; returns the new length.
static size_t change(char* text, size_t length) {
  static const char* const pieces[] = {
      "(", ")",  "{",  "}",   "<",  ">",    "[",      "]",    ",",
      ":", "=",  "%0", "%a",  "@f", "\"",   "-1",     "0",    "99999999999999999999",
      "x", "->", "i1", "f32", "#",  "0x7F", "dense<", "init", "tensor<2xf32>"};
  const size_t at = below(length + 1);
  size_t taken = 0, given = 0;
  const char* piece = "";
  char copy[64];
  switch (below(4)) {
    case 0: taken = 1 + below(12); break;
    case 1:
      taken = below(2);
      piece = pieces[below(sizeof pieces / sizeof pieces[0])];
      given = strlen(piece);
      break;
    case 2: {  // from elsewhere
      const tn_file_t* other = &files[below((size_t)file_count)];
      const size_t from = below(other->length + 1);
      given = below(sizeof copy);
      if (given > other->length - from) given = other->length - from;
      memcpy(copy, other->text + from, given);
      piece = copy;
      taken = below(2) * given;
      break;
    }
    default:
      copy[0] = (char)(1 + below(255));
      piece = copy;
      given = taken = 1;
  }
  if (taken > length - at) taken = length - at;
  if (length - taken + given > TN_MOST_LENGTH) return length;
  memmove(text + at + given, text + at + taken, length - at - taken);
  memcpy(text + at, piece, given);
  return length - taken + given;
}

static void expect_place(tn_status_t status) {
  if (tn_status_code(status) == TN_INVALID_ARGUMENT)
    TN_EXPECT(strncmp(tn_status_message(status), "f.mlir:", 7) == 0);
  tn_status_free(status);
}

static void parse_all(const char* text, size_t length) {
  tn_text_function_t* functions;
  int count;
  tn_status_t status = tn_text_functions("f.mlir", text, length, &functions, &count);
  if (status) expect_place(status);
  for (int i = 0; i < count; ++i) {
    tn_graph_t* graph;
    tn_text_check_t* checks;
    int check_count;
    status = tn_text_parse_function("f.mlir", text, length, &functions[i], &graph, &checks,
                                    &check_count);
    if (status) {
      expect_place(status);
      continue;
    }
    TN_EXPECT_OK(tn_graph_verify(graph));
    char* printed = NULL;
    TN_EXPECT_OK(tn_graph_print(graph, &printed));
    free(printed);
    free(checks);
    tn_graph_destroy(graph);
  }
  free(functions);
}

TN_TEST(damaged_text_gives_a_graph_or_a_place) {
  nftw(TN_IR_CASES, add_file, 8, 0);
  TN_EXPECT(file_count > 10);
  char* text = malloc(TN_MOST_LENGTH + 1);
  for (int i = 0; text && i < file_count && !tn_test_failures; ++i) {
    for (int round = 0; round < TN_ROUNDS && !tn_test_failures; ++round) {
      size_t length = files[i].length;
      memcpy(text, files[i].text, length);
      for (size_t n = round ? 1 + below(4) : 0; n > 0; --n) length = change(text, length);
      char* exact = malloc(length + 1);  // so that a sanitizer sees a read beyond the end
      if (!exact) break;
      memcpy(exact, text, length);
      exact = realloc(exact, length ? length : 1);
      parse_all(exact, length);
      if (tn_test_failures) fprintf(stderr, "%.*s\n", (int)length, text);
      free(exact);
    }
  }
  free(text);
  for (int i = 0; i < file_count; ++i) free(files[i].text);
}
