// Parsing statements: any op, in pretty or generic form, into a record; and the bodies made of them.
#include <stdio.h>
#include <string.h>

#include "ir/text_parse.h"

// ---- growing lists of the record --------------------------------------------------------------------------
static tn_status_t grow(tn_parser_t* parser, size_t item, int count, int* capacity, void* list) {
  if (count < *capacity) return TN_OK;
  int wanted = *capacity ? *capacity * 2 : 8;
  void* memory = tn_arena_alloc(&parser->arena, item * (size_t)wanted);
  if (!memory) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  void** pointer = list;
  if (count) memcpy(memory, *pointer, item * (size_t)count);
  *pointer = memory;
  *capacity = wanted;
  return TN_OK;
}

// ---- names ------------------------------------------------------------------------------------------------
static unsigned bucket_of(const char* text, size_t length) {
  unsigned hash = 5381;
  for (size_t i = 0; i < length; ++i) hash = hash * 33u + (unsigned char)text[i];
  return hash % TN_SCOPE_BUCKETS;
}
static tn_name_text_t* find_local(const tn_scope_text_t* scope, const tn_token_t* token) {
  tn_name_text_t* name = scope->buckets[bucket_of(token->text, token->length)];
  for (; name; name = name->next) {
    if (name->length == token->length && memcmp(name->text, token->text, token->length) == 0)
      return name;
  }
  return NULL;
}

static tn_status_t define(tn_parser_t* parser, tn_scope_text_t* scope, const tn_token_t* token,
                          int count, const tn_node_t* const* nodes) {
  if (find_local(scope, token)) {
    return tn_lexer_error(&parser->lexer, token->text, "%%%.*s is defined twice",
                          (int)token->length, token->text);
  }
  tn_name_text_t* name = TN_ARENA_NEW(&parser->arena, tn_name_text_t);
  const tn_node_t** copies = tn_arena_copy(&parser->arena, nodes, sizeof(*nodes) * (size_t)count);
  if (!name || !copies) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  unsigned bucket = bucket_of(token->text, token->length);
  *name = (tn_name_text_t){.text = token->text,
                           .length = token->length,
                           .count = count,
                           .nodes = copies,
                           .next = scope->buckets[bucket]};
  scope->buckets[bucket] = name;
  return TN_OK;
}
tn_status_t tn_parse_define(tn_parser_t* parser, const tn_token_t* token, int count,
                            const tn_node_t* const* nodes) {
  return define(parser, parser->scope, token, count, nodes);
}

// A value from outside, as the region sees it: a constant again, else one more parameter.
static tn_status_t capture(tn_parser_t* parser, tn_region_text_t* region, const tn_node_t* outer,
                           const tn_node_t** out_node) {
  if (outer->op == TN_OP_CONST) {
    *out_node = tn_graph_rebuild(region->graph, outer, NULL);
    return tn_graph_status(region->graph);
  }
  TN_TRY(grow(parser, sizeof(outer), region->capture_count, &region->capture_capacity,
              &region->captures));
  region->captures[region->capture_count++] = outer;
  *out_node = tn_graph_param(region->graph, &outer->types[0], NULL);
  return tn_graph_status(region->graph);
}

// NULL: there is no such name.
static tn_status_t find_name(tn_parser_t* parser, tn_scope_text_t* scope, const tn_token_t* token,
                             const tn_name_text_t** out_name) {
  *out_name = find_local(scope, token);
  if (*out_name || !scope->outer) return TN_OK;
  const tn_name_text_t* outer;
  TN_TRY(find_name(parser, scope->outer, token, &outer));
  if (!outer) return TN_OK;
  const tn_node_t** nodes = TN_ARENA_ARRAY(&parser->arena, const tn_node_t*, outer->count + 1);
  if (!nodes) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  for (int i = 0; i < outer->count; ++i)
    TN_TRY(capture(parser, scope->region, outer->nodes[i], &nodes[i]));
  TN_TRY(define(parser, scope, token, outer->count, nodes));
  *out_name = find_local(scope, token);
  return TN_OK;
}

