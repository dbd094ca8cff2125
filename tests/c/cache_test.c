// Mirrors src/runtime/cache.c.
#include "tests/c/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os.h"
#include "runtime/cache.h"

typedef struct value {
  uint64_t key;
  _Atomic int alive;  // 1 until destroyed
} value_t;

static _Atomic int64_t created, destroyed;

static value_t* new_value(uint64_t key) {
  value_t* value = malloc(sizeof(*value));
  value->key = key;
  atomic_init(&value->alive, 1);
  atomic_fetch_add(&created, 1);
  return value;
}

static void destroy_value(void* pointer) {
  value_t* value = pointer;
  if (atomic_exchange(&value->alive, 0) != 1) abort();
  atomic_fetch_add(&destroyed, 1);
  free(value);
}

static tn_cache_t* new_cache(size_t max_entries, size_t max_cost) {
  tn_cache_t* cache = NULL;
  const tn_cache_config_t config = {max_entries, max_cost, destroy_value};
  TN_EXPECT_OK(tn_cache_create(&config, &cache));
  atomic_store(&created, 0);
  atomic_store(&destroyed, 0);
  return cache;
}

// Keys of different sizes with much in common.
static size_t write_key(uint64_t number, uint64_t out[12]) {
  for (int i = 0; i < 12; ++i) out[i] = 7;
  out[number % 5] = number;
  return 8 * (5 + number % 8);
}

static bool insert(tn_cache_t* cache, uint64_t number, size_t cost) {
  uint64_t key[12];
  const size_t size = write_key(number, key);
  tn_cache_entry_t* entry;
  tn_status_t status = tn_cache_insert(cache, key, size, new_value(number), cost, &entry);
  const bool good = !status && ((value_t*)entry->value)->key == number;
  tn_status_free(status);
  tn_cache_release(cache, entry);
  return good;
}

static bool contains(tn_cache_t* cache, uint64_t number) {
  uint64_t key[12];
  const size_t size = write_key(number, key);
  tn_cache_entry_t* entry = tn_cache_acquire(cache, key, size);
  const bool found =
      entry && ((value_t*)entry->value)->key == number && ((value_t*)entry->value)->alive;
  tn_cache_release(cache, entry);
  return found;
}

TN_TEST(an_unbounded_map_keeps_everything) {
  tn_cache_t* cache = new_cache(0, 0);
  for (uint64_t i = 0; i < 5000; ++i) {
    TN_EXPECT(!contains(cache, i));
    TN_EXPECT(insert(cache, i, 10));
    TN_EXPECT(contains(cache, i / 2));
  }
  for (uint64_t i = 0; i < 5000; ++i) TN_EXPECT(contains(cache, i));
  tn_cache_stats_t stats;
  tn_cache_stats(cache, &stats);
  TN_EXPECT_EQ(10000, stats.hits);
  TN_EXPECT_EQ(5000, stats.misses);
  TN_EXPECT_EQ(5000, stats.insertions);
  TN_EXPECT_EQ(5000, stats.entries);
  TN_EXPECT_EQ(50000, stats.cost);
  TN_EXPECT_EQ(0, stats.evictions);
  tn_cache_clear(cache);
  TN_EXPECT_EQ(5000, atomic_load(&destroyed));
  tn_cache_stats(cache, &stats);
  TN_EXPECT_EQ(10000, stats.hits);
  TN_EXPECT_EQ(0, stats.entries);
  TN_EXPECT_EQ(0, stats.cost);
  TN_EXPECT(!contains(cache, 3));
  TN_EXPECT(insert(cache, 3, 1));
  tn_cache_destroy(cache);
  TN_EXPECT_EQ(atomic_load(&created), atomic_load(&destroyed));
}

