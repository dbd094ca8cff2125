// Printing a graph as StableHLO text: functions, names, the decompositions of composites.
#include <stdlib.h>
#include <string.h>

#include "ir/text_print.h"

// ---- which nodes, under which names -----------------------------------------------------------------------
// Marks everything the results need; parameters are always there.
static void mark_live(const tn_graph_t* graph, int32_t* numbers) {
  for (int i = 0; i < tn_graph_result_count(graph); ++i)
    numbers[tn_graph_result_at(graph, i)->node->id] = 1;
  for (uint32_t id = tn_graph_node_limit(graph); id-- > 0;) {
    if (!numbers[id]) continue;
    const tn_node_t* node = tn_graph_node_at(graph, id);
    for (int i = 0; i < node->operand_count; ++i) numbers[node->operands[i]->id] = 1;
  }
}

// Replaces marks by numbers from 0, and the rest by -1.
static void number_nodes(const tn_graph_t* graph, int32_t* numbers) {
  int32_t next = 0;
  for (uint32_t id = 0; id < tn_graph_node_limit(graph); ++id) {
    tn_op_t op = tn_graph_node_at(graph, id)->op;
    bool has_line = numbers[id] && op != TN_OP_PARAM && op != TN_OP_RESULT;
    numbers[id] = has_line ? next++ : -1;
  }
}

int32_t* tn_print_numbers(const tn_graph_t* graph) {
  int32_t* numbers = calloc((size_t)tn_graph_node_limit(graph) + 1, sizeof *numbers);
  if (!numbers) return NULL;
  mark_live(graph, numbers);
  number_nodes(graph, numbers);
  return numbers;
}

void tn_print_value(tn_printer_t* printer, const tn_node_t* node) {
  if (node->op == TN_OP_PARAM) {
    tn_text_add(printer->text, "%%arg%lld", (long long)tn_node_int(node, TN_ATTR_INDEX, 0));
  } else if (node->op == TN_OP_RESULT) {
    tn_text_add(printer->text, "%%%d#%u", printer->numbers[node->operands[0]->id],
                node->user_index);
  } else {
    // The second result of rng_bit_generator are the bits; the first, the next state, has no node.
    tn_text_add(printer->text, node->op == TN_OP_RNG_BITS ? "%%%d#1" : "%%%d",
                printer->numbers[node->id]);
  }
}

// ---- functions --------------------------------------------------------------------------------------------
static void print_param(tn_text_t* text, const tn_node_t* param, int index) {
  tn_text_add(text, "%s%%arg%d: ", index ? ", " : "", index);
  tn_text_type(text, &param->types[0]);
  const int64_t* strides = tn_param_strides(param);
  if (tn_param_is_scalar(param)) {
    tn_text_add(text, " {tn.scalar}");
  } else if (strides) {
    tn_text_add(text, " {tn.strides = array<i64: ");
    tn_text_ints(text, param->types[0].rank, strides);
    tn_text_add(text, ">}");
  }
}

static void print_result(tn_text_t* text, const tn_graph_result_t* result, int index) {
  const char* separator = " {";
  const tn_type_t* type = &result->node->types[0];
  if (index) tn_text_add(text, ", ");
  tn_text_type(text, type);
  if (!result->is_contiguous) {
    tn_text_add(text, "%stn.strides = array<i64: ", separator);
    tn_text_ints(text, type->rank, result->strides);
    tn_text_add(text, ">");
    separator = ", ";
  }
  if (result->same_as_param >= 0) {
    tn_text_add(text, "%stn.same_as_param = %d : i64", separator, result->same_as_param);
    separator = ", ";
  }
  if (result->overlaps_params) {
    tn_text_add(text, "%stn.overlaps_params", separator);
    separator = ", ";
  }
  if (separator[0] == ',') tn_text_add(text, "}");
}

// Prints one function. Composites get a decomposition named after their place: |first_composite| + n.
static tn_status_t print_function(tn_text_t* text, const tn_graph_t* graph, const char* name,
                                  bool is_private) {
  int32_t* numbers = tn_print_numbers(graph);
  if (!numbers) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "print: out of memory");
  tn_printer_t printer = {.text = text, .numbers = numbers};
  tn_text_add(text, "  func.func %s@%s(", is_private ? "private " : "", name);
  for (int i = 0; i < tn_graph_param_count(graph); ++i)
    print_param(text, tn_graph_param_at(graph, i), i);
  tn_text_add(text, ")");
  int result_count = tn_graph_result_count(graph);
  if (result_count) {
    tn_text_add(text, " -> (");
    for (int i = 0; i < result_count; ++i) print_result(text, tn_graph_result_at(graph, i), i);
    tn_text_add(text, ")");
  }
  tn_text_add(text, " {\n");
  for (uint32_t id = 0; id < tn_graph_node_limit(graph); ++id) {
    if (numbers[id] >= 0) tn_print_node(&printer, tn_graph_node_at(graph, id));
  }
  tn_text_add(text, "    return");
  for (int i = 0; i < result_count; ++i) {
    tn_text_add(text, i ? ", " : " ");
    tn_print_value(&printer, tn_graph_result_at(graph, i)->node);
  }
  for (int i = 0; i < result_count; ++i) {
    tn_text_add(text, i ? ", " : " : ");
    tn_text_type(text, &tn_graph_result_at(graph, i)->node->types[0]);
  }
  tn_text_add(text, "\n  }\n");
  tn_status_t status = TN_OK;
  for (uint32_t id = 0; id < tn_graph_node_limit(graph) && !status; ++id) {
    const tn_node_t* node = tn_graph_node_at(graph, id);
    if (numbers[id] < 0 || node->op != TN_OP_COMPOSITE) continue;
    tn_graph_t* body = NULL;
    const tn_node_t *results[TN_MAX_RESULTS], *params[64];
    status = tn_graph_create(&body);
    if (!status && node->operand_count > 64)
      status = TN_ERROR(TN_UNIMPLEMENTED, "print: a composite of > 64 operands");
    for (int i = 0; !status && i < node->operand_count; ++i) {
      params[i] = tn_graph_param(body, &node->operands[i]->types[0], NULL);
    }
    if (!status) status = tn_composite_expand(body, node, params, results);
    for (int i = 0; !status && i < node->result_count; ++i)
      tn_graph_add_result(body, results[i], NULL);
    char body_name[128];
    tn_print_body_name(node, numbers[id], body_name, sizeof body_name);
    if (!status) status = print_function(text, body, body_name, true);
    tn_graph_destroy(body);
  }
  free(numbers);
  return status;
}

tn_status_t tn_graph_print(const tn_graph_t* graph, char** out_text) {
  *out_text = NULL;
  TN_TRY(tn_graph_status(graph));
  tn_text_t text = {0};
  tn_text_add(&text, "module {\n");
  tn_status_t status = print_function(&text, graph, "main", false);
  tn_text_add(&text, "}\n");
  if (!status && text.is_out_of_memory)
    status = TN_ERROR(TN_RESOURCE_EXHAUSTED, "print: out of memory");
  if (status) {
    free(text.data);
    return status;
  }
  *out_text = text.data;
  return TN_OK;
}
