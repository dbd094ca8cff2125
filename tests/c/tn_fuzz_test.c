// Texts that nearly are programs: random graphs whose printed words are swapped, dropped, doubled or replaced. Whatever
// parses has to verify, compile and run; whatever does not has to say where. TN_TEST_COUNT sets how many texts.
#include "tests/c/test.h"

#include <ctype.h>
#include <stdlib.h>

#include "tests/c/random_graph.h"
#include "tn/driver.h"

enum { MAX_WORDS = 4096, MAX_TEXT = 1 << 17, MAX_BYTES = 1 << 22 };

typedef struct words {
  int count;
  char* begin[MAX_WORDS];
  int length[MAX_WORDS];
} words_t;

static bool is_of_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

static void split(char* text, words_t* out) {
  out->count = 0;
  for (char* at = text; *at && out->count < MAX_WORDS;) {
    char* end = at + 1;
    if (is_of_word(*at))
      while (is_of_word(*end)) ++end;
    out->begin[out->count] = at;
    out->length[out->count++] = (int)(end - at);
    at = end;
  }
}

static void append(char* out, size_t* length, const char* text, size_t count) {
  if (*length + count + 1 > MAX_TEXT) return;
  memcpy(out + *length, text, count);
  *length += count;
  out[*length] = 0;
}

// |words| with a few of them changed.
static void mutate(tn_random_t* r, const words_t* words, char* out) {
  static const char* const others[] = {"0",
                                       "1",
                                       "-1",
                                       "2",
                                       "7",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "18446744073709551616",
                                       "1e400",
                                       "nan",
                                       "0x7FC00000",
                                       "f32",
                                       "f64",
                                       "bf16",
                                       "i1",
                                       "i8",
                                       "ui8",
                                       "i64",
                                       "complex",
                                       "tensor",
                                       "<",
                                       ">",
                                       "[",
                                       "]",
                                       "(",
                                       ")",
                                       "{",
                                       "}",
                                       ":",
                                       ",",
                                       "=",
                                       "%",
                                       "\"",
                                       "-",
                                       "x",
                                       "?",
                                       "*",
                                       "dense",
                                       "array",
                                       "true",
                                       "stablehlo",
                                       "return",
                                       "@main",
                                       "->",
                                       "#",
                                       "\n",
                                       "//"};
  enum { OTHERS = sizeof(others) / sizeof(others[0]) };
  size_t length = 0;
  out[0] = 0;
  int64_t at[3], count = 1 + random_below(r, 3);
  for (int i = 0; i < count; ++i) at[i] = random_below(r, words->count);
  for (int w = 0; w < words->count; ++w) {
    int change = -1;
    for (int i = 0; i < count; ++i)
      if (at[i] == w) change = (int)random_below(r, 5);
    if (change == 0) continue;  // dropped
    const int other = change == 1 ? (int)random_below(r, words->count) : w;
    if (change == 2) {
      const char* text = others[random_below(r, OTHERS)];
      append(out, &length, text, strlen(text));
      continue;
    }
    append(out, &length, words->begin[other], (size_t)words->length[other]);
    if (change == 3) append(out, &length, words->begin[w], (size_t)words->length[w]);
    if (change == 4)  // a digit more or less
      append(out, &length, "0", 1);
  }
}

static size_t bytes_of(const tn_type_t* type) {
  double count = (double)tn_dtype_size(type->dtype);
  for (int d = 0; d < type->rank; ++d) count *= (double)type->dims[d];
  return count > (double)MAX_BYTES ? (size_t)MAX_BYTES + 1 : (size_t)count;
}

// Small enough to be run: sizes in a text may be anything.
static bool is_small(const tn_graph_t* graph) {
  for (uint32_t id = 0; id < tn_graph_node_limit(graph); ++id) {
    const tn_node_t* node = tn_graph_node_at(graph, id);
    for (int i = 0; node && i < node->result_count; ++i)
      if (bytes_of(&node->types[i]) > MAX_BYTES) return false;
  }
  return true;
}

