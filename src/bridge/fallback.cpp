// Zero-copy CPU fallback, registered as the backend's boxed fallback and called by the operator functors.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/SmallVector.h>
#include <torch/library.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "bridge.h"
#include "fallback.h"
#include "generator.h"

namespace tn::bridge {
namespace {

using at::Tensor;
using c10::IValue;
using c10::StorageImpl;
using torch::jit::Stack;

// Operators that take CPU tensors beside device tensors by contract (lengths, batch sizes, indices).
bool takes_cpu_tensors(std::string_view name) {
  static constexpr std::string_view names[] = {
      "aten::index",
      "aten::index_put",
      "aten::index_put_",
      "aten::_index_put_impl_",
      "aten::_unsafe_index",
      "aten::_unsafe_index_put",
      "aten::_pack_padded_sequence",
      "aten::_pack_padded_sequence_backward",
      "aten::_pad_packed_sequence",
      "aten::tensor_split",
      "aten::_ctc_loss",
      "aten::_ctc_loss_backward",
      "aten::_copy_from",
      "aten::copy_",
      "aten::set_",
      "aten::_index_put_impl",
  };
  for (const std::string_view candidate : names)
    if (name == candidate) return true;
  return false;
}

// A result that lives on the CPU although the arguments do not.
bool is_cpu_result(std::string_view name, size_t index) {
  return name == "aten::_pack_padded_sequence" && index == 1;
}

// CPU memory as a device's: counted with it as long as a tensor of the device uses it.
struct Adopted {
  c10::Storage storage;
  int device;
  size_t size;
};
void release_adopted(void* context) {
  auto* adopted = static_cast<Adopted*>(context);
  tn_heap_count_foreign(adopted->device, adopted->size, true);
  delete adopted;
}

c10::DataPtr wrap_storage(const c10::Storage& storage, int device) {
  auto* adopted = new Adopted{storage, device, storage.nbytes()};
  tn_heap_count_foreign(device, adopted->size, false);
  return {const_cast<void*>(storage.data()), adopted, &release_adopted,
          c10::Device(kNeuron, static_cast<c10::DeviceIndex>(device))};
}

Tensor make_tensor(c10::Storage storage, c10::DispatchKey key, const Tensor& like) {
  Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage),
                                                           c10::DispatchKeySet(key), like.dtype());
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.is_conj()) impl->_set_conj(true);
  if (like.is_neg()) impl->_set_neg(true);
  return tensor;
}

// Tensors of other kinds have no counterpart on the device: says which operator met one, and what works.
void check_kind(const Tensor& tensor, const char* what, const c10::OperatorHandle* op) {
  if (__builtin_expect(tensor.layout() == c10::kStrided && !tensor.is_quantized(), 1)) return;
  std::ostringstream kind;
  if (tensor.is_quantized()) kind << "quantized (" << tensor.scalar_type() << ")";
  else kind << tensor.layout();
  TORCH_CHECK_NOT_IMPLEMENTED(false, "neuron: ", op ? op->schema().name() : "copy", " has a ",
                              kind.str(), " ", what,
                              "; tensors on neuron are dense (strided), so run it on the CPU");
}

// The aliases of one call.
class Session {
 public:
  explicit Session(int device, const c10::OperatorHandle* op = nullptr)
      : device_(device), op_(op) {}

  Tensor alias(const Tensor& original, bool is_written) {
    for (const Entry& entry : entries_)
      if (entry.original.is_same(original)) return entry.cpu;
    check_kind(original, "argument", op_);
    Tensor cpu =
        make_tensor(alias_storage(original.storage(), is_written), c10::DispatchKey::CPU, original);
    if (original.unsafeGetTensorImpl()->is_wrapped_number())
      cpu.unsafeGetTensorImpl()->set_wrapped_number(true);
    bytes_ += static_cast<int64_t>(original.nbytes());
    entries_.push_back({original, cpu});
    return cpu;
  }

  // A result of the CPU kernel as a device tensor.
  Tensor result(const Tensor& cpu) {
    if (!cpu.defined() || !cpu.device().is_cpu()) return cpu;
    for (const Entry& entry : entries_)
      if (entry.cpu.is_same(cpu)) return entry.original;
    check_kind(cpu, "result", op_);
    for (const Shared& shared : storages_)
      if (shared.cpu.unsafeGetStorageImpl() == cpu.storage().unsafeGetStorageImpl())
        return make_tensor(
            c10::Storage(c10::intrusive_ptr<StorageImpl>::reclaim_copy(shared.original)),
            c10::DispatchKey::PrivateUse1, cpu);
    bytes_ += static_cast<int64_t>(cpu.nbytes());
    return adopt_cpu(cpu, device_);
  }

