// RUN: opt --pass=all
// ERR: INVALID_ARGUMENT
// ERR: malformed.mlir:5:23: %y is not defined here
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sqrt %y : tensor<4xf32>
  return %0 : tensor<4xf32>
}
