#include <stdio.h>
#include <string.h>

#include "runtime/heap.h"

// Memory of a logical core of the modelled chip.
#define CORE_BYTES ((size_t)24 << 30)

static size_t total_bytes(void) {
  const size_t host = tn_heap_host_limit();
  return host < CORE_BYTES ? host : CORE_BYTES;
}

size_t tn_heap_capacity(const tn_heap_t* heap) {
  const size_t total = total_bytes();
  return heap->limit && heap->limit < total ? heap->limit : total;
}

static size_t free_bytes(size_t capacity, size_t reserved) {
  const size_t own = capacity > reserved ? capacity - reserved : 0;
  const size_t limit = tn_heap_host_limit(), used = tn_heap_host_reserved();
  const size_t shared = limit > used ? limit - used : 0;  // other cores use the same host
  return own < shared ? own : shared;
}

void tn_heap_info(int device, size_t* out_free, size_t* out_total) {
  *out_total = total_bytes();
  *out_free = free_bytes(*out_total, 0);
  tn_heap_t* heap = tn_heap_of(device);
  if (!heap) return;
  tn_mutex_lock(&heap->lock);
  *out_total = tn_heap_capacity(heap);
  *out_free = free_bytes(*out_total, heap->reserved);
  tn_mutex_unlock(&heap->lock);
}

void tn_heap_stats(int device, tn_heap_stats_t* out_stats) {
  memset(out_stats, 0, sizeof(*out_stats));
  tn_heap_t* heap = tn_heap_of(device);
  if (!heap) return;
  tn_mutex_lock(&heap->lock);
  *out_stats = heap->stats;
  tn_mutex_unlock(&heap->lock);
  // Work has run when its launch returns, so no freed block waits for a stream: active is allocated.
  memcpy(out_stats->active, out_stats->allocation, sizeof(out_stats->active));
  memcpy(out_stats->active_bytes, out_stats->allocated_bytes, sizeof(out_stats->active_bytes));
}

// Calls |fn| for every tn_stat_t. They are the first members of tn_heap_stats_t, in arrays of three.
static void for_each_stat(tn_heap_stats_t* stats, void (*fn)(tn_stat_t*)) {
  _Static_assert(offsetof(tn_heap_stats_t, alloc_retries) % sizeof(tn_stat_t) == 0,
                 "only tn_stat_t before it");
  tn_stat_t* first = &stats->allocation[0];
  for (size_t i = 0; i < offsetof(tn_heap_stats_t, alloc_retries) / sizeof(tn_stat_t); ++i)
    fn(first + i);
}
static void reset_peak(tn_stat_t* stat) { stat->peak = stat->current; }
static void reset_accumulated(tn_stat_t* stat) { stat->allocated = stat->freed = 0; }

void tn_heap_reset_peak(int device) {
  tn_heap_t* heap = tn_heap_of(device);
  if (!heap) return;
  tn_mutex_lock(&heap->lock);
  for_each_stat(&heap->stats, reset_peak);
  tn_mutex_unlock(&heap->lock);
}

void tn_heap_reset_accumulated(int device) {
  tn_heap_t* heap = tn_heap_of(device);
  if (!heap) return;
  tn_mutex_lock(&heap->lock);
  for_each_stat(&heap->stats, reset_accumulated);
  heap->stats.alloc_retries = heap->stats.ooms = heap->stats.device_allocs =
      heap->stats.device_frees = 0;
  tn_mutex_unlock(&heap->lock);
}

// ---- out of memory -------------------------------------------------------------------------------------------------

enum { LISTED = 8 };
typedef struct size_group {
  size_t requested;
  int64_t count;
} size_group_t;

// The largest requested sizes among the live blocks, each with its number of blocks, largest first.
static int largest_groups(const tn_heap_t* heap, size_group_t groups[LISTED]) {
  int count = 0;
  for (const tn_segment_t* segment = heap->segments; segment; segment = segment->next)
    for (uint32_t index = 0; index < segment->granules; index += segment->blocks[index].granules) {
      const tn_block_t* block = &segment->blocks[index];
      if (block->state != TN_BLOCK_LIVE) continue;
      int place = 0;
      while (place < count && groups[place].requested > block->requested) ++place;
      if (place < count && groups[place].requested == block->requested) {
        ++groups[place].count;
        continue;
      }
      if (place == LISTED) continue;
      if (count < LISTED) ++count;
      memmove(&groups[place + 1], &groups[place], (size_t)(count - 1 - place) * sizeof(*groups));
      groups[place] = (size_group_t){block->requested, 1};
    }
  return count;
}

tn_status_t tn_heap_oom(const tn_heap_t* heap, size_t size) {
  const size_t capacity = tn_heap_capacity(heap);
  const int64_t allocated = heap->stats.allocated_bytes[0].current;
  char text[LISTED * 48 + 16] = "none";
  size_group_t groups[LISTED];
  const int count = largest_groups(heap, groups);
  int used = 0;
  for (int i = 0; i < count; ++i) {
    used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%zu", i ? ", " : "",
                     groups[i].requested);
    if (groups[i].count > 1)
      used +=
          snprintf(text + used, sizeof(text) - (size_t)used, " x%lld", (long long)groups[i].count);
  }
  return TN_ERROR(TN_RESOURCE_EXHAUSTED,
                  "Neuron OOM: requested_size=%zu total_hbm=%zu allocated=%lld free=%zu "
                  "reserved=%zu on neuron:%d. "
                  "Free is what is not allocated on this core%s. Largest live blocks in bytes: %s",
                  size, capacity, (long long)allocated,
                  capacity > (size_t)allocated ? capacity - (size_t)allocated : 0, heap->reserved,
                  heap->device, heap->limit ? " below the limit set for this process" : "", text);
}