  // Carries over what the kernel did to the aliases beside writing elements: new storage, new sizes.
  void write_back() {
    for (const Shared& shared : storages_) {
      StorageImpl* cpu = shared.cpu.unsafeGetStorageImpl();
      if (cpu->data() != shared.data) {
        shared.original->set_data_ptr_noswap(wrap_storage(shared.cpu, device_));
        shared.original->set_nbytes(cpu->nbytes());
      } else if (cpu->nbytes() != shared.size) {
        shared.original->set_nbytes(cpu->nbytes());
      }
    }
    for (const Entry& entry : entries_) {
      c10::TensorImpl* original = entry.original.unsafeGetTensorImpl();
      if (original->sizes() != entry.cpu.sizes() || original->strides() != entry.cpu.strides() ||
          original->storage_offset() != entry.cpu.storage_offset())
        original->set_sizes_and_strides(entry.cpu.sizes(), entry.cpu.strides(),
                                        entry.cpu.storage_offset());
    }
  }

  int64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    Tensor original, cpu;
  };
  struct Shared {
    StorageImpl* original;  // kept alive by an entry's tensor
    c10::Storage cpu;
    const void* data;
    size_t size;
  };

  c10::Storage alias_storage(const c10::Storage& storage, bool is_written) {
    StorageImpl* original = storage.unsafeGetStorageImpl();
    for (const Shared& shared : storages_)
      if (shared.original == original) return shared.cpu;
    void* data = is_written ? original->mutable_data() : const_cast<void*>(original->data());
    const size_t size = original->nbytes();
    c10::Storage cpu(
        c10::make_intrusive<StorageImpl>(StorageImpl::use_byte_size_t(), static_cast<int64_t>(size),
                                         c10::DataPtr(data, c10::Device(c10::DeviceType::CPU)),
                                         c10::GetCPUAllocator(), original->resizable()));
    storages_.push_back({original, cpu, data, size});
    return cpu;
  }

  int device_;
  const c10::OperatorHandle* op_;
  int64_t bytes_ = 0;
  c10::SmallVector<Entry, 6> entries_;
  c10::SmallVector<Shared, 6> storages_;
};

// A CPU generator whose numbers follow from the device generator's state.
at::Generator cpu_generator(const IValue& value, int device) {
  std::optional<at::Generator> chosen;
  if (value.isGenerator()) chosen = value.toGenerator();
  uint64_t state[2];
  generator_of(chosen, device)->take(4, state);
  return at::detail::createCPUGenerator(state[0] * 0x9E3779B97F4A7C15ull + state[1]);
}

bool is_generator_type(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::GeneratorType) return true;
  return type.kind() == c10::TypeKind::OptionalType &&
         type.castRaw<c10::OptionalType>()->getElementType()->kind() ==
             c10::TypeKind::GeneratorType;
}

void check_tensor_device(const Tensor& tensor, bool takes_cpu, c10::Device& found) {
  if (!tensor.defined()) return;
  const c10::Device device = tensor.device();
  if (device.is_cpu() && (takes_cpu || tensor.dim() == 0)) return;
  if (found.is_cpu()) {
    found = device;
    return;
  }
  TORCH_CHECK(device == found,
              "Expected all tensors to be on the same device, but found at least two devices, ",
              found, " and ", device, "!");
}

template <typename F>
void for_each_tensor(const IValue& value, F&& function) {
  if (value.isTensor()) {
    function(value.toTensor());
  } else if (value.isList()) {
    for (const IValue& item : value.toListRef()) {
      if (!item.isTensor()) {
        if (!item.isNone()) return;
      } else {
        function(item.toTensor());
      }
    }
  }
}

// Non-device tensors do not count, but the first device tensor decides whether a CPU tensor is a mistake.
int find_device(const c10::OperatorHandle& op, const Stack& stack) {
  const size_t count = op.schema().arguments().size();
  const IValue* args = stack.data() + (stack.size() - count);
  c10::Device found(c10::DeviceType::CPU);
  for (size_t i = 0; i < count; ++i)
    for_each_tensor(args[i], [&](const Tensor& tensor) {
      if (tensor.defined() && tensor.device().type() == kNeuron && found.is_cpu())
        found = tensor.device();
    });
  if (found.is_cpu()) {
    for (size_t i = 0; i < count; ++i)
      if (args[i].isDevice() && args[i].toDevice().type() == kNeuron)
        return device_index(args[i].toDevice());
    return thread_state().device;
  }
  const bool takes_cpu = takes_cpu_tensors(op.schema().name());
  for (size_t i = 0; i < count; ++i)
    for_each_tensor(args[i],
                    [&](const Tensor& tensor) { check_tensor_device(tensor, takes_cpu, found); });
  return found.index();
}

