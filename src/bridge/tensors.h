// Operators on tensor identity and copies that other units call directly.
#pragma once

#include <ATen/core/Tensor.h>

namespace tn::bridge {

// |tensor| without its conj and neg bits: a copy with the values that they stand for, made on the device.
at::Tensor materialise(const at::Tensor& tensor);

// self[...] = src between host and device tensors of any dtype and layout; sizes broadcast.
at::Tensor& copy_into(at::Tensor& self, const at::Tensor& src, bool non_blocking);

}  // namespace tn::bridge
