// Distinct elements.
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/diff.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sub.h>
#include <torch/library.h>

#include "bridge.h"
#include "fallback.h"

namespace tn::bridge {
namespace {

using at::Tensor;

OpAccount* account_unique = op_account("aten::_unique", "");
OpAccount* account_unique2 = op_account("aten::_unique2", "");

// In order, whether asked for or not. An element is new where it differs from the one before it.
std::tuple<Tensor, Tensor, Tensor> distinct(const Tensor& self, bool wants_inverse,
                                            bool wants_counts) {
  const auto longs = self.options().dtype(at::kLong);
  const Tensor flat = self.reshape(-1);
  const int64_t size = flat.numel();
  if (size == 0)
    return {at::empty({0}, self.options()),
            at::empty(wants_inverse ? self.sizes() : at::IntArrayRef{0}, longs),
            at::empty({0}, longs)};
  const auto [sorted, order] = at::sort(flat, 0, false);
  const Tensor is_new =
      at::cat({at::ones({1}, self.options().dtype(at::kBool)),
               at::ne(sorted.narrow(0, 1, size - 1), sorted.narrow(0, 0, size - 1))});
  const Tensor starts = at::nonzero(is_new).squeeze(1);
  Tensor inverse = at::empty({0}, longs), counts = at::empty({0}, longs);
  if (wants_inverse) {
    inverse = at::empty(self.sizes(), longs);
    inverse.view(-1).scatter_(0, order, at::sub(at::cumsum(is_new, 0, at::kLong), 1));
  }
  if (wants_counts) counts = at::diff(at::cat({starts, at::full({1}, size, longs)}));
  return {at::index_select(sorted, 0, starts), inverse, counts};
}

std::tuple<Tensor, Tensor> unique(const Tensor& self, bool, bool return_inverse) {
  count_executed(account_unique);
  auto [values, inverse, counts] = distinct(self, return_inverse, false);
  return {values, inverse};
}

std::tuple<Tensor, Tensor, Tensor> unique2(const Tensor& self, bool, bool return_inverse,
                                           bool return_counts) {
  count_executed(account_unique2);
  return distinct(self, return_inverse, return_counts);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_unique", TORCH_FN(unique));
  m.impl("_unique2", TORCH_FN(unique2));
}

}  // namespace
}  // namespace tn::bridge