static tn_status_t parse_operand(tn_parser_t* parser, tn_op_text_t* op) {
  tn_token_t token = parser->lexer.token;
  if (token.kind != TN_TOKEN_VALUE) return tn_parse_unexpected(parser, "a value '%name'");
  const tn_name_text_t* name;
  TN_TRY(find_name(parser, parser->scope, &token, &name));
  if (!name) {
    return tn_lexer_error(&parser->lexer, token.text, "%%%.*s is not defined here",
                          (int)token.length, token.text);
  }
  if (token.index >= name->count) {
    return tn_lexer_error(&parser->lexer, token.text, "%%%.*s has %d results, got #%lld",
                          (int)token.length, token.text, name->count, (long long)token.index);
  }
  TN_TRY(
      grow(parser, sizeof(*op->operands), op->operand_count, &op->operand_capacity, &op->operands));
  op->operands[op->operand_count++] = name->nodes[token.index];
  tn_lexer_next(&parser->lexer);
  return TN_OK;
}

static tn_status_t parse_type_list(tn_parser_t* parser, tn_type_t** types, int* count,
                                   int* capacity, bool in_parens) {
  if (in_parens && tn_parse_accept(parser, ')')) return TN_OK;
  do {
    TN_TRY(grow(parser, sizeof(tn_type_t), *count, capacity, types));
    TN_TRY(tn_parse_type(parser, &(*types)[(*count)]));
    ++*count;
    if (in_parens && tn_token_is_punct(&parser->lexer.token, '{'))
      TN_TRY(tn_parse_skip_balanced(parser));
  } while (tn_parse_accept(parser, ','));
  return in_parens ? tn_parse_expect(parser, ')') : TN_OK;
}

// After ':': "(t, t) -> t", "(t) -> (t, t)", "t, t -> t" or "t, t".
static tn_status_t parse_types(tn_parser_t* parser, tn_op_text_t* op) {
  bool in_parens = tn_parse_accept(parser, '(');
  TN_TRY(parse_type_list(parser, &op->inputs, &op->input_count, &op->input_capacity, in_parens));
  if (parser->lexer.token.kind != TN_TOKEN_ARROW) return TN_OK;
  tn_lexer_next(&parser->lexer);
  op->has_arrow = true;
  if (tn_parse_accept(parser, '(')) {
    return parse_type_list(parser, &op->outputs, &op->output_count, &op->output_capacity, true);
  }
  TN_TRY(grow(parser, sizeof(tn_type_t), 0, &op->output_capacity, &op->outputs));
  op->output_count = 1;
  return tn_parse_type(parser, &op->outputs[0]);
}

// ---- regions ----------------------------------------------------------------------------------------------
static tn_status_t parse_region_args(tn_parser_t* parser) {
  if (tn_parse_accept(parser, ')')) return TN_OK;
  do {
    tn_token_t name = parser->lexer.token;
    if (name.kind != TN_TOKEN_VALUE) return tn_parse_unexpected(parser, "an argument '%name'");
    tn_lexer_next(&parser->lexer);
    tn_type_t type;
    TN_TRY(tn_parse_expect(parser, ':'));
    TN_TRY(tn_parse_type(parser, &type));
    TN_TRY(tn_parse_skip_location(parser));
    const tn_node_t* param = tn_graph_param(parser->graph, &type, NULL);
    TN_TRY(tn_graph_status(parser->graph));
    TN_TRY(tn_parse_define(parser, &name, 1, &param));
  } while (tn_parse_accept(parser, ','));
  return tn_parse_expect(parser, ')');
}

static tn_status_t parse_region_inside(tn_parser_t* parser, bool has_args) {
  if (parser->scope->region->is_paired && !has_args) {  // arguments are defined
    TN_TRY(tn_parse_expect(parser, '{'));
  } else if (!has_args) {
    TN_TRY(tn_parse_expect(parser, '{'));
    if (parser->lexer.token.kind == TN_TOKEN_CARET) {
      tn_lexer_next(&parser->lexer);
      if (tn_parse_accept(parser, '(')) TN_TRY(parse_region_args(parser));
      TN_TRY(tn_parse_expect(parser, ':'));
    }
  } else {
    while (tn_parse_accept(parser, '(')) TN_TRY(parse_region_args(parser));
    TN_TRY(tn_parse_expect(parser, '{'));
  }
  parser->scope->region->arg_count = tn_graph_param_count(parser->graph);
  tn_op_text_t last;
  TN_TRY(tn_parse_body(parser, &last));
  for (int i = 0; i < last.operand_count; ++i)
    tn_graph_add_result(parser->graph, last.operands[i], NULL);
  return tn_parse_expect(parser, '}');
}

