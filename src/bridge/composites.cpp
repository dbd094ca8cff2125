// nonzero, masked_select, equal, batch norm, and the choice of attention.
#include "tn/options.h"
#include "composites.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/Resize.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_native_batch_norm_legit.h>
#include <ATen/ops/_native_batch_norm_legit_no_training.h>
#include <ATen/ops/all.h>
#include <ATen/ops/any.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/broadcast_tensors.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/max_pool1d_native.h>
#include <ATen/ops/multinomial_native.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/one_hot_native.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/resize.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "bridge.h"
#include "fallback.h"

namespace tn::bridge {
namespace {

using at::Tensor;

// Positions of the true elements of a rank-1 bool tensor: a running count gives each one its place.
Tensor true_positions(const Tensor& mask) {
  const int64_t size = mask.numel();
  const auto options = mask.options().dtype(at::kLong);
  if (size == 0) return at::empty({0}, options);
  const Tensor places = at::cumsum(mask, 0, at::kLong);
  const int64_t count = places.select(0, size - 1).item<int64_t>();
  if (count == 0) return at::empty({0}, options);
  // False elements all land in one extra place behind the end.
  const Tensor target = at::where(mask, at::sub(places, 1), at::scalar_tensor(count, options));
  const Tensor out = at::empty({count + 1}, options);
  out.scatter_(0, target, at::arange(size, options));
  return out.narrow(0, 0, count);
}

// Rank-1 positions as one index tensor per dimension of |sizes|.
std::vector<Tensor> unravel(Tensor positions, at::IntArrayRef sizes) {
  std::vector<Tensor> columns(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    columns[i] = i == 0 ? positions : at::remainder(positions, sizes[i]);
    if (i > 0) positions = at::div(positions, sizes[i], "floor");
  }
  return columns;
}

OpAccount* account_nonzero = op_account("aten::nonzero", "");
OpAccount* account_masked_select = op_account("aten::masked_select", "");
OpAccount* account_repeat_interleave = op_account("aten::repeat_interleave", "Tensor");
OpAccount* account_equal = op_account("aten::equal", "");
OpAccount* account_randperm = op_account("aten::randperm", "");
OpAccount* account_multinomial = op_account("aten::multinomial", "");
OpAccount* account_assert = op_account("aten::_assert_async", "");
OpAccount* account_isin = op_account("aten::isin", "Tensor_Tensor");
OpAccount* account_one_hot = op_account("aten::one_hot", "");
OpAccount* account_batch_norm = op_account("aten::native_batch_norm", "");

// |result| in |out|, which takes its size.
Tensor& put_out(const Tensor& result, Tensor& out) {
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

Tensor nonzero(const Tensor& self) {
  count_executed(account_nonzero);
  const Tensor mask = (self.scalar_type() == at::kBool ? self : at::ne(self, 0)).reshape(-1);
  const Tensor positions = true_positions(mask);
  const int64_t count = positions.numel(), rank = self.dim();
  if (rank == 0 || count == 0) return at::empty({count, rank}, positions.options());
  if (rank == 1) return positions.unsqueeze(1).contiguous();
  return at::stack(unravel(positions, self.sizes()), 0).t();  // the layout of the CPU kernel
}

Tensor& nonzero_out(const Tensor& self, Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong,
              "nonzero: Expected out tensor to have scalar type Long but got scalar type ",
              out.scalar_type());
  TORCH_CHECK(self.device() == out.device(),
              "expected self and out to be on the same device, but got out on ", out.device(),
              " and self on ", self.device());
  return put_out(bridge::nonzero(self), out);
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool || mask.scalar_type() == at::kByte,
              "masked_select: expected BoolTensor or ByteTensor for mask");
  TORCH_CHECK(self.device() == mask.device() || mask.dim() == 0,
              "Expected all tensors to be on the same device, but found at least two devices, ",
              self.device(), " and ", mask.device(), "!");
  count_executed(account_masked_select);
  const std::vector<Tensor> both = at::broadcast_tensors({mask.to(self.device()), self});
  Tensor flat = both[0].reshape(-1);
  if (flat.scalar_type() != at::kBool) flat = at::ne(flat, 0);
  return at::index_select(both[1].reshape(-1), 0, true_positions(flat));
}

Tensor& masked_select_out(const Tensor& self, const Tensor& mask, Tensor& out) {
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "masked_select(): self and result must have the same scalar type");
  return put_out(bridge::masked_select(self, mask), out);
}

