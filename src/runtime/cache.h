// Bounded map from byte keys to pointers, for calls and kernels.
//
// A hit takes no lock: one compare-and-swap pins the entry, which also counts the hit and marks it as used, and the
// release is one decrement. An entry stays alive while it is pinned, even after its eviction. When the map is full the
// entries go in the order of their insertion, but those hit since the last look get another round, which is close to
// least-recently-used. All functions are thread-safe.
#ifndef TN_RUNTIME_CACHE_H_
#define TN_RUNTIME_CACHE_H_

#include <stddef.h>
#include <stdint.h>

#include "tn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_cache tn_cache_t;

// An entry in use. |value| is constant; the rest belongs to cache.c.
typedef struct tn_cache_entry {
  void* value;
} tn_cache_entry_t;

typedef struct tn_cache_config {
  size_t max_entries;  // 0: no bound
  size_t max_cost;     // bound of the sum of all costs; 0: no bound
  void (*destroy)(
      void* value);  // called without a lock, from any thread; NULL: values are not owned
} tn_cache_config_t;

typedef struct tn_cache_stats {
  int64_t hits, misses, insertions, evictions;
  int64_t entries, cost;  // now in the map
} tn_cache_stats_t;

tn_status_t tn_cache_create(const tn_cache_config_t* config, tn_cache_t** out_cache);
// No entry may be in use. NULL is allowed.
void tn_cache_destroy(tn_cache_t* cache);

// The entry of a key, to be released after use; NULL if there is none, which counts as a miss.
tn_cache_entry_t* tn_cache_acquire(tn_cache_t* cache, const void* key, size_t size);
void tn_cache_release(tn_cache_t* cache, tn_cache_entry_t* entry);  // NULL is allowed

// Adds |value|, which the cache owns from now on, also in case of an error. If the key is present already, |value| is
// destroyed and the present entry returned. |cost| counts towards max_cost, e.g. bytes. The entry is to be released.
tn_status_t tn_cache_insert(tn_cache_t* cache, const void* key, size_t size, void* value,
                            size_t cost, tn_cache_entry_t** out_entry);

// Makes the value of a key. Runs without a lock; may use the cache for other keys.
typedef tn_status_t (*tn_cache_make_fn_t)(void* context, void** out_value, size_t* out_cost);
// The entry of a key, made at need: of several threads that miss a key at once, one makes it and the others wait.
// An error goes to the caller whose |make| failed and is not stored; a waiting thread then tries itself.
tn_status_t tn_cache_get(tn_cache_t* cache, const void* key, size_t size, tn_cache_make_fn_t make,
                         void* context, tn_cache_entry_t** out_entry);

// Removes all entries; those in use live on until released.
void tn_cache_clear(tn_cache_t* cache);
void tn_cache_stats(tn_cache_t* cache, tn_cache_stats_t* out_stats);
void tn_cache_set_limits(tn_cache_t* cache, size_t max_entries, size_t max_cost);

#ifdef __cplusplus
}
#endif
#endif  // TN_RUNTIME_CACHE_H_