// "{ ^bb0(%a: t): .. }", or "(%a: t) (%b: t) { .. }" with |has_args|; or "{ .. }" whose arguments are |names| of the
// types of |op|.
static tn_status_t parse_region(tn_parser_t* parser, tn_op_text_t* op, bool has_args,
                                int name_count, const tn_token_t* names) {
  enum { TN_DEEPEST_REGION = 16 };
  if (parser->depth >= TN_DEEPEST_REGION)
    return TN_OP_TEXT_ERROR(parser, op, "regions are nested too deeply");
  tn_graph_t* outer_graph = parser->graph;
  tn_region_text_t* region = TN_ARENA_NEW(&parser->arena, tn_region_text_t);
  if (!region) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  *region = (tn_region_text_t){.is_paired = has_args || names};
  TN_TRY(tn_graph_create(&region->graph));
  if (op->last_region) {
    op->last_region->next = region;
  } else {
    op->regions = region;
  }
  op->last_region = region;
  ++op->region_count;
  tn_scope_text_t *outer_scope = parser->scope, scope = {.outer = outer_scope, .region = region};
  parser->graph = region->graph;
  parser->scope = &scope;
  ++parser->depth;
  tn_status_t status = TN_OK;
  for (int i = 0; !status && i < name_count; ++i) {
    const tn_node_t* param = tn_graph_param(region->graph, &op->inputs[i], NULL);
    status = tn_graph_status(region->graph);
    if (!status) status = tn_parse_define(parser, &names[i], 1, &param);
  }
  if (!status) status = parse_region_inside(parser, has_args);
  --parser->depth;
  parser->graph = outer_graph;
  parser->scope = outer_scope;
  return status;
}

void tn_op_text_deinit(tn_op_text_t* op) {
  for (tn_region_text_t* region = op->regions; region; region = region->next)
    tn_graph_destroy(region->graph);
  op->regions = op->last_region = NULL;
  op->region_count = 0;
}

// ---- items ------------------------------------------------------------------------------------------------
static tn_status_t append_named(tn_parser_t* parser, tn_op_text_t* op, const char* key,
                                tn_value_text_t value) {
  value.key = key;
  op->attrs.kind = TN_TEXT_DICT;
  return tn_value_append(parser, &op->attrs, &value);
}

// "[0:2, 1:7:3]" of stablehlo.slice as three lists.
static tn_status_t parse_ranges(tn_parser_t* parser, tn_op_text_t* op) {
  static const char* const keys[] = {"start_indices", "limit_indices", "strides"};
  tn_value_text_t lists[3];
  for (int i = 0; i < 3; ++i) lists[i] = (tn_value_text_t){.kind = TN_TEXT_LIST, .at = op->at};
  TN_TRY(tn_parse_expect(parser, '['));
  while (!tn_parse_accept(parser, ']')) {
    if (lists[0].count) TN_TRY(tn_parse_expect(parser, ','));
    for (int i = 0; i < 3; ++i) {
      tn_value_text_t value = {.kind = TN_TEXT_INT, .integer = 1};
      if (i == 1) TN_TRY(tn_parse_expect(parser, ':'));
      if (i < 2 || tn_parse_accept(parser, ':')) {
        if (parser->lexer.token.kind != TN_TOKEN_INT)
          return tn_parse_unexpected(parser, "an integer");
        value.at = parser->lexer.token.text;
        sscanf(value.at, "%lld", (long long*)&value.integer);
        tn_lexer_next(&parser->lexer);
      }
      TN_TRY(tn_value_append(parser, &lists[i], &value));
    }
  }
  for (int i = 0; i < 3; ++i) TN_TRY(append_named(parser, op, keys[i], lists[i]));
  return TN_OK;
}

