// Ranges with stealing.
//
// A run splits its chunks (|grain| tasks each) into one range per thread. A claim is one atomic decrement of a range's
// |remaining|; whoever gets a positive count owns that chunk, and only then reads the job's fields. So a thread that
// was descheduled between two runs cannot act on an old job: either its claim fails, or it is a claim of the new job.
// The caller waits only for chunks that are claimed, never for a thread that has not woken up.
//
// Workers are pinned, one per CPU, to CPUs other than the caller's: left alone, the system wakes them on the caller's
// CPU, where they claim chunks and then wait for it. The caller is not pinned; when it has moved to a worker's CPU, the
// two change places. Measured beside busy processes, 64 tiles of 16 KiB, median: serial 87 us, unpinned 147, pinned 88.
#define _GNU_SOURCE
#include "base/pool.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/os.h"

enum { CACHE_LINE = 64, LARGEST_POOL = 1024, SPIN_NS = 50000 };

typedef struct tn_pool_range {
  _Alignas(CACHE_LINE) _Atomic int32_t
      remaining;  // release store in tn_pool_run, acquire decrement in work
  int32_t end;    // chunk after the last one; constant during a run
} tn_pool_range_t;

typedef struct tn_pool_worker {
  struct tn_pool* pool;
  pthread_t thread;
  int index;
} tn_pool_worker_t;

struct tn_pool {
  int thread_count;
  int started;  // workers running, under |busy|; worker i has index i + 1
  tn_pool_worker_t* workers;
  tn_pool_range_t* ranges;  // thread_count of them
  // CPUs of the affinity mask, under |busy|: the caller's, then one per worker, then the rest. 0: nothing is pinned.
  int cpu_count;
  uint16_t cpus[CPU_SETSIZE];
  // The job; written by the caller while no chunk is claimable.
  tn_pool_task_fn_t fn;
  void* context;
  int64_t task_count, grain;
  _Alignas(CACHE_LINE) atomic_bool busy;  // held by the caller whose job this is
  _Alignas(
      CACHE_LINE) _Atomic uint32_t epoch;  // changes when work was published; workers sleep on it
  _Atomic int32_t sleepers;
  atomic_bool stop;
  _Alignas(CACHE_LINE) _Atomic uint32_t pending;  // chunks not finished; the caller sleeps on it
  atomic_bool caller_sleeps;
  tn_pool_t *next, *previous;  // list of all pools, under registry_lock
};

// All pools of the process: the child of a fork has to forget their threads.
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static tn_pool_t* registry;
static pthread_once_t fork_handlers = PTHREAD_ONCE_INIT;

static _Thread_local bool inside_task;

static void before_fork(void) { pthread_mutex_lock(&registry_lock); }
static void after_fork_in_parent(void) { pthread_mutex_unlock(&registry_lock); }

static void after_fork_in_child(void) {
  for (tn_pool_t* pool = registry; pool; pool = pool->next) {
    pool->started = 0;
    for (int i = 0; i < pool->thread_count; ++i) atomic_store(&pool->ranges[i].remaining, 0);
    atomic_store(&pool->sleepers, 0);
    atomic_store(&pool->pending, 0);
    atomic_store(&pool->caller_sleeps, false);
    atomic_store(&pool->stop, false);
    atomic_store(&pool->busy, false);
  }
  pthread_mutex_unlock(&registry_lock);
}

static void install_fork_handlers(void) {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

// Claims and runs chunks until none is left, own range first.
static void work(tn_pool_t* pool, int worker) {
  uint32_t done = 0;
  inside_task = true;
  for (int i = 0, index = worker; i < pool->thread_count; ++i, ++index) {
    if (index == pool->thread_count) index = 0;
    tn_pool_range_t* range = &pool->ranges[index];
    while (atomic_load_explicit(&range->remaining, memory_order_relaxed) > 0) {
      const int32_t remaining =
          atomic_fetch_sub_explicit(&range->remaining, 1, memory_order_acquire);
      if (remaining <= 0) break;
      const int64_t begin = (int64_t)(range->end - remaining) * pool->grain;
      const int64_t rest = pool->task_count - begin;
      pool->fn(pool->context, begin, begin + (rest < pool->grain ? rest : pool->grain), worker);
      ++done;
    }
  }
  inside_task = false;
  if (done == 0) return;
  // Sequentially consistent with caller_sleeps: either the caller sees 0, or this thread sees the flag.
  if (atomic_fetch_sub(&pool->pending, done) == done && worker != 0 &&
      atomic_load(&pool->caller_sleeps))
    tn_os_futex_wake(&pool->pending, 1);
}

// Waits until *|word| differs from |value|, without sleeping; false after the spin time.
static bool spin_while(_Atomic uint32_t* word, uint32_t value) {
  const int64_t limit = tn_os_now_ns() + SPIN_NS;
  do {
    for (int i = 0; i < 32; ++i) {
      if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
      tn_os_pause();
    }
  } while (tn_os_now_ns() < limit);
  return false;
}

static void* worker_main(void* argument) {
  const tn_pool_worker_t* self = argument;
  tn_pool_t* pool = self->pool;
  for (;;) {
    const uint32_t epoch = atomic_load(&pool->epoch);
    if (atomic_load(&pool->stop)) return NULL;
    work(pool, self->index);
    if (spin_while(&pool->epoch, epoch)) continue;
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->epoch) == epoch) tn_os_futex_wait(&pool->epoch, epoch, -1);
    atomic_fetch_sub(&pool->sleepers, 1);
  }
}

