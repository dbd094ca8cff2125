#include "runtime/device.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/options.h"
#include "base/pool.h"

// State of the process. |state| is the only thing hot paths read.
enum { UNTOUCHED, INITIALIZED, BAD_FORK };
static _Atomic int state;
static _Atomic int
    frozen_count;  // number of cores, fixed by the initialisation; stored before |state|
static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER;  // of the initialisation and of the pool's creation
static _Atomic(tn_pool_t*) pool;

// ---- number of cores -----------------------------------------------------------------------------------------

// Cores in a list like "0-3,6"; 0 if the text is not such a list.
static int count_of_list(const char* text) {
  int64_t count = 0;
  for (const char* cursor = text;;) {
    char* end;
    if (!isdigit((unsigned char)*cursor)) return 0;
    const int64_t first = strtoll(cursor, &end, 10);
    int64_t last = first;
    if (*end == '-') {
      cursor = end + 1;
      if (!isdigit((unsigned char)*cursor)) return 0;
      last = strtoll(cursor, &end, 10);
    }
    if (last < first || last >= 1 << 20) return 0;
    count += last - first + 1;
    if (*end == 0) return count > TN_DEVICE_LIMIT ? TN_DEVICE_LIMIT : (int)count;
    if (*end != ',') return 0;
    cursor = end + 1;
  }
}

// The more specific variable wins: a list of cores, then a number of cores, then the size of the software chip.
static int count_from_options(void) {
  const char* list = tn_option_string(TN_OPTION_NEURON_RT_VISIBLE_CORES);
  const int listed = *list ? count_of_list(list) : 0;
  if (listed > 0) return listed;
  if (*list)
    tn_log(TN_LOG_WARNING,
           "NEURON_RT_VISIBLE_CORES=%s is not a list like 0-3 or 0,2; it is ignored", list);
  int64_t count = tn_option_int(TN_OPTION_NEURON_RT_NUM_CORES);
  if (count <= 0) count = tn_option_int(TN_OPTION_NUM_DEVICES);
  return count < 0 ? 0 : count > TN_DEVICE_LIMIT ? TN_DEVICE_LIMIT : (int)count;
}

int tn_device_count(void) {
  if (atomic_load_explicit(&state, memory_order_acquire) != UNTOUCHED)
    return atomic_load_explicit(&frozen_count, memory_order_relaxed);
  return count_from_options();
}

// ---- life of the runtime --------------------------------------------------------------------------------------

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork_in_parent(void) { pthread_mutex_unlock(&lock); }
static void after_fork_in_child(void) {
  if (atomic_load(&state) == INITIALIZED) atomic_store(&state, BAD_FORK);
  pthread_mutex_unlock(&lock);
}

static void install_fork_handlers(void) {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void initialize(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install_fork_handlers);
  const int count = count_from_options();  // may log: not under the lock
  pthread_mutex_lock(&lock);
  if (atomic_load(&state) == UNTOUCHED) {
    atomic_store(&frozen_count, count);
    atomic_store_explicit(&state, INITIALIZED, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
}

bool tn_device_is_initialized(void) {
  return atomic_load_explicit(&state, memory_order_acquire) == INITIALIZED;
}
bool tn_device_is_in_bad_fork(void) {
  return atomic_load_explicit(&state, memory_order_relaxed) == BAD_FORK;
}

tn_status_t tn_device_range_error(int device) {
  const int count = tn_device_count();
  if (count == 0)
    return TN_ERROR(TN_OUT_OF_RANGE, "device index is %d, but this process has no cores", device);
  return TN_ERROR(
      TN_OUT_OF_RANGE,
      "device index is %d, expected 0..%d (TORCH_NEURONX_NUM_DEVICES changes the number of cores)",
      device, count - 1);
}

tn_status_t tn_device_check(int device) {
  int now = atomic_load_explicit(&state, memory_order_acquire);
  if (__builtin_expect(now != INITIALIZED, 0)) {
    if (now == BAD_FORK)
      return TN_ERROR(TN_FAILED_PRECONDITION,
                      "Cannot re-initialize Neuron runtime in forked subprocess. To use Neuron "
                      "with multiprocessing, "
                      "use the 'spawn' start method");
    if (device < 0 || device >= tn_device_count()) return tn_device_range_error(device);
    initialize();
  }
  if (__builtin_expect(
          device < 0 || device >= atomic_load_explicit(&frozen_count, memory_order_relaxed), 0))
    return tn_device_range_error(device);
  return TN_OK;
}

// ---- pool ------------------------------------------------------------------------------------------------------

tn_pool_t* tn_device_pool(void) {
  tn_pool_t* current = atomic_load_explicit(&pool, memory_order_acquire);
  if (__builtin_expect(current != NULL, 1)) return current;
  const int64_t wanted = tn_option_int(TN_OPTION_NUM_THREADS);
  tn_pool_t* created = NULL;
  tn_status_t status = tn_pool_create(wanted > 0 && wanted <= 1024 ? (int)wanted : 0, &created);
  if (status) {  // no memory for a pool: NULL runs everything on the caller
    tn_log(TN_LOG_WARNING, "%s", tn_status_message(status));
    tn_status_free(status);
    return NULL;
  }
  if (atomic_compare_exchange_strong(&pool, &current, created)) return created;
  tn_pool_destroy(created);
  return current;
}

int tn_device_thread_count(void) { return tn_pool_thread_count(tn_device_pool()); }

tn_status_t tn_device_set_thread_count(int count) {
  if (count < 1)
    return TN_ERROR(TN_INVALID_ARGUMENT, "thread count is %d, expected at least 1", count);
  tn_pool_t* current = tn_device_pool();
  if (!current) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "thread count: there is no thread pool");
  return tn_pool_set_thread_count(current, count);
}
