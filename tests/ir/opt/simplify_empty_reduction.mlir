// A reduction of no elements is its identity; equal branches need no condition.
// RUN: opt --pass=simplify
// OUT: module {
// OUT:   func.func @main(%arg0: tensor<2x0xf32>, %arg1: tensor<2xi1>) -> (tensor<2xf32>) {
// OUT:     %0 = stablehlo.constant dense<0xFF800000> : tensor<2xf32>
// OUT:     return %0 : tensor<2xf32>
// OUT:   }
// OUT: }
func.func @main(%x: tensor<2x0xf32>, %c: tensor<2xi1>) -> tensor<2xf32> {
  %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.maximum across dimensions = [1] : (tensor<2x0xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.select %c, %0, %0 : tensor<2xi1>, tensor<2xf32>
  return %1 : tensor<2xf32>
}
