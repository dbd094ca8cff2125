// Running a trace whose calls do not all belong to one graph: call by call, or in parts around a refused call.
#include <ATen/EmptyTensor.h>

#include "generator.h"
#include "trace_program.h"

namespace tn::bridge {

using c10::IValue;

// Some calls of a trace as a trace, with what its parameters and results are in the whole.
struct Trace::Part {
  explicit Part(const std::string& name) : trace(name) {}
  Trace trace;
  std::vector<TraceValue> inputs, outputs;
};

struct Trace::Split {
  std::unique_ptr<Part> before, after;  // null: no calls
};

// The values of one run, which calls and parts add to.
class TraceRunner {
 public:
  TraceRunner(const Trace& trace, const std::vector<TraceItem>& inputs)
      : trace_(trace),
        inputs_(inputs),
        results_(trace.calls_.size()),
        generator_states_(trace.calls_.size()) {}

  IValue tensor(TraceValue value) {
    if (value.kind == TraceValue::Param) return std::get<at::Tensor>(inputs_[value.index]);
    if (value.kind != TraceValue::Result) return IValue();
    if (value.is_generator_state()) return generator_states_[value.index];
    const auto& list = results_[value.index];
    return value.item < static_cast<int>(list.size()) ? IValue(list[value.item]) : IValue();
  }

  int64_t integer(int index) {
    const IntNode& node = trace_.ints_[index];
    if (node.op == IntOp::Size || node.op == IntOp::Stride || node.op == IntOp::Numel) {
      const at::Tensor value = tensor(node.tensor).toTensor();
      if (node.op == IntOp::Numel) return value.numel();
      return node.op == IntOp::Size ? value.size(node.constant) : value.stride(node.constant);
    }
    if (node.op < IntOp::Size) return trace_.int_value(index, inputs_);
    return int_apply(node.op, node.a >= 0 ? integer(node.a) : 0, node.b >= 0 ? integer(node.b) : 0);
  }

  // Through the dispatcher.
  void call(int index) {
    const TraceCall& call = trace_.calls_[index];
    torch::jit::Stack stack;
    for (size_t i = 0; i < call.args.size(); ++i)
      stack.push_back(value(call.args[i], call.kinds[i]));
    const bool repeats = call.generator_state.kind != TraceValue::None;
    NeuronGenerator* generator = nullptr;
    if (repeats || call.saves_generator_state) {
      generator = generator_of(std::nullopt, device_of(inputs_));
      uint64_t before[2];
      generator->peek(before);
      generator_states_[index] = generator_state_tensor(before);
    }
    if (repeats)
      generator->set_state(*tensor(call.generator_state).toTensor().unsafeGetTensorImpl());
    call.op.callBoxed(stack);
    if (repeats) generator->set_state(*generator_states_[index].unsafeGetTensorImpl());
    for (const IValue& result : stack) {
      if (result.isTensorList())
        for (const at::Tensor& item : result.toTensorVector()) results_[index].push_back(item);
      else if (result.isTensor()) results_[index].push_back(result.toTensor());
    }
  }

  void part(Trace::Part& part) {
    std::vector<TraceItem> items;
    for (const TraceValue value : part.inputs) {
      if (value.kind == TraceValue::Int)
        items.push_back(trace_.item_of(value.index, integer(value.index)));
      else items.emplace_back(tensor(value).toTensor());
    }
    const std::vector<TraceItem> outputs = part.trace.run(items);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (part.outputs[i].is_generator_state()) {
        generator_states_[part.outputs[i].index] = std::get<at::Tensor>(outputs[i]);
        continue;
      }
      std::vector<at::Tensor>& list = results_[part.outputs[i].index];
      const size_t item = static_cast<size_t>(part.outputs[i].item);
      if (list.size() <= item) list.resize(item + 1);
      if (const auto* found = std::get_if<at::Tensor>(&outputs[i])) list[item] = *found;
    }
  }

 private:
  IValue value(const TraceArg& arg, ArgKind kind) {
    if (arg.kind == TraceArg::Value) {
      if (arg.value.kind != TraceValue::Int) return tensor(arg.value);
      const c10::Scalar number = trace_.number(arg.value.index, integer(arg.value.index));
      if (kind == ArgKind::Tensor) return wrapped(number);
      return kind == ArgKind::Float ? IValue(number.toDouble()) : IValue(number);
    }
    if (arg.kind == TraceArg::List) return list(arg, kind);
    if (kind == ArgKind::Tensor && arg.constant.isScalar()) return wrapped(arg.constant.toScalar());
    if (kind == ArgKind::Float && arg.constant.isInt())
      return static_cast<double>(arg.constant.toInt());
    if (kind == ArgKind::Device && arg.constant.isNone()) return c10::Device(kNeuron);
    return arg.constant;
  }

  static at::Tensor wrapped(const c10::Scalar& number) {
    at::Tensor tensor = scalar_to_tensor(number);
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
  }
  static at::Tensor scalar_to_tensor(const c10::Scalar& number);

