// What fuse and plan decided, as text.
#include <stdlib.h>
#include <string.h>

#include "compile/fuse.h"
#include "compile/plan.h"
#include "ir/text_print.h"

static tn_status_t finish(tn_text_t* text, char** out_text) {
  if (text->is_out_of_memory) {
    free(text->data);
    return TN_ERROR(TN_RESOURCE_EXHAUSTED, "explain: out of memory");
  }
  *out_text = text->data;
  return TN_OK;
}

// ---- groups -------------------------------------------------------------------------------------------------

static const char* const reasons[] = {
    [TN_STORE_RESULT] = "a result",
    [TN_STORE_WHOLE] = "a step of its own",
    [TN_STORE_OPERAND] = "read by a step of its own",
    [TN_STORE_REDUCTION] = "a reduction that no single reader finishes",
    [TN_STORE_SHARED] = "several groups read it",
    [TN_STORE_REPEATED] = "every element is read more than once",
};

// Marks |root| and what is computed with it; operands have smaller ids than their readers.
static void mark_group(const tn_graph_t* graph, const tn_fusion_t* fusion, const tn_node_t* root,
                       bool* in_group) {
  memset(in_group, 0, sizeof(*in_group) * fusion->node_count);
  in_group[root->id] = true;
  for (uint32_t id = root->id + 1; id-- > 0;) {
    const tn_node_t* node = tn_graph_node_at(graph, id);
    for (int i = 0; in_group[id] && i < node->operand_count; ++i)
      if (!fusion->storing[node->operands[i]->id]) in_group[node->operands[i]->id] = true;
  }
}

static void print_group(tn_printer_t* printer, const tn_graph_t* graph, const tn_fusion_t* fusion,
                        const tn_node_t* root, int number, bool* in_group, bool* is_printed) {
  mark_group(graph, fusion, root, in_group);
  tn_text_add(printer->text, "group %d: %%%d, %s\n", number, printer->numbers[root->id],
              reasons[fusion->storing[root->id]]);
  for (uint32_t id = 0; id <= root->id; ++id) {
    if (!in_group[id] || printer->numbers[id] < 0) continue;
    tn_print_node(printer, tn_graph_node_at(graph, id));
    if (is_printed[id]) {  // computed anew in every group that reads it
      --printer->text->length;
      tn_text_add(printer->text, "  // again\n");
    }
    is_printed[id] = true;
  }
}

tn_status_t tn_fusion_print(const tn_graph_t* graph, const tn_fusion_t* fusion, char** out_text) {
  *out_text = NULL;
  tn_text_t text = {0};
  int32_t* numbers = tn_print_numbers(graph);
  bool* in_group = calloc((size_t)fusion->node_count * 2 + 1, sizeof *in_group);
  if (!numbers || !in_group) text.is_out_of_memory = true;
  tn_printer_t printer = {.text = &text, .numbers = numbers};
  for (uint32_t id = 0, number = 0; id < fusion->node_count && !text.is_out_of_memory; ++id) {
    if (!fusion->is_live[id] || !fusion->storing[id] || numbers[id] < 0) continue;
    print_group(&printer, graph, fusion, tn_graph_node_at(graph, id), (int)number++, in_group,
                in_group + fusion->node_count);
  }
  if (!text.length) tn_text_add(&text, "no group: results are parameters, constants or moved\n");
  free(numbers);
  free(in_group);
  return finish(&text, out_text);
}

// ---- the plan -----------------------------------------------------------------------------------------------

static void print_buffer(tn_text_t* text, const tn_plan_buffer_t* buffer, int number) {
  tn_text_add(text, "buffer %d: ", number);
  const long long size = (long long)buffer->size;
  switch (buffer->kind) {
    case TN_BUFFER_PARAM: tn_text_add(text, "parameter %d\n", buffer->index); break;
    case TN_BUFFER_RESULT: tn_text_add(text, "result %d\n", buffer->index); break;
    case TN_BUFFER_CONSTANT: tn_text_add(text, "constant of %lld bytes\n", size); break;
    case TN_BUFFER_TEMPORARY:
      if (buffer->first_step < 0) {
        tn_text_add(text, "not used\n");
      } else {
        tn_text_add(text, "temporary of %lld bytes at %lld, steps %d to %d\n", size,
                    (long long)buffer->offset, buffer->first_step, buffer->last_step);
      }
      break;
  }
}

