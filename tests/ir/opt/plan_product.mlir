// The product reads its weight through strides and adds the bias on its tile.
// RUN: opt --pass=plan
// OUT: buffer 0: temporary of 128 bytes at 0, steps 0 to 1
// OUT: buffer 1: parameter 0
// OUT: buffer 2: parameter 1
// OUT: buffer 3: parameter 2
// OUT: buffer 4: result 0
// OUT: temporaries: 128 bytes
// OUT: step 0: kernel over 32
// OUT:     operand 0: buffer 1, strides 4
// OUT:     operand 1: buffer 0, strides 4
// OUT:     | loops 1 0 vector 0
// OUT:     | phase loop
// OUT:     | operand 0 f32 input contiguous
// OUT:     | operand 1 f32 output contiguous
// OUT:     | %0 = load.0 f32 phase 0
// OUT:     | %1 = stablehlo.exponential f32 phase 0 %0
// OUT:     | store.1 phase 0 %1
// OUT: step 1: stablehlo.dot_general
// OUT:     operand 0: buffer 0 as tensor<4x8xf32>
// OUT:     operand 1: buffer 2 as tensor<8x5xf32> strides 1, 8
// OUT:     addend: buffer 3 as tensor<4x5xf32> strides 0, 1
// OUT:     result 0: buffer 4 as tensor<4x5xf32>
func.func @main(%x: tensor<4x8xf32>, %w: tensor<5x8xf32>, %b: tensor<5xf32>) -> tensor<4x5xf32> {
  %0 = stablehlo.exponential %x : tensor<4x8xf32>
  %1 = stablehlo.transpose %w, dims = [1, 0] : (tensor<5x8xf32>) -> tensor<8x5xf32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  %3 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<5xf32>) -> tensor<4x5xf32>
  %4 = stablehlo.add %2, %3 : tensor<4x5xf32>
  return %4 : tensor<4x5xf32>
}