  IValue list(const TraceArg& arg, ArgKind kind) {
    if (kind == ArgKind::Ints) {
      std::vector<int64_t> ints;
      bool is_bool = !arg.items.empty();
      for (const TraceArg& item : arg.items) {
        is_bool = is_bool && item.kind == TraceArg::Constant && item.constant.isBool();
        ints.push_back(item.kind == TraceArg::Value ? integer(item.value.index)
                       : item.constant.isBool()     ? item.constant.toBool()
                                                    : item.constant.toInt());
      }
      if (!is_bool) return ints;
      c10::List<bool> bools;
      for (const int64_t flag : ints) bools.push_back(flag != 0);
      return bools;
    }
    if (kind == ArgKind::Doubles) {
      std::vector<double> doubles;
      for (const TraceArg& item : arg.items)
        doubles.push_back(value(item, ArgKind::Number).toScalar().toDouble());
      return doubles;
    }
    if (kind == ArgKind::TensorList) {
      bool has_none = false;
      c10::List<std::optional<at::Tensor>> optional;
      c10::List<at::Tensor> plain;
      for (const TraceArg& item : arg.items) {
        const IValue element = value(item, ArgKind::Tensor);
        has_none |= element.isNone();
        optional.push_back(element.isNone() ? std::nullopt : std::optional(element.toTensor()));
        if (!element.isNone()) plain.push_back(element.toTensor());
      }
      return has_none ? IValue(optional) : IValue(plain);
    }
    c10::List<c10::Scalar> numbers;
    c10::impl::GenericList generic(c10::NumberType::get());
    for (const TraceArg& item : arg.items) generic.push_back(value(item, ArgKind::Number));
    return generic;
  }

  const Trace& trace_;
  const std::vector<TraceItem>& inputs_;
  std::vector<std::vector<at::Tensor>> results_;
  std::vector<at::Tensor> generator_states_;  // before each call
};

at::Tensor TraceRunner::scalar_to_tensor(const c10::Scalar& number) {
  at::Tensor tensor = at::detail::empty_cpu({}, number.isFloatingPoint() ? c10::kDouble
                                                : number.isBoolean()     ? c10::kBool
                                                : number.isComplex()     ? c10::kComplexDouble
                                                                         : c10::kLong);
  void* data = tensor.mutable_data_ptr();
  if (number.isFloatingPoint()) *static_cast<double*>(data) = number.toDouble();
  else if (number.isBoolean()) *static_cast<bool*>(data) = number.toBool();
  else if (number.isComplex()) *static_cast<c10::complex<double>*>(data) = number.toComplexDouble();
  else *static_cast<int64_t*>(data) = number.toLong();
  return tensor;
}

// Copies the calls from |begin| to |end| of a trace into one of their own, whose parameters are what they read from
// elsewhere and whose results are what is read of theirs elsewhere.
class TracePartBuilder {
 public:
  TracePartBuilder(const Trace& whole, int begin, int end)
      : whole_(whole),
        begin_(begin),
        end_(end),
        part_(std::make_unique<Trace::Part>(whole.name_)) {}

  std::unique_ptr<Trace::Part> build() {
    const int count = static_cast<int>(whole_.calls_.size());
    for (int i = begin_; i < end_; ++i) {
      TraceCall call = whole_.calls_[i];
      for (TraceArg& argument : call.args) argument = arg(argument);
      call.generator_state = value(call.generator_state);
      part_->trace.append(std::move(call));
    }
    for (int i = end_; i < count; ++i) {
      for (const TraceArg& argument : whole_.calls_[i].args) need(argument);
      need(whole_.calls_[i].generator_state);
    }
    for (const auto& [param, value] : whole_.copies_) need(value);
    for (const Trace::ResultSpec& spec : whole_.results_) need(spec.value);
    std::vector<TraceValue> results;
    std::vector<std::vector<TraceValue>> strides;
    for (const TraceValue output : part_->outputs) {
      results.push_back(value(output));
      strides.emplace_back();
      for (const Trace::ResultSpec& spec : whole_.results_)
        if (same(spec.value, output) && strides.back().empty())
          for (const TraceValue stride : spec.strides) strides.back().push_back(value(stride));
    }
    part_->trace.set_results(std::move(results), std::move(strides));
    return std::move(part_);
  }

 private:
  static bool same(TraceValue a, TraceValue b) {
    return a.kind == b.kind && a.index == b.index && a.item == b.item;
  }
  bool is_inside(TraceValue value) const {
    return value.kind == TraceValue::Result && value.index >= begin_ && value.index < end_;
  }

