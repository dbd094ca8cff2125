// The graph IR: StableHLO-level operations on static ranked tensors.
//
// A graph owns an arena. Nodes are immutable and hash-consed: building the same operation on the same operands
// twice gives the same node, so common subexpressions are free. Nodes live as long as their graph. A graph
// belongs to one thread while it is built; a finished graph may be read from any thread.
//
// Builder functions return NULL on error and record the first error in the graph; NULL operands give NULL. So a
// long construction is written without checks and tn_graph_status is asked once at its end.
//
// Semantics that the dialect leaves open are fixed here, and src/ir/interp*.c is their meaning:
//  - arithmetic on f16/bf16/f8 computes in f32 and rounds once, to nearest even, per node;
//  - integers wrap at their own width; x / 0 and x % 0 are 0 on integers; INT_MIN / -1 is INT_MIN; shifts by
//    >= width give 0 (arithmetic right shift: the sign);
//  - MIN and MAX propagate NaN; COMPARE is false on NaN, except NE; CONVERT is as tn_scalar_convert;
//  - transcendental functions follow the recipes of src/base/math_recipes.inc bit for bit;
//  - the order of a reduction is a function of the node: see src/ir/reduce_order.h.
#ifndef TN_GRAPH_H_
#define TN_GRAPH_H_

#include "tn/dtype.h"
#include "tn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// PyTorch programs use ranks up to 8; intermediate splits and permutations need room above that.
#define TN_MAX_RANK 16

typedef enum tn_op {
#define TN_OP(name, text, operands, results, fusion, cheap) TN_OP_##name,
#include "tn/ops.inc"
#undef TN_OP
  TN_OP_COUNT
} tn_op_t;

typedef enum tn_fusion_class {
  TN_FUSION_LEAF,
  TN_FUSION_ELEMENTWISE,
  TN_FUSION_BROADCAST,
  TN_FUSION_INJECTIVE,
  TN_FUSION_REDUCTION,
  TN_FUSION_CONTRACTION,
  TN_FUSION_OPAQUE,
} tn_fusion_class_t;

typedef struct tn_op_info {
  const char* name;                    // StableHLO name
  int8_t operand_count, result_count;  // -1: varies
  uint8_t fusion;                      // tn_fusion_class_t
  bool is_cheap;                       // may be computed again rather than stored
} tn_op_info_t;
const tn_op_info_t* tn_op_info(tn_op_t op);

typedef struct tn_type {
  tn_dtype_t dtype;
  int32_t rank;
  int64_t dims[TN_MAX_RANK];
} tn_type_t;
tn_type_t tn_type_make(tn_dtype_t dtype, int rank, const int64_t* dims);
int64_t tn_type_element_count(const tn_type_t* type);
bool tn_type_equal(const tn_type_t* a, const tn_type_t* b);

// Attributes are named values; which ones an op has is listed with its builder below.
typedef enum tn_attr_name {
// clang-format off
#define TN_ATTR_NAMES(X)                                                                                     \
  X(INDEX, "index") X(DIMENSION, "dimension") X(DIMENSIONS, "dimensions") X(VALUE, "value")                  \
  X(KIND, "kind") X(DIRECTION, "direction") X(START, "start") X(LIMIT, "limit") X(STRIDE, "stride")          \
  X(LOW, "low") X(HIGH, "high") X(INTERIOR, "interior") X(SIZES, "sizes") X(WINDOW, "window")                \
  X(BASE_DILATION, "base_dilation") X(WINDOW_DILATION, "window_dilation") X(GROUPS, "groups")                \
  X(LHS_BATCH, "lhs_batch") X(RHS_BATCH, "rhs_batch") X(LHS_CONTRACT, "lhs_contract")                        \
  X(RHS_CONTRACT, "rhs_contract") X(OFFSET_DIMS, "offset_dims") X(COLLAPSED_DIMS, "collapsed_dims")          \
  X(BATCHING_DIMS, "batching_dims") X(INDEX_BATCHING_DIMS, "index_batching_dims") X(INDEX_MAP, "index_map")  \
  X(INDEX_VECTOR_DIM, "index_vector_dim") X(BOUNDS, "bounds") X(UNIQUE, "unique") X(SORTED, "sorted")        \
  X(REVERSE, "reverse") X(EXCLUSIVE, "exclusive") X(DESCENDING, "descending") X(STABLE, "stable")            \
  X(COUNT, "count") X(ALGORITHM, "algorithm") X(NAME, "name") X(EPSILON, "epsilon") X(SCALE, "scale")        \
  X(IS_CAUSAL, "is_causal") X(PROBABILITY, "probability") X(FLAGS, "flags") X(AXIS, "axis")                  \
  X(MOMENTUM, "momentum") X(LAYOUT, "layout") X(STRIDES, "strides") X(MASK, "mask") X(LARGEST, "largest")    \
  X(COUNT_INCLUDE_PAD, "count_include_pad") X(DIVISOR, "divisor") X(CEIL_MODE, "ceil_mode")    \
  X(BATCH_GROUPS, "batch_groups")
// clang-format on
#define TN_ATTR_ENUM(name, text) TN_ATTR_##name,
  TN_ATTR_NAMES(TN_ATTR_ENUM)
#undef TN_ATTR_ENUM
      TN_ATTR_COUNT_OF_NAMES
} tn_attr_name_t;
const char* tn_attr_text(tn_attr_name_t name);

