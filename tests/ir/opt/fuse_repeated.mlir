// A dear value that its reader broadcasts is stored: each element is computed once.
// RUN: opt --pass=fuse
// OUT: group 0: %0, every element is read more than once
// OUT:     %0 = stablehlo.exponential %arg1 : tensor<8xf32>
// OUT: group 1: %2, a result
// OUT:     %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
// OUT:     %2 = stablehlo.multiply %arg0, %1 : tensor<4x8xf32>
func.func @main(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.exponential %b : tensor<8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.multiply %x, %1 : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
