// A long sum is cut into blocks by the plan: block results, then their combination.
// RUN: opt --pass=plan
// OUT: buffer 0: result 0
// OUT: buffer 1: temporary of 28 bytes at 0, steps 0 to 2
// OUT: buffer 2: parameter 0
// OUT: temporaries: 28 bytes
// OUT: step 0: kernel over 6, 16384
// OUT:     operand 0: buffer 2, strides 65536, 4
// OUT:     operand 1: buffer 1, strides 4, 0
// OUT:     | loops 1 1 vector 1
// OUT:     | phase loop
// OUT:     | phase point
// OUT:     | operand 0 f32 input contiguous
// OUT:     | operand 1 f32 output scalar
// OUT:     | %0 = load.0 f32 phase 0
// OUT:     | %1 = acc.sum f32 phase 0 %0
// OUT:     | store.1 phase 1 %1
// OUT: step 1: kernel over 1, 1696
// OUT:     operand 0: buffer 2 + 393216 bytes, strides 0, 4
// OUT:     operand 1: buffer 1 + 24 bytes, strides 0, 0
// OUT:     | loops 1 1 vector 1
// OUT:     | phase loop
// OUT:     | phase point
// OUT:     | operand 0 f32 input contiguous
// OUT:     | operand 1 f32 output scalar
// OUT:     | %0 = load.0 f32 phase 0
// OUT:     | %1 = acc.sum f32 phase 0 %0
// OUT:     | store.1 phase 1 %1
// OUT: step 2: kernel over 1, 7
// OUT:     operand 0: buffer 1, strides 0, 4
// OUT:     operand 1: buffer 0, strides 0, 0
// OUT:     | loops 1 1 vector 0
// OUT:     | phase loop
// OUT:     | phase point
// OUT:     | operand 0 f32 input scalar
// OUT:     | operand 1 f32 output scalar
// OUT:     | %0 = load.0 f32 phase 0
// OUT:     | %1 = acc.sum f32 phase 0 %0
// OUT:     | store.1 phase 1 %1
func.func @main(%x: tensor<100000xf32>) -> tensor<f32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0] : (tensor<100000xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
