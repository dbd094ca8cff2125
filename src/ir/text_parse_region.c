// Ops whose regions become part of the graph around them.
//
// A region on scalars (of map, reduce, sort ..) is built once over whole tensors: every scalar op becomes the same op
// on all elements. Reductions then combine neighbours, pairs first; sorts compute keys, or compare all with all.
// Branches are both computed, and selected from. A loop is unrolled: its number of turns must follow from constants.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text_parse.h"

// Limits keep what a short text can ask for within seconds and megabytes.
enum {
  TN_MOST_TURNS = 4096,
  TN_MOST_NODES = 200000,
  TN_LARGEST_FOLD = 1 << 20,  // elements of a value
  TN_LARGEST_WINDOW = 4096,
  TN_LONGEST_SORT = 2048,
  TN_MOST_VALUES = 64,
};

// ---- building a region --------------------------------------------------------------------------------------
// What a region is built on: its arguments, and the shape that its scalars are spread over (NULL: built as it is).
typedef struct tn_place {
  tn_parser_t* parser;
  const tn_op_text_t* op;
  const tn_region_text_t* region;
  const tn_node_t* const* args;
  const tn_type_t* shape;
} tn_place_t;

static const tn_node_t* spread(const tn_place_t* place, const tn_node_t* x) {
  const tn_type_t* shape = place->shape;
  if (!x || !shape || x->types[0].rank) return x;
  return tn_broadcast_to(place->parser->graph, x, shape->rank, shape->dims);
}

static tn_status_t build_param(const tn_place_t* place, const tn_node_t* node,
                               const tn_node_t** out) {
  const int index = (int)tn_node_int(node, TN_ATTR_INDEX, 0), args = place->region->arg_count;
  *out = index < args ? place->args[index] : place->region->captures[index - args];
  if (!*out) return tn_graph_status(place->parser->graph);
  const tn_type_t *wanted = &node->types[0], *got = &(*out)->types[0];
  const bool fits = place->shape && index < args ? wanted->rank == 0 && wanted->dtype == got->dtype
                                                 : tn_type_equal(wanted, got);
  if (fits) return TN_OK;
  char a[TN_TYPE_TEXT_SIZE], b[TN_TYPE_TEXT_SIZE];
  return TN_OP_TEXT_ERROR(place->parser, place->op, "argument %d of the region is %s, its value %s",
                          index, tn_type_format(wanted, a), tn_type_format(got, b));
}

static tn_status_t build_node(const tn_place_t* place, const tn_node_t* node,
                              const tn_node_t** operands, const tn_node_t** out) {
  tn_graph_t* graph = place->parser->graph;
  bool is_spread = false;
  for (int i = 0; i < node->operand_count; ++i) {
    if (!operands[i]) return tn_graph_status(graph);
    is_spread |= place->shape && operands[i]->types[0].rank != node->operands[i]->types[0].rank;
  }
  if (node->op == TN_OP_RESULT) {
    *out = tn_result(graph, operands[0], (int)tn_node_int(node, TN_ATTR_INDEX, 0));
  } else if (!is_spread) {
    *out = tn_graph_rebuild(graph, node, operands);
  } else if (node->types[0].rank == 0 &&
             (node->op == TN_OP_RESHAPE || node->op == TN_OP_BROADCAST_IN_DIM ||
              node->op == TN_OP_TRANSPOSE)) {
    *out = operands[0];
  } else if (tn_op_info(node->op)->fusion == TN_FUSION_ELEMENTWISE) {
    for (int i = 0; i < node->operand_count; ++i) operands[i] = spread(place, operands[i]);
    tn_type_t type = *place->shape;
    type.dtype = node->types[0].dtype;
    *out = tn_graph_build(graph, node->op, node->operand_count, operands, node->attr_count,
                          node->attrs, 1, &type);
  } else {
    return TN_OP_TEXT_ERROR(
        place->parser, place->op,
        "%s in a region on scalars is not supported; supported are elementwise ops",
        tn_op_info(node->op)->name);
  }
  return tn_graph_status(graph);
}

