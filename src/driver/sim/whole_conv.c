// Adapters of convolution and its gradients.
#include <string.h>

#include "driver/sim/whole.h"
#include "kernels/conv.h"

static void read_three(const tn_node_t* node, tn_attr_name_t name, int64_t* out) {
  int64_t count = 0;
  const int64_t* values = tn_node_ints(node, name, &count);
  for (int64_t d = 0; values && d < count && d < TN_CONV_AXES; ++d) out[d] = values[d];
}

static bool is_supported(const tn_node_t* node) {
  const tn_dtype_t dtype = node->operands[0]->types[0].dtype;
  const int spatial = node->operands[0]->types[0].rank - 2;
  if (!tn_conv_supports(dtype, node->types[0].dtype) || spatial < 1 || spatial > TN_CONV_AXES)
    return false;
  // StableHLO's batch groups have no adapter: they show in the sizes.
  return node->op != TN_OP_CONVOLUTION ||
         node->operands[0]->types[0].dims[0] == node->types[0].dims[0];
}

// |x|, |weight| and |y| are the views of the forward convolution.
static tn_convolve_t forward_of(const tn_node_t* node, const tn_plan_view_t* x,
                                const tn_plan_view_t* weight, const tn_plan_view_t* y) {
  tn_convolve_t f = {
      .dtype = x->type.dtype, .out_dtype = y->type.dtype, .spatial = x->type.rank - 2};
  f.batch = x->type.dims[0];
  f.groups = tn_node_int(node, TN_ATTR_GROUPS, 1);
  f.in_channels = x->type.dims[1] / f.groups;
  f.out_channels = y->type.dims[1] / f.groups;
  for (int d = 0; d < f.spatial; ++d) {
    f.in_dims[d] = x->type.dims[d + 2];
    f.kernel[d] = weight->type.dims[d + 2];
    f.out_dims[d] = y->type.dims[d + 2];
    f.stride[d] = f.in_dilation[d] = f.dilation[d] = 1;
    f.in_strides[d] = x->strides[d + 2];
    f.weight_strides[d] = weight->strides[d + 2];
    f.out_strides[d] = y->strides[d + 2];
  }
  read_three(node, TN_ATTR_STRIDE, f.stride);
  read_three(node, TN_ATTR_LOW, f.low);
  read_three(node, TN_ATTR_BASE_DILATION, f.in_dilation);
  read_three(node, TN_ATTR_WINDOW_DILATION, f.dilation);
  f.in_batch = x->strides[0];
  f.in_channel = x->strides[1];
  f.in_group = x->strides[1] * f.in_channels;
  f.weight_out = weight->strides[0];
  f.weight_in = weight->strides[1];
  f.weight_group = weight->strides[0] * f.out_channels;
  f.out_batch = y->strides[0];
  f.out_channel = y->strides[1];
  f.out_group = y->strides[1] * f.out_channels;
  return f;
}

static int64_t flops(const tn_convolve_t* f) {
  int64_t work = 2 * f->batch * f->groups * f->out_channels * f->in_channels;
  for (int d = 0; d < f->spatial; ++d) work *= f->out_dims[d] * f->kernel[d];
  return work;
}

// A copy of |forward| for the program, and the workspace of the convolution that will run.
static bool finish(tn_arena_t* arena, const tn_convolve_t* forward, const tn_convolve_t* runs,
                   int thread_count, tn_whole_t* out) {
  out->record = tn_arena_copy(arena, forward, sizeof(*forward));
  out->workspace = tn_conv_workspace(runs, thread_count);
  out->flops = flops(forward);
  return out->record != NULL;
}

static tn_status_t run_forward(const void* record, const tn_whole_call_t* call) {
  tn_convolve_t f = *(const tn_convolve_t*)record;
  f.in = call->in[0];
  f.weight = call->in[1];
  f.out = call->out[0];
  f.bias = call->addend;
  f.bias_stride = 1;
  f.bias_group = f.out_channels;
  tn_conv_run(&f, call->pool, call->workspace);
  return TN_OK;
}

static bool prepare_forward(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                            tn_whole_t* out) {
  const tn_convolve_t f =
      forward_of(step->node, &step->operands[0], &step->operands[1], &step->results[0]);
  *out = (tn_whole_t){.run = run_forward};
  return finish(arena, &f, &f, thread_count, out);
}

static tn_status_t run_backward_input(const void* record, const tn_whole_call_t* call) {
  tn_convolve_t f = *(const tn_convolve_t*)record;
  f.weight = call->in[1];
  const tn_convolve_t g = tn_conv_backward_data(&f, call->in[0], call->out[0]);
  tn_conv_run(&g, call->pool, call->workspace);
  return TN_OK;
}

// The gradients only differ in their workspace from what they will be with pointers; |place| stands for those.
static bool prepare_backward_input(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                                   tn_whole_t* out) {
  char place = 0;
  tn_convolve_t f =
      forward_of(step->node, &step->results[0], &step->operands[1], &step->operands[0]);
  f.weight = &place;
  const tn_convolve_t g = tn_conv_backward_data(&f, NULL, NULL);
  f.weight = NULL;
  *out = (tn_whole_t){.run = run_backward_input};
  return finish(arena, &f, &g, thread_count, out);
}

static tn_status_t run_backward_weight(const void* record, const tn_whole_call_t* call) {
  tn_convolve_t f = *(const tn_convolve_t*)record;
  f.in = call->in[1];
  const tn_convolve_t g = tn_conv_backward_weight(&f, call->in[0], call->out[0]);
  tn_conv_run(&g, call->pool, call->workspace);
  return TN_OK;
}

static bool prepare_backward_weight(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                                    tn_whole_t* out) {
  const tn_convolve_t f =
      forward_of(step->node, &step->operands[1], &step->results[0], &step->operands[0]);
  const tn_convolve_t g = tn_conv_backward_weight(&f, NULL, NULL);
  *out = (tn_whole_t){.run = run_backward_weight};
  return finish(arena, &f, &g, thread_count, out);
}

const tn_whole_adapter_t tn_whole_conv[] = {
    {TN_OP_CONVOLUTION, NULL, prepare_forward, tn_whole_any_view, true, is_supported},
    {TN_OP_COMPOSITE, "conv_backward_input", prepare_backward_input, tn_whole_any_view, true,
     is_supported},
    {TN_OP_COMPOSITE, "conv_backward_weight", prepare_backward_weight, tn_whole_any_view, true,
     is_supported},
    {TN_OP_COUNT, NULL, NULL, NULL, false, NULL},
};
