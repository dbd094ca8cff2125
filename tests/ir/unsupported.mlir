// RUN: run --engine interp
// ERR: unsupported.mlir:5:8: operation 'stablehlo.all_reduce' is not supported
func.func @main() -> tensor<1x1xf32> {
  %x = stablehlo.constant dense<1.0> : tensor<1x1xf32>
  %0 = stablehlo.all_reduce %x, lower = true : tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}
