// Random graphs over all ops, for round trips and comparisons. The same seed gives the same graph.
//
// Extents are small (0 now and then); every node is valid by construction. Values may be anything: NaN, overflow.
#ifndef TESTS_C_RANDOM_GRAPH_H_
#define TESTS_C_RANDOM_GRAPH_H_

#include <stdlib.h>

#include "tn/graph.h"

typedef struct tn_random {
  tn_graph_t* graph;
  uint64_t state;
  const tn_node_t* pool[512];  // single-result nodes
  int count;
  int seen[TN_OP_COUNT];
} tn_random_t;

static uint64_t random_bits(tn_random_t* r) {
  uint64_t z = r->state += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}
static int64_t random_below(tn_random_t* r, int64_t limit) {
  return (int64_t)(random_bits(r) % (uint64_t)limit);
}

static const tn_node_t* random_keep(tn_random_t* r, const tn_node_t* node) {
  if (!node) return NULL;
  ++r->seen[node->op];
  for (int i = 0; i < node->result_count; ++i) {
    const tn_node_t* one = tn_result(r->graph, node, i);
    if (one && r->count < 512) r->pool[r->count++] = one;
    if (one && one->op == TN_OP_RESULT) ++r->seen[TN_OP_RESULT];
  }
  return node;
}

// A random constant: small numbers in all classes.
static const tn_node_t* random_constant(tn_random_t* r, const tn_type_t* type) {
  int64_t count = tn_type_element_count(type);
  size_t size = tn_dtype_size(type->dtype);
  uint8_t* data = calloc((size_t)count + 1, size);
  bool is_splat = random_below(r, 3) == 0;
  tn_scalar_t value = {0};
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || !is_splat) {
      value = tn_scalar_from_complex(type->dtype, (double)random_below(r, 64) / 8 - 3,
                                     (double)random_below(r, 9) / 4);
    }
    memcpy(data + (size_t)i * size, value.bytes, size);
  }
  const tn_node_t* node = tn_constant(r->graph, type, data);
  free(data);
  return random_keep(r, node);
}

static tn_type_t random_type(tn_random_t* r, tn_dtype_t dtype, int least_rank) {
  int64_t dims[4];
  int rank = least_rank + (int)random_below(r, 4 - least_rank);
  for (int i = 0; i < rank; ++i) dims[i] = random_below(r, 40) == 0 ? 0 : 1 + random_below(r, 4);
  return tn_type_make(dtype, rank, dims);
}

// A node of |dtype| and at least |rank| dimensions.
static const tn_node_t* random_pick(tn_random_t* r, tn_dtype_t dtype, int rank) {
  for (int tries = 0; tries < 12 && r->count; ++tries) {
    const tn_node_t* node = r->pool[random_below(r, r->count)];
    if (node->types[0].dtype == dtype && node->types[0].rank >= rank && node->types[0].rank <= 5)
      return node;
  }
  tn_type_t type = random_type(r, dtype, rank);
  return random_below(r, 2) ? random_constant(r, &type)
                            : random_keep(r, tn_graph_param(r->graph, &type, NULL));
}
static const tn_node_t* random_of_type(tn_random_t* r, const tn_type_t* type) {
  for (int tries = 0; tries < 8; ++tries) {
    const tn_node_t* node = r->pool[random_below(r, r->count)];
    if (tn_type_equal(&node->types[0], type)) return node;
  }
  return random_constant(r, type);
}
static const tn_node_t* random_like(tn_random_t* r, const tn_node_t* node, tn_dtype_t dtype) {
  tn_type_t type = node->types[0];
  type.dtype = dtype;
  return random_of_type(r, &type);
}

static tn_dtype_t random_float(tn_random_t* r) {
  static const tn_dtype_t all[] = {TN_F32, TN_F32, TN_F32, TN_F64, TN_F16, TN_BF16};
  return all[random_below(r, 6)];
}
static tn_dtype_t random_int(tn_random_t* r) {
  return (tn_dtype_t)(TN_I8 + random_below(r, TN_U64 - TN_I8 + 1));
}
static tn_dtype_t random_real(tn_random_t* r) {
  return random_below(r, 3) ? random_float(r) : random_int(r);
}
static tn_dtype_t random_any(tn_random_t* r) { return (tn_dtype_t)random_below(r, TN_DTYPE_COUNT); }

