// Log of the core. Prints nothing unless TORCH_NEURONX_LOG_LEVEL asks for it; goes to standard error or to
// TORCH_NEURONX_LOG_FILE. Thread-safe: a message is one write.
#ifndef TN_BASE_LOG_H_
#define TN_BASE_LOG_H_

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_log_level { TN_LOG_WARNING = 1, TN_LOG_INFO = 2, TN_LOG_DEBUG = 3 } tn_log_level_t;

// True if messages of |level| are wanted: ask before work that only serves a message.
bool tn_log_is_enabled(tn_log_level_t level);
void tn_log(tn_log_level_t level, const char* format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif  // TN_BASE_LOG_H_
