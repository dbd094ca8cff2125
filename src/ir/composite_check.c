// A check: a condition that only the values tell, and that fails the launch.
#include "ir/composite_util.h"

const char* tn_check_text(tn_check_kind_t kind) {
  switch (kind) {
    case TN_CHECK_ZERO_DIVISOR: return "ZeroDivisionError";
    case TN_CHECK_UNIT_INTERVAL: return "all elements of input should be between 0 and 1";
    case TN_CHECK_NEGATIVE_STD: return "normal expects all elements of std >= 0.0";
    case TN_CHECK_COUNT: break;
  }
  return "a check failed";
}

const tn_node_t* tn_check(tn_graph_t* graph, const tn_node_t* is_wrong, tn_check_kind_t kind) {
  const tn_attr_t attr = tn_attr_int(TN_ATTR_KIND, kind);
  return tn_composite(graph, "check", 1, &is_wrong, 1, &attr);
}

tn_status_t tn_composite_types_check(tn_shape_t* shape) {
  int64_t kind;
  TN_TRY(tn_shape_int(shape, TN_ATTR_KIND, &kind));
  if (kind < 0 || kind >= TN_CHECK_COUNT)
    return TN_SHAPE_ERROR(shape, "kind: expected 0..%d, got %lld", TN_CHECK_COUNT - 1,
                          (long long)kind);
  TN_TRY(tn_c_expect(shape, 0, "condition", TN_BOOL, 0, NULL));
  shape->result_count = 1;
  shape->types[0] = tn_type_make(TN_I32, 0, NULL);
  return TN_OK;
}

// A read of a table of one element, beyond its end when the condition holds.
void tn_composite_expand_check(tn_graph_t* graph, const tn_node_t* composite,
                               const tn_node_t* const* operands, const tn_node_t** out_results) {
  (void)composite;
  const int64_t single = 1;
  const tn_type_t type = tn_type_make(TN_I32, 1, &single);
  const tn_node_t* table = tn_constant_splat(graph, &type, (tn_scalar_t){0});
  out_results[0] =
      tn_take(graph, table, tn_convert(graph, operands[0], TN_I64), 0, TN_BOUNDS_ERROR);
}