void convert_argument(IValue& value, const c10::Argument& argument, int device, Session& session) {
  const bool is_written = argument.alias_info() && argument.alias_info()->isWrite();
  if (value.isTensor()) {
    const Tensor& tensor = value.toTensor();
    if (tensor.defined() && tensor.device().type() == kNeuron)
      value = session.alias(tensor, is_written);
  } else if (value.isTensorList()) {
    c10::List<Tensor> list;
    list.reserve(value.toListRef().size());
    for (const IValue& item : value.toListRef()) {
      const Tensor& tensor = item.toTensor();
      list.push_back(tensor.defined() && tensor.device().type() == kNeuron
                         ? session.alias(tensor, is_written)
                         : tensor);
    }
    value = std::move(list);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const IValue& item : value.toListRef()) {
      if (item.isNone()) {
        list.push_back(std::nullopt);
      } else {
        const Tensor& tensor = item.toTensor();
        list.push_back(tensor.defined() && tensor.device().type() == kNeuron
                           ? session.alias(tensor, is_written)
                           : tensor);
      }
    }
    value = std::move(list);
  } else if (value.isDevice()) {
    if (value.toDevice().type() == kNeuron) value = c10::Device(c10::DeviceType::CPU);
  } else if ((value.isNone() || value.isGenerator()) && is_generator_type(*argument.type())) {
    value = cpu_generator(value, device);
  }
}

void convert_result(IValue& value, std::string_view name, size_t index, Session& session) {
  if (value.isTensor()) {
    if (!is_cpu_result(name, index)) value = session.result(value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const IValue& item : value.toListRef()) list.push_back(session.result(item.toTensor()));
    value = std::move(list);
  }
}

std::string short_name(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return op.schema().overload_name().empty() ? name : name + "." + op.schema().overload_name();
}

// Account of operators that reach the backend fallback, which gets no state of its own.
OpAccount* account_of(const c10::OperatorHandle& op) {
  static auto* mutex = new std::shared_mutex;
  static auto* map = new std::unordered_map<const c10::FunctionSchema*, OpAccount*>;
  const c10::FunctionSchema* key = &op.schema();
  {
    std::shared_lock lock(*mutex);
    const auto found = map->find(key);
    if (found != map->end()) return found->second;
  }
  OpAccount* account = op_account(op.schema().name(), op.schema().overload_name());
  std::unique_lock lock(*mutex);
  (*map)[key] = account;
  return account;
}

void boxed_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  static const std::string reason = "no neuron kernel";
  run_on_cpu(op, stack, account_of(op), reason, false);
}

}  // namespace

int check_same_device(const c10::OperatorHandle& op, const Stack& stack) {
  return find_device(op, stack);
}

Tensor cpu_alias(const Tensor& tensor) {
  Session session(tensor.device().index());
  return session.alias(tensor, true);
}

Tensor cpu_alias_read(const Tensor& tensor) {
  Session session(tensor.device().index());
  return session.alias(tensor, false);
}

Tensor adopt_cpu(const Tensor& cpu, int device) {
  const c10::Storage& from = cpu.storage();
  c10::Storage storage(c10::make_intrusive<StorageImpl>(
      StorageImpl::use_byte_size_t(), static_cast<int64_t>(from.nbytes()),
      wrap_storage(from, device), device_allocator(), true));
  return make_tensor(std::move(storage), c10::DispatchKey::PrivateUse1, cpu);
}

void call_cpu_kernel(const c10::OperatorHandle& op, Stack* stack, int64_t* out_bytes) {
  const c10::FunctionSchema& schema = op.schema();
  TORCH_CHECK_NOT_IMPLEMENTED(op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU),
                              "Operation ", short_name(op), " is not implemented for Neuron");
  const int device = find_device(op, *stack);
  check(tn_device_synchronize(device));
  DeviceScope scope(device);
  Session session(device, &op);
  const size_t count = schema.arguments().size();
  IValue* args = stack->data() + (stack->size() - count);
  for (size_t i = 0; i < count; ++i)
    convert_argument(args[i], schema.arguments()[i], device, session);
  {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  }
  session.write_back();
  const size_t result_count = schema.returns().size();
  IValue* results = stack->data() + (stack->size() - result_count);
  for (size_t i = 0; i < result_count; ++i) convert_result(results[i], schema.name(), i, session);
  if (out_bytes) *out_bytes = session.bytes();
}

void run_on_cpu(const c10::OperatorHandle& op, Stack* stack, OpAccount* account,
                const std::string& reason, bool has_kernel) {
  const auto start = std::chrono::steady_clock::now();
  int64_t bytes = 0;
  call_cpu_kernel(op, stack, &bytes);
  // Only now: a call that PyTorch's CPU refuses as well raises PyTorch's own error.
  TORCH_CHECK(fallback_mode() != FallbackMode::Error, "Operator '", account->name,
              "' fell back to CPU: ", reason, " (TORCH_NEURONX_FALLBACK=error)");
  TORCH_CHECK(!has_kernel || !fallback_only_for_unimplemented(),
              "CPU fallback disabled because TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS=1. "
              "Operation ",
              short_name(op), " failed to execute on Neuron: ", reason);
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::steady_clock::now() - start);
  count_fallback(account, reason, bytes, ns.count());
}

namespace {
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_fallback>());
}
}  // namespace

}  // namespace tn::bridge
