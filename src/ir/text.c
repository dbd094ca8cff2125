// Names of enumerations and the output buffer of the StableHLO text.
#include "ir/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- enumerations ---------------------------------------------------------------------------------------
static const char* const directions[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
static const char* const kinds[] = {"sum", "prod", "max", "min", "and", "or", "assign"};
static const char* const bounds[] = {"clamp", "error", "wrap"};
const tn_text_enum_t tn_text_directions = {6, directions};
const tn_text_enum_t tn_text_kinds = {7, kinds};
const tn_text_enum_t tn_text_bounds = {3, bounds};

int tn_text_find(const tn_text_enum_t* names, const char* text, size_t length) {
  for (int i = 0; i < names->count; ++i) {
    if (strlen(names->texts[i]) == length && memcmp(names->texts[i], text, length) == 0) return i;
  }
  return -1;
}

tn_op_t tn_text_kind_op(tn_reduce_kind_t kind) {
  static const tn_op_t ops[] = {TN_OP_ADD, TN_OP_MUL, TN_OP_MAX, TN_OP_MIN, TN_OP_AND, TN_OP_OR};
  return kind <= TN_REDUCE_OR ? ops[kind] : TN_OP_COUNT;
}

tn_scalar_t tn_text_kind_identity(tn_reduce_kind_t kind, tn_dtype_t dtype) {
  tn_scalar_t ones = {0};
  const size_t size = tn_dtype_size(dtype);
  const tn_dtype_class_t class = tn_dtype_class(dtype);
  switch (kind) {
    case TN_REDUCE_PROD: return tn_scalar_from_int(dtype, 1);
    case TN_REDUCE_MAX:
    case TN_REDUCE_MIN:
      if (class == TN_CLASS_FLOAT)
        return tn_scalar_from_double(dtype, kind == TN_REDUCE_MAX ? -INFINITY : INFINITY);
      if (class == TN_CLASS_BOOL || class == TN_CLASS_UNSIGNED) {
        if (kind == TN_REDUCE_MIN) memset(ones.bytes, 0xff, size);
      } else {
        // Signed: 0x80 00.. in the top byte for the least value, its complement for the greatest.
        memset(ones.bytes, kind == TN_REDUCE_MAX ? 0 : 0xff, size);
        ones.bytes[size - 1] = kind == TN_REDUCE_MAX ? 0x80 : 0x7f;
      }
      break;
    case TN_REDUCE_AND: memset(ones.bytes, 0xff, size); break;
    default: break;
  }
  if (class == TN_CLASS_BOOL) ones.b &= 1;
  return ones;
}

// ---- output -----------------------------------------------------------------------------------------------
static char* reserve(tn_text_t* text, size_t more) {
  if (text->is_out_of_memory) return NULL;
  if (text->length + more + 1 > text->capacity) {
    size_t capacity = text->capacity * 2 + more + 256;
    char* data = realloc(text->data, capacity);
    if (!data) {
      text->is_out_of_memory = true;
      return NULL;
    }
    text->data = data;
    text->capacity = capacity;
  }
  return text->data + text->length;
}

void tn_text_add(tn_text_t* text, const char* format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char* out = length >= 0 ? reserve(text, (size_t)length) : NULL;
  if (!out) return;
  va_start(args, format);
  vsnprintf(out, (size_t)length + 1, format, args);
  va_end(args);
  text->length += (size_t)length;
}

void tn_text_type(tn_text_t* text, const tn_type_t* type) {
  char buffer[TN_TYPE_TEXT_SIZE];
  tn_text_add(text, "%s", tn_type_format(type, buffer));
}

void tn_text_ints(tn_text_t* text, int64_t count, const int64_t* values) {
  for (int64_t i = 0; i < count; ++i)
    tn_text_add(text, "%s%lld", i ? ", " : "", (long long)values[i]);
}

// MLIR wants a point in every float, and bits for what has no decimal form. The shortest of three precisions that
// reads back as the same value.
static void add_float(tn_text_t* text, double value, tn_dtype_t dtype, uint64_t bits) {
  if (!isfinite(value)) {
    tn_text_add(text, "0x%0*llX", (int)tn_dtype_size(dtype) * 2, (unsigned long long)bits);
    return;
  }
  char buffer[64];
  static const int precisions[] = {6, 8, 16};
  for (int i = 0; i < 3; ++i) {
    snprintf(buffer, sizeof buffer, "%.*e", precisions[i], value);
    double back = strtod(buffer, NULL);
    if (dtype == TN_F64 ? back == value : (float)back == (float)value) break;
  }
  tn_text_add(text, "%s", buffer);
}

void tn_text_element(tn_text_t* text, tn_dtype_t dtype, const void* element) {
  tn_scalar_t value = {0};
  size_t size = tn_dtype_size(dtype);
  memcpy(value.bytes, element, size);
  switch (tn_dtype_class(dtype)) {
    case TN_CLASS_BOOL: tn_text_add(text, value.b ? "true" : "false"); break;
    case TN_CLASS_SIGNED:
      tn_text_add(text, "%lld", (long long)tn_scalar_to_int(dtype, value));
      break;
    case TN_CLASS_UNSIGNED:
      tn_text_add(text, "%llu", (unsigned long long)(uint64_t)tn_scalar_to_int(dtype, value));
      break;
    case TN_CLASS_FLOAT:
      add_float(text, tn_scalar_to_double(dtype, value), dtype, value.u64);
      break;
    case TN_CLASS_COMPLEX: {
      tn_dtype_t part = dtype == TN_C64 ? TN_F32 : TN_F64;
      tn_text_add(text, "(");
      tn_text_element(text, part, element);
      tn_text_add(text, ", ");
      tn_text_element(text, part, (const uint8_t*)element + size / 2);
      tn_text_add(text, ")");
      break;
    }
  }
}

static const uint8_t* add_nested(tn_text_t* text, const tn_type_t* type, int dimension,
                                 const uint8_t* data) {
  if (dimension == type->rank) {
    tn_text_element(text, type->dtype, data);
    return data + tn_dtype_size(type->dtype);
  }
  tn_text_add(text, "[");
  for (int64_t i = 0; i < type->dims[dimension]; ++i) {
    if (i) tn_text_add(text, ", ");
    data = add_nested(text, type, dimension + 1, data);
  }
  tn_text_add(text, "]");
  return data;
}

void tn_text_dense(tn_text_t* text, const tn_type_t* type, int64_t count, const void* data) {
  // Above this a list is slower to read than it is worth; i1 stays a list because MLIR packs its bits.
  enum { TN_LONGEST_LIST = 64 };
  tn_text_add(text, "dense<");
  if (count == 1) {
    tn_text_element(text, type->dtype, data);
  } else if (count > TN_LONGEST_LIST && type->dtype != TN_BOOL) {
    size_t size = (size_t)count * tn_dtype_size(type->dtype);
    tn_text_add(text, "\"0x");
    char* out = reserve(text, size * 2);
    if (!out) return;
    for (size_t i = 0; i < size; ++i) {
      static const char digits[] = "0123456789ABCDEF";
      uint8_t byte = ((const uint8_t*)data)[i];
      out[2 * i] = digits[byte >> 4];
      out[2 * i + 1] = digits[byte & 15];
    }
    out[2 * size] = 0;
    text->length += size * 2;
    tn_text_add(text, "\"");
  } else if (count) {
    add_nested(text, type, 0, data);
  }
  tn_text_add(text, ">");
}

void tn_text_elements(tn_text_t* text, const tn_type_t* type, const void* data) {
  tn_text_add(text, "dense<");
  add_nested(text, type, 0, data);
  tn_text_add(text, ">");
}

void tn_text_attr_value(tn_text_t* text, const tn_attr_t* attr) {
  switch (attr->kind) {
    case TN_ATTR_INT: tn_text_add(text, "%lld : i64", (long long)attr->as.integer); break;
    case TN_ATTR_INTS:
      tn_text_add(text, attr->count ? "array<i64: " : "array<i64");
      tn_text_ints(text, attr->count, attr->as.ints);
      tn_text_add(text, ">");
      break;
    case TN_ATTR_FLOAT:
      add_float(text, attr->as.real, TN_F64, (uint64_t)attr->as.integer);
      tn_text_add(text, " : f64");
      break;
    case TN_ATTR_STRING:
      tn_text_add(text, "\"");
      for (int64_t i = 0; i < attr->count; ++i) {
        unsigned char c = (unsigned char)attr->as.string[i];
        if (c == '"' || c == '\\') {
          tn_text_add(text, "\\%c", c);
        } else if (c < 32 || c > 126) {
          tn_text_add(text, "\\%02X", c);
        } else {
          tn_text_add(text, "%c", c);
        }
      }
      tn_text_add(text, "\"");
      break;
    case TN_ATTR_BYTES: {
      tn_type_t type = tn_type_make(TN_U8, 1, &attr->count);
      if (attr->count == 1) {
        tn_text_add(text, "dense<[%u]>", attr->as.bytes[0]);
      } else {
        tn_text_dense(text, &type, attr->count, attr->as.bytes);
      }
      tn_text_add(text, " : ");
      tn_text_type(text, &type);
      break;
    }
  }
}