// |map|: by node id of the region's graph.
static tn_status_t build_nodes(const tn_place_t* place, const tn_node_t** map) {
  const tn_graph_t* inner = place->region->graph;
  for (uint32_t id = 0; id < tn_graph_node_limit(inner); ++id) {
    const tn_node_t* node = tn_graph_node_at(inner, id);
    if (node->op == TN_OP_PARAM) {
      TN_TRY(build_param(place, node, &map[id]));
      continue;
    }
    const tn_node_t* few[TN_MOST_VALUES];
    const tn_node_t** operands =
        node->operand_count <= TN_MOST_VALUES
            ? few
            : TN_ARENA_ARRAY(&place->parser->arena, const tn_node_t*, node->operand_count);
    if (!operands) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
    for (int i = 0; i < node->operand_count; ++i) operands[i] = map[node->operands[i]->id];
    TN_TRY(build_node(place, node, operands, &map[id]));
  }
  return TN_OK;
}

static tn_status_t build(const tn_place_t* place, int result_count, const tn_node_t** results) {
  const tn_graph_t* inner = place->region->graph;
  if (tn_graph_result_count(inner) != result_count) {
    return TN_OP_TEXT_ERROR(place->parser, place->op, "a region returns %d values, expected %d",
                            tn_graph_result_count(inner), result_count);
  }
  const tn_node_t** map = calloc(tn_graph_node_limit(inner) + 1, sizeof *map);
  if (!map) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  tn_status_t status = build_nodes(place, map);
  for (int i = 0; !status && i < result_count; ++i)
    results[i] = spread(place, map[tn_graph_result_at(inner, i)->node->id]);
  free((void*)map);
  return status;
}

static tn_status_t expect_regions(tn_parser_t* parser, const tn_op_text_t* op, int count,
                                  int arg_count) {
  if (op->region_count != count)
    return TN_OP_TEXT_ERROR(parser, op, "expected %d regions, got %d", count, op->region_count);
  for (const tn_region_text_t* region = op->regions; region; region = region->next) {
    if (region->arg_count == arg_count) continue;
    return TN_OP_TEXT_ERROR(parser, op, "expected regions of %d arguments, got %d", arg_count,
                            region->arg_count);
  }
  return TN_OK;
}

// ---- constants ----------------------------------------------------------------------------------------------
// The constant that |node| is, if it depends on no parameter; NULL if it does or cannot be computed here.
static const tn_node_t* fold(tn_graph_t* graph, const tn_node_t* node) {
  if (!node || node->op == TN_OP_CONST) return node;
  if (tn_type_element_count(&node->types[0]) > TN_LARGEST_FOLD) return NULL;
  const tn_node_t* folded = NULL;
  tn_graph_t* small = NULL;
  const tn_node_t** map = calloc((size_t)node->id + 1, sizeof *map);
  bool* needed = calloc((size_t)node->id + 1, sizeof *needed);
  void* value = calloc((size_t)tn_type_element_count(&node->types[0]) + 1,
                       tn_dtype_size(node->types[0].dtype));
  if (!map || !needed || !value) goto done;
  needed[node->id] = true;
  for (uint32_t id = node->id + 1; id-- > 0;) {
    if (!needed[id]) continue;
    const tn_node_t* at = tn_graph_node_at(graph, id);
    if (at->op == TN_OP_PARAM || at->operand_count > TN_MOST_VALUES) goto done;
    if (tn_type_element_count(&at->types[0]) > TN_LARGEST_FOLD) goto done;
    for (int i = 0; i < at->operand_count; ++i) needed[at->operands[i]->id] = true;
  }
  tn_status_free(tn_graph_create(&small));
  if (!small) goto done;
  for (uint32_t id = 0; id <= node->id; ++id) {
    if (!needed[id]) continue;
    const tn_node_t* at = tn_graph_node_at(graph, id);
    const tn_node_t* operands[TN_MOST_VALUES];
    for (int i = 0; i < at->operand_count; ++i) operands[i] = map[at->operands[i]->id];
    map[id] = at->op == TN_OP_RESULT
                  ? tn_result(small, operands[0], (int)tn_node_int(at, TN_ATTR_INDEX, 0))
                  : tn_graph_rebuild(small, at, operands);
    if (!map[id]) goto done;
  }
  tn_graph_add_result(small, map[node->id], NULL);
  tn_status_t status = tn_graph_interpret(small, NULL, &value);
  if (status) {
    tn_status_free(status);
  } else {
    folded = tn_constant(graph, &node->types[0], value);
  }
done:
  tn_graph_destroy(small);
  free(value);
  free(needed);
  free((void*)map);
  return folded;
}