  // What |value| of the whole is in the part.
  TraceValue value(TraceValue value) {
    if (value.kind == TraceValue::None) return value;
    if (value.kind == TraceValue::Int) return {TraceValue::Int, number(value.index), 0};
    if (is_inside(value)) return {TraceValue::Result, value.index - begin_, value.item};
    for (size_t i = 0; i < part_->inputs.size(); ++i)
      if (same(part_->inputs[i], value)) return {TraceValue::Param, static_cast<int32_t>(i), 0};
    part_->inputs.push_back(value);
    const bool is_state =
        value.is_generator_state() ||
        (value.kind == TraceValue::Param && whole_.param_is_generator_state_[value.index]);
    return is_state ? part_->trace.add_generator_state_param() : part_->trace.add_tensor_param();
  }

  int32_t number(int index) {
    if (const auto found = numbers_.find(index); found != numbers_.end()) return found->second;
    IntNode node = whole_.ints_[index];
    TraceValue made;
    if (node.op == IntOp::Param) {
      part_->inputs.push_back({TraceValue::Int, index, 0});
      made = part_->trace.add_int_param(node.is_float);
    } else {
      node.tensor = value(node.tensor);
      if (node.a >= 0) node.a = number(node.a);
      if (node.b >= 0) node.b = number(node.b);
      made = part_->trace.add_int(node);
    }
    numbers_[index] = made.index;
    return made.index;
  }

  TraceArg arg(const TraceArg& argument) {
    TraceArg copy = argument;
    if (copy.kind == TraceArg::Value) copy.value = value(copy.value);
    for (TraceArg& item : copy.items) item = arg(item);
    return copy;
  }

  // Marks as results what the whole needs for |value|.
  void need(TraceValue value) {
    if (value.kind == TraceValue::Int) {
      const IntNode& node = whole_.ints_[value.index];
      need(node.tensor);
      if (node.op == IntOp::Param) return;
      if (node.a >= 0) need(TraceValue{TraceValue::Int, node.a, 0});
      if (node.b >= 0) need(TraceValue{TraceValue::Int, node.b, 0});
    }
    if (!is_inside(value)) return;
    for (const TraceValue output : part_->outputs)
      if (same(output, value)) return;
    part_->outputs.push_back(value);
  }
  void need(const TraceArg& argument) {
    if (argument.kind == TraceArg::Value) need(argument.value);
    for (const TraceArg& item : argument.items) need(item);
  }

  const Trace& whole_;
  const int begin_, end_;
  std::unique_ptr<Trace::Part> part_;
  std::map<int, int32_t> numbers_;
};

std::vector<TraceItem> Trace::run_eagerly(const std::vector<TraceItem>& inputs) {
  TraceRunner runner(*this, inputs);
  for (size_t i = 0; i < calls_.size(); ++i) runner.call(static_cast<int>(i));
  return finish(runner, inputs);
}

std::vector<TraceItem> Trace::run_split(int refused, const std::vector<TraceItem>& inputs) {
  std::shared_ptr<Split> split;
  {
    std::lock_guard lock(mutex_);
    std::shared_ptr<Split>& place = splits_[refused];
    if (!place) {
      place = std::make_shared<Split>();
      const int count = static_cast<int>(calls_.size());
      if (refused > 0) place->before = TracePartBuilder(*this, 0, refused).build();
      if (refused + 1 < count) place->after = TracePartBuilder(*this, refused + 1, count).build();
    }
    split = place;
  }
  TraceRunner runner(*this, inputs);
  if (split->before) runner.part(*split->before);
  runner.call(refused);
  if (split->after) runner.part(*split->after);
  return finish(runner, inputs);
}

std::vector<TraceItem> Trace::finish(TraceRunner& runner,
                                     const std::vector<TraceItem>& inputs) const {
  std::vector<TraceItem> outputs;
  for (const ResultSpec& spec : results_) {
    if (spec.value.kind == TraceValue::Int) {
      outputs.push_back(item_of(spec.value.index, runner.integer(spec.value.index)));
      continue;
    }
    if (spec.view_base >= 0) {
      outputs.emplace_back(view_value(spec, inputs));
      continue;
    }
    const IValue value = runner.tensor(spec.value);
    if (value.isNone() || !value.toTensor().defined()) outputs.emplace_back();
    else outputs.emplace_back(value.toTensor());
  }
  std::vector<at::Tensor> values;  // all values are taken before the first parameter changes
  for (const auto& [param, value] : copies_) {
    at::Tensor tensor = runner.tensor(value).toTensor();
    values.push_back(value.kind == TraceValue::Param || calls_[value.index].is_view ? tensor.clone()
                                                                                    : tensor);
  }
  for (size_t i = 0; i < copies_.size(); ++i)
    std::get<at::Tensor>(inputs[copies_[i].first]).copy_(values[i]);
  return outputs;
}

at::Tensor Trace::view_value(const ResultSpec& spec, const std::vector<TraceItem>& inputs) const {
  TraceRunner runner(*this, inputs);
  for (const int index : spec.view_chain) runner.call(index);
  return runner.tensor(spec.value).toTensor();
}

}  // namespace tn::bridge
