// Integers wrap at their own width; division by zero is 0 and the least value over -1 is itself; long shifts give 0.
// RUN: run
// OUT: dense<[-56, 0, -128, 3]> : tensor<4xi8>
// OUT: dense<[0, 0, -1, -2]> : tensor<4xi8>
module {
  func.func @main() -> (tensor<4xi8>, tensor<4xi8>) {
    %a = stablehlo.constant dense<[100, 5, -128, 6]> : tensor<4xi8>
    %b = stablehlo.constant dense<[2, 0, -1, 2]> : tensor<4xi8>
    %0 = stablehlo.multiply %a, %b : tensor<4xi8>
    %1 = stablehlo.divide %a, %b : tensor<4xi8>
    %c = stablehlo.constant dense<[true, false, false, false]> : tensor<4xi1>
    %2 = stablehlo.select %c, %0, %1 : tensor<4xi1>, tensor<4xi8>
    %d = stablehlo.constant dense<[1, 1, -1, -128]> : tensor<4xi8>
    %e = stablehlo.constant dense<[8, 9, 9, 6]> : tensor<4xi8>
    %3 = stablehlo.shift_right_arithmetic %d, %e : tensor<4xi8>
    return %2, %3 : tensor<4xi8>, tensor<4xi8>
  }
}
