// Random numbers per instruction set.
#ifndef TN_KERNELS_ISA_RANDOM_TABLE_H_
#define TN_KERNELS_ISA_RANDOM_TABLE_H_

#include <stdint.h>

typedef struct tn_random_table {
  // The words of |groups| groups of 16 consecutive counters, in order.
  void (*philox)(uint64_t seed, uint64_t counter, int64_t groups, uint32_t* out);
} tn_random_table_t;

#endif  // TN_KERNELS_ISA_RANDOM_TABLE_H_
