// A composite with a row of equal values and one with infinities.
// RUN: run
// OUT: dense<[[5.000000e-01, 5.000000e-01], [0.000000e+00, 1.000000e+00]]> : tensor<2x2xf32>
func.func @main() -> tensor<2x2xf32> {
  %x = stablehlo.constant dense<[[3.0, 3.0], [0xFF800000, 7.0]]> : tensor<2x2xf32>
  %0 = stablehlo.composite "tn.softmax" %x {composite_attributes = {axis = 1 : i64}} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
