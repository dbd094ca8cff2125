// A product is a step of its own; what it reads is in memory, through movement or not.
// RUN: opt --pass=fuse
// OUT: group 0: %0, read by a step of its own
// OUT:     %0 = stablehlo.exponential %arg0 : tensor<4x8xf32>
// OUT: group 1: %2, a step of its own
// OUT:     %1 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<5x8xf32>) -> tensor<8x5xf32>
// OUT:     %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
// OUT: group 2: %4, a result
// OUT:     %3 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<5xf32>) -> tensor<4x5xf32>
// OUT:     %4 = stablehlo.add %2, %3 : tensor<4x5xf32>
func.func @main(%x: tensor<4x8xf32>, %w: tensor<5x8xf32>, %b: tensor<5xf32>) -> tensor<4x5xf32> {
  %0 = stablehlo.exponential %x : tensor<4x8xf32>
  %1 = stablehlo.transpose %w, dims = [1, 0] : (tensor<5x8xf32>) -> tensor<8x5xf32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  %3 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<5xf32>) -> tensor<4x5xf32>
  %4 = stablehlo.add %2, %3 : tensor<4x5xf32>
  return %4 : tensor<4x5xf32>
}
