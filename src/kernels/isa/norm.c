// Layer, rms, group and batch norm, compiled per instruction set.
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
#include "src/kernels/isa/norm.inc"
#include "src/kernels/isa/row_end.inc"
#define ROW_TYPE    bf16
#define ROW_IS_WIDE 0
#include "src/kernels/isa/row_begin.inc"
#include "src/kernels/isa/norm.inc"
#include "src/kernels/isa/row_end.inc"
#define ROW_TYPE    f16
#define ROW_IS_WIDE 0
#include "src/kernels/isa/row_begin.inc"
#include "src/kernels/isa/norm.inc"
#include "src/kernels/isa/row_end.inc"
#define ROW_TYPE    f64
#define ROW_IS_WIDE 1
#include "src/kernels/isa/row_begin.inc"
#include "src/kernels/isa/norm.inc"
#include "src/kernels/isa/row_end.inc"

#define ROW(type)                                                                  \
  {layer_norm_##type,       layer_norm_backward_##type, add_blocks_##type,         \
   group_norm_##type,       group_norm_backward_##type, group_norm_weights_##type, \
   batch_norm_train_##type, batch_norm_infer_##type,    batch_norm_backward_##type}
const tn_norm_tables_t TN_ISA_NAME(tn_norm_tables) = {{ROW(f32), ROW(bf16), ROW(f16), ROW(f64)}};
