// Building a plan: arguments to values, lowering, result layouts, compilation.
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>

#include <cstring>

#include "op.h"

namespace tn::bridge {
namespace {

using c10::IValue;

struct GraphHolder {
  tn_graph_t* graph = nullptr;
  ~GraphHolder() { tn_graph_destroy(graph); }
};

tn_graph_t* fresh_graph() {
  static thread_local GraphHolder holder;
  if (!holder.graph) check(tn_graph_create(&holder.graph));
  else tn_graph_reset(holder.graph);
  return holder.graph;
}

tn_type_t type_of(const at::Tensor& tensor) {
  return tn_type_make(to_tn(tensor.scalar_type()), static_cast<int>(tensor.dim()),
                      tensor.sizes().data());
}

class Builder {
 public:
  explicit Builder(const Call& call) : call_(call), info_(*call.info), graph_(fresh_graph()) {}

  Plan* build(std::string& out_reason, bool& out_again) {
    if (!add_tensors(out_reason)) return nullptr;
    std::vector<tn_value_t> args(info_.functional_count);
    for (int i = 0; i < info_.functional_count; ++i)
      if (!argument(i, args[i], out_reason)) return nullptr;
    const tn_node_t* random = nullptr;
    if (info_.row->flags & TN_ATEN_RANDOM) {
      const int64_t two = 2;
      const tn_type_t type = tn_type_make(TN_U64, 1, &two);
      random = tn_graph_param(graph_, &type, nullptr);
      params_.push_back({ParamPlan::Random, TN_U64, 0, 0});
    }
    static thread_local std::vector<tn_value_t> results(1024);
    int count = 0;
    uint32_t mask = 0;
    uint64_t random_count = 0;
    tn_status_t status = tn_aten_lower(info_.row, graph_, info_.functional_count, args.data(),
                                       random, static_cast<int>(results.size()), results.data(),
                                       &count, &mask, &random_count);
    note_mask(mask);
    if (status) return refuse(status, out_reason);
    find_checked_numbers(graph_, info_, params_);
    auto plan = std::make_unique<Plan>();
    plan->device = call_.device;
    plan->random_count = random_count;
    if (!add_results(*plan, count, results.data(), out_reason, out_again)) return nullptr;
    plan->params = std::move(params_);
    check(tn_driver_find(nullptr, &plan->driver));
    bool is_empty = true;
    for (const ResultPlan& result : plan->results)
      is_empty = is_empty && (result.kind >= ResultPlan::Undefined || result.bytes == 0);
    status = tn_graph_status(graph_);
    if (!status && is_empty && has_indices())  // which may be out of range nevertheless
      status =
          TN_ERROR(TN_UNIMPLEMENTED, "%s: indices into a tensor without elements", info_.row->name);
    if (!status && !is_empty) status = plan->driver->compile(graph_, &plan->program);
    if (status) return refuse(status, out_reason);
    return plan.release();
  }

 private:
  // A refusal that will repeat is a plan by itself; others (bad arguments) are not kept.
  Plan* refuse(tn_status_t status, std::string& out_reason) {
    const tn_code_t code = tn_status_code(status);
    if (code == TN_RESOURCE_EXHAUSTED) throw_status(status);
    out_reason = tn_status_message(status);
    tn_status_free(status);
    if (out_reason.empty()) out_reason = "refused";
    if (code != TN_UNIMPLEMENTED) return nullptr;
    auto* plan = new Plan;
    plan->reason = out_reason;
    return plan;
  }

  bool has_indices() const {
    bool has_tensor = false;
    for (const ParamPlan& param : params_) has_tensor |= param.kind == ParamPlan::Tensor;
    if (!has_tensor) return false;  // positions of our own making
    for (uint32_t id = 0; id < tn_graph_node_limit(graph_); ++id) {
      const tn_node_t* node = tn_graph_node_at(graph_, id);
      if (node && (node->op == TN_OP_GATHER || node->op == TN_OP_SCATTER) &&
          tn_node_int(node, TN_ATTR_BOUNDS, TN_BOUNDS_CLAMP) != TN_BOUNDS_CLAMP &&
          tn_type_element_count(&node->operands[1]->types[0]) > 0)
        return true;
    }
    return false;
  }

