// Order along a dimension: sort, top-k, first extremes, running reductions.
//
// All dtypes except complex (scan: also complex sums and products). |pool| may be NULL; nothing allocates:
// functions with a *_workspace twin get that many bytes, 64-aligned. Results do not depend on the thread
// count. NaNs compare as greatest (all alike); -0 and +0 are equal.
#ifndef TN_KERNELS_ORDER_H_
#define TN_KERNELS_ORDER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/pool.h"
#include "src/kernels/view.h"

// Stable sort of x along |dimension|: NaN last ascending, first descending. |out_values| and |out_positions|
// (I64) have the dims of x; each may be NULL. Further operands of an IR sort: tn_index_take_along with the
// positions.
size_t tn_order_sort_workspace(const tn_view_t* x, int dimension, int thread_count);
void tn_order_sort(tn_pool_t* pool, const tn_view_t* x, int dimension, bool descending,
                   void* workspace, const tn_view_t* out_values, const tn_view_t* out_positions);
// The |count| first elements of that order (descending if |largest|) along |dimension|, ties by lower
// position.
// |out_values|, |out_positions| (I64, may be NULL): dims of x with |count| at |dimension|.
size_t tn_order_topk_workspace(const tn_view_t* x, int dimension, int64_t count, int thread_count);
void tn_order_topk(tn_pool_t* pool, const tn_view_t* x, int dimension, int64_t count, bool largest,
                   void* workspace, const tn_view_t* out_values, const tn_view_t* out_positions);
// First maximum (|kind| TN_REDUCE_MAX) or minimum along |dimension|; NaN wins both. Outputs lack |dimension|;
// each may be NULL. The extent must be > 0 unless the outputs are empty.
void tn_order_arg_reduce(tn_pool_t* pool, tn_reduce_kind_t kind, const tn_view_t* x, int dimension,
                         const tn_view_t* out_values, const tn_view_t* out_positions);
// Running reduction of |kind| (SUM, PROD, MAX, MIN, AND, OR). |exclusive|: element i combines those before
// it. f16 and bf16 run in f32, every element rounded once. |out_positions| (I64, optional, MAX and MIN):
// position of the running extreme, the later one among equals, NaN staying (torch.cummax).
void tn_order_scan(tn_pool_t* pool, tn_reduce_kind_t kind, const tn_view_t* x, int dimension,
                   bool reverse, bool exclusive, const tn_view_t* out,
                   const tn_view_t* out_positions);

#endif  // TN_KERNELS_ORDER_H_
