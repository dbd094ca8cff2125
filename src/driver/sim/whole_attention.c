// Adapters of fused attention.
#include <string.h>

#include "driver/sim/whole.h"
#include "kernels/attention.h"

enum { HAS_MASK = 1, HAS_RANDOM = 2, Q = 0, K = 1, V = 2 };

typedef struct attention {
  tn_attention_t shape;
  tn_attention_grad_t grad;
  int64_t out_stride[3];
  int64_t flags;
} attention_t;

// The last dimension is dense; an extent of 1 may have any stride.
static bool takes_rows(const tn_node_t* node, int operand, const tn_plan_view_t* view) {
  (void)node;
  (void)operand;
  const int last = view->type.rank - 1;
  return view->type.rank == 4 && (view->type.dims[last] == 1 || view->strides[last] == 1);
}

static bool takes_view(const tn_node_t* node, int operand, const tn_plan_view_t* view) {
  const int mask = strcmp(tn_node_name(node), "sdpa") == 0 ? 3 : 6;
  const bool is_lse = mask == 6 && operand == 5;
  if (operand == mask && (tn_node_int(node, TN_ATTR_FLAGS, 0) & HAS_MASK))
    return view->type.rank <= 4;
  return operand < mask && !is_lse && takes_rows(node, operand, view);
}

static void row_strides(const tn_plan_view_t* view, int64_t* out) {
  for (int d = 0; d < 3; ++d) out[d] = view->strides[d];
}

static attention_t* new_attention(tn_arena_t* arena, const tn_node_step_t* step, int first,
                                  int mask_at) {
  attention_t* self = TN_ARENA_NEW(arena, attention_t);
  if (!self) return NULL;
  const tn_plan_view_t *q = &step->operands[first], *k = &step->operands[first + 1],
                       *v = &step->operands[first + 2];
  self->flags = tn_node_int(step->node, TN_ATTR_FLAGS, 0);
  tn_attention_t* shape = &self->shape;
  shape->dtype = q->type.dtype;
  shape->batch = q->type.dims[0];
  shape->heads = q->type.dims[1];
  shape->heads_kv = k->type.dims[1];
  shape->length = q->type.dims[2];
  shape->length_kv = k->type.dims[2];
  shape->size = q->type.dims[3];
  shape->size_v = v->type.dims[3];
  row_strides(q, shape->q_stride);
  row_strides(k, shape->k_stride);
  row_strides(v, shape->v_stride);
  shape->scale = tn_node_float(step->node, TN_ATTR_SCALE, 0.0);
  shape->is_causal = tn_node_int(step->node, TN_ATTR_IS_CAUSAL, 0) != 0;
  shape->dropout =
      self->flags & HAS_RANDOM ? tn_node_float(step->node, TN_ATTR_PROBABILITY, 0.0) : 0.0;
  if (self->flags & HAS_MASK) {
    const tn_plan_view_t* mask = &step->operands[mask_at];
    shape->mask_dtype = mask->type.dtype;
    const int lead = 4 - mask->type.rank;
    for (int d = lead; d < 4; ++d)
      shape->mask_stride[d] = mask->type.dims[d - lead] == 1 ? 0 : mask->strides[d - lead];
  }
  return self;
}

// Pointers that are known only at launch.
static tn_attention_t bind(const attention_t* self, const tn_whole_call_t* call, int first,
                           int mask_at) {
  tn_attention_t shape = self->shape;
  shape.q = call->in[first + Q];
  shape.k = call->in[first + K];
  shape.v = call->in[first + V];
  if (self->flags & HAS_MASK) shape.mask = call->in[mask_at++];
  if (self->flags & HAS_RANDOM) {
    uint64_t state[2];
    memcpy(state, call->in[mask_at], sizeof(state));
    shape.seed = state[0];
    shape.offset = state[1];
  }
  return shape;
}

static tn_status_t run_forward(const void* record, const tn_whole_call_t* call) {
  const attention_t* self = record;
  const tn_attention_t shape = bind(self, call, 0, 3);
  tn_attention_forward(call->pool, &shape, call->workspace, call->out[0], self->out_stride,
                       call->out[1]);
  return TN_OK;
}

static bool prepare_forward(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                            tn_whole_t* out) {
  attention_t* self = new_attention(arena, step, 0, 3);
  if (!self) return false;
  row_strides(&step->results[0], self->out_stride);
  *out = (tn_whole_t){.run = run_forward,
                      .record = self,
                      .workspace = tn_attention_forward_workspace(&self->shape, thread_count)};
  return true;
}

static tn_status_t run_backward(const void* record, const tn_whole_call_t* call) {
  const attention_t* self = record;
  const tn_attention_t shape = bind(self, call, 1, 6);
  tn_attention_grad_t grad = self->grad;
  grad.dout = call->in[0];
  grad.out = call->in[4];
  grad.lse = call->in[5];
  grad.dq = call->out[0];
  grad.dk = call->out[1];
  grad.dv = call->out[2];
  tn_attention_backward(call->pool, &shape, &grad, call->workspace);
  return TN_OK;
}

static bool prepare_backward(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                             tn_whole_t* out) {
  attention_t* self = new_attention(arena, step, 1, 6);
  if (!self) return false;
  row_strides(&step->operands[0], self->grad.dout_stride);
  row_strides(&step->operands[4], self->grad.out_stride);
  row_strides(&step->results[0], self->grad.dq_stride);
  row_strides(&step->results[1], self->grad.dk_stride);
  row_strides(&step->results[2], self->grad.dv_stride);
  *out = (tn_whole_t){.run = run_backward,
                      .record = self,
                      .workspace = tn_attention_backward_workspace(&self->shape, thread_count)};
  return true;
}

static bool is_supported(const tn_node_t* node) {
  const int first = strcmp(tn_node_name(node), "sdpa") == 0 ? 0 : 1;
  const tn_type_t *q = &node->operands[first]->types[0], *v = &node->operands[first + 2]->types[0];
  const bool is_dtype = q->dtype == TN_F32 || q->dtype == TN_BF16 || q->dtype == TN_F16;
  if (!is_dtype || q->rank != 4 || q->dims[3] < 1 || q->dims[3] > 256 || v->dims[3] < 1 ||
      v->dims[3] > 256)
    return false;
  if (!(tn_node_int(node, TN_ATTR_FLAGS, 0) & HAS_MASK)) return true;
  const tn_dtype_t mask = node->operands[first ? 6 : 3]->types[0].dtype;
  return mask == TN_BOOL || mask == TN_F32 || mask == TN_BF16 || mask == TN_F16;
}

const tn_whole_adapter_t tn_whole_attention[] = {
    {TN_OP_COMPOSITE, "sdpa", prepare_forward, takes_view, false, is_supported},
    {TN_OP_COMPOSITE, "sdpa_backward", prepare_backward, takes_view, false, is_supported},
    {TN_OP_COUNT, NULL, NULL, NULL, false, NULL},
};