// Position i stands repeats[i] times: a running count of the runs' ends.
Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK(repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt,
              "repeats has to be Long or Int tensor");
  count_executed(account_repeat_interleave);
  if (repeats.numel() == 0) return at::empty_like(repeats);
  TORCH_CHECK(at::all(at::ge(repeats, 0)).item<bool>(), "repeats can not be negative");
  const Tensor ends = at::cumsum(repeats, 0, at::kLong);
  const int64_t size = ends.select(0, ends.numel() - 1).item<int64_t>();
  TORCH_CHECK(!output_size || *output_size == size, "allocated size does not match required size");
  const Tensor marks = at::zeros({size + 1}, ends.options());
  marks.scatter_add_(0, ends, at::ones(ends.sizes(), ends.options()));
  return at::cumsum(marks, 0).narrow(0, 0, size).to(repeats.scalar_type());
}

bool equal(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.device() == other.device(),
              "Expected all tensors to be on the same device, but found at least two devices, ",
              self.device(), " and ", other.device(), "!");
  TORCH_CHECK(self.dtype() == other.dtype(), "Expected object of data type ", self.scalar_type(),
              " but got data type ", other.scalar_type(), " for argument 'other' in call to equal");
  if (self.sizes() != other.sizes()) return false;
  count_executed(account_equal);
  if (self.numel() == 0) return true;
  return at::all(at::eq(self, other)).item<bool>();
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input,
                                                     const std::optional<Tensor>& weight,
                                                     const std::optional<Tensor>& bias,
                                                     const std::optional<Tensor>& running_mean,
                                                     const std::optional<Tensor>& running_var,
                                                     bool training, double momentum, double eps) {
  count_executed(account_batch_norm);
  const bool has_stats = running_mean && running_mean->defined();
  if (!has_stats) return at::_native_batch_norm_legit(input, weight, bias, training, momentum, eps);
  Tensor mean = *running_mean, var = *running_var;
  if (training)
    return at::_native_batch_norm_legit(input, weight, bias, mean, var, true, momentum, eps);
  return at::_native_batch_norm_legit_no_training(input, weight, bias, mean, var, momentum, eps);
}

std::tuple<Tensor&, Tensor&, Tensor&> native_batch_norm_out(
    const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
    const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var,
    bool training, double momentum, double eps, Tensor& out, Tensor& mean, Tensor& invstd) {
  const auto results = bridge::native_batch_norm(input, weight, bias, running_mean, running_var,
                                                 training, momentum, eps);
  return {put_out(std::get<0>(results), out), put_out(std::get<1>(results), mean),
          put_out(std::get<2>(results), invstd)};
}

Tensor isin(const Tensor& elements, const Tensor& tests, bool, bool invert) {
  count_executed(account_isin);
  if (elements.numel() == 0 || tests.numel() == 0)
    return at::full(elements.sizes(), invert, elements.options().dtype(at::kBool));
  const Tensor found = at::any(at::eq(elements.unsqueeze(-1), tests.reshape(-1)), -1);
  return invert ? at::logical_not(found) : found;
}

// The order of random 63-bit keys; two equal keys among n are a matter of n^2 / 2^64.
Tensor& randperm_out(int64_t n, std::optional<at::Generator> generator, Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  count_executed(account_randperm);
  Tensor keys = at::empty({n}, out.options().dtype(at::kLong));
  keys.random_(0, std::numeric_limits<int64_t>::max(), std::move(generator));
  if (out.numel() != n) out.resize_({n});
  return out.copy_(at::argsort(keys, -1, false));
}