TN_TEST(a_present_key_keeps_its_value) {
  tn_cache_t* cache = new_cache(10, 0);
  TN_EXPECT(insert(cache, 1, 1));
  TN_EXPECT(insert(cache, 1, 1));
  TN_EXPECT_EQ(1, atomic_load(&destroyed));
  tn_cache_stats_t stats;
  tn_cache_stats(cache, &stats);
  TN_EXPECT_EQ(1, stats.entries);
  tn_cache_entry_t* entry;
  TN_EXPECT_OK(tn_cache_insert(cache, NULL, 0, new_value(0), 1, &entry));  // the empty key is a key
  tn_cache_release(cache, entry);
  entry = tn_cache_acquire(cache, NULL, 0);
  TN_EXPECT(entry != NULL);
  tn_cache_release(cache, entry);
  tn_cache_release(cache, NULL);
  tn_cache_destroy(cache);
  tn_cache_destroy(NULL);
}

TN_TEST(unused_entries_go_first) {
  tn_cache_t* cache = new_cache(8, 0);
  for (uint64_t i = 0; i < 8; ++i) TN_EXPECT(insert(cache, i, 1));
  for (uint64_t i = 0; i < 8; i += 2) TN_EXPECT(contains(cache, i));
  for (uint64_t i = 8; i < 12; ++i) TN_EXPECT(insert(cache, i, 1));
  for (uint64_t i = 0; i < 12; ++i) TN_EXPECT(contains(cache, i) == (i >= 8 || i % 2 == 0));
  tn_cache_stats_t stats;
  tn_cache_stats(cache, &stats);
  TN_EXPECT_EQ(8, stats.entries);
  TN_EXPECT_EQ(4, stats.evictions);
  tn_cache_set_limits(cache, 3, 0);
  tn_cache_stats(cache, &stats);
  TN_EXPECT_EQ(3, stats.entries);
  tn_cache_destroy(cache);
}

TN_TEST(costs_are_bounded) {
  tn_cache_t* cache = new_cache(0, 100);
  for (uint64_t i = 0; i < 50; ++i) {
    TN_EXPECT(insert(cache, i, 30));
    tn_cache_stats_t stats;
    tn_cache_stats(cache, &stats);
    TN_EXPECT(stats.cost <= 100);
    TN_EXPECT(contains(cache, i));
  }
  TN_EXPECT(insert(cache, 99, 1000));  // too large for the bound: alone in the map
  tn_cache_stats_t stats;
  tn_cache_stats(cache, &stats);
  TN_EXPECT_EQ(1, stats.entries);
  tn_cache_destroy(cache);
  TN_EXPECT_EQ(atomic_load(&created), atomic_load(&destroyed));
}

TN_TEST(an_entry_in_use_outlives_its_eviction) {
  tn_cache_t* cache = new_cache(1, 0);
  uint64_t key[12];
  const size_t size = write_key(1, key);
  TN_EXPECT(insert(cache, 1, 1));
  tn_cache_entry_t* entry = tn_cache_acquire(cache, key, size);
  for (uint64_t i = 2; i < 300; ++i) TN_EXPECT(insert(cache, i, 1));
  TN_EXPECT(!contains(cache, 1));
  TN_EXPECT(((value_t*)entry->value)->alive == 1 && ((value_t*)entry->value)->key == 1);
  const int64_t before = atomic_load(&destroyed);
  tn_cache_release(cache, entry);
  TN_EXPECT_EQ(before + 1, atomic_load(&destroyed));
  tn_cache_destroy(cache);
}

// ---- making ------------------------------------------------------------------------------------------------------

typedef struct maker {
  uint64_t number;
  _Atomic int calls;
  int failures;  // of the first calls
} maker_t;

static tn_status_t make_value(void* context, void** out_value, size_t* out_cost) {
  maker_t* maker = context;
  const int call = atomic_fetch_add(&maker->calls, 1);
  usleep(2000);
  if (call < maker->failures) return TN_ERROR(TN_INTERNAL, "call %d", call);
  *out_value = new_value(maker->number);
  *out_cost = 1;
  return TN_OK;
}

typedef struct get_job {
  tn_cache_t* cache;
  maker_t* maker;
  tn_code_t code;
} get_job_t;

static void* get_main(void* argument) {
  get_job_t* job = argument;
  uint64_t key[12];
  const size_t size = write_key(job->maker->number, key);
  tn_cache_entry_t* entry;
  tn_status_t status = tn_cache_get(job->cache, key, size, make_value, job->maker, &entry);
  job->code = tn_status_code(status);
  if (!status && ((value_t*)entry->value)->key != job->maker->number) job->code = TN_DATA_LOSS;
  tn_status_free(status);
  tn_cache_release(job->cache, entry);
  return NULL;
}

