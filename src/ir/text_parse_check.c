// Checks of test files: they compute nothing, they state what two values must have in common.
#include <string.h>

#include "ir/text_parse.h"

static const struct {
  const char* name;
  tn_text_check_kind_t kind;
  bool has_value, has_result;  // the expected value is an attribute; an i1 comes out
} rows[] = {
    {"check.expect_eq", TN_CHECK_EQ, false, false},
    {"check.expect_eq_const", TN_CHECK_EQ, true, false},
    {"check.expect_almost_eq", TN_CHECK_ALMOST_EQ, false, false},
    {"check.expect_almost_eq_const", TN_CHECK_ALMOST_EQ, true, false},
    {"check.expect_close", TN_CHECK_CLOSE, false, false},
    {"check.eq", TN_CHECK_EQ, false, true},
};
enum { TN_CHECK_ROWS = sizeof rows / sizeof rows[0] };

static int find(const char* name) {
  for (int i = 0; i < TN_CHECK_ROWS; ++i) {
    if (strcmp(rows[i].name, name) == 0) return i;
  }
  return -1;
}
bool tn_parse_is_check(const char* name) { return find(name) >= 0; }

static double number_of(const tn_op_text_t* op, const char* key, double otherwise) {
  const tn_value_text_t* value = tn_value_find(&op->attrs, key);
  if (!value) return otherwise;
  return value->kind == TN_TEXT_INT ? (double)value->integer : value->real;
}

// rank 0 i1: all elements are equal, or both NaN
static const tn_node_t* all_equal(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* y) {
  if (!x || !y) return NULL;
  const tn_node_t* equal = tn_compare(graph, TN_EQ, x, y);
  if (tn_dtype_is_float(x->types[0].dtype)) {
    const tn_node_t* both =
        tn_binary(graph, TN_OP_AND, tn_compare(graph, TN_NE, x, x), tn_compare(graph, TN_NE, y, y));
    equal = tn_binary(graph, TN_OP_OR, equal, both);
  }
  int64_t dimensions[TN_MAX_RANK];
  for (int i = 0; i < x->types[0].rank; ++i) dimensions[i] = i;
  return tn_reduce(graph, TN_REDUCE_AND, equal, x->types[0].rank, dimensions);
}

tn_status_t tn_parse_build_check(tn_parser_t* parser, tn_op_text_t* op, const char* name) {
  const int row = find(name);
  if (parser->depth)
    return TN_OP_TEXT_ERROR(parser, op,
                            "checks in regions are not supported; they stand in functions");
  const int count = rows[row].has_value ? 1 : 2;
  if (op->operand_count != count)
    return TN_OP_TEXT_ERROR(parser, op, "expected %d operands, got %d", count, op->operand_count);
  const tn_node_t *got = op->operands[0], *expected = op->operands[count - 1];
  if (rows[row].has_value) {
    const tn_value_text_t* value = tn_value_find(&op->attrs, "value");
    if (!value || value->kind != TN_TEXT_DENSE)
      return TN_OP_TEXT_ERROR(parser, op, "expected dense<..> : tensor<..>");
    const size_t size = tn_dtype_size(value->type.dtype);
    tn_scalar_t splat = {0};
    if (value->data_size <= size) memcpy(splat.bytes, value->data, value->data_size);
    expected = value->data_size <= size ? tn_constant_splat(parser->graph, &value->type, splat)
                                        : tn_constant(parser->graph, &value->type, value->data);
    op->input_count = 0;
  }
  if (!expected) return TN_OK;  // the graph has the error
  if (!tn_type_equal(&got->types[0], &expected->types[0])) {
    char a[TN_TYPE_TEXT_SIZE], b[TN_TYPE_TEXT_SIZE];
    return TN_OP_TEXT_ERROR(parser, op, "got %s, expected %s", tn_type_format(&got->types[0], a),
                            tn_type_format(&expected->types[0], b));
  }
  const tn_dtype_t dtype = got->types[0].dtype;
  if (rows[row].kind != TN_CHECK_EQ && !tn_dtype_is_float(dtype) && !tn_dtype_is_complex(dtype))
    return TN_OP_TEXT_ERROR(parser, op, "expected floats, got %s", tn_dtype_name(dtype));
  tn_check_text_t* check = TN_ARENA_NEW(&parser->arena, tn_check_text_t);
  if (!check) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  *check = (tn_check_text_t){.got = got, .expected = expected};
  check->check.kind = rows[row].kind;
  check->check.tolerance = number_of(op, "tolerance", 1e-4);
  check->check.min_ulps = (int64_t)number_of(op, "min_ulp_difference", 0);
  check->check.max_ulps = (int64_t)number_of(op, "max_ulp_difference", 3);
  tn_lexer_place(&parser->lexer, op->at, &check->check.line, &check->check.column);
  if (parser->last_check) {
    parser->last_check->next = check;
  } else {
    parser->checks = check;
  }
  parser->last_check = check;
  ++parser->check_count;
  if (rows[row].has_result) {
    tn_op_text_return(op, parser, all_equal(parser->graph, got, expected));
  } else if (strncmp(op->name, "check.", 6) == 0) {
    op->input_count = 0;  // types of operands, not of a result
  }
  return TN_OK;
}
