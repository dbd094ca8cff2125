// Operators that are put together from others because their result's size, or their choice, depends on values.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

namespace c10 {
class OperatorHandle;
}

namespace tn::bridge {

// Replaces boolean index tensors of an indexing operator by the positions of their true elements. False if there were
// none.
bool expand_masks(const c10::OperatorHandle& op, size_t arg_count, torch::jit::Stack* stack);

// 4 (at::SDPBackend::overrideable) if the core's attention takes these arguments, else 0 (math).
int64_t choose_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const std::optional<at::Tensor>& mask, double dropout, bool is_causal,
                         std::optional<double> scale, bool enable_gqa);

}  // namespace tn::bridge
