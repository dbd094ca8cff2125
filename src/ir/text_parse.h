// Inside of the parser: text -> op record -> node.
//
// An op, in whatever form it is written, becomes a tn_op_text_t: operands, attributes by key, regions, types. One
// function then builds its node. Attribute values are small trees in the parser's arena.
#ifndef TN_IR_TEXT_PARSE_H_
#define TN_IR_TEXT_PARSE_H_

#include "ir/text.h"

typedef enum tn_value_text_kind {
  TN_TEXT_UNIT,    // a key without value
  TN_TEXT_INT,     // integer, also true and false
  TN_TEXT_FLOAT,   // real
  TN_TEXT_STRING,  // text
  TN_TEXT_WORD,    // text: an enumeration's or a type's name
  TN_TEXT_SYMBOL,  // text: @text
  TN_TEXT_LIST,    // items
  TN_TEXT_DICT,    // items with keys
  TN_TEXT_DENSE,   // type, data (all elements, or one)
} tn_value_text_kind_t;

typedef struct tn_value_text {
  tn_value_text_kind_t kind;
  const char* key;  // in a dictionary, else NULL
  const char* at;   // place in the text
  int64_t integer;
  double real;
  const char* text;  // NUL-terminated
  tn_type_t type;
  const uint8_t* data;
  size_t data_size;
  int count;  // of items
  struct tn_value_text *items, *last, *next;
} tn_value_text_t;

// A region, built into a graph of its own: its arguments are the first parameters, values it uses from outside the
// others, its returned values the results.
typedef struct tn_region_text {
  tn_graph_t* graph;
  int arg_count;
  bool is_paired;  // arguments are (a0, b0) (a1, b1) as "reducer" writes them, else a0, a1, b0, b1
  const tn_node_t** captures;
  int capture_count, capture_capacity;
  struct tn_region_text* next;  // of the op
} tn_region_text_t;

typedef struct tn_op_text {
  const char* name;
  const char* at;
  const tn_node_t** operands;
  int operand_count, operand_capacity;
  int init_count;                           // operands written "x init: y"
  tn_value_text_t attrs;                    // a dictionary
  tn_value_text_t words;                    // bare words in order: LT, FLOAT
  tn_region_text_t *regions, *last_region;  // a list
  int region_count;
  bool has_arrow;  // types are (inputs) -> outputs; else a plain list in |inputs|
  tn_type_t *inputs, *outputs;
  int input_count, output_count, input_capacity, output_capacity;
  // Built by the op.
  const tn_node_t** results;
  int result_count;
} tn_op_text_t;

typedef struct tn_name_text {
  const char* text;
  size_t length;
  int count;
  const tn_node_t* const* nodes;
  struct tn_name_text* next;
} tn_name_text_t;

// Values that a function's or region's text can name. A region's scope sees those around it.
enum { TN_SCOPE_BUCKETS = 64 };
typedef struct tn_scope_text {
  tn_name_text_t* buckets[TN_SCOPE_BUCKETS];
  struct tn_scope_text* outer;  // NULL: a function
  tn_region_text_t* region;
} tn_scope_text_t;

typedef struct tn_check_text {
  tn_text_check_t check;
  const tn_node_t *got, *expected;
  struct tn_check_text* next;
} tn_check_text_t;

typedef struct tn_parser {
  tn_lexer_t lexer;
  tn_arena_t arena;
  tn_graph_t* graph;  // nodes go here
  tn_scope_text_t* scope;
  const char* part;  // where the part begins whose functions can be called
  int depth;         // of regions and nested values
  int call_depth;
  tn_check_text_t *checks, *last_check;
  int check_count;
} tn_parser_t;

// ---- text_parse_attr.c ------------------------------------------------------------------------------------
tn_status_t tn_parse_expect(tn_parser_t* parser, char punct);
bool tn_parse_accept(tn_parser_t* parser, char punct);
// "expected <what>, got '<token>'" at the current token.
tn_status_t tn_parse_unexpected(tn_parser_t* parser, const char* what);
char* tn_parse_copy(tn_parser_t* parser, const char* text, size_t length);
tn_status_t tn_parse_type(tn_parser_t* parser, tn_type_t* out_type);
tn_status_t tn_parse_value(tn_parser_t* parser, tn_value_text_t* out_value);
// "{key = value, ..}" appended to |dict|; the current token is the brace (or '<' of "#x<..>" with |close| '>').
tn_status_t tn_parse_dict(tn_parser_t* parser, char close, tn_value_text_t* dict);
// Appends a copy of |value|.
tn_status_t tn_value_append(tn_parser_t* parser, tn_value_text_t* list,
                            const tn_value_text_t* value);
