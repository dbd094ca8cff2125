// Operators on a tensor's identity: creation, views, storage, reading values, shallow copies.
#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "bridge.h"
#include "fallback.h"
#include "op.h"
#include "tensors.h"

namespace tn::bridge {

using at::Tensor;

namespace {

OpAccount* account_empty = op_account("aten::empty", "memory_format");
OpAccount* account_empty_strided = op_account("aten::empty_strided", "");
OpAccount* account_resize = op_account("aten::resize_", "");
OpAccount* account_item = op_account("aten::_local_scalar_dense", "");

int check_options(std::optional<at::Layout> layout, std::optional<at::Device> device,
                  std::optional<bool> pin_memory) {
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided,
              "neuron: only strided tensors are supported, not ", layout.value_or(at::kStrided));
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  return device_index(device.value_or(c10::Device(kNeuron)));
}

Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
             std::optional<at::Layout> layout, std::optional<at::Device> device,
             std::optional<bool> pin_memory, std::optional<at::MemoryFormat> memory_format) {
  const int index = check_options(layout, device, pin_memory);
  count_executed(account_empty);
  const at::ScalarType type = at::dtype_or_default(dtype);
  auto bytes = static_cast<int64_t>(c10::elementSize(type));
  bool is_plain = !memory_format || *memory_format == at::MemoryFormat::Contiguous;
  for (const int64_t extent : size)
    is_plain = is_plain && extent >= 0 && !__builtin_mul_overflow(bytes, extent, &bytes);
  if (__builtin_expect(is_plain, 1)) {
    void* pointer;
    Tensor tensor = make_block(bytes, type, index, thread_state().stream[index], &pointer);
    if (size.size() != 1 || size[0] != 0) tensor.unsafeGetTensorImpl()->set_sizes_contiguous(size);
    return tensor;
  }
  DeviceScope scope(index);
  return Tensor(at::detail::empty_generic(size, device_allocator(), kNeuronKeys,
                                          at::dtype_or_default(dtype), memory_format));
}

Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                     std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                     std::optional<at::Device> device, std::optional<bool> pin_memory) {
  DeviceScope scope(check_options(layout, device, pin_memory));
  count_executed(account_empty_strided);
  return Tensor(at::detail::empty_strided_generic(size, stride, device_allocator(), kNeuronKeys,
                                                  at::dtype_or_default(dtype)));
}

const Tensor& resize_(const Tensor& self, at::IntArrayRef size,
                      std::optional<at::MemoryFormat> memory_format) {
  DeviceScope scope(self.device().index());
  count_executed(account_resize);
  return at::native::resize_(self, size, memory_format);
}

Tensor& set_storage(Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return at::native::set_storage_cpu_(self, std::move(source), 0, {count}, {});
}
Tensor& set_storage_offset(Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                           at::IntArrayRef stride) {
  TORCH_CHECK(source.device() == self.device() || source.nbytes() == 0,
              "Attempted to set the storage of a tensor on ", "device \"", self.device(),
              "\" to a storage on different device \"", source.device(),
              "\".  This is no longer allowed; the devices must match.");
  DeviceScope scope(self.device().index());
  return at::native::set_storage_cpu_(self, std::move(source), offset, size, stride);
}
Tensor& set_empty(Tensor& self) {
  DeviceScope scope(self.device().index());
  at::Storage storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), 0,
                                                            device_allocator(), true));
  return at::native::set_storage_cpu_(self, std::move(storage), 0, {0}, {});
}

at::Scalar local_scalar_dense(const Tensor& self) {
  check(tn_device_synchronize(self.device().index()));
  count_executed(account_item);
  if (!self.is_conj() && !self.is_neg() && self.numel() == 1) {
    const void* data = self.const_data_ptr();
    switch (self.scalar_type()) {
      case at::kFloat: return *static_cast<const float*>(data);
      case at::kDouble: return *static_cast<const double*>(data);
      case at::kLong: return *static_cast<const int64_t*>(data);
      case at::kInt: return *static_cast<const int32_t*>(data);
      case at::kBool: return *static_cast<const uint8_t*>(data) != 0;
      case at::kHalf: return *static_cast<const at::Half*>(data);
      case at::kBFloat16: return *static_cast<const at::BFloat16*>(data);
      default: break;
    }
  }
  return at::native::_local_scalar_dense_cpu(cpu_alias_read(self));
}

void record_stream(Tensor& self, at::Stream stream) {
  device_index(stream.device());
  if (self.storage().data())
    tn_heap_record_stream(const_cast<void*>(self.storage().data()), stream.id());
}

bool has_compatible_shallow_copy_type(const Tensor& self, const Tensor& from) {
  const auto is_dense = [](const Tensor& tensor) {
    return tensor.layout() == at::kStrided &&
           (tensor.device().is_cpu() || tensor.device().type() == kNeuron) &&
           !tensor.is_quantized() && !tensor.is_nested();
  };
  return is_dense(self) && is_dense(from);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_unsafe_view",
         TORCH_FN(at::native::_unsafe_view));  // an alias, although its schema says nothing of it
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("set_.source_Storage", TORCH_FN(set_storage));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage_offset));
  m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  m.impl("set_", TORCH_FN(set_empty));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
}
}  // namespace

}  // namespace tn::bridge
