// Reading and writing .npy files.
#include "tool/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// NumPy's letter and size of each dtype; '\0' where NumPy has none.
static const char* descr_of(tn_dtype_t dtype) {
  static const char* const texts[] = {
      [TN_BOOL] = "|b1", [TN_I8] = "|i1",  [TN_I16] = "<i2", [TN_I32] = "<i4",  [TN_I64] = "<i8",
      [TN_U8] = "|u1",   [TN_U16] = "<u2", [TN_U32] = "<u4", [TN_U64] = "<u8",  [TN_F16] = "<f2",
      [TN_F32] = "<f4",  [TN_F64] = "<f8", [TN_C64] = "<c8", [TN_C128] = "<c16"};
  return (size_t)dtype < sizeof texts / sizeof texts[0] ? texts[dtype] : NULL;
}

// The text after "'key':" in the header's dictionary.
static const char* find_key(const char* header, const char* key) {
  const char* at = strstr(header, key);
  at = at ? strchr(at + strlen(key), ':') : NULL;
  if (!at) return NULL;
  do ++at;
  while (*at == ' ');
  return at;
}

static tn_status_t check_header(const char* path, const char* header, const tn_type_t* type,
                                bool* out_is_fortran) {
  const char *descr = find_key(header, "'descr'"), *order = find_key(header, "'fortran_order'"),
             *shape = find_key(header, "'shape'");
  if (!descr || !order || !shape)
    return TN_ERROR(TN_INVALID_ARGUMENT, "%s: not a plain array", path);
  *out_is_fortran = strncmp(order, "True", 4) == 0;
  const char* expected = descr_of(type->dtype);
  if (expected ? strncmp(descr + 1, expected, strlen(expected)) != 0
               : (size_t)strtol(descr + 3, NULL, 10) != tn_dtype_size(type->dtype)) {
    return TN_ERROR(TN_INVALID_ARGUMENT, "%s: expected elements of %s, got %.6s", path,
                    tn_dtype_name(type->dtype), descr);
  }
  int rank = 0;
  bool fits = true;
  for (const char* at = shape + 1; *at && *at != ')';) {
    char* end;
    long long extent = strtoll(at, &end, 10);
    if (end == at) break;
    fits = fits && rank < type->rank && type->dims[rank] == extent;
    ++rank;
    at = end;
    while (*at == ',' || *at == ' ') ++at;
  }
  if (fits && rank == type->rank) return TN_OK;
  const char* close = strchr(shape, ')');
  return TN_ERROR(TN_INVALID_ARGUMENT, "%s: the shape %.*s is not the parameter's", path,
                  close ? (int)(close - shape + 1) : 0, shape);
}

// Column-major elements to row-major ones.
static void to_row_major(const tn_type_t* type, size_t size, const uint8_t* from, uint8_t* to) {
  int64_t count = tn_type_element_count(type);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, at = 0, stride = 1, index[TN_MAX_RANK];
    for (int d = type->rank - 1; d >= 0; --d) {
      index[d] = rest % type->dims[d];
      rest /= type->dims[d];
    }
    for (int d = 0; d < type->rank; ++d) {
      at += index[d] * stride;
      stride *= type->dims[d];
    }
    memcpy(to + (size_t)i * size, from + (size_t)at * size, size);
  }
}

static tn_status_t read_file(FILE* file, const char* path, const tn_type_t* type, void** out_data) {
  uint8_t start[12];
  if (fread(start, 1, 10, file) != 10 || memcmp(start, "\x93NUMPY", 6) != 0) {
    return TN_ERROR(TN_INVALID_ARGUMENT, "%s: not a .npy file", path);
  }
  size_t length = start[8] | (size_t)start[9] << 8;
  if (start[6] > 1) {
    if (fread(start + 10, 1, 2, file) != 2)
      return TN_ERROR(TN_DATA_LOSS, "%s: the file ends in its header", path);
    length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
  }
  if (length > 1 << 20) return TN_ERROR(TN_DATA_LOSS, "%s: a header of %zu bytes", path, length);
  char* header = calloc(1, length + 1);
  if (!header) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "%s: out of memory", path);
  bool is_fortran = false;
  tn_status_t status = fread(header, 1, length, file) == length
                           ? check_header(path, header, type, &is_fortran)
                           : TN_ERROR(TN_DATA_LOSS, "%s: the file ends in its header", path);
  free(header);
  TN_TRY(status);
  size_t size = tn_dtype_size(type->dtype), bytes = size * (size_t)tn_type_element_count(type);
  uint8_t* data = malloc(bytes + 1);
  if (!data) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "%s: out of memory", path);
  if (fread(data, 1, bytes, file) != bytes) {
    free(data);
    return TN_ERROR(TN_DATA_LOSS, "%s: expected %zu bytes of elements", path, bytes);
  }
  if (is_fortran) {
    uint8_t* turned = malloc(bytes + 1);
    if (turned) to_row_major(type, size, data, turned);
    free(data);
    if (!turned) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "%s: out of memory", path);
    data = turned;
  }
  *out_data = data;
  return TN_OK;
}

tn_status_t tn_npy_read(const char* path, const tn_type_t* type, void** out_data) {
  *out_data = NULL;
  FILE* file = fopen(path, "rb");
  if (!file) return TN_ERROR(TN_NOT_FOUND, "%s: cannot be opened", path);
  tn_status_t status = read_file(file, path, type, out_data);
  fclose(file);
  return status;
}

tn_status_t tn_npy_write(const char* path, const tn_type_t* type, const void* data) {
  FILE* file = fopen(path, "wb");
  if (!file) return TN_ERROR(TN_UNAVAILABLE, "%s: cannot be written", path);
  size_t size = tn_dtype_size(type->dtype), bytes = size * (size_t)tn_type_element_count(type);
  char header[1024];
  const char* descr = descr_of(type->dtype);
  int length = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                        descr       ? descr
                        : size == 1 ? "|u1"
                                    : "<u2");
  for (int i = 0; i < type->rank; ++i) {
    length += snprintf(header + length, sizeof header - (size_t)length, "%lld, ",
                       (long long)type->dims[i]);
  }
  length += snprintf(header + length, sizeof header - (size_t)length, "), }");
  while ((length + 11) % 64) header[length++] = ' ';  // elements start 64-aligned
  header[length++] = '\n';
  const uint8_t start[10] = {
      0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)(length & 255), (uint8_t)(length >> 8)};
  bool is_written = fwrite(start, 1, 10, file) == 10 &&
                    fwrite(header, 1, (size_t)length, file) == (size_t)length &&
                    fwrite(data, 1, bytes, file) == bytes;
  is_written = fclose(file) == 0 && is_written;
  return is_written ? TN_OK : TN_ERROR(TN_UNAVAILABLE, "%s: writing failed", path);
}
