// Call -> flat key.
#include <ATen/core/ivalue.h>

#include <cstring>

#include "op.h"

namespace tn::bridge {
namespace {

using c10::IValue;

enum Tag : uint64_t { kNone = 1, kTensor, kNumber, kList, kString, kEnum, kDevice };

struct Encoder {
  Call& call;
  const uint32_t mask;
  uint64_t *at, *end;  // free part of the key

  Encoder(Call& target, uint32_t value_mask) : call(target), mask(value_mask) {
    call.key.resize_for_overwrite(call.key.capacity());
    at = call.key.data();
    end = at + call.key.size();
  }

  // Room for |count| words and a few more: what a single argument needs beside its list.
  void reserve(size_t count) {
    if (__builtin_expect(static_cast<size_t>(end - at) < count + 8, 0)) grow(count + 8);
  }
  __attribute__((noinline, cold)) void grow(size_t count) {
    const size_t size = at - call.key.data();
    call.key.resize((size + count) * 2);
    at = call.key.data() + size;
    end = call.key.data() + call.key.size();
  }
  void push(uint64_t word) { *at++ = word; }
  void finish() { call.key.resize_for_overwrite(at - call.key.data()); }

  void odd(const char* reason) {
    if (!call.is_odd) call.odd_reason = reason;
    call.is_odd = true;
  }

  void tensor(const at::Tensor& tensor, int arg, bool is_written) {
    if (!tensor.defined()) return push(kNone);
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    const c10::Device device = impl->device();
    bool is_host = false;
    if (device.type() == kNeuron) {
      if (call.device < 0) call.device = device.index();
    } else {
      if (!device.is_cpu() || impl->layout() != c10::kStrided)
        return odd("argument on another device");
      is_host = impl->dim() == 0 && !is_written;
    }
    if (impl->is_conj() || impl->is_neg()) {
      call.is_lazy = !is_written;
      return odd("lazily conjugated or negated argument");
    }
    const c10::IntArrayRef sizes = impl->sizes();
    reserve(sizes.size() * 2);
    const bool is_contiguous = impl->is_contiguous();
    const uint64_t flags = static_cast<uint64_t>(is_contiguous) |
                           static_cast<uint64_t>(is_host) << 1 |
                           static_cast<uint64_t>(impl->is_wrapped_number()) << 2;
    push(kTensor | static_cast<uint64_t>(impl->dtype().toScalarType()) << 8 | sizes.size() << 16 |
         static_cast<uint64_t>(static_cast<uint8_t>(device.index())) << 24 | flags << 32);
    for (const int64_t size : sizes) push(static_cast<uint64_t>(size));
    if (!is_contiguous)
      for (const int64_t stride : impl->strides()) push(static_cast<uint64_t>(stride));
    call.tensors.push_back({&tensor, static_cast<uint8_t>(arg), is_written, is_host});
  }

  void number(const IValue& value, bool with_value) {
    uint64_t word = 0, second = 0, kind;
    if (value.isDouble()) {
      kind = 1;
      const double real = value.toDouble();
      std::memcpy(&word, &real, 8);
    } else if (value.isInt()) {
      kind = 2;
      word = static_cast<uint64_t>(value.toInt());
    } else if (value.isBool()) {
      kind = 3;
      word = value.toBool();
    } else if (value.isComplexDouble()) {
      kind = 4;
      const c10::complex<double> number = value.toComplexDouble();
      const double real = number.real(), imag = number.imag();
      std::memcpy(&word, &real, 8);
      std::memcpy(&second, &imag, 8);
    } else if (value.isNone()) {
      return push(kNone);
    } else {
      return odd("symbolic number");
    }
    push(kNumber | kind << 8);
    if (!with_value) return;
    push(word);
    if (kind == 4) push(second);
  }

  void list(const IValue& value, int arg, const ArgInfo& info, bool with_value) {
    if (value.isNone()) return push(kNone);
    if (!value.isList()) return number(value, with_value);  // a single int where a list is allowed
    const c10::ArrayRef<IValue> items = value.toListRef();
    push(kList | items.size() << 8);
    for (const IValue& item : items) {
      reserve(0);
      if (item.isTensor()) tensor(item.toTensor(), arg, info.is_written);
      else number(item, with_value);
    }
  }

  void string(const IValue& value) {
    if (value.isNone()) return push(kNone);
    const std::string_view text = value.toStringView();
    reserve(text.size() / 8 + 1);
    push(kString | text.size() << 8);
    for (size_t i = 0; i < text.size(); i += 8) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + i, std::min<size_t>(8, text.size() - i));
      push(word);
    }
  }

