// Device guard: current device, streams and events.
#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <cstring>

#include "tn/options.h"
#include "bridge.h"

namespace tn::bridge {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

Stream make_stream(int device, int64_t id) {
  return Stream(Stream::UNSAFE, Device(kNeuron, static_cast<DeviceIndex>(device)), id);
}

bool is_host_target() { return !std::strcmp(tn_options_text("TORCH_NEURONX_TARGET"), "host"); }

struct NeuronGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kNeuron; }

  Device exchangeDevice(Device device) const override {
    ThreadState& state = thread_state();
    const int previous = state.device;
    state.device = device_index(device);
    return Device(kNeuron, static_cast<DeviceIndex>(previous));
  }
  Device getDevice() const override {
    return Device(kNeuron, static_cast<DeviceIndex>(thread_state().device));
  }
  void setDevice(Device device) const override { thread_state().device = device_index(device); }
  void uncheckedSetDevice(Device device) const noexcept override {
    if (device.index() >= 0 && device.index() < kMaxDevices) thread_state().device = device.index();
  }
  DeviceIndex deviceCount() const noexcept override {
    return static_cast<DeviceIndex>(device_count());
  }

  Stream getStream(Device device) const override {
    const int index = device_index(device);
    return make_stream(index, thread_state().stream[index]);
  }
  Stream getDefaultStream(Device device) const override {
    return make_stream(device_index(device), 0);
  }
  Stream getStreamFromGlobalPool(Device device, bool is_high_priority) const override {
    return getNewStream(device, is_high_priority ? -1 : 0);
  }
  Stream getNewStream(Device device, int priority) const override {
    const int index = device_index(device);
    int64_t id = 0;
    check(tn_stream_create(index, priority, &id));
    return make_stream(index, id);
  }
  Stream exchangeStream(Stream stream) const override {
    const int index = device_index(stream.device());
    TORCH_CHECK(tn_stream_is_valid(index, stream.id()), "neuron:", index, " has no stream ",
                stream.id());
    int64_t& current = thread_state().stream[index];
    const Stream previous = make_stream(index, current);
    current = stream.id();
    return previous;
  }
  void* getStreamNativeHandle(const Stream stream) const override {
    return reinterpret_cast<void*>(stream.id());
  }
  bool queryStream(const Stream& stream) const override {
    return tn_stream_query(device_index(stream.device()), stream.id());
  }
  void synchronizeStream(const Stream& stream) const override {
    check(tn_stream_synchronize(device_index(stream.device()), stream.id()));
  }
  void synchronizeDevice(const DeviceIndex device) const override {
    check(tn_device_synchronize(device_index({kNeuron, device})));
  }

  void destroyEvent(void* event, const DeviceIndex) const noexcept override {
    tn_event_destroy(static_cast<tn_event_t*>(event));
  }
  void record(void** event, const Stream& stream, const DeviceIndex device,
              const c10::EventFlag flag) const override {
    const int index = device_index(stream.device());
    TORCH_CHECK(device == -1 || device == index, "Event device neuron:", static_cast<int>(device),
                " does not match recording stream's device neuron:", index, ".");
    auto** handle = reinterpret_cast<tn_event_t**>(event);
    if (!*handle) check(tn_event_create(index, flag == c10::EventFlag::BACKEND_DEFAULT, handle));
    check(tn_event_record(*handle, stream.id()));
  }
  void block(void* event, const Stream& stream) const override {
    if (event) check(tn_event_wait(static_cast<tn_event_t*>(event), stream.id()));
  }
  bool queryEvent(void* event) const override {
    return !event || tn_event_query(static_cast<tn_event_t*>(event));
  }
  void synchronizeEvent(void* event) const override {
    if (event) check(tn_event_synchronize(static_cast<tn_event_t*>(event)));
  }
  double elapsedTime(void* start, void* end, const DeviceIndex) const override {
    TORCH_CHECK(start && end, "Both events must be recorded before calculating elapsed time.");
    double ms = 0;
    check(tn_event_elapsed(static_cast<tn_event_t*>(start), static_cast<tn_event_t*>(end), &ms));
    return ms;
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const Stream& stream) const override {
    if (data.get()) tn_heap_record_stream(data.get(), stream.id());
  }
  c10::DeviceCapability getDeviceCapability(Device) const override {
    c10::DeviceCapability capability;
    auto& types = capability.capability_data.supported_scalar_types;
    types.has_QInt8 = types.has_QUInt8 = types.has_QInt32 = types.has_QUInt4x2 =
        types.has_QUInt2x4 = 0;
    types.has_ComplexHalf = 0;
    if (!is_host_target()) types.has_Double = types.has_ComplexDouble = 0;
    return capability;
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, NeuronGuard)

}  // namespace
}  // namespace tn::bridge
