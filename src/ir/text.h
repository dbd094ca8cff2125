// StableHLO text, shared by printer and parser: names of enumerations, the output buffer, the lexer.
#ifndef TN_IR_TEXT_H_
#define TN_IR_TEXT_H_

#include "ir/graph_internal.h"

// ---- enumerations ---------------------------------------------------------------------------------------
// Texts by value; tn_text_find gives the value of a text or -1.
typedef struct tn_text_enum {
  int count;
  const char* const* texts;
} tn_text_enum_t;
extern const tn_text_enum_t tn_text_directions;  // tn_compare_t: EQ NE LT ..
extern const tn_text_enum_t tn_text_kinds;       // tn_reduce_kind_t: sum prod max ..
extern const tn_text_enum_t tn_text_bounds;      // tn_bounds_t: clamp error wrap
int tn_text_find(const tn_text_enum_t* names, const char* text, size_t length);
// The op that combines two values of |dtype| in a reduction of |kind|, and the value it starts from.
tn_op_t tn_text_kind_op(tn_reduce_kind_t kind);
tn_scalar_t tn_text_kind_identity(tn_reduce_kind_t kind, tn_dtype_t dtype);

// ---- output -----------------------------------------------------------------------------------------------
typedef struct tn_text {
  char* data;  // malloc'ed, NUL-terminated
  size_t length, capacity;
  bool is_out_of_memory;
} tn_text_t;
void tn_text_add(tn_text_t* text, const char* format, ...) __attribute__((format(printf, 2, 3)));
void tn_text_type(tn_text_t* text, const tn_type_t* type);
void tn_text_ints(tn_text_t* text, int64_t count, const int64_t* values);  // "1, 2"
void tn_text_element(tn_text_t* text, tn_dtype_t dtype, const void* element);
// "dense<...>" of |count| elements of |type|, or of one for all of them.
void tn_text_dense(tn_text_t* text, const tn_type_t* type, int64_t count, const void* data);
// All elements as a list, however many.
void tn_text_elements(tn_text_t* text, const tn_type_t* type, const void* data);
void tn_text_attr_value(tn_text_t* text, const tn_attr_t* attr);

// ---- lexer ------------------------------------------------------------------------------------------------
typedef enum tn_token_kind {
  TN_TOKEN_END,
  TN_TOKEN_WORD,    // stablehlo.add
  TN_TOKEN_VALUE,   // %x, with |index| of %x#1 (0 without)
  TN_TOKEN_SYMBOL,  // @f
  TN_TOKEN_HASH,    // #stablehlo.gather
  TN_TOKEN_CARET,   // ^bb0
  TN_TOKEN_INT,     // also hexadecimal
  TN_TOKEN_FLOAT,
  TN_TOKEN_STRING,
  TN_TOKEN_ARROW,
  TN_TOKEN_PUNCT,  // the character in |punct|
} tn_token_kind_t;

typedef struct tn_token {
  tn_token_kind_t kind;
  char punct;
  const char* text;  // without sigil and quotes
  size_t length;
  int64_t index;
} tn_token_t;

typedef struct tn_lexer {
  const char *file, *begin, *at, *end;
  tn_token_t token;  // current
} tn_lexer_t;

void tn_lexer_init(tn_lexer_t* lexer, const char* file, const char* text, size_t length);
// Moves to the next token. Bytes that start no token become a PUNCT that nobody expects.
void tn_lexer_next(tn_lexer_t* lexer);
// Continues at |at| (an earlier token's text, sigil included).
void tn_lexer_seek(tn_lexer_t* lexer, const char* at);
// Line and column of |where|, from 1.
void tn_lexer_place(const tn_lexer_t* lexer, const char* where, int* out_line, int* out_column);
// INVALID_ARGUMENT "file:line:column: ..." at |where|.
tn_status_t tn_lexer_error(const tn_lexer_t* lexer, const char* where, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
bool tn_token_is(const tn_token_t* token, const char* word);
static inline bool tn_token_is_punct(const tn_token_t* token, char punct) {
  return token->kind == TN_TOKEN_PUNCT && token->punct == punct;
}

// ---- files with several functions ---------------------------------------------------------------------------
// A function that can be run, in one of the parts of a file ("// -----" ends a part; parts do not see each other).
typedef struct tn_text_function {
  const char *name, *part_begin, *part_end;  // places in the text; the name's end is its length
  size_t name_length;
} tn_text_function_t;
// Per part: @main, or else every function that is not private and takes no parameters, or else the only one.
// |out_functions| is malloc'ed.
tn_status_t tn_text_functions(const char* file, const char* text, size_t length,
                              tn_text_function_t** out_functions, int* out_count);

// What "check.expect_.." states of two values, which are added to the graph's results.
typedef enum tn_text_check_kind {
  TN_CHECK_EQ,         // equal, or both NaN
  TN_CHECK_ALMOST_EQ,  // |a - b| <= tolerance
  TN_CHECK_CLOSE,      // between min_ulps and max_ulps floats apart
} tn_text_check_kind_t;
typedef struct tn_text_check {
  tn_text_check_kind_t kind;
  int line, column;
  int got, expected;  // indices of results
  double tolerance;
  int64_t min_ulps, max_ulps;
} tn_text_check_t;
// As tn_graph_parse, of |function|. |out_checks| is malloc'ed.
tn_status_t tn_text_parse_function(const char* file, const char* text, size_t length,
                                   const tn_text_function_t* function, tn_graph_t** out_graph,
                                   tn_text_check_t** out_checks, int* out_count);

#endif  // TN_IR_TEXT_H_
