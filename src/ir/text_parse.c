// Parsing a module: functions, their signatures, and the entry.
#include <stdlib.h>
#include <string.h>

#include "ir/text_parse.h"

// ---- signatures -------------------------------------------------------------------------------------------
// Attributes of a parameter or result: ours are read, those of other dialects skipped.
typedef struct tn_boundary {
  int64_t strides[TN_MAX_RANK];
  bool has_strides, is_scalar, overlaps_params;
  int64_t same_as_param;
} tn_boundary_t;

static tn_status_t parse_boundary(tn_parser_t* parser, const tn_type_t* type, tn_boundary_t* out) {
  *out = (tn_boundary_t){.same_as_param = -1};
  if (!tn_token_is_punct(&parser->lexer.token, '{')) return TN_OK;
  tn_value_text_t dict = {0};
  TN_TRY(tn_parse_dict(parser, '}', &dict));
  for (const tn_value_text_t* item = dict.items; item; item = item->next) {
    if (strcmp(item->key, "tn.strides") == 0) {
      int count;
      TN_TRY(tn_value_ints(parser, item, TN_MAX_RANK, out->strides, &count));
      if (count != type->rank) {
        return tn_lexer_error(&parser->lexer, item->at, "tn.strides: expected %d values, got %d",
                              type->rank, count);
      }
      out->has_strides = true;
    } else if (strcmp(item->key, "tn.scalar") == 0) {
      out->is_scalar = true;
      if (type->rank)
        return tn_lexer_error(&parser->lexer, item->at, "tn.scalar: expected rank 0, got %d",
                              type->rank);
    } else if (strcmp(item->key, "tn.same_as_param") == 0) {
      out->same_as_param = item->integer;
    } else if (strcmp(item->key, "tn.overlaps_params") == 0) {
      out->overlaps_params = true;
    } else if (strncmp(item->key, "tn.", 3) == 0) {
      return tn_lexer_error(&parser->lexer, item->at,
                            "attribute '%s' is not supported; supported are tn.strides, "
                            "tn.scalar, tn.same_as_param, tn.overlaps_params",
                            item->key);
    }
  }
  return TN_OK;
}

// "(%a: t {..}, ..)". With |op| its operands are bound, else parameters are made.
static tn_status_t parse_args(tn_parser_t* parser, const tn_op_text_t* op) {
  int index = 0;
  TN_TRY(tn_parse_expect(parser, '('));
  while (!tn_parse_accept(parser, ')')) {
    if (index) TN_TRY(tn_parse_expect(parser, ','));
    tn_token_t name = parser->lexer.token;
    if (name.kind != TN_TOKEN_VALUE) return tn_parse_unexpected(parser, "an argument '%name'");
    tn_lexer_next(&parser->lexer);
    tn_type_t type;
    tn_boundary_t boundary;
    TN_TRY(tn_parse_expect(parser, ':'));
    TN_TRY(tn_parse_type(parser, &type));
    TN_TRY(parse_boundary(parser, &type, &boundary));
    TN_TRY(tn_parse_skip_location(parser));
    const tn_node_t* node;
    if (op) {
      if (index >= op->operand_count)
        return TN_OP_TEXT_ERROR(parser, op, "the function takes more operands");
      node = op->operands[index];
      if (!tn_type_equal(&node->types[0], &type)) {
        char expected[TN_TYPE_TEXT_SIZE], got[TN_TYPE_TEXT_SIZE];
        return TN_OP_TEXT_ERROR(parser, op, "operand %d: the function takes %s, got %s", index,
                                tn_type_format(&type, expected),
                                tn_type_format(&node->types[0], got));
      }
    } else {
      node = boundary.is_scalar ? tn_graph_scalar_param(parser->graph, type.dtype)
                                : tn_graph_param(parser->graph, &type,
                                                 boundary.has_strides ? boundary.strides : NULL);
    }
    TN_TRY(tn_graph_status(parser->graph));
    TN_TRY(tn_parse_define(parser, &name, 1, &node));
    ++index;
  }
  if (op && index != op->operand_count) {
    return TN_OP_TEXT_ERROR(parser, op, "the function takes %d operands, got %d", index,
                            op->operand_count);
  }
  return TN_OK;
}

typedef struct tn_declared_results {
  int count;
  tn_type_t* types;
  tn_boundary_t* boundaries;
} tn_declared_results_t;

