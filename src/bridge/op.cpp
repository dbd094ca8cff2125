// Running one operator: key, plan, launch; else the CPU.
#include "op.h"

#include <c10/util/SmallVector.h>

#include <cstring>

#include "fallback.h"
#include "generator.h"
#include "tensors.h"

namespace tn::bridge {
namespace {

using c10::IValue;
using torch::jit::Stack;

void free_block(void* pointer) { tn_heap_free(pointer); }

const void* data_of(const at::Tensor& tensor, bool is_written) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  const auto* base =
      static_cast<const char*>(is_written ? storage->mutable_data() : storage->data());
  return base ? base + impl->storage_offset() * static_cast<int64_t>(impl->itemsize()) : nullptr;
}

void number_value(const IValue& value, tn_scalar_t& out) {
  out = {};
  if (value.isDouble()) {
    out.f64 = value.toDouble();
  } else if (value.isInt()) {
    out.i64 = value.toInt();
  } else if (value.isBool()) {
    out.b = value.toBool();
  } else if (value.isComplexDouble()) {
    out.c128[0] = value.toComplexDouble().real();
    out.c128[1] = value.toComplexDouble().imag();
  }
}

std::optional<at::Generator> generator_argument(const OpInfo& info, const IValue* args) {
  if (info.generator < 0 || !args[info.generator].isGenerator()) return std::nullopt;
  return args[info.generator].toGenerator();
}

// Results that the program does not write into an argument, in order.
struct FreshList {
  c10::SmallVector<IValue, 4> values;
  void add(at::Tensor&& tensor) { values.emplace_back(std::move(tensor)); }
  void add(int64_t number) { values.emplace_back(number); }
};
struct FreshTensor {
  at::Tensor& tensor;
  void add(at::Tensor&& result) { tensor = std::move(result); }
  void add(int64_t) {}
};

bool fits(const ParamPlan& param, const tn_scalar_t& value) {
  return param.checked == TN_DTYPE_NONE ||
         !number_overflows(value, static_cast<tn_dtype_t>(param.dtype), param.checked);
}

// Launches |plan|. |fresh| receives the allocated results in order.
template <typename Fresh>
tn_status_t launch(const Plan& plan, const Call& call, const ThreadState& state, Fresh& fresh) {
  const int64_t stream = state.stream[plan.device];
  const size_t param_count = plan.params.size(), result_count = plan.results.size();
  c10::SmallVector<void*, 24> pointers(param_count + result_count);
  c10::SmallVector<tn_scalar_t, 8> numbers(param_count);
  uint64_t random_state[2];
  bool all_fit = true;
  for (size_t at = 0; at < param_count; ++at) {
    const ParamPlan& param = plan.params[at];
    void*& pointer = pointers[at];
    switch (param.kind) {
      case ParamPlan::Tensor: {
        const FlatTensor& flat = call.tensors[param.index];
        pointer = const_cast<void*>(data_of(*flat.tensor, flat.is_written));
        break;
      }
      case ParamPlan::HostTensor: {
        const at::Tensor& tensor = *call.tensors[param.index].tensor;
        numbers[at] = {};
        std::memcpy(&numbers[at], data_of(tensor, false), tensor.itemsize());
        pointer = &numbers[at];
        break;
      }
      case ParamPlan::Number:
        number_value(call.args[param.index], numbers[at]);
        all_fit &= fits(param, numbers[at]);
        pointer = &numbers[at];
        break;
      case ParamPlan::ListNumber:
        number_value(call.args[param.index].toListRef()[param.item], numbers[at]);
        all_fit &= fits(param, numbers[at]);
        pointer = &numbers[at];
        break;
      case ParamPlan::Random:
        generator_of(generator_argument(*call.info, call.args), plan.device)
            ->take(plan.random_count, random_state);
        pointer = random_state;
        break;
    }
  }
  if (__builtin_expect(!all_fit, 0))
    return TN_ERROR(TN_INVALID_ARGUMENT, "a number does not fit the tensor's dtype");
  size_t filled = param_count;
  for (const ResultPlan& result : plan.results) {
    if (result.kind == ResultPlan::Allocate) {
      void* pointer;
      at::Tensor tensor = make_result(result, plan.device, stream, &pointer);
      pointers[filled++] = pointer;
      fresh.add(std::move(tensor));
    } else if (result.kind == ResultPlan::Write) {
      pointers[filled++] = const_cast<void*>(data_of(*call.tensors[result.flat].tensor, true));
    } else if (result.kind == ResultPlan::Number) {
      fresh.add(result.bytes);
    } else {
      fresh.add(at::Tensor());
    }
  }
  if (!plan.program) return TN_OK;
  const tn_launch_t arguments = {plan.device, stream, pointers.data(),
                                 pointers.data() + param_count};
  return plan.driver->launch(plan.program, &arguments);
}

// Replaces the arguments on |stack| by the results.
void put_results(const OpInfo& info, Stack* stack, c10::SmallVectorImpl<IValue>& fresh) {
  const size_t arg_count = info.args.size(), return_count = info.return_of.size();
  IValue* args = stack->data() + (stack->size() - arg_count);
  if (return_count == 1 && !info.returns_list[0]) {
    IValue result =
        std::move(info.return_of[0] >= 0 ? args[info.written[info.return_of[0]]] : fresh[0]);
    stack->erase(stack->end() - arg_count, stack->end());
    stack->push_back(std::move(result));
    return;
  }
  c10::SmallVector<IValue, 6> results;
  size_t next = 0, list_size = fresh.size();
  for (size_t i = 0; i < return_count; ++i)
    if (info.return_of[i] < 0 && !info.returns_list[i]) --list_size;
  for (size_t i = 0; i < return_count; ++i) {
    if (info.return_of[i] >= 0) {
      results.push_back(args[info.written[info.return_of[i]]]);
    } else if (info.returns_list[i]) {  // at most one list is new
      c10::List<at::Tensor> list;
      list.reserve(list_size);
      for (size_t j = 0; j < list_size; ++j) list.push_back(std::move(fresh[next++]).toTensor());
      results.push_back(std::move(list));
    } else {
      results.push_back(std::move(fresh[next++]));
    }
  }
  stack->erase(stack->end() - arg_count, stack->end());
  for (IValue& result : results) stack->push_back(std::move(result));
}

// Replaces conjugated and negated views that are read by tensors with their values. False if there are none.
bool materialise_arguments(const OpInfo& info, Stack* stack) {
  IValue* args = stack->data() + (stack->size() - info.args.size());
  const auto is_lazy = [](const IValue& value) {
    return value.isTensor() && value.toTensor().defined() &&
           value.toTensor().device().type() == kNeuron &&
           (value.toTensor().is_conj() || value.toTensor().is_neg());
  };
  bool is_changed = false;
  for (size_t i = 0; i < info.args.size(); ++i) {
    if (info.args[i].is_written) continue;
    if (is_lazy(args[i])) {
      args[i] = materialise(args[i].toTensor());
      is_changed = true;
    } else if (args[i].isTensorList()) {
      c10::List<at::Tensor> list;
      for (const IValue& item : args[i].toListRef())
        list.push_back(is_lazy(item) ? materialise(item.toTensor()) : item.toTensor());
      args[i] = std::move(list);
      is_changed = true;
    }
  }
  return is_changed;
}

void fall_back(const c10::OperatorHandle& op, const OpInfo& info, Stack* stack,
               const std::string& reason) {
  run_on_cpu(op, stack, info.account, reason, info.row != nullptr);
}

Plan*& recent_slot(Scratch& scratch, const PlanCache& cache, uint64_t hash) {
  const uint64_t mixed = hash ^ reinterpret_cast<uintptr_t>(&cache) / alignof(std::max_align_t);
  return scratch.recent[(mixed ^ mixed >> 32) % Scratch::kRecent];
}

bool is_plan_of(const Plan* plan, const PlanCache& cache, const Call& call) {
  return plan && plan->owner == &cache && plan->hash == call.hash &&
         plan->key.size() == call.key.size() &&
         !std::memcmp(plan->key.data(), call.key.data(), call.key.size() * sizeof(uint64_t));
}

// Keeps |plan|, whose reference it takes over, where the thread's next call looks first.
void remember(Plan*& recent, Plan* plan) {
  if (recent) plan_release(recent);
  recent = plan;
}

}  // namespace