TN_TEST(a_value_is_made_once) {
  for (int failures = 0; failures < 3; ++failures) {
    tn_cache_t* cache = new_cache(0, 0);
    maker_t maker = {.number = 5, .failures = failures};
    get_job_t jobs[6];
    pthread_t threads[6];
    for (int i = 0; i < 6; ++i) {
      jobs[i] = (get_job_t){cache, &maker, TN_SUCCESS};
      pthread_create(&threads[i], NULL, get_main, &jobs[i]);
    }
    int failed = 0;
    for (int i = 0; i < 6; ++i) {
      pthread_join(threads[i], NULL);
      failed += jobs[i].code == TN_INTERNAL;
      TN_EXPECT(jobs[i].code == TN_INTERNAL || jobs[i].code == TN_SUCCESS);
    }
    TN_EXPECT_EQ(failures, failed);
    TN_EXPECT_EQ(failures + 1, atomic_load(&maker.calls));
    tn_cache_destroy(cache);
  }
}

// ---- threads -----------------------------------------------------------------------------------------------------

typedef struct stress {
  tn_cache_t* cache;
  uint64_t seed;
  int64_t bad, hits;
} stress_t;

static void* stress_main(void* argument) {
  stress_t* stress = argument;
  uint64_t state = stress->seed;
  for (int i = 0; i < 20000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t number = (state >> 33) % 97, action = state >> 60;
    if (action == 0) {
      if (!insert(stress->cache, number, 1)) ++stress->bad;
      continue;
    }
    uint64_t key[12];
    const size_t size = write_key(number, key);
    tn_cache_entry_t* entry = tn_cache_acquire(stress->cache, key, size);
    if (!entry) continue;
    ++stress->hits;
    const value_t* value = entry->value;
    if (value->key != number || !atomic_load(&value->alive)) ++stress->bad;
    tn_cache_release(stress->cache, entry);
    if (i % 5000 == 0) tn_cache_clear(stress->cache);
  }
  return NULL;
}

TN_TEST(threads_hit_insert_evict_and_clear) {
  tn_cache_t* cache = new_cache(40, 0);
  stress_t jobs[4];
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    jobs[i] = (stress_t){.cache = cache, .seed = (uint64_t)i * 977 + 3};
    pthread_create(&threads[i], NULL, stress_main, &jobs[i]);
  }
  int64_t hits = 0;
  for (int i = 0; i < 4; ++i) {
    pthread_join(threads[i], NULL);
    TN_EXPECT_EQ(0, jobs[i].bad);
    hits += jobs[i].hits;
  }
  tn_cache_stats_t stats;
  tn_cache_stats(cache, &stats);
  TN_EXPECT(stats.evictions > 0 && stats.entries <= 40);
  // A hit on an entry that was evicted at the same moment is counted by nobody.
  TN_EXPECT(stats.hits <= hits + 10 && stats.hits >= hits - hits / 100 - 10);
  tn_cache_destroy(cache);
  TN_EXPECT_EQ(atomic_load(&created), atomic_load(&destroyed));
}

TN_TEST(speed) {
  tn_cache_t* cache = new_cache(0, 0);
  for (uint64_t i = 0; i < 500; ++i) insert(cache, i, 1);
  uint64_t keys[16][12];
  size_t sizes[16];
  for (uint64_t i = 0; i < 16; ++i) sizes[i] = write_key(i * 11, keys[i]);
  int64_t best = INT64_MAX;
  for (int round = 0; round < 10; ++round) {
    const int64_t start = tn_os_now_ns();
    for (int i = 0; i < 2000; ++i) {
      tn_cache_entry_t* entry = tn_cache_acquire(cache, keys[i % 16], sizes[i % 16]);
      tn_cache_release(cache, entry);
    }
    const int64_t time = tn_os_now_ns() - start;
    if (time < best) best = time;
  }
  printf("hit and release of keys of 40 to 96 bytes: %.1f ns\n", (double)best / 2000);
  tn_cache_destroy(cache);
}
