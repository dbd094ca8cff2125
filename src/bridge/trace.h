// A trace: a list of functional ATen calls and integer expressions over parameters, with no size fixed.
//
// torch.compile records one per graph. Running it with concrete arguments lowers all calls into one graph program per
// set of sizes, strides and dtypes, and keeps programs in an LRU. If the core refuses a call, that call goes through the
// dispatcher, so the result is right and the account names the operator that fell back; what stands before and after it
// are traces of their own.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/bit_cast.h>

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "op.h"

namespace tn::bridge {

// A value of a trace: a tensor (parameter or result of a call), a number's expression, or nothing.
struct TraceValue {
  enum Kind : uint8_t { None, Param, Result, Int } kind = None;
  int32_t index = 0;  // parameter, call, or integer expression
  int32_t item = 0;   // Result: which one, or kGeneratorState

  // A result of every call: the state of the device's generator before it, 16 bytes on the CPU.
  static constexpr int32_t kGeneratorState = -1;
  bool is_generator_state() const { return kind == Result && item == kGeneratorState; }
};

struct TraceArg {
  enum Kind : uint8_t { Constant, Value, List } kind = Constant;
  c10::IValue constant;
  TraceValue value;
  std::vector<TraceArg> items;
};

// Expressions over sizes and numbers: on int64, and on double, whose bits stand in an int64.
enum class IntOp : uint8_t {
  Constant,
  Param,
  Size,
  Stride,
  Numel,
#define TN_NUMBER_OP(id, name, kind) id,
#include "trace_number.inc"
#undef TN_NUMBER_OP
};

struct IntNode {
  IntOp op;
  int64_t constant = 0;     // Constant; Size and Stride: dimension
  int32_t a = -1, b = -1;   // expressions; Param: input
  TraceValue tensor;        // Size, Stride, Numel
  bool is_float = false;    // its value is the bits of a double
  bool is_dynamic = false;  // depends on a number's parameter, not only on sizes
};

struct TraceCall {
  c10::OperatorHandle op;
  const tn_aten_op_t* row;
  OpAccount* account;
  std::vector<ArgKind> kinds;
  std::vector<TraceArg> args;
  bool is_view;
  TraceValue generator_state = {};     // the call draws from there, not from the generator
  bool saves_generator_state = false;  // the state before it was asked for
  uint32_t value_mask = 0;  // numbers given by expressions whose value a lowering asked for
};

int64_t int_apply(IntOp op, int64_t a, int64_t b);

inline double double_of_bits(int64_t bits) { return c10::bit_cast<double>(bits); }
inline int64_t bits_of_double(double value) { return c10::bit_cast<int64_t>(value); }

using TraceItem = std::variant<std::monostate, at::Tensor, int64_t, double>;

class TraceRunner;

class Trace {
 public:
  explicit Trace(std::string name) : name_(std::move(name)) {}

  TraceValue add_tensor_param();
  TraceValue add_generator_state_param();
  TraceValue add_int_param(bool is_float);
  TraceValue add_int(IntNode node);
  // |name| is a row of trace_number.inc; operands of mixed kinds meet as doubles. ValueError for other names.
  TraceValue add_number(const std::string& name, TraceValue a, TraceValue b);
  // NotImplementedError if the operator does not exist.
  int add_call(const std::string& name, std::vector<TraceArg> args,
               const std::vector<std::pair<std::string, TraceArg>>& keywords);
  TraceValue generator_state(int call) {
    calls_[call].saves_generator_state = true;
    return {TraceValue::Result, call, TraceValue::kGeneratorState};
  }
  // The call repeats what a call did at that state of the generator, and leaves the generator alone.
  void set_generator_state(int call, TraceValue state) { calls_[call].generator_state = state; }
  void add_copy(TraceValue param, TraceValue value);
  // |strides|: per result an empty list (row-major) or one value per dimension.
  void set_results(std::vector<TraceValue> results, std::vector<std::vector<TraceValue>> strides);

  std::vector<TraceItem> run(const std::vector<TraceItem>& inputs);
  // The graph for |inputs|, as StableHLO text.
  std::string describe(const std::vector<TraceItem>& inputs);
  int64_t program_count();
  const std::string& name() const { return name_; }
  const std::string& last_reason() const { return last_reason_; }

  static bool can_lower(const std::string& name);

 private:
  struct Program;
  struct Part;
  struct Split;
  friend class TraceBuilder;
  friend class TracePartBuilder;
  friend class TraceRunner;
  struct ResultSpec {
    TraceValue value;
    std::vector<TraceValue> strides;
    int view_base = -1;           // parameter that the result is a view of
    std::vector<int> view_chain;  // calls, outermost last
  };

  bool find_view(TraceValue value, std::vector<int>& chain, int& base) const;
  void encode(const std::vector<TraceItem>& inputs, std::vector<uint64_t>& key) const;
  std::shared_ptr<Program> find(const std::vector<TraceItem>& inputs);
  std::shared_ptr<Program> instantiate(const std::vector<TraceItem>& inputs);
  std::vector<TraceItem> launch(const Program& program, const std::vector<TraceItem>& inputs);
  std::vector<TraceItem> run_eagerly(const std::vector<TraceItem>& inputs);
  std::vector<TraceItem> run_split(int refused, const std::vector<TraceItem>& inputs);
  std::vector<TraceItem> finish(TraceRunner& runner, const std::vector<TraceItem>& inputs) const;
  void append(TraceCall call);
  TraceItem item_of(int index, int64_t value) const {
    return ints_[index].is_float ? TraceItem(double_of_bits(value)) : TraceItem(value);
  }
  c10::Scalar number(int index, int64_t value) const {
    return ints_[index].is_float ? c10::Scalar(double_of_bits(value)) : c10::Scalar(value);
  }
  // |inputs| of this run; throws for sizes of computed tensors, which only a build knows.
  int64_t int_value(int index, const std::vector<TraceItem>& inputs) const;
  bool needs_build(int index) const;
  at::Tensor view_value(const ResultSpec& spec, const std::vector<TraceItem>& inputs) const;
  void mark_structural(const TraceArg& arg);
  void mark_structural(TraceValue value);

  std::string name_;
  std::vector<uint8_t> param_is_int_;
  std::vector<uint8_t> param_is_written_;
  std::vector<uint8_t> param_is_generator_state_;
  std::vector<uint8_t> int_is_structural_;  // per parameter: its value belongs to the key
  std::vector<IntNode> ints_;
  std::vector<TraceCall> calls_;
  std::vector<std::pair<int, TraceValue>> copies_;
  std::vector<ResultSpec> results_;
  std::string last_reason_;

  std::mutex mutex_;
  std::list<std::pair<std::vector<uint64_t>, std::shared_ptr<Program>>>
      programs_;                                  // mutex_; newest first
  std::map<int, std::shared_ptr<Split>> splits_;  // mutex_; per refused call
};

}  // namespace tn::bridge