typedef enum tn_attr_kind {
  TN_ATTR_INT,
  TN_ATTR_INTS,
  TN_ATTR_FLOAT,
  TN_ATTR_STRING,
  TN_ATTR_BYTES
} tn_attr_kind_t;

typedef struct tn_attr {
  tn_attr_name_t name;
  tn_attr_kind_t kind;
  int64_t count;  // of ints, or bytes (string without its NUL)
  union {
    int64_t integer;
    double real;
    const int64_t* ints;
    const char* string;  // NUL-terminated
    const uint8_t* bytes;
  } as;
} tn_attr_t;
static inline tn_attr_t tn_attr_int(tn_attr_name_t name, int64_t value) {
  tn_attr_t attr = {.name = name, .kind = TN_ATTR_INT, .count = 1};
  attr.as.integer = value;
  return attr;
}
static inline tn_attr_t tn_attr_ints(tn_attr_name_t name, int64_t count, const int64_t* values) {
  tn_attr_t attr = {.name = name, .kind = TN_ATTR_INTS, .count = count};
  attr.as.ints = values;
  return attr;
}
static inline tn_attr_t tn_attr_float(tn_attr_name_t name, double value) {
  tn_attr_t attr = {.name = name, .kind = TN_ATTR_FLOAT, .count = 1};
  attr.as.real = value;
  return attr;
}

typedef struct tn_graph tn_graph_t;

// Public fields are read-only. |types| has |result_count| entries; single-result nodes read |types[0]|.
typedef struct tn_node {
  tn_op_t op;
  uint32_t id;  // dense, operands before users
  int32_t operand_count, result_count, attr_count;
  const struct tn_node* const* operands;
  const tn_type_t* types;
  const tn_attr_t* attrs;
  uint64_t hash;
  uint8_t user_index;  // of a RESULT: which result
} tn_node_t;

// Absent attributes: NULL, |otherwise|.
const tn_attr_t* tn_node_attr(const tn_node_t* node, tn_attr_name_t name);
int64_t tn_node_int(const tn_node_t* node, tn_attr_name_t name, int64_t otherwise);
double tn_node_float(const tn_node_t* node, tn_attr_name_t name, double otherwise);
const int64_t* tn_node_ints(const tn_node_t* node, tn_attr_name_t name, int64_t* out_count);
const char* tn_node_name(const tn_node_t* node);  // NAME attribute of a composite or custom call
// The single value of a constant whose elements are all equal (through broadcasts); false if it is not one.
bool tn_node_splat(const tn_node_t* node, tn_scalar_t* out_value);

