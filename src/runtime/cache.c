// How a reader without a lock stays safe:
// - Entry structs and bucket tables are never given back while the cache lives, so any pointer found in a chain can be
//   followed, though the struct may serve another key by now.
// - A reader pins an entry only if its count is not 0, and compares the key after that: a pinned entry does not change.
// - If a chain was changed under the reader it may miss an entry or walk into another chain. Walks are bounded, and a
//   miss is checked again under the lock.
#include "runtime/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mutex.h"
#include "base/size.h"

// An entry's state word: pins in the low bits (one is the map's own), hits in the high bits.
#define PIN      UINT64_C(1)
#define PIN_BITS 24
#define PIN_MASK ((UINT64_C(1) << PIN_BITS) - 1)
#define HIT      (UINT64_C(1) << PIN_BITS)
enum { LONGEST_WALK = 64, FIRST_BUCKETS = 64, ENTRIES_PER_SLAB = 64 };

typedef struct entry {
  tn_cache_entry_t public;
  _Atomic uint64_t state;
  _Atomic uint64_t hash;
  _Atomic(struct entry*) next;  // in the bucket, or in the list of free entries
  uint8_t* key;                 // own copy
  size_t key_size;
  // Under the lock:
  size_t cost;
  uint64_t seen_hits;           // when the entry was last looked at for eviction
  struct entry *newer, *older;  // by insertion or last reprieve
} entry_t;

typedef struct slab {
  struct slab* next;
  entry_t entries[ENTRIES_PER_SLAB];
} slab_t;

typedef struct table {
  struct table* older;  // outgrown, kept for readers
  size_t mask;
  _Atomic(entry_t*) buckets[];
} table_t;

// A value being made.
typedef struct making {
  struct making* next;
  uint64_t hash;
  const void* key;
  size_t key_size;
} making_t;

struct tn_cache {
  tn_cache_config_t config;  // limits under the lock
  _Atomic(table_t*) table;   // release store by grow, acquire load by readers
  tn_mutex_t lock;           // of everything below and of all links
  entry_t *newest, *oldest, *free_entries;
  slab_t* slabs;
  tn_cache_stats_t stats;  // hits: of entries no longer in the map
  pthread_mutex_t making_lock;
  pthread_cond_t made;
  making_t* makings;
};

static table_t* create_table(size_t count) {
  size_t size;
  if (!tn_size_array(sizeof(table_t), count, sizeof(_Atomic(entry_t*)), &size)) return NULL;
  table_t* table = calloc(1, size);
  if (table) table->mask = count - 1;
  return table;
}

tn_status_t tn_cache_create(const tn_cache_config_t* config, tn_cache_t** out_cache) {
  *out_cache = NULL;
  tn_cache_t* cache = calloc(1, sizeof(*cache));
  table_t* table = create_table(FIRST_BUCKETS);
  if (!cache || !table) {
    free(cache);
    free(table);
    return TN_ERROR(TN_RESOURCE_EXHAUSTED, "cache: no host memory");
  }
  cache->config = *config;
  atomic_init(&cache->table, table);
  pthread_mutex_init(&cache->making_lock, NULL);
  pthread_cond_init(&cache->made, NULL);
  *out_cache = cache;
  return TN_OK;
}

void tn_cache_destroy(tn_cache_t* cache) {
  if (!cache) return;
  tn_cache_clear(cache);
  for (slab_t *slab = cache->slabs, *next; slab; slab = next) {
    next = slab->next;
    free(slab);
  }
  for (table_t *table = atomic_load(&cache->table), *older; table; table = older) {
    older = table->older;
    free(table);
  }
  pthread_mutex_destroy(&cache->making_lock);
  pthread_cond_destroy(&cache->made);
  free(cache);
}

// ---- entries ---------------------------------------------------------------------------------------------------

static bool are_equal(const void* a, size_t a_size, const void* b, size_t b_size) {
  return a_size == b_size && (a_size == 0 || memcmp(a, b, a_size) == 0);
}

static bool has_key(const entry_t* entry, const void* key, size_t size) {
  return are_equal(entry->key, entry->key_size, key, size);
}

