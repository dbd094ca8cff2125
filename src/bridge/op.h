// Eager operators: one functor per overload, over one row of the lowering table.
//
// A call is turned into a flat key (arguments without scalar values, unless a lowering said that a value matters). A
// known key leads to a plan: a compiled program, what to allocate, what to bind. An unknown one is lowered, compiled
// and kept, or found to be the CPU's business, with the reason.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/SmallVector.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "account.h"
#include "bridge.h"
#include "tn/aten.h"
#include "tn/driver.h"

namespace tn::bridge {

enum class OpKind : uint8_t { Functional, InPlace, Out, Mutable, Fallback };

enum class ArgKind : uint8_t {
  Tensor,
  TensorList,
  Number,
  Float,
  Int,
  Bool,
  Ints,
  Doubles,
  Numbers,
  String,
  Dtype,
  Enum,
  Device,
  Generator,
  Other
};

ArgKind arg_kind(const c10::Argument& argument);

struct ArgInfo {
  ArgKind kind = ArgKind::Other;
  bool is_written = false;
  bool is_memory_format = false;
  bool is_checked = false;  // a number that must fit the dtype it is converted to
  int8_t functional = -1;   // position among the functional overload's arguments, or -1
};

// One tensor of a call, lists flattened.
struct FlatTensor {
  const at::Tensor* tensor;
  uint8_t arg;
  bool is_written;
  bool is_host;  // 0-dim CPU tensor: its value is passed at launch like a number
};

struct ResultPlan {
  enum Kind : uint8_t { Allocate, Write, Undefined, Number } kind;
  uint8_t dtype;
  int16_t rank;
  int32_t flat;  // Write: which tensor of the call
  bool is_contiguous;
  int64_t bytes;  // Number: the value
  std::vector<int64_t> sizes, strides;
};

struct ParamPlan {
  enum Kind : uint8_t { Tensor, HostTensor, Number, ListNumber, Random } kind;
  uint8_t dtype;
  int32_t index;                       // Tensor: flat index; Number: argument; ListNumber: argument
  int32_t item;                        // ListNumber: item
  tn_dtype_t checked = TN_DTYPE_NONE;  // numbers: the dtype that the value has to fit
};

class PlanCache;

// What to do for one key. Immutable after publication; counted.
struct Plan {
  std::atomic<int> references{1};
  const PlanCache* owner = nullptr;  // with |hash| and |key|: what the plan is for
  uint64_t hash = 0;
  std::vector<uint64_t> key;
  const tn_driver_t* driver = nullptr;
  tn_program_t* program =
      nullptr;  // NULL with a |reason|: the CPU; NULL without: nothing to compute
  std::string reason;
  std::vector<ParamPlan> params;
  std::vector<ResultPlan> results;
  uint64_t random_count = 0;
  int device = 0;
  ~Plan();
};
void plan_release(Plan* plan);

// Bounded map from keys to plans of one operator. Thread-safe.
class PlanCache {
 public:
  Plan* find(const uint64_t* key, size_t size, uint64_t hash);  // with a reference, or nullptr
  // Gives |plan| its key and takes a reference of its own.
  void insert(const uint64_t* key, size_t size, uint64_t hash, Plan* plan);

 private:
  struct Slot {
    uint64_t hash = 0;
    Plan* plan = nullptr;
  };
  void grow();
  void lock() {
    while (busy_.exchange(true, std::memory_order_acquire)) __builtin_ia32_pause();
  }
  void unlock() { busy_.store(false, std::memory_order_release); }