static tn_reduce_kind_t random_kind(tn_random_t* r, tn_dtype_t dtype) {
  return (tn_reduce_kind_t)random_below(r, tn_dtype_is_integer(dtype) ? 6 : 4);
}

static const tn_node_t* random_elementwise(tn_random_t* r, tn_op_t op) {
  static const tn_op_t ints[] = {TN_OP_NOT, TN_OP_POPCNT, TN_OP_CLZ,   TN_OP_AND,  TN_OP_OR,
                                 TN_OP_XOR, TN_OP_SHL,    TN_OP_SHR_A, TN_OP_SHR_L};
  tn_dtype_t dtype = random_float(r);
  for (size_t i = 0; i < sizeof ints / sizeof ints[0]; ++i) {
    if (ints[i] == op) dtype = random_int(r);
  }
  if (op == TN_OP_REAL || op == TN_OP_IMAG) dtype = TN_C64;
  if (op == TN_OP_COMPLEX) dtype = TN_F32;
  const tn_node_t* x = random_pick(r, dtype, 0);
  switch (op) {
    case TN_OP_CONVERT:
      return tn_convert(r->graph, random_pick(r, random_any(r), 0), random_any(r));
    case TN_OP_BITCAST:
      return tn_bitcast(r->graph, random_pick(r, TN_F32, 0), random_below(r, 2) ? TN_I32 : TN_U32);
    case TN_OP_COMPARE:
      x = random_pick(r, random_real(r), 0);
      return tn_compare(r->graph, (tn_compare_t)random_below(r, 6), x,
                        random_like(r, x, x->types[0].dtype));
    case TN_OP_SELECT:
      x = random_pick(r, random_any(r), 0);
      return tn_select(r->graph, random_like(r, x, TN_BOOL), x,
                       random_like(r, x, x->types[0].dtype));
    case TN_OP_CLAMP:
      return tn_clamp(r->graph, random_like(r, x, dtype), x, random_like(r, x, dtype));
    case TN_OP_FMA: return tn_fma(r->graph, x, random_like(r, x, dtype), random_like(r, x, dtype));
    default:
      if (tn_op_info(op)->operand_count == 1) return tn_unary(r->graph, op, x);
      return tn_binary(r->graph, op, x, random_like(r, x, dtype));
  }
}