Tensor multinomial(const Tensor& self, int64_t count, bool replacement,
                   std::optional<at::Generator> generator) {
  if (!replacement || count == 1 || self.numel() == 0 || self.dim() == 0 || self.dim() > 2 ||
      count <= 0 || !at::isFloatingType(self.scalar_type())) {
    count_executed(account_multinomial);
    return at::native::multinomial(self, count, replacement,
                                   std::move(generator));  // checks, then exponential_
  }
  TORCH_CHECK(at::isfinite(self).logical_and_(at::ge(self, 0)).all().item<bool>(),
              "probability tensor contains either `inf`, `nan` or element < 0");
  TORCH_CHECK(at::gt(self.sum(-1), 0).all().item<bool>(),
              "invalid multinomial distribution (sum of probabilities <= 0)");
  count_executed(account_multinomial);
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.insert(sizes.end() - 1, count);
  Tensor waits = at::empty(sizes, self.options()).exponential_(1, std::move(generator));
  return at::argmax(at::div(self.unsqueeze(-2), waits), -1);
}

Tensor& multinomial_out(const Tensor& self, int64_t count, bool replacement,
                        std::optional<at::Generator> generator, Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong,
              "multinomial expects Long tensor out, got: ", out.scalar_type());
  return put_out(bridge::multinomial(self, count, replacement, std::move(generator)), out);
}

// The composite pools integers through its two-dimensional form; CPU, whose kernel is another one, refuses them.
Tensor max_pool1d(const Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
                  at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  if (at::isIntegralType(self.scalar_type(), true) && self.defined() && self.has_storage() &&
      !self.unsafeGetTensorImpl()->is_python_dispatch())
    return adopt_cpu(
        at::max_pool1d(cpu_alias_read(self), kernel, stride, padding, dilation, ceil_mode),
        self.device().index());
  return at::native::max_pool1d(self, kernel, stride, padding, dilation, ceil_mode);
}

// The composite leaves out its checks for devices on which reading a value waits.
Tensor one_hot(const Tensor& self, int64_t num_classes) {
  if (self.scalar_type() == at::kLong && self.numel() > 0 &&
      !self.unsafeGetTensorImpl()->is_python_dispatch()) {
    TORCH_CHECK(self.min().item<int64_t>() >= 0, "Class values must be non-negative.");
    TORCH_CHECK(num_classes <= 0 || num_classes > self.max().item<int64_t>(),
                "Class values must be smaller than num_classes.");
  }
  count_executed(account_one_hot);
  return at::native::one_hot(self, num_classes);
}

// Plain zeros: a storage-less tensor would crash kernels that read it.
Tensor efficient_zeros(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                       std::optional<at::Layout> layout, std::optional<at::Device> device,
                       std::optional<bool> pin_memory) {
  return at::zeros(size, dtype, layout, device ? *device : c10::Device(kNeuron), pin_memory);
}

void assert_async_message(const Tensor& self, std::string_view message) {
  count_executed(account_assert);
  TORCH_CHECK(at::ne(self, 0).item<bool>(),
              message.empty() ? "Expected Tensor with single nonzero value, but got zero"
                              : std::string(message));
}
void assert_async(const Tensor& self) { assert_async_message(self, ""); }

