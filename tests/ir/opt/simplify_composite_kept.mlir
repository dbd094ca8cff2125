// A composite with a kernel stays; its decomposition is printed for other tools.
// RUN: opt --pass=simplify
// OUT: module {
// OUT:   func.func @main(%arg0: tensor<2x4xf32>) -> (tensor<2x4xf32>) {
// OUT:     %0 = stablehlo.composite "tn.softmax" %arg0 {composite_attributes = {axis = 1 : i64}, decomposition = @softmax.body_0} : (tensor<2x4xf32>) -> tensor<2x4xf32>
// OUT:     return %0 : tensor<2x4xf32>
// OUT:   }
// OUT:   func.func private @softmax.body_0(%arg0: tensor<2x4xf32>) -> (tensor<2x4xf32>) {
// OUT:     %init_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
// OUT:     %0 = stablehlo.reduce(%arg0 init: %init_0) applies stablehlo.maximum across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>
// OUT:     %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<2xf32>) -> tensor<2x4xf32>
// OUT:     %2 = stablehlo.subtract %arg0, %1 : tensor<2x4xf32>
// OUT:     %3 = stablehlo.exponential %2 : tensor<2x4xf32>
// OUT:     %init_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// OUT:     %4 = stablehlo.reduce(%3 init: %init_4) applies stablehlo.add across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>
// OUT:     %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<2xf32>) -> tensor<2x4xf32>
// OUT:     %6 = stablehlo.divide %3, %5 : tensor<2x4xf32>
// OUT:     return %6 : tensor<2x4xf32>
// OUT:   }
// OUT: }
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.composite "tn.softmax" %x {composite_attributes = {axis = 1 : i64}} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