static const tn_node_t* random_movement(tn_random_t* r, tn_op_t op) {
  const tn_node_t* x = random_pick(r, random_any(r), 1);
  const tn_type_t type = x->types[0];
  const int rank = type.rank;
  int64_t a[16], b[16], c[16];
  const tn_node_t* starts[16];
  switch (op) {
    case TN_OP_BROADCAST_IN_DIM: {
      int64_t map[16], dims[16];
      int out = 0;
      for (int i = 0; i < rank; ++i) {
        if (random_below(r, 3) == 0) dims[out++] = 1 + random_below(r, 3);
        map[i] = out;
        dims[out++] = type.dims[i] == 1 ? 1 + random_below(r, 3) : type.dims[i];
      }
      return tn_broadcast_in_dim(r->graph, x, out, dims, map);
    }
    case TN_OP_RESHAPE: {
      const int64_t flat = tn_type_element_count(&type), dims[2] = {1, flat};
      return random_below(r, 2) ? tn_reshape(r->graph, x, 1, &flat)
                                : tn_reshape(r->graph, x, 2, dims);
    }
    case TN_OP_TRANSPOSE:
      for (int i = 0; i < rank; ++i) a[i] = i;
      for (int i = rank - 1; i > 0; --i) {
        int64_t j = random_below(r, i + 1), t = a[i];
        a[i] = a[j], a[j] = t;
      }
      return tn_transpose(r->graph, x, a);
    case TN_OP_REVERSE: a[0] = random_below(r, rank); return tn_reverse(r->graph, x, 1, a);
    case TN_OP_SLICE:
      for (int i = 0; i < rank; ++i) {
        a[i] = random_below(r, type.dims[i] + 1);
        b[i] = a[i] + random_below(r, type.dims[i] - a[i] + 1);
        c[i] = 1 + random_below(r, 3);
      }
      return tn_slice(r->graph, x, a, b, c);
    case TN_OP_PAD: {
      tn_type_t scalar = tn_type_make(type.dtype, 0, NULL);
      for (int i = 0; i < rank; ++i) {
        a[i] = random_below(r, 3) - (type.dims[i] > 0);
        b[i] = random_below(r, 3);
        c[i] = random_below(r, 2);
      }
      return tn_pad(r->graph, x, random_of_type(r, &scalar), a, b, c);
    }
    case TN_OP_CONCAT: {
      const tn_node_t* xs[3] = {x, random_of_type(r, &type), x};
      return tn_concat(r->graph, 1 + (int)random_below(r, 3), xs, (int)random_below(r, rank));
    }
    case TN_OP_DYNAMIC_SLICE:
    case TN_OP_DYNAMIC_UPDATE_SLICE: {
      tn_type_t part = type, index = tn_type_make(random_below(r, 2) ? TN_I64 : TN_I32, 0, NULL);
      for (int i = 0; i < rank; ++i) {
        starts[i] = random_of_type(r, &index);
        part.dims[i] = a[i] = random_below(r, type.dims[i] + 1);
      }
      if (op == TN_OP_DYNAMIC_SLICE) return tn_dynamic_slice(r->graph, x, starts, a);
      return tn_dynamic_update_slice(r->graph, x, random_of_type(r, &part), starts);
    }
    default: break;
  }
  // gather, scatter: indices by construction anywhere, so only clamped ones.
  const int dimension = (int)random_below(r, rank);
  tn_type_t index_type = type;
  index_type.dtype = random_below(r, 2) ? TN_I64 : TN_I32;
  if (op == TN_OP_GATHER) {
    if (random_below(r, 2)) {
      tn_type_t any = random_type(r, TN_I64, 0);
      if (type.dims[dimension] == 0) any.rank = 1, any.dims[0] = 0;
      return tn_take(r->graph, x, random_of_type(r, &any), dimension, TN_BOUNDS_CLAMP);
    }
    if (type.dims[dimension] == 0) return NULL;
    index_type.dims[dimension] = random_below(r, 4);
    return tn_take_along(r->graph, x, random_of_type(r, &index_type), dimension, TN_BOUNDS_CLAMP);
  }
  tn_reduce_kind_t kind = tn_dtype_class(type.dtype) == TN_CLASS_BOOL || random_below(r, 3) == 0
                              ? TN_REDUCE_ASSIGN
                          : tn_dtype_is_complex(type.dtype) ? TN_REDUCE_SUM
                                                            : random_kind(r, type.dtype);
  if (type.dims[dimension] == 0) return NULL;
  index_type.dims[dimension] = random_below(r, 4);
  tn_type_t update = index_type;
  update.dtype = type.dtype;
  return tn_put_along(r->graph, x, random_of_type(r, &index_type), random_of_type(r, &update),
                      dimension, kind, TN_BOUNDS_CLAMP);
}

static tn_window_t random_window(tn_random_t* r, int rank) {
  tn_window_t w;
  for (int i = 0; i < rank; ++i) {
    w.size[i] = 1 + random_below(r, 3);
    w.stride[i] = 1 + random_below(r, 2);
    w.low[i] = random_below(r, 2);
    w.high[i] = random_below(r, 2);
    w.base_dilation[i] = 1 + random_below(r, 2);
    w.window_dilation[i] = 1 + random_below(r, 2);
  }
  return w;
}

static const tn_node_t* random_reduction(tn_random_t* r, tn_op_t op) {
  const tn_node_t* x = random_pick(r, random_real(r), 1);
  const tn_type_t type = x->types[0];
  const int rank = type.rank, dimension = (int)random_below(r, rank);
  tn_reduce_kind_t kind = random_kind(r, type.dtype);
  int64_t dims[16];
  int count = 0;
  switch (op) {
    case TN_OP_REDUCE:
      for (int i = 0; i < rank; ++i) {
        if (random_below(r, 2)) dims[count++] = i;
      }
      return tn_reduce(r->graph, kind, x, count, dims);
    case TN_OP_ARG_REDUCE:
      if (type.dims[dimension] == 0) return NULL;
      return tn_arg_reduce(r->graph, random_below(r, 2) ? TN_REDUCE_MAX : TN_REDUCE_MIN, x,
                           dimension);
    case TN_OP_REDUCE_WINDOW: {
      tn_window_t w = random_window(r, rank);
      return tn_reduce_window(r->graph, kind, x, &w);
    }
    case TN_OP_WINDOW_GRAD: {
      tn_window_t w = random_window(r, rank);
      kind = random_below(r, 2) ? TN_REDUCE_MAX : TN_REDUCE_MIN;
      for (int i = 0; i < rank; ++i) w.base_dilation[i] = 1;
      const tn_node_t* pooled = tn_reduce_window(r->graph, kind, x, &w);
      return pooled ? tn_window_grad(r->graph, kind, x, random_like(r, pooled, type.dtype), &w)
                    : NULL;
    }
    case TN_OP_SCAN:
      return tn_scan(r->graph, kind, x, dimension, random_below(r, 2) != 0,
                     random_below(r, 2) != 0);
    case TN_OP_SORT: {
      const tn_node_t* xs[2] = {x, random_like(r, x, TN_I64)};
      return tn_sort(r->graph, 1 + (int)random_below(r, 2), xs, dimension, random_below(r, 2) != 0);
    }
    default:
      return tn_topk(r->graph, x, random_below(r, type.dims[rank - 1] + 1),
                     random_below(r, 2) != 0);
  }
}