const tn_value_text_t* tn_value_find(const tn_value_text_t* dict, const char* key);
// Skips "loc(..)" if it is next.
tn_status_t tn_parse_skip_location(tn_parser_t* parser);
// Skips from an opening bracket to after its closing one.
tn_status_t tn_parse_skip_balanced(tn_parser_t* parser);

// ---- text_parse_op.c --------------------------------------------------------------------------------------
// One statement. |out_is_return|: it was a return, whose operands are in |op|.
tn_status_t tn_parse_statement(tn_parser_t* parser, tn_op_text_t* op, bool* out_is_return);
// Statements up to and with the return; |op| is that return.
tn_status_t tn_parse_body(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_define(tn_parser_t* parser, const tn_token_t* name, int count,
                            const tn_node_t* const* nodes);
void tn_op_text_deinit(tn_op_text_t* op);

// ---- text_parse_build.c -----------------------------------------------------------------------------------
tn_status_t tn_parse_build(tn_parser_t* parser, tn_op_text_t* op);
// INVALID_ARGUMENT if no op of this name can be built.
tn_status_t tn_parse_check_op(tn_parser_t* parser, const tn_op_text_t* op);
// "<op>: <message>" at the op.
#define TN_OP_TEXT_ERROR(parser, op, format, ...) \
  tn_lexer_error(&(parser)->lexer, (op)->at, "%s: " format, (op)->name __VA_OPT__(, ) __VA_ARGS__)
// Attributes of |op| by key. Absent: INVALID_ARGUMENT, or |otherwise| where there is one.
tn_status_t tn_op_text_ints(tn_parser_t* parser, const tn_op_text_t* op, const char* key,
                            int expected, const int64_t* otherwise, int64_t* out_values,
                            int* out_count);
tn_status_t tn_op_text_int(tn_parser_t* parser, const tn_op_text_t* op, const char* key,
                           int64_t* out_value);
// Ints of one value: list, nested list, dense constant or a single integer.
tn_status_t tn_value_ints(tn_parser_t* parser, const tn_value_text_t* value, int capacity,
                          int64_t* out_values, int* out_count);
void tn_op_text_return(tn_op_text_t* op, tn_parser_t* parser, const tn_node_t* node);

// ---- text_parse_index.c: ops with dimension numbers, windows and regions ----------------------------------
tn_status_t tn_parse_build_gather(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_scatter(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_reduce(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_window(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_sort(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_dot(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_convolution(tn_parser_t* parser, tn_op_text_t* op);

// ---- text_parse_call.c: calls, composites and custom calls ------------------------------------------------
tn_status_t tn_parse_build_call(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_custom_call(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_composite(tn_parser_t* parser, tn_op_text_t* op);

// ---- text_parse_check.c: "check.expect_.." and the custom calls of these names ----------------------------
// True if |name| is that of a check.
bool tn_parse_is_check(const char* name);
tn_status_t tn_parse_build_check(tn_parser_t* parser, tn_op_text_t* op, const char* name);

// ---- text_parse_region.c: ops whose regions are built into the graph around them --------------------------
tn_status_t tn_parse_build_if(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_case(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_while(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_map(tn_parser_t* parser, tn_op_text_t* op);
// Any number of operands and any reducer, along |dimensions|: by pairs of neighbours.
tn_status_t tn_parse_reduce_any(tn_parser_t* parser, tn_op_text_t* op, int count,
                                const int64_t* dimensions);
tn_status_t tn_parse_window_any(tn_parser_t* parser, tn_op_text_t* op, const tn_window_t* window);
// Any comparator.
tn_status_t tn_parse_sort_any(tn_parser_t* parser, tn_op_text_t* op, int dimension);
// An integer that orders floats as TOTALORDER does.
const tn_node_t* tn_parse_total_order(tn_graph_t* graph, const tn_node_t* x);
// The same for WEAKORDER: zeros are equal, so are all NaN, which are the greatest.
const tn_node_t* tn_parse_weak_order(tn_graph_t* graph, const tn_node_t* x);

// ---- text_parse_derived.c: ops that are built from others -------------------------------------------------
tn_status_t tn_parse_build_reduce_precision(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_dimension_size(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_batch_norm(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_cholesky(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_triangular_solve(tn_parser_t* parser, tn_op_text_t* op);
tn_status_t tn_parse_build_fft(tn_parser_t* parser, tn_op_text_t* op);

// ---- text_parse.c: functions ------------------------------------------------------------------------------
// Builds the body of the function @name on |op|'s operands.
tn_status_t tn_parse_inline(tn_parser_t* parser, tn_op_text_t* op, const char* name);

#endif  // TN_IR_TEXT_PARSE_H_
