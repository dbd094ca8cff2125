// Tokens of MLIR text.
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/text.h"

void tn_lexer_init(tn_lexer_t* lexer, const char* file, const char* text, size_t length) {
  *lexer = (tn_lexer_t){.file = file, .begin = text, .at = text, .end = text + length};
  tn_lexer_next(lexer);
}

void tn_lexer_seek(tn_lexer_t* lexer, const char* at) {
  lexer->at = at;
  tn_lexer_next(lexer);
}

bool tn_token_is(const tn_token_t* token, const char* word) {
  return token->kind == TN_TOKEN_WORD && strlen(word) == token->length &&
         memcmp(token->text, word, token->length) == 0;
}

void tn_lexer_place(const tn_lexer_t* lexer, const char* where, int* out_line, int* out_column) {
  int line = 1, column = 1;
  while (where > lexer->begin && where <= lexer->end && strchr("%@#^\"", where[-1]))
    --where;  // a token's sigil
  for (const char* p = lexer->begin; p < where && p < lexer->end; ++p) {
    ++column;
    if (*p == '\n') ++line, column = 1;
  }
  *out_line = line;
  *out_column = column;
}

tn_status_t tn_lexer_error(const tn_lexer_t* lexer, const char* where, const char* format, ...) {
  int line, column;
  tn_lexer_place(lexer, where, &line, &column);
  char message[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return TN_ERROR(TN_INVALID_ARGUMENT, "%s:%d:%d: %s", lexer->file, line, column, message);
}

static bool is_word(int c) { return isalnum(c) || c == '_' || c == '.' || c == '$'; }

static const char* skip_space(const char* at, const char* end) {
  while (at < end) {
    if (isspace((unsigned char)*at)) {
      ++at;
    } else if (*at == '/' && at + 1 < end && at[1] == '/') {
      while (at < end && *at != '\n') ++at;
    } else {
      break;
    }
  }
  return at;
}

static const char* word_end(const char* at, const char* end, bool allow_dash) {
  while (at < end && (is_word((unsigned char)*at) || (allow_dash && *at == '-'))) ++at;
  return at;
}

static const char* lex_number(const char* at, const char* end, tn_token_t* token) {
  token->kind = TN_TOKEN_INT;
  if (*at == '-' || *at == '+') ++at;
  if (at + 1 < end && at[0] == '0' && at[1] == 'x' && at + 2 < end &&
      isxdigit((unsigned char)at[2])) {
    at += 2;
    while (at < end && isxdigit((unsigned char)*at)) ++at;
    return at;
  }
  while (at < end && isdigit((unsigned char)*at)) ++at;
  if (at < end && *at == '.') {
    token->kind = TN_TOKEN_FLOAT;
    ++at;
    while (at < end && isdigit((unsigned char)*at)) ++at;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    const char* p = at + 1;
    if (p < end && (*p == '-' || *p == '+')) ++p;
    if (p < end && isdigit((unsigned char)*p)) {
      token->kind = TN_TOKEN_FLOAT;
      while (p < end && isdigit((unsigned char)*p)) ++p;
      at = p;
    }
  }
  return at;
}

void tn_lexer_next(tn_lexer_t* lexer) {
  const char *at = skip_space(lexer->at, lexer->end), *end = lexer->end;
  tn_token_t token = {.kind = TN_TOKEN_END, .text = at};
  if (at >= end) {
    lexer->at = at;
    lexer->token = token;
    return;
  }
  const char c = *at, next = at + 1 < end ? at[1] : 0;
  if (isalpha((unsigned char)c) || c == '_') {
    token.kind = TN_TOKEN_WORD;
    at = word_end(at, end, false);
  } else if (isdigit((unsigned char)c) ||
             ((c == '-' || c == '+') && isdigit((unsigned char)next))) {
    at = lex_number(at, end, &token);
  } else if (c == '-' && next == '>') {
    token.kind = TN_TOKEN_ARROW;
    at += 2;
  } else if (c == '"' || (c == '@' && next == '"')) {
    token.kind = c == '"' ? TN_TOKEN_STRING : TN_TOKEN_SYMBOL;
    at += c == '"' ? 1 : 2;
    token.text = at;
    while (at < end && *at != '"' && *at != '\n') at += *at == '\\' && at + 1 < end ? 2 : 1;
    token.length = (size_t)(at - token.text);
    if (at >= end || *at != '"') {  // not closed
      token.kind = TN_TOKEN_PUNCT;
      token.punct = '"';
    }
    lexer->at = at < end ? at + 1 : end;
    lexer->token = token;
    return;
  } else if ((c == '%' || c == '@' || c == '#' || c == '^') && is_word((unsigned char)next)) {
    token.kind = c == '%'   ? TN_TOKEN_VALUE
                 : c == '@' ? TN_TOKEN_SYMBOL
                 : c == '#' ? TN_TOKEN_HASH
                            : TN_TOKEN_CARET;
    token.text = ++at;
    at = word_end(at, end, c == '%' || c == '@');
    // "%0->": the arrow is not part of the name.
    if (at < end && *at == '>' && at[-1] == '-') --at;
    token.length = (size_t)(at - token.text);
    if (c == '%' && at + 1 < end && *at == '#' && isdigit((unsigned char)at[1])) {
      for (++at; at < end && isdigit((unsigned char)*at); ++at) {
        if (token.index < 1000000) token.index = token.index * 10 + (*at - '0');
      }
    }
    lexer->at = at;
    lexer->token = token;
    return;
  } else {
    token.kind = TN_TOKEN_PUNCT;
    token.punct = c;
    ++at;
  }
  token.length = (size_t)(at - token.text);
  lexer->at = at;
  lexer->token = token;
}
