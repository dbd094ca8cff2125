// A reduction's start value other than its identity takes part once; i1 adds as or.
// RUN: run --input iota
// OUT: dense<[1.300000e+01, 2.200000e+01]> : tensor<2xf32>
// OUT: dense<[false, true]> : tensor<2xi1>
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xi1>) {
  %c = stablehlo.constant dense<1.000000e+01> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %b = stablehlo.constant dense<[[false, false], [false, true]]> : tensor<2x2xi1>
  %f = stablehlo.constant dense<false> : tensor<i1>
  %1 = stablehlo.reduce(%b init: %f) across dimensions = [1] : (tensor<2x2xi1>, tensor<i1>) -> tensor<2xi1>
   reducer(%p: tensor<i1>, %q: tensor<i1>) {
    %2 = stablehlo.add %p, %q : tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }
  return %0, %1 : tensor<2xf32>, tensor<2xi1>
}
