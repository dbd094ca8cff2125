// Adapter of dot_general.
#include <string.h>

#include "driver/sim/whole.h"
#include "kernels/gemm.h"

// ---- dot_general --------------------------------------------------------------------------------------------------

// The dimensions of one operand in three groups.
typedef struct dot_side {
  int batch_count, free_count, contract_count;
  int64_t batch[TN_MAX_RANK], free[TN_MAX_RANK], contract[TN_MAX_RANK];
} dot_side_t;

static void split_side(const tn_node_t* node, int operand, dot_side_t* out) {
  memset(out, 0, sizeof(*out));
  int64_t batch_count = 0, contract_count = 0;
  const int64_t* batch =
      tn_node_ints(node, operand ? TN_ATTR_RHS_BATCH : TN_ATTR_LHS_BATCH, &batch_count);
  const int64_t* contract =
      tn_node_ints(node, operand ? TN_ATTR_RHS_CONTRACT : TN_ATTR_LHS_CONTRACT, &contract_count);
  bool is_taken[TN_MAX_RANK] = {false};
  for (int64_t i = 0; i < batch_count; ++i) {
    out->batch[out->batch_count++] = batch[i];
    is_taken[batch[i]] = true;
  }
  for (int64_t i = 0; i < contract_count; ++i) {
    out->contract[out->contract_count++] = contract[i];
    is_taken[contract[i]] = true;
  }
  for (int d = 0; d < node->operands[operand]->types[0].rank; ++d)
    if (!is_taken[d]) out->free[out->free_count++] = d;
}

// One stride for a group of dimensions, if memory walks them in order.
static bool merge_group(const tn_plan_view_t* view, int count, const int64_t* dims,
                        int64_t* out_extent, int64_t* out_stride) {
  *out_extent = 1;
  *out_stride = 0;
  bool is_first = true;
  for (int i = count - 1; i >= 0; --i) {
    const int64_t extent = view->type.dims[dims[i]], stride = view->strides[dims[i]];
    if (extent == 1) continue;
    if (is_first) {
      *out_stride = stride;
      is_first = false;
    } else if (stride != *out_stride * *out_extent) {
      return false;
    }
    *out_extent *= extent;
  }
  return true;
}

static bool dot_takes_view(const tn_node_t* node, int operand, const tn_plan_view_t* view) {
  dot_side_t side;
  int64_t extent, stride;
  split_side(node, operand, &side);
  return merge_group(view, side.contract_count, side.contract, &extent, &stride) &&
         merge_group(view, side.free_count, side.free, &extent, &stride);
}

static bool are_neighbours(int count, const int64_t* dims) {
  for (int i = 1; i < count; ++i)
    if (dims[i] != dims[i - 1] + 1) return false;
  return true;
}

bool tn_whole_dot_fits_any_layout(const tn_node_t* node) {
  for (int operand = 0; operand < 2; ++operand) {
    dot_side_t side;
    split_side(node, operand, &side);
    if (!are_neighbours(side.contract_count, side.contract) ||
        !are_neighbours(side.free_count, side.free))
      return false;
  }
  return true;
}

typedef struct dot {
  tn_gemm_t gemm;
  bool has_bias;
} dot_t;

static tn_status_t run_dot(const void* record, const tn_whole_call_t* call) {
  const dot_t* self = record;
  tn_gemm_t gemm = self->gemm;
  gemm.a = call->in[0];
  gemm.b = call->in[1];
  gemm.c = call->out[0];
  if (self->has_bias) {
    gemm.bias = call->addend;
  } else {
    gemm.addend = call->addend;
  }
  tn_gemm_run(&gemm, call->pool, call->workspace);
  return TN_OK;
}

// Strides of a group of result dimensions starting at |first|.
static bool merge_result(const tn_plan_view_t* view, int first, int count, int64_t* out_stride) {
  int64_t dims[TN_MAX_RANK], extent;
  for (int i = 0; i < count; ++i) dims[i] = first + i;
  return merge_group(view, count, dims, &extent, out_stride);
}

