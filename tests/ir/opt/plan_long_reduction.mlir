// A long sum is cut into blocks when it runs; its kernel is that of a short one.
// RUN: opt --pass=plan
// OUT: buffer 0: result 0
// OUT: buffer 1: parameter 0
// OUT: temporaries: 0 bytes
// OUT: step 0: kernel over 1, 100000, reduced in 7 blocks of 16384
// OUT:     operand 0: buffer 1, strides 0, 4
// OUT:     operand 1: buffer 0, strides 0, 0
// OUT:     | loops 1 1 vector 1
// OUT:     | phase loop
// OUT:     | phase point
// OUT:     | operand 0 f32 input contiguous
// OUT:     | operand 1 f32 output scalar
// OUT:     | %0 = load.0 f32 phase 0
// OUT:     | %1 = acc.sum f32 phase 0 %0
// OUT:     | store.1 phase 1 %1
func.func @main(%x: tensor<100000xf32>) -> tensor<f32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0] : (tensor<100000xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
