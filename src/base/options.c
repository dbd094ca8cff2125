#include "base/options.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

extern char** environ;

static const tn_option_info_t infos[TN_OPTION_COUNT] = {
#define TN_OPTION(id, name, type, fallback, status, meaning) \
  {name, TN_OPTION_TYPE_##type, fallback, STATUS_##status, meaning},
#define STATUS_HONOURED true
#define STATUS_ACCEPTED false
#include "base/options.inc"
#undef TN_OPTION
};

// A string stays readable for ever: a reread chains the new text before the old one.
typedef struct text {
  struct text* older;
  char bytes[];
} text_t;

typedef struct value {
  _Atomic int64_t number;
  _Atomic(const char*) string;
  atomic_bool is_set;
  text_t* texts;  // under lock
} value_t;

// The process-wide cache of the environment; |lock| guards the reading, |loaded| publishes it.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool loaded;
static value_t values[TN_OPTION_COUNT];
enum { COMPLAINT_COUNT = 16, COMPLAINT_SIZE = 240 };
static char complaints[COMPLAINT_COUNT][COMPLAINT_SIZE];
static int complaint_count;

__attribute__((format(printf, 1, 2))) static void complain(const char* format, ...) {
  if (complaint_count == COMPLAINT_COUNT) return;
  va_list args;
  va_start(args, format);
  vsnprintf(complaints[complaint_count++], COMPLAINT_SIZE, format, args);
  va_end(args);
}

static bool parse(tn_option_type_t type, const char* text, int64_t* out) {
  *out = 0;
  if (type == TN_OPTION_TYPE_STRING) return true;
  if (type == TN_OPTION_TYPE_BOOL) {
    static const char* const words[] = {"0",     "1",    "false", "true",
                                        "False", "True", "FALSE", "TRUE"};
    for (int i = 0; i < 8; ++i)
      if (strcmp(text, words[i]) == 0) {
        *out = i & 1;
        return true;
      }
    return false;
  }
  char* end;
  errno = 0;
  const long long number = strtoll(text, &end, 10);
  while (isspace((unsigned char)*end)) ++end;
  *out = number;
  return end != text && *end == 0 && errno == 0;
}

static const char* keep_text(value_t* value, const char* text) {
  const char* current = atomic_load_explicit(&value->string, memory_order_relaxed);
  if (current && strcmp(current, text) == 0) return current;
  const size_t size = strlen(text) + 1;
  text_t* copy = malloc(sizeof(*copy) + size);
  if (!copy) return NULL;
  memcpy(copy->bytes, text, size);
  copy->older = value->texts;
  value->texts = copy;
  return copy->bytes;
}

static void read_option(tn_option_t option) {
  const tn_option_info_t* info = &infos[option];
  value_t* value = &values[option];
  const char *text = getenv(info->name), *kept = NULL;
  int64_t number = 0;
  // An empty variable counts as unset, as shells cannot easily unset one for a child.
  bool is_set = text && *text;
  if (is_set && !parse(info->type, text, &number)) {
    complain("%s=%s is not %s; the default %s is used", info->name, text,
             info->type == TN_OPTION_TYPE_BOOL ? "0, 1, true or false" : "an integer",
             info->fallback);
    is_set = false;
  }
  if (is_set) kept = keep_text(value, text);
  if (!kept) {
    kept = info->fallback;
    parse(info->type, kept, &number);
  }
  atomic_store_explicit(&value->number, number, memory_order_relaxed);
  atomic_store_explicit(&value->string, kept, memory_order_release);
  atomic_store_explicit(&value->is_set, is_set, memory_order_relaxed);
}

// Insertions, removals, replacements and swaps of neighbours that turn |a| into |b|.
static int edit_distance(const char* a, size_t a_size, const char* b, size_t b_size) {
  enum { LIMIT = 80 };
  if (a_size >= LIMIT || b_size >= LIMIT) return LIMIT;
  int rows[3][LIMIT + 1];
  for (size_t j = 0; j <= b_size; ++j) rows[0][j] = (int)j;
  for (size_t i = 1; i <= a_size; ++i) {
    int *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
    row[0] = (int)i;
    for (size_t j = 1; j <= b_size; ++j) {
      int best = above[j - 1] + (a[i - 1] != b[j - 1]);
      if (above[j] + 1 < best) best = above[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
          two_above[j - 2] + 1 < best)
        best = two_above[j - 2] + 1;
      row[j] = best;
    }
  }
  return rows[a_size % 3][b_size];
}

static void check_spelling(const char* variable) {
  const size_t size = strcspn(variable, "=");
  int best = 1 << 20, nearest = 0;
  for (int i = 0; i < TN_OPTION_COUNT; ++i) {
    const int distance = edit_distance(variable, size, infos[i].name, strlen(infos[i].name));
    if (distance == 0) return;
    if (distance < best) best = distance, nearest = i;
  }
  complain("unknown environment variable %.*s; the nearest name is %s",
           (int)(size < 100 ? size : 100), variable, infos[nearest].name);
}

// Under |lock|.
static void read_all(void) {
  complaint_count = 0;
  for (int i = 0; i < TN_OPTION_COUNT; ++i) read_option((tn_option_t)i);
  static const char prefix[] = "TORCH_NEURONX_";
  for (char** variable = environ; variable && *variable; ++variable)
    if (strncmp(*variable, prefix, sizeof(prefix) - 1) == 0) check_spelling(*variable);
}

// The log itself reads options, so it is called after the reading is published and without the lock.
static void log_complaints(int count) {
  for (int i = 0; i < count; ++i) tn_log(TN_LOG_WARNING, "%s", complaints[i]);
}

__attribute__((noinline, cold)) static void load(void) {
  int count = 0;
  pthread_mutex_lock(&lock);
  if (!atomic_load_explicit(&loaded, memory_order_relaxed)) {
    read_all();
    count = complaint_count;
    atomic_store_explicit(&loaded, true, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  log_complaints(count);
}

static inline const value_t* value_of(tn_option_t option) {
  if (__builtin_expect(!atomic_load_explicit(&loaded, memory_order_acquire), 0)) load();
  return &values[option];
}

int64_t tn_option_int(tn_option_t option) {
  return atomic_load_explicit(&value_of(option)->number, memory_order_relaxed);
}

const char* tn_option_string(tn_option_t option) {
  return atomic_load_explicit(&value_of(option)->string, memory_order_acquire);
}

bool tn_option_is_set(tn_option_t option) {
  return atomic_load_explicit(&value_of(option)->is_set, memory_order_relaxed);
}

const tn_option_info_t* tn_option_info(tn_option_t option) { return &infos[option]; }

void tn_options_reread(void) {
  pthread_mutex_lock(&lock);
  read_all();
  const int count = complaint_count;
  atomic_store_explicit(&loaded, true, memory_order_release);
  pthread_mutex_unlock(&lock);
  log_complaints(count);
}

const char* tn_options_complaint(int index) {
  value_of((tn_option_t)0);
  return index >= 0 && index < complaint_count ? complaints[index] : NULL;
}

static int find_option(const char* name) {
  for (int i = 0; i < TN_OPTION_COUNT; ++i)
    if (strcmp(infos[i].name, name) == 0) return i;
  return -1;
}

const char* tn_options_text(const char* name) {
  const int option = find_option(name);
  return option < 0 ? NULL : tn_option_string((tn_option_t)option);
}

int64_t tn_options_int(const char* name) {
  const int option = find_option(name);
  return option < 0 ? 0 : tn_option_int((tn_option_t)option);
}
