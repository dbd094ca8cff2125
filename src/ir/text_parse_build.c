// From an op's record to its node.
#include <string.h>

#include "ir/text_parse.h"

typedef tn_status_t (*tn_build_text_fn_t)(tn_parser_t* parser, tn_op_text_t* op);

// ---- access ---------------------------------------------------------------------------------------------
void tn_op_text_return(tn_op_text_t* op, tn_parser_t* parser, const tn_node_t* node) {
  const tn_node_t** results =
      tn_arena_alloc(&parser->arena, sizeof(*results) * (size_t)(op->result_count + 1));
  if (!results) return;
  if (op->result_count) memcpy(results, op->results, sizeof(*results) * (size_t)op->result_count);
  results[op->result_count++] = node;
  op->results = results;
}

static tn_status_t expect_operands(tn_parser_t* parser, const tn_op_text_t* op, int count) {
  if (op->operand_count == count) return TN_OK;
  return TN_OP_TEXT_ERROR(parser, op, "expected %d operands, got %d", count, op->operand_count);
}

tn_status_t tn_value_ints(tn_parser_t* parser, const tn_value_text_t* value, int capacity,
                          int64_t* out_values, int* out_count) {
  *out_count = 0;
  if (value->kind == TN_TEXT_INT) {
    out_values[0] = value->integer;
    *out_count = 1;
    return TN_OK;
  }
  if (value->kind == TN_TEXT_DENSE) {
    int64_t count = tn_type_element_count(&value->type);
    size_t size = tn_dtype_size(value->type.dtype);
    if (count > capacity)
      return tn_lexer_error(&parser->lexer, value->at, "expected at most %d integers", capacity);
    for (int64_t i = 0; i < count; ++i) {
      tn_scalar_t scalar = {0};
      memcpy(scalar.bytes, value->data + (value->data_size == size ? 0 : (size_t)i * size), size);
      out_values[i] = tn_scalar_to_int(value->type.dtype, scalar);
    }
    *out_count = (int)count;
    return TN_OK;
  }
  if (value->kind != TN_TEXT_LIST)
    return tn_lexer_error(&parser->lexer, value->at, "expected a list of integers");
  for (const tn_value_text_t* item = value->items; item; item = item->next) {
    int count;
    if (*out_count == capacity)
      return tn_lexer_error(&parser->lexer, value->at, "expected at most %d integers", capacity);
    TN_TRY(tn_value_ints(parser, item, capacity - *out_count, out_values + *out_count, &count));
    *out_count += count;
  }
  return TN_OK;
}

tn_status_t tn_op_text_ints(tn_parser_t* parser, const tn_op_text_t* op, const char* key,
                            int expected, const int64_t* otherwise, int64_t* out_values,
                            int* out_count) {
  int count = 0, capacity = expected >= 0 ? expected : TN_MAX_RANK;
  const tn_value_text_t* value = tn_value_find(&op->attrs, key);
  if (!value) {
    if (!otherwise) return TN_OP_TEXT_ERROR(parser, op, "expected '%s'", key);
    count = expected >= 0 ? expected : 0;
    for (int i = 0; i < count; ++i) out_values[i] = otherwise[i];
  } else {
    TN_TRY(tn_value_ints(parser, value, capacity, out_values, &count));
  }
  if (expected >= 0 && count != expected) {
    return TN_OP_TEXT_ERROR(parser, op, "'%s': expected %d integers, got %d", key, expected, count);
  }
  if (out_count) *out_count = count;
  return TN_OK;
}

tn_status_t tn_op_text_int(tn_parser_t* parser, const tn_op_text_t* op, const char* key,
                           int64_t* out_value) {
  return tn_op_text_ints(parser, op, key, 1, NULL, out_value, NULL);
}

// The attribute under either of its spellings: pretty and generic.
static const char* spelling(const tn_op_text_t* op, const char* pretty, const char* generic) {
  return tn_value_find(&op->attrs, pretty) ? pretty : generic;
}

// The result type the text declares: after the arrow, or the only type there is.
static tn_status_t declared_type(tn_parser_t* parser, const tn_op_text_t* op, tn_type_t* out_type) {
  if (op->has_arrow ? op->output_count < 1 : op->input_count < 1) {
    return TN_OP_TEXT_ERROR(parser, op, "expected a result type");
  }
  *out_type = op->has_arrow ? op->outputs[0] : op->inputs[op->input_count - 1];
  return TN_OK;
}

