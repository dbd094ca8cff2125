// Ops of StableHLO that are built from others.
// RUN: run
func.func @reduce_precision() {
  %x = stablehlo.constant dense<[1.0009765625, 1.00048828125, 70000.0, -1.0e-05, 0x7FC00000, -65504.0]> : tensor<6xf32>
  %a = stablehlo.reduce_precision %x, format = e5m10 : tensor<6xf32>
  check.expect_eq_const %a, dense<[1.0009765625, 1.0, 0x7F800000, -0.0, 0x7FC00000, -65504.0]> : tensor<6xf32>
  %b = "stablehlo.reduce_precision"(%x) {exponent_bits = 8 : i32, mantissa_bits = 2 : i32} : (tensor<6xf32>) -> tensor<6xf32>
  check.expect_eq_const %b, dense<[1.0, 1.0, 65536.0, -9.5367431640625e-06, 0x7FC00000, -65536.0]> : tensor<6xf32>
  %h = stablehlo.constant dense<1.0009765625> : tensor<f16>
  %c = stablehlo.reduce_precision %h, format = e4m3 : tensor<f16>
  check.expect_eq_const %c, dense<1.0> : tensor<f16>
  func.return
}
func.func @cholesky_and_solve() {
  %a = stablehlo.constant dense<[[4.0, 9.0, 9.0], [2.0, 5.0, 9.0], [6.0, 7.0, 19.0]]> : tensor<3x3xf64>
  %l = stablehlo.cholesky %a, lower = true : tensor<3x3xf64>
  check.expect_almost_eq_const %l, dense<[[2.0, 0.0, 0.0], [1.0, 2.0, 0.0], [3.0, 2.0, 2.449489742783178]]> : tensor<3x3xf64>
  %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<3x3xf64>) -> tensor<3x3xf64>
  %u = "stablehlo.cholesky"(%t) {lower = false} : (tensor<3x3xf64>) -> tensor<3x3xf64>
  check.expect_almost_eq_const %u, dense<[[2.0, 1.0, 3.0], [0.0, 2.0, 2.0], [0.0, 0.0, 2.449489742783178]]> : tensor<3x3xf64>
  %b = stablehlo.constant dense<[[2.0], [5.0], [8.0]]> : tensor<3x1xf64>
  %m = stablehlo.constant dense<[[2.0, 9.0, 9.0], [1.0, 2.0, 9.0], [3.0, 2.0, 2.0]]> : tensor<3x3xf64>
  %x = "stablehlo.triangular_solve"(%m, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<3x3xf64>, tensor<3x1xf64>) -> tensor<3x1xf64>
  check.expect_almost_eq_const %x, dense<[[1.0], [2.0], [0.5]]> : tensor<3x1xf64>
  %bt = stablehlo.reshape %b : (tensor<3x1xf64>) -> tensor<1x3xf64>
  %y = "stablehlo.triangular_solve"(%m, %bt) <{left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>}> : (tensor<3x3xf64>, tensor<1x3xf64>) -> tensor<1x3xf64>
  check.expect_almost_eq_const %y, dense<[[1.0, 2.0, 0.5]]> : tensor<1x3xf64>
  %z = "stablehlo.triangular_solve"(%m, %b) <{left_side = true, lower = false, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<3x3xf64>, tensor<3x1xf64>) -> tensor<3x1xf64>
  check.expect_almost_eq_const %z, dense<[[533.0], [-67.0], [8.0]]> : tensor<3x1xf64>
  func.return
}
func.func @solve_of_complex_numbers() {
  %a = stablehlo.constant dense<[[(1.0, 1.0), (0.0, 0.0)], [(0.0, 2.0), (2.0, 0.0)]]> : tensor<2x2xcomplex<f32>>
  %b = stablehlo.constant dense<[[(2.0, 0.0)], [(4.0, 4.0)]]> : tensor<2x1xcomplex<f32>>
  %x = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<2x2xcomplex<f32>>, tensor<2x1xcomplex<f32>>) -> tensor<2x1xcomplex<f32>>
  check.expect_almost_eq_const %x, dense<[[(1.0, -1.0)], [(1.0, 1.0)]]> : tensor<2x1xcomplex<f32>>, tolerance = 1.0e-06
  %y = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : (tensor<2x2xcomplex<f32>>, tensor<2x1xcomplex<f32>>) -> tensor<2x1xcomplex<f32>>
  check.expect_almost_eq_const %y, dense<[[(-3.0, 1.0)], [(2.0, 2.0)]]> : tensor<2x1xcomplex<f32>>
  func.return
}
func.func @fft_there_and_back() {
  %x = stablehlo.constant dense<[(1.0, 0.0), (2.0, 1.0), (0.0, -1.0), (4.0, 0.0)]> : tensor<4xcomplex<f64>>
  %f = stablehlo.fft %x, type = FFT, length = [4] : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %f, dense<[(7.0, 0.0), (2.0, 3.0), (-5.0, -2.0), (0.0, -1.0)]> : tensor<4xcomplex<f64>>
  %i = "stablehlo.fft"(%f) <{fft_type = #stablehlo<fft_type IFFT>, fft_length = array<i64: 4>}> : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  check.expect_almost_eq %i, %x : tensor<4xcomplex<f64>>
  %r = stablehlo.constant dense<[[1.0, 2.0, 3.0, 4.0, 6.0], [0.0, -1.0, 1.0, 2.0, 0.5]]> : tensor<2x5xf32>
  %g = stablehlo.fft %r, type = RFFT, length = [2, 5] : (tensor<2x5xf32>) -> tensor<2x3xcomplex<f32>>
  %b = stablehlo.fft %g, type = IRFFT, length = [2, 5] : (tensor<2x3xcomplex<f32>>) -> tensor<2x5xf32>
  check.expect_almost_eq %b, %r : tensor<2x5xf32>
  func.return
}
func.func @batch_norm() {
  %x = stablehlo.constant dense<[[1.0, 10.0], [3.0, 20.0]]> : tensor<2x2xf32>
  %s = stablehlo.constant dense<[2.0, 1.0]> : tensor<2xf32>
  %o = stablehlo.constant dense<[0.5, 0.0]> : tensor<2xf32>
  %t:3 = "stablehlo.batch_norm_training"(%x, %s, %o) <{epsilon = 0.0 : f32, feature_index = 1 : i64}> : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
  check.expect_almost_eq_const %t#0, dense<[[-1.5, -1.0], [2.5, 1.0]]> : tensor<2x2xf32>
  check.expect_almost_eq_const %t#1, dense<[2.0, 15.0]> : tensor<2xf32>
  check.expect_almost_eq_const %t#2, dense<[1.0, 25.0]> : tensor<2xf32>
  %i = "stablehlo.batch_norm_inference"(%x, %s, %o, %t#1, %t#2) <{epsilon = 0.0 : f32, feature_index = 1 : i64}> : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  check.expect_almost_eq %i, %t#0 : tensor<2x2xf32>
  %g = stablehlo.constant dense<[[1.0, 1.0], [0.0, 1.0]]> : tensor<2x2xf32>
  %d:3 = "stablehlo.batch_norm_grad"(%x, %s, %t#1, %t#2, %g) <{epsilon = 1.0 : f32, feature_index = 1 : i64}> : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
  check.expect_almost_eq_const %d#0, dense<[[0.35355339, 0.0], [-0.35355339, 0.0]]> : tensor<2x2xf32>
  check.expect_almost_eq_const %d#1, dense<[-0.70710678, 0.0]> : tensor<2xf32>
  check.expect_eq_const %d#2, dense<[1.0, 2.0]> : tensor<2xf32>
  func.return
}
func.func @size_and_orders() {
  %x = stablehlo.constant dense<[0x7FC00000, 0xFFC00000, -0.0, 1.0]> : tensor<4xf32>
  %y = stablehlo.constant dense<[0xFFC00000, 0x7F800000, 0.0, 0x7FC00000]> : tensor<4xf32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<4xf32>) -> tensor<i32>
  check.expect_eq_const %n, dense<4> : tensor<i32>
  %e = stablehlo.compare EQ, %x, %y, WEAKORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  check.expect_eq_const %e, dense<[true, false, true, false]> : tensor<4xi1>
  %l = stablehlo.compare LT, %x, %y, WEAKORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  check.expect_eq_const %l, dense<[false, false, false, true]> : tensor<4xi1>
  %t = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  check.expect_eq_const %t, dense<[false, true, true, true]> : tensor<4xi1>
  func.return
}
