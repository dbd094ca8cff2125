// Inside of the interpreter: one function per op, and access to elements in the type their arithmetic is done in.
//
// Lanes are up to TN_CHUNK elements widened to one of six kinds: f16, bf16 and f8 become f32; bool and unsigned
// integers u64; signed ones i64. Storing rounds floats once and wraps integers, so that operations on lanes need not
// know the width of the dtype (where they do, shifts and bit counts, they ask for it).
#ifndef TN_IR_INTERP_INTERNAL_H_
#define TN_IR_INTERP_INTERNAL_H_

#include "ir/interp.h"

enum { TN_CHUNK = 256 };

typedef enum tn_elem_kind {
  TN_ELEM_F32,
  TN_ELEM_F64,
  TN_ELEM_I64,
  TN_ELEM_U64,
  TN_ELEM_C64,
  TN_ELEM_C128,
} tn_elem_kind_t;

typedef union tn_elems {
  float f32[TN_CHUNK];
  double f64[TN_CHUNK];
  int64_t i64[TN_CHUNK];
  uint64_t u64[TN_CHUNK];
  float c64[TN_CHUNK][2];
  double c128[TN_CHUNK][2];
} tn_elems_t;

typedef union tn_elem {
  float f32;
  double f64;
  int64_t i64;
  uint64_t u64;
  float c64[2];
  double c128[2];
} tn_elem_t;

tn_elem_kind_t tn_elem_kind(tn_dtype_t dtype);
void tn_elems_load(tn_dtype_t dtype, const void* data, int64_t start, int64_t count,
                   tn_elems_t* out);
void tn_elems_store(tn_dtype_t dtype, void* data, int64_t start, int64_t count,
                    const tn_elems_t* lanes);
tn_elem_t tn_elem_load(tn_dtype_t dtype, const void* data, int64_t index);
void tn_elem_store(tn_dtype_t dtype, void* data, int64_t index, tn_elem_t value);

// The start of a reduction of |dtype|, and one step with |a| the earlier value.
tn_elem_t tn_elem_identity(tn_reduce_kind_t kind, tn_dtype_t dtype);
tn_elem_t tn_elem_combine(tn_reduce_kind_t kind, tn_elem_kind_t lanes, tn_elem_t a, tn_elem_t b);

// The maximum or minimum of two reals: a NaN wins, the first if both are; of equal values the second.
static inline float tn_extreme_f32(bool is_max, float a, float b) {
  if (a != a) return a;
  return (is_max ? a > b : a < b) ? a : b;
}
static inline double tn_extreme_f64(bool is_max, double a, double b) {
  if (a != a) return a;
  return (is_max ? a > b : a < b) ? a : b;
}

// Row-major strides in elements.
void tn_interp_strides(const tn_type_t* type, int64_t* out_strides);
// Steps |index| through |dims| in row-major order; false after the last. Start with zeros and only if no extent is 0.
bool tn_interp_next(int rank, const int64_t* dims, int64_t* index);
static inline int64_t tn_interp_offset(int rank, const int64_t* index, const int64_t* strides) {
  int64_t offset = 0;
  for (int i = 0; i < rank; ++i) offset += index[i] * strides[i];
  return offset;
}
// dst[index] = src[index] for all index of |dims|, elements of |size| bytes, strides in elements.
void tn_interp_copy(size_t size, int rank, const int64_t* dims, const uint8_t* src,
                    const int64_t* src_strides, uint8_t* dst, const int64_t* dst_strides);
// RESOURCE_EXHAUSTED when there is none; the caller frees. |count| elements of |size| bytes, zeroed.
tn_status_t tn_interp_alloc(int64_t count, size_t size, void** out_data);

typedef tn_status_t (*tn_interp_fn_t)(const tn_node_t* node, const void* const* operands,
                                      void* const* results);

// clang-format off
#define TN_INTERP_FUNCTIONS(X)                                                                             \
  X(constant) X(iota) X(unary) X(convert) X(bitcast) X(parts) X(is_finite) X(binary) X(compare) X(complex) \
  X(select) X(clamp) X(fma) X(broadcast_in_dim) X(reshape) X(transpose) X(reverse) X(slice) X(pad)         \
  X(concat) X(dynamic_slice) X(dynamic_update_slice) X(gather) X(scatter) X(reduce) X(arg_reduce)          \
  X(reduce_window) X(window_grad) X(scan) X(sort) X(topk) X(dot_general) X(convolution) X(rng_bits)
// clang-format on
#define TN_INTERP_DECLARE(name)                                                    \
  tn_status_t tn_interp_##name(const tn_node_t* node, const void* const* operands, \
                               void* const* results);
TN_INTERP_FUNCTIONS(TN_INTERP_DECLARE)
#undef TN_INTERP_DECLARE

#endif  // TN_IR_INTERP_INTERNAL_H_