// ---- placement, under |busy| -----------------------------------------------------------------------------------

static void pin_worker(tn_pool_t* pool, int index) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(pool->cpus[index], &set);
  pthread_setaffinity_np(pool->workers[index - 1].thread, sizeof(set), &set);
}

// Fills |cpus|, unless the threads outnumber the CPUs or other ranks of this host would choose the same ones.
static void choose_cpus(tn_pool_t* pool) {
  pool->cpu_count = 0;
  cpu_set_t set;
  if (tn_option_int(TN_OPTION_LOCAL_WORLD_SIZE) > 1 ||
      sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) < pool->thread_count)
    return;
  const int caller = sched_getcpu();
  for (size_t i = 0; i < CPU_SETSIZE; ++i) {
    const size_t cpu = ((size_t)(caller > 0 ? caller : 0) + i) % CPU_SETSIZE;
    if (CPU_ISSET(cpu, &set)) pool->cpus[pool->cpu_count++] = (uint16_t)cpu;
  }
}

// The caller runs on |cpu|: a worker pinned there goes to the caller's former CPU.
__attribute__((noinline)) static void change_places(tn_pool_t* pool, int cpu) {
  for (int i = 1; i < pool->cpu_count; ++i) {
    if (pool->cpus[i] != cpu) continue;
    pool->cpus[i] = pool->cpus[0];
    pool->cpus[0] = (uint16_t)cpu;
    if (i <= pool->started) pin_worker(pool, i);
    return;
  }
}

// Under |busy|. A thread that cannot be started is simply missing: its range is stolen.
static void start_workers(tn_pool_t* pool) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // signals belong to the program's own threads
  choose_cpus(pool);
  for (int i = 1; i <= pool->started && pool->cpu_count; ++i) pin_worker(pool, i);
  for (; pool->started < pool->thread_count - 1; ++pool->started) {
    tn_pool_worker_t* worker = &pool->workers[pool->started];
    *worker = (tn_pool_worker_t){.pool = pool, .index = pool->started + 1};
    if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0) break;
    char name[16];
    snprintf(name, sizeof(name), "tn-worker-%d", worker->index);
    pthread_setname_np(worker->thread, name);
    if (pool->cpu_count) pin_worker(pool, worker->index);
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void publish(tn_pool_t* pool, int wake_count) {
  atomic_fetch_add(&pool->epoch, 1);  // sequentially consistent with sleepers
  if (atomic_load(&pool->sleepers) > 0) tn_os_futex_wake(&pool->epoch, wake_count);
}

static void stop_workers(tn_pool_t* pool) {
  atomic_store(&pool->stop, true);
  publish(pool, INT_MAX);
  for (int i = 0; i < pool->started; ++i) pthread_join(pool->workers[i].thread, NULL);
  pool->started = 0;
  atomic_store(&pool->stop, false);
}

// Replaces the arrays; no worker is running.
static tn_status_t resize(tn_pool_t* pool, int thread_count) {
  if (thread_count == 0) thread_count = tn_os_cpu_count();
  if (thread_count < 0 || thread_count > LARGEST_POOL)
    return TN_ERROR(TN_INVALID_ARGUMENT,
                    "pool: thread count is %d, expected 1..%d, or 0 for all CPUs", thread_count,
                    LARGEST_POOL);
  const size_t count = (size_t)thread_count;
  tn_pool_worker_t* workers = calloc(count, sizeof(*workers));
  tn_pool_range_t* ranges = aligned_alloc(CACHE_LINE, count * sizeof(*ranges));
  if (!workers || !ranges) {
    free(workers);
    free(ranges);
    return TN_ERROR(TN_RESOURCE_EXHAUSTED, "pool: no host memory for %d threads", thread_count);
  }
  memset(ranges, 0, count * sizeof(*ranges));
  pthread_mutex_lock(&registry_lock);  // a fork in another thread reads these
  tn_pool_worker_t* old_workers = pool->workers;
  tn_pool_range_t* old_ranges = pool->ranges;
  pool->workers = workers;
  pool->ranges = ranges;
  pool->thread_count = thread_count;
  pthread_mutex_unlock(&registry_lock);
  free(old_workers);
  free(old_ranges);
  return TN_OK;
}

