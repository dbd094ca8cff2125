// Lowering a trace for concrete arguments.
#include <cstring>
#include <ATen/EmptyTensor.h>

#include "trace_program.h"

namespace tn::bridge {

using c10::IValue;

// Lowers all calls of a trace into one graph.
class TraceBuilder {
 public:
  TraceBuilder(Trace& trace, const std::vector<TraceItem>& inputs)
      : trace_(trace), inputs_(inputs) {
    check(tn_graph_create(&graph_));
  }
  ~TraceBuilder() { tn_graph_destroy(graph_); }

  // False with |reason()| if a call cannot be lowered.
  bool build(Trace::Program& program) {
    program_ = &program;
    program_->device = device_of(inputs_);
    params();
    results_.resize(trace_.calls_.size());
    random_of_call_.assign(trace_.calls_.size(), -1);
    for (size_t i = 0; i < trace_.calls_.size() && !failed_; ++i) call(static_cast<int>(i));
    if (!failed_) results();
    if (!failed_) copies();
    return !failed_;
  }
  tn_graph_t* graph() { return graph_; }
  const std::string& reason() const { return reason_; }

 private:
  void fail(const std::string& reason) {
    if (!failed_) reason_ = reason;
    failed_ = true;
  }

  void refuse(int index, const std::string& reason) {
    fail(reason);
    program_->refused = index;
  }

  void params() {
    param_nodes_.assign(inputs_.size(), nullptr);
    param_index_.assign(inputs_.size(), -1);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const auto* tensor = std::get_if<at::Tensor>(&inputs_[i]);
      if (!tensor || trace_.param_is_generator_state_[i]) continue;
      const tn_dtype_t dtype = to_tn(tensor->scalar_type());
      if (dtype == TN_DTYPE_NONE)
        return fail(std::string("dtype ") + c10::toString(tensor->scalar_type()));
      if (tensor->is_conj() || tensor->is_neg()) return fail("lazily conjugated or negated input");
      if (tensor->device().is_cpu() && tensor->dim() == 0 && !trace_.param_is_written_[i]) {
        param_nodes_[i] = tn_graph_scalar_param(graph_, dtype);
        program_->params.push_back({TraceParamPlan::HostTensor, static_cast<int32_t>(i)});
        continue;
      }
      TORCH_CHECK(
          tensor->device().type() == kNeuron && tensor->device().index() == program_->device,
          "Expected all tensors to be on the same device, but found at least two devices, neuron:",
          program_->device, " and ", tensor->device(), "!");
      for (size_t j = 0; j < i && param_index_[i] < 0; ++j) {  // one buffer, one parameter
        const auto* other = std::get_if<at::Tensor>(&inputs_[j]);
        if (!other || param_index_[j] < 0 ||
            !(trace_.param_is_written_[i] || trace_.param_is_written_[j]))
          continue;
        if (alias_kind(*tensor, *other) == AliasKind::Same) {
          param_index_[i] = param_index_[j];
          param_nodes_[i] = param_nodes_[j];
        }
      }
      if (param_index_[i] >= 0) continue;
      const tn_type_t type =
          tn_type_make(dtype, static_cast<int>(tensor->dim()), tensor->sizes().data());
      param_nodes_[i] = tn_graph_param(
          graph_, &type, tensor->is_contiguous() ? nullptr : tensor->strides().data());
      param_index_[i] = static_cast<int>(program_->params.size());
      program_->params.push_back({TraceParamPlan::Tensor, static_cast<int32_t>(i)});
    }
  }

  const tn_node_t* node_of(TraceValue value) {
    if (value.kind == TraceValue::Param) return param_nodes_[value.index];
    if (value.kind != TraceValue::Result) return nullptr;
    const auto& list = results_[value.index];
    return value.item < static_cast<int>(list.size()) ? list[value.item] : nullptr;
  }

  int64_t int_of(int index) {
    const IntNode& node = trace_.ints_[index];
    if (node.op == IntOp::Size || node.op == IntOp::Stride || node.op == IntOp::Numel) {
      if (node.tensor.kind == TraceValue::Param) return trace_.int_value(index, inputs_);
      const tn_node_t* tensor = node_of(node.tensor);
      if (!tensor) return 0;
      const tn_type_t& type = tensor->types[0];
      if (node.op == IntOp::Numel) return tn_type_element_count(&type);
      if (node.op == IntOp::Size)
        return type.dims[node.constant < 0 ? node.constant + type.rank : node.constant];
      int64_t stride = 1;
      for (int i = type.rank - 1; i > node.constant; --i) stride *= type.dims[i];
      return stride;
    }
    if (node.op < IntOp::Size) return trace_.int_value(index, inputs_);
    return int_apply(node.op, node.a >= 0 ? int_of(node.a) : 0, node.b >= 0 ? int_of(node.b) : 0);
  }

