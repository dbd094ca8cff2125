// Arguments and results of a lowering, and the rules about dimensions that families share.
#include "aten/lowering.h"

#include <string.h>

static const tn_value_t k_none = {.kind = TN_VALUE_NONE};

static const tn_value_t* arg_at(const tn_lowering_t* lowering, int index) {
  return index < lowering->arg_count ? &lowering->args[index] : &k_none;
}

static void wrong_kind(tn_lowering_t* lowering, int index, const char* expected) {
  tn_graph_fail(lowering->graph, TN_ERROR(TN_INVALID_ARGUMENT, "%s: argument %d: expected %s",
                                          lowering->op->name, index, expected));
}

// The value of argument |index| decides what is built.
static void fix_value(tn_lowering_t* lowering, int index) { lowering->value_mask |= 1u << index; }

bool tn_arg_is_none(tn_lowering_t* lowering, int index) {
  return arg_at(lowering, index)->kind == TN_VALUE_NONE;
}

bool tn_arg_is_number_of(tn_lowering_t* lowering, int index, tn_dtype_t dtype) {
  const tn_value_t* value = arg_at(lowering, index);
  return value->kind == TN_VALUE_SCALAR && value->dtype == dtype;
}

const tn_node_t* tn_arg_tensor(tn_lowering_t* lowering, int index) {
  const tn_value_t* value = arg_at(lowering, index);
  if (value->kind == TN_VALUE_NONE) return NULL;
  if (value->kind != TN_VALUE_TENSOR) {
    wrong_kind(lowering, index, "a tensor");
    return NULL;
  }
  return value->node;
}

static const tn_node_t* scalar_constant(tn_graph_t* graph, tn_dtype_t dtype, tn_scalar_t value) {
  tn_type_t type = tn_type_make(dtype, 0, NULL);
  return tn_constant_splat(graph, &type, value);
}

const tn_node_t* tn_arg_node(tn_lowering_t* lowering, int index) {
  const tn_value_t* value = arg_at(lowering, index);
  if (value->kind == TN_VALUE_TENSOR) return value->node;
  if (value->kind != TN_VALUE_SCALAR) {
    if (value->kind != TN_VALUE_NONE) wrong_kind(lowering, index, "a tensor or a number");
    return NULL;
  }
  if (value->node) return value->node;
  return scalar_constant(lowering->graph, (tn_dtype_t)value->dtype, value->scalar);
}

const tn_node_t* tn_arg_scalar(tn_lowering_t* lowering, int index, tn_dtype_t dtype) {
  const tn_value_t* value = arg_at(lowering, index);
  if (value->kind == TN_VALUE_SCALAR && !value->node)
    return scalar_constant(lowering->graph, dtype,
                           tn_scalar_convert(dtype, (tn_dtype_t)value->dtype, value->scalar));
  return tn_convert(lowering->graph, tn_arg_node(lowering, index), dtype);
}

// The number at |index| with its value fixed; NULL if None or not a number.
static const tn_value_t* number_at(tn_lowering_t* lowering, int index) {
  const tn_value_t* value = arg_at(lowering, index);
  if (value->kind == TN_VALUE_NONE) return NULL;
  if (value->kind != TN_VALUE_SCALAR) {
    wrong_kind(lowering, index, "a number");
    return NULL;
  }
  fix_value(lowering, index);
  return value;
}

int64_t tn_arg_int(tn_lowering_t* lowering, int index, int64_t if_none) {
  const tn_value_t* value = arg_at(lowering, index);
  if (value->kind == TN_VALUE_OTHER) {
    fix_value(lowering, index);
    return value->scalar.i64;
  }
  value = number_at(lowering, index);
  return value ? tn_scalar_to_int((tn_dtype_t)value->dtype, value->scalar) : if_none;
}

double tn_arg_double(tn_lowering_t* lowering, int index, double if_none) {
  const tn_value_t* value = number_at(lowering, index);
  return value ? tn_scalar_to_double((tn_dtype_t)value->dtype, value->scalar) : if_none;
}

bool tn_arg_bool(tn_lowering_t* lowering, int index, bool if_none) {
  const tn_value_t* value = number_at(lowering, index);
  return value ? tn_scalar_to_double((tn_dtype_t)value->dtype, value->scalar) != 0.0 : if_none;
}

tn_dtype_t tn_arg_dtype(tn_lowering_t* lowering, int index, tn_dtype_t if_none) {
  const tn_value_t* value = arg_at(lowering, index);
  if (value->kind == TN_VALUE_NONE) return if_none;
  if (value->kind != TN_VALUE_DTYPE) {
    wrong_kind(lowering, index, "a dtype");
    return if_none;
  }
  return (tn_dtype_t)value->dtype;
}

const char* tn_arg_string(tn_lowering_t* lowering, int index, const char* if_none) {
  const tn_value_t* value = arg_at(lowering, index);
  if (value->kind == TN_VALUE_NONE) return if_none;
  if (value->kind != TN_VALUE_STRING) {
    wrong_kind(lowering, index, "a string");
    return if_none;
  }
  return value->as.string;
}

int tn_arg_ints(tn_lowering_t* lowering, int index, const int64_t** out_ints) {
  const tn_value_t* value = arg_at(lowering, index);
  *out_ints = NULL;
  if (value->kind == TN_VALUE_NONE) return -1;
  if (value->kind == TN_VALUE_SCALAR) {
    const int64_t single = tn_arg_int(lowering, index, 0);
    int64_t* copy = tn_graph_alloc(lowering->graph, sizeof(single));
    if (!copy) return -1;
    *copy = single;
    *out_ints = copy;
    return 1;
  }
  if (value->kind == TN_VALUE_LIST && value->count == 0) return 0;
  if (value->kind != TN_VALUE_INTS) {
    wrong_kind(lowering, index, "a list of integers");
    return -1;
  }
  fix_value(lowering, index);
  *out_ints = value->as.ints;
  return value->count;
}

