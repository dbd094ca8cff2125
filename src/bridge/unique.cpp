// Distinct elements and slices.
#include <ATen/ops/any.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/diff.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/unique_consecutive.h>
#include <ATen/ops/unique_dim.h>
#include <ATen/ops/unique_dim_consecutive.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "bridge.h"
#include "fallback.h"

namespace tn::bridge {
namespace {

using at::Tensor;

OpAccount* account_unique = op_account("aten::_unique", "");
OpAccount* account_unique2 = op_account("aten::_unique2", "");

OpAccount* account_unique_dim = op_account("aten::unique_dim", "");
OpAccount* account_consecutive = op_account("aten::unique_consecutive", "");
OpAccount* account_dim_consecutive = op_account("aten::unique_dim_consecutive", "");

using Three = std::tuple<Tensor, Tensor, Tensor>;

at::TensorOptions longs_of(const Tensor& self) { return self.options().dtype(at::kLong); }

// Elementwise: whether a row differs from the one before it. One row less than |rows| has.
Tensor differs(const Tensor& rows) {
  const int64_t size = rows.size(0);
  return at::ne(rows.narrow(0, 1, size - 1), rows.narrow(0, 0, size - 1));
}

// Runs of equal rows, given which rows differ from the one before: their first rows, which run each row is in, their
// lengths.
struct Runs {
  Tensor starts, inverse, counts;
  Runs(const Tensor& differs, bool wants_inverse, bool wants_counts) {
    const auto longs = longs_of(differs);
    const Tensor is_new = at::cat({at::ones({1}, differs.options()), differs});
    starts = at::nonzero(is_new).squeeze(1);
    inverse = wants_inverse ? at::sub(at::cumsum(is_new, 0, at::kLong), 1) : at::empty({0}, longs);
    counts = wants_counts ? at::diff(at::cat({starts, at::full({1}, is_new.numel(), longs)}))
                          : at::empty({0}, longs);
  }
};

// In order, whether asked for or not.
Three distinct(const Tensor& self, bool wants_inverse, bool wants_counts) {
  const auto longs = longs_of(self);
  const Tensor flat = self.reshape(-1);
  if (flat.numel() == 0)
    return {at::empty({0}, self.options()),
            at::empty(wants_inverse ? self.sizes() : at::IntArrayRef{0}, longs),
            at::empty({0}, longs)};
  const auto [sorted, order] = at::sort(flat, 0, false);
  const Runs runs(differs(sorted), wants_inverse, wants_counts);
  Tensor inverse = runs.inverse;
  if (wants_inverse) {
    inverse = at::empty(self.sizes(), longs);
    inverse.view(-1).scatter_(0, order, runs.inverse);
  }
  return {at::index_select(sorted, 0, runs.starts), inverse, runs.counts};
}

std::tuple<Tensor, Tensor> unique(const Tensor& self, bool, bool return_inverse) {
  count_executed(account_unique);
  auto [values, inverse, counts] = distinct(self, return_inverse, false);
  return {values, inverse};
}

Three unique2(const Tensor& self, bool, bool return_inverse, bool return_counts) {
  count_executed(account_unique2);
  return distinct(self, return_inverse, return_counts);
}

// Order of equal elements within each column: 0 for the smallest.
Tensor ranks_in_columns(const Tensor& columns) {
  const auto [sorted, order] = at::sort(columns, 0, false);
  const auto longs = longs_of(columns);
  const Tensor ranks =
      at::cat({at::zeros({1, columns.size(1)}, longs), at::cumsum(differs(sorted), 0, at::kLong)});
  return at::empty(columns.sizes(), longs).scatter_(0, order, ranks);
}

// Rank of each row in lexicographic order: neighbouring columns of ranks become one until one is left.
Tensor rank_of_rows(const Tensor& rows) {
  Tensor ranks = ranks_in_columns(rows);
  while (ranks.size(1) > 1) {
    const int64_t pairs = ranks.size(1) / 2;
    const Tensor paired = ranks.narrow(1, 0, 2 * pairs).view({ranks.size(0), pairs, 2});
    Tensor joined =
        ranks_in_columns(at::add(at::mul(paired.select(2, 0), ranks.size(0)), paired.select(2, 1)));
    if (ranks.size(1) % 2) joined = at::cat({joined, ranks.narrow(1, 2 * pairs, 1)}, 1);
    ranks = joined;
  }
  return ranks.squeeze(1);
}

// Slices of |self| along |dim| as rows, or nothing if the CPU has to judge: no elements, dtypes that have no order.
std::optional<Tensor> rows_of(const Tensor& self, int64_t dim) {
  if (self.dim() == 0 || dim < -self.dim() || dim >= self.dim() || self.numel() == 0 ||
      self.is_complex())
    return std::nullopt;
  return self.movedim(dim, 0).contiguous().view({self.size(dim), -1});
}

Tensor take_slices(const Tensor& self, int64_t dim, const Tensor& positions) {
  return at::index_select(self.movedim(dim, 0), 0, positions).movedim(0, dim);
}

Three adopt(const Three& cpu, const Tensor& self) {
  const int device = self.device().index();
  return {adopt_cpu(std::get<0>(cpu), device), adopt_cpu(std::get<1>(cpu), device),
          adopt_cpu(std::get<2>(cpu), device)};
}

Three unique_dim(const Tensor& self, int64_t dim, bool is_sorted, bool wants_inverse,
                 bool wants_counts) {
  const std::optional<Tensor> rows = rows_of(self, dim);
  if (!rows)
    return adopt(at::unique_dim(cpu_alias_read(self), dim, is_sorted, wants_inverse, wants_counts),
                 self);
  count_executed(account_unique_dim);
  const Tensor ranks = rank_of_rows(*rows);
  const auto [sorted, order] = at::sort(ranks, 0, false);
  const Runs runs(differs(sorted), false, wants_counts);
  const Tensor inverse = wants_inverse ? ranks : at::empty({0}, ranks.options());
  return {take_slices(self, dim, at::index_select(order, 0, runs.starts)), inverse, runs.counts};
}

Three unique_dim_consecutive(const Tensor& self, int64_t dim, bool wants_inverse,
                             bool wants_counts) {
  const std::optional<Tensor> rows = rows_of(self, dim);
  if (!rows)
    return adopt(at::unique_dim_consecutive(cpu_alias_read(self), dim, wants_inverse, wants_counts),
                 self);
  count_executed(account_dim_consecutive);
  const Runs runs(at::any(differs(*rows), 1), wants_inverse, wants_counts);
  return {take_slices(self, dim, runs.starts), runs.inverse, runs.counts};
}

Three unique_consecutive(const Tensor& self, bool wants_inverse, bool wants_counts,
                         std::optional<int64_t> dim) {
  if (dim && !(*dim == 0 && self.dim() == 1))
    return at::unique_dim_consecutive(self, *dim, wants_inverse, wants_counts);
  const std::optional<Tensor> row = rows_of(self.reshape(-1), 0);
  if (!row)
    return adopt(at::unique_consecutive(cpu_alias_read(self), wants_inverse, wants_counts, dim),
                 self);
  count_executed(account_consecutive);
  const Tensor flat = row->view(-1);
  const Runs runs(differs(flat), wants_inverse, wants_counts);
  return {at::index_select(flat, 0, runs.starts),
          wants_inverse ? runs.inverse.view(self.sizes()) : runs.inverse, runs.counts};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_unique", TORCH_FN(unique));
  m.impl("_unique2", TORCH_FN(unique2));
  m.impl("unique_dim", TORCH_FN(unique_dim));
  m.impl("unique_dim_consecutive", TORCH_FN(unique_dim_consecutive));
  m.impl("unique_consecutive", TORCH_FN(unique_consecutive));
}

}  // namespace
}  // namespace tn::bridge
