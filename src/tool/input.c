// Files that commands read.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/tool.h"

tn_status_t tn_tool_read_text(const char* path, char** out_text, size_t* out_length) {
  FILE* file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  if (!file) return TN_ERROR(TN_NOT_FOUND, "%s: cannot be opened", path);
  size_t length = 0, capacity = 1 << 16;
  char* text = malloc(capacity);
  while (text) {
    length += fread(text + length, 1, capacity - length, file);
    if (length < capacity) break;
    char* grown = realloc(text, capacity *= 2);
    if (!grown) free(text);
    text = grown;
  }
  if (file != stdin) fclose(file);
  if (!text) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "%s: out of memory", path);
  *out_text = text;
  *out_length = length;
  return TN_OK;
}

tn_status_t tn_tool_read_graph(const char* path, tn_graph_t** out_graph) {
  *out_graph = NULL;
  char* text = NULL;
  size_t length = 0;
  TN_TRY(tn_tool_read_text(path, &text, &length));
  tn_status_t status = tn_graph_parse(path, text, length, out_graph);
  free(text);
  return status;
}
