// Adapters of convolution and its gradients.
#include <string.h>

#include "driver/sim/whole.h"
#include "kernels/conv.h"

static void read_three(const tn_node_t* node, tn_attr_name_t name, int64_t* out) {
  int64_t count = 0;
  const int64_t* values = tn_node_ints(node, name, &count);
  for (int64_t d = 0; values && d < count && d < 3; ++d) out[d] = values[d];
}

static bool is_supported(const tn_node_t* node) {
  const tn_dtype_t dtype = node->operands[0]->types[0].dtype;
  int64_t count = 0;
  const int64_t* base = tn_node_ints(node, TN_ATTR_BASE_DILATION, &count);
  for (int64_t d = 0; base && d < count; ++d)
    if (base[d] != 1) return false;
  const int64_t* low = tn_node_ints(node, TN_ATTR_LOW, &count);
  for (int64_t d = 0; low && d < count; ++d)
    if (low[d] < 0) return false;
  const int spatial = node->operands[0]->types[0].rank - 2;
  if ((dtype != TN_F32 && dtype != TN_F64) || spatial < 1 || spatial > 3) return false;
  // StableHLO's batch groups have no kernel: they show in the sizes.
  return node->op != TN_OP_CONVOLUTION || node->operands[0]->types[0].dims[0] == node->types[0].dims[0];
}

// |x|, |weight| and |y| are the types of the forward convolution.
static tn_conv_shape_t* new_shape(tn_arena_t* arena, const tn_node_t* node, const tn_type_t* x, const tn_type_t* weight,
                        const tn_type_t* y) {
  tn_conv_shape_t* shape = TN_ARENA_NEW(arena, tn_conv_shape_t);
  if (!shape) return NULL;
  shape->dtype = x->dtype;
  shape->spatial = x->rank - 2;
  shape->n = x->dims[0];
  shape->c = x->dims[1];
  shape->o = y->dims[1];
  shape->groups = tn_node_int(node, TN_ATTR_GROUPS, 1);
  for (int d = 0; d < shape->spatial; ++d) {
    shape->size[d] = x->dims[d + 2];
    shape->out_size[d] = y->dims[d + 2];
    shape->window[d] = weight->dims[d + 2];
    shape->stride[d] = shape->dilation[d] = 1;
  }
  read_three(node, TN_ATTR_STRIDE, shape->stride);
  read_three(node, TN_ATTR_LOW, shape->low);
  read_three(node, TN_ATTR_WINDOW_DILATION, shape->dilation);
  return shape;
}

static int64_t flops(const tn_conv_shape_t* shape) {
  int64_t work = 2 * shape->n * shape->o * (shape->c / shape->groups);
  for (int d = 0; d < shape->spatial; ++d) work *= shape->out_size[d] * shape->window[d];
  return work;
}

static tn_status_t run_forward(const void* record, const tn_whole_call_t* call) {
  tn_conv_forward(call->pool, record, call->in[0], call->in[1], call->addend, call->workspace, call->out[0]);
  return TN_OK;
}

static bool prepare_forward(tn_arena_t* arena, const tn_node_step_t* step, int thread_count, tn_whole_t* out) {
  tn_conv_shape_t* shape = new_shape(arena, step->node, &step->operands[0].type, &step->operands[1].type, &step->results[0].type);
  if (!shape) return false;
  *out = (tn_whole_t){.run = run_forward,
                      .record = shape,
                      .workspace = tn_conv_forward_workspace(shape, thread_count),
                      .flops = flops(shape)};
  return true;
}

static tn_status_t run_backward_input(const void* record, const tn_whole_call_t* call) {
  tn_conv_backward_input(call->pool, record, call->in[0], call->in[1], call->workspace, call->out[0]);
  return TN_OK;
}

static bool prepare_backward_input(tn_arena_t* arena, const tn_node_step_t* step, int thread_count, tn_whole_t* out) {
  tn_conv_shape_t* shape = new_shape(arena, step->node, &step->results[0].type, &step->operands[1].type, &step->operands[0].type);
  if (!shape) return false;
  *out = (tn_whole_t){.run = run_backward_input,
                      .record = shape,
                      .workspace = tn_conv_backward_input_workspace(shape, thread_count),
                      .flops = flops(shape)};
  return true;
}

static tn_status_t run_backward_weight(const void* record, const tn_whole_call_t* call) {
  tn_conv_backward_weight(call->pool, record, call->in[0], call->in[1], call->workspace, call->out[0]);
  return TN_OK;
}

static bool prepare_backward_weight(tn_arena_t* arena, const tn_node_step_t* step, int thread_count, tn_whole_t* out) {
  tn_conv_shape_t* shape = new_shape(arena, step->node, &step->operands[1].type, &step->results[0].type, &step->operands[0].type);
  if (!shape) return false;
  *out = (tn_whole_t){.run = run_backward_weight,
                      .record = shape,
                      .workspace = tn_conv_backward_weight_workspace(shape, thread_count),
                      .flops = flops(shape)};
  return true;
}

const tn_whole_adapter_t tn_whole_conv[] = {
    {TN_OP_CONVOLUTION, NULL, prepare_forward, NULL, false, is_supported},
    {TN_OP_COMPOSITE, "conv_backward_input", prepare_backward_input, NULL, false, is_supported},
    {TN_OP_COMPOSITE, "conv_backward_weight", prepare_backward_weight, NULL, false, is_supported},
    {TN_OP_COUNT, NULL, NULL, NULL, false, NULL},
};
