// Shared by the readers and writers at positions (index.c, scatter.c).
#ifndef TN_ATEN_INDEX_UTIL_H_
#define TN_ATEN_INDEX_UTIL_H_

#include "aten/lowering.h"

// x[i, :, j] in terms of a gather or scatter.
typedef struct tn_indexing {
  int count;                 // indexed dimensions
  int64_t dim[TN_MAX_RANK];  // which
  int index_rank;            // the indices' common shape
  int64_t index_dims[TN_MAX_RANK];
  int position;             // where this shape stands in the result
  const tn_node_t* starts;  // [index dims.., count]
  tn_gather_dims_t dims;
  int64_t slice[TN_MAX_RANK];
  int result_rank;
  int64_t result_dims[TN_MAX_RANK];
} tn_indexing_t;

// Reads the list of index tensors at argument |list|. UNIMPLEMENTED for masks.
tn_status_t tn_read_indexing(tn_lowering_t* l, const tn_node_t* x, int list, tn_indexing_t* out);

// Declines what is not an int32 or int64 tensor.
tn_status_t tn_check_index(tn_lowering_t* l, const tn_node_t* index);
// A 0-dim tensor is indexed as one of a single element.
const tn_node_t* tn_at_least_1d(tn_lowering_t* l, const tn_node_t* x);

// x with |updates| put at x[.., index[i], ..] along |dim|: updates have x's dims with the index's length at |dim|.
const tn_node_t* tn_put_rows(tn_lowering_t* l, const tn_node_t* x, const tn_node_t* index,
                             const tn_node_t* updates, int dim, tn_reduce_kind_t kind,
                             tn_bounds_t bounds);

#endif  // TN_ATEN_INDEX_UTIL_H_
