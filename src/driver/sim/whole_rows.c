// Adapters of softmax and of the norms.
#include <string.h>

#include "driver/sim/whole.h"
#include "kernels/rows.h"

static bool is_row_dtype(tn_dtype_t dtype) {
  return dtype == TN_F32 || dtype == TN_BF16 || dtype == TN_F16 || dtype == TN_F64;
}

static bool operand_is_row_dtype(const tn_node_t* node) {
  return is_row_dtype(node->operands[0]->types[0].dtype);
}

static int64_t product(const tn_type_t* type, int begin, int end) {
  int64_t count = 1;
  for (int d = begin; d < end; ++d) count *= type->dims[d];
  return count;
}

// ---- softmax ------------------------------------------------------------------------------------------------

static tn_status_t run_softmax(const void* record, const tn_whole_call_t* call) {
  tn_rows_softmax(call->pool, record, call->in[0], call->out[0]);
  return TN_OK;
}

static tn_status_t run_softmax_backward(const void* record, const tn_whole_call_t* call) {
  tn_rows_softmax_backward(call->pool, record, call->in[0], call->in[1], call->out[0]);
  return TN_OK;
}

static bool prepare_softmax(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                            tn_whole_t* out) {
  (void)thread_count;
  tn_softmax_t* shape = TN_ARENA_NEW(arena, tn_softmax_t);
  if (!shape) return false;
  const tn_type_t* type = &step->node->operands[0]->types[0];
  const char* name = tn_node_name(step->node);
  const int axis = (int)tn_node_int(step->node, TN_ATTR_AXIS, 0);
  shape->dtype = type->dtype;
  shape->is_log = strncmp(name, "log", 3) == 0;
  shape->outer = product(type, 0, axis);
  shape->n = type->dims[axis];
  shape->inner = product(type, axis + 1, type->rank);
  shape->x_stride = shape->out_stride = shape->n * shape->inner;
  *out = (tn_whole_t){.run = strstr(name, "backward") ? run_softmax_backward : run_softmax,
                      .record = shape};
  return true;
}

// ---- layer norm, rms norm -----------------------------------------------------------------------------------

enum { HAS_WEIGHT = 1, HAS_BIAS = 2, IS_EVALUATION = 4 };

typedef struct layer_norm {
  tn_layer_norm_t shape;
  int64_t flags;
} layer_norm_t;

static layer_norm_t* new_layer_norm(tn_arena_t* arena, const tn_node_t* node, int x, int weight) {
  layer_norm_t* self = TN_ARENA_NEW(arena, layer_norm_t);
  if (!self) return NULL;
  const tn_type_t* type = &node->operands[x]->types[0];
  const int axis = (int)tn_node_int(node, TN_ATTR_AXIS, type->rank - 1);
  self->flags = tn_node_int(node, TN_ATTR_FLAGS, 0);
  self->shape = (tn_layer_norm_t){.dtype = type->dtype,
                                  .param_dtype = type->dtype,
                                  .stat_dtype = tn_dtype_compute(type->dtype),
                                  .is_rms = strncmp(tn_node_name(node), "rms", 3) == 0,
                                  .rows = product(type, 0, axis),
                                  .n = product(type, axis, type->rank),
                                  .epsilon = tn_node_float(node, TN_ATTR_EPSILON, 1e-5)};
  self->shape.x_stride = self->shape.out_stride = self->shape.n;
  if (node->operand_count > weight)
    self->shape.param_dtype = node->operands[weight]->types[0].dtype;
  return self;
}

static tn_status_t run_layer_norm(const void* record, const tn_whole_call_t* call) {
  const layer_norm_t* self = record;
  int next = 1;
  const void* weight = self->flags & HAS_WEIGHT ? call->in[next++] : NULL;
  const void* bias = self->flags & HAS_BIAS ? call->in[next++] : NULL;
  const bool is_rms = self->shape.is_rms;
  tn_rows_layer_norm(call->pool, &self->shape, call->in[0], weight, bias, call->out[0],
                     is_rms ? NULL : call->out[1], call->out[is_rms ? 1 : 2]);
  return TN_OK;
}

static bool prepare_layer_norm(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                               tn_whole_t* out) {
  (void)thread_count;
  layer_norm_t* self = new_layer_norm(arena, step->node, 0, 1);
  *out = (tn_whole_t){.run = run_layer_norm, .record = self};
  return self != NULL;
}

static tn_status_t run_layer_norm_backward(const void* record, const tn_whole_call_t* call) {
  const layer_norm_t* self = record;
  const bool is_rms = self->shape.is_rms;
  const void* mean = is_rms ? NULL : call->in[2];
  const void* rstd = call->in[is_rms ? 2 : 3];
  const void* weight = self->flags & HAS_WEIGHT ? call->in[is_rms ? 3 : 4] : NULL;
  tn_rows_layer_norm_backward(call->pool, &self->shape, call->in[0], call->in[1], mean, rstd,
                              weight, call->workspace, call->out[0], call->out[1],
                              is_rms ? NULL : call->out[2]);
  return TN_OK;
}