// "-> (t {..}, ..)" or "-> t", and "attributes {..}" before the body.
static tn_status_t parse_results(tn_parser_t* parser, tn_declared_results_t* out) {
  out->count = 0;
  int capacity = 0;
  if (parser->lexer.token.kind == TN_TOKEN_ARROW) {
    tn_lexer_next(&parser->lexer);
    bool in_parens = tn_parse_accept(parser, '(');
    if (in_parens && tn_parse_accept(parser, ')')) in_parens = false, capacity = -1;
    while (capacity >= 0) {
      if (out->count == capacity) {
        int wanted = capacity ? capacity * 2 : 8;
        tn_type_t* types = TN_ARENA_ARRAY(&parser->arena, tn_type_t, wanted);
        tn_boundary_t* boundaries = TN_ARENA_ARRAY(&parser->arena, tn_boundary_t, wanted);
        if (!types || !boundaries) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
        if (capacity) {
          memcpy(types, out->types, sizeof(*types) * (size_t)capacity);
          memcpy(boundaries, out->boundaries, sizeof(*boundaries) * (size_t)capacity);
        }
        out->types = types;
        out->boundaries = boundaries;
        capacity = wanted;
      }
      TN_TRY(tn_parse_type(parser, &out->types[out->count]));
      out->boundaries[out->count] = (tn_boundary_t){.same_as_param = -1};
      if (in_parens)
        TN_TRY(parse_boundary(parser, &out->types[out->count], &out->boundaries[out->count]));
      ++out->count;
      if (!in_parens || !tn_parse_accept(parser, ',')) break;
    }
    if (in_parens) TN_TRY(tn_parse_expect(parser, ')'));
  }
  if (tn_token_is(&parser->lexer.token, "attributes")) {
    tn_lexer_next(&parser->lexer);
    TN_TRY(tn_parse_skip_balanced(parser));
  }
  return TN_OK;
}

// Signature and body; the current token is '('. |op| as in parse_args; |last| receives the return.
static tn_status_t parse_function(tn_parser_t* parser, const tn_op_text_t* op,
                                  tn_declared_results_t* declared, tn_op_text_t* last) {
  TN_TRY(parse_args(parser, op));
  TN_TRY(parse_results(parser, declared));
  TN_TRY(tn_parse_expect(parser, '{'));
  TN_TRY(tn_parse_body(parser, last));
  if (last->operand_count != declared->count) {
    return tn_lexer_error(&parser->lexer, last->at, "return: expected %d values, got %d",
                          declared->count, last->operand_count);
  }
  for (int i = 0; i < declared->count; ++i) {
    if (tn_type_equal(&last->operands[i]->types[0], &declared->types[i])) continue;
    char expected[TN_TYPE_TEXT_SIZE], got[TN_TYPE_TEXT_SIZE];
    return tn_lexer_error(&parser->lexer, last->at,
                          "return: value %d: the function declares %s, got %s", i,
                          tn_type_format(&declared->types[i], expected),
                          tn_type_format(&last->operands[i]->types[0], got));
  }
  return tn_parse_expect(parser, '}');
}

// ---- modules ----------------------------------------------------------------------------------------------
// Moves to the '(' of the function @name; of the only public function, or the first, if |name| is NULL.
static tn_status_t seek_function(tn_parser_t* parser, const char* name) {
  const char *fallback = NULL, *only_public = NULL;
  int public_count = 0;
  tn_lexer_seek(&parser->lexer, parser->part);
  while (parser->lexer.token.kind != TN_TOKEN_END) {
    bool is_function =
        tn_token_is(&parser->lexer.token, "func.func") || tn_token_is(&parser->lexer.token, "func");
    tn_lexer_next(&parser->lexer);
    if (!is_function) continue;
    bool is_private = tn_token_is(&parser->lexer.token, "private");
    if (is_private || tn_token_is(&parser->lexer.token, "public")) tn_lexer_next(&parser->lexer);
    if (parser->lexer.token.kind != TN_TOKEN_SYMBOL)
      return tn_parse_unexpected(parser, "a function name '@name'");
    tn_token_t symbol = parser->lexer.token;
    tn_lexer_next(&parser->lexer);
    const char* at = parser->lexer.token.text;
    const char* wanted = name ? name : "main";
    if (symbol.length == strlen(wanted) && memcmp(symbol.text, wanted, symbol.length) == 0)
      return TN_OK;
    if (!fallback) fallback = at;
    if (!is_private) {
      ++public_count;
      only_public = at;
    }
  }
  if (name)
    return tn_lexer_error(&parser->lexer, parser->lexer.token.text, "there is no function @%s",
                          name);
  if (public_count != 1 && !(fallback && public_count == 0)) {
    return tn_lexer_error(&parser->lexer, parser->part, "expected a function @main");
  }
  tn_lexer_seek(&parser->lexer, public_count == 1 ? only_public : fallback);
  return TN_OK;
}

