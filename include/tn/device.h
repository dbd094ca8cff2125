// Devices of the software NeuronCore: memory, streams, events.
//
// A process has tn_device_count() cores; they share the host's memory, so device pointers are host pointers.
// All functions are thread-safe.
#ifndef TN_DEVICE_H_
#define TN_DEVICE_H_

#include <stddef.h>
#include <stdint.h>

#include "tn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Number of cores (TORCH_NEURONX_NUM_DEVICES, default 4). Starts nothing, never fails: safe before fork.
int tn_device_count(void);
// True once memory, a stream or a kernel of a device has been used in this process.
bool tn_device_is_initialized(void);
// True in a child forked after the runtime was initialised: every use then fails with FAILED_PRECONDITION.
bool tn_device_is_in_bad_fork(void);
// FAILED_PRECONDITION with the documented text in a bad fork; else marks the runtime as initialised.
tn_status_t tn_device_check(int device);

// ---- memory ----------------------------------------------------------------------------------------------
// |size| bytes, 64-aligned, contents undefined; size 0 gives NULL. Blocks come from size classes of big memfd-backed
// segments; freed blocks are kept until tn_heap_trim. RESOURCE_EXHAUSTED: message starts
// "Neuron OOM: requested_size=" and lists the largest live blocks.
tn_status_t tn_heap_allocate(int device, size_t size, int64_t stream, void** out_pointer);
void tn_heap_free(void* pointer);  // NULL is allowed; any thread
// Counts memory of others that holds tensors of a device (results of CPU kernels, taken over without a copy) in the
// statistics: as an allocation, and as reserved. The limit does not bound it.
void tn_heap_count_foreign(int device, size_t size, bool is_freed);
// Defers reuse of the block until work queued so far on |stream| has passed.
void tn_heap_record_stream(void* pointer, int64_t stream);
// Gives unused segments back to the system.
void tn_heap_trim(int device);
// Base address, size and device of the live block that contains |pointer|; false if none does.
bool tn_heap_find(const void* pointer, void** out_base, size_t* out_size, int* out_device);

typedef struct tn_stat {
  int64_t current, peak, allocated, freed;
} tn_stat_t;
// Pools: [0] all, [1] small (< 1 MiB), [2] large.
typedef struct tn_heap_stats {
  tn_stat_t allocation[3], segment[3], active[3], inactive_split[3];
  tn_stat_t allocated_bytes[3], reserved_bytes[3], active_bytes[3], inactive_split_bytes[3],
      requested_bytes[3];
  int64_t alloc_retries, ooms, device_allocs, device_frees;
} tn_heap_stats_t;
void tn_heap_stats(int device, tn_heap_stats_t* out_stats);
void tn_heap_reset_peak(int device);
void tn_heap_reset_accumulated(int device);
// Free and total bytes of a core: 24 GiB, or the host's or the container's share if smaller.
void tn_heap_info(int device, size_t* out_free, size_t* out_total);
// Limits a core's memory to |bytes| (0: no limit of ours); for tests and per-process fractions.
void tn_heap_set_limit(int device, size_t bytes);

// ---- streams and events --------------------------------------------------------------------------------------
// A stream is an in-order queue named by an id; 0 is a device's default stream. Work runs on the caller's thread when
// it is submitted to an idle stream, which today is always: when a launch returns, it has run.
tn_status_t tn_stream_create(int device, int priority, int64_t* out_stream);
bool tn_stream_is_valid(int device, int64_t stream);
tn_status_t tn_stream_synchronize(int device, int64_t stream);
bool tn_stream_query(int device, int64_t stream);
tn_status_t tn_device_synchronize(int device);

typedef struct tn_event tn_event_t;
tn_status_t tn_event_create(int device, bool has_timing, tn_event_t** out_event);
void tn_event_destroy(tn_event_t* event);
tn_status_t tn_event_record(tn_event_t* event, int64_t stream);
tn_status_t tn_event_wait(tn_event_t* event,
                          int64_t stream);     // later work of |stream| runs after the event
bool tn_event_query(const tn_event_t* event);  // true if never recorded
tn_status_t tn_event_synchronize(tn_event_t* event);
// Milliseconds between two recorded events with timing. FAILED_PRECONDITION otherwise.
tn_status_t tn_event_elapsed(const tn_event_t* start, const tn_event_t* end, double* out_ms);

// The pool on which kernels of all cores run, and its size. Default: the CPUs of the affinity mask.
struct tn_pool;
struct tn_pool* tn_device_pool(void);
int tn_device_thread_count(void);
tn_status_t tn_device_set_thread_count(int count);

#ifdef __cplusplus
}
#endif
#endif  // TN_DEVICE_H_
