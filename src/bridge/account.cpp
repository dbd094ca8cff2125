// Account of operators, and the warning of a fallback.
#include <Python.h>

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "account.h"
#include "tn/options.h"

namespace tn::bridge {
namespace {

struct Accounts {
  std::mutex mutex;
  std::unordered_map<std::string, OpAccount*> by_name;  // mutex
  std::vector<OpAccount*> all;                          // mutex
  std::atomic<int64_t> next_order{1};
};
Accounts& accounts() {
  static auto* instance = new Accounts;  // leaked: used by threads during exit
  return *instance;
}

FallbackMode mode_from_environment() {
  const char* value = tn_options_text("TORCH_NEURONX_FALLBACK");
  if (!std::strcmp(value, "silent")) return FallbackMode::Silent;
  if (!std::strcmp(value, "error")) return FallbackMode::Error;
  return FallbackMode::Warn;
}
std::atomic<FallbackMode>& mode_state() {
  static std::atomic<FallbackMode> mode{mode_from_environment()};
  return mode;
}

bool is_library_file(const char* file) {
  return std::strstr(file, "/torch/") || std::strstr(file, "/torch_neuronx/") ||
         !std::strncmp(file, "<frozen", 7);
}

// The innermost Python line outside torch and this package; empty on threads that run no Python.
void user_line(std::string& out_file, int& out_line) {
  if (!Py_IsInitialized() || !_PyThreadState_UncheckedGet()) {
    if (!Py_IsInitialized() || !PyGILState_GetThisThreadState()) return;
  }
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyThreadState* state = PyThreadState_Get();
  PyFrameObject* frame = PyThreadState_GetFrame(state);
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    const bool is_user = file && !is_library_file(file);
    if (is_user) {
      out_file = file;
      out_line = PyFrame_GetLineNumber(frame);
    }
    Py_DECREF(code);
    PyFrameObject* back = is_user ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  PyErr_Clear();
  PyGILState_Release(gil);
}

}  // namespace

OpAccount* op_account(const std::string& name, const std::string& overload) {
  std::string full = overload.empty() ? name : name + "." + overload;
  Accounts& state = accounts();
  std::lock_guard lock(state.mutex);
  OpAccount*& account = state.by_name[full];
  if (!account) {
    account = new OpAccount;
    account->name = std::move(full);
    state.all.push_back(account);
  }
  return account;
}

void stamp(std::atomic<int64_t>& order) { order = accounts().next_order.fetch_add(1); }

void count_fallback(OpAccount* account, const std::string& reason, int64_t bytes, int64_t ns) {
  account->fallback_bytes.fetch_add(bytes, std::memory_order_relaxed);
  account->fallback_ns.fetch_add(ns, std::memory_order_relaxed);
  if (account->fallback.fetch_add(1, std::memory_order_relaxed) == 0)
    stamp(account->fallback_order);
  bool is_first;
  {
    std::lock_guard lock(accounts().mutex);
    if (account->reasons.size() < 16 || account->reasons.count(reason)) account->reasons[reason]++;
    is_first = !account->is_warned;
    account->is_warned = true;
  }
  if (!is_first) return;
  std::string file;
  int line = 0;
  user_line(file, line);  // may wait for the interpreter lock: not under ours
  {
    std::lock_guard lock(accounts().mutex);
    account->user_file = file;
    account->user_line = line;
  }
  if (fallback_mode() != FallbackMode::Warn) return;
  std::string text = "Operator '" + account->name + "' fell back to CPU: " + reason;
  if (line > 0) text += " (" + file + ":" + std::to_string(line) + ")";
  // Warnings are shown later, when control is back in Python: the file's name must outlive this call.
  const char* place = line > 0 ? strdup(file.c_str()) : "torch_neuronx";
  c10::warn(c10::Warning(c10::UserWarning(),
                         c10::SourceLocation{"", place, static_cast<uint32_t>(line)},
                         std::move(text), true));
}

FallbackMode fallback_mode() { return mode_state().load(std::memory_order_relaxed); }
void set_fallback_mode(FallbackMode mode) { mode_state() = mode; }
bool fallback_only_for_unimplemented() {
  static const bool value =
      tn_options_int("TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS") != 0;
  return value;
}

std::vector<OpAccount*> accounts_used() {
  std::vector<OpAccount*> used;
  Accounts& state = accounts();
  std::lock_guard lock(state.mutex);
  for (OpAccount* account : state.all)
    if (account->executed || account->fallback) used.push_back(account);
  const auto first_use = [](const OpAccount* account) {
    const int64_t a = account->order, b = account->fallback_order;
    return a && b ? std::min(a, b) : std::max(a, b);
  };
  std::sort(used.begin(), used.end(),
            [&](const OpAccount* a, const OpAccount* b) { return first_use(a) < first_use(b); });
  return used;
}

void clear_accounts() {
  Accounts& state = accounts();
  std::lock_guard lock(state.mutex);
  for (OpAccount* account : state.all) {
    account->executed = account->fallback = account->fallback_bytes = account->fallback_ns = 0;
    account->order = account->fallback_order = 0;
    account->reasons.clear();
    account->user_file.clear();
    account->user_line = 0;
  }
}

}  // namespace tn::bridge