static void print_view(tn_text_t* text, const tn_plan_view_t* view) {
  tn_text_add(text, "buffer %d", view->buffer);
  if (view->offset) tn_text_add(text, " + %lld", (long long)view->offset);
  tn_text_add(text, " as ");
  tn_text_type(text, &view->type);
  if (tn_plan_view_is_contiguous(view)) return;
  tn_text_add(text, " strides ");
  tn_text_ints(text, view->type.rank, view->strides);
}

static void print_operand(tn_text_t* text, const tn_kernel_step_t* step, int k) {
  const int loops = step->program->loop_count;
  const tn_kernel_operand_binding_t* operand = &step->operands[k];
  if (operand->buffer < 0) {
    tn_text_add(text, "    operand %d: index from %lld", k, (long long)operand->offset);
  } else {
    tn_text_add(text, "    operand %d: buffer %d", k, operand->buffer);
    if (operand->offset) tn_text_add(text, " + %lld bytes", (long long)operand->offset);
  }
  tn_text_add(text, ", strides ");
  tn_text_ints(text, loops, step->strides + k * loops);
  tn_text_add(text, "\n");
}

static tn_status_t print_kernel(tn_text_t* text, const tn_kernel_step_t* step) {
  tn_text_add(text, "kernel over ");
  tn_text_ints(text, step->program->loop_count, step->dims);
  if (step->cut.block_count > 1)
    tn_text_add(text, ", reduced in %lld blocks of %lld", (long long)step->cut.block_count,
                (long long)step->cut.block);
  tn_text_add(text, "\n");
  for (int k = 0; k < step->program->operand_count; ++k) print_operand(text, step, k);
  for (int s = 0; s < step->program->scalar_count; ++s) {
    const tn_kernel_scalar_binding_t* scalar = &step->scalars[s];
    tn_text_add(text, "    scalar %d: ", s);
    if (scalar->param >= 0) {
      tn_text_add(text, "parameter %d\n", scalar->param);
    } else {
      tn_text_element(text, scalar->dtype, scalar->value.bytes);
      tn_text_add(text, "\n");
    }
  }
  char* program = NULL;
  TN_TRY(tn_kernel_program_print(step->program, &program));
  char* rest = NULL;
  for (char* line = strtok_r(program, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
    tn_text_add(text, "    | %s\n", line);
  free(program);
  return TN_OK;
}

static void print_whole(tn_text_t* text, const tn_node_step_t* step) {
  const bool is_composite = step->node->op == TN_OP_COMPOSITE;
  tn_text_add(text, "%s%s\n", is_composite ? "tn." : "",
              is_composite ? tn_node_name(step->node) : tn_op_info(step->node->op)->name);
  for (int i = 0; i < step->operand_count; ++i) {
    tn_text_add(text, "    operand %d: ", i);
    print_view(text, &step->operands[i]);
    tn_text_add(text, "\n");
  }
  if (step->has_addend) {
    tn_text_add(text, "    addend: ");
    print_view(text, &step->addend);
    tn_text_add(text, "\n");
  }
  for (int i = 0; i < step->result_count; ++i) {
    tn_text_add(text, "    result %d: ", i);
    print_view(text, &step->results[i]);
    tn_text_add(text, "\n");
  }
}

tn_status_t tn_plan_print(const tn_plan_t* plan, char** out_text) {
  *out_text = NULL;
  tn_text_t text = {0};
  for (int i = 0; i < plan->buffer_count; ++i) print_buffer(&text, &plan->buffers[i], i);
  tn_text_add(&text, "temporaries: %lld bytes\n", (long long)plan->temporary_bytes);
  tn_status_t status = TN_OK;
  for (int s = 0; s < plan->step_count && !status; ++s) {
    const tn_step_t* step = plan->steps[s];
    tn_text_add(&text, "step %d: ", s);
    if (step->kind == TN_STEP_KERNEL) {
      status = print_kernel(&text, &step->kernel);
    } else if (step->kind == TN_STEP_NODE) {
      print_whole(&text, &step->node);
    } else {
      tn_text_add(&text, "copy of ");
      print_view(&text, &step->from);
      tn_text_add(&text, " to ");
      print_view(&text, &step->to);
      tn_text_add(&text, "\n");
    }
  }
  if (!status) return finish(&text, out_text);
  free(text.data);
  return status;
}
