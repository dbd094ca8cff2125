// _foreach_*: the operator on each tensor of a list, all in one graph. The row of the single operator does the work.
#include <stdio.h>
#include <string.h>

#include "aten/lowering.h"

enum { NAME_SIZE = 64 };

// "_foreach_add.ScalarList" -> "add" and "ScalarList".
static void split_name(const char* name, char base[NAME_SIZE], const char** out_overload) {
  const char* start = name + strlen("_foreach_");
  const char* dot = strchr(start, '.');
  const size_t length = dot ? (size_t)(dot - start) : strlen(start);
  memcpy(base, start, length < NAME_SIZE ? length : NAME_SIZE - 1);
  base[length < NAME_SIZE ? length : NAME_SIZE - 1] = 0;
  *out_overload = dot ? dot + 1 : "";
}

// The single operator's overload: by name where it differs from the rule "Tensor for tensors, Scalar for numbers".
static void single_name(const char* base, const char* overload, bool other_is_tensor,
                        char out[NAME_SIZE]) {
  const bool is_list = overload[0] == 'L' || overload[0] == 'T' || other_is_tensor;
  if (!overload[0] || strcmp(base, "maximum") == 0 || strcmp(base, "minimum") == 0 ||
      strcmp(base, "copy") == 0) {
    snprintf(out, NAME_SIZE, "%s", base);
  } else if (strcmp(base, "pow") == 0) {
    snprintf(out, NAME_SIZE, is_list ? "pow.Tensor_Tensor" : "pow.Tensor_Scalar");
  } else if (strncmp(base, "clamp_", 6) == 0) {
    snprintf(out, NAME_SIZE, is_list ? "%s.Tensor" : "%s", base);
  } else if (strncmp(base, "addc", 4) == 0) {
    snprintf(out, NAME_SIZE, "%s", base);
  } else {
    snprintf(out, NAME_SIZE, is_list ? "%s.Tensor" : "%s.Scalar", base);
  }
}

// Numbers of a ScalarList are part of what is built.
static void fix_lists(tn_lowering_t* l) {
  for (int i = 0; i < l->arg_count; ++i)
    if (l->args[i].kind == TN_VALUE_LIST || l->args[i].kind == TN_VALUE_DOUBLES ||
        l->args[i].kind == TN_VALUE_INTS)
      l->value_mask |= 1u << i;
}

// Item |item| of an argument that is a list of tensors or numbers; the argument itself otherwise.
static tn_value_t item_of(const tn_value_t* value, int item) {
  tn_value_t out = {.kind = TN_VALUE_SCALAR};
  if (value->kind == TN_VALUE_LIST)
    return item < value->count ? value->as.list[item] : (tn_value_t){.kind = TN_VALUE_NONE};
  if (value->kind == TN_VALUE_DOUBLES) {
    out.dtype = TN_F64;
    out.scalar.f64 = value->as.doubles[item];
    return out;
  }
  if (value->kind == TN_VALUE_INTS) {
    out.dtype = TN_I64;
    out.scalar.i64 = value->as.ints[item];
    return out;
  }
  return *value;
}

static tn_status_t check_lists(tn_lowering_t* l, int count) {
  if (count == 0) return TN_DECLINE("%s: Tensor list must have at least one tensor.", l->op->name);
  for (int i = 1; i < l->arg_count; ++i) {
    const tn_value_t* value = &l->args[i];
    const bool is_list = value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_DOUBLES ||
                         value->kind == TN_VALUE_INTS;
    if (is_list && value->count != count)
      return TN_DECLINE("%s: Tensor lists must have the same number of tensors", l->op->name);
  }
  return TN_OK;
}

tn_status_t tn_lower_foreach(tn_lowering_t* l) {
  char base[NAME_SIZE], name[NAME_SIZE];
  const char* overload;
  split_name(l->op->name, base, &overload);
  const int count = tn_arg_list_count(l, 0);
  TN_TRY(check_lists(l, count));
  fix_lists(l);
  const bool other_is_tensor = l->arg_count > 1 && item_of(&l->args[1], 0).kind == TN_VALUE_TENSOR;
  single_name(base, overload, other_is_tensor, name);
  const bool has_alpha = strcmp(base, "add") == 0 || strcmp(base, "sub") == 0;
  for (int i = 0; i < count; ++i) {
    tn_value_t args[4];
    int arg_count = 0;
    for (int k = 0; k < l->arg_count && k < 4; ++k)
      if (k < 2 || has_alpha || strcmp(base, "lerp") == 0)
        args[arg_count++] = item_of(&l->args[k], i);
    TN_TRY(tn_lower_nested(l, name, arg_count, args));
  }
  if (has_alpha && l->arg_count > 2) l->value_mask |= 1u << 2;  // a literal 1 builds less
  if (strcmp(base, "pow") == 0) l->value_mask |= 1u << 1;  // small exponents are multiplications
  return TN_OK;
}

// self[], tensor1[], tensor2[], value: value moves behind the tensors of the single operator.
tn_status_t tn_lower_foreach_addc(tn_lowering_t* l) {
  char base[NAME_SIZE];
  const char* overload;
  split_name(l->op->name, base, &overload);
  const int count = tn_arg_list_count(l, 0);
  if (overload[0] == 'T') return TN_DECLINE("%s: values in a tensor", l->op->name);
  TN_TRY(check_lists(l, count));
  fix_lists(l);
  for (int i = 0; i < count; ++i) {
    tn_value_t args[4];
    for (int k = 0; k < 4; ++k)
      args[k] = k < l->arg_count ? item_of(&l->args[k], i) : (tn_value_t){.kind = TN_VALUE_NONE};
    TN_TRY(tn_lower_nested(l, base, 4, args));
  }
  return TN_OK;
}

// self[], ord, dtype
tn_status_t tn_lower_foreach_norm(tn_lowering_t* l) {
  const int count = tn_arg_list_count(l, 0);
  TN_TRY(check_lists(l, count));
  tn_arg_double(l, 1, 2.0);
  for (int i = 0; i < count; ++i) {
    const tn_value_t none = {.kind = TN_VALUE_NONE};
    const tn_value_t args[] = {item_of(&l->args[0], i), l->args[1], none, none,
                               l->arg_count > 2 ? l->args[2] : none};
    TN_TRY(tn_lower_nested(l, "linalg_vector_norm", 5, args));
  }
  return TN_OK;
}
