// A chain is one group; a cheap value is computed again instead of stored, a dear one is stored once.
// RUN: opt --pass=fuse
// OUT: group 0: %2, several groups read it
// OUT:     %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
// OUT:     %1 = stablehlo.add %arg0, %0 : tensor<4x8xf32>
// OUT:     %2 = stablehlo.tanh %1 : tensor<4x8xf32>
// OUT: group 1: %3, a result
// OUT:     %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>  // again
// OUT:     %1 = stablehlo.add %arg0, %0 : tensor<4x8xf32>  // again
// OUT:     %3 = stablehlo.multiply %2, %1 : tensor<4x8xf32>
// OUT: group 2: %5, a result
// OUT:     %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>  // again
// OUT:     %1 = stablehlo.add %arg0, %0 : tensor<4x8xf32>  // again
// OUT:     %4 = stablehlo.add %2, %1 : tensor<4x8xf32>
// OUT:     %5 = stablehlo.transpose %4, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
func.func @main(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8x4xf32>) {
  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.add %x, %0 : tensor<4x8xf32>
  %2 = stablehlo.tanh %1 : tensor<4x8xf32>
  %3 = stablehlo.multiply %2, %1 : tensor<4x8xf32>
  %4 = stablehlo.add %2, %1 : tensor<4x8xf32>
  %5 = stablehlo.transpose %4, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %3, %5 : tensor<4x8xf32>, tensor<8x4xf32>
}
