// Attention per instruction set.
#ifndef TN_KERNELS_ISA_ATTENTION_TABLE_H_
#define TN_KERNELS_ISA_ATTENTION_TABLE_H_

#include "src/kernels/attention.h"

enum {
  TN_ATTENTION_ROWS = 128,  // query rows of a task (rounded up to whole row groups)
  TN_ATTENTION_GROUP = 6,   // rows of the register tile
  TN_ATTENTION_KEYS = 128,  // keys of a block
};

// Floats of scratch memory per worker.
typedef struct tn_attention_table {
  int64_t (*forward_scratch)(const tn_attention_t* attention);
  // Task: (batch * heads + head) * row blocks + block.
  void (*forward)(const tn_attention_t* attention, int64_t task, float* scratch, void* out,
                  const int64_t* out_stride, float* out_lse);
  int64_t (*backward_scratch)(const tn_attention_t* attention);
  // Task: batch * heads_kv + key head.
  void (*backward)(const tn_attention_t* attention, const tn_attention_grad_t* grad, int64_t task,
                   float* scratch);
} tn_attention_table_t;

// Row blocks of a head are of equal size.
static inline int64_t tn_attention_block_count(int64_t length) {
  return (length + TN_ATTENTION_ROWS - 1) / TN_ATTENTION_ROWS;
}
static inline int64_t tn_attention_block_rows(int64_t length) {
  const int64_t count = tn_attention_block_count(length), rows = (length + count - 1) / count;
  return (rows + TN_ATTENTION_GROUP - 1) / TN_ATTENTION_GROUP * TN_ATTENTION_GROUP;
}

#endif  // TN_KERNELS_ISA_ATTENTION_TABLE_H_