// Pins an entry unless it is dead.
static bool pin(entry_t* entry, uint64_t amount) {
  uint64_t state = atomic_load_explicit(&entry->state, memory_order_relaxed);
  do {
    if ((state & PIN_MASK) == 0) return false;
  } while (!atomic_compare_exchange_weak_explicit(&entry->state, &state, state + amount,
                                                  memory_order_acquire, memory_order_relaxed));
  return true;
}

__attribute__((noinline)) static void retire(tn_cache_t* cache, entry_t* entry) {
  if (cache->config.destroy) cache->config.destroy(entry->public.value);
  free(entry->key);
  entry->key = NULL;
  tn_mutex_lock(&cache->lock);
  atomic_store_explicit(&entry->next, cache->free_entries, memory_order_relaxed);
  cache->free_entries = entry;
  tn_mutex_unlock(&cache->lock);
}

void tn_cache_release(tn_cache_t* cache, tn_cache_entry_t* public) {
  if (!public) return;
  entry_t* entry = (entry_t*)public;
  const uint64_t before = atomic_fetch_sub_explicit(&entry->state, PIN, memory_order_acq_rel);
  if (__builtin_expect((before & PIN_MASK) == 1, 0)) retire(cache, entry);
}

// Under the lock.
static entry_t* find(tn_cache_t* cache, uint64_t hash, const void* key, size_t size) {
  table_t* table = atomic_load_explicit(&cache->table, memory_order_relaxed);
  entry_t* entry = atomic_load_explicit(&table->buckets[hash & table->mask], memory_order_relaxed);
  for (; entry; entry = atomic_load_explicit(&entry->next, memory_order_relaxed))
    if (atomic_load_explicit(&entry->hash, memory_order_relaxed) == hash &&
        has_key(entry, key, size))
      return entry;
  return NULL;
}

// Looks under the lock, where the answer is certain.
__attribute__((noinline)) static entry_t* acquire_slow(tn_cache_t* cache, uint64_t hash,
                                                       const void* key, size_t size) {
  tn_mutex_lock(&cache->lock);
  entry_t* entry = find(cache, hash, key, size);
  if (entry) pin(entry, PIN | HIT);  // linked entries are alive
  else ++cache->stats.misses;
  tn_mutex_unlock(&cache->lock);
  return entry;
}

static inline entry_t* acquire(tn_cache_t* cache, uint64_t hash, const void* key, size_t size) {
  table_t* table = atomic_load_explicit(&cache->table, memory_order_acquire);
  entry_t* entry = atomic_load_explicit(&table->buckets[hash & table->mask], memory_order_acquire);
  for (int steps = 0; entry && steps < LONGEST_WALK; ++steps) {
    if (atomic_load_explicit(&entry->hash, memory_order_relaxed) == hash) {
      if (!pin(entry, PIN | HIT)) break;
      if (__builtin_expect(atomic_load_explicit(&entry->hash, memory_order_relaxed) == hash, 1) &&
          has_key(entry, key, size))
        return entry;
      // Another key of the same hash, or reused: undo the pin. The hit stays counted; it is one in a blue moon.
      tn_cache_release(cache, &entry->public);
      break;
    }
    entry = atomic_load_explicit(&entry->next, memory_order_acquire);
  }
  return acquire_slow(cache, hash, key, size);
}

tn_cache_entry_t* tn_cache_acquire(tn_cache_t* cache, const void* key, size_t size) {
  entry_t* entry = acquire(cache, tn_hash_bytes(key, size, 0), key, size);
  return entry ? &entry->public : NULL;
}

// ---- changes, under the lock -----------------------------------------------------------------------------------

static void link_newest(tn_cache_t* cache, entry_t* entry) {
  entry->newer = NULL;
  entry->older = cache->newest;
  if (cache->newest) cache->newest->newer = entry;
  else cache->oldest = entry;
  cache->newest = entry;
}

static void unlink_age(tn_cache_t* cache, entry_t* entry) {
  if (entry->newer) entry->newer->older = entry->older;
  else cache->newest = entry->older;
  if (entry->older) entry->older->newer = entry->newer;
  else cache->oldest = entry->newer;
}

static void link_bucket(table_t* table, entry_t* entry) {
  _Atomic(entry_t*)* bucket =
      &table->buckets[atomic_load_explicit(&entry->hash, memory_order_relaxed) & table->mask];
  atomic_store_explicit(&entry->next, atomic_load_explicit(bucket, memory_order_relaxed),
                        memory_order_release);
  atomic_store_explicit(bucket, entry, memory_order_release);
}