at::Tensor make_block(int64_t bytes, c10::ScalarType dtype, int device, int64_t stream,
                      void** out_pointer) {
  void* pointer = nullptr;
  if (bytes) check(tn_heap_allocate(device, static_cast<size_t>(bytes), stream, &pointer));
  *out_pointer = pointer;
  return at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(c10::make_intrusive<c10::StorageImpl>(
          c10::StorageImpl::use_byte_size_t(), bytes,
          c10::DataPtr(pointer, pointer, &free_block,
                       c10::Device(kNeuron, static_cast<c10::DeviceIndex>(device))),
          device_allocator(), true)),
      kNeuronKeys, caffe2::TypeMeta::fromScalarType(dtype));
}

at::Tensor make_result(const ResultPlan& result, int device, int64_t stream, void** out_pointer) {
  at::Tensor tensor = make_block(result.bytes, to_torch(static_cast<tn_dtype_t>(result.dtype)),
                                 device, stream, out_pointer);
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (!result.is_contiguous) impl->set_sizes_and_strides(result.sizes, result.strides);
  else if (result.rank != 1 || result.sizes[0] != 0) impl->set_sizes_contiguous(result.sizes);
  return tensor;
}

bool run_known(const OpInfo& info, PlanCache& cache, const IValue* args, at::Tensor& out_fresh) {
  ThreadState& state = thread_state();
  Scratch& scratch = scratch_of(state);
  Call& call = scratch.call;
  call_encode(call, state, info, args);
  if (__builtin_expect(call.is_odd, 0)) return false;
  Plan* plan = recent_slot(scratch, cache, call.hash);
  if (__builtin_expect(!is_plan_of(plan, cache, call) || !plan->reason.empty(), 0)) return false;
  FreshTensor fresh{out_fresh};
  tn_status_t status = launch(*plan, call, state, fresh);
  if (__builtin_expect(status != TN_OK, 0)) {
    const tn_code_t code = tn_status_code(status);
    // The general way launches again, finds the same and goes to the CPU.
    if (code != TN_OUT_OF_RANGE && code != TN_UNIMPLEMENTED && code != TN_INVALID_ARGUMENT)
      throw_status(status, info.name.c_str());
    tn_status_free(status);
    return false;
  }
  count_executed(info.account);
  return true;
}