  void note_mask(uint32_t functional_mask) {
    uint32_t mask = 0;
    for (int i = 0; i < info_.functional_count; ++i)
      if ((functional_mask >> i & 1) && info_.functional_args[i] >= 0)
        mask |= 1u << info_.functional_args[i];
    const_cast<OpInfo&>(info_).value_mask.fetch_or(mask, std::memory_order_relaxed);
  }

  bool add_tensors(std::string& out_reason) {
    nodes_.resize(call_.tensors.size());
    param_of_.assign(call_.tensors.size(), -1);
    for (size_t i = 0; i < call_.tensors.size(); ++i) {
      const FlatTensor& flat = call_.tensors[i];
      const at::Tensor& tensor = *flat.tensor;
      if (to_tn(tensor.scalar_type()) == TN_DTYPE_NONE) {
        out_reason = std::string("dtype ") + c10::toString(tensor.scalar_type());
        return false;
      }
      if (tensor.dim() > 8) {
        out_reason = "more than 8 dimensions";
        return false;
      }
      if (info_.args[flat.arg].functional < 0) continue;  // out=
      if (flat.is_host) {
        nodes_[i] = tn_graph_scalar_param(graph_, to_tn(tensor.scalar_type()));
        params_.push_back({ParamPlan::HostTensor, static_cast<uint8_t>(to_tn(tensor.scalar_type())),
                           static_cast<int32_t>(i), 0});
        continue;
      }
      // x.add_(x): one parameter, so that the driver sees one buffer. Two read tensors stay two parameters even if
      // they are one tensor: that is not in the key, the next call may give different ones.
      if (!info_.written.empty()) {
        for (size_t j = 0; j < i && !nodes_[i]; ++j)
          if (param_of_[j] >= 0 && (flat.is_written || call_.tensors[j].is_written) &&
              alias_kind(tensor, *call_.tensors[j].tensor) == AliasKind::Same) {
            nodes_[i] = nodes_[j];
            param_of_[i] = param_of_[j];
          }
        if (nodes_[i]) continue;
      }
      const tn_type_t type = type_of(tensor);
      nodes_[i] =
          tn_graph_param(graph_, &type, tensor.is_contiguous() ? nullptr : tensor.strides().data());
      param_of_[i] = static_cast<int>(params_.size());
      params_.push_back(
          {ParamPlan::Tensor, static_cast<uint8_t>(type.dtype), static_cast<int32_t>(i), 0});
    }
    return true;
  }

  void number(const IValue& value, tn_value_t& out, ParamPlan::Kind kind, int arg, int item,
              bool as_param) {
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
      return;
    }
    if (!as_param) return;
    out.node = tn_graph_scalar_param(graph_, static_cast<tn_dtype_t>(out.dtype));
    params_.push_back({kind, out.dtype, arg, item});
  }

  void tensor_value(const at::Tensor& tensor, tn_value_t& out) {
    if (!tensor.defined()) {
      out.kind = TN_VALUE_NONE;
      return;
    }
    out.kind = TN_VALUE_TENSOR;
    out.dtype = static_cast<uint8_t>(to_tn(tensor.scalar_type()));
    out.is_wrapped_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
    for (size_t i = 0; i < call_.tensors.size(); ++i)
      if (call_.tensors[i].tensor == &tensor) out.node = nodes_[i];
  }

  template <typename T>
  T* store(size_t count) {
    return static_cast<T*>(tn_graph_alloc(graph_, sizeof(T) * (count ? count : 1)));
  }