  template <typename T>
  T* store(size_t count) {
    return static_cast<T*>(tn_graph_alloc(graph_, sizeof(T) * (count ? count : 1)));
  }

  void constant_number(const IValue& value, tn_value_t& out) {
    out.kind = TN_VALUE_SCALAR;
    if (value.isDouble()) {
      out.dtype = TN_F64;
      out.scalar.f64 = value.toDouble();
    } else if (value.isInt()) {
      out.dtype = TN_I64;
      out.scalar.i64 = value.toInt();
    } else if (value.isBool()) {
      out.dtype = TN_BOOL;
      out.scalar.b = value.toBool();
    } else if (value.isComplexDouble()) {
      out.dtype = TN_C128;
      out.scalar.c128[0] = value.toComplexDouble().real();
      out.scalar.c128[1] = value.toComplexDouble().imag();
    } else {
      out.kind = TN_VALUE_NONE;
    }
  }

  void fixed_number(int index, tn_value_t& out) {
    out.kind = TN_VALUE_SCALAR;
    out.dtype = trace_.ints_[index].is_float ? TN_F64 : TN_I64;
    out.scalar.i64 = int_of(index);  // or the bits of scalar.f64
  }

  // An expression as a number; a changing one becomes a launch parameter.
  void dynamic_number(int index, tn_value_t& out) {
    fixed_number(index, out);
    if (!trace_.ints_[index].is_dynamic) return;
    if (trace_.needs_build(index))
      return trace_.mark_structural(TraceValue{TraceValue::Int, index, 0});
    out.node = tn_graph_scalar_param(graph_, static_cast<tn_dtype_t>(out.dtype));
    program_->params.push_back({TraceParamPlan::Int, index});
  }

  void tensor(const TraceArg& arg, tn_value_t& out) {
    if (arg.kind == TraceArg::Value && arg.value.kind != TraceValue::Int) {
      const tn_node_t* node = node_of(arg.value);
      if (!node) return;
      out.kind = TN_VALUE_TENSOR;
      out.node = node;
      out.dtype = static_cast<uint8_t>(node->types[0].dtype);
      if (arg.value.kind == TraceValue::Param)
        out.is_wrapped_number = std::get<at::Tensor>(inputs_[arg.value.index])
                                    .unsafeGetTensorImpl()
                                    ->is_wrapped_number();
      return;
    }
    // A number where a tensor is expected: as Python wraps it.
    tn_value_t number = {};
    if (arg.kind == TraceArg::Value) dynamic_number(arg.value.index, number);
    else constant_number(arg.constant, number);
    if (number.kind == TN_VALUE_NONE) return;
    const tn_type_t type = tn_type_make(static_cast<tn_dtype_t>(number.dtype), 0, nullptr);
    out.kind = TN_VALUE_TENSOR;
    out.dtype = number.dtype;
    out.node = number.node ? number.node : tn_constant_splat(graph_, &type, number.scalar);
    out.is_wrapped_number = true;
  }

  void value(const TraceArg& arg, ArgKind kind, tn_value_t& out) {
    std::memset(&out, 0, sizeof(out));
    if (kind == ArgKind::Tensor) return tensor(arg, out);
    if (arg.kind == TraceArg::Value) {
      if (arg.value.kind != TraceValue::Int) return;
      if (kind == ArgKind::Number || kind == ArgKind::Float)
        return dynamic_number(arg.value.index, out);
      return fixed_number(arg.value.index, out);
    }
    if (arg.kind == TraceArg::List) return list(arg, kind, out);
    const IValue& constant = arg.constant;
    if (constant.isNone()) return;
    switch (kind) {
      case ArgKind::Dtype:
        out.kind = TN_VALUE_DTYPE;
        out.dtype = static_cast<uint8_t>(to_tn(static_cast<c10::ScalarType>(constant.toInt())));
        if (out.dtype == TN_DTYPE_NONE) fail("dtype unknown to the core");
        return;
      case ArgKind::Enum:
        out.kind = TN_VALUE_OTHER;
        out.scalar.i64 = constant.toInt();
        return;
      case ArgKind::Device:
      case ArgKind::Generator:
      case ArgKind::Other: out.kind = TN_VALUE_OTHER; return;
      case ArgKind::String: {
        const std::string_view text = constant.toStringView();
        char* copy = store<char>(text.size() + 1);
        std::memcpy(copy, text.data(), text.size());
        out.kind = TN_VALUE_STRING;
        out.count = static_cast<int32_t>(text.size());
        out.as.string = copy;
        return;
      }
      default: break;
    }
    if (!constant.isList()) return constant_number(constant, out);
    TraceArg items;  // a default such as [0, 0]
    items.kind = TraceArg::List;
    for (const IValue& item : constant.toListRef())
      items.items.push_back({TraceArg::Constant, item, {}, {}});
    list(items, kind, out);
  }

