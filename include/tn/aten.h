// ATen operators: calls, and their lowering to the graph IR.
//
// A call is one functional ATen overload with its arguments as plain C values. Lowering appends to a graph the
// nodes that compute the call's results. Eager execution lowers one call per graph; torch.compile lowers a whole
// list of calls into one graph. Both use the same table (src/aten/*.inc).
#ifndef TN_ATEN_H_
#define TN_ATEN_H_

#include "tn/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_value_kind {
  TN_VALUE_NONE,  // absent optional
  TN_VALUE_TENSOR,
  TN_VALUE_SCALAR,  // Python or C++ number: |dtype| BOOL, I64, F64 or C128, value in |scalar|
  TN_VALUE_STRING,
  TN_VALUE_INTS,     // int[] (also bool[]: 0 and 1)
  TN_VALUE_DOUBLES,  // float[]
  TN_VALUE_LIST,     // Tensor[], Tensor?[], Scalar[]: |count| values at |list|
  TN_VALUE_DTYPE,    // torch dtype as tn_dtype_t in |dtype|
  TN_VALUE_OTHER,  // layout, device, memory format, generator: |scalar.i64| holds an enumeration or 0
} tn_value_kind_t;

typedef struct tn_value {
  uint8_t kind;   // tn_value_kind_t
  uint8_t dtype;  // tensor or scalar
  // Scalars: a rank-0 parameter to use in place of the value, so that the value stays out of the cache key; may be NULL.
  // Tensors: the node that computes it.
  const tn_node_t* node;
  int32_t count;           // of ints, doubles, list; bytes of a string
  bool is_wrapped_number;  // tensor made from a Python number: weak in type promotion
  tn_scalar_t scalar;
  union {
    const int64_t* ints;
    const double* doubles;
    const char* string;
    const struct tn_value* list;
  } as;
} tn_value_t;

// Which strides the results have when the operator allocates them.
typedef enum tn_layout_rule {
  TN_LAYOUT_CONTIGUOUS,  // row-major
  TN_LAYOUT_POINTWISE,   // as TensorIterator: the inputs' common order of dimensions
  TN_LAYOUT_LIKE_FIRST,  // the first tensor argument's memory format (contiguous, channels_last)
  TN_LAYOUT_LIKE_ALL,    // the memory format that all tensor arguments share, else contiguous
  TN_LAYOUT_STACK,       // the same of the tensors with a dimension more, which argument 1 names
  TN_LAYOUT_CONV,  // channels_last if the input or the weight is, but for 3d convolutions of float64
  TN_LAYOUT_CONV_BACKWARD,  // the same, the gradient comes first
  TN_LAYOUT_INDEX,  // advanced indexing: the order of dimensions of the tensor and of the indices
  TN_LAYOUT_PRESERVE,  // the first tensor argument's strides if it is non-overlapping and dense, else as POINTWISE
} tn_layout_rule_t;

typedef struct tn_lowering tn_lowering_t;
typedef tn_status_t (*tn_lower_fn_t)(tn_lowering_t* lowering);

// One row of the lowering table.
typedef struct tn_aten_op {
  const char* name;  // functional overload without namespace, e.g. "add.Tensor"
  tn_lower_fn_t lower;
  uint8_t layout;  // tn_layout_rule_t
  uint8_t flags;
} tn_aten_op_t;
enum {
  TN_ATEN_RANDOM = 1,  // consumes random numbers: |random_state| of the call must be set
};

// The whole table, and one row by name (NULL if there is none).
int tn_aten_op_count(void);
const tn_aten_op_t* tn_aten_op_at(int index);
const tn_aten_op_t* tn_aten_op_find(const char* name);

enum { TN_ATEN_MAX_ARGS = 32 };

// Lowers one call into |graph|.
//  |args|: in schema order, defaults filled in. Tensor arguments have their node set.
//  |random_state|: rank-1 u64[2] node {seed, offset} for RANDOM ops, else NULL.
// Out: result values in schema order (|out_results| has room for |result_capacity|; lists are flattened);
//  |out_value_mask|: bit i set if the value of scalar argument i (not its node) decided what was built;
//  |out_random_count|: how far the random offset advances (in units of one Philox counter).
// UNIMPLEMENTED or INVALID_ARGUMENT with a reason: this call must run elsewhere (PyTorch's own CPU kernel then runs it
// or raises its own error).
tn_status_t tn_aten_lower(const tn_aten_op_t* op, tn_graph_t* graph, int arg_count,
                          const tn_value_t* args, const tn_node_t* random_state,
                          int result_capacity, tn_value_t* out_results, int* out_result_count,
                          uint32_t* out_value_mask, uint64_t* out_random_count);

#ifdef __cplusplus
}
#endif
#endif  // TN_ATEN_H_
