#include "base/log.h"
#include "runtime/heap.h"

// ---- bins ----------------------------------------------------------------------------------------------------

static uint32_t bin_of(const tn_block_t* block) {
  return tn_class_down((uint64_t)block->granules << (block->segment->shift - TN_SMALL_SHIFT));
}

void tn_block_insert(tn_block_t* block) {
  tn_segment_t* segment = block->segment;
  tn_heap_t* heap = segment->heap;
  const uint32_t bin = bin_of(block);
  tn_block_t** head = &heap->bins[segment->pool][bin];
  block->state = TN_BLOCK_FREE;
  block->bin = bin;
  block->previous = NULL;
  block->next = *head;
  if (*head) (*head)->previous = block;
  *head = block;
  heap->bin_bits[segment->pool][bin / 64] |= UINT64_C(1) << bin % 64;
}

void tn_block_remove(tn_block_t* block) {
  const int pool = block->segment->pool;
  tn_heap_t* heap = block->segment->heap;
  if (block->next) block->next->previous = block->previous;
  if (block->previous) block->previous->next = block->next;
  else if (!(heap->bins[pool][block->bin] = block->next))
    heap->bin_bits[pool][block->bin / 64] &= ~(UINT64_C(1) << block->bin % 64);
}

// ---- split and merge --------------------------------------------------------------------------------------------

static void set_start(tn_segment_t* segment, const tn_block_t* block, bool is_start) {
  const size_t index = (size_t)(block - segment->blocks);
  const uint64_t bit = UINT64_C(1) << index % 64;
  if (is_start) segment->starts[index / 64] |= bit;
  else segment->starts[index / 64] &= ~bit;
}

// The block after |block|, or NULL at the end of the segment.
static tn_block_t* block_after(const tn_block_t* block) {
  tn_segment_t* segment = block->segment;
  const size_t index = (size_t)(block - segment->blocks) + block->granules;
  return index < segment->granules ? &segment->blocks[index] : NULL;
}

// Keeps |granules| in |block| and makes the rest a free block of its own.
static void split(tn_block_t* block, uint32_t granules) {
  tn_segment_t* segment = block->segment;
  tn_block_t* rest = block + granules;
  *rest = (tn_block_t){
      .granules = block->granules - granules, .previous_granules = granules, .segment = segment};
  block->granules = granules;
  tn_block_t* after = block_after(rest);
  if (after) after->previous_granules = rest->granules;
  set_start(segment, rest, true);
  ++segment->free_blocks;
  tn_block_insert(rest);
}

// Makes |right| a part of |left|; both are in no list.
static void join(tn_block_t* left, tn_block_t* right) {
  tn_segment_t* segment = left->segment;
  left->granules += right->granules;
  tn_block_t* after = block_after(left);
  if (after) after->previous_granules = left->granules;
  set_start(segment, right, false);
  right->state = TN_BLOCK_NONE;
  --segment->free_blocks;
}

void tn_block_release(tn_block_t* block) {
  tn_block_t* after = block_after(block);
  if (after && after->state == TN_BLOCK_FREE) {
    tn_block_remove(after);
    join(block, after);
  }
  if (block->previous_granules) {
    tn_block_t* before = block - block->previous_granules;
    if (before->state == TN_BLOCK_FREE) {
      tn_block_remove(before);
      join(before, block);
      block = before;
    }
  }
  tn_block_insert(block);
}

tn_block_t* tn_block_take(tn_heap_t* heap, int pool, size_t size) {
  const int shift = pool == TN_SMALL ? TN_SMALL_SHIFT : TN_LARGE_SHIFT;
  const uint64_t wanted = (size + ((size_t)1 << shift) - 1) >> shift;
  const uint64_t units = wanted << (shift - TN_SMALL_SHIFT);
  tn_block_t* found = NULL;
  // Blocks of the bin below may just fit; of a longer list only the start is tried.
  const uint32_t below = tn_class_down(units), up = tn_class_up(units);
  if (below < up) {
    int tries = 16;
    for (tn_block_t* block = heap->bins[pool][below]; block && tries-- > 0; block = block->next)
      if (block->granules >= wanted && (!found || block->granules < found->granules)) found = block;
  }
  // Any block of the higher bins fits; the lowest bin fits best.
  for (uint32_t word = up / 64; !found && word < TN_HEAP_BINS / 64; ++word) {
    uint64_t bits = heap->bin_bits[pool][word];
    if (word == up / 64) bits &= ~UINT64_C(0) << up % 64;
    if (bits) found = heap->bins[pool][word * 64 + (uint32_t)__builtin_ctzll(bits)];
  }
  if (!found) return NULL;
  tn_block_remove(found);
  // A rest that serves no request of this pool stays with the block.
  const uint32_t least = pool == TN_SMALL ? 1 : (uint32_t)(TN_SMALL_LIMIT >> TN_LARGE_SHIFT);
  if (found->granules - wanted >= least) split(found, (uint32_t)wanted);
  return found;
}

void tn_heap_flush(tn_heap_t* heap) {
  for (int index = 0; index < TN_QUICK_BINS; ++index) {
    tn_block_t* block = heap->quick[index];
    heap->quick[index] = NULL;
    while (block) {
      tn_block_t* next = block->next;
      tn_segment_t* segment = block->segment;
      tn_block_release(block);
      tn_segment_account(segment);
      block = next;
    }
  }
}

