#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/size.h"
#include "runtime/heap.h"

// Segment of every 2 MiB of the address space, as two levels: 47 address bits = 13 + 13 + 21. Entries are written under
// the lock of the segment's heap and read without one.
enum { LEVEL_BITS = 13, ADDRESS_BITS = 2 * LEVEL_BITS + TN_CHUNK_SHIFT };
typedef struct leaf {
  _Atomic(tn_segment_t*) segments[1 << LEVEL_BITS];
} leaf_t;
static _Atomic(leaf_t*) leaves[1 << LEVEL_BITS];

static _Atomic size_t host_reserved;  // by all heaps
static _Atomic int failures_wanted;   // by a test

tn_segment_t* tn_segment_find(const void* pointer) {
  const uintptr_t chunk = (uintptr_t)pointer >> TN_CHUNK_SHIFT;
  if (chunk >> (2 * LEVEL_BITS)) return NULL;
  leaf_t* leaf = atomic_load_explicit(&leaves[chunk >> LEVEL_BITS], memory_order_acquire);
  if (!leaf) return NULL;
  return atomic_load_explicit(&leaf->segments[chunk & ((1 << LEVEL_BITS) - 1)],
                              memory_order_acquire);
}

// Enters |segment|, or NULL, for the chunks of a range; false without memory for a leaf.
static bool set_range(const uint8_t* base, size_t size, tn_segment_t* segment) {
  const uintptr_t first = (uintptr_t)base >> TN_CHUNK_SHIFT;
  const uintptr_t last = ((uintptr_t)base + size - 1) >> TN_CHUNK_SHIFT;
  if (last >> (2 * LEVEL_BITS)) return false;
  for (uintptr_t chunk = first; chunk <= last; ++chunk) {
    _Atomic(leaf_t*)* slot = &leaves[chunk >> LEVEL_BITS];
    leaf_t* leaf = atomic_load_explicit(slot, memory_order_acquire);
    if (!leaf) {
      leaf_t* created = calloc(1, sizeof(*created));
      if (!created) return false;
      // Another heap may have been faster.
      if (atomic_compare_exchange_strong(slot, &leaf, created)) leaf = created;
      else free(created);
    }
    atomic_store_explicit(&leaf->segments[chunk & ((1 << LEVEL_BITS) - 1)], segment,
                          memory_order_release);
  }
  return true;
}

size_t tn_heap_host_limit(void) {
  static _Atomic size_t limit;  // a constant of the process, computed at the first use
  size_t value = atomic_load_explicit(&limit, memory_order_relaxed);
  if (value == 0) {
    const size_t total = tn_os_memory_total();
    value = (total - total / 8) &
            ~(((size_t)1 << TN_CHUNK_SHIFT) - 1);  // the rest is for the program itself
    atomic_store_explicit(&limit, value, memory_order_relaxed);
  }
  return value;
}

size_t tn_heap_host_reserved(void) {
  return atomic_load_explicit(&host_reserved, memory_order_relaxed);
}

void tn_segment_fail_next(int count) { atomic_store(&failures_wanted, count); }

// Maps |size| bytes at |offset| of the file at an address that is a multiple of 2 MiB, so that the chunk map is exact
// and the system may use huge pages.
static uint8_t* map_aligned(int fd, int64_t offset, size_t size) {
  const size_t alignment = (size_t)1 << TN_CHUNK_SHIFT, whole = size + alignment;
  uint8_t* range = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return NULL;
  uint8_t* base = range + (-(uintptr_t)range & (alignment - 1));
  const size_t before = (size_t)(base - range), after = whole - before - size;
  if (before) munmap(range, before);
  if (after) munmap(base + size, after);
  if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset) == MAP_FAILED) {
    munmap(base, size);
    return NULL;
  }
  madvise(base, size, MADV_HUGEPAGE);  // a wish; many systems refuse it for shared memory
  return base;
}

