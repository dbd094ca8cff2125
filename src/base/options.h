// Environment variables: one table (options.inc), read once at the first use. All functions are thread-safe and an
// access after the first costs two loads.
#ifndef TN_BASE_OPTIONS_H_
#define TN_BASE_OPTIONS_H_

#include <stdbool.h>
#include <stdint.h>

#include "tn/options.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_option {
#define TN_OPTION(id, name, type, fallback, status, meaning) TN_OPTION_##id,
#include "base/options.inc"
#undef TN_OPTION
  TN_OPTION_COUNT
} tn_option_t;

typedef enum tn_option_type {
  TN_OPTION_TYPE_BOOL,
  TN_OPTION_TYPE_INT,
  TN_OPTION_TYPE_STRING
} tn_option_type_t;

typedef struct tn_option_info {
  const char* name;
  tn_option_type_t type;
  const char* fallback;  // text of the default
  bool is_honoured;      // false: accepted without effect
  const char* meaning;
} tn_option_info_t;

// Value of a BOOL (0 or 1) or INT option.
int64_t tn_option_int(tn_option_t option);
static inline bool tn_option_bool(tn_option_t option) { return tn_option_int(option) != 0; }
// Text of an option of any type; "" if unset without a default. Valid for the life of the process.
const char* tn_option_string(tn_option_t option);
// True if the environment holds a valid value.
bool tn_option_is_set(tn_option_t option);
// Table row; never NULL for a valid option.
const tn_option_info_t* tn_option_info(tn_option_t option);

// Reads the environment again (after os.environ changed); strings handed out before stay valid.
void tn_options_reread(void);
// What tn/options.h lists as complaints is also logged, once.

#ifdef __cplusplus
}
#endif
#endif  // TN_BASE_OPTIONS_H_
