// A detour through a wider type goes if every value survives it: bf16 to f32 does, i64 to f32 does not.
// RUN: opt --pass=simplify
// OUT: module {
// OUT:   func.func @main(%arg0: tensor<4xbf16>, %arg1: tensor<4xi64>) -> (tensor<4xf16>, tensor<4xf64>) {
// OUT:     %0 = stablehlo.convert %arg0 : (tensor<4xbf16>) -> tensor<4xf16>
// OUT:     %1 = stablehlo.convert %arg1 : (tensor<4xi64>) -> tensor<4xf32>
// OUT:     %2 = stablehlo.convert %1 : (tensor<4xf32>) -> tensor<4xf64>
// OUT:     return %0, %2 : tensor<4xf16>, tensor<4xf64>
// OUT:   }
// OUT: }
func.func @main(%x: tensor<4xbf16>, %i: tensor<4xi64>) -> (tensor<4xf16>, tensor<4xf64>) {
  %0 = stablehlo.convert %x : (tensor<4xbf16>) -> tensor<4xf32>
  %1 = stablehlo.convert %0 : (tensor<4xf32>) -> tensor<4xf16>
  %2 = stablehlo.convert %i : (tensor<4xi64>) -> tensor<4xf32>
  %3 = stablehlo.convert %2 : (tensor<4xf32>) -> tensor<4xf64>
  return %1, %3 : tensor<4xf16>, tensor<4xf64>
}