// A word: a key if '=' follows, a constant's elements, or just a word.
static tn_status_t parse_word_item(tn_parser_t* parser, tn_op_text_t* op) {
  tn_token_t word = parser->lexer.token;
  if (word.kind != TN_TOKEN_WORD) return tn_parse_unexpected(parser, "a word");
  tn_value_text_t value = {.kind = TN_TEXT_WORD, .at = word.text};
  if (tn_token_is(&word, "dense")) {
    TN_TRY(tn_parse_value(parser, &value));
    return append_named(parser, op, "value", value);
  }
  const char* text = tn_parse_copy(parser, word.text, word.length);
  if (!text) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  tn_lexer_next(&parser->lexer);
  if (tn_parse_accept(parser, '=')) {
    TN_TRY(tn_parse_value(parser, &value));
    return append_named(parser, op, text, value);
  }
  if (strcmp(text, "init") == 0 && tn_token_is_punct(&parser->lexer.token, ':')) {
    tn_lexer_next(&parser->lexer);
    ++op->init_count;
    return parse_operand(parser, op);
  }
  value.text = text;
  op->words.kind = TN_TEXT_LIST;
  return tn_value_append(parser, &op->words, &value);
}

// "(x init: a), (y init: b)" has the operands x, y, a, b.
static tn_status_t order_inits(tn_parser_t* parser, tn_op_text_t* op) {
  if (op->init_count < 2 || op->operand_count != 2 * op->init_count) return TN_OK;
  const tn_node_t** ordered = TN_ARENA_ARRAY(&parser->arena, const tn_node_t*, op->operand_count);
  if (!ordered) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  for (int i = 0; i < op->operand_count; ++i)
    ordered[i / 2 + i % 2 * op->init_count] = op->operands[i];
  op->operands = ordered;
  op->operand_capacity = op->operand_count;
  return TN_OK;
}

// Everything between the op's name and its types.
static tn_status_t parse_items(tn_parser_t* parser, tn_op_text_t* op) {
  tn_lexer_t* lexer = &parser->lexer;
  int open = 0;
  bool may_have_operand = true;
  for (;;) {
    const tn_token_t token = lexer->token;
    if (token.kind == TN_TOKEN_VALUE && may_have_operand) {
      TN_TRY(parse_operand(parser, op));
      may_have_operand = false;
    } else if (token.kind == TN_TOKEN_WORD) {
      if (tn_token_is(&token, "reducer")) break;
      TN_TRY(parse_word_item(parser, op));
      if (tn_token_is(&token, "dense")) {  // with its type, a constant is complete
        if (tn_token_is_punct(&lexer->token, '{')) TN_TRY(tn_parse_dict(parser, '}', &op->attrs));
        while (tn_parse_accept(parser, ',')) TN_TRY(parse_word_item(parser, op));
        break;
      }
    } else if (token.kind == TN_TOKEN_SYMBOL || token.kind == TN_TOKEN_STRING) {
      tn_value_text_t value;
      TN_TRY(tn_parse_value(parser, &value));
      TN_TRY(append_named(parser, op, "callee", value));
    } else if (token.kind == TN_TOKEN_PUNCT && token.punct == '(') {
      tn_lexer_next(lexer);
      if (tn_token_is_punct(&lexer->token, '{')) {
        do {
          TN_TRY(parse_region(parser, op, false, 0, NULL));
        } while (tn_parse_accept(parser, ','));
        TN_TRY(tn_parse_expect(parser, ')'));
      } else {
        ++open;
        may_have_operand = true;
      }
    } else if (token.kind == TN_TOKEN_PUNCT && token.punct == ')' && open) {
      --open;
      tn_lexer_next(lexer);
    } else if (token.kind == TN_TOKEN_PUNCT && token.punct == '{') {
      TN_TRY(tn_parse_dict(parser, '}', &op->attrs));
    } else if (token.kind == TN_TOKEN_PUNCT && token.punct == '<') {
      tn_lexer_next(lexer);
      if (!tn_token_is_punct(&lexer->token, '{')) return tn_parse_unexpected(parser, "'{'");
      TN_TRY(tn_parse_dict(parser, '}', &op->attrs));
      TN_TRY(tn_parse_expect(parser, '>'));
    } else if (token.kind == TN_TOKEN_PUNCT && token.punct == '[' &&
               strcmp(op->name, "stablehlo.slice") == 0) {
      TN_TRY(parse_ranges(parser, op));
    } else if (token.kind == TN_TOKEN_PUNCT && token.punct == ',') {
      tn_lexer_next(lexer);
      may_have_operand = true;
    } else {
      break;
    }
  }
  return open ? tn_parse_expect(parser, ')') : TN_OK;
}