void run_operator(const c10::OperatorHandle& op, OpInfo& info, PlanCache& cache, Stack* stack) {
  ThreadState& state = thread_state();
  Scratch& scratch = scratch_of(state);
  Call& call = scratch.call;
  const IValue* args = stack->data() + (stack->size() - info.args.size());
  call_encode(call, state, info, args);
  if (info.device_arg >= 0 && !call.tensors.empty() && args[info.device_arg].isDevice()) {
    const c10::Device device = args[info.device_arg].toDevice();
    // x.to("cpu"), zeros_like(x, device=...): composites of empty and copy_, which know all devices.
    if (device.type() != kNeuron || (device.has_index() && device.index() != call.device))
      return op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  }
  if (__builtin_expect(call.is_odd, 0)) {
    if (!call.is_lazy || !materialise_arguments(info, stack))
      return fall_back(op, info, stack, call.odd_reason);
    call_encode(call, state, info, args);
    if (call.is_odd) return fall_back(op, info, stack, call.odd_reason);
  }
  Plan* plan = recent_slot(scratch, cache, call.hash);
  if (__builtin_expect(!is_plan_of(plan, cache, call), 0)) {
    plan = cache.find(call.key.data(), call.key.size(), call.hash);
    if (!plan) {
      check_same_device(op, *stack);
      std::string reason;
      bool again = false;
      plan = plan_build(call, reason, again);
      if (again) {  // an out= tensor was resized: its layout belongs to the key
        call_encode(call, state, info, args);
        plan = cache.find(call.key.data(), call.key.size(), call.hash);
        again = false;
        if (!plan) plan = plan_build(call, reason, again);
        if (again) return fall_back(op, info, stack, "out= cannot take the result's size");
      }
      if (!plan) return fall_back(op, info, stack, reason);
      call_encode(call, state, info, args);  // the lowering may have asked for values in the key
      if (!plan->owner) cache.insert(call.key.data(), call.key.size(), call.hash, plan);
    }
    remember(recent_slot(scratch, cache, call.hash), plan);
  }
  if (__builtin_expect(!plan->reason.empty(), 0)) return fall_back(op, info, stack, plan->reason);
  FreshList fresh;
  tn_status_t status = launch(*plan, call, state, fresh);
  if (__builtin_expect(status != TN_OK, 0)) {
    const tn_code_t code = tn_status_code(status);
    if (code == TN_OUT_OF_RANGE || code == TN_UNIMPLEMENTED || code == TN_INVALID_ARGUMENT) {
      const std::string reason = tn_status_message(status);
      tn_status_free(status);
      fresh.values.clear();
      return fall_back(op, info, stack, reason);
    }
    throw_status(status, info.name.c_str());
  }
  count_executed(info.account);
  put_results(info, stack, fresh.values);
}

}  // namespace tn::bridge
