// Layouts other than [b, f, spatial] are transposed on reading.
// RUN: run --input iota --input ones
// OUT: dense<[[[[8.000000e+00], [1.200000e+01]], [[2.000000e+01], [2.400000e+01]]]]> : tensor<1x2x2x1xf32>
func.func @main(%x: tensor<1x3x3x1xf32>, %w: tensor<2x2x1x1xf32>) -> tensor<1x2x2x1xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x3x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x2x1xf32>
  return %0 : tensor<1x2x2x1xf32>
}