// ---- statements -------------------------------------------------------------------------------------------
typedef struct tn_result_name {
  tn_token_t token;
  int count;
} tn_result_name_t;

// "%a, %b:2 =" into |names|.
static tn_status_t parse_result_names(tn_parser_t* parser, tn_result_name_t* names,
                                      int* out_count) {
  *out_count = 0;
  if (parser->lexer.token.kind != TN_TOKEN_VALUE) return TN_OK;
  do {
    if (parser->lexer.token.kind != TN_TOKEN_VALUE)
      return tn_parse_unexpected(parser, "a result '%name'");
    if (*out_count == TN_MAX_RESULTS) return tn_parse_unexpected(parser, "at most 16 results");
    tn_result_name_t* name = &names[(*out_count)++];
    name->token = parser->lexer.token;
    name->count = 1;
    tn_lexer_next(&parser->lexer);
    if (tn_parse_accept(parser, ':')) {
      if (parser->lexer.token.kind != TN_TOKEN_INT || parser->lexer.token.length > 4) {
        return tn_parse_unexpected(parser, "the number of results");
      }
      name->count = 0;
      for (size_t i = 0; i < parser->lexer.token.length; ++i) {
        name->count = name->count * 10 + (parser->lexer.token.text[i] - '0');
      }
      tn_lexer_next(&parser->lexer);
    }
  } while (tn_parse_accept(parser, ','));
  return tn_parse_expect(parser, '=');
}

static tn_status_t check_types(tn_parser_t* parser, const tn_op_text_t* op) {
  char expected[TN_TYPE_TEXT_SIZE], got[TN_TYPE_TEXT_SIZE];
  if (op->has_arrow) {
    if (op->input_count != op->operand_count) {
      return TN_OP_TEXT_ERROR(parser, op, "%d operands, but %d operand types", op->operand_count,
                              op->input_count);
    }
    for (int i = 0; i < op->operand_count; ++i) {
      if (tn_type_equal(&op->operands[i]->types[0], &op->inputs[i])) continue;
      return TN_OP_TEXT_ERROR(parser, op, "operand %d is %s, its type says %s", i,
                              tn_type_format(&op->operands[i]->types[0], expected),
                              tn_type_format(&op->inputs[i], got));
    }
  }
  return TN_OK;
}

static tn_status_t check_results(tn_parser_t* parser, const tn_op_text_t* op) {
  char expected[TN_TYPE_TEXT_SIZE], got[TN_TYPE_TEXT_SIZE];
  // Without an arrow the last type is the result's: "t", or "i1, t" of select.
  const tn_type_t* types =
      op->has_arrow ? op->outputs : op->inputs + (op->input_count ? op->input_count - 1 : 0);
  int count = op->has_arrow ? op->output_count : op->input_count ? 1 : 0;
  if (op->has_arrow && count != op->result_count) {
    return TN_OP_TEXT_ERROR(parser, op, "expected %d result types, got %d", op->result_count,
                            count);
  }
  for (int i = 0; i < count && i < op->result_count; ++i) {
    if (!op->results[i] || tn_type_equal(&op->results[i]->types[0], &types[i])) continue;
    return TN_OP_TEXT_ERROR(parser, op, "result %d is %s, its type says %s", i,
                            tn_type_format(&op->results[i]->types[0], expected),
                            tn_type_format(&types[i], got));
  }
  return TN_OK;
}

