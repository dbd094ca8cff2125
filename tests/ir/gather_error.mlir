// RUN: run --input iota
// ERR: OUT_OF_RANGE
// ERR: 4
func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
  %i = stablehlo.constant dense<[1, 4]> : tensor<2xi64>
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> {tn.bounds = "error"} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
