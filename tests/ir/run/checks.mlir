// Every check in every form, held.
// RUN: run
func.func @eq() {
  %x = stablehlo.constant dense<[-2, 0, 2]> : tensor<3xi64>
  check.expect_eq %x, %x : tensor<3xi64>
  "check.expect_eq"(%x, %x) : (tensor<3xi64>, tensor<3xi64>) -> ()
  "check.expect_eq_const"(%x) {value = dense<[-2, 0, 2]> : tensor<3xi64>} : (tensor<3xi64>) -> ()
  stablehlo.custom_call @check.expect_eq(%x, %x) {has_side_effect = true} : (tensor<3xi64>, tensor<3xi64>) -> ()
  func.return
}

// -----

func.func @eq() {
  %x = stablehlo.constant dense<[0x7FC00000, 1.0]> : tensor<2xf32>
  check.expect_eq %x, %x : tensor<2xf32>
  %z = stablehlo.constant dense<(1.0, -2.0)> : tensor<2xcomplex<f32>>
  check.expect_eq_const %z, dense<[(1.0, -2.0), (1.0, -2.0)]> : tensor<2xcomplex<f32>>
  func.return
}
func.func @almost_eq() {
  %x = stablehlo.constant dense<5.0> : tensor<f64>
  %y = stablehlo.constant dense<5.05> : tensor<f64>
  check.expect_almost_eq %x, %y, tolerance = 0.1 : tensor<f64>
  check.expect_almost_eq_const %x, dense<5.00005> : tensor<f64>
  stablehlo.custom_call @check.expect_almost_eq(%x, %x) : (tensor<f64>, tensor<f64>) -> ()
  func.return
}
func.func @close() {
  %x = stablehlo.constant dense<1.0> : tensor<2xf16>
  %y = stablehlo.constant dense<0x3C03> : tensor<2xf16>
  check.expect_close %x, %y, max_ulp_difference = 3 : tensor<2xf16>, tensor<2xf16>
  check.expect_close %x, %y, min_ulp_difference = 3, max_ulp_difference = 4 : tensor<2xf16>, tensor<2xf16>
  stablehlo.custom_call @check.expect_close(%x, %y) {has_side_effect = true} : (tensor<2xf16>, tensor<2xf16>) -> ()
  func.return
}

// -----

// OUT: // @main
// OUT: dense<true> : tensor<i1>
module @test {
  func.func public @main() -> tensor<i1> {
    %0:2 = call @inputs() : () -> (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>)
    %1 = stablehlo.add %0#0, %0#1 : tensor<2xcomplex<f32>>
    %2 = call @expected() : () -> tensor<2xcomplex<f32>>
    %3 = stablehlo.custom_call @check.eq(%1, %2) : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> tensor<i1>
    return %3 : tensor<i1>
  }
  func.func private @inputs() -> (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) {
    %0 = stablehlo.constant dense<[(1.0,2.0), (3.0,-4.0)]> : tensor<2xcomplex<f32>>
    %1 = stablehlo.constant dense<(0.5,0.25)> : tensor<2xcomplex<f32>>
    return %0, %1 : tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>
  }
  func.func private @expected() -> tensor<2xcomplex<f32>> {
    %0 = stablehlo.constant dense<[(1.5,2.25), (3.5,-3.75)]> : tensor<2xcomplex<f32>>
    return %0 : tensor<2xcomplex<f32>>
  }
}
