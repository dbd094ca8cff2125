// Inner loops of copies, per instruction set.
#ifndef TN_KERNELS_ISA_COPY_TABLE_H_
#define TN_KERNELS_ISA_COPY_TABLE_H_

#include <stddef.h>
#include <stdint.h>

#include "tn/dtype.h"

typedef struct tn_copy_table {
  // |count| contiguous elements.
  void (*convert)(tn_dtype_t from, const void* x, tn_dtype_t to, void* out, int64_t count);
  // out[i][j] = x[j][i] for i < rows, j < columns; strides in bytes from row to row; |size| bytes an element.
  void (*transpose)(size_t size, int64_t rows, int64_t columns, const void* x, int64_t x_stride,
                    void* out, int64_t out_stride);
  // out[i][j] = x[i] for i < rows, j < count; strides in bytes.
  void (*repeat)(size_t size, int64_t rows, int64_t count, const void* x, int64_t x_stride,
                 void* out, int64_t out_stride);
} tn_copy_table_t;

#endif  // TN_KERNELS_ISA_COPY_TABLE_H_
