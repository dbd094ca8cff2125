#include "driver/sim/whole.h"

#include <stdlib.h>
#include <string.h>

#include "ir/interp.h"

static const tn_whole_adapter_t* const k_families[] = {
    tn_whole_contraction, tn_whole_conv,      tn_whole_movement, tn_whole_index,  tn_whole_order,
    tn_whole_rows,        tn_whole_attention, tn_whole_window,   tn_whole_checks,
};

const tn_whole_adapter_t* tn_whole_find(const tn_node_t* node) {
  for (size_t f = 0; f < sizeof(k_families) / sizeof(k_families[0]); ++f)
    for (const tn_whole_adapter_t* adapter = k_families[f]; adapter->prepare; ++adapter) {
      if (adapter->op != node->op) continue;
      if (adapter->name && strcmp(adapter->name, tn_node_name(node)) != 0) continue;
      return adapter->supports && !adapter->supports(node) ? NULL : adapter;
    }
  return NULL;
}

tn_view_t tn_whole_view(const tn_plan_view_t* view, void* data) {
  return tn_view_make(data, view->type.dtype, view->type.rank, view->type.dims, view->strides);
}

bool tn_whole_any_view(const tn_node_t* node, int operand, const tn_plan_view_t* view) {
  (void)node;
  (void)operand;
  (void)view;
  return true;
}

// ---- the reference interpreter as a kernel ------------------------------------------------------------------------

typedef struct interpreted {
  tn_graph_t* graph;  // holds a copy of the node
  const tn_node_t* node;
} interpreted_t;

static tn_status_t run_interpreted(const void* record, const tn_whole_call_t* call) {
  const interpreted_t* self = record;
  return tn_interp_node(self->node, (const void* const*)call->in, call->out);
}

static void destroy_interpreted(void* record) { tn_graph_destroy(((interpreted_t*)record)->graph); }

static tn_status_t prepare_interpreted(tn_arena_t* arena, const tn_node_t* node, tn_whole_t* out) {
  interpreted_t* self = TN_ARENA_NEW(arena, interpreted_t);
  const tn_node_t** operands = TN_ARENA_ARRAY(arena, const tn_node_t*, node->operand_count + 1);
  if (!self || !operands) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "sim: out of host memory");
  TN_TRY(tn_graph_create(&self->graph));
  for (int i = 0; i < node->operand_count; ++i)
    operands[i] = tn_graph_param(self->graph, &node->operands[i]->types[0], NULL);
  self->node = tn_graph_rebuild(self->graph, node, operands);
  *out = (tn_whole_t){.run = run_interpreted, .destroy = destroy_interpreted, .record = self};
  if (self->node) return TN_OK;
  tn_status_t status = tn_graph_status(self->graph);
  tn_graph_destroy(self->graph);
  return status;
}

tn_status_t tn_whole_prepare(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                             tn_whole_t* out, bool* out_is_interpreted) {
  memset(out, 0, sizeof(*out));
  const tn_whole_adapter_t* adapter = tn_whole_find(step->node);
  *out_is_interpreted = false;
  if (adapter && adapter->prepare(arena, step, thread_count, out)) return TN_OK;
  *out_is_interpreted = true;
  for (int i = 0; i < step->operand_count; ++i)
    if (!tn_plan_view_is_contiguous(&step->operands[i]))
      return TN_ERROR(TN_INTERNAL, "sim: the kernel of %s declined a layout it had accepted",
                      tn_op_info(step->node->op)->name);
  if (step->has_addend) return TN_ERROR(TN_INTERNAL, "sim: the interpreter adds no epilogue");
  return prepare_interpreted(arena, step->node, out);
}
