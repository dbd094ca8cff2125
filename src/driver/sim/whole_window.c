// Adapters of pooling, reduce_window and select_and_scatter.
#include <string.h>

#include "driver/sim/whole.h"
#include "kernels/window.h"

static void read_three(const tn_node_t* node, tn_attr_name_t name, int64_t* out) {
  int64_t count = 0;
  const int64_t* values = tn_node_ints(node, name, &count);
  for (int64_t d = 0; values && d < count && d < 3; ++d) out[d] = values[d];
}

static bool is_pool_dtype(const tn_node_t* node) {
  const tn_dtype_t dtype = node->operands[0]->types[0].dtype;
  int64_t count = 0;
  const int64_t* sizes = tn_node_ints(node, TN_ATTR_WINDOW, &count);
  if (!sizes) tn_node_ints(node, TN_ATTR_SIZES, &count);
  return count >= 1 && count <= 3 &&
         (dtype == TN_F32 || dtype == TN_BF16 || dtype == TN_F16 || dtype == TN_F64);
}

// |input| has the spatial extents of x, |output| those of the pooled array.
static tn_pooling_t* new_pooling(tn_arena_t* arena, const tn_node_t* node, const tn_type_t* input,
                                 const tn_type_t* output) {
  tn_pooling_t* self = TN_ARENA_NEW(arena, tn_pooling_t);
  if (!self) return NULL;
  int64_t count = 0;
  if (!tn_node_ints(node, TN_ATTR_WINDOW, &count)) tn_node_ints(node, TN_ATTR_SIZES, &count);
  self->dtype = node->operands[0]->types[0].dtype;
  self->spatial = (int)count;
  self->planes = 1;
  const int lead = output->rank - self->spatial;
  for (int d = 0; d < lead; ++d) self->planes *= output->dims[d];
  for (int d = 0; d < self->spatial; ++d) {
    self->size[d] = input->dims[lead + d];
    self->out_size[d] = output->dims[lead + d];
    self->dilation[d] = 1;
  }
  read_three(node, TN_ATTR_WINDOW, self->kernel);
  read_three(node, TN_ATTR_STRIDE, self->stride);
  read_three(node, TN_ATTR_LOW, self->padding);
  read_three(node, TN_ATTR_WINDOW_DILATION, self->dilation);
  self->count_include_pad = tn_node_int(node, TN_ATTR_COUNT_INCLUDE_PAD, 1) != 0;
  self->divisor = tn_node_int(node, TN_ATTR_DIVISOR, 0);
  return self;
}

static tn_status_t run_max_pool(const void* record, const tn_whole_call_t* call) {
  tn_window_max_pool(call->pool, record, call->in[0], call->out[0], call->out[1]);
  return TN_OK;
}
static bool prepare_max_pool(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                             tn_whole_t* out) {
  (void)thread_count;
  tn_pooling_t* self =
      new_pooling(arena, step->node, &step->operands[0].type, &step->results[0].type);
  *out = (tn_whole_t){.run = run_max_pool, .record = self};
  return self != NULL;
}

static tn_status_t run_max_pool_backward(const void* record, const tn_whole_call_t* call) {
  tn_window_max_pool_backward(call->pool, record, call->in[0], call->in[1], call->out[0]);
  return TN_OK;
}
static bool prepare_max_pool_backward(tn_arena_t* arena, const tn_node_step_t* step,
                                      int thread_count, tn_whole_t* out) {
  (void)thread_count;
  tn_pooling_t* self =
      new_pooling(arena, step->node, &step->results[0].type, &step->operands[0].type);
  *out = (tn_whole_t){.run = run_max_pool_backward, .record = self};
  return self != NULL;
}

static tn_status_t run_avg_pool(const void* record, const tn_whole_call_t* call) {
  tn_window_avg_pool(call->pool, record, call->in[0], call->out[0]);
  return TN_OK;
}
static bool prepare_avg_pool(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                             tn_whole_t* out) {
  (void)thread_count;
  tn_pooling_t* self =
      new_pooling(arena, step->node, &step->operands[0].type, &step->results[0].type);
  *out = (tn_whole_t){.run = run_avg_pool, .record = self};
  return self != NULL;
}

static tn_status_t run_avg_pool_backward(const void* record, const tn_whole_call_t* call) {
  tn_window_avg_pool_backward(call->pool, record, call->in[0], call->out[0]);
  return TN_OK;
}
static bool prepare_avg_pool_backward(tn_arena_t* arena, const tn_node_step_t* step,
                                      int thread_count, tn_whole_t* out) {
  (void)thread_count;
  tn_pooling_t* self =
      new_pooling(arena, step->node, &step->results[0].type, &step->operands[0].type);
  *out = (tn_whole_t){.run = run_avg_pool_backward, .record = self};
  return self != NULL;
}

const tn_whole_adapter_t tn_whole_window[] = {
    {TN_OP_COMPOSITE, "max_pool", prepare_max_pool, NULL, false, is_pool_dtype},
    {TN_OP_COMPOSITE, "max_pool_backward", prepare_max_pool_backward, NULL, false, is_pool_dtype},
    {TN_OP_COMPOSITE, "avg_pool", prepare_avg_pool, NULL, false, is_pool_dtype},
    {TN_OP_COMPOSITE, "avg_pool_backward", prepare_avg_pool_backward, NULL, false, is_pool_dtype},
    {TN_OP_COUNT, NULL, NULL, NULL, false, NULL},
};
