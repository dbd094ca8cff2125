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
      if (slot.hash == hash && slot.plan->key.size() == size &&
          !std::memcmp(slot.plan->key.data(), key, size * sizeof(*key))) {
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
  plan->owner = this;
  plan->hash = hash;
  plan->key.assign(key, key + size);
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
  slots_[at] = {hash, plan};
  plan->references.fetch_add(1, std::memory_order_relaxed);
  ++count_;
  unlock();
  for (const Slot& slot : dropped)
    if (slot.plan) plan_release(slot.plan);
}

void PlanCache::grow() {
  std::vector<Slot> larger(slots_.empty() ? kFirstSlots : slots_.size() * 2);
  const size_t mask = larger.size() - 1;
  for (const Slot& slot : slots_) {
    if (!slot.plan) continue;
    size_t at = slot.hash & mask;
    while (larger[at].plan) at = (at + 1) & mask;
    larger[at] = slot;
  }
  slots_.swap(larger);
}

Scratch::~Scratch() {
  for (Plan* plan : recent)
    if (plan) plan_release(plan);
}

Scratch& make_scratch(ThreadState& state) {
  // Ends with its thread; a call after that (from another destructor) makes a new one, which stays.
  struct Holder {
    ThreadState& state;
    Scratch* scratch = new Scratch;
    ~Holder() {
      state.scratch = nullptr;
      delete scratch;
    }
  };
  static thread_local bool had_one = false;
  if (!had_one) {
    had_one = true;
    static thread_local Holder holder{state};
    state.scratch = holder.scratch;
  } else {
    state.scratch = new Scratch;
  }
  return *state.scratch;
}

}  // namespace tn::bridge
