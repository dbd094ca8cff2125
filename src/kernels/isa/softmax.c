// Softmax and cross entropy, compiled per instruction set.
#ifdef TN_ISA_GENERIC
#pragma GCC optimize("O1")
#else
#pragma GCC optimize("O2")  // the vectors are written out; more would only unroll
#endif
#include "src/kernels/isa/row_types.h"
#include "src/kernels/isa/rows_table.h"

#define ROW_TYPE    f32
#define ROW_IS_WIDE 0
#include "src/kernels/isa/row_begin.inc"
#include "src/kernels/isa/softmax.inc"
#include "src/kernels/isa/row_end.inc"
#define ROW_TYPE    bf16
#define ROW_IS_WIDE 0
#include "src/kernels/isa/row_begin.inc"
#include "src/kernels/isa/softmax.inc"
#include "src/kernels/isa/row_end.inc"
#define ROW_TYPE    f16
#define ROW_IS_WIDE 0
#include "src/kernels/isa/row_begin.inc"
#include "src/kernels/isa/softmax.inc"
#include "src/kernels/isa/row_end.inc"
#define ROW_TYPE    f64
#define ROW_IS_WIDE 1
#include "src/kernels/isa/row_begin.inc"
#include "src/kernels/isa/softmax.inc"
#include "src/kernels/isa/row_end.inc"

#define ROW(type)                                           \
  {softmax_##type,          log_softmax_##type,             \
   softmax_backward_##type, log_softmax_backward_##type,    \
   column_softmax_##type,   column_softmax_backward_##type, \
   cross_entropy_##type,    cross_entropy_backward_##type}
const tn_softmax_tables_t TN_ISA_NAME(tn_softmax_tables) = {
    {ROW(f32), ROW(bf16), ROW(f16), ROW(f64)}};
