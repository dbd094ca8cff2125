// Result of an operation that a user can make fail.
//
// A status is pointer-sized: 0 (TN_OK) is success; otherwise it is an owned object with a code, a message and
// the source place. Whoever receives one either returns it, or frees it with tn_status_free. All functions are
// thread-safe; one status belongs to one thread at a time.
#ifndef TN_STATUS_H_
#define TN_STATUS_H_

#include <stdarg.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_code {
  TN_SUCCESS = 0,
  TN_INVALID_ARGUMENT,  // the caller's values are wrong: object, expected, got
  TN_OUT_OF_RANGE,      // an index or size is outside its bounds
  TN_UNIMPLEMENTED,     // correct request, no implementation here: the caller may take another way
  TN_RESOURCE_EXHAUSTED,  // memory or another bounded resource ran out
  TN_NOT_FOUND,
  TN_ALREADY_EXISTS,
  TN_FAILED_PRECONDITION,  // right call at the wrong time
  TN_UNAVAILABLE,          // a library or device is missing on this machine
  TN_DATA_LOSS,            // bytes read are damaged
  TN_INTERNAL,             // our own mistake
} tn_code_t;

typedef struct tn_status_object* tn_status_t;
#define TN_OK ((tn_status_t)0)

// Creates a status; never fails (out of memory gives a shared static RESOURCE_EXHAUSTED status).
tn_status_t tn_status_create(tn_code_t code, const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 4, 5), warn_unused_result));

// Code of |status|; TN_SUCCESS for TN_OK.
tn_code_t tn_status_code(tn_status_t status);
// Message without place, valid until the status is freed; "" for TN_OK.
const char* tn_status_message(tn_status_t status);
// "file.c:12" of the place that created it; "" for TN_OK.
const char* tn_status_place(tn_status_t status);
// Returns a status whose message is "<prefix>: <old message>"; consumes |status|. TN_OK stays TN_OK.
tn_status_t tn_status_annotate(tn_status_t status, const char* format, ...)
    __attribute__((format(printf, 2, 3), warn_unused_result));
// Frees |status|; TN_OK is allowed.
void tn_status_free(tn_status_t status);
// Upper-case name, e.g. "INVALID_ARGUMENT".
const char* tn_code_name(tn_code_t code);

#define TN_ERROR(code, ...) tn_status_create((code), __FILE__, __LINE__, __VA_ARGS__)

// Returns early from a function that returns tn_status_t and holds nothing.
#define TN_TRY(expression)                \
  do {                                    \
    tn_status_t tn_try_ = (expression);   \
    if (tn_try_ != TN_OK) return tn_try_; \
  } while (0)

#ifdef __cplusplus
}
#endif
#endif  // TN_STATUS_H_