// ---- graph ---------------------------------------------------------------------------------------------
tn_status_t tn_graph_create(tn_graph_t** out_graph);
void tn_graph_destroy(tn_graph_t* graph);
// Empties the graph for reuse; keeps its memory. Nodes become invalid.
void tn_graph_reset(tn_graph_t* graph);
// First error of the builder, as a new status; TN_OK if there was none. The graph then stays unusable.
tn_status_t tn_graph_status(const tn_graph_t* graph);
// Records an error if none is recorded yet; consumes |status|; returns NULL for convenience.
const tn_node_t* tn_graph_fail(tn_graph_t* graph, tn_status_t status);
// Allocates in the graph's arena (zeroed, 16-aligned).
void* tn_graph_alloc(tn_graph_t* graph, size_t size);

// Parameters are numbered in order of creation.
//  Tensor: |strides| (elements, NULL: row-major contiguous) says how the caller's buffer is laid out.
//  Scalar: rank 0, passed by value at launch, never part of a kernel key.
const tn_node_t* tn_graph_param(tn_graph_t* graph, const tn_type_t* type, const int64_t* strides);
const tn_node_t* tn_graph_scalar_param(tn_graph_t* graph, tn_dtype_t dtype);
int tn_graph_param_count(const tn_graph_t* graph);
const tn_node_t* tn_graph_param_at(const tn_graph_t* graph, int index);
bool tn_param_is_scalar(const tn_node_t* param);
// Strides in elements of a tensor parameter; NULL if contiguous.
const int64_t* tn_param_strides(const tn_node_t* param);

// A result is a node plus where it is to be written.
typedef struct tn_graph_result {
  const tn_node_t* node;
  int64_t strides[TN_MAX_RANK];  // elements
  bool is_contiguous;            // strides are row-major
  int32_t same_as_param;         // parameter whose buffer is exactly this one (in-place), or -1
  bool overlaps_params;          // may overlap parameters in another way: write through a temporary
} tn_graph_result_t;
// Appends a result. |strides| NULL: contiguous.
void tn_graph_add_result(tn_graph_t* graph, const tn_node_t* node, const int64_t* strides);
void tn_graph_alias_result(tn_graph_t* graph, int index, int same_as_param, bool overlaps_params);
int tn_graph_result_count(const tn_graph_t* graph);
const tn_graph_result_t* tn_graph_result_at(const tn_graph_t* graph, int index);
// Highest node id + 1: the size of a table indexed by id.
uint32_t tn_graph_node_limit(const tn_graph_t* graph);
// Node by id (nodes are numbered in creation order, so this order is topological).
const tn_node_t* tn_graph_node_at(const tn_graph_t* graph, uint32_t id);

// ---- leaves --------------------------------------------------------------------------------------------
// A constant: BYTES value of all elements, row-major; or of one element when all are equal (splat).
const tn_node_t* tn_constant(tn_graph_t* graph, const tn_type_t* type, const void* data);
const tn_node_t* tn_constant_splat(tn_graph_t* graph, const tn_type_t* type, tn_scalar_t value);
// Rank-0 constants, and the same splat over the shape of |like| with dtype |dtype|.
const tn_node_t* tn_constant_double(tn_graph_t* graph, tn_dtype_t dtype, double value);
const tn_node_t* tn_constant_int(tn_graph_t* graph, tn_dtype_t dtype, int64_t value);
const tn_node_t* tn_constant_like(tn_graph_t* graph, const tn_node_t* like, double value);
const tn_node_t* tn_iota(tn_graph_t* graph, const tn_type_t* type, int dimension);  // DIMENSION

// ---- elementwise: operands of equal shapes -----------------------------------------------------------------
const tn_node_t* tn_unary(tn_graph_t* graph, tn_op_t op, const tn_node_t* x);
const tn_node_t* tn_convert(tn_graph_t* graph, const tn_node_t* x,
                            tn_dtype_t dtype);  // x itself if equal
const tn_node_t* tn_bitcast(tn_graph_t* graph, const tn_node_t* x,
                            tn_dtype_t dtype);  // equal sizes only
// Operands of equal types. AND/OR/XOR/NOT: bool or integers.
const tn_node_t* tn_binary(tn_graph_t* graph, tn_op_t op, const tn_node_t* x, const tn_node_t* y);
typedef enum tn_compare { TN_EQ, TN_NE, TN_LT, TN_LE, TN_GT, TN_GE } tn_compare_t;
const tn_node_t* tn_compare(tn_graph_t* graph, tn_compare_t direction, const tn_node_t* x,
                            const tn_node_t* y);
