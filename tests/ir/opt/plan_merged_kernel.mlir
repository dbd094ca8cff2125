// Two results over the same points are one kernel.
// RUN: opt --pass=plan
// OUT: buffer 0: result 0
// OUT: buffer 1: result 1
// OUT: buffer 2: parameter 0
// OUT: temporaries: 0 bytes
// OUT: step 0: kernel over 16
// OUT:     operand 0: buffer 2, strides 4
// OUT:     operand 1: buffer 0, strides 4
// OUT:     operand 2: buffer 1, strides 4
// OUT:     | loops 1 0 vector 0
// OUT:     | phase loop
// OUT:     | operand 0 f32 input contiguous
// OUT:     | operand 1 f32 output contiguous
// OUT:     | operand 2 f32 output contiguous
// OUT:     | %0 = load.0 f32 phase 0
// OUT:     | %1 = stablehlo.tanh f32 phase 0 %0
// OUT:     | %2 = stablehlo.multiply f32 phase 0 %1 %1
// OUT:     | store.1 phase 0 %1
// OUT:     | store.2 phase 0 %2
func.func @main(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %0 = stablehlo.tanh %x : tensor<16xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<16xf32>
  return %0, %1 : tensor<16xf32>, tensor<16xf32>
}
