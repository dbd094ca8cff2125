// Gather and scatter: reads and writes at positions given by index arrays.
//
// Indices are I32 or I64 (also I8..U32; U64 is read as I64). |pool| may be NULL; nothing allocates. Dtypes of
// x, updates and out are equal. With TN_BOUNDS_ERROR and TN_BOUNDS_WRAP every index is checked; the first bad
// one (in row-major order) gives OUT_OF_RANGE
//   "index 7 is out of bounds for dimension 0 with size 5"
// A scatter has then written nothing; a gather may have written part of |out|. Results do not depend on the
// thread count: updates of one element are applied in row-major order of the indices. Sums and products of
// f16 and bf16 round after every update, as the interpreter does.
#ifndef TN_KERNELS_INDEX_H_
#define TN_KERNELS_INDEX_H_

#include "src/base/pool.h"
#include "src/kernels/view.h"

// out[a.., i.., b..] = x[a.., indices[i..], b..], the index replacing |dimension| of x.
tn_status_t tn_index_take(tn_pool_t* pool, const tn_view_t* x, const tn_view_t* indices,
                          int dimension, tn_bounds_t bounds, const tn_view_t* out);
// torch.gather: out and indices have equal dims; other dims of x may be larger.
tn_status_t tn_index_take_along(tn_pool_t* pool, const tn_view_t* x, const tn_view_t* indices,
                                int dimension, tn_bounds_t bounds, const tn_view_t* out);
// torch.scatter into |out|, which already holds x (copy it first, or update in place). |updates| has dims at
// least those of |indices|. CLAMP drops updates outside.
tn_status_t tn_index_put_along(tn_pool_t* pool, const tn_view_t* indices, const tn_view_t* updates,
                               int dimension, tn_reduce_kind_t kind, tn_bounds_t bounds,
                               const tn_view_t* out);
// The inverse of tn_index_take, into |out| which already holds x (index_add, index_copy, embedding backward):
// out[a.., indices[i..], b..] = kind(out[..], updates[a.., i.., b..]).
tn_status_t tn_index_put(tn_pool_t* pool, const tn_view_t* indices, const tn_view_t* updates,
                         int dimension, tn_reduce_kind_t kind, tn_bounds_t bounds,
                         const tn_view_t* out);

// StableHLO gather.
tn_status_t tn_index_gather(tn_pool_t* pool, const tn_view_t* x, const tn_view_t* indices,
                            const tn_gather_dims_t* dims, const int64_t* slice_sizes,
                            tn_bounds_t bounds, const tn_view_t* out);
// StableHLO scatter into |out|, which already holds x.
tn_status_t tn_index_scatter(tn_pool_t* pool, const tn_view_t* indices, const tn_view_t* updates,
                             const tn_gather_dims_t* dims, tn_reduce_kind_t kind,
                             tn_bounds_t bounds, const tn_view_t* out);

#endif  // TN_KERNELS_INDEX_H_