// Takes an entry out of the map; the map's pin goes to the caller.
static void unlink_entry(tn_cache_t* cache, entry_t* entry) {
  table_t* table = atomic_load_explicit(&cache->table, memory_order_relaxed);
  _Atomic(entry_t*)* link =
      &table->buckets[atomic_load_explicit(&entry->hash, memory_order_relaxed) & table->mask];
  entry_t* here;
  while ((here = atomic_load_explicit(link, memory_order_relaxed)) != entry) link = &here->next;
  atomic_store_explicit(link, atomic_load_explicit(&entry->next, memory_order_relaxed),
                        memory_order_release);
  unlink_age(cache, entry);
  cache->stats.hits +=
      (int64_t)(atomic_load_explicit(&entry->state, memory_order_relaxed) >> PIN_BITS);
  --cache->stats.entries;
  cache->stats.cost -= (int64_t)entry->cost;
}

// Doubles the table; without memory the chains just get longer.
static void grow(tn_cache_t* cache) {
  table_t* old = atomic_load_explicit(&cache->table, memory_order_relaxed);
  table_t* table = create_table((old->mask + 1) * 2);
  if (!table) return;
  table->older = old;
  for (entry_t* entry = cache->oldest; entry; entry = entry->newer) link_bucket(table, entry);
  atomic_store_explicit(&cache->table, table, memory_order_release);
}

static bool is_over(const tn_cache_t* cache) {
  const tn_cache_config_t* config = &cache->config;
  return (config->max_entries && (size_t)cache->stats.entries > config->max_entries) ||
         (config->max_cost && (size_t)cache->stats.cost > config->max_cost);
}

// Takes entries out until the limits hold; |keep| stays. Returns them as a list by |older|.
static entry_t* evict(tn_cache_t* cache, const entry_t* keep) {
  entry_t* victims = NULL;
  // Every entry is reprieved at most once per call, so two rounds are enough.
  for (int64_t looks = 2 * cache->stats.entries;
       looks > 0 && is_over(cache) && cache->stats.entries > 1; --looks) {
    entry_t* entry = cache->oldest;
    const uint64_t hits = atomic_load_explicit(&entry->state, memory_order_relaxed) >> PIN_BITS;
    if (entry == keep || hits != entry->seen_hits) {
      entry->seen_hits = hits;
      unlink_age(cache, entry);
      link_newest(cache, entry);
      continue;
    }
    unlink_entry(cache, entry);
    ++cache->stats.evictions;
    entry->older = victims;
    victims = entry;
  }
  return victims;
}

static void release_list(tn_cache_t* cache, entry_t* list) {
  while (list) {
    entry_t* next = list->older;  // before the release: the struct may be reused after it
    tn_cache_release(cache, &list->public);
    list = next;
  }
}

static entry_t* take_free_entry(tn_cache_t* cache) {
  if (!cache->free_entries) {
    slab_t* slab = calloc(1, sizeof(*slab));
    if (!slab) return NULL;
    slab->next = cache->slabs;
    cache->slabs = slab;
    for (int i = 0; i < ENTRIES_PER_SLAB; ++i) {
      atomic_store_explicit(&slab->entries[i].next, cache->free_entries, memory_order_relaxed);
      cache->free_entries = &slab->entries[i];
    }
  }
  entry_t* entry = cache->free_entries;
  cache->free_entries = atomic_load_explicit(&entry->next, memory_order_relaxed);
  return entry;
}

