// Recording a trace, and choosing the program for concrete arguments.
#include "trace.h"

#include <array>
#include <cstring>

#include "fallback.h"
#include "generator.h"
#include "trace_program.h"

namespace tn::bridge {
namespace {
constexpr size_t kMaxPrograms = 64;

bool is_view_schema(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns())
    if (result.alias_info() && !result.alias_info()->isWrite()) return true;
  return false;
}
}  // namespace

int device_of(const std::vector<TraceItem>& inputs) {
  for (const TraceItem& item : inputs)
    if (const auto* tensor = std::get_if<at::Tensor>(&item);
        tensor && tensor->device().type() == kNeuron)
      return tensor->device().index();
  return thread_state().device;
}

TraceValue Trace::add_tensor_param() {
  param_is_int_.push_back(0);
  param_is_written_.push_back(0);
  param_is_generator_state_.push_back(0);
  int_is_structural_.push_back(0);
  return {TraceValue::Param, static_cast<int32_t>(param_is_int_.size()) - 1, 0};
}

TraceValue Trace::add_generator_state_param() {
  const TraceValue param = add_tensor_param();
  param_is_generator_state_[param.index] = 1;
  return param;
}

TraceValue Trace::add_int_param(bool is_float) {
  const TraceValue param = add_tensor_param();
  param_is_int_[param.index] = 1;
  IntNode node{IntOp::Param};
  node.a = param.index;
  node.is_float = is_float;
  return add_int(node);
}

TraceValue Trace::add_int(IntNode node) {
  const auto is_dynamic = [&](int index) { return index >= 0 && ints_[index].is_dynamic; };
  node.is_dynamic = node.op == IntOp::Param ||
                    (node.op > IntOp::Numel && (is_dynamic(node.a) || is_dynamic(node.b)));
  ints_.push_back(node);
  return {TraceValue::Int, static_cast<int32_t>(ints_.size()) - 1, 0};
}

int Trace::add_call(const std::string& full, std::vector<TraceArg> args,
                    const std::vector<std::pair<std::string, TraceArg>>& keywords) {
  const size_t dot = full.find('.');
  const auto op = c10::Dispatcher::singleton().findSchema(
      {"aten::" + full.substr(0, dot), dot == std::string::npos ? "" : full.substr(dot + 1)});
  TORCH_CHECK_NOT_IMPLEMENTED(op.has_value(), "trace: no operator aten::", full);
  const c10::FunctionSchema& schema = op->schema();
  TraceCall call{*op,
                 tn_aten_op_find(full.c_str()),
                 op_account(schema.name(), schema.overload_name()),
                 {},
                 {},
                 false};
  call.is_view = is_view_schema(schema);
  const size_t count = schema.arguments().size();
  TORCH_CHECK(args.size() <= count, "trace: too many arguments for aten::", full);
  call.args = std::move(args);
  for (size_t i = call.args.size(); i < count; ++i) {
    TraceArg arg;
    const c10::Argument& argument = schema.arguments()[i];
    if (argument.default_value()) arg.constant = *argument.default_value();
    for (const auto& [name, value] : keywords)
      if (name == argument.name()) arg = value;
    call.args.push_back(std::move(arg));
  }
  for (size_t i = 0; i < count; ++i) call.kinds.push_back(arg_kind(schema.arguments()[i]));
  append(std::move(call));
  return static_cast<int>(calls_.size()) - 1;
}

void Trace::append(TraceCall call) {
  for (size_t i = 0; i < call.args.size(); ++i) {
    const ArgKind kind = call.kinds[i];
    // Numbers can be passed at launch; all other integers shape the graph.
    if (kind != ArgKind::Number && kind != ArgKind::Tensor && kind != ArgKind::Float)
      mark_structural(call.args[i]);
  }
  calls_.push_back(std::move(call));
}

void Trace::mark_structural(const TraceArg& arg) {
  if (arg.kind == TraceArg::Value) mark_structural(arg.value);
  for (const TraceArg& item : arg.items) mark_structural(item);
}

void Trace::mark_structural(TraceValue value) {
  if (value.kind != TraceValue::Int) return;
  const IntNode& node = ints_[value.index];
  if (node.op == IntOp::Param) int_is_structural_[node.a] = 1;
  if (node.op > IntOp::Numel) {
    if (node.a >= 0) mark_structural({TraceValue::Int, node.a, 0});
    if (node.b >= 0) mark_structural({TraceValue::Int, node.b, 0});
  }
}

void Trace::add_copy(TraceValue param, TraceValue value) {
  TORCH_CHECK(param.kind == TraceValue::Param && !param_is_int_[param.index],
              "trace: only a tensor parameter can be written");
  param_is_written_[param.index] = 1;
  copies_.emplace_back(param.index, value);
}