// Elements that a tensor of |strides| spans.
static size_t span_bytes(const tn_type_t* type, const int64_t* strides) {
  if (!strides || tn_type_element_count(type) == 0) return bytes_of(type);
  double last = 0;
  for (int d = 0; d < type->rank; ++d) last += (double)(type->dims[d] - 1) * (double)strides[d];
  last = (last + 1) * (double)tn_dtype_size(type->dtype);
  return last > (double)MAX_BYTES ? (size_t)MAX_BYTES + 1 : (size_t)last;
}

static void run(const tn_driver_t* driver, const tn_graph_t* graph, tn_program_t* program) {
  const int params = tn_graph_param_count(graph), results = tn_graph_result_count(graph);
  void** buffers = calloc((size_t)(params + results) + 1, sizeof(void*));
  bool is_ready = true;
  for (int i = 0; i < params + results; ++i) {
    const tn_graph_result_t* result = i < params ? NULL : tn_graph_result_at(graph, i - params);
    const tn_node_t* node = i < params ? tn_graph_param_at(graph, i) : result->node;
    const int64_t* strides = i < params ? (tn_param_is_scalar(node) ? NULL : tn_param_strides(node))
                             : result->is_contiguous ? NULL
                                                     : result->strides;
    const size_t bytes = span_bytes(&node->types[0], strides);
    if (result && result->same_as_param >= 0) buffers[i] = buffers[result->same_as_param];
    else if (bytes <= MAX_BYTES) buffers[i] = calloc(1, bytes + 64);
    is_ready = is_ready && buffers[i];
  }
  const tn_launch_t launch = {0, 0, buffers, buffers + params};
  if (is_ready) tn_status_free(driver->launch(program, &launch));
  for (int i = 0; i < params + results; ++i) {
    const bool is_shared = i >= params && tn_graph_result_at(graph, i - params)->same_as_param >= 0;
    if (!is_shared) free(buffers[i]);
  }
  free(buffers);
}

TN_TEST(damaged_programs_give_a_status_with_a_place_or_run) {
  const char* wanted = getenv("TN_TEST_COUNT");
  const int count = wanted ? atoi(wanted) : 1500;
  const tn_driver_t* driver = NULL;
  TN_EXPECT_OK(tn_driver_find(NULL, &driver));
  tn_graph_t* graph = NULL;
  TN_EXPECT_OK(tn_graph_create(&graph));
  static words_t words;
  char* text = NULL;
  char* damaged = malloc(MAX_TEXT);
  tn_random_t shapes = {0}, r = {0};
  int parsed = 0;
  const char* first = getenv("TN_TEST_SEED");
  for (int i = first ? atoi(first) : 0; i < count && tn_test_failures == 0; ++i) {
    const uint64_t seed = (uint64_t)i / 25 + 1;
    if (i % 25 == 0 || !text) {
      free(text);
      tn_graph_reset(graph);
      random_graph(&shapes, graph, seed, 12, true);
      TN_EXPECT_OK(tn_graph_print(graph, &text));
      split(text, &words);
    }
    r.state = (uint64_t)i * 0x9E3779B97F4A7C15u + 1;
    mutate(&r, &words, damaged);
    if (getenv("TN_TEST_SHOW")) fprintf(stderr, "---- %d\n%s\n", i, damaged);
    tn_graph_t* again = NULL;
    tn_status_t status = tn_graph_parse("t.mlir", damaged, strlen(damaged), &again);
    int line = 0, column = 0;
    if (status &&
        (sscanf(tn_status_message(status), "t.mlir:%d:%d:", &line, &column) != 2 || line < 1)) {
      fprintf(stderr, "text %d: no place in '%s'\n", i, tn_status_message(status));
      TN_EXPECT(false);
    }
    TN_EXPECT((status == TN_OK) == (again != NULL));
    tn_status_free(status);
    if (!again) continue;
    ++parsed;
    TN_EXPECT_OK(tn_graph_verify(again));
    tn_program_t* program = NULL;
    if (is_small(again)) {
      tn_status_free(driver->compile(again, &program));
      if (program) run(driver, again, program);
      if (program) driver->destroy(program);
    }
    tn_graph_destroy(again);
  }
  TN_EXPECT(first || parsed > count / 20);
  free(damaged);
  free(text);
  tn_graph_destroy(graph);
}