  bool argument(int index, tn_value_t& out, std::string& out_reason) {
    std::memset(&out, 0, sizeof(out));
    const int position = info_.functional_args[index];
    const ArgInfo* arg = position >= 0 ? &info_.args[position] : nullptr;
    const IValue& value = position >= 0 ? call_.args[position] : info_.functional_defaults[index];
    if (!arg && info_.functional_is_dtype[index]) {  // arange.out: the out tensor says the dtype
      out.kind = TN_VALUE_DTYPE;
      out.dtype =
          static_cast<uint8_t>(to_tn(call_.args[info_.written[0]].toTensor().scalar_type()));
      return true;
    }
    if (value.isNone()) return true;
    const ArgKind kind = arg ? arg->kind : info_.functional_kinds[index];
    switch (kind) {
      case ArgKind::Tensor: tensor_value(value.toTensor(), out); return true;
      case ArgKind::Number:
      case ArgKind::Float:
        number(value, out, ParamPlan::Number, position, 0, arg != nullptr);
        return true;
      case ArgKind::Int:
      case ArgKind::Bool: number(value, out, ParamPlan::Number, position, 0, false); return true;
      case ArgKind::Dtype:
        out.kind = TN_VALUE_DTYPE;
        out.dtype = static_cast<uint8_t>(to_tn(static_cast<c10::ScalarType>(value.toInt())));
        if (out.dtype == TN_DTYPE_NONE) out_reason = "dtype unknown to the core";
        return out.dtype != TN_DTYPE_NONE;
      case ArgKind::Enum:
        out.kind = TN_VALUE_OTHER;
        out.scalar.i64 = value.toInt();
        return true;
      case ArgKind::Device:
      case ArgKind::Generator:
      case ArgKind::Other: out.kind = TN_VALUE_OTHER; return true;
      case ArgKind::String: {
        const std::string_view text = value.toStringView();
        char* copy = store<char>(text.size() + 1);
        std::memcpy(copy, text.data(), text.size());
        out.kind = TN_VALUE_STRING;
        out.count = static_cast<int32_t>(text.size());
        out.as.string = copy;
        return true;
      }
      case ArgKind::Ints: {
        if (!value.isList()) {
          number(value, out, ParamPlan::Number, position, 0, false);
          return true;
        }
        const c10::ArrayRef<IValue> items = value.toListRef();
        int64_t* ints = store<int64_t>(items.size());
        for (size_t i = 0; i < items.size(); ++i)
          ints[i] = items[i].isBool() ? items[i].toBool() : items[i].toInt();
        out.kind = TN_VALUE_INTS;
        out.count = static_cast<int32_t>(items.size());
        out.as.ints = ints;
        return true;
      }
      case ArgKind::Doubles: {
        const c10::ArrayRef<IValue> items = value.toListRef();
        double* doubles = store<double>(items.size());
        for (size_t i = 0; i < items.size(); ++i) doubles[i] = items[i].toDouble();
        out.kind = TN_VALUE_DOUBLES;
        out.count = static_cast<int32_t>(items.size());
        out.as.doubles = doubles;
        return true;
      }
      case ArgKind::TensorList:
      case ArgKind::Numbers: {
        const c10::ArrayRef<IValue> items = value.toListRef();
        auto* list = store<tn_value_t>(items.size());
        for (size_t i = 0; i < items.size(); ++i) {
          std::memset(&list[i], 0, sizeof(list[i]));
          if (items[i].isTensor()) list_tensor(items[i].toTensor(), list[i], position);
          else if (!items[i].isNone())
            number(items[i], list[i], ParamPlan::ListNumber, position, static_cast<int>(i), true);
        }
        out.kind = TN_VALUE_LIST;
        out.count = static_cast<int32_t>(items.size());
        out.as.list = list;
        return true;
      }
    }
    return true;
  }

  // As tensor_value, but the search goes on where the last item was found: lists can be long.
  void list_tensor(const at::Tensor& tensor, tn_value_t& out, int position) {
    if (!tensor.defined()) return;
    out.kind = TN_VALUE_TENSOR;
    out.dtype = static_cast<uint8_t>(to_tn(tensor.scalar_type()));
    out.is_wrapped_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
    while (next_list_item_ < call_.tensors.size() &&
           call_.tensors[next_list_item_].tensor != &tensor)
      ++next_list_item_;
    if (next_list_item_ < call_.tensors.size()) {
      out.node = nodes_[next_list_item_++];
    } else {  // arguments come in schema order of the overload, which can differ from the functional one's
      next_list_item_ = 0;
      tensor_value(tensor, out);
    }
  }

  int memory_format() const {
    for (size_t i = 0; i < info_.args.size(); ++i)
      if (info_.args[i].is_memory_format && call_.args[i].isInt())
        return static_cast<int>(call_.args[i].toInt());
    return -1;
  }

