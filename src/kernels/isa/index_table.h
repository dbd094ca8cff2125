// Inner loops of gather and scatter, per instruction set.
#ifndef TN_KERNELS_ISA_INDEX_TABLE_H_
#define TN_KERNELS_ISA_INDEX_TABLE_H_

#include <stdbool.h>
#include <stdint.h>

#include "tn/graph.h"

// out[i] = kind(out[i], x[i]) for i < count; strides in bytes.
typedef void (*tn_combine_fn_t)(int64_t count, void* out, int64_t out_stride, const void* x,
                                int64_t x_stride);

typedef struct tn_index_table {
  tn_combine_fn_t combine[TN_REDUCE_ASSIGN]
                         [TN_DTYPE_COUNT];  // NULL where the kind has no meaning for the dtype
  // Whether all index[i] + bias, as unsigned numbers, are below |span|.
  bool (*are_inside)(const int64_t* index, int64_t count, uint64_t bias, uint64_t span);
  // out[i] = x[index[i]] for elements of 4 or 8 bytes; negative indices count from |size|.
  void (*gather_4)(const void* x, const int64_t* index, int64_t count, int64_t size, void* out);
  void (*gather_8)(const void* x, const int64_t* index, int64_t count, int64_t size, void* out);
} tn_index_table_t;

#endif  // TN_KERNELS_ISA_INDEX_TABLE_H_