static bool is_known(tn_graph_t* graph, const tn_node_t* node, int64_t* out_value) {
  tn_scalar_t scalar;
  const tn_node_t* constant = fold(graph, node);
  if (!constant || !tn_node_splat(constant, &scalar)) return false;
  *out_value = tn_scalar_to_int(constant->types[0].dtype, scalar);
  return true;
}

// ---- control ------------------------------------------------------------------------------------------------
// Results of all regions; the one at |index| is taken, the last if there is none.
static tn_status_t build_branches(tn_parser_t* parser, tn_op_text_t* op, const tn_node_t* index) {
  const tn_node_t* taken[TN_MOST_VALUES];
  if (op->region_count < 1) return TN_OP_TEXT_ERROR(parser, op, "expected regions");
  const int count = tn_graph_result_count(op->regions->graph);
  if (count > TN_MOST_VALUES)
    return TN_OP_TEXT_ERROR(parser, op, "more than %d results are not supported", TN_MOST_VALUES);
  tn_graph_t* graph = parser->graph;
  int64_t known = 0;
  const bool has_known = is_known(graph, index, &known);
  if (has_known && (known < 0 || known >= op->region_count)) known = op->region_count - 1;
  int branch = 0;
  bool is_first = true;
  for (const tn_region_text_t* region = op->regions; region; region = region->next, ++branch) {
    if (has_known && branch != known) continue;
    const tn_place_t place = {.parser = parser, .op = op, .region = region};
    const tn_node_t* results[TN_MOST_VALUES];
    TN_TRY(build(&place, count, results));
    if (!is_first) {
      // before this branch: the earlier ones; it is taken from its index on
      const tn_node_t* from = tn_constant_int(graph, index->types[0].dtype, branch);
      const tn_node_t* is_it = tn_compare(graph, TN_EQ, index, from);
      if (!region->next) {  // the last one is also for what is out of range
        const tn_node_t* low =
            tn_compare(graph, TN_LT, index, tn_constant_int(graph, index->types[0].dtype, 0));
        is_it = tn_binary(graph, TN_OP_OR, low, tn_compare(graph, TN_GE, index, from));
      }
      for (int i = 0; i < count; ++i) {
        if (!tn_type_equal(&taken[i]->types[0], &results[i]->types[0]))
          return TN_OP_TEXT_ERROR(parser, op, "result %d has another type in branch %d", i, branch);
        const tn_type_t* type = &results[i]->types[0];
        results[i] = tn_select(graph, tn_broadcast_to(graph, is_it, type->rank, type->dims),
                               results[i], taken[i]);
      }
      TN_TRY(tn_graph_status(graph));
    }
    is_first = false;
    memcpy(taken, results, sizeof *taken * (size_t)count);
  }
  for (int i = 0; i < count; ++i) tn_op_text_return(op, parser, taken[i]);
  return TN_OK;
}

tn_status_t tn_parse_build_if(tn_parser_t* parser, tn_op_text_t* op) {
  TN_TRY(expect_regions(parser, op, 2, 0));
  if (op->operand_count != 1 || op->operands[0]->types[0].rank ||
      op->operands[0]->types[0].dtype != TN_BOOL) {
    return TN_OP_TEXT_ERROR(parser, op, "expected one operand tensor<i1>");
  }
  tn_graph_t* graph = parser->graph;
  const tn_node_t* is_false = tn_unary(graph, TN_OP_NOT, op->operands[0]);
  const tn_node_t* index = tn_convert(graph, is_false, TN_I32);
  TN_TRY(tn_graph_status(graph));
  return build_branches(parser, op, index);
}