tn_status_t tn_parse_inline(tn_parser_t* parser, tn_op_text_t* op, const char* name) {
  enum { TN_DEEPEST_CALL = 32 };
  if (parser->call_depth >= TN_DEEPEST_CALL)
    return TN_OP_TEXT_ERROR(parser, op, "@%s: calls are nested too deeply", name);
  const tn_lexer_t saved = parser->lexer;
  tn_scope_text_t *outer = parser->scope, scope = {0};
  tn_declared_results_t declared = {0};
  tn_op_text_t last = {0};
  ++parser->call_depth;
  tn_status_t status = seek_function(parser, name);
  parser->scope = &scope;
  if (!status) status = parse_function(parser, op, &declared, &last);
  parser->scope = outer;
  --parser->call_depth;
  parser->lexer = saved;
  for (int i = 0; !status && i < last.operand_count; ++i)
    tn_op_text_return(op, parser, last.operands[i]);
  return status;
}

static tn_status_t parse_main(tn_parser_t* parser, const char* name) {
  tn_declared_results_t declared = {0};
  tn_op_text_t last = {0};
  TN_TRY(seek_function(parser, name));
  TN_TRY(parse_function(parser, NULL, &declared, &last));
  for (int i = 0; i < declared.count; ++i) {
    const tn_boundary_t* boundary = &declared.boundaries[i];
    tn_graph_add_result(parser->graph, last.operands[i],
                        boundary->has_strides ? boundary->strides : NULL);
    if (boundary->same_as_param >= tn_graph_param_count(parser->graph)) {
      return tn_lexer_error(
          &parser->lexer, last.at, "tn.same_as_param: there are %d parameters, got %lld",
          tn_graph_param_count(parser->graph), (long long)boundary->same_as_param);
    }
    tn_graph_alias_result(parser->graph, i, (int)boundary->same_as_param,
                          boundary->overlaps_params);
    if (last.operands[i] &&
        !tn_result_fills_param(parser->graph, tn_graph_result_at(parser->graph, i)))
      return tn_lexer_error(&parser->lexer, last.at,
                            "tn.same_as_param: parameter %lld has another type or layout",
                            (long long)boundary->same_as_param);
  }
  return tn_graph_status(parser->graph);
}

tn_status_t tn_graph_parse(const char* file_name, const char* text, size_t length,
                           tn_graph_t** out_graph) {
  *out_graph = NULL;
  tn_scope_text_t scope = {0};
  tn_parser_t parser = {.scope = &scope, .part = text};
  TN_TRY(tn_graph_create(&parser.graph));
  tn_arena_init(&parser.arena);
  tn_lexer_init(&parser.lexer, file_name, text, length);
  tn_status_t status = parse_main(&parser, NULL);
  tn_arena_deinit(&parser.arena);
  if (status) {
    tn_graph_destroy(parser.graph);
    return status;
  }
  *out_graph = parser.graph;
  return TN_OK;
}

// ---- files with several functions -------------------------------------------------------------------------
static const char* part_end(const char* at, const char* end) {
  static const char mark[] = "// -----";
  const size_t length = sizeof mark - 1;
  for (; at < end; ++at) {
    if ((size_t)(end - at) >= length && memcmp(at, mark, length) == 0) return at;
    while (at < end && *at != '\n') ++at;
  }
  return end;
}

typedef struct tn_functions_text {
  tn_text_function_t* list;
  int count, capacity;
} tn_functions_text_t;

static tn_status_t add_function(tn_functions_text_t* functions,
                                const tn_text_function_t* function) {
  if (functions->count == functions->capacity) {
    const int wanted = functions->capacity ? functions->capacity * 2 : 16;
    tn_text_function_t* grown = realloc(functions->list, sizeof(*grown) * (size_t)wanted);
    if (!grown) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
    functions->list = grown;
    functions->capacity = wanted;
  }
  functions->list[functions->count++] = *function;
  return TN_OK;
}

