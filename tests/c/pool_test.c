// Mirrors src/base/pool.c and mutex.h.
#include "tests/c/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mutex.h"
#include "base/os.h"
#include "base/pool.h"

enum { LARGEST = 5000 };

typedef struct job {
  _Atomic int runs[LARGEST];  // of each task
  _Atomic int bad;
  int64_t task_count;
  int threads;
  tn_pool_t* nested;
} job_t;

static void run_tasks(void* context, int64_t begin, int64_t end, int worker) {
  job_t* job = context;
  if (begin < 0 || begin >= end || end > job->task_count || worker < 0 || worker >= job->threads)
    atomic_fetch_add(&job->bad, 1);
  for (int64_t i = begin; i < end; ++i)
    atomic_fetch_add_explicit(&job->runs[i], 1, memory_order_relaxed);
}

static bool ran_once(const job_t* job) {
  for (int64_t i = 0; i < job->task_count; ++i)
    if (atomic_load_explicit(&job->runs[i], memory_order_relaxed) != 1) return false;
  return atomic_load(&job->bad) == 0;
}

static bool run_job(tn_pool_t* pool, int64_t task_count, int64_t grain) {
  static _Thread_local job_t job;
  memset(&job, 0, sizeof(job));
  job.task_count = task_count;
  job.threads = tn_pool_thread_count(pool);
  tn_pool_run(pool, task_count, grain, run_tasks, &job);
  return ran_once(&job);
}

TN_TEST(every_task_runs_once) {
  for (int threads = 1; threads <= 5; ++threads) {
    tn_pool_t* pool;
    TN_EXPECT_OK(tn_pool_create(threads, &pool));
    TN_EXPECT_EQ(threads, tn_pool_thread_count(pool));
    static const int64_t counts[] = {0, 1, 2, 3, 7, 64, 1000, LARGEST},
                         grains[] = {0, 1, 3, 64, 100000};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); ++c)
      for (size_t g = 0; g < sizeof(grains) / sizeof(grains[0]); ++g)
        TN_EXPECT(run_job(pool, counts[c], grains[g]));
    tn_pool_destroy(pool);
  }
  TN_EXPECT(run_job(NULL, 100, 7));
  TN_EXPECT_EQ(1, tn_pool_thread_count(NULL));
  tn_pool_destroy(NULL);
}

static void see_writes(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  int64_t* numbers =
      context;  // plain memory: the pool must order writes before a run, in it and after it
  for (int64_t i = begin; i < end; ++i) numbers[i] += i;
}

TN_TEST(runs_follow_each_other) {
  tn_pool_t* pool;
  TN_EXPECT_OK(tn_pool_create(4, &pool));
  static int64_t numbers[200];
  memset(numbers, 0, sizeof(numbers));
  for (int run = 0; run < 3000; ++run)
    tn_pool_run(pool, 1 + run % 200, 1 + run % 3, see_writes, numbers);
  for (int64_t i = 0; i < 200; ++i) {
    int64_t runs = 0;
    for (int run = 0; run < 3000; ++run) runs += i < 1 + run % 200;
    TN_EXPECT_EQ(i * runs, numbers[i]);
  }
  tn_pool_destroy(pool);
}

static void nest(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  job_t* job = context;
  for (int64_t i = begin; i < end; ++i)
    if (!run_job(job->nested, 50, 1)) atomic_fetch_add(&job->bad, 1);
}

TN_TEST(nested_runs_stay_on_their_thread) {
  tn_pool_t* pool;
  TN_EXPECT_OK(tn_pool_create(3, &pool));
  static job_t job;
  job.nested = pool;
  tn_pool_run(pool, 100, 1, nest, &job);
  TN_EXPECT_EQ(0, atomic_load(&job.bad));
  tn_pool_destroy(pool);
}

static void* call_often(void* argument) {
  for (int i = 0; i < 400; ++i)
    if (!run_job(argument, 1 + i * 3, 1 + i % 5)) return argument;
  return NULL;
}

TN_TEST(callers_do_not_disturb_each_other) {
  tn_pool_t* pool;
  TN_EXPECT_OK(tn_pool_create(3, &pool));
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, call_often, pool);
  for (int i = 0; i < 4; ++i) {
    void* failed;
    pthread_join(threads[i], &failed);
    TN_EXPECT(failed == NULL);
  }
  tn_pool_destroy(pool);
}