// ---- leaves -----------------------------------------------------------------------------------------------
static tn_status_t build_constant(tn_parser_t* parser, tn_op_text_t* op) {
  const tn_value_text_t* value = tn_value_find(&op->attrs, "value");
  if (!value || value->kind != TN_TEXT_DENSE)
    return TN_OP_TEXT_ERROR(parser, op, "expected dense<..> : tensor<..>");
  size_t size = tn_dtype_size(value->type.dtype);
  tn_scalar_t splat = {0};
  memcpy(splat.bytes, value->data, value->data_size < size ? value->data_size : size);
  const bool is_splat = value->data_size <= size;
  tn_op_text_return(op, parser,
                    is_splat ? tn_constant_splat(parser->graph, &value->type, splat)
                             : tn_constant(parser->graph, &value->type, value->data));
  op->input_count = 0;  // the type was part of the value
  return TN_OK;
}

static tn_status_t build_iota(tn_parser_t* parser, tn_op_text_t* op) {
  tn_type_t type;
  int64_t dimension;
  TN_TRY(declared_type(parser, op, &type));
  TN_TRY(tn_op_text_int(parser, op, spelling(op, "dim", "iota_dimension"), &dimension));
  tn_op_text_return(op, parser, tn_iota(parser->graph, &type, (int)dimension));
  return TN_OK;
}

// ---- elementwise ------------------------------------------------------------------------------------------
static tn_status_t build_convert(tn_parser_t* parser, tn_op_text_t* op) {
  tn_type_t type;
  TN_TRY(expect_operands(parser, op, 1));
  TN_TRY(declared_type(parser, op, &type));
  tn_op_text_return(op, parser,
                    strcmp(op->name, "stablehlo.convert") == 0
                        ? tn_convert(parser->graph, op->operands[0], type.dtype)
                        : tn_bitcast(parser->graph, op->operands[0], type.dtype));
  return TN_OK;
}

static tn_status_t build_compare(tn_parser_t* parser, tn_op_text_t* op) {
  TN_TRY(expect_operands(parser, op, 2));
  const tn_value_text_t* direction = tn_value_find(&op->attrs, "comparison_direction");
  const tn_value_text_t* type = tn_value_find(&op->attrs, "compare_type");
  if (!direction) direction = op->words.items;
  if (!type && op->words.count > 1) type = op->words.items->next;
  int value = direction && direction->text
                  ? tn_text_find(&tn_text_directions, direction->text, strlen(direction->text))
                  : -1;
  if (value < 0) return TN_OP_TEXT_ERROR(parser, op, "expected one of EQ NE LT LE GT GE");
  const tn_node_t *x = op->operands[0], *y = op->operands[1];
  const char* order = type && type->text && tn_dtype_is_float(x->types[0].dtype) ? type->text : "";
  if (strcmp(order, "TOTALORDER") == 0) {
    x = tn_parse_total_order(parser->graph, x);
    y = tn_parse_total_order(parser->graph, y);
  } else if (strcmp(order, "WEAKORDER") == 0) {
    x = tn_parse_weak_order(parser->graph, x);
    y = tn_parse_weak_order(parser->graph, y);
  }
  tn_op_text_return(op, parser, tn_compare(parser->graph, (tn_compare_t)value, x, y));
  return TN_OK;
}

// Rank-0 |x| over the shape of |like|.
static const tn_node_t* spread(tn_parser_t* parser, const tn_node_t* x, const tn_node_t* like) {
  return x->types[0].rank
             ? x
             : tn_broadcast_to(parser->graph, x, like->types[0].rank, like->types[0].dims);
}
static tn_status_t build_select(tn_parser_t* parser, tn_op_text_t* op) {
  TN_TRY(expect_operands(parser, op, 3));
  const tn_node_t* predicate = spread(parser, op->operands[0], op->operands[1]);
  tn_op_text_return(op, parser,
                    tn_select(parser->graph, predicate, op->operands[1], op->operands[2]));
  return TN_OK;
}
static tn_status_t build_clamp(tn_parser_t* parser, tn_op_text_t* op) {
  TN_TRY(expect_operands(parser, op, 3));
  const tn_node_t* x = op->operands[1];
  tn_op_text_return(op, parser,
                    tn_clamp(parser->graph, spread(parser, op->operands[0], x), x,
                             spread(parser, op->operands[2], x)));
  return TN_OK;
}

// StableHLO adds and multiplies i1 as or and and.
static tn_op_t on_bool(tn_op_t op) {
  switch (op) {
    case TN_OP_ADD: return TN_OP_OR;
    case TN_OP_MUL: return TN_OP_AND;
    default: return op;
  }
}