// at::SDPBackend: 0 is math, 4 is the device's own kernel. torch.compile asks too, with symbolic sizes.
int64_t fused_sdp_choice(const Tensor& query, const Tensor& key, const Tensor& value,
                         const std::optional<Tensor>& mask, double dropout, bool,
                         std::optional<double>, bool) {
  static const bool is_enabled = tn_options_int("TORCH_NEURONX_ENABLE_NKI_SDPA") != 0;
  const bool mask_has_grad = mask && mask->defined() && mask->requires_grad();
  const auto fits = [&](const Tensor& tensor) {
    return tensor.dim() == 4 && tensor.scalar_type() == query.scalar_type() && !tensor.is_nested();
  };
  if (!is_enabled || dropout != 0.0 || mask_has_grad || !at::isFloatingType(query.scalar_type()) ||
      !fits(query) || !fits(key) || !fits(value))
    return 0;
  const auto q = query.sym_sizes(), k = key.sym_sizes(), v = value.sym_sizes();
  const bool is_fused = k[1] != 0 && q[1] % k[1] == 0 && k[1] == v[1] && q[0] == k[0] &&
                        q[0] == v[0] && q[3] == k[3] && k[2] == v[2] && query.sym_numel() != 0 &&
                        key.sym_numel() != 0;
  return is_fused ? 4 : 0;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("nonzero", TORCH_FN(nonzero));
  m.impl("nonzero.out", TORCH_FN(nonzero_out));
  m.impl("masked_select", TORCH_FN(masked_select));
  m.impl("masked_select.out", TORCH_FN(masked_select_out));
  m.impl("repeat_interleave.Tensor", TORCH_FN(repeat_interleave));
  m.impl("equal", TORCH_FN(equal));
  m.impl("native_batch_norm", TORCH_FN(native_batch_norm));
  m.impl("native_batch_norm.out", TORCH_FN(native_batch_norm_out));
  m.impl("_fused_sdp_choice", TORCH_FN(fused_sdp_choice));
  m.impl("randperm.generator_out", TORCH_FN(randperm_out));
  m.impl("_efficientzerotensor", TORCH_FN(efficient_zeros));
  m.impl("isin.Tensor_Tensor", TORCH_FN(isin));
  m.impl("multinomial", TORCH_FN(multinomial));
  m.impl("multinomial.out", TORCH_FN(multinomial_out));
  m.impl("_assert_async", TORCH_FN(assert_async));
  m.impl("_assert_async.msg", TORCH_FN(assert_async_message));
}

// A composite: its parts take the gradient.
void implement_composites(torch::Library& m) {
  m.impl("max_pool1d", TORCH_FN(max_pool1d));
  m.impl("one_hot", TORCH_FN(one_hot));
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { implement_composites(m); }
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { implement_composites(m); }

}  // namespace

int64_t choose_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                         const std::optional<Tensor>& mask, double dropout, bool is_causal,
                         std::optional<double> scale, bool enable_gqa) {
  return fused_sdp_choice(query, key, value, mask, dropout, is_causal, scale, enable_gqa);
}

bool expand_masks(const c10::OperatorHandle& op, size_t arg_count, torch::jit::Stack* stack) {
  c10::IValue* args = stack->data() + (stack->size() - arg_count);
  if (arg_count < 2 || !args[1].isList() || !args[0].isTensor()) return false;
  bool has_mask = false;
  for (const c10::IValue& item : args[1].toListRef())
    has_mask |= item.isTensor() && item.toTensor().defined() &&
                item.toTensor().scalar_type() == at::kBool && item.toTensor().dim() > 0;
  if (!has_mask) return false;
  const Tensor& self = args[0].toTensor();
  c10::List<std::optional<Tensor>> indices;
  for (const c10::IValue& item : args[1].toListRef()) {
    if (!item.isTensor() || !item.toTensor().defined()) {
      indices.push_back(std::nullopt);
      continue;
    }
    const Tensor& index = item.toTensor();
    if (index.scalar_type() != at::kBool || index.dim() == 0) {
      indices.push_back(index);
      continue;
    }
    const auto first = static_cast<int64_t>(indices.size());
    for (int64_t i = 0; i < index.dim(); ++i)
      TORCH_CHECK_INDEX(first + i < self.dim() && index.size(i) == self.size(first + i),
                        "The shape of the mask ", index.sizes(), " at index ", i,
                        " does not match the shape of the indexed tensor ", self.sizes(),
                        " at index ", first + i);
    const Tensor mask = index.to(self.device()).reshape(-1);
    for (Tensor& column : unravel(true_positions(mask), index.sizes())) indices.push_back(column);
  }
  args[1] = std::move(indices);
  return true;
}

}  // namespace tn::bridge

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &tn::bridge::choose_attention)
}  // namespace at::native
