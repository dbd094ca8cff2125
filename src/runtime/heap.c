#include "runtime/heap.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/poison.h"

// One heap per core, created at its first use and kept.
static _Atomic(tn_heap_t*) heaps[TN_DEVICE_LIMIT];

tn_heap_t* tn_heap_of(int device) {
  if (device < 0 || device >= TN_DEVICE_LIMIT) return NULL;
  return atomic_load_explicit(&heaps[device], memory_order_acquire);
}

__attribute__((noinline, cold)) static tn_status_t create_heap(int device, tn_heap_t** out_heap) {
  tn_heap_t* heap = calloc(1, sizeof(*heap));
  if (!heap) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "heap of device %d: no host memory", device);
  heap->device = device;
  heap->fd = -1;
  *out_heap = NULL;
  if (atomic_compare_exchange_strong(&heaps[device], out_heap, heap)) *out_heap = heap;
  else free(heap);  // another thread was faster
  return TN_OK;
}

// Gives back segments without live blocks. Under the lock.
static void trim(tn_heap_t* heap) {
  tn_heap_flush(heap);
  for (tn_segment_t *segment = heap->segments, *next; segment; segment = next) {
    next = segment->next;
    if (segment->live) continue;
    tn_block_remove(&segment->blocks[0]);
    TN_UNPOISON(segment->base, segment->size);
    tn_segment_destroy(segment);
  }
}

// A new segment for |size| bytes: of the usual size, or of exactly this size if the usual one is too much.
static bool add_segment(tn_heap_t* heap, int pool, size_t size) {
  const size_t usual = pool == TN_SMALL ? TN_SMALL_SEGMENT : TN_LARGE_SEGMENT;
  const size_t unit = (size_t)1 << (size < TN_CLASS_LIMIT ? TN_LARGE_SHIFT : TN_CHUNK_SHIFT);
  const size_t exact = (size + unit - 1) & ~(unit - 1);
  tn_segment_t* segment = NULL;
  tn_status_t status = tn_segment_create(
      heap, pool, size < TN_CLASS_LIMIT && usual > exact ? usual : exact, &segment);
  if (status) {
    tn_status_free(status);
    status = tn_segment_create(heap, pool, exact, &segment);
  }
  if (status && exact > size) {  // the last bytes below the limit
    const size_t granule = (size_t)1 << (pool == TN_SMALL ? TN_SMALL_SHIFT : TN_LARGE_SHIFT);
    tn_status_free(status);
    status = tn_segment_create(heap, pool, (size + granule - 1) & ~(granule - 1), &segment);
  }
  if (status) {
    tn_log(TN_LOG_DEBUG, "%s", tn_status_message(status));
    tn_status_free(status);
    return false;
  }
  TN_POISON(segment->base, segment->size);
  tn_block_insert(&segment->blocks[0]);
  return true;
}

// Under the lock, which is given up while other cores' heaps are trimmed.
__attribute__((noinline)) static tn_block_t* take_slow(tn_heap_t* heap, int pool, size_t size) {
  tn_block_t* block = tn_block_take(heap, pool, size);
  if (!block && pool == TN_SMALL) {
    tn_heap_flush(heap);
    block = tn_block_take(heap, pool, size);
  }
  if (!block && add_segment(heap, pool, size)) block = tn_block_take(heap, pool, size);
  if (block) return block;
  ++heap->stats.alloc_retries;
  tn_mutex_unlock(&heap->lock);
  for (int device = 0; device < TN_DEVICE_LIMIT; ++device) tn_heap_trim(device);
  tn_mutex_lock(&heap->lock);
  block = tn_block_take(heap, pool, size);  // another thread may have freed one
  if (!block && add_segment(heap, pool, size)) block = tn_block_take(heap, pool, size);
  if (!block) ++heap->stats.ooms;
  return block;
}

