#include "tn/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tn_status_object {
  tn_code_t code;
  char place[60];
  const char* message;  // text, or a constant
  char text[];
};

// Handed out when the host has no memory for a status; shared by all threads, never freed or changed.
static struct tn_status_object out_of_memory = {TN_RESOURCE_EXHAUSTED, "status.c",
                                                "out of host memory while reporting an error"};

static const char* const code_names[] = {
    [TN_SUCCESS] = "OK",
    [TN_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
    [TN_OUT_OF_RANGE] = "OUT_OF_RANGE",
    [TN_UNIMPLEMENTED] = "UNIMPLEMENTED",
    [TN_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
    [TN_NOT_FOUND] = "NOT_FOUND",
    [TN_ALREADY_EXISTS] = "ALREADY_EXISTS",
    [TN_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
    [TN_UNAVAILABLE] = "UNAVAILABLE",
    [TN_DATA_LOSS] = "DATA_LOSS",
    [TN_INTERNAL] = "INTERNAL",
};

const char* tn_code_name(tn_code_t code) {
  const size_t index = (size_t)code;
  return index < sizeof(code_names) / sizeof(code_names[0]) ? code_names[index] : "UNKNOWN";
}

// A status whose message is "<formatted>", or "<formatted>: <tail>".
static tn_status_t create(tn_code_t code, const char* place, const char* tail, const char* format,
                          va_list args) {
  va_list measure;
  va_copy(measure, args);
  const int length = vsnprintf(NULL, 0, format, measure);
  va_end(measure);
  if (length < 0) return &out_of_memory;
  const size_t head = (size_t)length, tail_length = tail ? strlen(tail) + 2 : 0;
  struct tn_status_object* status = malloc(sizeof(*status) + head + tail_length + 1);
  if (!status) return &out_of_memory;
  status->code = code;
  snprintf(status->place, sizeof(status->place), "%s", place);
  status->message = status->text;
  vsnprintf(status->text, head + 1, format, args);
  if (tail) {
    memcpy(status->text + head, ": ", 2);
    memcpy(status->text + head + 2, tail, tail_length - 1);
  }
  return status;
}

tn_status_t tn_status_create(tn_code_t code, const char* file, int line, const char* format, ...) {
  const char* slash = strrchr(file, '/');
  char place[60];
  snprintf(place, sizeof(place), "%.46s:%d", slash ? slash + 1 : file, line);
  va_list args;
  va_start(args, format);
  tn_status_t status = create(code, place, NULL, format, args);
  va_end(args);
  return status;
}

tn_code_t tn_status_code(tn_status_t status) { return status ? status->code : TN_SUCCESS; }

const char* tn_status_message(tn_status_t status) { return status ? status->message : ""; }

const char* tn_status_place(tn_status_t status) { return status ? status->place : ""; }

tn_status_t tn_status_annotate(tn_status_t status, const char* format, ...) {
  if (!status) return TN_OK;
  va_list args;
  va_start(args, format);
  tn_status_t annotated =
      create(status->code, status->place, tn_status_message(status), format, args);
  va_end(args);
  if (annotated == &out_of_memory) return status;  // the bare cause says more than a lost one
  tn_status_free(status);
  return annotated;
}

void tn_status_free(tn_status_t status) {
  if (status != &out_of_memory) free(status);
}
