// Mirrors src/runtime/heap*.c.
#include "tests/c/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "runtime/heap.h"

static uint64_t next_random(uint64_t* state) {  // xorshift
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

// Sizes of all magnitudes: small ones often, 32 MiB sometimes.
static size_t random_size(uint64_t* state) {
  const int bits = (int)(next_random(state) % 26);
  const size_t mask = ((size_t)1 << bits) - 1;
  return 1 + (next_random(state) & mask);
}

static tn_heap_stats_t stats_of(int device) {
  tn_heap_stats_t stats;
  tn_heap_stats(device, &stats);
  return stats;
}

#if !defined(__SANITIZE_THREAD__)  // forking with threads around is not the sanitizer's strength
static int child_status(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// First in this file: the child must be the first user of the runtime.
TN_TEST(a_wrong_free_stops_the_process) {
  TN_EXPECT(!tn_device_is_initialized());
  for (int kind = 0; kind < 3; ++kind) {
    const pid_t child = fork();
    if (child == 0) {
      void* pointer = NULL;
      close(STDERR_FILENO);
      tn_status_t status = tn_heap_allocate(0, 1000, 0, &pointer);
      if (status) _exit(1);
      if (kind == 0) tn_heap_free((uint8_t*)pointer + 256);
      if (kind == 1) tn_heap_free(&pointer);
      tn_heap_free(pointer);
      if (kind == 2) tn_heap_free(pointer);
      _exit(2);
    }
    const int status = child_status(child);
    TN_EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  }
}
#endif

TN_TEST(classes_are_tight_and_ordered) {
  for (uint64_t units = 1; units < 70000; ++units) {
    const uint32_t up = tn_class_up(units), down = tn_class_down(units);
    TN_EXPECT(tn_class_units(up) >= units && tn_class_units(down) <= units);
    TN_EXPECT(up == 0 || tn_class_units(up - 1) < units);
    TN_EXPECT(tn_class_units(down + 1) > units);
    TN_EXPECT(tn_class_units(up) * 8 < units * 9 + 8);  // at most one part in eight is lost
  }
  TN_EXPECT(tn_class_up((size_t)TN_SMALL_LIMIT >> 8) == TN_QUICK_BINS - 1);
  TN_EXPECT(tn_class_down(TN_LARGEST_REQUEST >> 8) < TN_HEAP_BINS);
}

typedef struct model_block {
  uint8_t* pointer;
  size_t size;
  uint8_t mark;
} model_block_t;

// Marks the ends and the middle, which is where a wrong neighbour would write.
static void mark(const model_block_t* block) {
  block->pointer[0] = block->pointer[block->size / 2] = block->pointer[block->size - 1] =
      block->mark;
}
static bool is_marked(const model_block_t* block) {
  return block->pointer[0] == block->mark && block->pointer[block->size / 2] == block->mark &&
         block->pointer[block->size - 1] == block->mark;
}

TN_TEST(random_use_agrees_with_a_model) {
  enum { SLOTS = 600, STEPS = 30000 };
  static model_block_t slots[SLOTS];
  uint64_t state = 88172645463325252u;
  int64_t live = 0, requested = 0, allocations = 0;
  for (int step = 0; step < STEPS; ++step) {
    model_block_t* slot = &slots[next_random(&state) % SLOTS];
    if (slot->pointer) {
      TN_EXPECT(is_marked(slot));
      void* base;
      size_t size;
      int device;
      const size_t inside = next_random(&state) % slot->size;
      TN_EXPECT(tn_heap_find(slot->pointer + inside, &base, &size, &device));
      TN_EXPECT(base == slot->pointer && size == slot->size && device == 1);
      --live;
      requested -= (int64_t)slot->size;
      tn_heap_free(slot->pointer);
      TN_EXPECT(!tn_heap_find(slot->pointer, &base, &size, &device) && base == NULL);
      slot->pointer = NULL;
    } else {
      slot->size = random_size(&state);
      slot->mark = (uint8_t)step;
      void* pointer;
      TN_EXPECT_OK(tn_heap_allocate(1, slot->size, 0, &pointer));
      slot->pointer = pointer;
      if (!pointer) return;
      TN_EXPECT(((uintptr_t)pointer & 63) == 0);
      mark(slot);
      ++live;
      ++allocations;
      requested += (int64_t)slot->size;
    }
    if (step % 2000 == 0) TN_EXPECT(tn_heap_is_consistent(1));
    if (step % 7000 == 6999) {
      tn_heap_trim(1);
      TN_EXPECT(tn_heap_is_consistent(1));
    }
  }
  const tn_heap_stats_t stats = stats_of(1);
  TN_EXPECT_EQ(live, stats.allocation[0].current);
  TN_EXPECT_EQ(allocations, stats.allocation[0].allocated);
  TN_EXPECT_EQ(allocations - live, stats.allocation[0].freed);
  TN_EXPECT_EQ(requested, stats.requested_bytes[0].current);
  TN_EXPECT_EQ(stats.allocated_bytes[0].current, stats.active_bytes[0].current);
  for (int i = 0; i < 3; ++i) {
    TN_EXPECT(stats.reserved_bytes[i].current >= stats.allocated_bytes[i].current);
    TN_EXPECT(stats.allocated_bytes[i].current >= stats.requested_bytes[i].current);
    TN_EXPECT(stats.allocated_bytes[i].peak >= stats.allocated_bytes[i].current);
  }
  TN_EXPECT_EQ(stats.allocation[0].current,
               stats.allocation[1].current + stats.allocation[2].current);
  for (int i = 0; i < SLOTS; ++i) {
    tn_heap_free(slots[i].pointer);
    slots[i].pointer = NULL;
  }
  TN_EXPECT(tn_heap_is_consistent(1));
  tn_heap_trim(1);
  const tn_heap_stats_t after = stats_of(1);
  TN_EXPECT_EQ(0, after.allocated_bytes[0].current);
  TN_EXPECT_EQ(0, after.reserved_bytes[0].current);
  TN_EXPECT_EQ(0, after.inactive_split_bytes[0].current);
  TN_EXPECT_EQ(after.device_allocs, after.device_frees);
  tn_heap_reset_peak(1);
  tn_heap_reset_accumulated(1);
  TN_EXPECT_EQ(0, stats_of(1).allocated_bytes[0].peak);
  TN_EXPECT_EQ(0, stats_of(1).allocation[0].allocated);
}

TN_TEST(nothing_is_allocated_for_size_zero) {
  const int64_t before = stats_of(0).allocation[0].current;
  void* pointer = &pointer;
  TN_EXPECT_OK(tn_heap_allocate(0, 0, 0, &pointer));
  TN_EXPECT(pointer == NULL);
  tn_heap_free(NULL);
  TN_EXPECT_EQ(before, stats_of(0).allocation[0].current);
}

TN_TEST(pools_split_at_one_mebibyte) {
  void *small, *large;
  TN_EXPECT_OK(tn_heap_allocate(2, ((size_t)1 << 20) - 1, 0, &small));
  TN_EXPECT_OK(tn_heap_allocate(2, (size_t)1 << 20, 0, &large));
  const tn_heap_stats_t stats = stats_of(2);
  TN_EXPECT_EQ(1, stats.allocation[1].current);
  TN_EXPECT_EQ(1, stats.allocation[2].current);
  TN_EXPECT_EQ(1 << 20, stats.allocated_bytes[1].current);
  TN_EXPECT_EQ(1 << 20, stats.allocated_bytes[2].current);
  TN_EXPECT_EQ(2 << 20, stats.reserved_bytes[1].current);
  TN_EXPECT_EQ(1 << 20, stats.inactive_split_bytes[1].current);
  tn_heap_free(small);
  tn_heap_free(large);
  TN_EXPECT_EQ(
      0, stats_of(2).inactive_split_bytes[0].current);  // free segments can be given back whole
  void* again;
  TN_EXPECT_OK(tn_heap_allocate(2, 1000000, 0, &again));
  TN_EXPECT(again == small);
  tn_heap_free(again);
  tn_heap_trim(2);
}

TN_TEST(a_full_heap_says_what_fills_it) {
  enum { MIB = 1 << 20 };
  tn_heap_set_limit(3, 64 * MIB);
  size_t free_bytes, total;
  tn_heap_info(3, &free_bytes, &total);
  TN_EXPECT_EQ(64 * MIB, total);
  TN_EXPECT_EQ(64 * MIB, free_bytes);
  void *kept[3], *pointer;
  for (int i = 0; i < 3; ++i) TN_EXPECT_OK(tn_heap_allocate(3, 16 * MIB, 0, &kept[i]));
  // 16 MiB are left, and a cached small segment has to be given back for them.
  TN_EXPECT_OK(tn_heap_allocate(3, 100, 0, &pointer));
  tn_heap_free(pointer);
  const int64_t retries = stats_of(3).alloc_retries;
  TN_EXPECT_OK(tn_heap_allocate(3, 16 * MIB, 0, &pointer));
  TN_EXPECT_EQ(retries + 1, stats_of(3).alloc_retries);
  TN_EXPECT_EQ(0, stats_of(3).ooms);
  tn_heap_info(3, &free_bytes, &total);
  TN_EXPECT_EQ(0, free_bytes);
  void* none = &none;
  tn_status_t status = tn_heap_allocate(3, 5000000, 0, &none);
  TN_EXPECT(none == NULL);
  TN_EXPECT_EQ(TN_RESOURCE_EXHAUSTED, tn_status_code(status));
  const char* message = tn_status_message(status);
  TN_EXPECT(
      strncmp(message,
              "Neuron OOM: requested_size=5000000 total_hbm=67108864 allocated=67108864 free=0",
              79) == 0);
  TN_EXPECT(strstr(message, "neuron:3") && strstr(message, "16777216 x4"));
  tn_status_free(status);
  TN_EXPECT_EQ(1, stats_of(3).ooms);
  TN_EXPECT_CODE(TN_RESOURCE_EXHAUSTED, tn_heap_allocate(3, SIZE_MAX, 0, &none));
  TN_EXPECT_CODE(TN_RESOURCE_EXHAUSTED, tn_heap_allocate(3, SIZE_MAX / 2, 0, &none));
  TN_EXPECT(tn_heap_is_consistent(3));
  for (int i = 0; i < 3; ++i) tn_heap_free(kept[i]);
  tn_heap_free(pointer);
  tn_heap_trim(3);
  tn_heap_set_limit(3, 300);
  TN_EXPECT_OK(tn_heap_allocate(3, 200, 0, &pointer));  // a segment as small as the limit
  TN_EXPECT_CODE(TN_RESOURCE_EXHAUSTED, tn_heap_allocate(3, 200, 0, &none));
  tn_heap_free(pointer);
  tn_heap_set_limit(3, 0);
  tn_heap_trim(3);
  TN_EXPECT_OK(tn_heap_allocate(3, 100 * MIB, 0, &pointer));
  tn_heap_free(pointer);
  tn_heap_trim(3);
}

TN_TEST(failed_mappings_leave_the_heap_as_it_was) {
  tn_heap_trim(0);
  for (int failures = 1; failures < 8; ++failures) {
    const tn_heap_stats_t before = stats_of(0);
    tn_segment_fail_next(failures);
    void* pointer;
    tn_status_t status = tn_heap_allocate(0, (size_t)3 << 20, 0, &pointer);
    tn_segment_fail_next(0);
    TN_EXPECT_EQ(status ? TN_RESOURCE_EXHAUSTED : TN_SUCCESS, tn_status_code(status));
    TN_EXPECT((pointer == NULL) == (status != TN_OK));
    tn_status_free(status);
    TN_EXPECT(tn_heap_is_consistent(0));
    tn_heap_free(pointer);
    tn_heap_trim(0);
    const tn_heap_stats_t after = stats_of(0);
    TN_EXPECT_EQ(before.reserved_bytes[0].current, after.reserved_bytes[0].current);
    TN_EXPECT_EQ(before.allocated_bytes[0].current, after.allocated_bytes[0].current);
  }
}

TN_TEST(wrong_devices_are_named) {
  void* pointer;
  TN_EXPECT_CODE(TN_OUT_OF_RANGE, tn_heap_allocate(-1, 16, 0, &pointer));
  TN_EXPECT_CODE(TN_OUT_OF_RANGE, tn_heap_allocate(tn_device_count(), 16, 0, &pointer));
  TN_EXPECT_EQ(0, stats_of(-1).allocation[0].current);
  TN_EXPECT_EQ(0, stats_of(1 << 20).allocation[0].current);
  tn_heap_trim(-5);
  tn_heap_set_limit(-5, 1);
}

TN_TEST(foreign_pointers_are_not_found) {
  int local = 0;
  void* base;
  size_t size;
  int device;
  TN_EXPECT(!tn_heap_find(&local, &base, &size, &device));
  TN_EXPECT(!tn_heap_find(NULL, &base, &size, &device));
  TN_EXPECT(!tn_heap_find((void*)UINTPTR_MAX, &base, &size, &device));
}

TN_TEST(memory_is_shared_through_the_exported_file) {
  uint8_t* pointer;
  void* allocated;
  TN_EXPECT_OK(tn_heap_allocate(0, 5000, 0, &allocated));
  pointer = allocated;
  int fd;
  int64_t offset;
  TN_EXPECT_OK(tn_heap_export(pointer + 4000, &fd, &offset));
  pointer[4000] = 77;
  uint8_t byte = 0;
  TN_EXPECT_EQ(1, pread(fd, &byte, 1, offset));
  TN_EXPECT_EQ(77, byte);
  tn_heap_free(pointer);
  TN_EXPECT_CODE(TN_NOT_FOUND, tn_heap_export(pointer, &fd, &offset));
}

// ---- threads -----------------------------------------------------------------------------------------------------

enum { THREADS = 4, MAILBOX = 64 };
static _Atomic(uint64_t*) mailbox[MAILBOX];  // blocks that another thread frees

static void* churn(void* argument) {
  uint64_t state = 1234567 + (uint64_t)(uintptr_t)argument * 7919;
  for (int i = 0; i < 4000; ++i) {
    void* pointer;
    const size_t size = 8 + (next_random(&state) & 0x3FFF);
    tn_status_t status = tn_heap_allocate((int)(state % 2), size, 0, &pointer);
    if (status) return tn_status_free(status), (void*)1;
    uint64_t* words = pointer;
    words[0] = (uint64_t)(uintptr_t)pointer;
    uint64_t* other = atomic_exchange(&mailbox[next_random(&state) % MAILBOX], words);
    if (!other) continue;
    if (other[0] != (uint64_t)(uintptr_t)other) return (void*)2;
    void* base;
    size_t found;
    int device;
    if (!tn_heap_find(other, &base, &found, &device) || base != other) return (void*)3;
    tn_heap_free(other);
    if (i % 1000 == 0) tn_heap_trim(device);
  }
  return NULL;
}

TN_TEST(threads_exchange_blocks) {
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, churn, (void*)i);
  for (int i = 0; i < THREADS; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    TN_EXPECT_EQ(0, (intptr_t)result);
  }
  for (int i = 0; i < MAILBOX; ++i) tn_heap_free(atomic_exchange(&mailbox[i], NULL));
  for (int device = 0; device < 2; ++device) {
    TN_EXPECT(tn_heap_is_consistent(device));
    TN_EXPECT_EQ(0, stats_of(device).allocation[0].current);
  }
}

#if !defined(__SANITIZE_THREAD__)
TN_TEST(a_forked_child_is_told_to_spawn) {
  void* pointer;
  TN_EXPECT_OK(tn_heap_allocate(0, 100, 0, &pointer));
  const pid_t child = fork();
  if (child == 0) {
    void* none;
    tn_status_t status = tn_heap_allocate(0, 100, 0, &none);
    const bool told = tn_status_code(status) == TN_FAILED_PRECONDITION &&
                      strstr(tn_status_message(status),
                             "Cannot re-initialize Neuron runtime in forked subprocess");
    tn_heap_free(pointer);  // an inherited tensor goes out of scope
    _exit(told && tn_device_is_in_bad_fork() && tn_device_count() > 0 && !tn_device_is_initialized()
              ? 0
              : 1);
  }
  TN_EXPECT_EQ(0, child_status(child));
  TN_EXPECT(!tn_device_is_in_bad_fork());
  tn_heap_free(pointer);
}
#endif

// ---- speed: printed, not judged --------------------------------------------------------------------------------

TN_TEST(speed) {
  static const size_t sizes[] = {64, 4096, 262144, (size_t)4 << 20, (size_t)64 << 20};
  for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
    int64_t best = INT64_MAX;
    for (int round = 0; round < 5; ++round) {
      const int64_t start = tn_os_now_ns();
      for (int i = 0; i < 2000; ++i) {
        void* pointer = NULL;
        tn_status_free(tn_heap_allocate(0, sizes[s], 0, &pointer));
        tn_heap_free(pointer);
      }
      const int64_t time = tn_os_now_ns() - start;
      if (time < best) best = time;
    }
    printf("allocate and free %9zu bytes: %6.1f ns\n", sizes[s], (double)best / 2000);
  }
}
