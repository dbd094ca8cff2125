// Building ops with dimension numbers, windows and regions.
#include <string.h>

#include "ir/text_parse.h"

static const int64_t ones[TN_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static const int64_t zeros[2 * TN_MAX_RANK] = {0};

// ---- regions ----------------------------------------------------------------------------------------------
static tn_status_t kind_of_op(tn_parser_t* parser, const tn_op_text_t* op, const char* name,
                              tn_dtype_t dtype, tn_reduce_kind_t* out_kind) {
  for (int kind = TN_REDUCE_SUM; kind <= TN_REDUCE_OR; ++kind) {
    if (strcmp(tn_op_info(tn_text_kind_op((tn_reduce_kind_t)kind))->name, name) != 0) continue;
    *out_kind = (tn_reduce_kind_t)kind;
    // i1: add is or, multiply is and.
    if (dtype == TN_BOOL && kind == TN_REDUCE_SUM) *out_kind = TN_REDUCE_OR;
    if (dtype == TN_BOOL && kind == TN_REDUCE_PROD) *out_kind = TN_REDUCE_AND;
    return TN_OK;
  }
  return TN_OP_TEXT_ERROR(
      parser, op,
      "reducing by '%s' is not supported; supported are add, multiply, maximum, "
      "minimum, and, or",
      name);
}

static int64_t param_index(const tn_node_t* node) {
  return node->op == TN_OP_PARAM ? tn_node_int(node, TN_ATTR_INDEX, -1) : -1;
}

// The only value that region |index| returns.
static tn_status_t region_value(tn_parser_t* parser, const tn_op_text_t* op, int index,
                                const tn_node_t** out_node) {
  const tn_region_text_t* region = op->regions;
  for (int i = 0; i < index && region; ++i) region = region->next;
  if (!region || tn_graph_result_count(region->graph) != 1) {
    return TN_OP_TEXT_ERROR(
        parser, op,
        "expected region %d to return one value; several operands at once are not "
        "supported",
        index);
  }
  *out_node = tn_graph_result_at(region->graph, 0)->node;
  return TN_OK;
}

// One operation on the two arguments in the order they have, of a kind that reductions know.
static bool is_simple_region(const tn_op_text_t* op) {
  if (op->region_count != 1 || tn_graph_result_count(op->regions->graph) != 1) return false;
  const tn_node_t* node = tn_graph_result_at(op->regions->graph, 0)->node;
  bool is_known = false;
  for (int kind = TN_REDUCE_SUM; kind <= TN_REDUCE_OR; ++kind)
    is_known |= node->op == tn_text_kind_op((tn_reduce_kind_t)kind);
  return is_known && node->operand_count == 2 && op->regions->arg_count == 2 &&
         param_index(node->operands[0]) + param_index(node->operands[1]) == 1 &&
         param_index(node->operands[0]) * param_index(node->operands[1]) == 0;
}

static tn_status_t region_kind(tn_parser_t* parser, const tn_op_text_t* op, int index,
                               bool allow_assign, tn_reduce_kind_t* out_kind) {
  const tn_node_t* node;
  TN_TRY(region_value(parser, op, index, &node));
  if (allow_assign && param_index(node) == 1) {
    *out_kind = TN_REDUCE_ASSIGN;
    return TN_OK;
  }
  bool is_simple = node->operand_count == 2 &&
                   param_index(node->operands[0]) + param_index(node->operands[1]) == 1 &&
                   node->operands[0] != node->operands[1];
  if (!is_simple) {
    return TN_OP_TEXT_ERROR(
        parser, op,
        "this region is not supported; supported is one operation on its two arguments");
  }
  return kind_of_op(parser, op, tn_op_info(node->op)->name, node->types[0].dtype, out_kind);
}

static bool is_identity(const tn_node_t* init, tn_reduce_kind_t kind) {
  tn_scalar_t value, identity = tn_text_kind_identity(kind, init->types[0].dtype);
  if (!tn_node_splat(init, &value)) return false;
  if (kind == TN_REDUCE_SUM && tn_scalar_to_double(init->types[0].dtype, value) == 0 &&
      !tn_dtype_is_complex(init->types[0].dtype)) {
    return true;
  }
  return memcmp(value.bytes, identity.bytes, tn_dtype_size(init->types[0].dtype)) == 0;
}

static tn_status_t expect_operands(tn_parser_t* parser, const tn_op_text_t* op, int count) {
  if (op->operand_count == count) return TN_OK;
  return TN_OP_TEXT_ERROR(
      parser, op, "expected %d operands, got %d; several operands at once are not supported", count,
      op->operand_count);
}

// ---- reduce -----------------------------------------------------------------------------------------------
tn_status_t tn_parse_build_reduce(tn_parser_t* parser, tn_op_text_t* op) {
  int64_t dimensions[TN_MAX_RANK];
  int count;
  TN_TRY(tn_op_text_ints(parser, op, "dimensions", -1, NULL, dimensions, &count));
  if (op->region_count == 1 && !is_simple_region(op))
    return tn_parse_reduce_any(parser, op, count, dimensions);
  TN_TRY(expect_operands(parser, op, 2));
  const tn_node_t *x = op->operands[0], *init = op->operands[1];
  tn_reduce_kind_t kind = TN_REDUCE_SUM;
  const tn_value_text_t* applies = op->words.items;
  if (applies && strcmp(applies->text, "applies") == 0 && applies->next) {
    TN_TRY(kind_of_op(parser, op, applies->next->text, x->types[0].dtype, &kind));
  } else {
    TN_TRY(region_kind(parser, op, 0, false, &kind));
  }
  for (int i = 1; i < count; ++i) {  // ascending
    for (int at = i; at > 0 && dimensions[at - 1] > dimensions[at]; --at) {
      int64_t swapped = dimensions[at];
      dimensions[at] = dimensions[at - 1];
      dimensions[at - 1] = swapped;
    }
  }
  if (init->types[0].rank || init->types[0].dtype != x->types[0].dtype) {
    return TN_OP_TEXT_ERROR(parser, op, "init: expected tensor<%s>",
                            tn_dtype_name(x->types[0].dtype));
  }
  const tn_node_t* reduced = tn_reduce(parser->graph, kind, x, count, dimensions);
  if (reduced && !is_identity(init, kind)) {
    const tn_node_t* start =
        tn_broadcast_to(parser->graph, init, reduced->types[0].rank, reduced->types[0].dims);
    reduced = tn_binary(parser->graph, tn_text_kind_op(kind), start, reduced);
  }
  tn_op_text_return(op, parser, reduced);
  return TN_OK;
}

// ---- windows ----------------------------------------------------------------------------------------------
static tn_status_t split_padding(tn_parser_t* parser, const tn_op_text_t* op,
                                 const tn_value_text_t* value, int rank, int64_t* low,
                                 int64_t* high) {
  int64_t both[2 * TN_MAX_RANK];
  int count = 2 * rank;
  memcpy(both, zeros, sizeof both);
  if (value) TN_TRY(tn_value_ints(parser, value, 2 * TN_MAX_RANK, both, &count));
  if (count != 2 * rank)
    return TN_OP_TEXT_ERROR(parser, op, "padding: expected %d pairs, got %d integers", rank, count);
  for (int i = 0; i < rank; ++i) {
    low[i] = both[2 * i];
    high[i] = both[2 * i + 1];
  }
  return TN_OK;
}

tn_status_t tn_parse_build_window(tn_parser_t* parser, tn_op_text_t* op) {
  const bool is_grad = strcmp(op->name, "stablehlo.select_and_scatter") == 0;
  if (is_grad || op->operand_count < 1) TN_TRY(expect_operands(parser, op, 3));
  const tn_node_t *x = op->operands[0], *init = op->operands[op->operand_count - 1];
  const int rank = x->types[0].rank;
  tn_window_t window;
  TN_TRY(tn_op_text_ints(parser, op, "window_dimensions", rank, NULL, window.size, NULL));
  TN_TRY(tn_op_text_ints(parser, op, "window_strides", rank, ones, window.stride, NULL));
  TN_TRY(tn_op_text_ints(parser, op, "base_dilations", rank, ones, window.base_dilation, NULL));
  TN_TRY(tn_op_text_ints(parser, op, "window_dilations", rank, ones, window.window_dilation, NULL));
  TN_TRY(split_padding(parser, op, tn_value_find(&op->attrs, "padding"), rank, window.low,
                       window.high));
  tn_reduce_kind_t kind = TN_REDUCE_SUM;
  if (!is_grad && !(is_simple_region(op) && op->operand_count == 2))
    return tn_parse_window_any(parser, op, &window);
  TN_TRY(region_kind(parser, op, is_grad ? 1 : 0, false, &kind));
  if (!is_grad && !is_identity(init, kind)) return tn_parse_window_any(parser, op, &window);
  if (!is_identity(init, kind)) {
    return TN_OP_TEXT_ERROR(
        parser, op, "an initial value other than the reduction's identity is not supported");
  }
  if (!is_grad) {
    tn_op_text_return(op, parser, tn_reduce_window(parser->graph, kind, x, &window));
    return TN_OK;
  }
  const tn_node_t* select;
  TN_TRY(region_value(parser, op, 0, &select));
  int64_t direction =
      select->op == TN_OP_COMPARE ? tn_node_int(select, TN_ATTR_DIRECTION, 0) : TN_EQ;
  if (kind != TN_REDUCE_SUM || direction < TN_LT || param_index(select->operands[0]) != 0 ||
      param_index(select->operands[1]) != 1) {
    return TN_OP_TEXT_ERROR(parser, op,
                            "supported are a selection by GE, GT, LE or LT and a scatter by add");
  }
  tn_reduce_kind_t extreme = direction >= TN_GT ? TN_REDUCE_MAX : TN_REDUCE_MIN;
  tn_op_text_return(op, parser,
                    tn_window_grad(parser->graph, extreme, x, op->operands[1], &window));
  return TN_OK;
}

// ---- order ------------------------------------------------------------------------------------------------
tn_status_t tn_parse_build_sort(tn_parser_t* parser, tn_op_text_t* op) {
  if (op->operand_count < 1) return expect_operands(parser, op, 1);
  int64_t dimension = op->operands[0]->types[0].rank - 1;
  TN_TRY(tn_op_text_ints(parser, op, "dimension", 1, &dimension, &dimension, NULL));
  if (dimension < 0) dimension += op->operands[0]->types[0].rank;
  const tn_node_t* compare;
  TN_TRY(region_value(parser, op, 0, &compare));
  int64_t direction =
      compare->op == TN_OP_COMPARE ? tn_node_int(compare, TN_ATTR_DIRECTION, 0) : TN_EQ;
  int64_t first = direction >= TN_LT ? param_index(compare->operands[0]) : -1;
  int64_t second = direction >= TN_LT ? param_index(compare->operands[1]) : -1;
  if (direction >= TN_LT && tn_value_find(&op->attrs, "tn.weak_order")) {  // as we print it
    first = 0;
    second = 1;
  }
  if (first < 0 || second < 0 || first + second != 1)
    return tn_parse_sort_any(parser, op, (int)dimension);
  bool descending = (direction >= TN_GT) != (first == 1);
  const tn_node_t* sorted =
      tn_sort(parser->graph, op->operand_count, op->operands, (int)dimension, descending);
  for (int i = 0; sorted && i < op->operand_count; ++i) {
    tn_op_text_return(op, parser, tn_result(parser->graph, sorted, i));
  }
  return TN_OK;
}

// ---- gather, scatter --------------------------------------------------------------------------------------
static tn_status_t dict_ints(tn_parser_t* parser, const tn_value_text_t* dict, const char* key,
                             int64_t* out_values, int* out_count) {
  const tn_value_text_t* value = tn_value_find(dict, key);
  *out_count = 0;
  return value ? tn_value_ints(parser, value, TN_MAX_RANK, out_values, out_count) : TN_OK;
}

static tn_status_t parse_index_dims(tn_parser_t* parser, const tn_op_text_t* op, const char* attr,
                                    const char* const* names, tn_gather_dims_t* out,
                                    tn_bounds_t* out_bounds) {
  memset(out, 0, sizeof *out);
  const tn_value_text_t* dict = tn_value_find(&op->attrs, attr);
  if (!dict || dict->kind != TN_TEXT_DICT)
    return TN_OP_TEXT_ERROR(parser, op, "expected '%s'", attr);
  int index_batching, count;
  TN_TRY(dict_ints(parser, dict, names[0], out->offset, &out->offset_count));
  TN_TRY(dict_ints(parser, dict, names[1], out->collapsed, &out->collapsed_count));
  TN_TRY(dict_ints(parser, dict, names[2], out->batching, &out->batching_count));
  TN_TRY(dict_ints(parser, dict, names[3], out->index_batching, &index_batching));
  TN_TRY(dict_ints(parser, dict, names[4], out->map, &out->map_count));
  TN_TRY(dict_ints(parser, dict, "index_vector_dim", &out->index_vector_dim, &count));
  if (index_batching != out->batching_count) {
    return TN_OP_TEXT_ERROR(parser, op, "expected equal numbers of batching dims, got %d and %d",
                            out->batching_count, index_batching);
  }
  const tn_value_text_t* bounds = tn_value_find(&op->attrs, "tn.bounds");
  int value = TN_BOUNDS_CLAMP;
  if (bounds)
    value = bounds->text ? tn_text_find(&tn_text_bounds, bounds->text, strlen(bounds->text)) : -1;
  if (value < 0)
    return TN_OP_TEXT_ERROR(parser, op, "tn.bounds: expected \"clamp\", \"error\" or \"wrap\"");
  *out_bounds = (tn_bounds_t)value;
  return TN_OK;
}

tn_status_t tn_parse_build_gather(tn_parser_t* parser, tn_op_text_t* op) {
  static const char* const names[] = {"offset_dims", "collapsed_slice_dims",
                                      "operand_batching_dims", "start_indices_batching_dims",
                                      "start_index_map"};
  TN_TRY(expect_operands(parser, op, 2));
  tn_gather_dims_t dims;
  tn_bounds_t bounds;
  int64_t sizes[TN_MAX_RANK];
  TN_TRY(parse_index_dims(parser, op, "dimension_numbers", names, &dims, &bounds));
  TN_TRY(tn_op_text_ints(parser, op, "slice_sizes", op->operands[0]->types[0].rank, NULL, sizes,
                         NULL));
  tn_op_text_return(
      op, parser, tn_gather(parser->graph, op->operands[0], op->operands[1], &dims, sizes, bounds));
  return TN_OK;
}
tn_status_t tn_parse_build_scatter(tn_parser_t* parser, tn_op_text_t* op) {
  static const char* const names[] = {"update_window_dims", "inserted_window_dims",
                                      "input_batching_dims", "scatter_indices_batching_dims",
                                      "scatter_dims_to_operand_dims"};
  TN_TRY(expect_operands(parser, op, 3));
  tn_gather_dims_t dims;
  tn_bounds_t bounds;
  tn_reduce_kind_t kind = TN_REDUCE_SUM;
  TN_TRY(parse_index_dims(parser, op, "scatter_dimension_numbers", names, &dims, &bounds));
  TN_TRY(region_kind(parser, op, 0, true, &kind));
  tn_op_text_return(op, parser,
                    tn_scatter(parser->graph, op->operands[0], op->operands[1], op->operands[2],
                               &dims, kind, bounds));
  return TN_OK;
}

// ---- contractions -----------------------------------------------------------------------------------------
// "[0] x [0]" under |pretty|, or the two lists under their names in |dict|.
static tn_status_t parse_pair(tn_parser_t* parser, const tn_op_text_t* op, const char* pretty,
                              const tn_value_text_t* dict, const char* lhs, const char* rhs,
                              int64_t (*out)[TN_MAX_RANK], int* out_count) {
  const tn_value_text_t* pair = tn_value_find(&op->attrs, pretty);
  int counts[2] = {0, 0};
  if (pair && pair->count == 2 && pair->items->kind == TN_TEXT_LIST) {
    TN_TRY(tn_value_ints(parser, pair->items, TN_MAX_RANK, out[0], &counts[0]));
    TN_TRY(tn_value_ints(parser, pair->last, TN_MAX_RANK, out[1], &counts[1]));
  } else if (pair) {
    return TN_OP_TEXT_ERROR(parser, op, "%s: expected '[..] x [..]'", pretty);
  } else if (dict) {
    TN_TRY(dict_ints(parser, dict, lhs, out[0], &counts[0]));
    TN_TRY(dict_ints(parser, dict, rhs, out[1], &counts[1]));
  }
  if (counts[0] != counts[1]) {
    return TN_OP_TEXT_ERROR(parser, op, "%s: expected lists of equal length, got %d and %d", pretty,
                            counts[0], counts[1]);
  }
  *out_count = counts[0];
  return TN_OK;
}

tn_status_t tn_parse_build_dot(tn_parser_t* parser, tn_op_text_t* op) {
  TN_TRY(expect_operands(parser, op, 2));
  int64_t batch[2][TN_MAX_RANK], contract[2][TN_MAX_RANK];
  int batch_count = 0, contract_count = 1;
  if (strcmp(op->name, "stablehlo.dot") == 0) {
    contract[0][0] = op->operands[0]->types[0].rank - 1;
    contract[1][0] = 0;
  } else {
    const tn_value_text_t* dict = tn_value_find(&op->attrs, "dot_dimension_numbers");
    TN_TRY(parse_pair(parser, op, "batching_dims", dict, "lhs_batching_dimensions",
                      "rhs_batching_dimensions", batch, &batch_count));
    TN_TRY(parse_pair(parser, op, "contracting_dims", dict, "lhs_contracting_dimensions",
                      "rhs_contracting_dimensions", contract, &contract_count));
  }
  if (!op->has_arrow || op->output_count != 1)
    return TN_OP_TEXT_ERROR(parser, op, "expected '(types) -> type'");
  tn_op_text_return(
      op, parser,
      tn_dot_general(parser->graph, op->operands[0], op->operands[1], batch_count, batch[0],
                     batch[1], contract_count, contract[0], contract[1], op->outputs[0].dtype));
  return TN_OK;
}

// Positions of |first|, |second|, then spatial dimension 0, 1, .. in "[b, f, 0, 1]".
static tn_status_t parse_layout(tn_parser_t* parser, const tn_op_text_t* op,
                                const tn_value_text_t* list, const char* first, const char* second,
                                int rank, int64_t* out_positions) {
  bool is_seen[TN_MAX_RANK] = {false};
  int position = 0;
  if (list->kind != TN_TEXT_LIST || list->count != rank) {
    return TN_OP_TEXT_ERROR(parser, op, "dim_numbers: expected %d dimensions", rank);
  }
  for (const tn_value_text_t* item = list->items; item; item = item->next, ++position) {
    int64_t role = -1;
    if (item->kind == TN_TEXT_INT) role = 2 + item->integer;
    if (item->kind == TN_TEXT_WORD)
      role = strcmp(item->text, first) == 0 ? 0 : strcmp(item->text, second) == 0 ? 1 : -1;
    if (role < 0 || role >= rank || is_seen[role]) {
      return tn_lexer_error(&parser->lexer, item->at,
                            "dim_numbers: expected %s, %s and 0..%d once each", first, second,
                            rank - 3);
    }
    is_seen[role] = true;
    out_positions[role] = position;
  }
  return TN_OK;
}

// A window attribute: in "window = {..}", or on its own under its generic name.
static const tn_value_text_t* window_value(const tn_op_text_t* op, const char* pretty,
                                           const char* generic) {
  const tn_value_text_t* window = tn_value_find(&op->attrs, "window");
  const tn_value_text_t* value = window ? tn_value_find(window, pretty) : NULL;
  return value ? value : tn_value_find(&op->attrs, generic);
}
static tn_status_t window_ints(tn_parser_t* parser, const tn_op_text_t* op, const char* pretty,
                               const char* generic, int spatial, int64_t otherwise, int64_t* out) {
  const tn_value_text_t* value = window_value(op, pretty, generic);
  int64_t values[TN_MAX_RANK];
  int count = spatial;
  for (int i = 0; i < spatial; ++i) values[i] = otherwise;
  if (value) TN_TRY(tn_value_ints(parser, value, TN_MAX_RANK, values, &count));
  if (count != spatial)
    return TN_OP_TEXT_ERROR(parser, op, "%s: expected %d integers, got %d", pretty, spatial, count);
  memcpy(out, values, sizeof(int64_t) * (size_t)spatial);
  return TN_OK;
}

tn_status_t tn_parse_build_convolution(tn_parser_t* parser, tn_op_text_t* op) {
  TN_TRY(expect_operands(parser, op, 2));
  const int rank = op->operands[0]->types[0].rank;
  if (rank < 3 || rank > 5 || op->operands[1]->types[0].rank != rank) {
    return TN_OP_TEXT_ERROR(parser, op, "expected operands of equal rank 3..5");
  }
  const tn_value_text_t* dims = tn_value_find(&op->attrs, "dim_numbers");
  if (!dims) dims = tn_value_find(&op->attrs, "dimension_numbers");
  if (!dims || dims->count != 3)
    return TN_OP_TEXT_ERROR(parser, op, "expected dim_numbers = [..]x[..]->[..]");
  int64_t lhs[TN_MAX_RANK], rhs[TN_MAX_RANK], out[TN_MAX_RANK], back[TN_MAX_RANK];
  TN_TRY(parse_layout(parser, op, dims->items, "b", "f", rank, lhs));
  TN_TRY(parse_layout(parser, op, dims->items->next, "o", "i", rank, rhs));
  TN_TRY(parse_layout(parser, op, dims->last, "b", "f", rank, out));
  for (int i = 0; i < rank; ++i) back[out[i]] = i;
  tn_conv_t conv = {.spatial = rank - 2, .groups = 1, .batch_groups = 1};
  int64_t is_reversed[3];
  TN_TRY(window_ints(parser, op, "stride", "window_strides", conv.spatial, 1, conv.stride));
  TN_TRY(window_ints(parser, op, "lhs_dilate", "lhs_dilation", conv.spatial, 1, conv.lhs_dilation));
  TN_TRY(window_ints(parser, op, "rhs_dilate", "rhs_dilation", conv.spatial, 1, conv.rhs_dilation));
  TN_TRY(window_ints(parser, op, "reverse", "window_reversal", conv.spatial, 0, is_reversed));
  TN_TRY(split_padding(parser, op, window_value(op, "pad", "padding"), conv.spatial, conv.low,
                       conv.high));
  const int64_t one = 1;
  TN_TRY(tn_op_text_ints(parser, op, "feature_group_count", 1, &one, &conv.groups, NULL));
  TN_TRY(tn_op_text_ints(parser, op, "batch_group_count", 1, &one, &conv.batch_groups, NULL));
  const tn_node_t* x = tn_transpose(parser->graph, op->operands[0], lhs);
  const tn_node_t* weight = tn_transpose(parser->graph, op->operands[1], rhs);
  int64_t reversed[3];
  int reversed_count = 0;
  for (int i = 0; i < conv.spatial; ++i) {
    if (is_reversed[i]) reversed[reversed_count++] = 2 + i;
  }
  if (reversed_count) weight = tn_reverse(parser->graph, weight, reversed_count, reversed);
  if (op->output_count == 1) {  // a wider result: compute in it
    x = tn_convert(parser->graph, x, op->outputs[0].dtype);
    weight = tn_convert(parser->graph, weight, op->outputs[0].dtype);
  }
  tn_op_text_return(
      op, parser,
      tn_transpose(parser->graph, tn_convolution(parser->graph, x, weight, &conv), back));
  return TN_OK;
}
