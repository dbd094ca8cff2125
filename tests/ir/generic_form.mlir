// The generic form, with locations and attributes of other tools.
// RUN: run --input iota --input ones
// OUT: dense<[[3.000000e+00, 3.000000e+00], [1.200000e+01, 1.200000e+01]]> : tensor<2x2xf32>
// OUT: dense<[6.000000e+00, 2.400000e+01]> : tensor<2xf32>
#loc = loc(unknown)
module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32> {mhlo.sharding = "{replicated}"} loc("x"), %arg1: tensor<3x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32> {jax.result_info = ""}) {
    %0 = "stablehlo.dot_general"(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32> loc(#loc)
    %1 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %3 = "stablehlo.add"(%arg2, %arg3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%3) : (tensor<f32>) -> ()
    }) : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
    "func.return"(%0, %2) : (tensor<2x2xf32>, tensor<2xf32>) -> ()
  }
}