tn_status_t tn_parse_build_case(tn_parser_t* parser, tn_op_text_t* op) {
  TN_TRY(expect_regions(parser, op, op->region_count, 0));
  if (op->operand_count != 1 || op->operands[0]->types[0].rank ||
      op->operands[0]->types[0].dtype != TN_I32) {
    return TN_OP_TEXT_ERROR(parser, op, "expected one operand tensor<i32>");
  }
  return build_branches(parser, op, op->operands[0]);
}

tn_status_t tn_parse_build_while(tn_parser_t* parser, tn_op_text_t* op) {
  const int count = op->operand_count;
  TN_TRY(expect_regions(parser, op, 2, count));
  if (count > TN_MOST_VALUES)
    return TN_OP_TEXT_ERROR(parser, op, "more than %d operands are not supported", TN_MOST_VALUES);
  const tn_node_t* values[TN_MOST_VALUES] = {NULL};
  if (count) memcpy(values, op->operands, sizeof *values * (size_t)count);
  tn_place_t condition = {.parser = parser, .op = op, .region = op->regions, .args = values};
  tn_place_t body = {.parser = parser, .op = op, .region = op->regions->next, .args = values};
  for (int turn = 0;; ++turn) {
    const tn_node_t* goes_on;
    int64_t is_true;
    TN_TRY(build(&condition, 1, &goes_on));
    if (!is_known(parser->graph, goes_on, &is_true)) {
      return TN_OP_TEXT_ERROR(parser, op,
                              "the condition depends on a parameter; supported are loops whose "
                              "number of turns follows from constants");
    }
    if (!is_true) break;
    if (turn == TN_MOST_TURNS || tn_graph_node_limit(parser->graph) > TN_MOST_NODES) {
      return TN_OP_TEXT_ERROR(parser, op, "more than %d turns, or %d operations, are not supported",
                              TN_MOST_TURNS, TN_MOST_NODES);
    }
    const tn_node_t* next[TN_MOST_VALUES];
    TN_TRY(build(&body, count, next));
    for (int i = 0; i < count; ++i) {
      // counters stay constants, so that the next condition is cheap to know
      const tn_type_t* type = &next[i]->types[0];
      const tn_node_t* constant =
          type->rank == 0 && tn_dtype_is_integer(type->dtype) ? fold(parser->graph, next[i]) : NULL;
      values[i] = constant ? constant : next[i];
    }
  }
  for (int i = 0; i < count; ++i) tn_op_text_return(op, parser, values[i]);
  return TN_OK;
}

// ---- scalar regions -----------------------------------------------------------------------------------------
static tn_status_t expect_shapes(tn_parser_t* parser, const tn_op_text_t* op, int count) {
  if (count < 1 || count > TN_MOST_VALUES / 2)
    return TN_OP_TEXT_ERROR(parser, op, "expected 1..%d operands, got %d", TN_MOST_VALUES / 2,
                            count);
  for (int i = 0; i < count; ++i) {
    tn_type_t type = op->operands[i]->types[0];
    type.dtype = op->operands[0]->types[0].dtype;
    if (!tn_type_equal(&type, &op->operands[0]->types[0]))
      return TN_OP_TEXT_ERROR(parser, op, "expected operands of equal shapes");
  }
  return TN_OK;
}

tn_status_t tn_parse_build_map(tn_parser_t* parser, tn_op_text_t* op) {
  TN_TRY(expect_shapes(parser, op, op->operand_count));
  TN_TRY(expect_regions(parser, op, 1, op->operand_count));
  const tn_place_t place = {.parser = parser,
                            .op = op,
                            .region = op->regions,
                            .args = op->operands,
                            .shape = &op->operands[0]->types[0]};
  const tn_node_t* result;
  TN_TRY(build(&place, 1, &result));
  tn_op_text_return(op, parser, result);
  return TN_OK;
}

