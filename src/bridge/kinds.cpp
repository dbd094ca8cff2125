// Kinds of tensors that the device does not hold: every operator on them says so, and what works instead.
#include <ATen/core/Tensor.h>
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

template <c10::BoxedKernel::BoxedKernelFunction_withDispatchKeys* function>
void add_fallback(c10::DispatchKey key) {
  // A library withdraws what it registered when it is destroyed; this one stays.
  auto* library = new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFromBoxedFunction<function>());
}

// The one operator that makes a sparse tensor of nothing, before the device has been used.
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("_sparse_coo_tensor_with_dims", torch::CppFunction::makeFromBoxedFunction<&sparse>());
}

// nn.TransformerEncoder asks whether a nested tensor can be made of a padded one. Not here: it keeps the padded one.
bool nested_tensor_from_mask_left_aligned(const at::Tensor&, const at::Tensor&) { return false; }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_nested_tensor_from_mask_left_aligned", TORCH_FN(nested_tensor_from_mask_left_aligned));
}

}  // namespace

void register_kinds() {
  static const bool is_done = [] {
    add_fallback<&sparse>(c10::DispatchKey::SparsePrivateUse1);
    add_fallback<&compressed>(c10::DispatchKey::SparseCsrPrivateUse1);
    add_fallback<&quantized>(c10::DispatchKey::QuantizedPrivateUse1);
    add_fallback<&nested>(c10::DispatchKey::NestedTensorPrivateUse1);
    return true;
  }();
  static_cast<void>(is_done);
}

}  // namespace tn::bridge
