// A transposed parameter and a transposed result; inputs and outputs of the tool are row-major.
// RUN: run --input iota
// OUT: dense<[[1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00]]> : tensor<2x3xf32>
func.func @main(%a: tensor<2x3xf32> {tn.strides = array<i64: 1, 2>}) -> (tensor<2x3xf32> {tn.strides = array<i64: 1, 2>}) {
  %c = stablehlo.constant dense<1.000000e+00> : tensor<2x3xf32>
  %0 = stablehlo.add %a, %c : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