static tn_status_t functions_of_part(tn_lexer_t* lexer, const char* begin,
                                     tn_functions_text_t* out) {
  const int before = out->count;
  tn_text_function_t only = {0};
  int total = 0;
  tn_lexer_seek(lexer, begin);
  while (lexer->token.kind != TN_TOKEN_END) {
    const bool is_function = tn_token_is(&lexer->token, "func.func");
    tn_lexer_next(lexer);
    if (!is_function) continue;
    const bool is_private = tn_token_is(&lexer->token, "private");
    if (is_private || tn_token_is(&lexer->token, "public")) tn_lexer_next(lexer);
    if (lexer->token.kind != TN_TOKEN_SYMBOL) continue;
    const tn_text_function_t function = {.name = lexer->token.text,
                                         .name_length = lexer->token.length,
                                         .part_begin = begin,
                                         .part_end = lexer->end};
    only = function;
    ++total;
    if (function.name_length == 4 && memcmp(function.name, "main", 4) == 0) {
      out->count = before;
      return add_function(out, &function);
    }
    tn_lexer_next(lexer);
    const bool is_open = tn_token_is_punct(&lexer->token, '(');
    tn_lexer_next(lexer);
    if (!is_private && is_open && tn_token_is_punct(&lexer->token, ')'))
      TN_TRY(add_function(out, &function));
  }
  return out->count == before && total == 1 ? add_function(out, &only) : TN_OK;
}

tn_status_t tn_text_functions(const char* file, const char* text, size_t length,
                              tn_text_function_t** out_functions, int* out_count) {
  tn_functions_text_t found = {0};
  tn_lexer_t lexer;
  tn_lexer_init(&lexer, file, text, length);
  const char* const end = text + length;
  tn_status_t status = TN_OK;
  for (const char* begin = text; !status && begin < end;) {
    lexer.end = part_end(begin + (begin > text ? 8 : 0), end);
    status = functions_of_part(&lexer, begin, &found);
    begin = lexer.end;
  }
  if (!status && !found.count)
    status =
        tn_lexer_error(&lexer, text, "expected a function @main, or functions without parameters");
  if (status) {
    free(found.list);
    found = (tn_functions_text_t){0};
  }
  *out_functions = found.list;
  *out_count = found.count;
  return status;
}

// The checked values become results behind the function's own.
static tn_status_t take_checks(tn_parser_t* parser, tn_text_check_t** out_checks, int* out_count) {
  tn_text_check_t* checks = calloc((size_t)parser->check_count + 1, sizeof *checks);
  if (!checks) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  int count = 0;
  for (const tn_check_text_t* item = parser->checks; item; item = item->next) {
    checks[count] = item->check;
    checks[count].got = tn_graph_result_count(parser->graph);
    checks[count].expected = checks[count].got + 1;
    ++count;
    tn_graph_add_result(parser->graph, item->got, NULL);
    tn_graph_add_result(parser->graph, item->expected, NULL);
  }
  *out_checks = checks;
  *out_count = count;
  return tn_graph_status(parser->graph);
}

tn_status_t tn_text_parse_function(const char* file, const char* text, size_t length,
                                   const tn_text_function_t* function, tn_graph_t** out_graph,
                                   tn_text_check_t** out_checks, int* out_count) {
  *out_graph = NULL;
  *out_checks = NULL;
  *out_count = 0;
  tn_scope_text_t scope = {0};
  tn_parser_t parser = {.scope = &scope, .part = function->part_begin};
  TN_TRY(tn_graph_create(&parser.graph));
  tn_arena_init(&parser.arena);
  tn_lexer_init(&parser.lexer, file, text, length);
  parser.lexer.end = function->part_end;
  char* name = tn_parse_copy(&parser, function->name, function->name_length);
  tn_status_t status =
      name ? parse_main(&parser, name) : TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  if (!status) status = take_checks(&parser, out_checks, out_count);
  tn_arena_deinit(&parser.arena);
  if (status) {
    tn_graph_destroy(parser.graph);
    free(*out_checks);
    *out_checks = NULL;
    *out_count = 0;
    return status;
  }
  *out_graph = parser.graph;
  return TN_OK;
}