  void list(const TraceArg& arg, ArgKind kind, tn_value_t& out) {
    const size_t count = arg.items.size();
    out.count = static_cast<int32_t>(count);
    if (kind == ArgKind::Ints) {
      int64_t* ints = store<int64_t>(count);
      for (size_t i = 0; i < count; ++i) {
        const TraceArg& item = arg.items[i];
        if (item.kind == TraceArg::Value) ints[i] = int_of(item.value.index);
        else ints[i] = item.constant.isBool() ? item.constant.toBool() : item.constant.toInt();
      }
      out.kind = TN_VALUE_INTS;
      out.as.ints = ints;
    } else if (kind == ArgKind::Doubles) {
      double* doubles = store<double>(count);
      for (size_t i = 0; i < count; ++i)
        doubles[i] = arg.items[i].kind == TraceArg::Value
                         ? trace_.number(arg.items[i].value.index, int_of(arg.items[i].value.index))
                               .toDouble()
                         : arg.items[i].constant.toScalar().toDouble();
      out.kind = TN_VALUE_DOUBLES;
      out.as.doubles = doubles;
    } else {
      auto* values = store<tn_value_t>(count);
      for (size_t i = 0; i < count; ++i)
        value(arg.items[i], kind == ArgKind::TensorList ? ArgKind::Tensor : ArgKind::Number,
              values[i]);
      out.kind = TN_VALUE_LIST;
      out.as.list = values;
    }
  }

  // Where call |index| reads the generator's state from; it has none of its own if it repeats another.
  TraceParamPlan random_source(int index, TraceValue state) {
    if (state.kind == TraceValue::Param) return {TraceParamPlan::GeneratorState, state.index};
    if (state.is_generator_state()) return {TraceParamPlan::Random, random_of_call_[state.index]};
    random_of_call_[index] = static_cast<int32_t>(program_->random_counts.size());
    program_->random_counts.push_back(0);
    return {TraceParamPlan::Random, random_of_call_[index]};
  }

  void call(int index) {
    TraceCall& call = trace_.calls_[index];
    const std::string& name = call.account->name;
    if (!call.row) return refuse(index, name + ": no neuron kernel");
    std::vector<tn_value_t> args(call.args.size());
    for (size_t i = 0; i < args.size(); ++i) value(call.args[i], call.kinds[i], args[i]);
    if (failed_) return refuse(index, reason_);
    const tn_node_t* random = nullptr;
    if (call.row->flags & TN_ATEN_RANDOM) {
      const int64_t two = 2;
      const tn_type_t type = tn_type_make(TN_U64, 1, &two);
      random = tn_graph_param(graph_, &type, nullptr);
      program_->params.push_back(random_source(index, call.generator_state));
    }
    static thread_local std::vector<tn_value_t> values(1024);
    int count = 0;
    uint32_t mask = 0;
    uint64_t random_count = 0;
    tn_status_t status =
        tn_aten_lower(call.row, graph_, static_cast<int>(args.size()), args.data(), random,
                      static_cast<int>(values.size()), values.data(), &count, &mask, &random_count);
    if (status) {
      refuse(index, name + ": " + tn_status_message(status));
      tn_status_free(status);
      return;
    }
    if (random && call.generator_state.kind == TraceValue::None)
      program_->random_counts.back() = random_count;
    for (size_t i = 0; i < call.args.size(); ++i)
      if (mask >> i & 1) trace_.mark_structural(call.args[i]);
    std::vector<const tn_node_t*>& nodes = results_[index];
    for (int i = 0; i < count; ++i)
      nodes.push_back(values[i].kind == TN_VALUE_TENSOR ? values[i].node : nullptr);
    program_->accounts.push_back(call.account);
  }

  void results() {
    for (const Trace::ResultSpec& spec : trace_.results_) {
      TraceResultPlan result;
      if (spec.value.is_generator_state()) {
        result.kind = TraceResultPlan::GeneratorState;
        result.index = random_of_call_[spec.value.index];
      } else if (spec.value.kind == TraceValue::Int) {
        result.kind = TraceResultPlan::Int;
        result.index = spec.value.index;
        result.is_dynamic = !trace_.needs_build(spec.value.index);
        if (!result.is_dynamic) {
          result.constant = int_of(spec.value.index);
          trace_.mark_structural(spec.value);
        }
      } else if (spec.view_base >= 0) {
        result.kind = TraceResultPlan::View;
      } else if (const tn_node_t* node = node_of(spec.value)) {
        result.kind = TraceResultPlan::Fresh;
        fresh(spec, node, result.plan);
      }
      program_->results.push_back(std::move(result));
    }
  }

