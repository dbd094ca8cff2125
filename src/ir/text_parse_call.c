// Building calls, composites and custom calls.
#include <string.h>

#include "ir/composite.h"
#include "ir/text_parse.h"

static const char* callee_of(const tn_op_text_t* op, const char* generic) {
  const tn_value_text_t* value = tn_value_find(&op->attrs, "callee");
  if (!value) value = tn_value_find(&op->attrs, generic);
  return value && (value->kind == TN_TEXT_SYMBOL || value->kind == TN_TEXT_STRING) ? value->text
                                                                                   : NULL;
}

tn_status_t tn_parse_build_call(tn_parser_t* parser, tn_op_text_t* op) {
  const char* name = callee_of(op, "callee");
  if (!name) return TN_OP_TEXT_ERROR(parser, op, "expected @function");
  return tn_parse_inline(parser, op, name);
}

// ---- attributes -------------------------------------------------------------------------------------------
static int find_attr_name(const char* text) {
  for (int name = 0; name < TN_ATTR_COUNT_OF_NAMES; ++name) {
    if (strcmp(tn_attr_text((tn_attr_name_t)name), text) == 0) return name;
  }
  return -1;
}

static tn_status_t to_attr(tn_parser_t* parser, const tn_op_text_t* op,
                           const tn_value_text_t* value, tn_attr_t* out) {
  int name = find_attr_name(value->key);
  if (name < 0)
    return tn_lexer_error(&parser->lexer, value->at, "attribute '%s' is not supported", value->key);
  switch (value->kind) {
    case TN_TEXT_INT: *out = tn_attr_int((tn_attr_name_t)name, value->integer); return TN_OK;
    case TN_TEXT_FLOAT: *out = tn_attr_float((tn_attr_name_t)name, value->real); return TN_OK;
    case TN_TEXT_STRING:
      *out = (tn_attr_t){
          .name = (tn_attr_name_t)name, .kind = TN_ATTR_STRING, .count = (int64_t)value->data_size};
      out->as.string = value->text;
      return TN_OK;
    case TN_TEXT_LIST: {
      int64_t* ints = TN_ARENA_ARRAY(&parser->arena, int64_t, value->count + 1);
      int count;
      if (!ints) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
      TN_TRY(tn_value_ints(parser, value, value->count, ints, &count));
      *out = tn_attr_ints((tn_attr_name_t)name, count, ints);
      return TN_OK;
    }
    case TN_TEXT_DENSE:
      *out = (tn_attr_t){
          .name = (tn_attr_name_t)name, .kind = TN_ATTR_BYTES, .count = (int64_t)value->data_size};
      out->as.bytes = value->data;
      return TN_OK;
    default:
      return TN_OP_TEXT_ERROR(parser, op, "attribute '%s': this kind of value is not supported",
                              value->key);
  }
}

static tn_status_t to_attrs(tn_parser_t* parser, const tn_op_text_t* op,
                            const tn_value_text_t* dict, tn_attr_t** out, int* out_count) {
  *out_count = 0;
  *out = TN_ARENA_ARRAY(&parser->arena, tn_attr_t, (dict ? dict->count : 0) + 1);
  if (!*out) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  for (const tn_value_text_t* item = dict ? dict->items : NULL; item; item = item->next) {
    TN_TRY(to_attr(parser, op, item, &(*out)[(*out_count)++]));
  }
  return TN_OK;
}

// ---- ops of ours that StableHLO lacks ---------------------------------------------------------------------
static int64_t int_of(const tn_value_text_t* config, const char* key) {
  const tn_value_text_t* value = config ? tn_value_find(config, key) : NULL;
  return value ? value->integer : 0;
}