// |left| := the region of (left, right), element by element.
static tn_status_t combine(tn_parser_t* parser, const tn_op_text_t* op, int count,
                           const tn_node_t** left, const tn_node_t* const* right) {
  const tn_node_t *args[TN_MOST_VALUES], *results[TN_MOST_VALUES];
  const tn_region_text_t* region = op->regions;
  for (int i = 0; i < count; ++i) {
    args[region->is_paired ? 2 * i : i] = left[i];
    args[region->is_paired ? 2 * i + 1 : count + i] = right[i];
    if (!left[i] || !right[i]) return tn_graph_status(parser->graph);
  }
  const tn_place_t place = {
      .parser = parser, .op = op, .region = region, .args = args, .shape = &right[0]->types[0]};
  TN_TRY(build(&place, count, results));
  memcpy(left, results, sizeof *left * (size_t)count);
  return TN_OK;
}

// The start values over the shape of |like|.
static tn_status_t spread_inits(tn_parser_t* parser, const tn_op_text_t* op, int count,
                                const tn_type_t* like, const tn_node_t** out) {
  for (int i = 0; i < count; ++i) {
    const tn_node_t* init = op->operands[count + i];
    if (init->types[0].rank || init->types[0].dtype != op->operands[i]->types[0].dtype) {
      return TN_OP_TEXT_ERROR(parser, op, "init %d: expected tensor<%s>", i,
                              tn_dtype_name(op->operands[i]->types[0].dtype));
    }
    out[i] = tn_broadcast_to(parser->graph, init, like->rank, like->dims);
  }
  return tn_graph_status(parser->graph);
}

static tn_status_t expect_reducer(tn_parser_t* parser, const tn_op_text_t* op, int* out_count) {
  *out_count = op->operand_count / 2;
  if (op->operand_count % 2)
    return TN_OP_TEXT_ERROR(parser, op, "expected as many start values as operands");
  TN_TRY(expect_shapes(parser, op, *out_count));
  return expect_regions(parser, op, 1, 2 * *out_count);
}

tn_status_t tn_parse_reduce_any(tn_parser_t* parser, tn_op_text_t* op, int dimension_count,
                                const int64_t* dimensions) {
  int count;
  TN_TRY(expect_reducer(parser, op, &count));
  tn_graph_t* graph = parser->graph;
  const tn_type_t* x = &op->operands[0]->types[0];
  // What stays first, then one dimension of all that is reduced.
  tn_type_t kept = {.dtype = x->dtype};
  bool is_reduced[TN_MAX_RANK] = {false};
  int64_t order[TN_MAX_RANK], length = 1;
  for (int i = 0; i < dimension_count; ++i) {
    const int64_t d = dimensions[i];
    if (d < 0 || d >= x->rank || is_reduced[d])
      return TN_OP_TEXT_ERROR(parser, op, "dimensions: expected distinct ones of 0..%d",
                              x->rank - 1);
    is_reduced[d] = true;
    length *= x->dims[d];
  }
  int at = 0;
  for (int d = 0; d < x->rank; ++d) {
    if (is_reduced[d]) continue;
    order[at++] = d;
    kept.dims[kept.rank++] = x->dims[d];
  }
  for (int d = 0; d < x->rank; ++d) {
    if (is_reduced[d]) order[at++] = d;
  }
  const tn_node_t *values[TN_MOST_VALUES], *inits[TN_MOST_VALUES];
  TN_TRY(spread_inits(parser, op, count, &kept, inits));
  if (length) {
    tn_type_t flat = kept;
    if (flat.rank == TN_MAX_RANK) return TN_OP_TEXT_ERROR(parser, op, "expected dimensions");
    flat.dims[flat.rank++] = length;
    for (int i = 0; i < count; ++i) {
      values[i] =
          tn_reshape(graph, tn_transpose(graph, op->operands[i], order), flat.rank, flat.dims);
    }
    for (int64_t n = length; n > 1; n = (n + 1) / 2) {
      const int64_t even = n / 2 * 2;
      const tn_node_t *right[TN_MOST_VALUES], *tail[TN_MOST_VALUES];
      for (int i = 0; i < count; ++i) {
        right[i] = tn_slice_dim(graph, values[i], kept.rank, 1, even, 2);
        tail[i] = even < n ? tn_slice_dim(graph, values[i], kept.rank, even, n, 1) : NULL;
        values[i] = tn_slice_dim(graph, values[i], kept.rank, 0, even, 2);
      }
      TN_TRY(combine(parser, op, count, values, right));
      for (int i = 0; even < n && i < count; ++i) {
        const tn_node_t* both[2] = {values[i], tail[i]};
        values[i] = tn_concat(graph, 2, both, kept.rank);
      }
      TN_TRY(tn_graph_status(graph));
    }
    for (int i = 0; i < count; ++i) values[i] = tn_reshape(graph, values[i], kept.rank, kept.dims);
    TN_TRY(combine(parser, op, count, inits, values));
  }
  for (int i = 0; i < count; ++i) tn_op_text_return(op, parser, inits[i]);
  return TN_OK;
}