bool Trace::find_view(TraceValue value, std::vector<int>& chain, int& base) const {
  while (value.kind == TraceValue::Result) {
    const TraceCall& call = calls_[value.index];
    if (!call.is_view || value.is_generator_state() || value.item != 0 || call.args.empty() ||
        call.args[0].kind != TraceArg::Value)
      return false;
    if (call.op.schema().returns().size() != 1 ||
        call.op.schema().returns()[0].type()->kind() == c10::TypeKind::ListType)
      return false;
    chain.push_back(value.index);
    value = call.args[0].value;
  }
  if (value.kind != TraceValue::Param || param_is_int_[value.index]) return false;
  base = value.index;
  std::reverse(chain.begin(), chain.end());
  return true;
}

void Trace::set_results(std::vector<TraceValue> results,
                        std::vector<std::vector<TraceValue>> strides) {
  results_.clear();
  for (size_t i = 0; i < results.size(); ++i) {
    ResultSpec spec;
    spec.value = results[i];
    if (i < strides.size()) spec.strides = std::move(strides[i]);
    for (const TraceValue value : spec.strides) mark_structural(value);
    int base = -1;
    std::vector<int> chain;
    // The parameter itself or a view of it needs no copy, unless the parameter is overwritten.
    if (find_view(spec.value, chain, base) && !param_is_written_[base]) {
      spec.view_base = base;
      spec.view_chain = std::move(chain);
    }
    results_.push_back(std::move(spec));
  }
}

bool Trace::can_lower(const std::string& name) { return tn_aten_op_find(name.c_str()) != nullptr; }

int64_t Trace::program_count() {
  std::lock_guard lock(mutex_);
  return static_cast<int64_t>(programs_.size());
}

// ---- key -----------------------------------------------------------------------------------------------------
void Trace::encode(const std::vector<TraceItem>& inputs, std::vector<uint64_t>& key) const {
  TORCH_CHECK(inputs.size() == param_is_int_.size(), "trace ", name_, ": expected ",
              param_is_int_.size(), " inputs, got ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (param_is_int_[i]) {
      const auto* integer = std::get_if<int64_t>(&inputs[i]);
      const auto* number = std::get_if<double>(&inputs[i]);
      TORCH_CHECK(integer || number, "trace ", name_, ": input ", i, " must be a number");
      if (int_is_structural_[i])
        key.push_back(static_cast<uint64_t>(integer ? *integer : bits_of_double(*number)));
      continue;
    }
    TORCH_CHECK(std::holds_alternative<at::Tensor>(inputs[i]), "trace ", name_, ": input ", i,
                " must be a tensor");
    const at::Tensor& tensor = std::get<at::Tensor>(inputs[i]);
    if (param_is_generator_state_[i]) {
      TORCH_CHECK(tensor.is_cpu() && tensor.nbytes() == 16 && tensor.is_contiguous(), "trace ",
                  name_, ": input ", i, " must be the 16 bytes of a generator's state");
      continue;
    }
    const bool is_contiguous = tensor.is_contiguous();
    key.push_back(static_cast<uint64_t>(tensor.scalar_type()) |
                  static_cast<uint64_t>(tensor.dim()) << 8 |
                  static_cast<uint64_t>(static_cast<uint8_t>(tensor.device().index())) << 16 |
                  static_cast<uint64_t>(tensor.device().is_cpu()) << 24 |
                  static_cast<uint64_t>(is_contiguous) << 25);
    key.insert(key.end(), tensor.sizes().begin(), tensor.sizes().end());
    if (!is_contiguous) key.insert(key.end(), tensor.strides().begin(), tensor.strides().end());
  }
  for (const auto& [param, value] : copies_) {
    const at::Tensor& target = std::get<at::Tensor>(inputs[param]);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (static_cast<int>(i) == param || !std::holds_alternative<at::Tensor>(inputs[i])) continue;
      const at::Tensor& other = std::get<at::Tensor>(inputs[i]);
      if (other.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() !=
          target.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl())
        continue;
      const AliasKind kind = alias_kind(target, other);
      if (kind != AliasKind::Disjoint)
        key.push_back(static_cast<uint64_t>(kind) | static_cast<uint64_t>(param) << 8 |
                      static_cast<uint64_t>(i) << 32);
    }
  }
}

std::shared_ptr<Trace::Program> Trace::find(const std::vector<TraceItem>& inputs) {
  std::vector<uint64_t> key;
  encode(inputs, key);
  {
    std::lock_guard lock(mutex_);
    for (auto entry = programs_.begin(); entry != programs_.end(); ++entry) {
      if (entry->first != key) continue;
      programs_.splice(programs_.begin(), programs_, entry);
      return programs_.front().second;
    }
  }
  std::shared_ptr<Program> program = instantiate(inputs);
  key.clear();
  encode(inputs, key);  // lowering may have found more integers whose value matters
  std::lock_guard lock(mutex_);
  programs_.emplace_front(std::move(key), program);
  if (programs_.size() > kMaxPrograms) programs_.pop_back();
  return program;
}