const tn_node_t* tn_select(tn_graph_t* graph, const tn_node_t* predicate, const tn_node_t* on_true,
                           const tn_node_t* on_false);
const tn_node_t* tn_clamp(tn_graph_t* graph, const tn_node_t* low, const tn_node_t* x,
                          const tn_node_t* high);
const tn_node_t* tn_fma(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* y,
                        const tn_node_t* z);  // x*y+z

// ---- movement --------------------------------------------------------------------------------------------
// Dimension i of x becomes dimension |map[i]| of the result (strictly increasing). DIMENSIONS
const tn_node_t* tn_broadcast_in_dim(tn_graph_t* graph, const tn_node_t* x, int rank,
                                     const int64_t* dims, const int64_t* map);
// NumPy-style broadcast to |dims|, aligned at the last dimension; x itself if nothing changes.
const tn_node_t* tn_broadcast_to(tn_graph_t* graph, const tn_node_t* x, int rank,
                                 const int64_t* dims);
const tn_node_t* tn_reshape(tn_graph_t* graph, const tn_node_t* x, int rank, const int64_t* dims);
// Dimension i of the result is dimension |permutation[i]| of x. DIMENSIONS
const tn_node_t* tn_transpose(tn_graph_t* graph, const tn_node_t* x, const int64_t* permutation);
const tn_node_t* tn_reverse(tn_graph_t* graph, const tn_node_t* x, int count,
                            const int64_t* dimensions);
// Per dimension: START, LIMIT (exclusive), STRIDE >= 1.
const tn_node_t* tn_slice(tn_graph_t* graph, const tn_node_t* x, const int64_t* start,
                          const int64_t* limit, const int64_t* stride);
// Positions |start| .. |limit| - 1 of dimension |dimension|, every |stride|-th; the others whole.
const tn_node_t* tn_slice_dim(tn_graph_t* graph, const tn_node_t* x, int dimension, int64_t start,
                              int64_t limit, int64_t stride);
// |value| has rank 0. LOW and HIGH may be negative (crop); INTERIOR >= 0.
const tn_node_t* tn_pad(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* value,
                        const int64_t* low, const int64_t* high, const int64_t* interior);
const tn_node_t* tn_concat(tn_graph_t* graph, int count, const tn_node_t* const* xs, int dimension);
// |starts|: one rank-0 integer per dimension, clamped so that the slice fits. SIZES
const tn_node_t* tn_dynamic_slice(tn_graph_t* graph, const tn_node_t* x,
                                  const tn_node_t* const* starts, const int64_t* sizes);
const tn_node_t* tn_dynamic_update_slice(tn_graph_t* graph, const tn_node_t* x,
                                         const tn_node_t* update, const tn_node_t* const* starts);

// What an index outside its dimension means.
typedef enum tn_bounds {
  TN_BOUNDS_CLAMP,  // gather: clamped, scatter: update dropped (StableHLO)
  TN_BOUNDS_ERROR,  // the launch fails with OUT_OF_RANGE naming index and size (PyTorch gather/scatter/embedding)
  TN_BOUNDS_WRAP,  // -size..-1 count from the end, else as ERROR (PyTorch indexing)
} tn_bounds_t;
// Dimension numbers of gather and scatter, as in the StableHLO specification.
typedef struct tn_gather_dims {
  int offset_count, collapsed_count, batching_count, map_count;
  int64_t offset[TN_MAX_RANK];     // gather: offset_dims; scatter: update_window_dims
  int64_t collapsed[TN_MAX_RANK];  // gather: collapsed_slice_dims; scatter: inserted_window_dims
  int64_t batching[TN_MAX_RANK];   // operand (input) batching dims
  int64_t index_batching[TN_MAX_RANK];  // batching dims of the indices
  int64_t map[TN_MAX_RANK];             // start_index_map / scatter_dims_to_operand_dims
  int64_t index_vector_dim;
} tn_gather_dims_t;
const tn_node_t* tn_gather(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* indices,
                           const tn_gather_dims_t* dims, const int64_t* slice_sizes,
                           tn_bounds_t bounds);