// ---- check -------------------------------------------------------------------------------------------------------

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      tn_log(TN_LOG_WARNING, "heap of device %d: not true: %s", heap->device, #condition); \
      return false;                                                                        \
    }                                                                                      \
  } while (0)

typedef struct totals {
  int64_t live[3], live_bytes[3], requested[3], segments[3], reserved[3], inactive[3],
      inactive_bytes[3];
  int64_t free_blocks, quick_blocks;
} totals_t;

static bool check_segment(const tn_heap_t* heap, const tn_segment_t* segment, totals_t* totals) {
  uint32_t live = 0, free_blocks = 0, previous = 0;
  size_t free_bytes = 0;
  const tn_block_t* before = NULL;
  CHECK(tn_segment_find(segment->base) == segment);
  CHECK(tn_segment_find(segment->base + segment->size - 1) == segment);
  for (const tn_block_t* block = segment->blocks; block;
       before = block, block = block_after(block)) {
    const size_t index = (size_t)(block - segment->blocks);
    CHECK(block->granules > 0 && index + block->granules <= segment->granules);
    CHECK(block->previous_granules == previous);
    CHECK(block->segment == segment);
    for (size_t i = index; i < index + block->granules; ++i)
      CHECK((segment->starts[i / 64] >> i % 64 & 1) == (i == index));
    previous = block->granules;
    if (block->state == TN_BLOCK_LIVE) {
      ++live;
      CHECK(block->requested > 0 && block->requested <= tn_block_size(block));
      for (int i = 0; i <= segment->pool; i += segment->pool) {
        ++totals->live[i];
        totals->live_bytes[i] += (int64_t)tn_block_size(block);
        totals->requested[i] += (int64_t)block->requested;
      }
      continue;
    }
    ++free_blocks;
    free_bytes += tn_block_size(block);
    CHECK(block->state == TN_BLOCK_FREE || block->state == TN_BLOCK_QUICK);
    if (block->state == TN_BLOCK_FREE) {
      CHECK(!before || before->state != TN_BLOCK_FREE);  // neighbours are merged
      CHECK(block->bin == bin_of(block));
      ++totals->free_blocks;
    } else {
      ++totals->quick_blocks;
    }
  }
  CHECK(live == segment->live && free_blocks == segment->free_blocks &&
        free_bytes == segment->free_bytes);
  for (int i = 0; i <= segment->pool; i += segment->pool) {
    ++totals->segments[i];
    totals->reserved[i] += (int64_t)segment->size;
    totals->inactive[i] += live ? free_blocks : 0;
    totals->inactive_bytes[i] += live ? (int64_t)free_bytes : 0;
  }
  return true;
}

static bool check_heap(tn_heap_t* heap) {
  totals_t totals = {0};
  for (const tn_segment_t* segment = heap->segments; segment; segment = segment->next)
    if (!check_segment(heap, segment, &totals)) return false;
  int64_t binned = 0, quick = 0;
  for (int pool = TN_SMALL; pool <= TN_LARGE; ++pool)
    for (uint32_t bin = 0; bin < TN_HEAP_BINS; ++bin) {
      CHECK((heap->bin_bits[pool][bin / 64] >> bin % 64 & 1) == (heap->bins[pool][bin] != NULL));
      for (const tn_block_t* block = heap->bins[pool][bin]; block; block = block->next, ++binned) {
        CHECK(block->state == TN_BLOCK_FREE && block->segment->pool == pool && block->bin == bin);
        CHECK(block->next == NULL || block->next->previous == block);
      }
    }
  for (uint32_t index = 0; index < TN_QUICK_BINS; ++index)
    for (const tn_block_t* block = heap->quick[index]; block; block = block->next, ++quick)
      CHECK(block->state == TN_BLOCK_QUICK && block->granules == tn_class_units(index));
  CHECK(binned == totals.free_blocks && quick == totals.quick_blocks);
  CHECK(heap->reserved == (size_t)totals.reserved[0]);
  const tn_heap_stats_t* stats = &heap->stats;
  for (int pool = 0; pool <= TN_LARGE; ++pool) {
    const int64_t foreign = heap->foreign_bytes[pool];
    CHECK(stats->allocation[pool].current == totals.live[pool] + heap->foreign[pool]);
    CHECK(stats->allocated_bytes[pool].current == totals.live_bytes[pool] + foreign);
    CHECK(stats->requested_bytes[pool].current == totals.requested[pool] + foreign);
    CHECK(stats->segment[pool].current == totals.segments[pool]);
    CHECK(stats->reserved_bytes[pool].current == totals.reserved[pool] + foreign);
    CHECK(stats->inactive_split[pool].current == totals.inactive[pool]);
    CHECK(stats->inactive_split_bytes[pool].current == totals.inactive_bytes[pool]);
  }
  return true;
}

bool tn_heap_is_consistent(int device) {
  tn_heap_t* heap = tn_heap_of(device);
  if (!heap) return true;
  tn_mutex_lock(&heap->lock);
  const bool consistent = check_heap(heap);
  tn_mutex_unlock(&heap->lock);
  return consistent;
}
