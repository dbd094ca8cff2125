// A composite that the device has no kernel for, here with constant statistics, is replaced by its decomposition.
// RUN: opt --pass=simplify
// OUT: module {
// OUT:   func.func @main(%arg0: tensor<2x3x4xf32>, %arg1: tensor<2x3x4xf32>, %arg2: tensor<3xf32>, %arg3: tensor<3xf32>) -> (tensor<2x3x4xf32>) {
// OUT:     %0 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<3xf32>) -> tensor<2x3x4xf32>
// OUT:     %1 = stablehlo.multiply %arg0, %0 : tensor<2x3x4xf32>
// OUT:     return %1 : tensor<2x3x4xf32>
// OUT:   }
// OUT: }
func.func @main(%g: tensor<2x3x4xf32>, %x: tensor<2x3x4xf32>, %m: tensor<3xf32>, %s: tensor<3xf32>) -> tensor<2x3x4xf32> {
  %0:3 = stablehlo.composite "tn.batch_norm_backward" %g, %x, %m, %s {composite_attributes = {flags = 4 : i64}} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return %0#0 : tensor<2x3x4xf32>
}