tn_status_t tn_cache_insert(tn_cache_t* cache, const void* key, size_t size, void* value,
                            size_t cost, tn_cache_entry_t** out_entry) {
  *out_entry = NULL;
  const uint64_t hash = tn_hash_bytes(key, size, 0);
  uint8_t* copy = malloc(size ? size : 1);
  if (copy && size) memcpy(copy, key, size);
  tn_mutex_lock(&cache->lock);
  entry_t* entry = find(cache, hash, key, size);
  entry_t* victims = NULL;
  const bool is_present = entry != NULL;
  if (is_present) {
    pin(entry, PIN);
  } else if (copy && (entry = take_free_entry(cache))) {
    entry->public.value = value;
    entry->key = copy;
    entry->key_size = size;
    entry->cost = cost;
    entry->seen_hits = 0;
    atomic_store_explicit(&entry->hash, hash, memory_order_relaxed);
    atomic_store_explicit(&entry->state, 2 * PIN,
                          memory_order_release);  // the map's and the caller's
    link_bucket(atomic_load_explicit(&cache->table, memory_order_relaxed), entry);
    link_newest(cache, entry);
    ++cache->stats.insertions;
    ++cache->stats.entries;
    cache->stats.cost += (int64_t)cost;
    victims = evict(cache, entry);
    if ((size_t)cache->stats.entries >
        atomic_load_explicit(&cache->table, memory_order_relaxed)->mask)
      grow(cache);
  }
  tn_mutex_unlock(&cache->lock);
  release_list(cache, victims);
  if (is_present || !entry) {
    free(copy);
    if (cache->config.destroy && !(is_present && entry->public.value == value))
      cache->config.destroy(value);
  }
  if (!entry) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "cache: no host memory for an entry");
  *out_entry = &entry->public;
  return TN_OK;
}

void tn_cache_clear(tn_cache_t* cache) {
  entry_t* removed = NULL;
  tn_mutex_lock(&cache->lock);
  while (cache->oldest) {
    entry_t* entry = cache->oldest;
    unlink_entry(cache, entry);
    entry->older = removed;
    removed = entry;
  }
  tn_mutex_unlock(&cache->lock);
  release_list(cache, removed);
}

void tn_cache_set_limits(tn_cache_t* cache, size_t max_entries, size_t max_cost) {
  tn_mutex_lock(&cache->lock);
  cache->config.max_entries = max_entries;
  cache->config.max_cost = max_cost;
  entry_t* victims = evict(cache, NULL);
  tn_mutex_unlock(&cache->lock);
  release_list(cache, victims);
}

void tn_cache_stats(tn_cache_t* cache, tn_cache_stats_t* out_stats) {
  tn_mutex_lock(&cache->lock);
  *out_stats = cache->stats;
  for (const entry_t* entry = cache->oldest; entry; entry = entry->newer)
    out_stats->hits +=
        (int64_t)(atomic_load_explicit(&entry->state, memory_order_relaxed) >> PIN_BITS);
  tn_mutex_unlock(&cache->lock);
}

// ---- making ------------------------------------------------------------------------------------------------------

static making_t* find_making(tn_cache_t* cache, uint64_t hash, const void* key, size_t size) {
  for (making_t* making = cache->makings; making; making = making->next)
    if (making->hash == hash && are_equal(making->key, making->key_size, key, size)) return making;
  return NULL;
}

static void remove_making(tn_cache_t* cache, making_t* making) {
  pthread_mutex_lock(&cache->making_lock);
  making_t** link = &cache->makings;
  while (*link != making) link = &(*link)->next;
  *link = making->next;
  pthread_cond_broadcast(&cache->made);
  pthread_mutex_unlock(&cache->making_lock);
}

tn_status_t tn_cache_get(tn_cache_t* cache, const void* key, size_t size, tn_cache_make_fn_t make,
                         void* context, tn_cache_entry_t** out_entry) {
  *out_entry = NULL;
  const uint64_t hash = tn_hash_bytes(key, size, 0);
  entry_t* entry = acquire(cache, hash, key, size);
  making_t self = {.hash = hash, .key = key, .key_size = size};
  if (!entry) {
    pthread_mutex_lock(&cache->making_lock);
    while (find_making(cache, hash, key, size))
      pthread_cond_wait(&cache->made, &cache->making_lock);
    // The key may have been made since the miss: makers insert before they leave the list.
    tn_mutex_lock(&cache->lock);
    entry = find(cache, hash, key, size);
    if (entry) pin(entry, PIN);
    tn_mutex_unlock(&cache->lock);
    if (!entry) {
      self.next = cache->makings;
      cache->makings = &self;
    }
    pthread_mutex_unlock(&cache->making_lock);
  }
  if (entry) {
    *out_entry = &entry->public;
    return TN_OK;
  }
  void* value = NULL;
  size_t cost = 0;
  tn_status_t status = make(context, &value, &cost);
  if (!status) status = tn_cache_insert(cache, key, size, value, cost, out_entry);
  remove_making(cache, &self);
  return status;
}
