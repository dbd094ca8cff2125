// Device and pinned-host allocators.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "bridge.h"

namespace tn::bridge {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingDeviceAllocator::DeviceStats;

void free_block(void* pointer) { tn_heap_free(pointer); }

class NeuronAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    register_kinds();
    const ThreadState& state = thread_state();
    void* pointer = nullptr;
    check(tn_heap_allocate(state.device, size, state.stream[state.device], &pointer));
    return {pointer, pointer, &free_block,
            c10::Device(kNeuron, static_cast<c10::DeviceIndex>(state.device))};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t size) const override {
    default_copy_data(to, from, size);
  }
  bool initialized() override { return tn_device_is_initialized(); }
  void emptyCache(c10::MempoolId_t) override {
    for (int device = 0; device < device_count(); ++device) tn_heap_trim(device);
  }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    if (data.get() && data.get_deleter() == &free_block)
      tn_heap_record_stream(data.get_context(), stream.id());
  }
  DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    tn_heap_stats_t from = {};
    tn_heap_stats(device_index({kNeuron, device}), &from);
    DeviceStats to;
    copy(from.allocation, to.allocation);
    copy(from.segment, to.segment);
    copy(from.active, to.active);
    copy(from.inactive_split, to.inactive_split);
    copy(from.allocated_bytes, to.allocated_bytes);
    copy(from.reserved_bytes, to.reserved_bytes);
    copy(from.active_bytes, to.active_bytes);
    copy(from.inactive_split_bytes, to.inactive_split_bytes);
    copy(from.requested_bytes, to.requested_bytes);
    to.num_alloc_retries = from.alloc_retries;
    to.num_ooms = from.ooms;
    to.num_device_alloc = from.device_allocs;
    to.num_device_free = from.device_frees;
    return to;
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    tn_heap_reset_accumulated(device_index({kNeuron, device}));
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    tn_heap_reset_peak(device_index({kNeuron, device}));
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    size_t free = 0, total = 0;
    tn_heap_info(device_index({kNeuron, device}), &free, &total);
    return {free, total};
  }

 private:
  static void copy(const tn_stat_t (&from)[3], StatArray& to) {
    for (int pool = 0; pool < 3; ++pool) {  // both number their pools all, small, large
      to[pool].current = from[pool].current;
      to[pool].peak = from[pool].peak;
      to[pool].allocated = from[pool].allocated;
      to[pool].freed = from[pool].freed;
    }
  }
};

// Host memory of the software device needs no page locking; "pinned" is a property this allocator remembers.
class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    if (size == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    void* pointer = std::aligned_alloc(64, (size + 63) / 64 * 64);
    TORCH_CHECK_WITH(OutOfMemoryError, pointer, "pinned memory: cannot allocate ", size, " bytes");
    std::lock_guard lock(mutex_);
    blocks_[static_cast<char*>(pointer)] = size;
    stats_.active_requests.increase(1);
    stats_.active_bytes.increase(size);
    stats_.allocations.increase(1);
    stats_.allocated_bytes.increase(size);
    stats_.num_host_alloc++;
    return {pointer, pointer, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t size) const override {
    default_copy_data(to, from, size);
  }
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override {
    std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset_accumulated_stats() override {
    for_each_stat([](Stat& stat) { stat.reset_accumulated(); });
  }
  void reset_peak_stats() override {
    for_each_stat([](Stat& stat) { stat.reset_peak(); });
  }

  bool contains(const void* pointer) {
    std::lock_guard lock(mutex_);
    auto after = blocks_.upper_bound(static_cast<char*>(const_cast<void*>(pointer)));
    if (after == blocks_.begin()) return false;
    --after;
    return static_cast<const char*>(pointer) < after->first + after->second;
  }

 private:
  static void release(void* pointer);
  template <typename F>
  void for_each_stat(F&& function) {
    std::lock_guard lock(mutex_);
    for (Stat* stat : {&stats_.active_requests, &stats_.active_bytes, &stats_.allocations,
                       &stats_.allocated_bytes})
      function(*stat);
  }

  std::mutex mutex_;
  std::map<char*, size_t> blocks_;  // mutex_
  at::HostStats stats_;             // mutex_
};

// Both live as long as the process: tensors may be freed after static destructors have run.
NeuronAllocator* neuron_allocator = new NeuronAllocator;
PinnedAllocator* pinned_allocator = new PinnedAllocator;

void PinnedAllocator::release(void* pointer) {
  if (!pointer) return;
  {
    std::lock_guard lock(pinned_allocator->mutex_);
    const auto block = pinned_allocator->blocks_.find(static_cast<char*>(pointer));
    if (block == pinned_allocator->blocks_.end()) return;
    at::HostStats& stats = pinned_allocator->stats_;
    stats.active_requests.decrease(1);
    stats.active_bytes.decrease(block->second);
    stats.allocations.decrease(1);
    stats.allocated_bytes.decrease(block->second);
    pinned_allocator->blocks_.erase(block);
  }
  std::free(pointer);
}

c10::AllocatorRegisterer<kNeuron> register_allocator(neuron_allocator);
REGISTER_HOST_ALLOCATOR(kNeuron, pinned_allocator)

}  // namespace

c10::Allocator* device_allocator() { return neuron_allocator; }
c10::Allocator* host_allocator() { return pinned_allocator; }
bool is_pinned(const void* pointer) { return pinned_allocator->contains(pointer); }

}  // namespace tn::bridge
