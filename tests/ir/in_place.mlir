// The result is written over the parameter that it also reads, at other positions.
// RUN: run --input iota
// OUT: dense<[[0, 3, 1], [4, 2, 5]]> : tensor<2x3xi32>
func.func @main(%a: tensor<2x3xi32>) -> (tensor<2x3xi32> {tn.same_as_param = 0 : i64}) {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
  %1 = stablehlo.reshape %0 : (tensor<3x2xi32>) -> tensor<2x3xi32>
  return %1 : tensor<2x3xi32>
}
