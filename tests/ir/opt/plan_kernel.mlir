// One kernel: loops with strides of every operand, no size and no scalar in its program.
// RUN: opt --pass=plan
// OUT: buffer 0: result 0
// OUT: buffer 1: parameter 0
// OUT: buffer 2: parameter 2
// OUT: buffer 3: parameter 1
// OUT: temporaries: 0 bytes
// OUT: step 0: kernel over 4, 8
// OUT:     operand 0: buffer 1, strides 32, 4
// OUT:     operand 1: buffer 2, strides 0, 0
// OUT:     operand 2: buffer 3, strides 0, 4
// OUT:     operand 3: buffer 0, strides 32, 4
// OUT:     scalar 0: 2.000000e+00
// OUT:     | loops 2 0 vector 1
// OUT:     | phase loop
// OUT:     | operand 0 f32 input contiguous
// OUT:     | operand 1 f32 input scalar
// OUT:     | operand 2 f32 input contiguous
// OUT:     | operand 3 f32 output contiguous
// OUT:     | scalar 0 f32
// OUT:     | %0 = load.0 f32 phase 0
// OUT:     | %1 = load.1 f32 phase 0
// OUT:     | %2 = stablehlo.multiply f32 phase 0 %0 %1
// OUT:     | %3 = load.2 f32 phase 0
// OUT:     | %4 = scalar.0 f32 phase 0
// OUT:     | %5 = stablehlo.multiply f32 phase 0 %3 %4
// OUT:     | %6 = stablehlo.add f32 phase 0 %2 %5
// OUT:     | store.3 phase 0 %6
func.func @main(%x: tensor<4x8xf32>, %b: tensor<8xf32>, %s: tensor<f32> {tn.scalar}) -> tensor<4x8xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<4x8xf32>
  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
  %2 = stablehlo.multiply %x, %1 : tensor<4x8xf32>
  %3 = stablehlo.multiply %0, %two : tensor<4x8xf32>
  %4 = stablehlo.add %2, %3 : tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}