  std::atomic<bool> busy_{false};
  std::vector<Slot> slots_;  // busy_
  size_t count_ = 0;         // busy_
};

// Facts of one overload, found at its first call.
struct OpInfo {
  std::string name;  // "aten::add_.Tensor"
  OpKind kind = OpKind::Functional;
  const tn_aten_op_t* row = nullptr;
  OpAccount* account = nullptr;
  std::vector<ArgInfo> args;
  int functional_count = 0;
  std::vector<int8_t> functional_args;  // per functional argument: position in this overload or -1
  std::vector<c10::IValue> functional_defaults;
  std::vector<ArgKind> functional_kinds;
  std::vector<uint8_t>
      functional_is_dtype;      // absent dtype arguments of out= factories: the out tensor's dtype
  std::vector<int8_t> written;  // positions of written arguments
  std::vector<uint8_t> returns_list;  // per return: is it a tensor list
  std::vector<int8_t> return_of;      // per return: index into |written|, or -1: a new result
  int generator = -1;                 // position, or -1
  int device_arg = -1;
  std::atomic<uint32_t> value_mask{0};  // arguments whose value belongs to the key
};

// The arguments of one call. Reused by all calls of a thread, so that nothing is allocated.
struct Call {
  const OpInfo* info;
  const c10::IValue* args;
  c10::SmallVector<FlatTensor, 8> tensors;
  c10::SmallVector<uint64_t, 64> key;
  uint64_t hash;
  int device;
  bool is_odd;   // something the fast path must leave to the CPU (|odd_reason|)
  bool is_lazy;  // odd, because an argument that is read is a conjugated or negated view
  const char* odd_reason;
};

// What a thread keeps between calls: the call's memory, and the plans it used last, which it finds without a lock.
struct Scratch {
  static constexpr size_t kRecent = 128;
  Call call;
  Plan* recent[kRecent] = {};  // with a reference each
  ~Scratch();
};
Scratch& make_scratch(ThreadState& state);
inline Scratch& scratch_of(ThreadState& state) {
  return __builtin_expect(state.scratch != nullptr, 1) ? *state.scratch : make_scratch(state);
}

// How two tensors lie to each other in memory.
enum class AliasKind : uint8_t { Disjoint, Same, Overlap };
AliasKind alias_kind(const at::Tensor& a, const at::Tensor& b);

// Fills |call|'s tensors, key and hash. Never throws for bad arguments: marks the call odd.
void call_encode(Call& call, const ThreadState& state, const OpInfo& info, const c10::IValue* args);

// Whether PyTorch refuses to convert |value| of dtype |from|.
bool number_overflows(const tn_scalar_t& value, tn_dtype_t from, tn_dtype_t to);
// Notes in |params| which numbers of a lowered call have to fit which dtype.
void find_checked_numbers(const tn_graph_t* graph, const OpInfo& info,
                          std::vector<ParamPlan>& params);

// Lowers and compiles. Returns a plan (possibly one that names the CPU); nullptr with |out_reason| when this call goes
// to the CPU but the reason must not be kept. May resize out= tensors: then |out_again| is set and the call must be
// encoded anew. Throws OutOfMemoryError.
Plan* plan_build(const Call& call, std::string& out_reason, bool& out_again);

// Result sizes and strides -> the strides a fresh result gets under |rule|. |tensors|: the call's arguments.
struct StrideOperand {
  const int64_t* sizes;
  const int64_t* strides;
  int rank;
  tn_dtype_t dtype;
};
void stack_strides(const std::vector<StrideOperand>& operands, int64_t dim, int rank,
                   const int64_t* sizes, int64_t* out_strides);
void index_strides(const at::Tensor& self, c10::ArrayRef<c10::IValue> indices, int rank,
                   const int64_t* sizes, int64_t* out_strides);
void layout_strides(tn_layout_rule_t rule, const std::vector<StrideOperand>& operands,
                    int memory_format, int rank, const int64_t* sizes, int64_t* out_strides);

// A fresh device tensor without sizes, and its memory.
at::Tensor make_block(int64_t bytes, c10::ScalarType dtype, int device, int64_t stream,
                      void** out_pointer);
// A fresh device tensor and its memory.
at::Tensor make_result(const ResultPlan& result, int device, int64_t stream, void** out_pointer);

// An overload with its facts and cache, for callers outside the dispatcher's table.
class Operator {
 public:
  Operator(const char* name, const char* overload, const char* row, OpKind kind)
      : name_(name), overload_(overload), row_(row), kind_(kind) {}
  // False, with the stack untouched, if the core has no such row.
  bool run(torch::jit::Stack* stack);

 private:
  const char *name_, *overload_, *row_;
  OpKind kind_;
  std::once_flag once_;
  std::optional<c10::OperatorHandle> op_;
  OpInfo info_;
  PlanCache cache_;
};

void run_operator(const c10::OperatorHandle& op, OpInfo& info, PlanCache& cache,
                  torch::jit::Stack* stack);
// The short way for an operator with at most one fresh result: runs a call whose plan is known to this thread. False,
// with nothing done, for every other call.
bool run_known(const OpInfo& info, PlanCache& cache, const c10::IValue* args,
               at::Tensor& out_fresh);
void op_info_init(OpInfo& info, const c10::OperatorHandle& op);

}  // namespace tn::bridge