tn_status_t tn_parse_window_any(tn_parser_t* parser, tn_op_text_t* op, const tn_window_t* window) {
  int count;
  TN_TRY(expect_reducer(parser, op, &count));
  tn_graph_t* graph = parser->graph;
  const tn_node_t *padded[TN_MOST_VALUES], *values[TN_MOST_VALUES], *right[TN_MOST_VALUES];
  const int rank = op->operands[0]->types[0].rank;
  tn_type_t out = op->operands[0]->types[0];
  TN_TRY(spread_inits(parser, op, count, &(tn_type_t){.dtype = out.dtype}, values));
  int64_t interior[TN_MAX_RANK], places = 1;
  for (int d = 0; d < rank; ++d) {
    if (window->size[d] < 1 || window->stride[d] < 1 || window->window_dilation[d] < 1 ||
        window->base_dilation[d] < 1) {
      return TN_OP_TEXT_ERROR(parser, op, "expected positive windows, strides and dilations");
    }
    interior[d] = window->base_dilation[d] - 1;
    if (window->size[d] > TN_LARGEST_WINDOW || (places *= window->size[d]) > TN_LARGEST_WINDOW) {
      return TN_OP_TEXT_ERROR(parser, op,
                              "with this reducer, windows above %d elements are not supported",
                              TN_LARGEST_WINDOW);
    }
  }
  for (int i = 0; i < count; ++i) {
    padded[i] = tn_pad(graph, op->operands[i], op->operands[count + i], window->low, window->high,
                       interior);
  }
  TN_TRY(tn_graph_status(graph));
  for (int d = 0; d < rank; ++d) {
    const int64_t reach = (window->size[d] - 1) * window->window_dilation[d] + 1;
    const int64_t extent = padded[0]->types[0].dims[d];
    out.dims[d] = extent < reach ? 0 : (extent - reach) / window->stride[d] + 1;
  }
  TN_TRY(spread_inits(parser, op, count, &out, values));
  for (int64_t place = 0; tn_type_element_count(&out) && place < places; ++place) {
    int64_t start[TN_MAX_RANK], limit[TN_MAX_RANK], rest = place;
    for (int d = rank - 1; d >= 0; --d) {
      start[d] = rest % window->size[d] * window->window_dilation[d];
      limit[d] = start[d] + (out.dims[d] - 1) * window->stride[d] + 1;
      rest /= window->size[d];
    }
    for (int i = 0; i < count; ++i)
      right[i] = tn_slice(graph, padded[i], start, limit, window->stride);
    TN_TRY(combine(parser, op, count, values, right));
  }
  for (int i = 0; i < count; ++i) tn_op_text_return(op, parser, values[i]);
  return TN_OK;
}

