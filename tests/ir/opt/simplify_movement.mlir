// Chains of reshapes and of transposes become one; what nothing needs goes.
// RUN: opt --pass=simplify
// OUT: module {
// OUT:   func.func @main(%arg0: tensor<2x3x4xf32>) -> (tensor<24xf32>, tensor<3x4x2xf32>) {
// OUT:     %0 = stablehlo.reshape %arg0 : (tensor<2x3x4xf32>) -> tensor<24xf32>
// OUT:     %1 = stablehlo.transpose %arg0, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
// OUT:     return %0, %1 : tensor<24xf32>, tensor<3x4x2xf32>
// OUT:   }
// OUT: }
func.func @main(%x: tensor<2x3x4xf32>) -> (tensor<24xf32>, tensor<3x4x2xf32>) {
  %0 = stablehlo.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = stablehlo.reshape %0 : (tensor<6x4xf32>) -> tensor<24xf32>
  %2 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %3 = stablehlo.transpose %2, dims = [2, 0, 1] : (tensor<4x2x3xf32>) -> tensor<3x4x2xf32>
  %dead = stablehlo.exponential %x : tensor<2x3x4xf32>
  return %1, %3 : tensor<24xf32>, tensor<3x4x2xf32>
}
