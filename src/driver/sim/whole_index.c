// Adapters of gather and scatter.
#include <string.h>

#include "driver/sim/whole.h"
#include "kernels/copy.h"
#include "kernels/index.h"

// The common forms run on kernels of their own.
typedef enum form { FORM_GENERAL, FORM_TAKE } form_t;

typedef struct indexed {
  form_t form;
  int dimension;
  tn_bounds_t bounds;
  tn_reduce_kind_t kind;
  tn_gather_dims_t dims;
  int64_t slice[TN_MAX_RANK];
  tn_plan_view_t operand[3], result;
} indexed_t;

static int read_ints(const tn_node_t* node, tn_attr_name_t name, int64_t* out) {
  int64_t count = 0;
  const int64_t* values = tn_node_ints(node, name, &count);
  if (values) memcpy(out, values, sizeof(*out) * (size_t)count);
  return (int)count;
}

// gather(x, indices[.., 1]) of whole rows along one dimension, the index dims standing in its place.
static bool is_take(const indexed_t* self, int rank, int index_rank) {
  const tn_gather_dims_t* dims = &self->dims;
  if (dims->collapsed_count != 1 || dims->batching_count || dims->map_count != 1 ||
      dims->map[0] != dims->collapsed[0])
    return false;
  const int at = (int)dims->map[0];
  // The index vector's dimension is implicit or a last one of extent 1.
  const int shown = dims->index_vector_dim == index_rank ? index_rank : index_rank - 1;
  if (dims->index_vector_dim < index_rank - 1) return false;
  for (int d = 0; d < rank; ++d) {
    if (d == at ? self->slice[d] != 1 : self->slice[d] != self->operand[0].type.dims[d])
      return false;
  }
  for (int k = 0; k < dims->offset_count; ++k)
    if (dims->offset[k] != (k < at ? k : k + shown)) return false;
  return true;
}

static void read_dims(const tn_node_t* node, indexed_t* self) {
  tn_gather_dims_t* dims = &self->dims;
  dims->offset_count = read_ints(node, TN_ATTR_OFFSET_DIMS, dims->offset);
  dims->collapsed_count = read_ints(node, TN_ATTR_COLLAPSED_DIMS, dims->collapsed);
  dims->batching_count = read_ints(node, TN_ATTR_BATCHING_DIMS, dims->batching);
  read_ints(node, TN_ATTR_INDEX_BATCHING_DIMS, dims->index_batching);
  dims->map_count = read_ints(node, TN_ATTR_INDEX_MAP, dims->map);
  dims->index_vector_dim = tn_node_int(node, TN_ATTR_INDEX_VECTOR_DIM, 0);
  self->bounds = (tn_bounds_t)tn_node_int(node, TN_ATTR_BOUNDS, 0);
  self->kind = (tn_reduce_kind_t)tn_node_int(node, TN_ATTR_KIND, 0);
}

static tn_status_t run_gather(const void* record, const tn_whole_call_t* call) {
  const indexed_t* self = record;
  const tn_view_t x = tn_whole_view(&self->operand[0], call->in[0]);
  const tn_view_t indices = tn_whole_view(&self->operand[1], call->in[1]);
  const tn_view_t out = tn_whole_view(&self->result, call->out[0]);
  if (self->form == FORM_TAKE)
    return tn_index_take(call->pool, &x, &indices, self->dimension, self->bounds, &out);
  return tn_index_gather(call->pool, &x, &indices, &self->dims, self->slice, self->bounds, &out);
}

static bool prepare_gather(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                           tn_whole_t* out) {
  (void)thread_count;
  indexed_t* self = TN_ARENA_NEW(arena, indexed_t);
  if (!self) return false;
  read_dims(step->node, self);
  read_ints(step->node, TN_ATTR_SIZES, self->slice);
  self->operand[0] = step->operands[0];
  self->operand[1] = step->operands[1];
  self->result = step->results[0];
  if (is_take(self, self->operand[0].type.rank, self->operand[1].type.rank)) {
    self->form = FORM_TAKE;
    self->dimension = (int)self->dims.map[0];
    if (self->dims.index_vector_dim < self->operand[1].type.rank) --self->operand[1].type.rank;
  }
  *out = (tn_whole_t){.run = run_gather, .record = self};
  return true;
}

static tn_status_t run_scatter(const void* record, const tn_whole_call_t* call) {
  const indexed_t* self = record;
  const tn_view_t x = tn_whole_view(&self->operand[0], call->in[0]);
  const tn_view_t indices = tn_whole_view(&self->operand[1], call->in[1]);
  const tn_view_t updates = tn_whole_view(&self->operand[2], call->in[2]);
  const tn_view_t out = tn_whole_view(&self->result, call->out[0]);
  if (call->in[0] != call->out[0]) tn_copy_strided(call->pool, &x, &out);
  if (self->form == FORM_TAKE)
    return tn_index_put(call->pool, &indices, &updates, self->dimension, self->kind, self->bounds,
                        &out);
  return tn_index_scatter(call->pool, &indices, &updates, &self->dims, self->kind, self->bounds,
                          &out);
}

static bool prepare_scatter(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                            tn_whole_t* out) {
  (void)thread_count;
  indexed_t* self = TN_ARENA_NEW(arena, indexed_t);
  if (!self) return false;
  read_dims(step->node, self);
  for (int i = 0; i < 3; ++i) self->operand[i] = step->operands[i];
  self->result = step->results[0];
  for (int d = 0; d < self->result.type.rank; ++d)
    self->slice[d] = d == (int)self->dims.collapsed[0] && self->dims.collapsed_count == 1
                         ? 1
                         : self->result.type.dims[d];
  if (is_take(self, self->operand[0].type.rank, self->operand[1].type.rank)) {
    self->form = FORM_TAKE;
    self->dimension = (int)self->dims.map[0];
    if (self->dims.index_vector_dim < self->operand[1].type.rank) --self->operand[1].type.rank;
  }
  *out = (tn_whole_t){.run = run_scatter, .record = self};
  return true;
}

const tn_whole_adapter_t tn_whole_index[] = {
    {TN_OP_GATHER, NULL, prepare_gather, tn_whole_any_view, true, NULL},
    {TN_OP_SCATTER, NULL, prepare_scatter, tn_whole_any_view, true, NULL},
    {TN_OP_COUNT, NULL, NULL, NULL, false, NULL},
};