// Turns a block in no list, free or quick, into a live one.
static inline void make_live(tn_heap_t* heap, tn_block_t* block, size_t requested) {
  tn_segment_t* segment = block->segment;
  const size_t size = tn_block_size(block);
  block->state = TN_BLOCK_LIVE;
  block->requested = requested;
  ++segment->live;
  --segment->free_blocks;
  segment->free_bytes -= size;
  tn_stat_add(heap->stats.allocation, segment->pool, 1);
  tn_stat_add(heap->stats.allocated_bytes, segment->pool, (int64_t)size);
  tn_stat_add(heap->stats.requested_bytes, segment->pool, (int64_t)requested);
  tn_segment_account(segment);
}

tn_status_t tn_heap_allocate(int device, size_t size, int64_t stream, void** out_pointer) {
  *out_pointer = NULL;
  (void)stream;  // a freed block can serve any stream at once, because no work is pending
  TN_TRY(tn_device_check(device));
  if (size == 0) return TN_OK;
  tn_heap_t* heap = atomic_load_explicit(&heaps[device], memory_order_acquire);
  if (__builtin_expect(!heap, 0)) TN_TRY(create_heap(device, &heap));

  tn_mutex_lock(&heap->lock);
  tn_block_t* block;
  if (size < TN_SMALL_LIMIT) {
    const uint32_t index = tn_class_up((size + 255) >> 8);
    block = heap->quick[index];
    if (__builtin_expect(block != NULL, 1)) {
      heap->quick[index] = block->next;
    } else {
      block = take_slow(heap, TN_SMALL, (size_t)tn_class_units(index) << 8);
    }
  } else {
    size_t rounded = size;
    if (size < TN_CLASS_LIMIT)
      rounded = (size_t)tn_class_units(tn_class_up((size + 255) >> 8)) << 8;
    block = size <= TN_LARGEST_REQUEST ? take_slow(heap, TN_LARGE, rounded) : NULL;
    if (size > TN_LARGEST_REQUEST) ++heap->stats.ooms;
  }
  if (!block) {
    tn_status_t status = tn_heap_oom(heap, size);
    tn_mutex_unlock(&heap->lock);
    return status;
  }
  make_live(heap, block, size);
  tn_mutex_unlock(&heap->lock);
  *out_pointer = tn_block_pointer(block);
  TN_UNPOISON(*out_pointer, size);
  return TN_OK;
}

__attribute__((noinline, cold, noreturn)) static void bad_pointer(const void* pointer) {
  fprintf(stderr, "torch_neuronx: %p is freed, but it is no live block of a device heap\n",
          pointer);
  abort();
}

void tn_heap_free(void* pointer) {
  // A forked child inherits tensors, but not the heap.
  if (!pointer || tn_device_is_in_bad_fork()) return;
  tn_segment_t* segment = tn_segment_find(pointer);
  if (!segment) bad_pointer(pointer);
  tn_heap_t* heap = segment->heap;
  tn_mutex_lock(&heap->lock);
  tn_block_t* block =
      &segment->blocks[(size_t)((uint8_t*)pointer - segment->base) >> segment->shift];
  if (block->state != TN_BLOCK_LIVE || tn_block_pointer(block) != pointer) bad_pointer(pointer);
  const int pool = segment->pool;
  const size_t size = tn_block_size(block);
  TN_POISON(pointer, size);
  tn_stat_subtract(heap->stats.allocation, pool, 1);
  tn_stat_subtract(heap->stats.allocated_bytes, pool, (int64_t)size);
  tn_stat_subtract(heap->stats.requested_bytes, pool, (int64_t)block->requested);
  --segment->live;
  ++segment->free_blocks;
  segment->free_bytes += size;
  const uint32_t index = pool == TN_SMALL ? tn_class_up(block->granules) : 0;
  if (pool == TN_SMALL && tn_class_units(index) == block->granules) {
    block->state = TN_BLOCK_QUICK;
    block->next = heap->quick[index];
    heap->quick[index] = block;
  } else {
    tn_block_release(block);
  }
  tn_segment_account(segment);
  tn_mutex_unlock(&heap->lock);
}

