// Inside of the device heaps (heap.c, heap_block.c, heap_segment.c, heap_stats.c).
//
// A heap is a list of segments: aligned ranges of one memfd. A segment is cut into blocks; a block's descriptor lives
// outside the memory it describes, at the index of its first granule, so that a kernel which writes out of bounds
// cannot break the heap, and a pointer finds its descriptor by two loads. Free blocks are in bins by size; neighbours
// are merged. Freed small blocks first go to a per-class list that is not merged: the next allocation of the class
// takes them back in a few nanoseconds.
#ifndef TN_RUNTIME_HEAP_H_
#define TN_RUNTIME_HEAP_H_

#include "base/mutex.h"
#include "runtime/device.h"

enum {
  TN_SMALL = 1,  // pool numbers, as in tn_heap_stats_t
  TN_LARGE = 2,
  TN_SMALL_SHIFT = 8,   // granule of small segments: 256 bytes, the smallest block
  TN_LARGE_SHIFT = 16,  // granule of large segments
  TN_CHUNK_SHIFT = 21,  // segments start at multiples of 2 MiB
  TN_HEAP_BINS = 256,   // size classes up to 2^41 bytes
  TN_QUICK_BINS = 80,   // classes of the small pool
};
#define TN_SMALL_LIMIT     ((size_t)1 << 20)   // requests below this are small
#define TN_CLASS_LIMIT     ((size_t)16 << 20)  // requests below this are rounded to a size class
#define TN_LARGEST_REQUEST ((size_t)1 << 40)
#define TN_SMALL_SEGMENT   ((size_t)2 << 20)
#define TN_LARGE_SEGMENT   ((size_t)32 << 20)  // shared by requests below TN_CLASS_LIMIT

typedef struct tn_heap tn_heap_t;
typedef struct tn_segment tn_segment_t;

typedef enum tn_block_state {
  TN_BLOCK_NONE = 0,  // not the first granule of a block
  TN_BLOCK_LIVE,
  TN_BLOCK_FREE,   // in a bin
  TN_BLOCK_QUICK,  // in a list of its class, not merged
} tn_block_state_t;

typedef struct tn_block {
  uint32_t granules;           // size
  uint32_t previous_granules;  // size of the block before it in the segment; 0 if it is the first
  uint32_t state;
  uint32_t bin;  // of its list
  tn_segment_t* segment;
  struct tn_block *next, *previous;  // list of a bin; a quick list uses |next| only
  size_t requested;                  // bytes asked for, of a live block
} tn_block_t;

struct tn_segment {
  uint8_t* base;
  size_t size;
  int64_t file_offset;  // of |base| in the heap's memfd
  tn_heap_t* heap;
  int pool, shift;
  uint32_t granules, live, free_blocks;
  size_t free_bytes;
  int64_t inactive_blocks, inactive_bytes;  // as counted in the statistics
  tn_block_t* blocks;                       // by granule
  uint64_t* starts;                         // bit per granule that starts a block
  tn_segment_t *next, *previous;
};

struct tn_heap {
  tn_mutex_t lock;  // of everything below
  int device, fd;
  int64_t file_size;  // the file only grows: given back ranges are holes
  size_t limit;       // 0: none of ours
  size_t reserved;    // bytes of all segments
  tn_segment_t* segments;
  tn_segment_t* spare_segments;  // unmapped descriptors; never freed, see tn_segment_find
  tn_block_t* quick[TN_QUICK_BINS];
  tn_block_t* bins[3][TN_HEAP_BINS];
  uint64_t bin_bits[3][TN_HEAP_BINS / 64];
  int64_t foreign[3], foreign_bytes[3];  // part of |stats| that is no block of ours, by pool
  tn_heap_stats_t stats;                 // "active" is a copy of "allocation", made when read
};

// ---- size classes: 256-byte steps up to 2 KiB, then eight per doubling ------------------------------------

// Smallest class whose size is at least |units| * 256 bytes, |units| >= 1.
static inline uint32_t tn_class_up(uint64_t units) {
  const uint64_t m = units - 1;
  if (m < 8) return (uint32_t)m;
  const uint32_t k = 63 - (uint32_t)__builtin_clzll(m);
  return 8 + (k - 3) * 8 + (uint32_t)(m >> (k - 3) & 7);
}
// Largest class whose size is at most |units| * 256 bytes.
static inline uint32_t tn_class_down(uint64_t units) { return tn_class_up(units + 1) - 1; }
// Size of a class in units of 256 bytes.
static inline uint64_t tn_class_units(uint32_t index) {
  if (index < 8) return index + 1;
  const uint32_t k = (index - 8) / 8, step = (index - 8) % 8;
  return (uint64_t)(9 + step) << k;
}

