// What decompositions share. All functions pass NULL on, as builders do.
#ifndef TN_IR_COMPOSITE_UTIL_H_
#define TN_IR_COMPOSITE_UTIL_H_

#include "ir/composite.h"

// |x| in the type its arithmetic is done in (f32 for f16, bf16, f8).
static inline const tn_node_t* tn_c_up(tn_graph_t* graph, const tn_node_t* x) {
  return x ? tn_convert(graph, x, tn_dtype_compute(x->types[0].dtype)) : NULL;
}
// |x| reduced over |dims| and broadcast back to the shape it had.
const tn_node_t* tn_c_reduce_keep(tn_graph_t* graph, tn_reduce_kind_t kind, const tn_node_t* x,
                                  int count, const int64_t* dims);
// A tensor that lacks |dims| of |like|, repeated along them.
const tn_node_t* tn_c_spread(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* like,
                             int count, const int64_t* dims);
// A rank-1 tensor along |dimension| of |like|, repeated along all others.
const tn_node_t* tn_c_spread_vector(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* like,
                                    int dimension);

static inline const tn_node_t* tn_c_add(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* y) {
  return tn_binary(graph, TN_OP_ADD, x, y);
}
static inline const tn_node_t* tn_c_sub(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* y) {
  return tn_binary(graph, TN_OP_SUB, x, y);
}
static inline const tn_node_t* tn_c_mul(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* y) {
  return tn_binary(graph, TN_OP_MUL, x, y);
}
static inline const tn_node_t* tn_c_div(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* y) {
  return tn_binary(graph, TN_OP_DIV, x, y);
}
static inline const tn_node_t* tn_c_scale(tn_graph_t* graph, const tn_node_t* x, double factor) {
  return x ? tn_binary(graph, TN_OP_MUL, x, tn_constant_like(graph, x, factor)) : NULL;
}

// ---- for type rules ---------------------------------------------------------------------------------------
// An attribute with a default.
int64_t tn_c_int(const tn_shape_t* shape, tn_attr_name_t name, int64_t otherwise);
// The operand has the type dtype[dims]; INVALID_ARGUMENT naming |what| otherwise.
tn_status_t tn_c_expect(const tn_shape_t* shape, int operand, const char* what, tn_dtype_t dtype,
                        int rank, const int64_t* dims);
static inline tn_status_t tn_c_expect_type(const tn_shape_t* shape, int operand, const char* what,
                                           const tn_type_t* type) {
  return tn_c_expect(shape, operand, what, type->dtype, type->rank, type->dims);
}

#endif  // TN_IR_COMPOSITE_UTIL_H_
