// NaN is last in ascending order; equal keys keep their order.
// RUN: run
// OUT: dense<[0xFF800000, 1.000000e+00, 1.000000e+00, 0x7FC00000]> : tensor<4xf32>
// OUT: dense<[3, 0, 2, 1]> : tensor<4xi64>
func.func @main() -> (tensor<4xf32>, tensor<4xi64>) {
  %x = stablehlo.constant dense<[1.0, 0x7FC00000, 1.0, 0xFF800000]> : tensor<4xf32>
  %i = stablehlo.iota dim = 0 : tensor<4xi64>
  %0:2 = "stablehlo.sort"(%x, %i) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i64>, %d: tensor<i64>):
      %1 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }) : (tensor<4xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xi64>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xi64>
}