// ---- movement ---------------------------------------------------------------------------------------------
static tn_status_t build_broadcast_in_dim(tn_parser_t* parser, tn_op_text_t* op) {
  tn_type_t type;
  TN_TRY(expect_operands(parser, op, 1));
  TN_TRY(declared_type(parser, op, &type));
  int64_t map[TN_MAX_RANK], order[TN_MAX_RANK];
  const int rank = op->operands[0]->types[0].rank;
  TN_TRY(tn_op_text_ints(parser, op, spelling(op, "dims", "broadcast_dimensions"), rank, NULL, map,
                         NULL));
  // StableHLO allows any order; ours is increasing, so the operand is transposed first.
  for (int i = 0; i < rank; ++i) {
    int at = i;
    for (; at > 0 && map[order[at - 1]] > map[i]; --at) order[at] = order[at - 1];
    order[at] = i;
  }
  int64_t sorted[TN_MAX_RANK];
  for (int i = 0; i < rank; ++i) sorted[i] = map[order[i]];
  const tn_node_t* x = tn_transpose(parser->graph, op->operands[0], order);
  tn_op_text_return(op, parser,
                    tn_broadcast_in_dim(parser->graph, x, type.rank, type.dims, sorted));
  return TN_OK;
}
static tn_status_t build_reshape(tn_parser_t* parser, tn_op_text_t* op) {
  tn_type_t type;
  TN_TRY(expect_operands(parser, op, 1));
  TN_TRY(declared_type(parser, op, &type));
  tn_op_text_return(op, parser, tn_reshape(parser->graph, op->operands[0], type.rank, type.dims));
  return TN_OK;
}
static tn_status_t build_transpose(tn_parser_t* parser, tn_op_text_t* op) {
  TN_TRY(expect_operands(parser, op, 1));
  int64_t dims[TN_MAX_RANK];
  TN_TRY(tn_op_text_ints(parser, op, spelling(op, "dims", "permutation"),
                         op->operands[0]->types[0].rank, NULL, dims, NULL));
  tn_op_text_return(op, parser, tn_transpose(parser->graph, op->operands[0], dims));
  return TN_OK;
}
static tn_status_t build_reverse(tn_parser_t* parser, tn_op_text_t* op) {
  TN_TRY(expect_operands(parser, op, 1));
  int64_t dims[TN_MAX_RANK];
  int count = 0;
  TN_TRY(tn_op_text_ints(parser, op, spelling(op, "dims", "dimensions"), -1, NULL, dims, &count));
  tn_op_text_return(op, parser, tn_reverse(parser->graph, op->operands[0], count, dims));
  return TN_OK;
}
static tn_status_t build_slice(tn_parser_t* parser, tn_op_text_t* op) {
  TN_TRY(expect_operands(parser, op, 1));
  int rank = op->operands[0]->types[0].rank;
  int64_t start[TN_MAX_RANK], limit[TN_MAX_RANK], stride[TN_MAX_RANK];
  TN_TRY(tn_op_text_ints(parser, op, "start_indices", rank, NULL, start, NULL));
  TN_TRY(tn_op_text_ints(parser, op, "limit_indices", rank, NULL, limit, NULL));
  TN_TRY(tn_op_text_ints(parser, op, "strides", rank, NULL, stride, NULL));
  tn_op_text_return(op, parser, tn_slice(parser->graph, op->operands[0], start, limit, stride));
  return TN_OK;
}
static tn_status_t build_pad(tn_parser_t* parser, tn_op_text_t* op) {
  TN_TRY(expect_operands(parser, op, 2));
  int rank = op->operands[0]->types[0].rank;
  int64_t low[TN_MAX_RANK], high[TN_MAX_RANK], interior[TN_MAX_RANK];
  TN_TRY(
      tn_op_text_ints(parser, op, spelling(op, "low", "edge_padding_low"), rank, NULL, low, NULL));
  TN_TRY(tn_op_text_ints(parser, op, spelling(op, "high", "edge_padding_high"), rank, NULL, high,
                         NULL));
  TN_TRY(tn_op_text_ints(parser, op, spelling(op, "interior", "interior_padding"), rank, NULL,
                         interior, NULL));
  tn_op_text_return(op, parser,
                    tn_pad(parser->graph, op->operands[0], op->operands[1], low, high, interior));
  return TN_OK;
}
static tn_status_t build_concat(tn_parser_t* parser, tn_op_text_t* op) {
  int64_t dimension;
  TN_TRY(tn_op_text_int(parser, op, spelling(op, "dim", "dimension"), &dimension));
  tn_op_text_return(op, parser,
                    tn_concat(parser->graph, op->operand_count, op->operands, (int)dimension));
  return TN_OK;
}
static tn_status_t build_dynamic_slice(tn_parser_t* parser, tn_op_text_t* op) {
  if (op->operand_count < 1) return expect_operands(parser, op, 1);
  int rank = op->operands[0]->types[0].rank;
  int64_t sizes[TN_MAX_RANK];
  TN_TRY(expect_operands(parser, op, 1 + rank));
  TN_TRY(
      tn_op_text_ints(parser, op, spelling(op, "sizes", "slice_sizes"), rank, NULL, sizes, NULL));
  tn_op_text_return(op, parser,
                    tn_dynamic_slice(parser->graph, op->operands[0], op->operands + 1, sizes));
  return TN_OK;
}
static tn_status_t build_dynamic_update_slice(tn_parser_t* parser, tn_op_text_t* op) {
  if (op->operand_count < 2) return expect_operands(parser, op, 2);
  TN_TRY(expect_operands(parser, op, 2 + op->operands[0]->types[0].rank));
  tn_op_text_return(
      op, parser,
      tn_dynamic_update_slice(parser->graph, op->operands[0], op->operands[1], op->operands + 2));
  return TN_OK;
}

