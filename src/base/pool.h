// Thread pool for ranges of independent tasks (fork and join).
//
// Work is |task_count| tasks; a task is an index. The caller works too and returns when all tasks are done.
// Which thread runs which task is unspecified: results must not depend on it. Nested calls from inside a task
// run inline on that thread. Workers start at the first run that needs them, spin briefly, then sleep on a futex.
// After fork the child has no workers; they are started again on need.
#ifndef TN_BASE_POOL_H_
#define TN_BASE_POOL_H_

#include <stdint.h>

#include "tn/status.h"

typedef struct tn_pool tn_pool_t;

// Runs tasks [begin, end) on worker |worker| (0 is the caller; < tn_pool_thread_count).
typedef void (*tn_pool_task_fn_t)(void* context, int64_t begin, int64_t end, int worker);

// |thread_count| includes the caller; 0 means the CPUs of the affinity mask. Starts no thread yet.
tn_status_t tn_pool_create(int thread_count, tn_pool_t** out_pool);
void tn_pool_destroy(tn_pool_t* pool);  // NULL is allowed
int tn_pool_thread_count(const tn_pool_t* pool);
// Changes the thread count; joins surplus workers. Not concurrent with tn_pool_run.
tn_status_t tn_pool_set_thread_count(tn_pool_t* pool, int thread_count);
// Calls |fn| until tasks 0..task_count-1 have each run once. |grain| tasks are claimed at a time (>= 1).
// |pool| may be NULL: everything runs on the caller. Thread-safe: concurrent callers serialise or run inline.
void tn_pool_run(tn_pool_t* pool, int64_t task_count, int64_t grain, tn_pool_task_fn_t fn,
                 void* context);

#endif  // TN_BASE_POOL_H_
