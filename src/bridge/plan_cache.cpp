// Bounded open-addressing map from call keys to plans.
#include <cstring>

#include "op.h"

namespace tn::bridge {
namespace {
constexpr size_t kFirstSlots = 16;
constexpr size_t kMaxEntries =
    1024;  // per operator; a program with more live signatures starts over
}  // namespace

Plan::~Plan() {
  if (program) driver->destroy(program);
}

void plan_release(Plan* plan) {
  if (plan->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete plan;
}

Plan* PlanCache::find(const uint64_t* key, size_t size, uint64_t hash) {
  lock();
  Plan* found = nullptr;
  if (!slots_.empty()) {
    const size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask; slots_[at].plan; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.hash == hash && slot.key.size() == size &&
          !std::memcmp(slot.key.data(), key, size * sizeof(*key))) {
        found = slot.plan;
        found->references.fetch_add(1, std::memory_order_relaxed);
        break;
      }
    }
  }
  unlock();
  return found;
}

void PlanCache::insert(const uint64_t* key, size_t size, uint64_t hash, Plan* plan) {
  std::vector<Slot> dropped;
  lock();
  if (count_ >= kMaxEntries) {
    dropped.swap(slots_);
    count_ = 0;
  }
  if (slots_.size() < (count_ + 1) * 2) grow();
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at].plan) at = (at + 1) & mask;
  slots_[at] = {hash, std::vector<uint64_t>(key, key + size), plan};
  plan->references.fetch_add(1, std::memory_order_relaxed);
  ++count_;
  unlock();
  for (Slot& slot : dropped)
    if (slot.plan) plan_release(slot.plan);
}

void PlanCache::grow() {
  std::vector<Slot> larger(slots_.empty() ? kFirstSlots : slots_.size() * 2);
  const size_t mask = larger.size() - 1;
  for (Slot& slot : slots_) {
    if (!slot.plan) continue;
    size_t at = slot.hash & mask;
    while (larger[at].plan) at = (at + 1) & mask;
    larger[at] = std::move(slot);
  }
  slots_.swap(larger);
}

void PlanCache::clear() {
  std::vector<Slot> dropped;
  lock();
  dropped.swap(slots_);
  count_ = 0;
  unlock();
  for (Slot& slot : dropped)
    if (slot.plan) plan_release(slot.plan);
}

}  // namespace tn::bridge