// ---- running -----------------------------------------------------------------------------------------------------
std::vector<TraceItem> Trace::run(const std::vector<TraceItem>& inputs) {
  const std::shared_ptr<Program> program = find(inputs);
  if (!program->reason.empty()) {
    last_reason_ = program->reason;
    return program->refused < 0 ? run_eagerly(inputs) : run_split(program->refused, inputs);
  }
  return launch(*program, inputs);
}

std::vector<TraceItem> Trace::launch(const Program& program, const std::vector<TraceItem>& inputs) {
  const int64_t stream = thread_state().stream[program.device];
  std::vector<void*> params(program.params.size());
  std::vector<void*> results;
  std::vector<tn_scalar_t> numbers(program.params.size());
  std::vector<std::array<uint64_t, 2>> random(program.random_counts.size());
  if (!random.empty()) {
    uint64_t total = 0, state[2];
    for (const uint64_t count : program.random_counts) total += count;
    generator_of(std::nullopt, program.device)->take(total, state);
    for (size_t i = 0; i < random.size(); ++i) {
      random[i] = {state[0], state[1]};
      state[1] += program.random_counts[i];
    }
  }
  for (size_t i = 0; i < program.params.size(); ++i) {
    const TraceParamPlan& param = program.params[i];
    switch (param.kind) {
      case TraceParamPlan::Tensor: {
        const at::Tensor& tensor = std::get<at::Tensor>(inputs[param.index]);
        params[i] = param_is_written_[param.index] ? tensor.mutable_data_ptr()
                                                   : const_cast<void*>(tensor.const_data_ptr());
        break;
      }
      case TraceParamPlan::HostTensor: {
        const at::Tensor& tensor = std::get<at::Tensor>(inputs[param.index]);
        std::memcpy(&numbers[i], tensor.const_data_ptr(), tensor.itemsize());
        params[i] = &numbers[i];
        break;
      }
      case TraceParamPlan::Int: {
        numbers[i].i64 = int_value(param.index, inputs);
        params[i] = &numbers[i];
        break;
      }
      case TraceParamPlan::Random: params[i] = random[param.index].data(); break;
      case TraceParamPlan::GeneratorState:
        params[i] = const_cast<void*>(std::get<at::Tensor>(inputs[param.index]).const_data_ptr());
        break;
    }
  }
  std::vector<TraceItem> outputs(program.results.size());
  for (size_t i = 0; i < program.results.size(); ++i) {
    const TraceResultPlan& result = program.results[i];
    if (result.kind != TraceResultPlan::Fresh) continue;
    void* pointer;
    outputs[i] = make_result(result.plan, program.device, stream, &pointer);
    results.push_back(pointer);
  }
  for (const int param : program.written)
    results.push_back(std::get<at::Tensor>(inputs[param]).mutable_data_ptr());
  // Views are taken before the launch: they read metadata only.
  for (size_t i = 0; i < program.results.size(); ++i) {
    const TraceResultPlan& result = program.results[i];
    if (result.kind == TraceResultPlan::GeneratorState) {
      std::array<uint64_t, 2> state;
      if (result.index >= 0) state = random[result.index];
      else generator_of(std::nullopt, program.device)->peek(state.data());
      outputs[i] = generator_state_tensor(state.data());
    }
    if (result.kind == TraceResultPlan::Int)
      outputs[i] = item_of(result.index,
                           result.is_dynamic ? int_value(result.index, inputs) : result.constant);
    else if (result.kind == TraceResultPlan::View) outputs[i] = view_value(results_[i], inputs);
  }
  if (program.program) {
    const tn_launch_t arguments = {program.device, stream, params.data(), results.data()};
    tn_status_t status = program.driver->launch(program.program, &arguments);
    if (status) throw_status(status, name_.c_str());
  }
  for (OpAccount* account : program.accounts) count_executed(account);
  return outputs;
}

int64_t Trace::int_value(int index, const std::vector<TraceItem>& inputs) const {
  const IntNode& node = ints_[index];
  switch (node.op) {
    case IntOp::Constant: return node.constant;
    case IntOp::Param: {
      const auto* integer = std::get_if<int64_t>(&inputs[node.a]);
      if (node.is_float)
        return bits_of_double(integer ? static_cast<double>(*integer)
                                      : std::get<double>(inputs[node.a]));
      return integer ? *integer : static_cast<int64_t>(std::get<double>(inputs[node.a]));
    }
    case IntOp::Size:
    case IntOp::Stride:
    case IntOp::Numel: {
      TORCH_CHECK(node.tensor.kind == TraceValue::Param,
                  "trace: size of a computed tensor outside its program");
      const at::Tensor& tensor = std::get<at::Tensor>(inputs[node.tensor.index]);
      if (node.op == IntOp::Numel) return tensor.numel();
      return node.op == IntOp::Size ? tensor.size(node.constant) : tensor.stride(node.constant);
    }
    default:
      return int_apply(node.op, node.a >= 0 ? int_value(node.a, inputs) : 0,
                       node.b >= 0 ? int_value(node.b, inputs) : 0);
  }
}

}  // namespace tn::bridge
