// Generators and the accelerator hooks.
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "bridge.h"
#include "generator.h"

namespace tn::bridge {

NeuronGenerator::NeuronGenerator(int device)
    : c10::GeneratorImpl(c10::Device(kNeuron, static_cast<c10::DeviceIndex>(device)), kNeuronKeys) {
}

void NeuronGenerator::set_current_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}
void NeuronGenerator::set_offset(uint64_t offset) { offset_ = offset; }
uint64_t NeuronGenerator::seed() {
  const uint64_t random = c10::detail::getNonDeterministicRandom(true);
  set_current_seed(random);
  return random;
}
void NeuronGenerator::set_state(const c10::TensorImpl& state) {
  TORCH_CHECK(state.device().is_cpu() && state.dtype() == caffe2::TypeMeta::Make<uint8_t>() &&
                  state.is_contiguous(),
              "RNG state must be a torch.ByteTensor");
  TORCH_CHECK(state.numel() == 16 || state.numel() == 8, "RNG state is wrong size");
  const auto* bytes = static_cast<const uint8_t*>(state.data());
  uint64_t seed, offset = 0;
  std::memcpy(&seed, bytes, 8);
  if (state.numel() == 16) std::memcpy(&offset, bytes + 8, 8);
  seed_ = seed;
  offset_ = offset;
}
c10::intrusive_ptr<c10::TensorImpl> NeuronGenerator::get_state() const {
  const uint64_t state[2] = {seed_, offset_};
  return generator_state_tensor(state).getIntrusivePtr();
}
at::Tensor generator_state_tensor(const uint64_t state[2]) {
  auto tensor = at::detail::empty_cpu({16}, c10::ScalarType::Byte);
  std::memcpy(tensor.mutable_data_ptr(), state, 16);
  return tensor;
}
void NeuronGenerator::graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) {
  const auto* from = dynamic_cast<const NeuronGenerator*>(state.get());
  TORCH_CHECK(from, "expected the state of a neuron generator");
  seed_ = from->seed_;
  offset_ = from->offset_;
}
c10::intrusive_ptr<c10::GeneratorImpl> NeuronGenerator::graphsafe_get_state() const {
  return c10::intrusive_ptr<c10::GeneratorImpl>::reclaim(clone_impl());
}
void NeuronGenerator::take(uint64_t count, uint64_t out_state[2]) {
  std::lock_guard lock(mutex_);
  out_state[0] = seed_;
  out_state[1] = offset_;
  offset_ += count;
}
void NeuronGenerator::peek(uint64_t out_state[2]) { take(0, out_state); }
NeuronGenerator* NeuronGenerator::clone_impl() const {
  auto* clone = new NeuronGenerator(device_.index());
  clone->seed_ = seed_;
  clone->offset_ = offset_;
  return clone;
}

const at::Generator& default_generator(int device) {
  // Leaked: tensors of other threads may draw during exit.
  static auto* generators = [] {
    auto* list = new std::vector<at::Generator>;
    for (int i = 0; i < device_count(); ++i)
      list->push_back(at::make_generator<NeuronGenerator>(i));
    return list;
  }();
  if (device < 0) device = thread_state().device;
  TORCH_CHECK(device < static_cast<int>(generators->size()), "Invalid device id: ", device,
              ". Valid range is 0 to ", generators->size() - 1);
  return (*generators)[device];
}

NeuronGenerator* generator_of(const std::optional<at::Generator>& generator, int device) {
  const at::Generator& chosen =
      generator && generator->defined() ? *generator : default_generator(device);
  TORCH_CHECK(chosen.device().type() == kNeuron,
              "Expected a 'neuron' device type for generator but found '", chosen.device().type(),
              "'");
  return static_cast<NeuronGenerator*>(chosen.unsafeGetGeneratorImpl());
}

namespace {

struct NeuronHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return tn_device_is_initialized(); }
  void init() const override {
    register_kinds();
    check(tn_device_check(thread_state().device));
  }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(device_count());
  }
  void setCurrentDevice(c10::DeviceIndex device) const override {
    thread_state().device = device_index({kNeuron, device});
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(thread_state().device);
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const int previous = thread_state().device;
    setCurrentDevice(device);
    return static_cast<c10::DeviceIndex>(previous);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? getCurrentDevice() : exchangeDevice(device);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::make_generator<NeuronGenerator>(device < 0 ? thread_state().device : device);
  }
  c10::Device getDeviceFromPtr(void* pointer) const override {
    void* base;
    size_t size;
    int device;
    TORCH_CHECK(tn_heap_find(pointer, &base, &size, &device),
                "The specified pointer does not belong to a neuron heap");
    return c10::Device(kNeuron, static_cast<c10::DeviceIndex>(device));
  }
  bool isPinnedPtr(const void* pointer) const override { return is_pinned(pointer); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return host_allocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size) const override {
    c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
    TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
    DeviceScope scope(device_index(storage.device()));
    c10::DataPtr data = device_allocator()->allocate(size);
    const size_t kept = std::min(size, impl->nbytes());
    if (kept && impl->data()) std::memcpy(data.get(), impl->data(), kept);
    impl->set_data_ptr_noswap(std::move(data));
    impl->set_nbytes(size);
  }
};

[[maybe_unused]] const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new NeuronHooks);
  return true;
}();

}  // namespace
}  // namespace tn::bridge