tn_status_t tn_pool_create(int thread_count, tn_pool_t** out_pool) {
  *out_pool = NULL;
  pthread_once(&fork_handlers, install_fork_handlers);
  tn_pool_t* pool = aligned_alloc(CACHE_LINE, sizeof(*pool));
  if (!pool) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "pool: no host memory");
  memset(pool, 0, sizeof(*pool));
  tn_status_t status = resize(pool, thread_count);
  if (status) {
    free(pool);
    return status;
  }
  pthread_mutex_lock(&registry_lock);
  pool->next = registry;
  if (registry) registry->previous = pool;
  registry = pool;
  pthread_mutex_unlock(&registry_lock);
  *out_pool = pool;
  return TN_OK;
}

void tn_pool_destroy(tn_pool_t* pool) {
  if (!pool) return;
  stop_workers(pool);
  pthread_mutex_lock(&registry_lock);
  if (pool->next) pool->next->previous = pool->previous;
  if (pool->previous) pool->previous->next = pool->next;
  else registry = pool->next;
  pthread_mutex_unlock(&registry_lock);
  free(pool->workers);
  free(pool->ranges);
  free(pool);
}

int tn_pool_thread_count(const tn_pool_t* pool) { return pool ? pool->thread_count : 1; }

tn_status_t tn_pool_set_thread_count(tn_pool_t* pool, int thread_count) {
  if (thread_count == pool->thread_count) return TN_OK;
  while (atomic_exchange(&pool->busy, true)) sched_yield();
  stop_workers(pool);
  tn_status_t status = resize(pool, thread_count);
  atomic_store(&pool->busy, false);
  return status;
}

void tn_pool_run(tn_pool_t* pool, int64_t task_count, int64_t grain, tn_pool_task_fn_t fn,
                 void* context) {
  if (task_count <= 0) return;
  if (grain < 1) grain = 1;
  // A task's nested run, a second caller and a run of one chunk stay on their thread.
  if (!pool || task_count <= grain || pool->thread_count == 1 || inside_task ||
      atomic_exchange_explicit(&pool->busy, true, memory_order_acquire)) {
    fn(context, 0, task_count, 0);
    return;
  }
  if (task_count / grain >= INT32_MAX / 2) grain = task_count / (INT32_MAX / 2) + 1;
  const int64_t chunk_count = (task_count + grain - 1) / grain;
  if (pool->started < pool->thread_count - 1) start_workers(pool);
  if (pool->cpu_count) {
    const int cpu = sched_getcpu();
    if (cpu != pool->cpus[0]) change_places(pool, cpu);
  }

  pool->fn = fn;
  pool->context = context;
  pool->task_count = task_count;
  pool->grain = grain;
  atomic_store_explicit(&pool->pending, (uint32_t)chunk_count, memory_order_relaxed);
  const int threads = pool->thread_count;
  for (int i = 0; i < threads; ++i)
    pool->ranges[i].end = (int32_t)(chunk_count * (i + 1) / threads);
  for (int i = 0; i < threads; ++i) {
    const int32_t size = pool->ranges[i].end - (i ? pool->ranges[i - 1].end : 0);
    atomic_store_explicit(&pool->ranges[i].remaining, size, memory_order_release);
  }
  publish(pool, chunk_count < threads ? (int)chunk_count - 1 : threads - 1);
  work(pool, 0);

  uint32_t pending = atomic_load_explicit(&pool->pending, memory_order_acquire);
  const int64_t limit = pending ? tn_os_now_ns() + SPIN_NS : 0;
  while (pending) {
    if (spin_while(&pool->pending, pending) || tn_os_now_ns() < limit) {
      pending = atomic_load_explicit(&pool->pending, memory_order_acquire);
      continue;
    }
    atomic_store(&pool->caller_sleeps, true);
    while ((pending = atomic_load(&pool->pending)) != 0)
      tn_os_futex_wait(&pool->pending, pending, -1);
    atomic_store(&pool->caller_sleeps, false);
  }
  atomic_store_explicit(&pool->busy, false, memory_order_release);
}
