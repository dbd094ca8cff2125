// Streams and events. Work runs on the thread that submits it before the launch returns, so a stream has nothing
// pending: an event is over when it is recorded, and waiting means checking the arguments.
#include <stdatomic.h>
#include <stdlib.h>

#include "base/os.h"
#include "runtime/device.h"

// A stream id is serial << 16 | priority << 8 | device, with serials from 1; 0 is every device's default stream.
enum { SERIAL_SHIFT = 16, PRIORITY_SHIFT = 8, DEVICE_MASK = 0xFF };
_Static_assert(TN_DEVICE_LIMIT <= DEVICE_MASK + 1, "a device number fits its field");
static _Atomic int64_t created[TN_DEVICE_LIMIT];  // serials handed out per device

tn_status_t tn_stream_create(int device, int priority, int64_t* out_stream) {
  *out_stream = 0;
  TN_TRY(tn_device_check(device));
  // As with other devices, a priority out of range is the nearest one; lower numbers are more urgent.
  const int64_t urgency = priority < -3 ? 3 : priority > 0 ? 0 : -priority;
  const int64_t serial = atomic_fetch_add_explicit(&created[device], 1, memory_order_relaxed) + 1;
  *out_stream = serial << SERIAL_SHIFT | urgency << PRIORITY_SHIFT | device;
  return TN_OK;
}

bool tn_stream_is_valid(int device, int64_t stream) {
  if (device < 0 || device >= tn_device_count() || stream < 0) return false;
  if (stream == 0) return true;
  const int64_t serial = stream >> SERIAL_SHIFT;
  return (stream & DEVICE_MASK) == device && (stream >> PRIORITY_SHIFT & 0xFF) <= 3 &&
         serial >= 1 && serial <= atomic_load_explicit(&created[device], memory_order_relaxed);
}

static tn_status_t check_stream(int device, int64_t stream) {
  TN_TRY(tn_device_check(device));
  if (tn_stream_is_valid(device, stream)) return TN_OK;
  return TN_ERROR(TN_INVALID_ARGUMENT, "stream %lld is not a stream of device %d",
                  (long long)stream, device);
}

tn_status_t tn_stream_synchronize(int device, int64_t stream) {
  return check_stream(device, stream);
}
bool tn_stream_query(int device, int64_t stream) {
  (void)device;
  (void)stream;
  return true;
}
tn_status_t tn_device_synchronize(int device) { return tn_device_check(device); }

// ---- events ------------------------------------------------------------------------------------------------------

struct tn_event {
  int device;
  bool has_timing;
  _Atomic int64_t time_ns;  // 0: never recorded
};

tn_status_t tn_event_create(int device, bool has_timing, tn_event_t** out_event) {
  *out_event = NULL;
  TN_TRY(tn_device_check(device));
  tn_event_t* event = calloc(1, sizeof(*event));
  if (!event) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "event: no host memory");
  event->device = device;
  event->has_timing = has_timing;
  *out_event = event;
  return TN_OK;
}

void tn_event_destroy(tn_event_t* event) { free(event); }

// A stream of an event: the default stream, or a stream of any device.
static tn_status_t check_any_stream(const tn_event_t* event, int64_t stream) {
  const int device = stream > 0 ? (int)(stream & DEVICE_MASK) : event->device;
  return check_stream(device, stream);
}

tn_status_t tn_event_record(tn_event_t* event, int64_t stream) {
  TN_TRY(check_any_stream(event, stream));
  atomic_store_explicit(&event->time_ns, tn_os_now_ns(), memory_order_release);
  return TN_OK;
}

tn_status_t tn_event_wait(tn_event_t* event, int64_t stream) {
  return check_any_stream(event, stream);
}

bool tn_event_query(const tn_event_t* event) {
  (void)event;
  return true;
}

tn_status_t tn_event_synchronize(tn_event_t* event) { return tn_device_check(event->device); }

tn_status_t tn_event_elapsed(const tn_event_t* start, const tn_event_t* end, double* out_ms) {
  *out_ms = 0;
  if (!start->has_timing || !end->has_timing)
    return TN_ERROR(TN_FAILED_PRECONDITION, "Event was not created with timing enabled");
  const int64_t first = atomic_load_explicit(&start->time_ns, memory_order_acquire);
  const int64_t last = atomic_load_explicit(&end->time_ns, memory_order_acquire);
  if (first == 0 || last == 0)
    return TN_ERROR(TN_FAILED_PRECONDITION,
                    "Both events must be recorded before calculating elapsed time.");
  *out_ms = (double)(last - first) * 1e-6;
  return TN_OK;
}