// ---- the rest ---------------------------------------------------------------------------------------------
// Two results: the next state, whose offset has moved by the counters used, and the bits.
static tn_status_t build_rng(tn_parser_t* parser, tn_op_text_t* op) {
  TN_TRY(expect_operands(parser, op, 1));
  const tn_value_text_t* algorithm = tn_value_find(&op->attrs, "algorithm");
  if (!algorithm) algorithm = tn_value_find(&op->attrs, "rng_algorithm");
  if (algorithm && algorithm->text && strcmp(algorithm->text, "PHILOX") != 0 &&
      strcmp(algorithm->text, "DEFAULT") != 0) {
    return TN_OP_TEXT_ERROR(parser, op, "algorithm %s is not supported; supported is PHILOX",
                            algorithm->text);
  }
  if (op->output_count != 2) return TN_OP_TEXT_ERROR(parser, op, "expected two result types");
  const tn_node_t* bits = tn_rng_bits(parser->graph, op->operands[0], &op->outputs[1]);
  if (!bits) return TN_OK;
  uint64_t per_counter = op->outputs[1].dtype == TN_U32 ? 4 : 2;
  uint64_t used =
      ((uint64_t)tn_type_element_count(&op->outputs[1]) + per_counter - 1) / per_counter;
  const uint64_t step[2] = {0, used};
  const tn_node_t* advance = tn_constant(parser->graph, &op->operands[0]->types[0], step);
  tn_op_text_return(op, parser, tn_binary(parser->graph, TN_OP_ADD, op->operands[0], advance));
  tn_op_text_return(op, parser, bits);
  return TN_OK;
}

// chlo.top_k: positions of the type that the text declares.
static tn_status_t build_top_k(tn_parser_t* parser, tn_op_text_t* op) {
  TN_TRY(expect_operands(parser, op, 1));
  int64_t k;
  TN_TRY(tn_op_text_int(parser, op, "k", &k));
  const tn_node_t* top = tn_topk(parser->graph, op->operands[0], k, true);
  tn_dtype_t positions = op->output_count == 2 ? op->outputs[1].dtype : TN_I32;
  tn_op_text_return(op, parser, tn_result(parser->graph, top, 0));
  tn_op_text_return(op, parser,
                    tn_convert(parser->graph, tn_result(parser->graph, top, 1), positions));
  return TN_OK;
}

static tn_status_t build_identity(tn_parser_t* parser, tn_op_text_t* op) {
  for (int i = 0; i < op->operand_count; ++i) tn_op_text_return(op, parser, op->operands[i]);
  return TN_OK;
}

typedef struct tn_build_row {
  const char* name;
  tn_build_text_fn_t build;
} tn_build_row_t;

