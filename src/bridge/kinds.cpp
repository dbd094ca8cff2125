// Kinds of tensors that the device does not hold: every operator on them says so, and what works instead.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "bridge.h"

namespace tn::bridge {
namespace {

[[noreturn]] void refuse(const c10::OperatorHandle& op, const char* kind) {
  const std::string& overload = op.schema().overload_name();
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "neuron: ", op.schema().name(), overload.empty() ? "" : ".", overload,
      " does not take ", kind,
      " tensors: tensors on neuron are dense (strided), so keep this one on "
      "the CPU or make it dense");
  __builtin_unreachable();
}

void sparse(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  refuse(op, "sparse");
}
void compressed(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  refuse(op, "compressed sparse");
}
void quantized(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  refuse(op, "quantized");
}
void nested(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  refuse(op, "strided nested (layout=torch.jagged works)");
}

using torch::CppFunction;
TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) {
  m.fallback(CppFunction::makeFromBoxedFunction<&sparse>());
}
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) {
  m.fallback(CppFunction::makeFromBoxedFunction<&compressed>());
}
TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, m) {
  m.fallback(CppFunction::makeFromBoxedFunction<&quantized>());
}
TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) {
  m.fallback(CppFunction::makeFromBoxedFunction<&nested>());
}

}  // namespace
}  // namespace tn::bridge
