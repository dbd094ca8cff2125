// The order in which a reduction combines its elements: a function of the node alone, so that results do not depend
// on threads, layout or instruction set. Interpreter, C kernels, fusion and generated code all follow this text.
//
// For tn_reduce over |dimensions| of x (row-major dims), let the *tail* be the maximal run of trailing dimensions of
// x that are all reduced, flattened to one index i of extent T (dimensions of extent 1 are ignored everywhere).
//  * Tail not empty ("row reduction"): the other reduced dimensions ("lead", flattened row-major, extent L) run
//    outermost. If L == 1 and T > TN_REDUCE_BLOCK, the tail is cut into blocks of TN_REDUCE_BLOCK elements; each block
//    is reduced on its own and block results are combined in order, one after another, starting from the first.
//    Within a block (or the whole tail): 64 lanes start at the identity; for each lead index in order, element i of the
//    tail goes to lane i mod 64 (i counted from the block's start, or from the tail's start); lanes combine by halving:
//    lane l with lane l + 32, then + 16, + 8, + 4, + 2, + 1.
//  * Tail empty ("column reduction", last kept dimension is inner): reduced dimensions flattened row-major to r of
//    extent R. If R > TN_REDUCE_ROWS, r is cut into blocks of TN_REDUCE_ROWS; each block accumulates from the identity
//    in order; block results are combined in order, starting from the first.
// combine(a, b) is a + b, a * b, max, min, and, or with a the earlier one. f16 and bf16 accumulate in f32 (blocks
// included) and the final value is rounded once. Integers wrap, so order does not matter for them.
#ifndef TN_IR_REDUCE_ORDER_H_
#define TN_IR_REDUCE_ORDER_H_

enum {
  TN_REDUCE_LANES = 64,
  TN_REDUCE_BLOCK = 16384,  // 64 KiB of f32: one block stays in L2 and is worth one task
  TN_REDUCE_ROWS = 256,     // rows of a column block
};

#endif  // TN_IR_REDUCE_ORDER_H_
