// Philox generator: state is {u64 seed, i64 offset}; one offset unit is one 128-bit Philox counter.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tn::bridge {

class NeuronGenerator final : public c10::GeneratorImpl {
 public:
  explicit NeuronGenerator(int device);

  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override { return offset_; }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) override;
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;

  // Takes |count| counters: writes {seed, offset} and advances. Locks the generator.
  void take(uint64_t count, uint64_t out_state[2]);
  void peek(uint64_t out_state[2]);
  static c10::DeviceType device_type() { return c10::DeviceType::PrivateUse1; }

 private:
  NeuronGenerator* clone_impl() const override;

  uint64_t seed_ = c10::default_rng_seed_val;
  uint64_t offset_ = 0;
};

// The 16 bytes of a state, as a tensor on the CPU.
at::Tensor generator_state_tensor(const uint64_t state[2]);

const at::Generator& default_generator(int device);
// The generator of an optional argument, else the default of |device|.
NeuronGenerator* generator_of(const std::optional<at::Generator>& generator, int device);

}  // namespace tn::bridge