tn_status_t tn_segment_create(tn_heap_t* heap, int pool, size_t size, tn_segment_t** out_segment) {
  *out_segment = NULL;
  const size_t page = tn_os_page_size(), alignment = (size_t)1 << TN_CHUNK_SHIFT;
  const int shift = pool == TN_SMALL ? TN_SMALL_SHIFT : TN_LARGE_SHIFT;
  size_t mapped, chunks, bytes;
  if (!tn_size_align(size, page, &mapped) || !tn_size_align(size, alignment, &chunks))
    return TN_ERROR(TN_RESOURCE_EXHAUSTED, "segment of %zu bytes", size);
  if (heap->reserved + size > tn_heap_capacity(heap) || atomic_load(&failures_wanted) > 0) {
    if (atomic_load(&failures_wanted) > 0) atomic_fetch_sub(&failures_wanted, 1);
    return TN_ERROR(TN_RESOURCE_EXHAUSTED, "segment of %zu bytes beyond the limit", size);
  }
  // All heaps share the host.
  if (atomic_fetch_add(&host_reserved, size) + size > tn_heap_host_limit()) {
    atomic_fetch_sub(&host_reserved, size);
    return TN_ERROR(TN_RESOURCE_EXHAUSTED, "segment of %zu bytes beyond the host's memory", size);
  }

  const uint32_t granules = (uint32_t)(size >> shift);
  tn_segment_t* segment = heap->spare_segments;
  uint8_t* base = NULL;
  tn_block_t* blocks = NULL;
  int error = ENOMEM;
  if (segment) heap->spare_segments = segment->next;
  else if (!(segment = calloc(1, sizeof(*segment)))) goto failed;
  if (!tn_size_array((granules + 63) / 64 * sizeof(uint64_t), granules, sizeof(tn_block_t), &bytes))
    goto failed;
  if (!(blocks = calloc(1, bytes))) goto failed;  // untouched parts cost nothing
  if (heap->fd < 0) heap->fd = memfd_create("tn-heap", MFD_CLOEXEC);
  if (heap->fd < 0 || ftruncate(heap->fd, heap->file_size + (int64_t)chunks) != 0 ||
      !(base = map_aligned(heap->fd, heap->file_size, mapped))) {
    error = errno;
    goto failed;
  }
  *segment = (tn_segment_t){.base = base,
                            .size = size,
                            .file_offset = heap->file_size,
                            .heap = heap,
                            .pool = pool,
                            .shift = shift,
                            .granules = granules,
                            .blocks = blocks,
                            .next = heap->segments};
  segment->starts = (uint64_t*)(blocks + granules);
  segment->starts[0] = 1;
  segment->free_blocks = 1;
  segment->free_bytes = size;
  blocks[0] = (tn_block_t){.granules = granules, .segment = segment, .state = TN_BLOCK_FREE};
  if (!set_range(base, size, segment)) {
    set_range(base, size, NULL);
    goto failed;
  }
  heap->file_size += (int64_t)chunks;
  if (heap->segments) heap->segments->previous = segment;
  heap->segments = segment;
  heap->reserved += size;
  tn_stat_add(heap->stats.segment, pool, 1);
  tn_stat_add(heap->stats.reserved_bytes, pool, (int64_t)size);
  ++heap->stats.device_allocs;
  *out_segment = segment;
  return TN_OK;

failed:
  if (base) munmap(base, mapped);
  free(blocks);
  if (segment) {
    segment->heap = heap;
    segment->next = heap->spare_segments;
    heap->spare_segments = segment;
  }
  atomic_fetch_sub(&host_reserved, size);
  return TN_ERROR(TN_RESOURCE_EXHAUSTED, "segment of %zu bytes: %s", size, strerror(error));
}

void tn_segment_destroy(tn_segment_t* segment) {
  tn_heap_t* heap = segment->heap;
  size_t mapped = 0;
  tn_size_align(segment->size, tn_os_page_size(), &mapped);
  set_range(segment->base, segment->size, NULL);
  munmap(segment->base, mapped);
  fallocate(heap->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, segment->file_offset,
            (off_t)mapped);
  if (segment->next) segment->next->previous = segment->previous;
  if (segment->previous) segment->previous->next = segment->next;
  else heap->segments = segment->next;
  heap->reserved -= segment->size;
  atomic_fetch_sub(&host_reserved, segment->size);
  tn_stat_subtract(heap->stats.segment, segment->pool, 1);
  tn_stat_subtract(heap->stats.reserved_bytes, segment->pool, (int64_t)segment->size);
  ++heap->stats.device_frees;
  free(segment->blocks);
  segment->blocks = NULL;
  segment->next = heap->spare_segments;
  heap->spare_segments = segment;
}
