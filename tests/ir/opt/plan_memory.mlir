// Temporaries whose lives do not meet share memory.
// RUN: opt --pass=plan
// OUT: buffer 0: parameter 0
// OUT: buffer 1: temporary of 1024 bytes at 0, steps 0 to 1
// OUT: buffer 2: temporary of 1024 bytes at 1024, steps 1 to 2
// OUT: buffer 3: temporary of 1024 bytes at 0, steps 2 to 3
// OUT: buffer 4: result 0
// OUT: temporaries: 2048 bytes
// OUT: step 0: stablehlo.dot_general
// OUT:     operand 0: buffer 0 as tensor<16x16xf32>
// OUT:     operand 1: buffer 0 as tensor<16x16xf32>
// OUT:     result 0: buffer 1 as tensor<16x16xf32>
// OUT: step 1: stablehlo.dot_general
// OUT:     operand 0: buffer 1 as tensor<16x16xf32>
// OUT:     operand 1: buffer 0 as tensor<16x16xf32>
// OUT:     result 0: buffer 2 as tensor<16x16xf32>
// OUT: step 2: stablehlo.dot_general
// OUT:     operand 0: buffer 2 as tensor<16x16xf32>
// OUT:     operand 1: buffer 0 as tensor<16x16xf32>
// OUT:     result 0: buffer 3 as tensor<16x16xf32>
// OUT: step 3: stablehlo.dot_general
// OUT:     operand 0: buffer 3 as tensor<16x16xf32>
// OUT:     operand 1: buffer 0 as tensor<16x16xf32>
// OUT:     result 0: buffer 4 as tensor<16x16xf32>
func.func @main(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = stablehlo.dot_general %1, %x, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %3 = stablehlo.dot_general %2, %x, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %3 : tensor<16x16xf32>
}