typedef enum tn_reduce_kind {
  TN_REDUCE_SUM,
  TN_REDUCE_PROD,
  TN_REDUCE_MAX,  // propagates NaN
  TN_REDUCE_MIN,
  TN_REDUCE_AND,  // bool or integers
  TN_REDUCE_OR,
  TN_REDUCE_ASSIGN,  // scatter only: last update in index order wins
} tn_reduce_kind_t;
// Updates are applied in row-major order of their indices.
const tn_node_t* tn_scatter(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* indices,
                            const tn_node_t* updates, const tn_gather_dims_t* dims,
                            tn_reduce_kind_t kind, tn_bounds_t bounds);
// The two shapes that nearly all programs use, as one call each:
// out[i.., :] = x[indices[i..], :] along dimension |dimension| (index_select, embedding).
const tn_node_t* tn_take(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* indices,
                         int dimension, tn_bounds_t bounds);
// out[i0..in] = x[i0.., indices[i0..in], ..in] at |dimension| (torch.gather); indices have the rank of x.
const tn_node_t* tn_take_along(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* indices,
                               int dimension, tn_bounds_t bounds);
// The inverse of tn_take_along (torch.scatter): updates and indices have the same shape.
const tn_node_t* tn_put_along(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* indices,
                              const tn_node_t* updates, int dimension, tn_reduce_kind_t kind,
                              tn_bounds_t bounds);

// ---- reductions, windows, order ------------------------------------------------------------------------------
// Removes |dimensions| (ascending, distinct). Result dtype is x's; f16/bf16 accumulate in f32 and round once. KIND
const tn_node_t* tn_reduce(tn_graph_t* graph, tn_reduce_kind_t kind, const tn_node_t* x, int count,
                           const int64_t* dimensions);
// Two results: values, and i64 positions of the first extreme (NaN counts as extreme). KIND is MAX or MIN.
const tn_node_t* tn_arg_reduce(tn_graph_t* graph, tn_reduce_kind_t kind, const tn_node_t* x,
                               int dimension);
typedef struct tn_window {
  int64_t size[TN_MAX_RANK], stride[TN_MAX_RANK], low[TN_MAX_RANK],
      high[TN_MAX_RANK];  // one per dimension of x
  int64_t base_dilation[TN_MAX_RANK], window_dilation[TN_MAX_RANK];
} tn_window_t;
const tn_node_t* tn_reduce_window(tn_graph_t* graph, tn_reduce_kind_t kind, const tn_node_t* x,
                                  const tn_window_t* window);
// Gradient of a MAX or MIN window reduction of x: every window adds its element of |grad| to its first extreme
// element (NaN counts as extreme), in row-major order of the windows. KIND and the window's lists
const tn_node_t* tn_window_grad(tn_graph_t* graph, tn_reduce_kind_t kind, const tn_node_t* x,
                                const tn_node_t* grad, const tn_window_t* window);
// Running reduction along a dimension; integers wrap. KIND DIMENSION REVERSE EXCLUSIVE
const tn_node_t* tn_scan(tn_graph_t* graph, tn_reduce_kind_t kind, const tn_node_t* x,
                         int dimension, bool reverse, bool exclusive);
// Sorts operand 0 along |dimension| (NaN last ascending, first descending), carrying the others. Always stable.
const tn_node_t* tn_sort(tn_graph_t* graph, int count, const tn_node_t* const* xs, int dimension,
                         bool descending);
// Two results along the last dimension: values in order, i64 positions; ties by lower position.
const tn_node_t* tn_topk(tn_graph_t* graph, const tn_node_t* x, int64_t count, bool largest);

// ---- contraction, random -----------------------------------------------------------------------------------
// Result dims: batch, lhs free, rhs free. Operands of one dtype; |dtype| of the result: same, or the wider f32 /
// i32 / i64. f16 and bf16 accumulate in f32.
const tn_node_t* tn_dot_general(tn_graph_t* graph, const tn_node_t* lhs, const tn_node_t* rhs,
                                int batch_count, const int64_t* lhs_batch, const int64_t* rhs_batch,
                                int contract_count, const int64_t* lhs_contract,
                                const int64_t* rhs_contract, tn_dtype_t dtype);
