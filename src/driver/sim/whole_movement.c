// Adapters of movement that is not a view: pad, concatenate, dynamic slices, random bits.
#include <string.h>

#include "driver/sim/whole.h"
#include "kernels/copy.h"
#include "kernels/random.h"

typedef struct moved {
  int count;
  tn_plan_view_t result;
  const tn_plan_view_t* operands;
  int64_t low[TN_MAX_RANK],
      interior[TN_MAX_RANK];  // pad; low: start per operand of a concatenation
  int dimension;
} moved_t;

static moved_t* keep_views(tn_arena_t* arena, const tn_node_step_t* step) {
  moved_t* self = TN_ARENA_NEW(arena, moved_t);
  if (!self) return NULL;
  self->count = step->operand_count;
  self->result = step->results[0];
  self->operands = tn_arena_copy(arena, step->operands,
                                 sizeof(tn_plan_view_t) * (size_t)(step->operand_count + 1));
  return self->operands ? self : NULL;
}

static tn_status_t run_pad(const void* record, const tn_whole_call_t* call) {
  const moved_t* self = record;
  tn_scalar_t value;
  memset(&value, 0, sizeof(value));
  memcpy(&value, call->in[1], tn_dtype_size(self->result.type.dtype));
  const tn_view_t x = tn_whole_view(&self->operands[0], call->in[0]);
  const tn_view_t out = tn_whole_view(&self->result, call->out[0]);
  tn_copy_pad(call->pool, &x, value, self->low, self->interior, &out);
  return TN_OK;
}

static bool prepare_pad(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                        tn_whole_t* out) {
  (void)thread_count;
  moved_t* self = keep_views(arena, step);
  if (!self) return false;
  int64_t count = 0;
  const int64_t* low = tn_node_ints(step->node, TN_ATTR_LOW, &count);
  const int64_t* interior = tn_node_ints(step->node, TN_ATTR_INTERIOR, &count);
  for (int d = 0; d < self->result.type.rank; ++d) {
    self->low[d] = low[d];
    self->interior[d] = interior ? interior[d] : 0;
  }
  *out = (tn_whole_t){.run = run_pad, .record = self};
  return true;
}

static tn_status_t run_concat(const void* record, const tn_whole_call_t* call) {
  const moved_t* self = record;
  const int64_t size = (int64_t)tn_dtype_size(self->result.type.dtype);
  int64_t start = 0;
  for (int i = 0; i < self->count; ++i) {
    const tn_view_t x = tn_whole_view(&self->operands[i], call->in[i]);
    tn_view_t out = tn_whole_view(
        &self->result, (char*)call->out[0] + start * self->result.strides[self->dimension] * size);
    memcpy(out.dims, x.dims, sizeof(out.dims));
    tn_copy_strided(call->pool, &x, &out);
    start += x.dims[self->dimension];
  }
  return TN_OK;
}

static bool prepare_concat(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                           tn_whole_t* out) {
  (void)thread_count;
  moved_t* self = keep_views(arena, step);
  if (!self) return false;
  self->dimension = (int)tn_node_int(step->node, TN_ATTR_DIMENSION, 0);
  *out = (tn_whole_t){.run = run_concat, .record = self};
  return true;
}

// Start of a dynamic slice along |d|, clamped so that |size| elements fit.
static int64_t clamped_start(const moved_t* self, const tn_whole_call_t* call, int first, int d,
                             int64_t size) {
  const tn_plan_view_t* view = &self->operands[first + d];
  tn_scalar_t value;
  memset(&value, 0, sizeof(value));
  memcpy(&value, call->in[first + d], tn_dtype_size(view->type.dtype));
  const int64_t start = tn_scalar_to_int(view->type.dtype, value),
                limit = self->operands[0].type.dims[d] - size;
  return start < 0 ? 0 : start > limit ? limit : start;
}

static tn_status_t run_dynamic_slice(const void* record, const tn_whole_call_t* call) {
  const moved_t* self = record;
  tn_view_t x = tn_whole_view(&self->operands[0], call->in[0]);
  const tn_view_t out = tn_whole_view(&self->result, call->out[0]);
  int64_t offset = 0;
  for (int d = 0; d < x.rank; ++d)
    offset += clamped_start(self, call, 1, d, out.dims[d]) * x.strides[d];
  x.data = (char*)x.data + offset * (int64_t)tn_dtype_size(x.dtype);
  memcpy(x.dims, out.dims, sizeof(x.dims));
  tn_copy_strided(call->pool, &x, &out);
  return TN_OK;
}

static bool prepare_dynamic_slice(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                                  tn_whole_t* out) {
  (void)thread_count;
  moved_t* self = keep_views(arena, step);
  if (!self) return false;
  *out = (tn_whole_t){.run = run_dynamic_slice, .record = self};
  return true;
}

static tn_status_t run_dynamic_update(const void* record, const tn_whole_call_t* call) {
  const moved_t* self = record;
  const tn_view_t x = tn_whole_view(&self->operands[0], call->in[0]);
  const tn_view_t update = tn_whole_view(&self->operands[1], call->in[1]);
  tn_view_t out = tn_whole_view(&self->result, call->out[0]);
  tn_copy_strided(call->pool, &x, &out);
  int64_t offset = 0;
  for (int d = 0; d < x.rank; ++d)
    offset += clamped_start(self, call, 2, d, update.dims[d]) * out.strides[d];
  out.data = (char*)out.data + offset * (int64_t)tn_dtype_size(out.dtype);
  memcpy(out.dims, update.dims, sizeof(out.dims));
  tn_copy_strided(call->pool, &update, &out);
  return TN_OK;
}

static bool prepare_dynamic_update(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                                   tn_whole_t* out) {
  if (!prepare_dynamic_slice(arena, step, thread_count, out)) return false;
  out->run = run_dynamic_update;
  return true;
}

static tn_status_t run_random_bits(const void* record, const tn_whole_call_t* call) {
  const moved_t* self = record;
  uint64_t state[2];
  memcpy(state, call->in[0], sizeof(state));
  tn_random_bits(call->pool, self->result.type.dtype, state,
                 tn_type_element_count(&self->result.type), call->out[0]);
  return TN_OK;
}

static bool prepare_random_bits(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                                tn_whole_t* out) {
  if (!prepare_dynamic_slice(arena, step, thread_count, out)) return false;
  out->run = run_random_bits;
  return true;
}

const tn_whole_adapter_t tn_whole_movement[] = {
    {TN_OP_PAD, NULL, prepare_pad, tn_whole_any_view, true, NULL},
    {TN_OP_CONCAT, NULL, prepare_concat, tn_whole_any_view, true, NULL},
    {TN_OP_DYNAMIC_SLICE, NULL, prepare_dynamic_slice, tn_whole_any_view, true, NULL},
    {TN_OP_DYNAMIC_UPDATE_SLICE, NULL, prepare_dynamic_update, tn_whole_any_view, true, NULL},
    {TN_OP_RNG_BITS, NULL, prepare_random_bits, NULL, false, NULL},
    {TN_OP_COUNT, NULL, NULL, NULL, false, NULL},
};
