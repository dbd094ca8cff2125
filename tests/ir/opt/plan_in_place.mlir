// The result is written over the parameter. Element by element that is safe; read at other places, it is copied last.
// RUN: opt --pass=plan
// OUT: buffer 0: parameter 1
// OUT: buffer 1: result 0
// OUT: buffer 2: parameter 0
// OUT: buffer 3: temporary of 36 bytes at 0, steps 1 to 2
// OUT: buffer 4: result 1
// OUT: temporaries: 36 bytes
// OUT: step 0: kernel over 9
// OUT:     operand 0: buffer 2, strides 4
// OUT:     operand 1: buffer 1, strides 4
// OUT:     | loops 1 0 vector 0
// OUT:     | phase loop
// OUT:     | operand 0 f32 input contiguous
// OUT:     | operand 1 f32 output contiguous
// OUT:     | %0 = load.0 f32 phase 0
// OUT:     | %1 = stablehlo.negate f32 phase 0 %0
// OUT:     | store.1 phase 0 %1
// OUT: step 1: kernel over 3, 3
// OUT:     operand 0: buffer 0, strides 4, 12
// OUT:     operand 1: buffer 0, strides 12, 4
// OUT:     operand 2: buffer 3, strides 12, 4
// OUT:     | loops 2 0 vector 1
// OUT:     | phase loop
// OUT:     | operand 0 f32 input strided
// OUT:     | operand 1 f32 input contiguous
// OUT:     | operand 2 f32 output contiguous
// OUT:     | %0 = load.0 f32 phase 0
// OUT:     | %1 = load.1 f32 phase 0
// OUT:     | %2 = stablehlo.add f32 phase 0 %0 %1
// OUT:     | store.2 phase 0 %2
// OUT: step 2: copy of buffer 3 as tensor<3x3xf32> to buffer 4 as tensor<3x3xf32>
func.func @main(%a: tensor<3x3xf32>, %b: tensor<3x3xf32>) -> (tensor<3x3xf32> {tn.same_as_param = 0 : i64}, tensor<3x3xf32> {tn.same_as_param = 1 : i64}) {
  %0 = stablehlo.negate %a : tensor<3x3xf32>
  %1 = stablehlo.transpose %b, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = stablehlo.add %1, %b : tensor<3x3xf32>
  return %0, %2 : tensor<3x3xf32>, tensor<3x3xf32>
}
