// What a lowering function works with: the arguments of one call, and the results it returns.
//
// Accessors that return a plain number fix the argument's value in the cache key; tn_arg_node keeps a scalar symbolic.
// Wrong kinds record an INVALID_ARGUMENT in the graph (see tn_graph_status) and return 0 or NULL.
#ifndef TN_ATEN_LOWERING_H_
#define TN_ATEN_LOWERING_H_

#include "tn/aten.h"
#include "tn/graph.h"

enum { TN_ATEN_MAX_RESULTS = 1024 };  // _foreach_* over a large parameter list

struct tn_lowering {
  const tn_aten_op_t* op;
  tn_graph_t* graph;
  int arg_count;
  const tn_value_t* args;
  const tn_node_t* random_state;  // RANDOM ops: u64[2]
  int result_capacity, result_count;
  tn_value_t* results;
  uint32_t value_mask;
  uint64_t random_count;
};

// ---- arguments, by position in the schema -----------------------------------------------------------------
bool tn_arg_is_none(tn_lowering_t* lowering, int index);  // also true beyond the last argument
// A number given as BOOL, I64, F64 or C128, as |dtype| says.
bool tn_arg_is_number_of(tn_lowering_t* lowering, int index, tn_dtype_t dtype);
// The tensor's node; NULL (no error) if the argument is None.
const tn_node_t* tn_arg_tensor(tn_lowering_t* lowering, int index);
// Tensor or number as a rank-0 (number) or any-rank (tensor) node of its own dtype; numbers have dtype BOOL, I64, F64
// (C128). Does not fix a number's value.
const tn_node_t* tn_arg_node(tn_lowering_t* lowering, int index);
// A number converted to |dtype| as a rank-0 node, without fixing its value.
const tn_node_t* tn_arg_scalar(tn_lowering_t* lowering, int index, tn_dtype_t dtype);
int64_t tn_arg_int(tn_lowering_t* lowering, int index, int64_t if_none);
double tn_arg_double(tn_lowering_t* lowering, int index, double if_none);
bool tn_arg_bool(tn_lowering_t* lowering, int index, bool if_none);
tn_dtype_t tn_arg_dtype(tn_lowering_t* lowering, int index, tn_dtype_t if_none);
const char* tn_arg_string(tn_lowering_t* lowering, int index, const char* if_none);
// Number of ints and their values; a single int counts as a list of one; -1 if None.
int tn_arg_ints(tn_lowering_t* lowering, int index, const int64_t** out_ints);
// One value per spatial dimension; a list of one value stands for all. False for a list of another length.
bool tn_arg_spatial(tn_lowering_t* lowering, int index, int spatial, int64_t* out);
// Number of list items; item |item| as a tensor node (NULL if None).
int tn_arg_list_count(tn_lowering_t* lowering, int index);
const tn_node_t* tn_arg_list_tensor(tn_lowering_t* lowering, int index, int item);

// ---- results ------------------------------------------------------------------------------------------------
// Appends the next result.
void tn_return(tn_lowering_t* lowering, const tn_node_t* node);
void tn_return_none(tn_lowering_t* lowering);  // an undefined tensor (absent gradient)
void tn_return_int(tn_lowering_t* lowering, int64_t value);  // a result of type int
// Lowers another row of the table with |args| in the same graph, appending its results to this call's.
tn_status_t tn_lower_nested(tn_lowering_t* lowering, const char* name, int arg_count,
                            const tn_value_t* args);
// UNIMPLEMENTED: "<reason>"; the call runs on the CPU and the reason is shown to the user.
#define TN_DECLINE(...) TN_ERROR(TN_UNIMPLEMENTED, __VA_ARGS__)

// ---- shared rules ---------------------------------------------------------------------------------------------
// Wraps a dimension of -rank..rank-1 (rank 0 counts as 1); OUT_OF_RANGE recorded in the graph otherwise.
int tn_wrap_dim(tn_lowering_t* lowering, int64_t dim, int rank);
// Distinct wrapped dimensions in ascending order; an empty or absent list means all. Returns the count.
int tn_wrap_dims(tn_lowering_t* lowering, int count, const int64_t* dims, int rank,
                 int64_t* out_dims);
// PyTorch's result type of tensors and numbers (dimensioned, 0-dim and wrapped numbers are three categories);
// arguments |first| .. |first + count - 1|, lists included.
tn_dtype_t tn_promote_args(tn_lowering_t* lowering, int first, int count);
tn_dtype_t tn_promote_types(tn_dtype_t a, tn_dtype_t b);
// Default float for integers and bool, itself otherwise.
tn_dtype_t tn_to_float_dtype(tn_dtype_t dtype);
// Broadcast shape of two nodes; INVALID_ARGUMENT recorded when they do not match.
tn_type_t tn_broadcast_type(tn_lowering_t* lowering, const tn_node_t* a, const tn_node_t* b);
// Converts both to |dtype| and broadcasts them to one shape.
void tn_broadcast_pair(tn_lowering_t* lowering, tn_dtype_t dtype, const tn_node_t** a,
                       const tn_node_t** b);
// |value| unchanged, in a launch that fails before it is computed if any element of |is_wrong| (bool) is set. The call then
// runs on the CPU, which raises PyTorch's own error; a compiled graph raises the check's text.
const tn_node_t* tn_checked(tn_lowering_t* lowering, const tn_node_t* value,
                            const tn_node_t* is_wrong, tn_check_kind_t kind);
// f32 for f16/bf16 (PyTorch's opmath type), itself otherwise.
tn_dtype_t tn_opmath_dtype(tn_dtype_t dtype);

static inline int tn_rank(const tn_node_t* node) { return node ? node->types[0].rank : 0; }
static inline int64_t tn_dim(const tn_node_t* node, int dim) {
  return node ? node->types[0].dims[dim] : 0;
}
static inline tn_dtype_t tn_dtype_of(const tn_node_t* node) {
  return node ? node->types[0].dtype : TN_F32;
}

#endif  // TN_ATEN_LOWERING_H_
