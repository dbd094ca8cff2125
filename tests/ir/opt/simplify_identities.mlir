// Operations that do nothing go, for every value: x + 0 stays, since it turns -0 into +0.
// RUN: opt --pass=simplify
// OUT: module {
// OUT:   func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>) {
// OUT:     %0 = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
// OUT:     %1 = stablehlo.add %arg0, %0 : tensor<4xf32>
// OUT:     return %arg0, %1, %arg1 : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>
// OUT:   }
// OUT: }
func.func @main(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>) {
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %minus_zero = stablehlo.constant dense<-0.0> : tensor<4xf32>
  %none = stablehlo.constant dense<0> : tensor<4xi32>
  %0 = stablehlo.multiply %x, %one : tensor<4xf32>
  %1 = stablehlo.subtract %0, %zero : tensor<4xf32>
  %2 = stablehlo.add %minus_zero, %1 : tensor<4xf32>
  %3 = stablehlo.add %2, %zero : tensor<4xf32>
  %4 = stablehlo.add %i, %none : tensor<4xi32>
  return %2, %3, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>
}