TN_TEST(sleeping_workers_wake_up) {
  tn_pool_t* pool;
  TN_EXPECT_OK(tn_pool_create(3, &pool));
  for (int i = 0; i < 20; ++i) {
    TN_EXPECT(run_job(pool, 300, 1));
    usleep(1000);  // longer than they spin
  }
  tn_pool_destroy(pool);
}

TN_TEST(the_thread_count_changes) {
  tn_pool_t* pool;
  TN_EXPECT_OK(tn_pool_create(0, &pool));
  TN_EXPECT_EQ(tn_os_cpu_count(), tn_pool_thread_count(pool));
  for (int threads = 6; threads >= 1; --threads) {
    TN_EXPECT_OK(tn_pool_set_thread_count(pool, threads));
    TN_EXPECT_EQ(threads, tn_pool_thread_count(pool));
    TN_EXPECT(run_job(pool, 500, 2));
  }
  TN_EXPECT_CODE(TN_INVALID_ARGUMENT, tn_pool_set_thread_count(pool, -1));
  TN_EXPECT_EQ(1, tn_pool_thread_count(pool));
  TN_EXPECT(run_job(pool, 500, 2));
  tn_pool_destroy(pool);
  TN_EXPECT_CODE(TN_INVALID_ARGUMENT, tn_pool_create(1 << 20, &pool));
  TN_EXPECT(pool == NULL);
}

#if !defined(__SANITIZE_THREAD__)  // which does not support threads started after a fork
static void* run_while_forking(void* argument) {
  atomic_bool* stop = ((void**)argument)[1];
  while (!atomic_load(stop)) run_job(((void**)argument)[0], 200, 1);
  return NULL;
}

TN_TEST(a_forked_child_starts_its_own_workers) {
  tn_pool_t* pool;
  TN_EXPECT_OK(tn_pool_create(3, &pool));
  TN_EXPECT(run_job(pool, 500, 1));
  atomic_bool stop = false;
  void* arguments[2] = {pool, &stop};
  pthread_t other;
  pthread_create(&other, NULL, run_while_forking, arguments);
  for (int i = 0; i < 5; ++i) {
    const pid_t child = fork();  // often while the other thread has a run going
    if (child == 0) {
      alarm(10);
      bool good = true;
      for (int run = 0; run < 5; ++run) good = run_job(pool, 500, 1) && good;
      tn_pool_destroy(pool);
      _exit(good ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    TN_EXPECT_EQ(0, status);
  }
  atomic_store(&stop, true);
  pthread_join(other, NULL);
  TN_EXPECT(run_job(pool, 500, 1));
  tn_pool_destroy(pool);
}
#endif

// ---- mutex -------------------------------------------------------------------------------------------------------

static tn_mutex_t mutex;
static int64_t guarded;

static void* count_up(void* argument) {
  for (int i = 0; i < 20000; ++i) {
    tn_mutex_lock(&mutex);
    ++guarded;
    tn_mutex_unlock(&mutex);
  }
  return argument;
}

TN_TEST(the_mutex_excludes) {
  pthread_t threads[4];
  guarded = 0;
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, count_up, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  TN_EXPECT_EQ(80000, guarded);
}

// ---- speed: printed, not judged --------------------------------------------------------------------------------

static void touch(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  for (int64_t i = begin * 4096; i < end * 4096; ++i) ((float*)context)[i] += 1.0f;
}

static int compare(const void* a, const void* b) {
  const int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return x < y ? -1 : x > y;
}

TN_TEST(speed) {
  enum { RUNS = 400, TILES = 64 };
  static int64_t times[RUNS];
  float* data = calloc(TILES * 4096, sizeof(float));
  for (int threads = 1; threads <= 2; ++threads) {
    tn_pool_t* pool;
    TN_EXPECT_OK(tn_pool_create(threads, &pool));
    for (int i = 0; i < RUNS; ++i) {
      const int64_t start = tn_os_now_ns();
      tn_pool_run(pool, TILES, 1, touch, data);
      times[i] = tn_os_now_ns() - start;
    }
    qsort(times, RUNS, sizeof(times[0]), compare);
    printf("%d threads, 64 tiles of 16 KiB: minimum %.0f us, median %.0f us, p99 %.0f us\n",
           threads, (double)times[0] * 1e-3, (double)times[RUNS / 2] * 1e-3,
           (double)times[RUNS * 99 / 100] * 1e-3);
    tn_pool_destroy(pool);
  }
  free(data);
}
