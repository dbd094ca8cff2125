// Copies between strided arrays, fills, padding and dtype conversion.
//
// |pool| may be NULL. Nothing allocates. Converting copies follow tn_scalar_convert. Every function accepts
// any dtype and ranks up to TN_MAX_RANK. Destinations must not overlap sources, nor themselves (no stride 0
// unless its extent is 1).
#ifndef TN_KERNELS_COPY_H_
#define TN_KERNELS_COPY_H_

#include "src/base/pool.h"
#include "src/kernels/view.h"

// out = x, of equal dims. Concatenate, slice, reverse, transpose, broadcast and dynamic slices are calls of
// this with shifted pointers and adapted strides.
void tn_copy_strided(tn_pool_t* pool, const tn_view_t* x, const tn_view_t* out);
// out = value (of out's dtype).
void tn_copy_fill(tn_pool_t* pool, tn_scalar_t value, const tn_view_t* out);
// StableHLO pad: |low| may be negative (crop), |interior| >= 0; dims of |out| say the high padding.
void tn_copy_pad(tn_pool_t* pool, const tn_view_t* x, tn_scalar_t value, const int64_t* low,
                 const int64_t* interior, const tn_view_t* out);
// |count| elements, both contiguous; equal dtypes: memcpy.
void tn_copy_convert(tn_pool_t* pool, int64_t count, tn_dtype_t from, const void* x, tn_dtype_t to,
                     void* out);

#endif  // TN_KERNELS_COPY_H_
