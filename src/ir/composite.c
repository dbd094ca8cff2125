// The table of composites.
#include "ir/composite.h"

#include <string.h>

static const tn_composite_row_t rows[] = {
#define TN_COMPOSITE(name, least, most) \
  {#name, least, most, tn_composite_types_##name, tn_composite_expand_##name},
#include "ir/composites.inc"
#undef TN_COMPOSITE
};

int tn_composite_count(void) { return (int)(sizeof rows / sizeof rows[0]); }
const tn_composite_row_t* tn_composite_at(int index) { return &rows[index]; }

const tn_composite_row_t* tn_composite_find(const char* name) {
  for (int i = 0; i < tn_composite_count(); ++i) {
    if (strcmp(rows[i].name, name) == 0) return &rows[i];
  }
  return NULL;
}

tn_status_t tn_shape_composite(tn_shape_t* shape) {
  const tn_attr_t* name = tn_attr_find(shape->attr_count, shape->attrs, TN_ATTR_NAME);
  if (!name || name->kind != TN_ATTR_STRING) return TN_SHAPE_ERROR(shape, "expected a name");
  const tn_composite_row_t* row = tn_composite_find(name->as.string);
  if (!row) {
    return TN_SHAPE_ERROR(shape, "no composite is called '%s'; src/ir/composites.inc lists them",
                          name->as.string);
  }
  tn_status_t status = TN_OK;
  if (shape->operand_count < row->least_operands || shape->operand_count > row->most_operands) {
    status = TN_ERROR(TN_INVALID_ARGUMENT, "expected %d to %d operands, got %d",
                      row->least_operands, row->most_operands, shape->operand_count);
  } else {
    status = row->types(shape);
  }
  return tn_status_annotate(status, "%s", row->name);
}

tn_status_t tn_composite_expand(tn_graph_t* graph, const tn_node_t* composite,
                                const tn_node_t* const* operands, const tn_node_t** out_results) {
  const tn_composite_row_t* row = tn_composite_find(tn_node_name(composite));
  if (!row) return TN_ERROR(TN_NOT_FOUND, "no composite is called '%s'", tn_node_name(composite));
  for (int i = 0; i < composite->result_count; ++i) out_results[i] = NULL;
  row->expand(graph, composite, operands, out_results);
  TN_TRY(tn_status_annotate(tn_graph_status(graph), "expansion of %s", row->name));
  for (int i = 0; i < composite->result_count; ++i) {
    if (!out_results[i] || !tn_type_equal(&out_results[i]->types[0], &composite->types[i])) {
      char expected[TN_TYPE_TEXT_SIZE], got[TN_TYPE_TEXT_SIZE] = "nothing";
      return TN_ERROR(TN_INTERNAL, "expansion of %s: result %d: expected %s, got %s", row->name, i,
                      tn_type_format(&composite->types[i], expected),
                      out_results[i] ? tn_type_format(&out_results[i]->types[0], got) : got);
    }
  }
  return TN_OK;
}
