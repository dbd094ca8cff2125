// Parsing types and attribute values.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text_parse.h"

// ---- tokens -----------------------------------------------------------------------------------------------
tn_status_t tn_parse_unexpected(tn_parser_t* parser, const char* what) {
  const tn_token_t* token = &parser->lexer.token;
  if (token->kind == TN_TOKEN_END)
    return tn_lexer_error(&parser->lexer, token->text, "expected %s, got the end", what);
  int length = token->length < 40 ? (int)token->length : 40;
  return tn_lexer_error(&parser->lexer, token->text, "expected %s, got '%.*s'", what, length,
                        token->text);
}
bool tn_parse_accept(tn_parser_t* parser, char punct) {
  if (!tn_token_is_punct(&parser->lexer.token, punct)) return false;
  tn_lexer_next(&parser->lexer);
  return true;
}
tn_status_t tn_parse_expect(tn_parser_t* parser, char punct) {
  if (tn_parse_accept(parser, punct)) return TN_OK;
  const char what[] = {'\'', punct, '\'', 0};
  return tn_parse_unexpected(parser, what);
}
char* tn_parse_copy(tn_parser_t* parser, const char* text, size_t length) {
  char* copy = tn_arena_alloc(&parser->arena, length + 1);
  if (copy) memcpy(copy, text, length);
  return copy;
}

tn_status_t tn_parse_skip_balanced(tn_parser_t* parser) {
  int depth = 0;
  do {
    const tn_token_t* token = &parser->lexer.token;
    if (token->kind == TN_TOKEN_END) return tn_parse_unexpected(parser, "a closing bracket");
    if (token->kind == TN_TOKEN_PUNCT) {
      if (strchr("([{<", token->punct)) ++depth;
      if (strchr(")]}>", token->punct)) --depth;
    }
    tn_lexer_next(&parser->lexer);
  } while (depth > 0);
  return TN_OK;
}
tn_status_t tn_parse_skip_location(tn_parser_t* parser) {
  if (!tn_token_is(&parser->lexer.token, "loc")) return TN_OK;
  tn_lexer_next(&parser->lexer);
  if (!tn_token_is_punct(&parser->lexer.token, '(')) return tn_parse_unexpected(parser, "'('");
  return tn_parse_skip_balanced(parser);
}

// ---- types ------------------------------------------------------------------------------------------------
// "2x3xf32>" runs together for a tokeniser, so it is read from the characters.
tn_status_t tn_parse_type(tn_parser_t* parser, tn_type_t* out_type) {
  tn_lexer_t* lexer = &parser->lexer;
  *out_type = (tn_type_t){.dtype = TN_F32};
  const char* start = lexer->token.text;
  if (!tn_token_is(&lexer->token, "tensor"))
    return tn_parse_unexpected(parser, "a type 'tensor<..>'");
  const char *at = lexer->at, *end = lexer->end;
  if (at >= end || *at != '<') return tn_lexer_error(lexer, at, "expected '<' after tensor");
  ++at;
  while (at < end && (isdigit((unsigned char)*at) || *at == '?')) {
    if (*at == '?')
      return tn_lexer_error(lexer, at, "dynamic extents are not supported; expected a number");
    int64_t extent = 0;
    for (; at < end && isdigit((unsigned char)*at); ++at) {
      if (__builtin_mul_overflow(extent, 10, &extent) ||
          __builtin_add_overflow(extent, *at - '0', &extent)) {
        return tn_lexer_error(lexer, at, "the extent exceeds 64 bits");
      }
    }
    if (at >= end || *at != 'x') return tn_lexer_error(lexer, at, "expected 'x' after an extent");
    ++at;
    if (out_type->rank == TN_MAX_RANK)
      return tn_lexer_error(lexer, at, "ranks above %d are not supported", TN_MAX_RANK);
    out_type->dims[out_type->rank++] = extent;
  }
  const char* name = at;
  int depth = 0;  // complex<f32>
  while (at < end && (depth || (*at != '>' && *at != ','))) {
    depth += *at == '<' ? 1 : *at == '>' ? -1 : 0;
    ++at;
  }
  tn_dtype_t dtype = tn_dtype_from_name(name, (size_t)(at - name));
  if (dtype == TN_DTYPE_NONE) {
    return tn_lexer_error(
        lexer, name,
        "element type '%.*s' is not supported; supported are i1, i8..i64, ui8..ui64, "
        "f16, bf16, f32, f64, f8E4M3FN, f8E5M2, complex<f32>, complex<f64>",
        at - name < 40 ? (int)(at - name) : 40, name);
  }
  if (at >= end || *at != '>')
    return tn_lexer_error(lexer, at, "encodings of tensor types are not supported");
  out_type->dtype = dtype;
  int64_t bytes = (int64_t)tn_dtype_size(dtype);
  for (int i = 0; i < out_type->rank; ++i) {
    if (__builtin_mul_overflow(bytes, out_type->dims[i] ? out_type->dims[i] : 1, &bytes)) {
      return tn_lexer_error(lexer, start, "the tensor exceeds the address space");
    }
  }
  tn_lexer_seek(lexer, at + 1);
  return TN_OK;
}