bool tn_arg_spatial(tn_lowering_t* lowering, int index, int spatial, int64_t* out) {
  const int64_t* given;
  const int count = tn_arg_ints(lowering, index, &given);
  if (count != spatial && count != 1) return false;
  for (int d = 0; d < spatial; ++d) out[d] = given[count == 1 ? 0 : d];
  return true;
}

int tn_arg_list_count(tn_lowering_t* lowering, int index) {
  const tn_value_t* value = arg_at(lowering, index);
  if (value->kind == TN_VALUE_LIST) return value->count;
  if (value->kind == TN_VALUE_INTS && value->count == 0) return 0;
  if (value->kind != TN_VALUE_NONE) wrong_kind(lowering, index, "a list of tensors");
  return 0;
}

const tn_node_t* tn_arg_list_tensor(tn_lowering_t* lowering, int index, int item) {
  const tn_value_t* value = arg_at(lowering, index);
  if (value->kind != TN_VALUE_LIST || item >= value->count) return NULL;
  const tn_value_t* entry = &value->as.list[item];
  if (entry->kind == TN_VALUE_SCALAR && !entry->node)
    return scalar_constant(lowering->graph, (tn_dtype_t)entry->dtype, entry->scalar);
  return entry->kind == TN_VALUE_NONE ? NULL : entry->node;
}

static void append_result(tn_lowering_t* lowering, const tn_value_t* value) {
  if (lowering->result_count >= lowering->result_capacity) {
    tn_graph_fail(lowering->graph, TN_ERROR(TN_UNIMPLEMENTED, "%s: more than %d results",
                                            lowering->op->name, lowering->result_capacity));
    return;
  }
  lowering->results[lowering->result_count++] = *value;
}

void tn_return(tn_lowering_t* lowering, const tn_node_t* node) {
  tn_value_t value = {.kind = TN_VALUE_TENSOR, .node = node};
  if (node) value.dtype = (uint8_t)node->types[0].dtype;
  append_result(lowering, &value);
}

void tn_return_none(tn_lowering_t* lowering) { append_result(lowering, &k_none); }

void tn_return_int(tn_lowering_t* lowering, int64_t number) {
  tn_value_t value = {.kind = TN_VALUE_SCALAR, .dtype = TN_I64};
  value.scalar.i64 = number;
  append_result(lowering, &value);
}

tn_status_t tn_lower_nested(tn_lowering_t* lowering, const char* name, int arg_count,
                            const tn_value_t* args) {
  const tn_aten_op_t* op = tn_aten_op_find(name);
  if (!op) return TN_ERROR(TN_UNIMPLEMENTED, "%s: there is no %s", lowering->op->name, name);
  tn_lowering_t nested = *lowering;
  nested.op = op;
  nested.arg_count = arg_count;
  nested.args = args;
  nested.value_mask = 0;  // positions are those of |args|: the caller knows what they mean
  TN_TRY(op->lower(&nested));
  lowering->result_count = nested.result_count;
  return TN_OK;
}

int tn_wrap_dim(tn_lowering_t* lowering, int64_t dim, int rank) {
  const int64_t limit = rank > 0 ? rank : 1;
  if (dim < -limit || dim >= limit) {
    tn_graph_fail(
        lowering->graph,
        TN_ERROR(
            TN_OUT_OF_RANGE,
            "%s: Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
            lowering->op->name, (long long)-limit, (long long)limit - 1, (long long)dim));
    return 0;
  }
  return (int)(dim < 0 ? dim + limit : dim);
}

int tn_wrap_dims(tn_lowering_t* lowering, int count, const int64_t* dims, int rank,
                 int64_t* out_dims) {
  bool is_chosen[TN_MAX_RANK] = {false};
  for (int i = 0; i < count; ++i) {
    const int dim = tn_wrap_dim(lowering, dims[i], rank);
    if (is_chosen[dim])
      tn_graph_fail(
          lowering->graph,
          TN_ERROR(TN_INVALID_ARGUMENT, "%s: dim %d appears multiple times in the list of dims",
                   lowering->op->name, dim));
    is_chosen[dim] = true;
  }
  int out_count = 0;
  for (int dim = 0; dim < rank; ++dim)
    if (count <= 0 || is_chosen[dim]) out_dims[out_count++] = dim;
  return out_count;
}

const tn_node_t* tn_checked(tn_lowering_t* lowering, const tn_node_t* value,
                            const tn_node_t* is_wrong, tn_check_kind_t kind) {
  tn_graph_t* g = lowering->graph;
  if (!value || !is_wrong) return NULL;
  int64_t dims[TN_MAX_RANK];
  const int rank = tn_rank(is_wrong);
  for (int d = 0; d < rank; ++d) dims[d] = d;
  const tn_node_t* any = rank ? tn_reduce(g, TN_REDUCE_OR, is_wrong, rank, dims) : is_wrong;
  // The check answers 0, which is added: so it comes first.
  const tn_node_t* zero = tn_convert(g, tn_check(g, any, kind), tn_dtype_of(value));
  return tn_binary(g, TN_OP_ADD, value,
                   tn_broadcast_to(g, zero, tn_rank(value), value->types[0].dims));
}
