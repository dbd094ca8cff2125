// A failed check names place, function, element and both values; the other functions still run.
// RUN: run
// ERR: check_fails.mlir:11:3: @first: check failed: element [1, 0] is 3, expected 4
// ERR: check_fails.mlir:17:3: @second: check failed: element [] is 1.000000e+00, expected 1.500000e+00 within 0.1
// ERR: check_fails.mlir:19:3: @second: check failed: element [] is 1.000000e+00, expected 1.500000e+00 within 0..3 ulps



func.func @first() {
  %x = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  check.expect_eq_const %x, dense<[[1, 2], [4, 4]]> : tensor<2x2xi32>
  func.return
}
func.func @second() {
  %x = stablehlo.constant dense<1.0> : tensor<f32>
  %y = stablehlo.constant dense<1.5> : tensor<f32>
  check.expect_almost_eq %x, %y, tolerance = 0.1 : tensor<f32>

  check.expect_close %x, %y : tensor<f32>, tensor<f32>
  func.return
}