static bool prepare_layer_norm_backward(tn_arena_t* arena, const tn_node_step_t* step,
                                        int thread_count, tn_whole_t* out) {
  (void)thread_count;
  const bool is_rms = strncmp(tn_node_name(step->node), "rms", 3) == 0;
  layer_norm_t* self = new_layer_norm(arena, step->node, 1, is_rms ? 3 : 4);
  if (!self) return false;
  *out = (tn_whole_t){.run = run_layer_norm_backward,
                      .record = self,
                      .workspace = tn_rows_layer_norm_backward_workspace(&self->shape)};
  return true;
}

// Weight and bias of one dtype.
static bool layer_norm_supported(const tn_node_t* node) {
  const int64_t flags = tn_node_int(node, TN_ATTR_FLAGS, 0);
  return operand_is_row_dtype(node) &&
         (flags != (HAS_WEIGHT | HAS_BIAS) ||
          node->operands[1]->types[0].dtype == node->operands[2]->types[0].dtype);
}

// ---- group norm ---------------------------------------------------------------------------------------------

typedef struct group_norm {
  tn_group_norm_t shape;
  int64_t flags;
} group_norm_t;

static group_norm_t* new_group_norm(tn_arena_t* arena, const tn_node_t* node, int x, int weight) {
  group_norm_t* self = TN_ARENA_NEW(arena, group_norm_t);
  if (!self) return NULL;
  const tn_type_t* type = &node->operands[x]->types[0];
  self->flags = tn_node_int(node, TN_ATTR_FLAGS, 0);
  self->shape = (tn_group_norm_t){.dtype = type->dtype,
                                  .param_dtype = type->dtype,
                                  .stat_dtype = tn_dtype_compute(type->dtype),
                                  .n = type->dims[0],
                                  .c = type->dims[1],
                                  .inner = product(type, 2, type->rank),
                                  .groups = tn_node_int(node, TN_ATTR_GROUPS, 1),
                                  .epsilon = tn_node_float(node, TN_ATTR_EPSILON, 1e-5)};
  if (node->operand_count > weight)
    self->shape.param_dtype = node->operands[weight]->types[0].dtype;
  return self;
}

static tn_status_t run_group_norm(const void* record, const tn_whole_call_t* call) {
  const group_norm_t* self = record;
  int next = 1;
  const void* weight = self->flags & HAS_WEIGHT ? call->in[next++] : NULL;
  const void* bias = self->flags & HAS_BIAS ? call->in[next++] : NULL;
  tn_rows_group_norm(call->pool, &self->shape, call->in[0], weight, bias, call->out[0],
                     call->out[1], call->out[2]);
  return TN_OK;
}

static bool prepare_group_norm(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                               tn_whole_t* out) {
  (void)thread_count;
  group_norm_t* self = new_group_norm(arena, step->node, 0, 1);
  *out = (tn_whole_t){.run = run_group_norm, .record = self};
  return self != NULL;
}

static tn_status_t run_group_norm_backward(const void* record, const tn_whole_call_t* call) {
  const group_norm_t* self = record;
  tn_rows_group_norm_backward(call->pool, &self->shape, call->in[0], call->in[1], call->in[2],
                              call->in[3], self->flags & HAS_WEIGHT ? call->in[4] : NULL,
                              call->workspace, call->out[0], call->out[1], call->out[2]);
  return TN_OK;
}

static bool prepare_group_norm_backward(tn_arena_t* arena, const tn_node_step_t* step,
                                        int thread_count, tn_whole_t* out) {
  (void)thread_count;
  group_norm_t* self = new_group_norm(arena, step->node, 1, 4);
  if (!self) return false;
  *out = (tn_whole_t){.run = run_group_norm_backward,
                      .record = self,
                      .workspace = tn_rows_group_norm_backward_workspace(&self->shape)};
  return true;
}

// ---- batch norm ---------------------------------------------------------------------------------------------

typedef struct batch_norm {
  tn_batch_norm_t shape;
  int64_t flags;
} batch_norm_t;

static batch_norm_t* new_batch_norm(tn_arena_t* arena, const tn_node_t* node, int x, int weight) {
  batch_norm_t* self = TN_ARENA_NEW(arena, batch_norm_t);
  if (!self) return NULL;
  const tn_type_t* type = &node->operands[x]->types[0];
  self->flags = tn_node_int(node, TN_ATTR_FLAGS, 0);
  self->shape = (tn_batch_norm_t){.dtype = type->dtype,
                                  .param_dtype = type->dtype,
                                  .stat_dtype = tn_dtype_compute(type->dtype),
                                  .n = type->dims[0],
                                  .c = type->dims[1],
                                  .inner = product(type, 2, type->rank),
                                  .epsilon = tn_node_float(node, TN_ATTR_EPSILON, 1e-5)};
  if ((self->flags & (HAS_WEIGHT | HAS_BIAS)) && node->operand_count > weight)
    self->shape.param_dtype = node->operands[weight]->types[0].dtype;
  return self;
}

