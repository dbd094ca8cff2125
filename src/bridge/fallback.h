// Zero-copy CPU fallback: device memory is host memory, so tensors are re-labelled, not copied.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <string>

#include "account.h"

namespace c10 {
class OperatorHandle;
}

namespace tn::bridge {

// Runs |op| on the CPU with the arguments on |stack| and puts the results there as device tensors. A CPU exception
// passes through and nothing is counted; otherwise a fallback with |reason| is.
// |has_kernel|: the core has a lowering that refused these arguments.
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack, OpAccount* account,
                const std::string& reason, bool has_kernel);

// The same without counting: for operators whose CPU kernel is their implementation here.
void call_cpu_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack,
                     int64_t* out_bytes = nullptr);

// A CPU tensor over the memory of |tensor| (a device tensor), with its conj and neg bits.
at::Tensor cpu_alias(const at::Tensor& tensor);  // to be written
at::Tensor cpu_alias_read(
    const at::Tensor& tensor);  // to be read only: does not materialise a lazy clone
// A device tensor over the memory of |tensor| (a CPU tensor), which it keeps alive.
at::Tensor adopt_cpu(const at::Tensor& tensor, int device);

// Throws PyTorch's text if a tensor argument is on another device than the first device tensor; 0-dim CPU tensors
// pass. Returns the device's index.
int check_same_device(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

}  // namespace tn::bridge
