// Shape rules: from the types of the operands and the attributes to the types of the results.
//
// The builder and the verifier both ask them. Ops whose result type is not a function of operands and attributes
// take a declared type in |types[0]| (constant, iota, convert, bitcast, reshape, broadcast_in_dim, dot_general's
// dtype, rng_bits, param, custom_call's all): the rule then checks it. All others compute it.
#ifndef TN_IR_SHAPE_H_
#define TN_IR_SHAPE_H_

#include "ir/graph_internal.h"

typedef struct tn_shape {
  tn_op_t op;
  int operand_count;
  const tn_node_t* const* operands;
  int attr_count;
  const tn_attr_t* attrs;
  int result_count;  // declared ones on entry; the rule sets it where the op determines it
  tn_type_t* types;
} tn_shape_t;
typedef tn_status_t (*tn_shape_fn_t)(tn_shape_t* shape);

tn_status_t tn_shape_infer(tn_shape_t* shape);

// ---- for the rules ----------------------------------------------------------------------------------------
// INVALID_ARGUMENT "<op>: ...".
#define TN_SHAPE_ERROR(shape, format, ...)     \
  TN_ERROR(TN_INVALID_ARGUMENT, "%s: " format, \
           tn_op_info((shape)->op)->name __VA_OPT__(, ) __VA_ARGS__)

static inline const tn_type_t* tn_shape_operand(const tn_shape_t* shape, int index) {
  return &shape->operands[index]->types[0];
}
// A valid dtype, 0 <= rank <= TN_MAX_RANK, extents >= 0 whose product fits int64.
tn_status_t tn_shape_check_type(const tn_shape_t* shape, const tn_type_t* type);
// The attribute as an int, or as exactly |count| ints (count < 0: any number, returned).
tn_status_t tn_shape_int(const tn_shape_t* shape, tn_attr_name_t name, int64_t* out_value);
tn_status_t tn_shape_ints(const tn_shape_t* shape, tn_attr_name_t name, int count,
                          const int64_t** out_values, int* out_count);
tn_status_t tn_shape_dimension(const tn_shape_t* shape, const char* what, int64_t dimension,
                               int rank);
tn_status_t tn_shape_same_dims(const tn_shape_t* shape, int a, int b);
tn_status_t tn_shape_same_type(const tn_shape_t* shape, int a, int b);
// Classes as a bit mask of 1 << tn_dtype_class_t.
enum {
  TN_SHAPE_BOOL = 1 << TN_CLASS_BOOL,
  TN_SHAPE_INT = 1 << TN_CLASS_SIGNED | 1 << TN_CLASS_UNSIGNED,
  TN_SHAPE_FLOAT = 1 << TN_CLASS_FLOAT,
  TN_SHAPE_COMPLEX = 1 << TN_CLASS_COMPLEX,
  TN_SHAPE_REAL = TN_SHAPE_INT | TN_SHAPE_FLOAT,
  TN_SHAPE_NUMBER = TN_SHAPE_REAL | TN_SHAPE_COMPLEX,
  TN_SHAPE_ANY = TN_SHAPE_NUMBER | TN_SHAPE_BOOL,
};
tn_status_t tn_shape_check_class(const tn_shape_t* shape, int operand, int classes);
// How many windows fit: |extent| elements |base| apart with padding, windows of |size| elements |dilation| apart, moved
// by |stride|. Steps are >= 1. False if that exceeds int64.
bool tn_shape_window(int64_t extent, int64_t base, int64_t low, int64_t high, int64_t size,
                     int64_t dilation, int64_t stride, int64_t* out_extent);
// Which dtypes a reduction kind accepts.
tn_status_t tn_shape_check_kind(const tn_shape_t* shape, int operand, int64_t kind,
                                bool allow_assign);

// Rules by group, one function per op family.
tn_status_t tn_shape_leaf(tn_shape_t* shape);
tn_status_t tn_shape_unary(tn_shape_t* shape);
tn_status_t tn_shape_binary(tn_shape_t* shape);
tn_status_t tn_shape_ternary(tn_shape_t* shape);
tn_status_t tn_shape_broadcast_in_dim(tn_shape_t* shape);
tn_status_t tn_shape_reshape(tn_shape_t* shape);
tn_status_t tn_shape_transpose(tn_shape_t* shape);
tn_status_t tn_shape_reverse(tn_shape_t* shape);
tn_status_t tn_shape_slice(tn_shape_t* shape);
tn_status_t tn_shape_pad(tn_shape_t* shape);
tn_status_t tn_shape_concat(tn_shape_t* shape);
tn_status_t tn_shape_dynamic_slice(tn_shape_t* shape);
tn_status_t tn_shape_dynamic_update_slice(tn_shape_t* shape);
tn_status_t tn_shape_gather(tn_shape_t* shape);
tn_status_t tn_shape_scatter(tn_shape_t* shape);
tn_status_t tn_shape_reduce(tn_shape_t* shape);
tn_status_t tn_shape_arg_reduce(tn_shape_t* shape);
tn_status_t tn_shape_reduce_window(tn_shape_t* shape);
tn_status_t tn_shape_window_grad(tn_shape_t* shape);
tn_status_t tn_shape_scan(tn_shape_t* shape);
tn_status_t tn_shape_sort(tn_shape_t* shape);
tn_status_t tn_shape_topk(tn_shape_t* shape);
tn_status_t tn_shape_dot_general(tn_shape_t* shape);
tn_status_t tn_shape_convolution(tn_shape_t* shape);
tn_status_t tn_shape_rng_bits(tn_shape_t* shape);
tn_status_t tn_shape_result(tn_shape_t* shape);
tn_status_t tn_shape_composite(tn_shape_t* shape);
tn_status_t tn_shape_custom_call(tn_shape_t* shape);

#endif  // TN_IR_SHAPE_H_
