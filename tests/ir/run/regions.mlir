// Reducers, comparators and maps of any scalar operations.
// RUN: run
func.func @arg_max_with_nan() {
  %x = stablehlo.constant dense<[[1.0, 3.0, 3.0, 2.0, -1.0], [0x7FC00000, 7.0, 0x7FC00000, 0.0, 9.0]]> : tensor<2x5xf32>
  %i = stablehlo.iota dim = 1 : tensor<2x5xi32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %low), (%i init: %zero) across dimensions = [1] : (tensor<2x5xf32>, tensor<2x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%i0: tensor<i32>, %i1: tensor<i32>)  {
    %gt = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %nan = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %takes = stablehlo.or %gt, %nan : tensor<i1>
    %eq = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %lt = stablehlo.compare LT, %i0, %i1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %tie = stablehlo.and %eq, %lt : tensor<i1>
    %first = stablehlo.or %takes, %tie : tensor<i1>
    %v = stablehlo.select %takes, %a, %b : tensor<i1>, tensor<f32>
    %w = stablehlo.select %first, %i0, %i1 : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<f32>, tensor<i32>
  }
  check.expect_eq_const %r#1, dense<[1, 0]> : tensor<2xi32>
  func.return
}
func.func @reduce_in_generic_form_over_two_dimensions() {
  %x = stablehlo.iota dim = 1 : tensor<2x3x2xi64>
  %y = stablehlo.iota dim = 0 : tensor<2x3x2xi64>
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %two = stablehlo.constant dense<2> : tensor<i64>
  %r:2 = "stablehlo.reduce"(%x, %y, %zero, %zero) ({
  ^bb0(%a0: tensor<i64>, %a1: tensor<i64>, %b0: tensor<i64>, %b1: tensor<i64>):
    %s = stablehlo.add %a0, %b0 : tensor<i64>
    %d = stablehlo.multiply %b1, %two : tensor<i64>
    %e = stablehlo.divide %d, %two : tensor<i64>
    %m = stablehlo.maximum %a1, %e : tensor<i64>
    stablehlo.return %s, %m : tensor<i64>, tensor<i64>
  }) {dimensions = array<i64: 0, 2>} : (tensor<2x3x2xi64>, tensor<2x3x2xi64>, tensor<i64>, tensor<i64>) -> (tensor<3xi64>, tensor<3xi64>)
  check.expect_eq_const %r#0, dense<[0, 4, 8]> : tensor<3xi64>
  check.expect_eq_const %r#1, dense<[1, 1, 1]> : tensor<3xi64>
  func.return
}
func.func @reduce_of_nothing_is_its_start() {
  %x = stablehlo.constant dense<> : tensor<2x0xi32>
  %c = stablehlo.constant dense<5> : tensor<i32>
  %r = stablehlo.reduce(%x init: %c) across dimensions = [1] : (tensor<2x0xi32>, tensor<i32>) -> tensor<2xi32>
   reducer(%a: tensor<i32>, %b: tensor<i32>) {
    %s = stablehlo.subtract %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }
  check.expect_eq_const %r, dense<5> : tensor<2xi32>
  func.return
}
func.func @windows_with_a_start_value_and_dilations() {
  %x = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi64>
  %c = stablehlo.constant dense<10> : tensor<i64>
  %r = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 4, 1>, base_dilations = array<i64: 2, 1>, window_dilations = array<i64: 3, 1>, padding = dense<[[2, 1], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<i64>, %b: tensor<i64>):
    %s = stablehlo.add %a, %b : tensor<i64>
    stablehlo.return %s : tensor<i64>
  }) : (tensor<3x2xi64>, tensor<i64>) -> tensor<2x2xi64>
  check.expect_eq_const %r, dense<[[30, 30], [23, 24]]> : tensor<2x2xi64>
  func.return
}
func.func @sort_by_two_keys() {
  %x = stablehlo.constant dense<[2, 1, 2, 1, 3]> : tensor<5xi64>
  %y = stablehlo.constant dense<[5.0, 4.0, 3.0, 2.0, 1.0]> : tensor<5xf32>
  %i = stablehlo.iota dim = 0 : tensor<5xi32>
  %r:3 = "stablehlo.sort"(%x, %y, %i) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i64>, %b: tensor<i64>, %c: tensor<f32>, %d: tensor<f32>, %e: tensor<i32>, %f: tensor<i32>):
    %lt = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %eq = stablehlo.compare EQ, %a, %b, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %lt2 = stablehlo.compare LT, %c, %d, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %both = stablehlo.and %eq, %lt2 : tensor<i1>
    %p = stablehlo.or %lt, %both : tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<5xi64>, tensor<5xf32>, tensor<5xi32>) -> (tensor<5xi64>, tensor<5xf32>, tensor<5xi32>)
  check.expect_eq_const %r#0, dense<[1, 1, 2, 2, 3]> : tensor<5xi64>
  check.expect_eq_const %r#2, dense<[3, 1, 2, 0, 4]> : tensor<5xi32>
  func.return
}
func.func @sort_by_a_key_and_in_total_order() {
  %x = stablehlo.constant dense<[[-3, 2], [1, -1], [2, 5]]> : tensor<3x2xi32>
  %r = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.abs %a : tensor<i32>
    %d = stablehlo.abs %b : tensor<i32>
    %p = stablehlo.compare GT, %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<3x2xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %r, dense<[[-3, 5], [2, 2], [1, -1]]> : tensor<3x2xi32>
  %f = stablehlo.constant dense<[1.0, 0.0, -0.0, 0xFFC00000, -1.0, 0x7FC00000]> : tensor<6xf32>
  %s = "stablehlo.sort"(%f) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<6xf32>) -> tensor<6xf32>
  %bits = stablehlo.bitcast_convert %s : (tensor<6xf32>) -> tensor<6xui32>
  check.expect_eq_const %bits, dense<[0xFFC00000, 0xBF800000, 0x80000000, 0x0, 0x3F800000, 0x7FC00000]> : tensor<6xui32>
  func.return
}
func.func @map_with_a_value_from_outside() {
  %x = stablehlo.constant dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>
  %c = stablehlo.constant dense<7> : tensor<i64>
  %k = stablehlo.multiply %c, %c : tensor<i64>
  %r = "stablehlo.map"(%x, %x) ({
  ^bb0(%a: tensor<i64>, %b: tensor<i64>):
    %s = stablehlo.multiply %a, %b : tensor<i64>
    %t = stablehlo.add %s, %k : tensor<i64>
    stablehlo.return %t : tensor<i64>
  }) {dimensions = array<i64: 0, 1>} : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi64>
  check.expect_eq_const %r, dense<[[49, 50], [53, 58]]> : tensor<2x2xi64>
  func.return
}
