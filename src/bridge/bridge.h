// Shared by the bridge's translation units: device state of a thread, status conversion, dtypes.
//
// The bridge is the only place that sees torch headers. It keeps compute code out: kernels come from the core through
// include/tn, or from PyTorch's CPU through fallback.h.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/ScalarType.h>

#include "tn/device.h"
#include "tn/dtype.h"
#include "tn/status.h"

namespace tn::bridge {

constexpr c10::DeviceType kNeuron = c10::DeviceType::PrivateUse1;
constexpr int kMaxDevices = 64;

// Current device and stream of each device, per thread. A new thread starts at device 0 and default streams.
struct Scratch;
struct ThreadState {
  int device = 0;
  int64_t stream[kMaxDevices] = {};
  Scratch* scratch = nullptr;  // of op.h, made at the first call
};
// Initialised by constants and read through one address: a hot path asks once and passes it on.
extern constinit thread_local ThreadState current_thread_state;
inline ThreadState& thread_state() { return current_thread_state; }
int device_count();  // min(tn_device_count, kMaxDevices)
// Index of |device|, -1 meaning the current one. Throws if it does not exist.
int device_index(c10::Device device);

// Throws what PyTorch users expect for |status| and frees it; does nothing for TN_OK.
//  RESOURCE_EXHAUSTED: OutOfMemoryError. OUT_OF_RANGE: IndexError. UNIMPLEMENTED: NotImplementedError.
//  Others: RuntimeError. |context| (may be NULL) goes in front of the message.
[[noreturn]] void throw_status(tn_status_t status, const char* context = nullptr);
inline void check(tn_status_t status, const char* context = nullptr) {
  if (__builtin_expect(status != TN_OK, 0)) throw_status(status, context);
}

// Teaches the dispatcher what to say about kinds of tensors that the device does not hold. Each kind costs a walk over all
// operators, so this waits for the first use of the device; repeated calls do nothing.
void register_kinds();

c10::Allocator* device_allocator();  // allocates on the thread's current device and stream
c10::Allocator* host_allocator();
bool is_pinned(const void* pointer);

// TN_DTYPE_NONE for types that the core does not know (quantised, sub-byte, shell types).
tn_dtype_t to_tn(c10::ScalarType type);
c10::ScalarType to_torch(tn_dtype_t dtype);

constexpr c10::DispatchKeySet kNeuronKeys(c10::DispatchKey::PrivateUse1);

// Sets the thread's device for a scope; cheaper than c10::DeviceGuard because it needs no virtual call.
class DeviceScope {
 public:
  explicit DeviceScope(int device) : state_(thread_state()), previous_(state_.device) {
    state_.device = device;
  }
  ~DeviceScope() { state_.device = previous_; }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  ThreadState& state_;
  int previous_;
};

}  // namespace tn::bridge