  void fresh(const Trace::ResultSpec& spec, const tn_node_t* node, ResultPlan& plan) {
    const tn_type_t& type = node->types[0];
    plan.kind = ResultPlan::Allocate;
    plan.dtype = static_cast<uint8_t>(type.dtype);
    plan.rank = static_cast<int16_t>(type.rank);
    plan.sizes.assign(type.dims, type.dims + type.rank);
    plan.strides.resize(type.rank);
    int64_t next = 1, extent = 1;
    for (int i = type.rank - 1; i >= 0; --i) {
      plan.strides[i] = next;
      next *= type.dims[i] > 1 ? type.dims[i] : 1;
    }
    plan.is_contiguous = true;
    const std::vector<int64_t> plain = plan.strides;
    if (spec.strides.size() == plan.strides.size())
      for (int i = 0; i < type.rank; ++i) plan.strides[i] = int_of(spec.strides[i].index);
    bool same_order = true, is_empty = false;
    for (int i = 0; i < type.rank; ++i) {
      same_order = same_order && (type.dims[i] <= 1 || plan.strides[i] == plain[i]);
      is_empty = is_empty || type.dims[i] == 0;
      if (type.dims[i] > 1 &&
          plan.strides[i] == 0) {  // an expanded result: give it memory of its own
        plan.strides = plain;
        same_order = true;
        break;
      }
    }
    for (int i = 0; i < type.rank; ++i) extent += (type.dims[i] - 1) * plan.strides[i];
    plan.is_contiguous = plan.strides == plain;
    plan.bytes = is_empty ? 0 : extent * static_cast<int64_t>(tn_dtype_size(type.dtype));
    tn_graph_add_result(graph_, node, same_order ? nullptr : plan.strides.data());
  }

  void copies() {
    for (const auto& [param, value] : trace_.copies_) {
      const at::Tensor& target = std::get<at::Tensor>(inputs_[param]);
      const tn_node_t* node = node_of(value);
      if (!node) return fail("copy of an absent tensor");
      node = tn_convert(graph_, node, to_tn(target.scalar_type()));
      node = tn_broadcast_to(graph_, node, static_cast<int>(target.dim()), target.sizes().data());
      bool overlaps = false;
      for (size_t i = 0; i < inputs_.size(); ++i) {
        const auto* other = std::get_if<at::Tensor>(&inputs_[i]);
        if (other && static_cast<int>(i) != param &&
            alias_kind(target, *other) == AliasKind::Overlap)
          overlaps = true;
      }
      tn_graph_add_result(graph_, node, target.is_contiguous() ? nullptr : target.strides().data());
      tn_graph_alias_result(graph_, tn_graph_result_count(graph_) - 1, param_index_[param],
                            overlaps);
      program_->written.push_back(param);
    }
  }

  Trace& trace_;
  const std::vector<TraceItem>& inputs_;
  tn_graph_t* graph_ = nullptr;
  Trace::Program* program_ = nullptr;
  std::vector<const tn_node_t*> param_nodes_;
  std::vector<int> param_index_;
  std::vector<std::vector<const tn_node_t*>> results_;
  std::vector<int32_t> random_of_call_;
  bool failed_ = false;
  std::string reason_;
};

bool Trace::needs_build(int index) const {
  const IntNode& node = ints_[index];
  if (node.op == IntOp::Size || node.op == IntOp::Stride || node.op == IntOp::Numel)
    return node.tensor.kind != TraceValue::Param;
  if (node.op < IntOp::Size) return false;
  return (node.a >= 0 && needs_build(node.a)) || (node.b >= 0 && needs_build(node.b));
}

std::shared_ptr<Trace::Program> Trace::instantiate(const std::vector<TraceItem>& inputs) {
  auto program = std::make_shared<Program>();
  TraceBuilder builder(*this, inputs);
  if (!builder.build(*program)) {
    program->reason = builder.reason();
    return program;
  }
  check(tn_driver_find(nullptr, &program->driver));
  if (tn_graph_result_count(builder.graph()) == 0) return program;
  tn_status_t status = tn_graph_status(builder.graph());
  if (!status) status = program->driver->compile(builder.graph(), &program->program);
  if (status) {
    if (tn_status_code(status) == TN_RESOURCE_EXHAUSTED) throw_status(status);
    program->reason = tn_status_message(status);
    tn_status_free(status);
  }
  return program;
}

std::string Trace::describe(const std::vector<TraceItem>& inputs) {
  Program program;
  TraceBuilder builder(*this, inputs);
  TORCH_CHECK_NOT_IMPLEMENTED(builder.build(program), builder.reason());
  char* text = nullptr;
  check(tn_graph_print(builder.graph(), &text));
  std::string copy = text;
  free(text);
  return copy;
}

}  // namespace tn::bridge
