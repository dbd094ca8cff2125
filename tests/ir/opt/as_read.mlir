// Without a pass: the file as it was read.
// RUN: opt
// OUT: module {
// OUT:   func.func @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {
// OUT:     %0 = stablehlo.sqrt %arg0 : tensor<4xf32>
// OUT:     return %0 : tensor<4xf32>
// OUT:   }
// OUT: }
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.sqrt"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