static bool prepare_dot(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                        tn_whole_t* out) {
  dot_t* self = TN_ARENA_NEW(arena, dot_t);
  if (!self) return false;
  tn_gemm_t* gemm = &self->gemm;
  const tn_node_t* node = step->node;
  const tn_plan_view_t *a = &step->operands[0], *b = &step->operands[1], *c = &step->results[0];
  dot_side_t lhs, rhs;
  split_side(node, 0, &lhs);
  split_side(node, 1, &rhs);
  gemm->dtype = a->type.dtype;
  gemm->out_dtype = c->type.dtype;
  if (!tn_gemm_supports(gemm->dtype, gemm->out_dtype)) return false;
  int64_t k_again;
  if (!merge_group(a, lhs.free_count, lhs.free, &gemm->m, &gemm->a_row) ||
      !merge_group(a, lhs.contract_count, lhs.contract, &gemm->k, &gemm->a_col) ||
      !merge_group(b, rhs.free_count, rhs.free, &gemm->n, &gemm->b_col) ||
      !merge_group(b, rhs.contract_count, rhs.contract, &k_again, &gemm->b_row) ||
      !merge_result(c, lhs.batch_count, lhs.free_count, &gemm->c_row) ||
      !merge_result(c, lhs.batch_count + lhs.free_count, rhs.free_count, &gemm->c_col))
    return false;
  const tn_plan_view_t* addend = step->has_addend ? &step->addend : NULL;
  if (addend &&
      (!merge_result(addend, lhs.batch_count, lhs.free_count, &gemm->addend_row) ||
       !merge_result(addend, lhs.batch_count + lhs.free_count, rhs.free_count, &gemm->addend_col)))
    return false;
  // Batch dimensions of extent 1 vanish; neighbours merge where all sides agree.
  int64_t addend_or_zero;
  for (int i = 0; i < lhs.batch_count; ++i) {
    const int64_t extent = a->type.dims[lhs.batch[i]];
    if (extent == 1) continue;
    const int64_t as = a->strides[lhs.batch[i]], bs = b->strides[rhs.batch[i]], cs = c->strides[i];
    addend_or_zero = addend ? addend->strides[i] : 0;
    const int last = gemm->batch_rank - 1;
    if (last >= 0 && gemm->a_batch[last] == as * extent && gemm->b_batch[last] == bs * extent &&
        gemm->c_batch[last] == cs * extent && gemm->addend_batch[last] == addend_or_zero * extent) {
      gemm->batch_dims[last] *= extent;
      gemm->a_batch[last] = as;
      gemm->b_batch[last] = bs;
      gemm->c_batch[last] = cs;
      gemm->addend_batch[last] = addend_or_zero;
      continue;
    }
    if (gemm->batch_rank == TN_GEMM_BATCH) return false;
    gemm->batch_dims[gemm->batch_rank] = extent;
    gemm->a_batch[gemm->batch_rank] = as;
    gemm->b_batch[gemm->batch_rank] = bs;
    gemm->c_batch[gemm->batch_rank] = cs;
    gemm->addend_batch[gemm->batch_rank] = addend_or_zero;
    ++gemm->batch_rank;
  }
  if (addend) {
    gemm->beta = 1;
    bool is_bias = gemm->addend_row == 0;
    for (int i = 0; i < gemm->batch_rank; ++i) is_bias = is_bias && gemm->addend_batch[i] == 0;
    if (is_bias) {
      self->has_bias = true;
      gemm->bias_stride = gemm->addend_col;
    }
  }
  out->run = run_dot;
  out->record = self;
  out->workspace = tn_gemm_workspace(gemm, thread_count);
  int64_t batch = 1;
  for (int i = 0; i < gemm->batch_rank; ++i) batch *= gemm->batch_dims[i];
  out->flops = 2 * batch * gemm->m * gemm->n * gemm->k;
  return true;
}

static bool dot_supported(const tn_node_t* node) {
  return tn_gemm_supports(node->operands[0]->types[0].dtype, node->types[0].dtype);
}

const tn_whole_adapter_t tn_whole_contraction[] = {
    {TN_OP_DOT_GENERAL, NULL, prepare_dot, dot_takes_view, false, dot_supported},
    {TN_OP_COUNT, NULL, NULL, NULL, false, NULL},
};