// "(%a = %x, ..) : t, .. cond {..} do {..}"; both regions take %a, ..
static tn_status_t parse_while(tn_parser_t* parser, tn_op_text_t* op) {
  tn_token_t* names = NULL;
  int count = 0, capacity = 0;
  TN_TRY(tn_parse_expect(parser, '('));
  while (!tn_parse_accept(parser, ')')) {
    if (count) TN_TRY(tn_parse_expect(parser, ','));
    TN_TRY(grow(parser, sizeof *names, count, &capacity, &names));
    if (parser->lexer.token.kind != TN_TOKEN_VALUE)
      return tn_parse_unexpected(parser, "an argument '%name'");
    names[count++] = parser->lexer.token;
    tn_lexer_next(&parser->lexer);
    TN_TRY(tn_parse_expect(parser, '='));
    TN_TRY(parse_operand(parser, op));
  }
  if (tn_parse_accept(parser, ':'))
    TN_TRY(parse_type_list(parser, &op->inputs, &op->input_count, &op->input_capacity, false));
  if (op->input_count != count)
    return TN_OP_TEXT_ERROR(parser, op, "%d operands, but %d types", count, op->input_count);
  if (tn_token_is(&parser->lexer.token, "attributes")) {
    tn_lexer_next(&parser->lexer);
    TN_TRY(tn_parse_skip_balanced(parser));
  }
  static const char* const words[] = {"cond", "do"};
  const tn_token_t none = {0};
  for (int i = 0; i < 2; ++i) {
    if (!tn_token_is(&parser->lexer.token, words[i])) return tn_parse_unexpected(parser, words[i]);
    tn_lexer_next(&parser->lexer);
    TN_TRY(parse_region(parser, op, false, count, count ? names : &none));
  }
  op->input_count = 0;
  return TN_OK;
}

static tn_status_t parse_op(tn_parser_t* parser, tn_op_text_t* op) {
  if (strcmp(op->name, "stablehlo.while") == 0 && tn_token_is_punct(&parser->lexer.token, '(')) {
    // the generic form continues with a value's name only, or with nothing
    const char* open = parser->lexer.token.text;
    tn_lexer_next(&parser->lexer);
    tn_lexer_next(&parser->lexer);
    const bool is_pretty = tn_token_is_punct(&parser->lexer.token, '=');
    tn_lexer_seek(&parser->lexer, open);
    if (is_pretty) {
      TN_TRY(parse_while(parser, op));
      return tn_parse_skip_location(parser);
    }
  }
  TN_TRY(parse_items(parser, op));
  TN_TRY(order_inits(parser, op));
  if (tn_parse_accept(parser, ':')) TN_TRY(parse_types(parser, op));
  if (tn_token_is(&parser->lexer.token, "reducer")) {
    tn_lexer_next(&parser->lexer);
    TN_TRY(parse_region(parser, op, true, 0, NULL));
  }
  TN_TRY(tn_parse_skip_location(parser));
  return TN_OK;
}

tn_status_t tn_parse_statement(tn_parser_t* parser, tn_op_text_t* op, bool* out_is_return) {
  memset(op, 0, sizeof *op);
  tn_result_name_t names[TN_MAX_RESULTS];
  int name_count;
  TN_TRY(parse_result_names(parser, names, &name_count));
  tn_token_t token = parser->lexer.token;
  if (token.kind != TN_TOKEN_WORD && token.kind != TN_TOKEN_STRING)
    return tn_parse_unexpected(parser, "an operation");
  op->name = tn_parse_copy(parser, token.text, token.length);
  op->at = token.text;
  if (!op->name) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  *out_is_return = strcmp(op->name, "return") == 0 || strcmp(op->name, "func.return") == 0 ||
                   strcmp(op->name, "stablehlo.return") == 0;
  if (!*out_is_return) TN_TRY(tn_parse_check_op(parser, op));
  tn_lexer_next(&parser->lexer);
  tn_status_t status = parse_op(parser, op);
  if (!status && !*out_is_return) {
    status = check_types(parser, op);
    if (!status) status = tn_parse_build(parser, op);
    if (!status) status = check_results(parser, op);
  }
  tn_op_text_deinit(op);
  TN_TRY(status);
  int next = 0;
  for (int i = 0; i < name_count; ++i) {
    if (next + names[i].count > op->result_count) break;
    TN_TRY(tn_parse_define(parser, &names[i].token, names[i].count, op->results + next));
    next += names[i].count;
  }
  if (next != op->result_count && name_count) {
    return TN_OP_TEXT_ERROR(parser, op, "has %d results, other than the names before '='",
                            op->result_count);
  }
  return TN_OK;
}

tn_status_t tn_parse_body(tn_parser_t* parser, tn_op_text_t* op) {
  for (bool is_return = false; !is_return;) TN_TRY(tn_parse_statement(parser, op, &is_return));
  return TN_OK;
}