// ---- sort ---------------------------------------------------------------------------------------------------
const tn_node_t* tn_parse_total_order(tn_graph_t* graph, const tn_node_t* x) {
  static const tn_dtype_t by_size[9] = {[1] = TN_I8, [2] = TN_I16, [4] = TN_I32, [8] = TN_I64};
  const tn_type_t* type = &x->types[0];
  const size_t size = tn_dtype_size(type->dtype);
  const tn_dtype_t integer = by_size[size];
  const tn_node_t* bits = tn_bitcast(graph, x, integer);
  const tn_node_t* last = tn_constant_int(graph, integer, (int64_t)size * 8 - 1);
  const tn_node_t* most = tn_constant_int(graph, integer, (int64_t)(UINT64_MAX >> (65 - 8 * size)));
  last = tn_broadcast_to(graph, last, type->rank, type->dims);
  most = tn_broadcast_to(graph, most, type->rank, type->dims);
  // of negative values all bits but the sign count down
  const tn_node_t* flips =
      tn_binary(graph, TN_OP_AND, tn_binary(graph, TN_OP_SHR_A, bits, last), most);
  return tn_binary(graph, TN_OP_XOR, bits, flips);
}

const tn_node_t* tn_parse_weak_order(tn_graph_t* graph, const tn_node_t* x) {
  const tn_node_t *zero = tn_constant_like(graph, x, 0), *nan = tn_constant_like(graph, x, NAN);
  const tn_node_t* is_nan = tn_compare(graph, TN_NE, x, x);
  const tn_node_t* one_zero = tn_select(graph, tn_compare(graph, TN_EQ, x, zero), zero, x);
  const tn_node_t* one_nan = tn_select(graph, is_nan, nan, one_zero);
  return one_nan ? tn_parse_total_order(graph, one_nan) : NULL;
}

// Bit 0: |node| depends on a first argument of a pair, bit 1: on a second one.
static unsigned sides(const tn_region_text_t* region, const tn_node_t* node) {
  if (node->op == TN_OP_PARAM) {
    const int64_t index = tn_node_int(node, TN_ATTR_INDEX, 0);
    return index < region->arg_count ? 1u << index % 2 : 0;
  }
  unsigned mask = 0;
  for (int i = 0; i < node->operand_count && mask != 3; ++i)
    mask |= sides(region, node->operands[i]);
  return mask;
}

// A comparator "f(a) < f(b)": sorting by f. |out_key| NULL: it is another one.
static tn_status_t find_key(const tn_place_t* place, const tn_node_t* compare,
                            const tn_node_t** out_key, bool* out_descending) {
  *out_key = NULL;
  const int64_t direction = tn_node_int(compare, TN_ATTR_DIRECTION, 0);
  if (compare->op != TN_OP_COMPARE || direction < TN_LT) return TN_OK;
  const unsigned left = sides(place->region, compare->operands[0]);
  if ((left != 1 && left != 2) || left + sides(place->region, compare->operands[1]) != 3)
    return TN_OK;
  const tn_node_t** map = calloc(tn_graph_node_limit(place->region->graph) + 1, sizeof *map);
  if (!map) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  tn_status_t status = build_nodes(place, map);
  if (!status && map[compare->operands[0]->id] == map[compare->operands[1]->id])
    *out_key = map[compare->operands[0]->id];
  *out_descending = (direction >= TN_GT) != (left == 2);
  free((void*)map);
  return status;
}

