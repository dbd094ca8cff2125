// Types and op facts.
#include <stdio.h>
#include <string.h>

#include "ir/graph_internal.h"

static const tn_op_info_t infos[] = {
#define TN_OP(name, text, operands, results, fusion, cheap) \
  {text, operands, results, TN_FUSION_##fusion, cheap},
#include "tn/ops.inc"
#undef TN_OP
};

static const char* const attr_texts[] = {
#define TN_ATTR_TEXT(name, text) text,
    TN_ATTR_NAMES(TN_ATTR_TEXT)
#undef TN_ATTR_TEXT
};

const tn_op_info_t* tn_op_info(tn_op_t op) { return &infos[op]; }
const char* tn_attr_text(tn_attr_name_t name) { return attr_texts[name]; }

tn_type_t tn_type_make(tn_dtype_t dtype, int rank, const int64_t* dims) {
  tn_type_t type = {.dtype = dtype, .rank = rank};
  if (rank > 0 && rank <= TN_MAX_RANK) memcpy(type.dims, dims, (size_t)rank * sizeof(int64_t));
  return type;
}

int64_t tn_type_element_count(const tn_type_t* type) {
  int64_t count = 1;
  for (int i = 0; i < type->rank; ++i) count *= type->dims[i];
  return count;
}

bool tn_type_equal(const tn_type_t* a, const tn_type_t* b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; ++i) {
    if (a->dims[i] != b->dims[i]) return false;
  }
  return true;
}

const char* tn_type_format(const tn_type_t* type, char* buffer) {
  char* out = buffer + sprintf(buffer, "tensor<");
  for (int i = 0; i < type->rank; ++i) out += sprintf(out, "%lldx", (long long)type->dims[i]);
  sprintf(out, "%s>", tn_dtype_name(type->dtype));
  return buffer;
}

bool tn_strides_are_contiguous(const tn_type_t* type, const int64_t* strides) {
  int64_t expected = 1;
  bool is_contiguous = true;
  for (int i = type->rank - 1; i >= 0; --i) {
    if (type->dims[i] == 0) return true;
    if (type->dims[i] != 1 && strides[i] != expected) is_contiguous = false;
    expected *= type->dims[i];
  }
  return is_contiguous;
}
