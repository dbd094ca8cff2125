// A strided array in memory: how kernels receive operands whose shape is general.
#ifndef TN_KERNELS_VIEW_H_
#define TN_KERNELS_VIEW_H_

#include <stdint.h>

#include "tn/dtype.h"
#include "tn/graph.h"

typedef struct tn_view {
  void* data;  // first element; not written when the view is an input
  tn_dtype_t dtype;
  int32_t rank;
  int64_t dims[TN_MAX_RANK];
  int64_t strides[TN_MAX_RANK];  // elements; any sign, 0 repeats
} tn_view_t;

// A view of |data|. |strides| NULL: row-major contiguous.
tn_view_t tn_view_make(void* data, tn_dtype_t dtype, int rank, const int64_t* dims,
                       const int64_t* strides);
int64_t tn_view_element_count(const tn_view_t* view);
// True if the elements lie in row-major order without gaps.
bool tn_view_is_contiguous(const tn_view_t* view);

#endif  // TN_KERNELS_VIEW_H_