  // The tensors that decide the strides of result |result|: those of the call, or of its own place in every list where
  // lists give a list (_foreach_*).
  std::vector<StrideOperand> operands(int result) const {
    std::vector<StrideOperand> list;
    const bool is_by_item = info_.args[0].kind == ArgKind::TensorList &&
                            !info_.returns_list.empty() && info_.returns_list[0];
    int arg = -1, item = 0;
    for (const FlatTensor& flat : call_.tensors) {
      item = flat.arg == arg ? item + 1 : 0;
      arg = flat.arg;
      if (info_.args[flat.arg].functional < 0) continue;
      if (is_by_item && info_.args[flat.arg].kind == ArgKind::TensorList && item != result)
        continue;
      list.push_back({flat.tensor->sizes().data(), flat.tensor->strides().data(),
                      static_cast<int>(flat.tensor->dim()), to_tn(flat.tensor->scalar_type())});
    }
    return list;
  }

  // The strides of fresh result |index|.
  void strides_of(const tn_type_t& type, int index, int64_t* out) const {
    const auto rule = static_cast<tn_layout_rule_t>(info_.row->layout);
    if (rule == TN_LAYOUT_INDEX)
      return index_strides(call_.args[0].toTensor(), call_.args[1].toListRef(), type.rank,
                           type.dims, out);
    if (rule == TN_LAYOUT_STACK)
      return stack_strides(operands(index), call_.args[1].toInt(), type.rank, type.dims, out);
    layout_strides(rule, operands(index), memory_format(), type.rank, type.dims, out);
  }

  void fresh_result(Plan& plan, const tn_node_t* node, int index) {
    const tn_type_t& type = node->types[0];
    ResultPlan result = {};
    result.kind = ResultPlan::Allocate;
    result.dtype = static_cast<uint8_t>(type.dtype);
    result.rank = static_cast<int16_t>(type.rank);
    result.sizes.assign(type.dims, type.dims + type.rank);
    result.strides.resize(type.rank);
    strides_of(type, index, result.strides.data());
    result.bytes = static_cast<int64_t>(tn_dtype_size(type.dtype)) * tn_type_element_count(&type);
    int64_t next = 1;
    result.is_contiguous = true;
    for (int i = type.rank - 1; i >= 0; --i) {
      if (type.dims[i] != 1 && result.strides[i] != next) result.is_contiguous = false;
      next *= type.dims[i];
    }
    // Strides of dimensions of size 1 do not matter to kernels but users see them.
    next = 1;
    bool is_plain = true;
    for (int i = type.rank - 1; i >= 0; --i) {
      is_plain = is_plain && result.strides[i] == next;
      next *= type.dims[i] > 1 ? type.dims[i] : 1;
    }
    tn_graph_add_result(graph_, node, result.is_contiguous ? nullptr : result.strides.data());
    result.is_contiguous = is_plain;
    plan.results.push_back(std::move(result));
  }

