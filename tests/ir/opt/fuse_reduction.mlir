// A mean is finished in the kernel of its sum; a sum with two readers is stored.
// RUN: opt --pass=fuse
// OUT: group 0: %3, a result
// OUT:     %0 = stablehlo.constant dense<8.000000e+00> : tensor<4xf32>
// OUT:     %1 = stablehlo.multiply %arg0, %arg0 : tensor<4x8xf32>
// OUT:     %init_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// OUT:     %2 = stablehlo.reduce(%1 init: %init_2) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
// OUT:     %3 = stablehlo.divide %2, %0 : tensor<4xf32>
// OUT: group 1: %4, a reduction that no single reader finishes
// OUT:     %init_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// OUT:     %4 = stablehlo.reduce(%arg0 init: %init_4) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
// OUT: group 2: %5, a result
// OUT:     %5 = stablehlo.exponential %4 : tensor<8xf32>
// OUT: group 3: %6, a result
// OUT:     %6 = stablehlo.negate %4 : tensor<8xf32>
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>) {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<8.0> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %x : tensor<4x8xf32>
  %1 = stablehlo.reduce(%0 init: %init) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.divide %1, %count : tensor<4xf32>
  %3 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  %4 = stablehlo.exponential %3 : tensor<8xf32>
  %5 = stablehlo.negate %3 : tensor<8xf32>
  return %2, %4, %5 : tensor<4xf32>, tensor<8xf32>, tensor<8xf32>
}