static tn_status_t run_batch_norm_train(const void* record, const tn_whole_call_t* call) {
  const batch_norm_t* self = record;
  int next = 1;
  const void* weight = self->flags & HAS_WEIGHT ? call->in[next++] : NULL;
  const void* bias = self->flags & HAS_BIAS ? call->in[next++] : NULL;
  tn_batch_norm_t shape = self->shape;
  shape.out_var = call->out[3];
  tn_rows_batch_norm_train(call->pool, &shape, call->in[0], weight, bias, NULL, NULL, call->out[0],
                           call->out[1], call->out[2], NULL, NULL);
  return TN_OK;
}

static bool prepare_batch_norm_train(tn_arena_t* arena, const tn_node_step_t* step,
                                     int thread_count, tn_whole_t* out) {
  (void)thread_count;
  batch_norm_t* self = new_batch_norm(arena, step->node, 0, 1);
  *out = (tn_whole_t){.run = run_batch_norm_train, .record = self};
  return self != NULL;
}

static tn_status_t run_batch_norm_infer(const void* record, const tn_whole_call_t* call) {
  const batch_norm_t* self = record;
  int next = 1;
  const void* weight = self->flags & HAS_WEIGHT ? call->in[next++] : NULL;
  const void* bias = self->flags & HAS_BIAS ? call->in[next++] : NULL;
  tn_rows_batch_norm_infer(call->pool, &self->shape, call->in[0], weight, bias, call->in[next],
                           call->in[next + 1], call->out[0]);
  return TN_OK;
}

static bool prepare_batch_norm_infer(tn_arena_t* arena, const tn_node_step_t* step,
                                     int thread_count, tn_whole_t* out) {
  if (!prepare_batch_norm_train(arena, step, thread_count, out)) return false;
  out->run = run_batch_norm_infer;
  return true;
}

static tn_status_t run_batch_norm_backward(const void* record, const tn_whole_call_t* call) {
  const batch_norm_t* self = record;
  tn_rows_batch_norm_backward(call->pool, &self->shape, true, call->in[0], call->in[1], call->in[2],
                              call->in[3], self->flags & HAS_WEIGHT ? call->in[4] : NULL,
                              call->out[0], call->out[1], call->out[2]);
  return TN_OK;
}

static bool prepare_batch_norm_backward(tn_arena_t* arena, const tn_node_step_t* step,
                                        int thread_count, tn_whole_t* out) {
  (void)thread_count;
  batch_norm_t* self = new_batch_norm(arena, step->node, 1, 4);
  *out = (tn_whole_t){.run = run_batch_norm_backward, .record = self};
  return self != NULL;
}

// Constant statistics have another gradient, which the decomposition computes.
static bool batch_norm_backward_supported(const tn_node_t* node) {
  return operand_is_row_dtype(node) && !(tn_node_int(node, TN_ATTR_FLAGS, 0) & IS_EVALUATION);
}

#define TN_ROWS(name, prepare, supports) {TN_OP_COMPOSITE, name, prepare, NULL, false, supports}
const tn_whole_adapter_t tn_whole_rows[] = {
    TN_ROWS("softmax", prepare_softmax, operand_is_row_dtype),
    TN_ROWS("log_softmax", prepare_softmax, operand_is_row_dtype),
    TN_ROWS("softmax_backward", prepare_softmax, operand_is_row_dtype),
    TN_ROWS("log_softmax_backward", prepare_softmax, operand_is_row_dtype),
    TN_ROWS("layer_norm", prepare_layer_norm, layer_norm_supported),
    TN_ROWS("layer_norm_backward", prepare_layer_norm_backward, operand_is_row_dtype),
    TN_ROWS("rms_norm", prepare_layer_norm, operand_is_row_dtype),
    TN_ROWS("rms_norm_backward", prepare_layer_norm_backward, operand_is_row_dtype),
    TN_ROWS("group_norm", prepare_group_norm, layer_norm_supported),
    TN_ROWS("group_norm_backward", prepare_group_norm_backward, operand_is_row_dtype),
    TN_ROWS("batch_norm_train", prepare_batch_norm_train, layer_norm_supported),
    TN_ROWS("batch_norm_infer", prepare_batch_norm_infer, layer_norm_supported),
    TN_ROWS("batch_norm_backward", prepare_batch_norm_backward, batch_norm_backward_supported),
    {TN_OP_COUNT, NULL, NULL, NULL, false, NULL},
};