static const tn_node_t* random_contraction(tn_random_t* r, tn_op_t op) {
  if (op == TN_OP_RNG_BITS) {
    const int64_t two = 2;
    tn_type_t state = tn_type_make(TN_U64, 1, &two);
    tn_type_t type = random_type(r, random_below(r, 2) ? TN_U32 : TN_U64, 0);
    return tn_rng_bits(r->graph, random_of_type(r, &state), &type);
  }
  tn_dtype_t dtype = random_float(r);
  if (op == TN_OP_DOT_GENERAL) {
    const tn_node_t* x = random_pick(r, dtype, 2);
    tn_type_t other = x->types[0];
    const int rank = other.rank;
    other.dims[rank - 1] = 1 + random_below(r, 4);
    other.dims[rank - 2] = x->types[0].dims[rank - 1];
    if (random_below(r, 2)) return tn_matmul(r->graph, x, random_of_type(r, &other));
    // Contract dimension 0 of both, no batch.
    if (2 * rank - 2 > 6) return NULL;
    const int64_t zero = 0;
    return tn_dot_general(r->graph, x, x, 0, NULL, NULL, 1, &zero, &zero,
                          tn_dtype_size(dtype) < 4 && random_below(r, 2) ? TN_F32 : dtype);
  }
  tn_conv_t conv = {
      .spatial = 1 + (int)random_below(r, 2), .groups = 1 + random_below(r, 2), .batch_groups = 1};
  int64_t x_dims[4] = {1 + random_below(r, 2), conv.groups * (1 + random_below(r, 2))};
  int64_t w_dims[4] = {conv.groups * (1 + random_below(r, 2)), x_dims[1] / conv.groups};
  for (int i = 0; i < conv.spatial; ++i) {
    x_dims[2 + i] = 3 + random_below(r, 4);
    w_dims[2 + i] = 1 + random_below(r, 3);
    conv.stride[i] = 1 + random_below(r, 2);
    conv.low[i] = random_below(r, 3) - 1;
    conv.high[i] = random_below(r, 3);
    conv.lhs_dilation[i] = 1 + random_below(r, 2);
    conv.rhs_dilation[i] = 1 + random_below(r, 2);
  }
  tn_type_t x = tn_type_make(dtype, 2 + conv.spatial, x_dims),
            w = tn_type_make(dtype, 2 + conv.spatial, w_dims);
  return tn_convolution(r->graph, random_of_type(r, &x), random_of_type(r, &w), &conv);
}

static const tn_node_t* random_structure(tn_random_t* r, tn_op_t op) {
  const tn_node_t* x = random_pick(r, random_float(r), 1);
  const tn_type_t* type = &x->types[0];
  if (op == TN_OP_CUSTOM_CALL) {
    const int64_t ints[3] = {3, -4, 5};
    tn_attr_t attrs[3] = {tn_attr_float(TN_ATTR_SCALE, 0.1), tn_attr_ints(TN_ATTR_SIZES, 3, ints),
                          tn_attr_int(TN_ATTR_COUNT, -7)};
    const tn_type_t types[2] = {*type, random_type(r, TN_I8, 0)};
    return tn_custom_call(r->graph, "foreign.thing", 1, &x, 3, attrs, 2, types);
  }
  tn_attr_t attrs[3] = {tn_attr_int(TN_ATTR_AXIS, random_below(r, type->rank)),
                        tn_attr_float(TN_ATTR_EPSILON, 1e-5), tn_attr_int(TN_ATTR_FLAGS, 0)};
  const tn_node_t* operands[2] = {x, random_of_type(r, type)};
  switch (random_below(r, 4)) {
    case 0: return tn_composite(r->graph, "softmax", 1, operands, 1, attrs);
    case 1: return tn_composite(r->graph, "log_softmax_backward", 2, operands, 1, attrs);
    case 2: return tn_composite(r->graph, "layer_norm", 1, operands, 3, attrs);
    default: return tn_composite(r->graph, "rms_norm", 1, operands, 3, attrs);
  }
}