// How many elements stand before each along the last dimension: all are compared with all.
static tn_status_t positions(tn_parser_t* parser, const tn_op_text_t* op,
                             const tn_node_t* const* xs, const tn_node_t** out) {
  tn_graph_t* graph = parser->graph;
  tn_type_t square = xs[0]->types[0];
  const int rank = square.rank;
  const int64_t length = square.dims[rank - 1];
  if (length > TN_LONGEST_SORT || rank == TN_MAX_RANK) {
    return TN_OP_TEXT_ERROR(
        parser, op, "with this comparator, more than %d elements in a row are not supported",
        TN_LONGEST_SORT);
  }
  square.dims[square.rank++] = length;
  int64_t first[TN_MAX_RANK], second[TN_MAX_RANK], swapped[TN_MAX_RANK];
  for (int d = 0; d < square.rank; ++d) first[d] = second[d] = swapped[d] = d;
  second[rank - 1] = rank;
  swapped[rank - 1] = rank;
  swapped[rank] = rank - 1;
  const tn_node_t* args[TN_MOST_VALUES];
  for (int i = 0; i < op->operand_count; ++i) {
    args[2 * i] = tn_broadcast_in_dim(graph, xs[i], square.rank, square.dims, first);
    args[2 * i + 1] = tn_broadcast_in_dim(graph, xs[i], square.rank, square.dims, second);
  }
  TN_TRY(tn_graph_status(graph));
  const tn_place_t place = {
      .parser = parser, .op = op, .region = op->regions, .args = args, .shape = &square};
  const tn_node_t* before;
  TN_TRY(build(&place, 1, &before));
  tn_type_t counts = square;
  counts.dtype = TN_I32;
  const tn_node_t* is_earlier =
      tn_compare(graph, TN_LT, tn_iota(graph, &counts, rank - 1), tn_iota(graph, &counts, rank));
  const tn_node_t* not_after = tn_unary(graph, TN_OP_NOT, tn_transpose(graph, before, swapped));
  const tn_node_t* level = tn_binary(graph, TN_OP_AND, is_earlier, not_after);
  const tn_node_t* counted = tn_convert(graph, tn_binary(graph, TN_OP_OR, before, level), TN_I32);
  const int64_t summed = rank - 1;
  *out = tn_reduce(graph, TN_REDUCE_SUM, counted, 1, &summed);
  return tn_graph_status(graph);
}

tn_status_t tn_parse_sort_any(tn_parser_t* parser, tn_op_text_t* op, int dimension) {
  const int count = op->operand_count;
  TN_TRY(expect_shapes(parser, op, count));
  TN_TRY(expect_regions(parser, op, 1, 2 * count));
  const tn_type_t* x = &op->operands[0]->types[0];
  if (dimension < 0 || dimension >= x->rank || count + 1 > TN_MAX_RESULTS)
    return TN_OP_TEXT_ERROR(parser, op, "dimension: expected 0..%d, got %d", x->rank - 1,
                            dimension);
  tn_graph_t* graph = parser->graph;
  int64_t order[TN_MAX_RANK], back[TN_MAX_RANK];
  for (int d = 0; d < x->rank; ++d) order[d] = d < dimension ? d : d + 1;
  order[x->rank - 1] = dimension;
  for (int d = 0; d < x->rank; ++d) back[order[d]] = d;
  const tn_node_t *args[TN_MOST_VALUES], *sorted[TN_MOST_VALUES];
  for (int i = 0; i < count; ++i) {
    sorted[i + 1] = tn_transpose(graph, op->operands[i], order);
    args[2 * i] = args[2 * i + 1] = sorted[i + 1];
  }
  TN_TRY(tn_graph_status(graph));
  const tn_place_t place = {.parser = parser,
                            .op = op,
                            .region = op->regions,
                            .args = args,
                            .shape = &sorted[1]->types[0]};
  if (tn_graph_result_count(op->regions->graph) != 1)
    return TN_OP_TEXT_ERROR(parser, op, "expected a comparator that returns one value");
  bool descending = false;
  TN_TRY(
      find_key(&place, tn_graph_result_at(op->regions->graph, 0)->node, &sorted[0], &descending));
  if (!sorted[0]) TN_TRY(positions(parser, op, sorted + 1, &sorted[0]));
  const tn_node_t* all = tn_sort(graph, count + 1, sorted, x->rank - 1, descending);
  for (int i = 0; all && i < count; ++i)
    tn_op_text_return(op, parser, tn_transpose(graph, tn_result(graph, all, i + 1), back));
  return TN_OK;
}
