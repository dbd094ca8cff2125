// Reductions over nothing give the identity.
// RUN: run
// OUT: dense<0.000000e+00> : tensor<f32>
// OUT: dense<[0xFF800000, 0xFF800000]> : tensor<2xf32>
func.func @main() -> (tensor<f32>, tensor<2xf32>) {
  %x = stablehlo.constant dense<> : tensor<2x0xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x0xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.reduce(%x init: %m) applies stablehlo.maximum across dimensions = [1] : (tensor<2x0xf32>, tensor<f32>) -> tensor<2xf32>
  return %0, %1 : tensor<f32>, tensor<2xf32>
}