static inline size_t tn_block_size(const tn_block_t* block) {
  return (size_t)block->granules << block->segment->shift;
}
static inline uint8_t* tn_block_pointer(const tn_block_t* block) {
  const tn_segment_t* segment = block->segment;
  return segment->base + ((size_t)(block - segment->blocks) << segment->shift);
}

// ---- heap_segment.c ----------------------------------------------------------------------------------------

// Segment that contains |pointer|, or NULL. Takes no lock: descriptors stay readable for ever, but the answer is only
// stable for a pointer into a live block, or under the heap's lock.
tn_segment_t* tn_segment_find(const void* pointer);
// Maps a segment with one free block in no list. RESOURCE_EXHAUSTED beyond the limits or if the system refuses.
tn_status_t tn_segment_create(tn_heap_t* heap, int pool, size_t size, tn_segment_t** out_segment);
void tn_segment_destroy(tn_segment_t* segment);
// Bytes that all heaps together may reserve, and have.
size_t tn_heap_host_limit(void);
size_t tn_heap_host_reserved(void);
// For tests: the next |count| creations fail as if the system had no memory.
void tn_segment_fail_next(int count);

// ---- heap_block.c --------------------------------------------------------------------------------------------

// Takes a block of at least |size| bytes (a multiple of 256) from the bins; NULL if there is none.
tn_block_t* tn_block_take(tn_heap_t* heap, int pool, size_t size);
// Puts a block in no list into its bin after merging it with free neighbours.
void tn_block_release(tn_block_t* block);
// Puts the free block of a new segment into its bin.
void tn_block_insert(tn_block_t* block);
void tn_block_remove(tn_block_t* block);
// Merges all blocks of the quick lists.
void tn_heap_flush(tn_heap_t* heap);
// Checks every invariant of the structure; false and a log line if one is broken. For tests.
bool tn_heap_is_consistent(int device);

// ---- heap_stats.c --------------------------------------------------------------------------------------------

static inline void tn_stat_add(tn_stat_t* stats, int pool, int64_t amount) {
  for (int i = 0; i <= pool; i += pool) {
    tn_stat_t* stat = &stats[i];
    stat->current += amount;
    stat->allocated += amount;
    if (stat->current > stat->peak) stat->peak = stat->current;
  }
}
static inline void tn_stat_subtract(tn_stat_t* stats, int pool, int64_t amount) {
  for (int i = 0; i <= pool; i += pool) {
    stats[i].current -= amount;
    stats[i].freed += amount;
  }
}

static inline void tn_stat_move(tn_stat_t* stats, int pool, int64_t from, int64_t to) {
  if (to > from) tn_stat_add(stats, pool, to - from);
  else if (to < from) tn_stat_subtract(stats, pool, from - to);
}

// Brings inactive_split up to date: free blocks and bytes of segments that also have live ones, which is what a trim
// cannot give back. To be called after every change of a segment.
static inline void tn_segment_account(tn_segment_t* segment) {
  const int64_t blocks = segment->live ? segment->free_blocks : 0;
  const int64_t bytes = segment->live ? (int64_t)segment->free_bytes : 0;
  tn_heap_stats_t* stats = &segment->heap->stats;
  tn_stat_move(stats->inactive_split, segment->pool, segment->inactive_blocks, blocks);
  tn_stat_move(stats->inactive_split_bytes, segment->pool, segment->inactive_bytes, bytes);
  segment->inactive_blocks = blocks;
  segment->inactive_bytes = bytes;
}

// The error of a request that does not fit. Under the heap's lock.
tn_status_t tn_heap_oom(const tn_heap_t* heap, size_t size);
// Bytes this heap may reserve.
size_t tn_heap_capacity(const tn_heap_t* heap);

// ---- heap.c ----------------------------------------------------------------------------------------------------

// Heap of a device, or NULL if the device's memory was never used.
tn_heap_t* tn_heap_of(int device);
// File and offset of a live pointer, for mappings in other processes. NOT_FOUND for other pointers.
tn_status_t tn_heap_export(const void* pointer, int* out_fd, int64_t* out_offset);

#endif  // TN_RUNTIME_HEAP_H_
