// Copies: host to device, device to host, device to device, with conversion, broadcast, conj and neg.
#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <cstring>

#include "bridge.h"
#include "fallback.h"
#include "op.h"
#include "tensors.h"

namespace tn::bridge {

using at::Tensor;

namespace {

OpAccount* account_copy = op_account("aten::copy_", "");

bool is_neuron(const Tensor& tensor) { return tensor.device().type() == kNeuron; }

void check_device(const Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      (tensor.device().is_cpu() || is_neuron(tensor)) && tensor.layout() == at::kStrided,
      "neuron: cannot copy from or to a ", tensor.layout(), " tensor on ", tensor.device());
}

// Bytes in the same order on both sides.
bool is_plain(const Tensor& self, const Tensor& src) {
  return self.dtype() == src.dtype() && self.is_conj() == src.is_conj() &&
         self.is_neg() == src.is_neg() && self.sizes() == src.sizes() &&
         self.is_non_overlapping_and_dense() &&
         (self.strides() == src.strides() || (self.is_contiguous() && src.is_contiguous()));
}

}  // namespace

Tensor materialise(const Tensor& tensor) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  Tensor plain = tensor;
  if (plain.is_conj()) plain = at::_conj(plain);
  if (plain.is_neg()) plain = at::_neg_view(plain);
  plain = plain.clone();
  if (tensor.is_neg()) plain.neg_();
  if (tensor.is_conj()) at::view_as_real(plain).select(-1, 1).neg_();
  return plain;
}

Tensor& copy_into(Tensor& self, const Tensor& src, bool) {
  TORCH_CHECK(self.defined() && src.defined(), "copy_: undefined tensor");
  if (self.is_same(src)) return self;
  check_device(self);
  check_device(src);
  for (const Tensor* tensor : {static_cast<const Tensor*>(&self), &src})
    if (is_neuron(*tensor)) check(tn_device_synchronize(tensor->device().index()));
  if (self.is_alias_of(src)) at::assert_no_partial_overlap(self, src);
  if (is_plain(self, src)) {
    count_executed(account_copy);
    const size_t size = self.nbytes();
    if (size) std::memmove(self.mutable_data_ptr(), src.const_data_ptr(), size);
    return self;
  }
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (self.is_conj() || self.is_neg()) {  // the same bits flipped on both sides
    Tensor to = self.is_conj() ? at::_conj(self) : at::_neg_view(self);
    const bool is_alike = src.scalar_type() == self.scalar_type();
    const Tensor from = is_alike ? src : src.to(self.scalar_type());  // not all types have a minus
    copy_into(to, self.is_conj() ? from.conj() : at::_neg_view(from), false);
    return self;
  }
  if (src.is_conj() || src.is_neg())
    return copy_into(self, is_neuron(src) ? materialise(src) : src.resolve_conj().resolve_neg(),
                     false);
  if (self.layout() == at::kStrided) {
    static auto* copy = new Operator("aten::copy_", "", "copy", OpKind::InPlace);
    torch::jit::Stack stack = {self, src, false};
    if (copy->run(&stack)) return self;
  }
  count_executed(account_copy);
  Tensor to = is_neuron(self) ? cpu_alias(self) : self;
  to.copy_(is_neuron(src) ? cpu_alias_read(src) : src);
  return self;
}

namespace {

Tensor copy_from(const Tensor& self, const Tensor& to, bool non_blocking) {
  Tensor target = to;
  copy_into(target, self, non_blocking);
  return to;
}

Tensor conj_physical(const Tensor& self) {
  return self.is_complex() ? materialise(at::_conj(self)) : self;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& to) {
  if (to.sizes() != self.sizes()) to.resize_(self.sizes());
  return copy_from(self, to, false);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("copy_", TORCH_FN(copy_into));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_conj_physical", TORCH_FN(conj_physical));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
}
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace
}  // namespace tn::bridge
