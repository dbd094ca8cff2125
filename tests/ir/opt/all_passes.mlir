// RUN: opt --pass=all
// OUT: // after simplify
// OUT: module {
// OUT:   func.func @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {
// OUT:     %0 = stablehlo.sqrt %arg0 : tensor<4xf32>
// OUT:     return %0 : tensor<4xf32>
// OUT:   }
// OUT: }
// OUT: // after fuse
// OUT: group 0: %0, a result
// OUT:     %0 = stablehlo.sqrt %arg0 : tensor<4xf32>
// OUT: // after plan
// OUT: buffer 0: result 0
// OUT: buffer 1: parameter 0
// OUT: temporaries: 0 bytes
// OUT: step 0: kernel over 4
// OUT:     operand 0: buffer 1, strides 4
// OUT:     operand 1: buffer 0, strides 4
// OUT:     | loops 1 0 vector 0
// OUT:     | phase loop
// OUT:     | operand 0 f32 input contiguous
// OUT:     | operand 1 f32 output contiguous
// OUT:     | %0 = load.0 f32 phase 0
// OUT:     | %1 = stablehlo.sqrt f32 phase 0 %0
// OUT:     | store.1 phase 0 %1
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %one : tensor<4xf32>
  %1 = stablehlo.sqrt %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
