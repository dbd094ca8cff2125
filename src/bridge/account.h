// Account of every operator that ran: on the device, or on the CPU and why.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tn::bridge {

// One operator overload. Lives for ever; counters are relaxed atomics, the rest is guarded by the account's lock.
struct OpAccount {
  std::string name;  // "aten::add.Tensor"
  std::atomic<int64_t> executed{0}, fallback{0};
  std::atomic<int64_t> fallback_bytes{0}, fallback_ns{0};
  std::atomic<int64_t> order{0};  // of first use since the last clear; 0: unused
  std::atomic<int64_t> fallback_order{0};
  bool is_warned = false;
  std::map<std::string, int64_t> reasons;
  std::string user_file;  // first user line of a fallback
  int user_line = 0;
};

// The account of an operator, created at first use. |overload| may be empty.
OpAccount* op_account(const std::string& name, const std::string& overload);

void stamp(std::atomic<int64_t>& order);
inline void count_executed(OpAccount* account) {
  if (account->executed.fetch_add(1, std::memory_order_relaxed) == 0) stamp(account->order);
}
// Counts and warns (once per operator, with the user's line).
void count_fallback(OpAccount* account, const std::string& reason, int64_t bytes, int64_t ns);

enum class FallbackMode { Warn, Silent, Error };
FallbackMode fallback_mode();
void set_fallback_mode(FallbackMode mode);
bool fallback_only_for_unimplemented();

// Every operator used since the last clear, in order of first use.
std::vector<OpAccount*> accounts_used();
void clear_accounts();

}  // namespace tn::bridge