  void argument(const IValue& value, int arg, const ArgInfo& info) {
    reserve(0);
    switch (info.kind) {
      case ArgKind::Tensor:
        if (value.isTensor()) return tensor(value.toTensor(), arg, info.is_written);
        return push(kNone);
      case ArgKind::Number:
      case ArgKind::Float: return number(value, mask >> arg & 1);
      case ArgKind::Int:
      case ArgKind::Bool:
      case ArgKind::Dtype:
      case ArgKind::Enum: return number(value, true);
      case ArgKind::TensorList:
      case ArgKind::Ints:
      case ArgKind::Doubles: return list(value, arg, info, true);
      case ArgKind::Numbers: return list(value, arg, info, mask >> arg & 1);
      case ArgKind::String: return string(value);
      case ArgKind::Device:
        if (value.isDevice()) {
          const c10::Device device = value.toDevice();
          push(kDevice | static_cast<uint64_t>(device.type()) << 8);
          return;
        }
        return push(kNone);
      case ArgKind::Generator: return;
      case ArgKind::Other: return odd("argument of a type the core does not know");
    }
  }
};

struct Range {
  const c10::StorageImpl* storage;
  int64_t begin, end;  // bytes
};

Range range_of(const at::Tensor& tensor) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const auto size = static_cast<int64_t>(impl->itemsize());
  int64_t extent = 1;
  const c10::IntArrayRef sizes = impl->sizes(), strides = impl->strides();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return {nullptr, 0, 0};
    extent += (sizes[i] - 1) * strides[i];
  }
  const int64_t begin = impl->storage_offset() * size;
  return {impl->unsafe_storage().unsafeGetStorageImpl(), begin, begin + extent * size};
}

// How written tensors lie to the others: only relations beyond "disjoint" enter the key.
void encode_aliases(Call& call) {
  const size_t count = call.tensors.size();
  for (size_t i = 0; i < count; ++i) {
    if (!call.tensors[i].is_written) continue;
    const c10::StorageImpl* storage =
        call.tensors[i].tensor->unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    for (size_t j = 0; j < count; ++j) {
      if (i == j || call.tensors[j].is_host || (call.tensors[j].is_written && j < i)) continue;
      if (call.tensors[j].tensor->unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() !=
          storage)
        continue;
      const AliasKind kind = alias_kind(*call.tensors[i].tensor, *call.tensors[j].tensor);
      if (kind != AliasKind::Disjoint)
        call.key.push_back(static_cast<uint64_t>(kind) | i << 8 | j << 32);
    }
  }
}

}  // namespace

AliasKind alias_kind(const at::Tensor& a, const at::Tensor& b) {
  const Range x = range_of(a), y = range_of(b);
  if (!x.storage || x.storage != y.storage || x.end <= y.begin || y.end <= x.begin)
    return AliasKind::Disjoint;
  if (x.begin == y.begin && a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
      a.strides() == b.strides())
    return AliasKind::Same;
  return AliasKind::Overlap;
}

void call_encode(Call& call, const ThreadState& state, const OpInfo& info, const IValue* args) {
  call.info = &info;
  call.args = args;
  call.tensors.clear();
  call.device = -1;
  call.is_odd = call.is_lazy = false;
  call.odd_reason = nullptr;
  Encoder encoder(call, info.value_mask.load(std::memory_order_relaxed));
  const ArgInfo* infos = info.args.data();
  const int count = static_cast<int>(info.args.size());
  for (int i = 0; i < count; ++i) encoder.argument(args[i], i, infos[i]);
  if (call.device < 0) {
    const IValue* device = info.device_arg >= 0 ? &args[info.device_arg] : nullptr;
    call.device = device && device->isDevice() && device->toDevice().has_index()
                      ? device->toDevice().index()
                      : state.device;
    encoder.reserve(0);
    encoder.push(static_cast<uint64_t>(call.device));
  }
  encoder.finish();
  if (!info.written.empty()) encode_aliases(call);
  uint64_t hash = call.key.size() * 0x9E3779B97F4A7C15ull;
  for (const uint64_t word : call.key) {
    hash = (hash ^ word) * 0xBF58476D1CE4E5B9ull;
    hash ^= hash >> 29;
  }
  call.hash = hash;
}

}  // namespace tn::bridge