void tn_heap_count_foreign(int device, size_t size, bool is_freed) {
  tn_heap_t* heap = tn_heap_of(device);
  if (size == 0 || tn_device_is_in_bad_fork()) return;
  if (!heap) {
    tn_status_t status = tn_device_check(device);
    if (!status) status = create_heap(device, &heap);
    tn_status_free(status);
    if (!heap) return;
  }
  const int pool = size < TN_SMALL_LIMIT ? TN_SMALL : TN_LARGE;
  const int64_t bytes = (int64_t)size;
  tn_heap_stats_t* stats = &heap->stats;
  tn_stat_t* const sizes[] = {stats->allocated_bytes, stats->requested_bytes,
                              stats->reserved_bytes};
  tn_mutex_lock(&heap->lock);
  if (is_freed) tn_stat_subtract(stats->allocation, pool, 1);
  else tn_stat_add(stats->allocation, pool, 1);
  for (int i = 0; i < 3; ++i)
    if (is_freed) tn_stat_subtract(sizes[i], pool, bytes);
    else tn_stat_add(sizes[i], pool, bytes);
  for (int i = 0; i <= pool; i += pool) {
    heap->foreign[i] += is_freed ? -1 : 1;
    heap->foreign_bytes[i] += is_freed ? -bytes : bytes;
  }
  tn_mutex_unlock(&heap->lock);
}

void tn_heap_record_stream(void* pointer, int64_t stream) {
  (void)
      pointer;  // the work queued so far has run, so the block may be reused as soon as it is freed
  (void)stream;
}

void tn_heap_trim(int device) {
  tn_heap_t* heap = tn_heap_of(device);
  if (!heap || tn_device_is_in_bad_fork()) return;
  tn_mutex_lock(&heap->lock);
  trim(heap);
  tn_mutex_unlock(&heap->lock);
}

void tn_heap_set_limit(int device, size_t bytes) {
  tn_heap_t* heap = tn_heap_of(device);
  if (!heap) {
    tn_status_t status = tn_device_check(device);
    if (!status) status = create_heap(device, &heap);
    tn_status_free(status);  // a device that does not exist has no limit either
    if (!heap) return;
  }
  tn_mutex_lock(&heap->lock);
  heap->limit = bytes;
  tn_mutex_unlock(&heap->lock);
}

bool tn_heap_find(const void* pointer, void** out_base, size_t* out_size, int* out_device) {
  *out_base = NULL;
  *out_size = 0;
  *out_device = -1;
  tn_segment_t* segment = tn_segment_find(pointer);
  if (!segment || tn_device_is_in_bad_fork()) return false;
  tn_heap_t* heap = segment->heap;
  tn_mutex_lock(&heap->lock);
  bool found = false;
  if (tn_segment_find(pointer) == segment) {  // it may have been given back meanwhile
    const size_t granule = (size_t)((const uint8_t*)pointer - segment->base) >> segment->shift;
    size_t word = granule / 64;
    uint64_t bits = segment->starts[word] & (~UINT64_C(0) >> (63 - granule % 64));
    while (!bits) bits = segment->starts[--word];  // granule 0 always starts a block
    const tn_block_t* block = &segment->blocks[word * 64 + 63 - (size_t)__builtin_clzll(bits)];
    uint8_t* base = tn_block_pointer(block);
    if (block->state == TN_BLOCK_LIVE &&
        (size_t)((const uint8_t*)pointer - base) < block->requested) {
      found = true;
      *out_base = base;
      *out_size = block->requested;
      *out_device = heap->device;
    }
  }
  tn_mutex_unlock(&heap->lock);
  return found;
}

tn_status_t tn_heap_export(const void* pointer, int* out_fd, int64_t* out_offset) {
  *out_fd = -1;
  *out_offset = 0;
  void* base;
  size_t size;
  int device;
  if (!tn_heap_find(pointer, &base, &size, &device))
    return TN_ERROR(TN_NOT_FOUND, "%p is in no live block of a device heap", pointer);
  const tn_segment_t* segment = tn_segment_find(pointer);
  *out_fd = segment->heap->fd;
  *out_offset = segment->file_offset + ((const uint8_t*)pointer - segment->base);
  return TN_OK;
}