// Ops with a form of their own; all other rows of ops.inc are elementwise and take operands only.
static const tn_build_row_t rows[] = {
    {"stablehlo.constant", build_constant},
    {"stablehlo.iota", build_iota},
    {"stablehlo.convert", build_convert},
    {"stablehlo.bitcast_convert", build_convert},
    {"stablehlo.compare", build_compare},
    {"stablehlo.select", build_select},
    {"stablehlo.clamp", build_clamp},
    {"stablehlo.broadcast_in_dim", build_broadcast_in_dim},
    {"stablehlo.reshape", build_reshape},
    {"stablehlo.transpose", build_transpose},
    {"stablehlo.reverse", build_reverse},
    {"stablehlo.slice", build_slice},
    {"stablehlo.pad", build_pad},
    {"stablehlo.concatenate", build_concat},
    {"stablehlo.dynamic_slice", build_dynamic_slice},
    {"stablehlo.dynamic_update_slice", build_dynamic_update_slice},
    {"stablehlo.gather", tn_parse_build_gather},
    {"stablehlo.scatter", tn_parse_build_scatter},
    {"stablehlo.reduce", tn_parse_build_reduce},
    {"stablehlo.reduce_window", tn_parse_build_window},
    {"stablehlo.select_and_scatter", tn_parse_build_window},
    {"stablehlo.sort", tn_parse_build_sort},
    {"chlo.top_k", build_top_k},
    {"stablehlo.dot_general", tn_parse_build_dot},
    {"stablehlo.dot", tn_parse_build_dot},
    {"stablehlo.convolution", tn_parse_build_convolution},
    {"stablehlo.rng_bit_generator", build_rng},
    {"stablehlo.optimization_barrier", build_identity},
    {"stablehlo.composite", tn_parse_build_composite},
    {"stablehlo.custom_call", tn_parse_build_custom_call},
    {"stablehlo.reduce_precision", tn_parse_build_reduce_precision},
    {"stablehlo.get_dimension_size", tn_parse_build_dimension_size},
    {"stablehlo.batch_norm_inference", tn_parse_build_batch_norm},
    {"stablehlo.batch_norm_training", tn_parse_build_batch_norm},
    {"stablehlo.batch_norm_grad", tn_parse_build_batch_norm},
    {"stablehlo.cholesky", tn_parse_build_cholesky},
    {"stablehlo.triangular_solve", tn_parse_build_triangular_solve},
    {"stablehlo.fft", tn_parse_build_fft},
    {"stablehlo.if", tn_parse_build_if},
    {"stablehlo.case", tn_parse_build_case},
    {"stablehlo.while", tn_parse_build_while},
    {"stablehlo.map", tn_parse_build_map},
    {"call", tn_parse_build_call},
    {"func.call", tn_parse_build_call},
};

static tn_build_text_fn_t find_row(const char* name) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    if (strcmp(rows[i].name, name) == 0) return rows[i].build;
  }
  return NULL;
}
// Elementwise ops of the table by their StableHLO name; TN_OP_COUNT if there is none.
static tn_op_t find_elementwise(const char* name) {
  for (int op = 0; op < TN_OP_COUNT; ++op) {
    const tn_op_info_t* info = tn_op_info((tn_op_t)op);
    if (info->fusion == TN_FUSION_ELEMENTWISE && strcmp(info->name, name) == 0) return (tn_op_t)op;
  }
  return TN_OP_COUNT;
}

tn_status_t tn_parse_check_op(tn_parser_t* parser, const tn_op_text_t* op) {
  if (find_row(op->name) || find_elementwise(op->name) != TN_OP_COUNT ||
      tn_parse_is_check(op->name)) {
    return TN_OK;
  }
  return tn_lexer_error(&parser->lexer, op->at,
                        "operation '%s' is not supported; docs/ir.md lists the supported ones",
                        op->name);
}

static tn_status_t build_elementwise(tn_parser_t* parser, tn_op_text_t* op) {
  tn_op_t which = find_elementwise(op->name);
  if (which == TN_OP_COUNT) return tn_parse_check_op(parser, op);
  TN_TRY(expect_operands(parser, op, tn_op_info(which)->operand_count));
  if (op->operand_count == 2 && op->operands[0]->types[0].dtype == TN_BOOL) which = on_bool(which);
  tn_type_t type;
  tn_op_text_return(
      op, parser,
      tn_graph_build(parser->graph, which, op->operand_count, op->operands, 0, NULL, 1, &type));
  return TN_OK;
}

tn_status_t tn_parse_build(tn_parser_t* parser, tn_op_text_t* op) {
  tn_build_text_fn_t build = find_row(op->name);
  if (tn_parse_is_check(op->name)) {
    TN_TRY(tn_parse_build_check(parser, op, op->name));
  } else {
    TN_TRY((build ? build : build_elementwise)(parser, op));
  }
  tn_status_t status = tn_graph_status(parser->graph);
  if (!status) return TN_OK;
  // The builder's message already names the op.
  tn_status_t placed = tn_lexer_error(&parser->lexer, op->at, "%s", tn_status_message(status));
  tn_status_free(status);
  return placed;
}
