// Adapters of sort, top-k, first extremes and scans.
#include <string.h>

#include "driver/sim/whole.h"
#include "kernels/index.h"
#include "kernels/order.h"

typedef struct ordered {
  int count;  // operands
  int dimension;
  bool flag, flag2;  // descending, largest; reverse, exclusive
  int64_t k;
  tn_reduce_kind_t kind;
  size_t positions_at;  // in the workspace
  tn_plan_view_t operand[4], result[4];
} ordered_t;

enum { MOST = 4 };

static ordered_t* new_ordered(tn_arena_t* arena, const tn_node_step_t* step) {
  ordered_t* self = step->operand_count <= MOST && step->result_count <= MOST
                        ? TN_ARENA_NEW(arena, ordered_t)
                        : NULL;
  if (!self) return NULL;
  self->count = step->operand_count;
  self->dimension = (int)tn_node_int(step->node, TN_ATTR_DIMENSION, 0);
  self->kind = (tn_reduce_kind_t)tn_node_int(step->node, TN_ATTR_KIND, 0);
  memcpy(self->operand, step->operands, sizeof(tn_plan_view_t) * (size_t)step->operand_count);
  memcpy(self->result, step->results, sizeof(tn_plan_view_t) * (size_t)step->result_count);
  return self;
}

static bool operand_is_real(const tn_node_t* node) {
  return !tn_dtype_is_complex(node->operands[0]->types[0].dtype);
}

// The first operand is sorted; the others follow its positions.
static tn_status_t run_sort(const void* record, const tn_whole_call_t* call) {
  const ordered_t* self = record;
  const tn_view_t x = tn_whole_view(&self->operand[0], call->in[0]);
  const tn_view_t values = tn_whole_view(&self->result[0], call->out[0]);
  tn_view_t positions =
      tn_view_make((char*)call->workspace + self->positions_at, TN_I64, x.rank, x.dims, NULL);
  tn_order_sort(call->pool, &x, self->dimension, self->flag, call->workspace, &values, &positions);
  for (int i = 1; i < self->count; ++i) {
    const tn_view_t other = tn_whole_view(&self->operand[i], call->in[i]);
    const tn_view_t out = tn_whole_view(&self->result[i], call->out[i]);
    TN_TRY(tn_index_take_along(call->pool, &other, &positions, self->dimension, TN_BOUNDS_CLAMP,
                               &out));
  }
  return TN_OK;
}

static bool prepare_sort(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                         tn_whole_t* out) {
  ordered_t* self = new_ordered(arena, step);
  if (!self) return false;
  self->flag = tn_node_int(step->node, TN_ATTR_DESCENDING, 0) != 0;
  const tn_view_t x = tn_whole_view(&self->operand[0], NULL);
  self->positions_at =
      (tn_order_sort_workspace(&x, self->dimension, thread_count) + 63) & ~(size_t)63;
  *out = (tn_whole_t){
      .run = run_sort,
      .record = self,
      .workspace = self->positions_at + (size_t)tn_view_element_count(&x) * sizeof(int64_t)};
  return true;
}

static tn_status_t run_topk(const void* record, const tn_whole_call_t* call) {
  const ordered_t* self = record;
  const tn_view_t x = tn_whole_view(&self->operand[0], call->in[0]);
  const tn_view_t values = tn_whole_view(&self->result[0], call->out[0]);
  const tn_view_t positions = tn_whole_view(&self->result[1], call->out[1]);
  tn_order_topk(call->pool, &x, self->dimension, self->k, self->flag, call->workspace, &values,
                &positions);
  return TN_OK;
}

static bool prepare_topk(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                         tn_whole_t* out) {
  ordered_t* self = new_ordered(arena, step);
  if (!self) return false;
  self->dimension = self->operand[0].type.rank - 1;
  self->k = self->result[0].type.dims[self->dimension];
  self->flag = tn_node_int(step->node, TN_ATTR_LARGEST, 1) != 0;
  const tn_view_t x = tn_whole_view(&self->operand[0], NULL);
  *out = (tn_whole_t){
      .run = run_topk,
      .record = self,
      .workspace = tn_order_topk_workspace(&x, self->dimension, self->k, thread_count)};
  return true;
}

static tn_status_t run_arg_reduce(const void* record, const tn_whole_call_t* call) {
  const ordered_t* self = record;
  const tn_view_t x = tn_whole_view(&self->operand[0], call->in[0]);
  const tn_view_t values = tn_whole_view(&self->result[0], call->out[0]);
  const tn_view_t positions = tn_whole_view(&self->result[1], call->out[1]);
  tn_order_arg_reduce(call->pool, self->kind, &x, self->dimension, &values, &positions);
  return TN_OK;
}

static bool prepare_arg_reduce(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                               tn_whole_t* out) {
  (void)thread_count;
  ordered_t* self = new_ordered(arena, step);
  *out = (tn_whole_t){.run = run_arg_reduce, .record = self};
  return self != NULL;
}

static tn_status_t run_scan(const void* record, const tn_whole_call_t* call) {
  const ordered_t* self = record;
  const tn_view_t x = tn_whole_view(&self->operand[0], call->in[0]);
  const tn_view_t out = tn_whole_view(&self->result[0], call->out[0]);
  tn_order_scan(call->pool, self->kind, &x, self->dimension, self->flag, self->flag2, &out, NULL);
  return TN_OK;
}

static bool prepare_scan(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                         tn_whole_t* out) {
  (void)thread_count;
  ordered_t* self = new_ordered(arena, step);
  if (!self) return false;
  self->flag = tn_node_int(step->node, TN_ATTR_REVERSE, 0) != 0;
  self->flag2 = tn_node_int(step->node, TN_ATTR_EXCLUSIVE, 0) != 0;
  *out = (tn_whole_t){.run = run_scan, .record = self};
  return true;
}

const tn_whole_adapter_t tn_whole_order[] = {
    {TN_OP_SORT, NULL, prepare_sort, tn_whole_any_view, true, operand_is_real},
    {TN_OP_TOPK, NULL, prepare_topk, tn_whole_any_view, true, operand_is_real},
    {TN_OP_ARG_REDUCE, NULL, prepare_arg_reduce, tn_whole_any_view, true, operand_is_real},
    {TN_OP_SCAN, NULL, prepare_scan, tn_whole_any_view, true, NULL},
    {TN_OP_COUNT, NULL, NULL, NULL, false, NULL},
};