static tn_status_t build_own(tn_parser_t* parser, tn_op_text_t* op, const char* name,
                             const tn_value_text_t* config, bool* out_is_own) {
  static const struct {
    const char* name;
    int operands;
  } own[] = {{"tn.fma", 3}, {"tn.arg_reduce", 1}, {"tn.scan", 1}, {"tn.top_k", 1}};
  int which = -1;
  for (int i = 0; i < 4; ++i) {
    if (strcmp(own[i].name, name) == 0) which = i;
  }
  *out_is_own = which >= 0;
  if (which < 0) return TN_OK;
  if (op->operand_count != own[which].operands) {
    return TN_OP_TEXT_ERROR(parser, op, "@%s: expected %d operands, got %d", name,
                            own[which].operands, op->operand_count);
  }
  const tn_value_text_t* kind_text = config ? tn_value_find(config, "kind") : NULL;
  int kind = kind_text && kind_text->text
                 ? tn_text_find(&tn_text_kinds, kind_text->text, strlen(kind_text->text))
                 : -1;
  if ((which == 1 || which == 2) && kind < 0)
    return TN_OP_TEXT_ERROR(parser, op, "@%s: expected kind = \"max\" or the like", name);
  const tn_node_t* x = op->operands[0];
  const tn_node_t* node = NULL;
  int64_t dimension = int_of(config, "dimension");
  switch (which) {
    case 0: node = tn_fma(parser->graph, x, op->operands[1], op->operands[2]); break;
    case 1: node = tn_arg_reduce(parser->graph, (tn_reduce_kind_t)kind, x, (int)dimension); break;
    case 2:
      node = tn_scan(parser->graph, (tn_reduce_kind_t)kind, x, (int)dimension,
                     int_of(config, "reverse") != 0, int_of(config, "exclusive") != 0);
      break;
    default:
      node = tn_topk(parser->graph, x, int_of(config, "count"), int_of(config, "largest") != 0);
      break;
  }
  for (int i = 0; node && i < node->result_count; ++i)
    tn_op_text_return(op, parser, tn_result(parser->graph, node, i));
  return TN_OK;
}

tn_status_t tn_parse_build_custom_call(tn_parser_t* parser, tn_op_text_t* op) {
  const char* name = callee_of(op, "call_target_name");
  if (!name) return TN_OP_TEXT_ERROR(parser, op, "expected @target");
  if (tn_parse_is_check(name)) return tn_parse_build_check(parser, op, name);
  const tn_value_text_t* config = tn_value_find(&op->attrs, "backend_config");
  if (config && config->kind == TN_TEXT_STRING && !config->text[0]) config = NULL;
  if (config && config->kind != TN_TEXT_DICT) {
    return TN_OP_TEXT_ERROR(parser, op,
                            "backend_config: supported is a dictionary {key = value, ..}");
  }
  bool is_own;
  TN_TRY(build_own(parser, op, name, config, &is_own));
  if (is_own) return TN_OK;
  if (!op->has_arrow) return TN_OP_TEXT_ERROR(parser, op, "expected '(types) -> types'");
  tn_attr_t* attrs;
  int count;
  TN_TRY(to_attrs(parser, op, config, &attrs, &count));
  const tn_node_t* node = tn_custom_call(parser->graph, name, op->operand_count, op->operands,
                                         count, attrs, op->output_count, op->outputs);
  for (int i = 0; node && i < node->result_count; ++i)
    tn_op_text_return(op, parser, tn_result(parser->graph, node, i));
  return TN_OK;
}

tn_status_t tn_parse_build_composite(tn_parser_t* parser, tn_op_text_t* op) {
  const char* name = callee_of(op, "name");
  if (!name) return TN_OP_TEXT_ERROR(parser, op, "expected a name");
  if (strncmp(name, "tn.", 3) == 0 && tn_composite_find(name + 3)) {
    tn_attr_t* attrs;
    int count;
    TN_TRY(to_attrs(parser, op, tn_value_find(&op->attrs, "composite_attributes"), &attrs, &count));
    const tn_node_t* node =
        tn_composite(parser->graph, name + 3, op->operand_count, op->operands, count, attrs);
    for (int i = 0; node && i < node->result_count; ++i) {
      tn_op_text_return(op, parser, tn_result(parser->graph, node, i));
    }
    return TN_OK;
  }
  // Somebody else's composite: its decomposition says what it means.
  const tn_value_text_t* body = tn_value_find(&op->attrs, "decomposition");
  if (!body || body->kind != TN_TEXT_SYMBOL)
    return TN_OP_TEXT_ERROR(parser, op, "expected decomposition = @function");
  return tn_parse_inline(parser, op, body->text);
}