// [.., m, k] x [.., k, n] with equal batch dims, rank >= 2.
const tn_node_t* tn_matmul(tn_graph_t* graph, const tn_node_t* lhs, const tn_node_t* rhs);
typedef struct tn_conv {
  int spatial;  // 1..3
  int64_t stride[3], low[3], high[3], lhs_dilation[3], rhs_dilation[3];
  int64_t groups;        // feature groups
  int64_t batch_groups;  // StableHLO batch_group_count, 1 for PyTorch programs
} tn_conv_t;
// lhs [n, c, spatial..], rhs [o, c / groups, spatial..] -> [n, o, spatial..]. Other layouts: transpose.
const tn_node_t* tn_convolution(tn_graph_t* graph, const tn_node_t* lhs, const tn_node_t* rhs,
                                const tn_conv_t* conv);
// Philox4x32-10. |state|: u64[2] = {seed, offset}. Element i of the u32 or u64 result comes from counter
// offset + i / (4 or 2): word i mod 4 (or 2).
const tn_node_t* tn_rng_bits(tn_graph_t* graph, const tn_node_t* state, const tn_type_t* type);

// ---- structure ---------------------------------------------------------------------------------------------
// Result |index| of a node with several results; the node itself when it has one.
const tn_node_t* tn_result(tn_graph_t* graph, const tn_node_t* node, int index);
// A named operation with a decomposition registered under its name in src/ir/composites.inc; result types come from
// the same row. A driver may run it as one kernel or inline tn_composite_expand.
const tn_node_t* tn_composite(tn_graph_t* graph, const char* name, int operand_count,
                              const tn_node_t* const* operands, int attr_count,
                              const tn_attr_t* attrs);
// Builds the decomposition of |composite| on |operands| (of the same types, possibly in another graph).
tn_status_t tn_composite_expand(tn_graph_t* graph, const tn_node_t* composite,
                                const tn_node_t* const* operands, const tn_node_t** out_results);
// What only the values tell: the launch fails with INVALID_ARGUMENT and the kind's text when |is_wrong| (bool, rank 0)
// holds. The result is an i32 zero; what must not happen in that case takes it as an operand.
typedef enum tn_check_kind {
  TN_CHECK_ZERO_DIVISOR,
  TN_CHECK_UNIT_INTERVAL,
  TN_CHECK_NEGATIVE_STD,
  TN_CHECK_COUNT
} tn_check_kind_t;
const tn_node_t* tn_check(tn_graph_t* graph, const tn_node_t* is_wrong, tn_check_kind_t kind);
const char* tn_check_text(tn_check_kind_t kind);
const tn_node_t* tn_custom_call(tn_graph_t* graph, const char* name, int operand_count,
                                const tn_node_t* const* operands, int attr_count,
                                const tn_attr_t* attrs, int result_count, const tn_type_t* types);
// The node of |graph| that equals |node| of any graph with |operands| in place of its own (clone into a graph).
const tn_node_t* tn_graph_rebuild(tn_graph_t* graph, const tn_node_t* node,
                                  const tn_node_t* const* operands);

// ---- whole graphs ------------------------------------------------------------------------------------------
// Checks every node against its op's shape rule. INTERNAL naming node and rule.
tn_status_t tn_graph_verify(const tn_graph_t* graph);

// Text: StableHLO, one `func.func @main`; see docs/ir.md. The caller frees |out_text| with free().
tn_status_t tn_graph_print(const tn_graph_t* graph, char** out_text);
// Errors are INVALID_ARGUMENT "file:line:column: ...".
tn_status_t tn_graph_parse(const char* file_name, const char* text, size_t length,
                           tn_graph_t** out_graph);

// Reference interpreter: |params| and |results| are row-major contiguous buffers in order (scalar parameters:
// a pointer to the element). Ignores strides and aliasing of the graph's boundary.
tn_status_t tn_graph_interpret(const tn_graph_t* graph, const void* const* params,
                               void* const* results);

#ifdef __cplusplus
}
#endif
#endif  // TN_GRAPH_H_