  bool write_result(Plan& plan, const tn_node_t* node, size_t flat, std::string& out_reason,
                    bool& out_again) {
    const at::Tensor& target = *call_.tensors[flat].tensor;
    const tn_type_t& type = node->types[0];
    const c10::IntArrayRef sizes(type.dims, type.rank);
    const bool is_pointwise = info_.row->layout == TN_LAYOUT_POINTWISE;
    if (!target.is_non_overlapping_and_dense()) {
      for (int i = 0; i < static_cast<int>(target.dim()); ++i)
        if (target.sizes()[i] > 1 && target.strides()[i] == 0) {
          out_reason = "written tensor overlaps itself";
          return false;
        }
    }
    if (target.sizes() != sizes) {
      out_reason = "result does not have the size of the written tensor";
      if (info_.kind != OpKind::Out) return false;
      if (!c10::canCast(to_torch(type.dtype), target.scalar_type())) return false;
      at::native::resize_output(target, sizes);
      std::vector<int64_t> strides(type.rank);
      strides_of(type, 0, strides.data());
      target.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
      out_again = true;
      return false;
    }
    const tn_dtype_t dtype = to_tn(target.scalar_type());
    if (dtype != type.dtype) {
      out_reason = "written tensor has another dtype than the result";
      if (!is_pointwise || !c10::canCast(to_torch(type.dtype), target.scalar_type())) return false;
      node = tn_convert(graph_, node, dtype);
    }
    bool overlaps = false;
    int same_as = param_of_[flat];
    for (size_t i = 0; i < call_.tensors.size(); ++i) {
      if (i == flat || call_.tensors[i].is_host) continue;
      const AliasKind kind = alias_kind(target, *call_.tensors[i].tensor);
      if (kind == AliasKind::Overlap) {
        overlaps = true;
        out_reason = "written tensor overlaps an argument";
        // The CPU refuses some overlaps and has its own order for others. What it cannot tell from an overlap (columns of
        // one matrix) it computes, and so do we.
        if (at::get_overlap_status(target, *call_.tensors[i].tensor) !=
            at::MemOverlapStatus::TooHard)
          return false;
      } else if (kind == AliasKind::Same && info_.kind == OpKind::InPlace && param_of_[flat] >= 0 &&
                 info_.row->layout == TN_LAYOUT_CONTIGUOUS) {
        out_reason = "written tensor is an argument too";  // by index or mask: the CPU refuses
        return false;
      } else if (kind == AliasKind::Same && same_as < 0) {
        same_as = param_of_[i];
      }
    }
    ResultPlan result = {};
    result.kind = ResultPlan::Write;
    result.dtype = static_cast<uint8_t>(dtype);
    result.rank = static_cast<int16_t>(type.rank);
    result.flat = static_cast<int32_t>(flat);
    result.bytes = static_cast<int64_t>(target.nbytes());
    tn_graph_add_result(graph_, node, target.is_contiguous() ? nullptr : target.strides().data());
    tn_graph_alias_result(graph_, tn_graph_result_count(graph_) - 1, same_as, overlaps);
    plan.results.push_back(std::move(result));
    return true;
  }

  bool add_results(Plan& plan, int count, const tn_value_t* results, std::string& out_reason,
                   bool& out_again) {
    // Results come before arguments that the functional form returns anew.
    std::vector<size_t> written;
    for (const bool is_argument : {false, true})
      for (size_t i = 0; i < call_.tensors.size(); ++i)
        if (call_.tensors[i].is_written &&
            (info_.args[call_.tensors[i].arg].functional >= 0) == is_argument)
          written.push_back(i);
    int fresh_min = 0;
    bool has_fresh_list = false;
    for (size_t i = 0; i < info_.return_of.size(); ++i) {
      if (info_.return_of[i] >= 0) continue;
      if (info_.returns_list[i]) has_fresh_list = true;
      else ++fresh_min;
    }
    int fresh = count - static_cast<int>(written.size());
    if (fresh < fresh_min || (!has_fresh_list && fresh != fresh_min)) {
      out_reason = "internal: " + std::to_string(count) + " results for " +
                   std::to_string(fresh_min) + " new and " + std::to_string(written.size()) +
                   " written tensors";
      return false;
    }
    for (int i = 0; i < fresh; ++i) {
      if (results[i].kind == TN_VALUE_TENSOR && results[i].node) {
        fresh_result(plan, results[i].node, i);
      } else {
        ResultPlan plain = {};
        plain.kind =
            results[i].kind == TN_VALUE_SCALAR ? ResultPlan::Number : ResultPlan::Undefined;
        plain.bytes = results[i].scalar.i64;
        plan.results.push_back(plain);
      }
    }
    for (size_t i = 0; i < written.size(); ++i) {
      const tn_value_t& value = results[fresh + static_cast<int>(i)];
      if (value.kind != TN_VALUE_TENSOR || !value.node) continue;  // left as it was
      bool again = false;
      if (!write_result(plan, value.node, written[i], out_reason, again)) {
        if (!again) return false;
        out_again = true;  // go on: all out tensors get their size in one pass
      }
    }
    return !out_again;
  }

  const Call& call_;
  const OpInfo& info_;
  tn_graph_t* graph_;
  std::vector<const tn_node_t*> nodes_;
  std::vector<int> param_of_;
  std::vector<ParamPlan> params_;
  size_t next_list_item_ = 0;
};

}  // namespace

Plan* plan_build(const Call& call, std::string& out_reason, bool& out_again) {
  return Builder(call).build(out_reason, out_again);
}

}  // namespace tn::bridge