// ---- trees ------------------------------------------------------------------------------------------------
tn_status_t tn_value_append(tn_parser_t* parser, tn_value_text_t* list,
                            const tn_value_text_t* value) {
  tn_value_text_t* item = TN_ARENA_NEW(&parser->arena, tn_value_text_t);
  if (!item) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  *item = *value;
  item->next = NULL;
  if (list->last) {
    list->last->next = item;
  } else {
    list->items = item;
  }
  list->last = item;
  ++list->count;
  return TN_OK;
}
const tn_value_text_t* tn_value_find(const tn_value_text_t* dict, const char* key) {
  for (const tn_value_text_t* item = dict->items; item; item = item->next) {
    if (item->key && strcmp(item->key, key) == 0) return item;
  }
  return NULL;
}

// ---- dense ------------------------------------------------------------------------------------------------
static int hex_digit(int c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

// One element literal into |out|; the current token is its first.
static tn_status_t parse_element(tn_parser_t* parser, tn_dtype_t dtype, uint8_t* out) {
  tn_token_t token = parser->lexer.token;
  size_t size = tn_dtype_size(dtype);
  if (tn_dtype_is_complex(dtype)) {
    tn_dtype_t part = dtype == TN_C64 ? TN_F32 : TN_F64;
    TN_TRY(tn_parse_expect(parser, '('));
    TN_TRY(parse_element(parser, part, out));
    TN_TRY(tn_parse_expect(parser, ','));
    TN_TRY(parse_element(parser, part, out + size / 2));
    return tn_parse_expect(parser, ')');
  }
  tn_scalar_t value = {0};
  bool is_true = tn_token_is(&token, "true");
  if (is_true || tn_token_is(&token, "false")) {
    if (dtype != TN_BOOL)
      return tn_lexer_error(&parser->lexer, token.text, "expected a number, got a truth value");
    value.b = is_true;
  } else if (token.kind == TN_TOKEN_INT || token.kind == TN_TOKEN_FLOAT) {
    char* text = tn_parse_copy(parser, token.text, token.length);
    if (!text) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
    bool is_hex = token.kind == TN_TOKEN_INT && strchr(text, 'x') != NULL;
    if (tn_dtype_is_float(dtype)) {
      // Hexadecimal integers are the bits of a float.
      if (is_hex) {
        value.u64 = strtoull(text, NULL, 16);
      } else {
        value = tn_scalar_from_double(dtype, strtod(text, NULL));
      }
    } else if (token.kind == TN_TOKEN_FLOAT) {
      return tn_lexer_error(&parser->lexer, token.text, "expected an integer of %s",
                            tn_dtype_name(dtype));
    } else {
      uint64_t bits = text[0] == '-' ? (uint64_t)strtoll(text, NULL, is_hex ? 16 : 10)
                                     : (uint64_t)strtoull(text, NULL, is_hex ? 16 : 10);
      value = tn_scalar_from_int(dtype, (int64_t)bits);
    }
  } else {
    return tn_parse_unexpected(parser, "an element");
  }
  memcpy(out, value.bytes, size);
  tn_lexer_next(&parser->lexer);
  return TN_OK;
}

static tn_status_t parse_elements(tn_parser_t* parser, const tn_type_t* type, int dimension,
                                  uint8_t** out) {
  if (dimension == type->rank) {
    TN_TRY(parse_element(parser, type->dtype, *out));
    *out += tn_dtype_size(type->dtype);
    return TN_OK;
  }
  if (type->dims[dimension] == 0 && !tn_token_is_punct(&parser->lexer.token, '[')) return TN_OK;
  TN_TRY(tn_parse_expect(parser, '['));
  for (int64_t i = 0; i < type->dims[dimension]; ++i) {
    if (i && !tn_token_is_punct(&parser->lexer.token, ',')) {
      return tn_lexer_error(&parser->lexer, parser->lexer.token.text,
                            "expected %lld elements in dimension %d, got %lld",
                            (long long)type->dims[dimension], dimension, (long long)i);
    }
    if (i) tn_lexer_next(&parser->lexer);
    TN_TRY(parse_elements(parser, type, dimension + 1, out));
  }
  return tn_parse_expect(parser, ']');
}

static tn_status_t parse_hex(tn_parser_t* parser, const tn_type_t* type, int64_t count,
                             tn_value_text_t* out) {
  tn_token_t token = parser->lexer.token;
  size_t size = tn_dtype_size(type->dtype), bytes = token.length >= 2 ? (token.length - 2) / 2 : 0;
  if (token.length < 2 || token.length % 2 || token.text[0] != '0' || token.text[1] != 'x') {
    return tn_lexer_error(&parser->lexer, token.text, "expected \"0x..\" with two digits per byte");
  }
  uint8_t* data = tn_arena_alloc(&parser->arena, bytes + 1);
  if (!data) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  for (size_t i = 0; i < bytes; ++i) {
    int high = token.text[2 + 2 * i], low = token.text[3 + 2 * i];
    if (!isxdigit(high) || !isxdigit(low))
      return tn_lexer_error(&parser->lexer, token.text, "expected hexadecimal digits");
    data[i] = (uint8_t)(hex_digit(high) << 4 | hex_digit(low));
  }
  if (type->dtype == TN_BOOL && bytes != 1 && bytes == ((size_t)count + 7) / 8) {
    uint8_t* wide = tn_arena_alloc(&parser->arena, (size_t)count + 1);  // MLIR packs i1
    if (!wide) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
    for (int64_t i = 0; i < count; ++i) wide[i] = data[i / 8] >> (i % 8) & 1;
    data = wide;
    bytes = (size_t)count;
  } else if (type->dtype == TN_BOOL && bytes == 1) {
    data[0] &= 1;
  }
  if (bytes != size && bytes != size * (size_t)count) {
    return tn_lexer_error(&parser->lexer, token.text, "expected %zu or %zu bytes, got %zu", size,
                          size * (size_t)count, bytes);
  }
  out->data = data;
  out->data_size = bytes;
  tn_lexer_next(&parser->lexer);
  return TN_OK;
}

// "dense<..> : type": the elements can only be read once the type behind them is known.
static tn_status_t parse_dense(tn_parser_t* parser, tn_value_text_t* out) {
  out->kind = TN_TEXT_DENSE;
  if (!tn_token_is_punct(&parser->lexer.token, '<'))
    return tn_parse_unexpected(parser, "'<' after dense");
  const char* elements = parser->lexer.at;
  TN_TRY(tn_parse_skip_balanced(parser));
  TN_TRY(tn_parse_expect(parser, ':'));
  TN_TRY(tn_parse_type(parser, &out->type));
  const char* after = parser->lexer.token.text;
  // Sigils and quotes are not part of a token's text.
  while (after > elements && strchr("%@#^\"", after[-1])) --after;
  tn_lexer_seek(&parser->lexer, elements);
  int64_t count = tn_type_element_count(&out->type);
  size_t size = tn_dtype_size(out->type.dtype);
  if (parser->lexer.token.kind == TN_TOKEN_STRING) {
    TN_TRY(parse_hex(parser, &out->type, count, out));
  } else if (tn_token_is_punct(&parser->lexer.token, '>')) {
    if (count) return tn_parse_unexpected(parser, "elements");
    out->data = tn_arena_alloc(&parser->arena, 16);
    out->data_size = 0;
  } else {
    bool is_splat = !tn_token_is_punct(&parser->lexer.token, '[') && out->type.rank > 0;
    // An element takes at least one character of text, so a wrong type cannot ask for more memory than that.
    if (!is_splat && count > parser->lexer.end - parser->lexer.begin) {
      return tn_lexer_error(&parser->lexer, elements, "expected %lld elements", (long long)count);
    }
    uint8_t* data = tn_arena_alloc(&parser->arena, size * (size_t)(is_splat ? 1 : count) + 1);
    if (!data) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
    out->data = data;
    out->data_size = is_splat ? size : size * (size_t)count;
    TN_TRY(is_splat ? parse_element(parser, out->type.dtype, data)
                    : parse_elements(parser, &out->type, 0, &data));
  }
  if (!tn_token_is_punct(&parser->lexer.token, '>'))
    return tn_parse_unexpected(parser, "'>' after the elements");
  tn_lexer_seek(&parser->lexer, after);
  return TN_OK;
}

// ---- attribute values -------------------------------------------------------------------------------------
static tn_status_t parse_list(tn_parser_t* parser, char close, tn_value_text_t* out) {
  out->kind = TN_TEXT_LIST;
  if (tn_parse_accept(parser, close)) return TN_OK;
  do {
    tn_value_text_t item;
    TN_TRY(tn_parse_value(parser, &item));
    TN_TRY(tn_value_append(parser, out, &item));
  } while (tn_parse_accept(parser, ','));
  return tn_parse_expect(parser, close);
}

tn_status_t tn_parse_dict(tn_parser_t* parser, char close, tn_value_text_t* dict) {
  tn_lexer_next(&parser->lexer);  // the opening bracket
  dict->kind = TN_TEXT_DICT;
  if (tn_parse_accept(parser, close)) return TN_OK;
  do {
    tn_token_t key = parser->lexer.token;
    if (key.kind != TN_TOKEN_WORD && key.kind != TN_TOKEN_STRING)
      return tn_parse_unexpected(parser, "an attribute name");
    tn_lexer_next(&parser->lexer);
    tn_value_text_t value = {.kind = TN_TEXT_UNIT, .at = key.text};
    if (tn_parse_accept(parser, '=')) TN_TRY(tn_parse_value(parser, &value));
    value.key = tn_parse_copy(parser, key.text, key.length);
    if (!value.key) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
    TN_TRY(tn_value_append(parser, dict, &value));
  } while (tn_parse_accept(parser, ','));
  return tn_parse_expect(parser, close);
}

// "#stablehlo<comparison_direction LT>", "#stablehlo.gather<key = value, ..>", "#stablehlo.conv<[..]x[..]->[..]>"
static tn_status_t parse_hash(tn_parser_t* parser, tn_value_text_t* out) {
  tn_lexer_next(&parser->lexer);
  if (!tn_token_is_punct(&parser->lexer.token, '<')) {
    out->kind = TN_TEXT_UNIT;  // an alias such as #loc1
    return TN_OK;
  }
  const char* open = parser->lexer.token.text;
  tn_lexer_next(&parser->lexer);
  if (tn_token_is_punct(&parser->lexer.token, '[')) {
    TN_TRY(tn_parse_value(parser, out));
    return tn_parse_expect(parser, '>');
  }
  tn_token_t first = parser->lexer.token;
  tn_lexer_next(&parser->lexer);
  if (first.kind == TN_TOKEN_WORD && parser->lexer.token.kind == TN_TOKEN_WORD) {
    out->kind = TN_TEXT_WORD;
    out->text = tn_parse_copy(parser, parser->lexer.token.text, parser->lexer.token.length);
    tn_lexer_next(&parser->lexer);
    return tn_parse_expect(parser, '>');
  }
  tn_lexer_seek(&parser->lexer, open);
  return tn_parse_dict(parser, '>', out);
}

static tn_status_t unescape(tn_parser_t* parser, const tn_token_t* token, tn_value_text_t* out) {
  char* text = tn_arena_alloc(&parser->arena, token->length + 1);
  if (!text) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  size_t length = 0;
  for (size_t i = 0; i < token->length; ++i) {
    char c = token->text[i];
    if (c == '\\' && i + 1 < token->length) {
      char next = token->text[++i];
      if (next == 'n') {
        c = '\n';
      } else if (next == 't') {
        c = '\t';
      } else if (isxdigit((unsigned char)next) && i + 1 < token->length &&
                 isxdigit((unsigned char)token->text[i + 1])) {
        c = (char)(hex_digit(next) << 4 | hex_digit(token->text[++i]));
      } else {
        c = next;
      }
    }
    text[length++] = c;
  }
  out->kind = TN_TEXT_STRING;
  out->text = text;
  out->data_size = length;
  return TN_OK;
}

// A number with an optional ": type" behind it.
static tn_status_t parse_number(tn_parser_t* parser, tn_value_text_t* out) {
  tn_token_t token = parser->lexer.token;
  char* text = tn_parse_copy(parser, token.text, token.length);
  if (!text) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  bool is_hex = token.kind == TN_TOKEN_INT && strchr(text, 'x') != NULL;
  out->kind = token.kind == TN_TOKEN_INT ? TN_TEXT_INT : TN_TEXT_FLOAT;
  out->integer = text[0] == '-' ? strtoll(text, NULL, is_hex ? 16 : 10)
                                : (int64_t)strtoull(text, NULL, is_hex ? 16 : 10);
  out->real = token.kind == TN_TOKEN_INT ? (double)out->integer : strtod(text, NULL);
  tn_lexer_next(&parser->lexer);
  if (!tn_token_is_punct(&parser->lexer.token, ':')) return TN_OK;
  const char* colon = parser->lexer.token.text;
  tn_lexer_next(&parser->lexer);
  if (parser->lexer.token.kind != TN_TOKEN_WORD || tn_token_is(&parser->lexer.token, "tensor")) {
    tn_lexer_seek(&parser->lexer, colon);  // the colon belongs to the op
    return TN_OK;
  }
  tn_dtype_t dtype = tn_dtype_from_name(parser->lexer.token.text, parser->lexer.token.length);
  if (out->kind == TN_TEXT_INT && dtype != TN_DTYPE_NONE && tn_dtype_is_float(dtype)) {
    out->kind = TN_TEXT_FLOAT;
    tn_scalar_t bits = {.u64 = (uint64_t)out->integer};
    if (is_hex) out->real = tn_scalar_to_double(dtype, bits);
  }
  tn_lexer_next(&parser->lexer);
  return TN_OK;
}

static tn_status_t parse_word(tn_parser_t* parser, tn_value_text_t* out) {
  tn_token_t token = parser->lexer.token;
  if (tn_token_is(&token, "tensor")) {
    out->kind = TN_TEXT_WORD;
    out->text = "tensor";
    return tn_parse_type(parser, &out->type);
  }
  tn_lexer_next(&parser->lexer);
  if (tn_token_is(&token, "dense")) return parse_dense(parser, out);
  if (tn_token_is(&token, "array")) {
    TN_TRY(tn_parse_expect(parser, '<'));
    if (parser->lexer.token.kind != TN_TOKEN_WORD)
      return tn_parse_unexpected(parser, "an element type");
    tn_lexer_next(&parser->lexer);
    out->kind = TN_TEXT_LIST;
    if (tn_parse_accept(parser, '>')) return TN_OK;
    TN_TRY(tn_parse_expect(parser, ':'));
    return parse_list(parser, '>', out);
  }
  if (tn_token_is(&token, "true") || tn_token_is(&token, "false")) {
    out->kind = TN_TEXT_INT;
    out->integer = token.length == 4;
    return TN_OK;
  }
  out->kind = TN_TEXT_WORD;
  out->text = tn_parse_copy(parser, token.text, token.length);
  return out->text ? TN_OK : TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
}

// "[0] x [1]", "[b, f]x[o, i]->[b, f]": a list of the lists; |out| is the first one.
static tn_status_t parse_chain(tn_parser_t* parser, tn_value_text_t* out) {
  tn_value_text_t list = *out;
  *out = (tn_value_text_t){.kind = TN_TEXT_LIST, .at = list.at};
  TN_TRY(tn_value_append(parser, out, &list));
  while (tn_token_is(&parser->lexer.token, "x") || parser->lexer.token.kind == TN_TOKEN_ARROW) {
    tn_lexer_next(&parser->lexer);
    list = (tn_value_text_t){.at = parser->lexer.token.text};
    TN_TRY(tn_parse_expect(parser, '['));
    TN_TRY(parse_list(parser, ']', &list));
    TN_TRY(tn_value_append(parser, out, &list));
  }
  return TN_OK;
}

tn_status_t tn_parse_value(tn_parser_t* parser, tn_value_text_t* out) {
  enum { TN_DEEPEST_VALUE = 64 };
  tn_token_t token = parser->lexer.token;
  *out = (tn_value_text_t){.at = token.text};
  if (parser->depth > TN_DEEPEST_VALUE)
    return tn_lexer_error(&parser->lexer, token.text, "nested too deeply");
  ++parser->depth;
  tn_status_t status = TN_OK;
  switch (token.kind) {
    case TN_TOKEN_INT:
    case TN_TOKEN_FLOAT: status = parse_number(parser, out); break;
    case TN_TOKEN_STRING:
      tn_lexer_next(&parser->lexer);
      status = unescape(parser, &token, out);
      break;
    case TN_TOKEN_WORD: status = parse_word(parser, out); break;
    case TN_TOKEN_HASH: status = parse_hash(parser, out); break;
    case TN_TOKEN_SYMBOL:
      tn_lexer_next(&parser->lexer);
      out->kind = TN_TEXT_SYMBOL;
      out->text = tn_parse_copy(parser, token.text, token.length);
      break;
    default:
      if (tn_token_is_punct(&token, '[')) {
        tn_lexer_next(&parser->lexer);
        status = parse_list(parser, ']', out);
        if (!status && tn_token_is(&parser->lexer.token, "x")) status = parse_chain(parser, out);
      } else if (tn_token_is_punct(&token, '{')) {
        status = tn_parse_dict(parser, '}', out);
      } else if (tn_token_is_punct(&token, '<')) {
        status = tn_parse_dict(parser, '>', out);
      } else {
        status = tn_parse_unexpected(parser, "an attribute value");
      }
  }
  --parser->depth;
  return status;
}
