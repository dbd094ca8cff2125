// Calls and composites of other tools are inlined.
// RUN: run --input iota
// OUT: dense<[0.000000e+00, 4.000000e+00, 8.000000e+00]> : tensor<3xf32>
module {
  func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %0 = call @twice(%x) : (tensor<3xf32>) -> tensor<3xf32>
    %1 = stablehlo.composite "their.twice" %0 {composite_attributes = {}, decomposition = @twice} : (tensor<3xf32>) -> tensor<3xf32>
    return %1 : tensor<3xf32>
  }
  func.func private @twice(%a: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.add %a, %a : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