static const tn_node_t* random_leaf(tn_random_t* r, tn_op_t op) {
  if (op == TN_OP_IOTA) {
    tn_type_t type = random_type(r, random_real(r), 1);
    return tn_iota(r->graph, &type, (int)random_below(r, type.rank));
  }
  tn_type_t type = random_type(r, random_any(r), 0);
  if (op == TN_OP_CONST) return random_constant(r, &type);
  if (random_below(r, 4) == 0) return tn_graph_scalar_param(r->graph, random_any(r));
  int64_t strides[16];
  int64_t stride = 1;
  for (int i = 0; i < type.rank; ++i) {  // column-major
    strides[i] = stride;
    stride *= type.dims[i] ? type.dims[i] : 1;
  }
  return tn_graph_param(r->graph, &type, random_below(r, 2) ? strides : NULL);
}

// One node of |op|; NULL now and then when the operands that came up do not allow one.
static const tn_node_t* random_node(tn_random_t* r, tn_op_t op) {
  const tn_node_t* node = NULL;
  if (op <= TN_OP_IOTA) {
    node = random_leaf(r, op);
  } else if (op < TN_OP_BROADCAST_IN_DIM) {
    node = random_elementwise(r, op);
  } else if (op <= TN_OP_SCATTER) {
    node = random_movement(r, op);
  } else if (op <= TN_OP_TOPK) {
    node = random_reduction(r, op);
  } else if (op <= TN_OP_RNG_BITS) {
    node = random_contraction(r, op);
  } else if (op != TN_OP_RESULT) {
    node = random_structure(r, op);
  }
  return random_keep(r, node);
}

// Builds about |node_count| nodes and one to three results. |allow_custom|: with custom calls.
static __attribute__((unused)) void random_graph(tn_random_t* r, tn_graph_t* graph, uint64_t seed,
                                                 int node_count, bool allow_custom) {
  r->graph = graph;
  r->state = seed * 7919 + 1;
  r->count = 0;
  random_node(r, TN_OP_PARAM);
  random_node(r, TN_OP_CONST);
  for (int i = 0; i < node_count; ++i) {
    tn_op_t op = (tn_op_t)random_below(r, TN_OP_COUNT);
    if (op == TN_OP_CUSTOM_CALL && !allow_custom) continue;
    random_node(r, op);
  }
  int results = 1 + (int)random_below(r, 3);
  for (int i = 0; i < results; ++i) {
    const tn_node_t* node = r->pool[r->count - 1 - random_below(r, r->count < 8 ? r->count : 8)];
    const tn_type_t* type = &node->types[0];
    int64_t strides[16], stride = 1;
    for (int k = 0; k < type->rank; ++k) {
      strides[k] = stride;
      stride *= type->dims[k] ? type->dims[k] : 1;
    }
    const bool is_strided = random_below(r, 4) == 0;
    tn_graph_add_result(graph, node, is_strided ? strides : NULL);
    int same = -1;  // a parameter that the result may be written over
    for (int k = 0; k < tn_graph_param_count(graph) && !is_strided; ++k) {
      const tn_node_t* param = tn_graph_param_at(graph, k);
      if (!tn_param_is_scalar(param) && !tn_param_strides(param) &&
          tn_type_equal(&param->types[0], type))
        same = k;
    }
    for (int k = 0; k < i; ++k)
      if (same >= 0 && tn_graph_result_at(graph, k)->same_as_param == same) same = -1;
    if (random_below(r, 4) == 0) tn_graph_alias_result(graph, i, same, random_below(r, 2) != 0);
  }
}

#endif  // TESTS_C_RANDOM_GRAPH_H_
