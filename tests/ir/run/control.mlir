// Branches, loops and values from outside of a region; each function checks itself.
// RUN: run
func.func @branch_by_parameterless_predicate() {
  %x = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
  %y = stablehlo.constant dense<[3, 4]> : tensor<2xi64>
  %p = stablehlo.constant dense<false> : tensor<i1>
  %r:2 = "stablehlo.if"(%p) ({
    stablehlo.return %x, %y : tensor<2xi64>, tensor<2xi64>
  }, {
    %s = stablehlo.add %x, %y : tensor<2xi64>
    stablehlo.return %s, %x : tensor<2xi64>, tensor<2xi64>
  }) : (tensor<i1>) -> (tensor<2xi64>, tensor<2xi64>)
  check.expect_eq_const %r#0, dense<[4, 6]> : tensor<2xi64>
  check.expect_eq %r#1, %x : tensor<2xi64>
  func.return
}
func.func @last_branch_is_for_the_rest() {
  %i = stablehlo.constant dense<[-1, 0, 1, 2, 7]> : tensor<5xi32>
  %last = call @pick(%i) : (tensor<5xi32>) -> tensor<5xi32>
  check.expect_eq_const %last, dense<[30, 10, 20, 30, 30]> : tensor<5xi32>
  func.return
}
func.func private @pick(%i: tensor<5xi32>) -> tensor<5xi32> {
  %sum = stablehlo.constant dense<0> : tensor<1xi32>
  %0 = stablehlo.slice %i [0:1] : (tensor<5xi32>) -> tensor<1xi32>
  %1 = stablehlo.slice %i [1:2] : (tensor<5xi32>) -> tensor<1xi32>
  %2 = stablehlo.slice %i [2:3] : (tensor<5xi32>) -> tensor<1xi32>
  %3 = stablehlo.slice %i [3:4] : (tensor<5xi32>) -> tensor<1xi32>
  %4 = stablehlo.slice %i [4:5] : (tensor<5xi32>) -> tensor<1xi32>
  %a = call @pick_one(%0) : (tensor<1xi32>) -> tensor<1xi32>
  %b = call @pick_one(%1) : (tensor<1xi32>) -> tensor<1xi32>
  %c = call @pick_one(%2) : (tensor<1xi32>) -> tensor<1xi32>
  %d = call @pick_one(%3) : (tensor<1xi32>) -> tensor<1xi32>
  %e = call @pick_one(%4) : (tensor<1xi32>) -> tensor<1xi32>
  %r = stablehlo.concatenate %a, %b, %c, %d, %e, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
  return %r : tensor<5xi32>
}
func.func private @pick_one(%i: tensor<1xi32>) -> tensor<1xi32> {
  %s = stablehlo.reshape %i : (tensor<1xi32>) -> tensor<i32>
  %r = "stablehlo.case"(%s) ({
    %c = stablehlo.constant dense<10> : tensor<1xi32>
    "stablehlo.return"(%c) : (tensor<1xi32>) -> ()
  }, {
    %c = stablehlo.constant dense<20> : tensor<1xi32>
    "stablehlo.return"(%c) : (tensor<1xi32>) -> ()
  }, {
    %c = stablehlo.constant dense<30> : tensor<1xi32>
    "stablehlo.return"(%c) : (tensor<1xi32>) -> ()
  }) : (tensor<i32>) -> tensor<1xi32>
  return %r : tensor<1xi32>
}
func.func @loop_generic_and_pretty() {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %ten = stablehlo.constant dense<10> : tensor<i64>
  %x = stablehlo.constant dense<[1.0, 0.5]> : tensor<2xf32>
  %a:2 = "stablehlo.while"(%zero, %x) ({
  ^bb0(%i: tensor<i64>, %v: tensor<2xf32>):
    %p = stablehlo.compare LT, %i, %ten, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i64>, %v: tensor<2xf32>):
    %n = stablehlo.add %i, %one : tensor<i64>
    %w = stablehlo.add %v, %x : tensor<2xf32>
    stablehlo.return %n, %w : tensor<i64>, tensor<2xf32>
  }) : (tensor<i64>, tensor<2xf32>) -> (tensor<i64>, tensor<2xf32>)
  check.expect_eq %a#0, %ten : tensor<i64>
  check.expect_eq_const %a#1, dense<[11.0, 5.5]> : tensor<2xf32>
  %b:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i64>, tensor<2xf32>
   cond {
    %p = stablehlo.compare NE, %i, %ten : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %n = stablehlo.add %i, %one : tensor<i64>
    %even = stablehlo.and %i, %one : tensor<i64>
    %q = stablehlo.compare EQ, %even, %one : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %w = "stablehlo.if"(%q) ({
      %y = stablehlo.add %v, %x : tensor<2xf32>
      stablehlo.return %y : tensor<2xf32>
    }, {
      stablehlo.return %v : tensor<2xf32>
    }) : (tensor<i1>) -> tensor<2xf32>
    stablehlo.return %n, %w : tensor<i64>, tensor<2xf32>
  }
  check.expect_eq_const %b#1, dense<[6.0, 3.0]> : tensor<2xf32>
  func.return
}

// -----

func.func @loop_by_values() {
  %x = stablehlo.constant dense<1.0> : tensor<f32>
  %r = stablehlo.while(%v = %x) : tensor<f32>
   cond {
    %c = stablehlo.constant dense<1.0e+02> : tensor<f32>
    %p = stablehlo.compare LT, %v, %c, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %w = stablehlo.add %v, %v : tensor<f32>
    stablehlo.return %w : tensor<f32>
  }
  check.expect_almost_eq_const %r, dense<1.28e+02> : tensor<f32> {tolerance = 0.1 : f64}
  func.return
}
