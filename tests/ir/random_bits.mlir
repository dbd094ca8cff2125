// Philox4x32-10 of key 0 and counter 0: the first block is the published test vector; the state moves by one counter.
// RUN: run
// OUT: dense<[1713891541, 3781805453, 3159862348, 2600524760]> : tensor<4xui32>
// OUT: dense<[0, 1]> : tensor<2xui64>
func.func @main() -> (tensor<4xui32>, tensor<2xui64>) {
  %s = stablehlo.constant dense<0> : tensor<2xui64>
  %0:2 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  return %0#1, %0#0 : tensor<4xui32>, tensor<2xui64>
}
