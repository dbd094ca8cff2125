// From the fused graph to steps and buffers.
#include "compile/plan.h"

#include <string.h>

#include "compile/fuse.h"
#include "compile/kernel_builder.h"
#include "compile/passes.h"

enum {
  MERGE_WINDOW = 32,  // stored nodes looked at for a common kernel
  MERGE_ROOTS = 6,
  MERGE_READS = 48,
  READY_STEPS = 256,  // nodes visited before a candidate is given up
};

typedef struct reads {
  int count;
  const tn_node_t* node[MERGE_READS];
} reads_t;

typedef struct planner {
  tn_graph_t* graph;
  const tn_plan_target_t* target;
  tn_arena_t* arena;
  tn_plan_t* plan;
  tn_fusion_t fusion;
  tn_plan_view_t** views;  // by node id: where a stored node lies; NULL before its step
  uint32_t view_capacity;
  int32_t* result_of;  // by node id: first result with this node, or -1
  uint32_t* stored;    // ids of stored nodes, ascending
  int stored_count;
} planner_t;

static tn_status_t materialise(planner_t* p, const tn_node_t* node);

static tn_status_t out_of_memory(void) {
  return TN_ERROR(TN_RESOURCE_EXHAUSTED, "plan: out of host memory");
}

static bool is_movement(const tn_node_t* node) {
  const int fusion = tn_op_info(node->op)->fusion;
  return fusion == TN_FUSION_BROADCAST || fusion == TN_FUSION_INJECTIVE;
}

// ---- buffers and views ------------------------------------------------------------------------------------------

static int add_buffer(planner_t* p, tn_buffer_kind_t kind, int index, int64_t size) {
  tn_plan_t* plan = p->plan;
  if (plan->buffer_count == plan->buffer_capacity) {
    const int capacity = plan->buffer_capacity ? plan->buffer_capacity * 2 : 32;
    tn_plan_buffer_t* grown = TN_ARENA_ARRAY(p->arena, tn_plan_buffer_t, capacity);
    if (!grown) return -1;
    if (plan->buffer_count)
      memcpy(grown, plan->buffers, sizeof(*grown) * (size_t)plan->buffer_count);
    plan->buffers = grown;
    plan->buffer_capacity = capacity;
  }
  plan->buffers[plan->buffer_count] = (tn_plan_buffer_t){
      .kind = kind, .index = index, .size = size, .first_step = -1, .last_step = -1};
  return plan->buffer_count++;
}

static tn_status_t add_step(planner_t* p, tn_step_kind_t kind, tn_step_t** out_step) {
  tn_plan_t* plan = p->plan;
  if (plan->step_count == plan->step_capacity) {
    const int capacity = plan->step_capacity ? plan->step_capacity * 2 : 32;
    tn_step_t** grown = TN_ARENA_ARRAY(p->arena, tn_step_t*, capacity);
    if (!grown) return out_of_memory();
    if (plan->step_count) memcpy(grown, plan->steps, sizeof(*grown) * (size_t)plan->step_count);
    plan->steps = grown;
    plan->step_capacity = capacity;
  }
  *out_step = TN_ARENA_NEW(p->arena, tn_step_t);
  if (!*out_step) return out_of_memory();
  (*out_step)->kind = kind;
  plan->steps[plan->step_count++] = *out_step;
  return TN_OK;
}

// Node tables grow with the graph: the planner itself adds reshaped operands.
static tn_status_t set_view(planner_t* p, const tn_node_t* node, const tn_plan_view_t* view) {
  if (node->id >= p->view_capacity) {
    const uint32_t capacity = node->id * 2 + 64;
    tn_plan_view_t** grown = TN_ARENA_ARRAY(p->arena, tn_plan_view_t*, capacity);
    if (!grown) return out_of_memory();
    memcpy(grown, p->views, sizeof(*grown) * p->view_capacity);
    p->views = grown;
    p->view_capacity = capacity;
  }
  p->views[node->id] = tn_arena_copy(p->arena, view, sizeof(*view));
  return p->views[node->id] ? TN_OK : out_of_memory();
}

static bool is_result(const planner_t* p, const tn_node_t* node) {
  return node->id < p->fusion.node_count && p->result_of[node->id] >= 0;
}

static bool new_temporary(planner_t* p, const tn_type_t* type, tn_plan_view_t* out_view) {
  memset(out_view, 0, sizeof(*out_view));
  out_view->type = *type;
  tn_contiguous_strides(type, out_view->strides);
  out_view->buffer = add_buffer(p, TN_BUFFER_TEMPORARY, 0,
                                tn_type_element_count(type) * (int64_t)tn_dtype_size(type->dtype));
  return out_view->buffer >= 0;
}

static int buffer_of(planner_t* p, tn_buffer_kind_t kind, int index) {
  for (int i = 0; i < p->plan->buffer_count; ++i)
    if (p->plan->buffers[i].kind == kind && p->plan->buffers[i].index == index) return i;
  return add_buffer(p, kind, index, 0);
}

static bool apply_movement(const tn_node_t* node, const tn_plan_view_t* from, tn_plan_view_t* out) {
  int64_t count = 0;
  tn_plan_view_t view = *from;
  view.type = node->types[0];
  memset(view.strides, 0, sizeof(view.strides));
  switch (node->op) {
    case TN_OP_RESHAPE: return tn_plan_view_reshape(from, &node->types[0], out);
    case TN_OP_BROADCAST_IN_DIM: {
      const int64_t* dims = tn_node_ints(node, TN_ATTR_DIMENSIONS, &count);
      for (int i = 0; i < from->type.rank; ++i)
        view.strides[dims[i]] = from->type.dims[i] == 1 ? 0 : from->strides[i];
      break;
    }
    case TN_OP_TRANSPOSE: {
      const int64_t* permutation = tn_node_ints(node, TN_ATTR_DIMENSIONS, &count);
      for (int i = 0; i < view.type.rank; ++i) view.strides[i] = from->strides[permutation[i]];
      break;
    }
    case TN_OP_SLICE: {
      const int64_t* start = tn_node_ints(node, TN_ATTR_START, &count);
      const int64_t* step = tn_node_ints(node, TN_ATTR_STRIDE, &count);
      for (int i = 0; i < view.type.rank; ++i) {
        view.offset += start[i] * from->strides[i];
        view.strides[i] = from->strides[i] * (step ? step[i] : 1);
      }
      break;
    }
    case TN_OP_REVERSE: {
      const int64_t* dims = tn_node_ints(node, TN_ATTR_DIMENSIONS, &count);
      memcpy(view.strides, from->strides, sizeof(view.strides));
      for (int64_t k = 0; k < count; ++k) {
        if (from->type.dims[dims[k]] > 0)
          view.offset += (from->type.dims[dims[k]] - 1) * from->strides[dims[k]];
        view.strides[dims[k]] = -from->strides[dims[k]];
      }
      break;
    }
    default: return false;
  }
  *out = view;
  return true;
}

static bool find_view(void* context, const tn_node_t* node, tn_plan_view_t* out_view) {
  planner_t* p = context;
  if (node->id < p->view_capacity && p->views[node->id]) {
    *out_view = *p->views[node->id];
    return true;
  }
  if (node->op == TN_OP_PARAM) {
    memset(out_view, 0, sizeof(*out_view));
    out_view->type = node->types[0];
    out_view->buffer = buffer_of(p, TN_BUFFER_PARAM, (int)tn_node_int(node, TN_ATTR_INDEX, 0));
    const int64_t* strides = tn_param_strides(node);
    if (strides) {
      memcpy(out_view->strides, strides, sizeof(int64_t) * (size_t)node->types[0].rank);
    } else {
      tn_contiguous_strides(&node->types[0], out_view->strides);
    }
    return out_view->buffer >= 0;
  }
  tn_scalar_t splat;
  if (node->op == TN_OP_CONST && !tn_node_splat(node, &splat)) {
    memset(out_view, 0, sizeof(*out_view));
    out_view->type = node->types[0];
    tn_contiguous_strides(&node->types[0], out_view->strides);
    const tn_attr_t* value = tn_node_attr(node, TN_ATTR_VALUE);
    out_view->buffer = add_buffer(p, TN_BUFFER_CONSTANT, -1, value->count);
    if (out_view->buffer < 0) return false;
    p->plan->buffers[out_view->buffer].data = value->as.bytes;
    tn_status_free(set_view(p, node, out_view));
    return true;
  }
  if (!is_movement(node)) return false;
  tn_plan_view_t from;
  return find_view(context, node->operands[0], &from) && apply_movement(node, &from, out_view);
}

static tn_status_t copy_step(planner_t* p, const tn_plan_view_t* from, const tn_plan_view_t* to) {
  tn_step_t* step;
  TN_TRY(add_step(p, TN_STEP_COPY, &step));
  step->from = *from;
  step->to = *to;
  return TN_OK;
}

static tn_status_t make_contiguous(planner_t* p, tn_plan_view_t* view) {
  tn_plan_view_t copy;
  if (!new_temporary(p, &view->type, &copy)) return out_of_memory();
  TN_TRY(copy_step(p, view, &copy));
  *view = copy;
  return TN_OK;
}

// The view of |node|, which is put in memory if it is not there yet.
static tn_status_t ensure_view(planner_t* p, const tn_node_t* node, tn_plan_view_t* out_view) {
  if (find_view(p, node, out_view)) return TN_OK;
  if (is_movement(node)) {
    tn_plan_view_t from;
    TN_TRY(ensure_view(p, node->operands[0], &from));
    if (apply_movement(node, &from, out_view)) return TN_OK;
    TN_TRY(make_contiguous(p, &from));
    if (apply_movement(node, &from, out_view)) return set_view(p, node, out_view);
    return TN_ERROR(TN_INTERNAL, "plan: %s of row-major memory is not a view",
                    tn_op_info(node->op)->name);
  }
  TN_TRY(materialise(p, node));
  if (find_view(p, node, out_view)) return TN_OK;
  return TN_ERROR(TN_INTERNAL, "plan: %s has no place in memory", tn_op_info(node->op)->name);
}

// Where |node| is to be stored: its result's buffer, or a temporary.
static tn_status_t target_view(planner_t* p, const tn_node_t* node, bool takes_strides,
                               tn_plan_view_t* out_view) {
  if (is_result(p, node)) {
    const int index = p->result_of[node->id];
    const tn_graph_result_t* result = tn_graph_result_at(p->graph, index);
    if (takes_strides || result->is_contiguous) {
      memset(out_view, 0, sizeof(*out_view));
      out_view->type = node->types[0];
      memcpy(out_view->strides, result->strides, sizeof(out_view->strides));
      out_view->buffer = buffer_of(p, TN_BUFFER_RESULT, index);
      return out_view->buffer < 0 ? out_of_memory() : TN_OK;
    }
  }
  return new_temporary(p, &node->types[0], out_view) ? TN_OK : out_of_memory();
}

// ---- steps --------------------------------------------------------------------------------------------------

// The only user of a contraction's value, if it is an addition that the driver can do on its tile.
static const tn_node_t* find_addend(planner_t* p, const tn_node_t* node,
                                    tn_plan_view_t* out_addend) {
  if (tn_op_info(node->op)->fusion != TN_FUSION_CONTRACTION || is_result(p, node)) return NULL;
  const tn_node_t* user = NULL;
  for (int s = 0; s < p->stored_count; ++s) {
    const uint32_t id = p->stored[s];
    if (id <= node->id || !p->fusion.is_live[id]) continue;
    const tn_node_t* candidate = tn_graph_node_at(p->graph, id);
    if (candidate->op == TN_OP_ADD &&
        (candidate->operands[0] == node || candidate->operands[1] == node)) {
      user = candidate;
      break;
    }
  }
  if (!user || user->operands[0] == user->operands[1]) return NULL;
  for (uint32_t id = node->id + 1; id < p->fusion.node_count; ++id) {
    if (!p->fusion.is_live[id] || id == user->id) continue;
    const tn_node_t* other = tn_graph_node_at(p->graph, id);
    for (int i = 0; i < other->operand_count; ++i)
      if (other->operands[i] == node) return NULL;
  }
  const tn_node_t* addend = user->operands[user->operands[0] == node];
  if (!find_view(p, addend, out_addend)) return NULL;
  if (p->plan->buffers[out_addend->buffer].kind == TN_BUFFER_PARAM) {
    const tn_node_t* base = addend;
    while (is_movement(base)) base = base->operands[0];
    if (tn_param_is_scalar(base)) return NULL;
  }
  return p->target->takes_addend(node, out_addend) ? user : NULL;
}

static tn_status_t plan_whole(planner_t* p, const tn_node_t* node) {
  if (node->op == TN_OP_RESULT) return materialise(p, node->operands[0]);
  tn_node_step_t whole = {
      .node = node, .operand_count = node->operand_count, .result_count = node->result_count};
  whole.operands = TN_ARENA_ARRAY(p->arena, tn_plan_view_t, node->operand_count + 1);
  whole.results = TN_ARENA_ARRAY(p->arena, tn_plan_view_t, node->result_count + 1);
  if (!whole.operands || !whole.results) return out_of_memory();
  for (int i = 0; i < node->operand_count; ++i) {
    TN_TRY(ensure_view(p, node->operands[i], &whole.operands[i]));
    if (!tn_plan_view_is_contiguous(&whole.operands[i]) &&
        !p->target->takes_view(node, i, &whole.operands[i]))
      TN_TRY(make_contiguous(p, &whole.operands[i]));
  }
  const bool writes_strides = p->target->writes_strides(node);
  const tn_node_t* user = node->result_count == 1 ? find_addend(p, node, &whole.addend) : NULL;
  const tn_node_t* stored = user ? user : node;
  whole.has_addend = user != NULL;
  if (node->result_count == 1) {
    TN_TRY(target_view(p, stored, writes_strides, &whole.results[0]));
    TN_TRY(set_view(p, stored, &whole.results[0]));
  } else {
    // Results of a node with several are reached through RESULT nodes, which the graph hash-conses.
    for (int r = 0; r < node->result_count; ++r) {
      const tn_node_t* result = tn_result(p->graph, node, r);
      if (!result) return tn_graph_status(p->graph);
      TN_TRY(target_view(p, result, writes_strides, &whole.results[r]));
      TN_TRY(set_view(p, result, &whole.results[r]));
    }
    TN_TRY(set_view(p, node, &whole.results[0]));
  }
  tn_step_t* step;
  TN_TRY(add_step(p, TN_STEP_NODE, &step));
  step->node = whole;
  return TN_OK;
}

// Builds one kernel, putting in memory first what the builder asks for.
static tn_status_t build_kernel(planner_t* p, tn_kernel_request_t* request, bool* out_is_possible) {
  request->graph = p->graph;
  request->arena = p->arena;
  request->memory = (tn_memory_map_t){.context = p, .find = find_view};
  *out_is_possible = true;
  for (;;) {
    tn_kernel_step_t kernel;
    const tn_node_t* blame = NULL;
    const tn_build_result_t result = tn_kernel_build(request, &kernel, &blame);
    if (result == TN_BUILD_NO_MEMORY) return out_of_memory();
    if (result == TN_BUILD_OK) {
      tn_step_t* step;
      TN_TRY(add_step(p, TN_STEP_KERNEL, &step));
      step->kernel = kernel;
      return TN_OK;
    }
    for (int r = 0; r < request->root_count; ++r)
      if (blame == request->roots[r]) blame = NULL;
    tn_plan_view_t view;
    if (result == TN_BUILD_IMPOSSIBLE || !blame) {
      *out_is_possible = false;
      return TN_OK;
    }
    if (!find_view(p, blame, &view)) {
      TN_TRY(ensure_view(p, blame, &view));
    } else if (!tn_plan_view_is_contiguous(&view)) {
      TN_TRY(make_contiguous(p, &view));
      TN_TRY(set_view(p, blame, &view));
    } else {
      *out_is_possible = false;
      return TN_OK;
    }
  }
}

// True if everything |node| inlines is in memory, or is one of |roots| reached elementwise only.
static bool is_ready(planner_t* p, const tn_node_t* node, const tn_node_t* const* roots,
                     int root_count, bool is_elementwise, bool is_root, int* budget) {
  tn_plan_view_t view;
  for (int r = 0; r < root_count; ++r)
    if (roots[r] == node) return is_elementwise;
  if (--*budget < 0) return false;
  tn_scalar_t splat;
  if (node->op == TN_OP_PARAM || node->op == TN_OP_IOTA || tn_node_splat(node, &splat)) return true;
  if (find_view(p, node, &view)) return true;
  if (!is_root && node->id < p->fusion.node_count && p->fusion.storing[node->id]) return false;
  if (is_movement(node)) {
    is_elementwise = false;
  } else if (!tn_kernel_can_compute(node)) {
    return false;
  }
  for (int i = 0; i < node->operand_count; ++i)
    if (!is_ready(p, node->operands[i], roots, root_count, is_elementwise, false, budget))
      return false;
  return true;
}

// What |node| reads from memory once it is computed in one kernel, and |node| itself.
static void collect_reads(planner_t* p, const tn_node_t* node, bool is_root, reads_t* reads) {
  tn_plan_view_t view;
  tn_scalar_t splat;
  if (reads->count == MERGE_READS || (node->op == TN_OP_PARAM && tn_param_is_scalar(node)) ||
      node->op == TN_OP_IOTA || tn_node_splat(node, &splat))
    return;
  for (int i = 0; i < reads->count; ++i)
    if (reads->node[i] == node) return;
  const bool is_read =
      !is_root && ((node->id < p->fusion.node_count && p->fusion.storing[node->id]) ||
                   node->op == TN_OP_PARAM || (!is_movement(node) && find_view(p, node, &view)));
  if (is_root || is_read) reads->node[reads->count++] = node;
  if (is_read) return;
  for (int i = 0; i < node->operand_count; ++i) collect_reads(p, node->operands[i], false, reads);
}

static bool reads_in_common(const reads_t* a, const reads_t* b) {
  for (int i = 0; i < a->count; ++i)
    for (int j = 0; j < b->count; ++j)
      if (a->node[i] == b->node[j]) return true;
  return false;
}

// Other stored nodes over the same points whose inputs are ready: one kernel computes them together. They must have an
// input in common: equal sizes alone may be an accident, such as a batch of as many rows as there are channels.
static int gather_roots(planner_t* p, const tn_node_t* first, const tn_node_t** roots) {
  int count = 1, seen = 0;
  roots[0] = first;
  if (!tn_kernel_can_compute(first)) return 1;
  reads_t reads = {.count = 0}, others;
  collect_reads(p, first, true, &reads);
  for (int s = 0; s < p->stored_count && seen < MERGE_WINDOW && count < MERGE_ROOTS; ++s) {
    if (p->stored[s] <= first->id) continue;
    ++seen;
    const tn_node_t* node = tn_graph_node_at(p->graph, p->stored[s]);
    if (p->views[node->id] || !tn_kernel_can_compute(node) ||
        node->types[0].rank != first->types[0].rank ||
        memcmp(node->types[0].dims, first->types[0].dims,
               sizeof(int64_t) * (size_t)first->types[0].rank))
      continue;
    int budget = READY_STEPS;
    if (!is_ready(p, node, roots, count, true, true, &budget)) continue;
    others.count = 0;
    collect_reads(p, node, true, &others);
    if (!reads_in_common(&reads, &others)) continue;
    roots[count++] = node;
    for (int i = 0; i < others.count && reads.count < MERGE_READS; ++i)
      reads.node[reads.count++] = others.node[i];
  }
  return count;
}

static tn_status_t plan_kernel(planner_t* p, const tn_node_t* node, bool* out_is_possible) {
  const tn_node_t* roots[MERGE_ROOTS];
  tn_plan_view_t targets[MERGE_ROOTS];
  for (int count = gather_roots(p, node, roots); count > 0; count = count > 1 ? 1 : 0) {
    for (int r = 0; r < count; ++r) TN_TRY(target_view(p, roots[r], true, &targets[r]));
    tn_kernel_request_t request = {.root_count = count, .roots = roots, .targets = targets};
    TN_TRY(build_kernel(p, &request, out_is_possible));
    if (*out_is_possible) {
      for (int r = 0; r < count; ++r) TN_TRY(set_view(p, roots[r], &targets[r]));
      return TN_OK;
    }
  }
  return TN_OK;
}

static tn_status_t materialise(planner_t* p, const tn_node_t* node) {
  if (node->id < p->view_capacity && p->views[node->id]) return TN_OK;
  if (node->op == TN_OP_RESULT || tn_fuse_is_whole(node)) return plan_whole(p, node);
  bool is_possible;
  TN_TRY(plan_kernel(p, node, &is_possible));
  if (is_possible) return TN_OK;
  if (!is_movement(node)) return plan_whole(p, node);
  tn_plan_view_t from, to;
  TN_TRY(ensure_view(p, node->operands[0], &from));
  tn_plan_view_t moved;
  if (!apply_movement(node, &from, &moved)) {
    TN_TRY(make_contiguous(p, &from));
    if (!apply_movement(node, &from, &moved))
      return TN_ERROR(TN_INTERNAL, "plan: movement without a view");
  }
  TN_TRY(target_view(p, node, true, &to));
  TN_TRY(copy_step(p, &moved, &to));
  return set_view(p, node, &to);
}

// ---- results ------------------------------------------------------------------------------------------------

static tn_status_t plan_results(planner_t* p) {
  for (int r = 0; r < tn_graph_result_count(p->graph); ++r) {
    const tn_graph_result_t* result = tn_graph_result_at(p->graph, r);
    tn_plan_view_t from, to = {.type = result->node->types[0]};
    TN_TRY(ensure_view(p, result->node, &from));
    to.buffer = buffer_of(p, TN_BUFFER_RESULT, r);
    if (to.buffer < 0) return out_of_memory();
    if (from.buffer == to.buffer) continue;
    memcpy(to.strides, result->strides, sizeof(to.strides));
    TN_TRY(copy_step(p, &from, &to));
  }
  return TN_OK;
}

// Calls |visit| for every buffer that step |step| reads or writes.
typedef void (*visit_fn_t)(void* context, int step, int buffer, bool is_write);
static void visit_buffers(const tn_plan_t* plan, int index, visit_fn_t visit, void* context) {
  const tn_step_t* step = plan->steps[index];
  if (step->kind == TN_STEP_COPY) {
    visit(context, index, step->from.buffer, false);
    visit(context, index, step->to.buffer, true);
  } else if (step->kind == TN_STEP_KERNEL) {
    const tn_kernel_step_t* kernel = &step->kernel;
    for (int k = 0; k < kernel->program->operand_count; ++k)
      if (kernel->operands[k].buffer >= 0)
        visit(context, index, kernel->operands[k].buffer,
              kernel->program->operand[k].kind == TN_OPERAND_OUTPUT);
  } else {
    for (int i = 0; i < step->node.operand_count; ++i)
      visit(context, index, step->node.operands[i].buffer, false);
    if (step->node.has_addend) visit(context, index, step->node.addend.buffer, false);
    for (int i = 0; i < step->node.result_count; ++i)
      visit(context, index, step->node.results[i].buffer, true);
  }
}

typedef struct hazard {
  const tn_plan_t* plan;
  int result_buffer, param;  // param -1: any parameter
  int write_step;
  bool is_found;
} hazard_t;

// In the step that writes the result, the parameter may be read only where the result is written.
static bool reads_same_place(const tn_step_t* step, int read_buffer, int write_buffer) {
  if (step->kind != TN_STEP_KERNEL) return false;
  const tn_kernel_step_t* kernel = &step->kernel;
  const int loops = kernel->program->loop_count;
  if (kernel->program->phase_count > 1) return false;
  int write = -1;
  for (int k = 0; k < kernel->program->operand_count; ++k)
    if (kernel->operands[k].buffer == write_buffer) write = k;
  for (int k = 0; k < kernel->program->operand_count; ++k)
    if (kernel->operands[k].buffer == read_buffer &&
        (kernel->operands[k].offset != kernel->operands[write].offset ||
         memcmp(kernel->strides + k * loops, kernel->strides + write * loops,
                sizeof(int64_t) * (size_t)loops)))
      return false;
  return write >= 0;
}

static void find_write(void* context, int step, int buffer, bool is_write) {
  hazard_t* hazard = context;
  if (is_write && buffer == hazard->result_buffer && hazard->write_step < 0)
    hazard->write_step = step;
}

static void find_hazard(void* context, int step, int buffer, bool is_write) {
  hazard_t* hazard = context;
  const tn_plan_buffer_t* read = &hazard->plan->buffers[buffer];
  if (is_write || read->kind != TN_BUFFER_PARAM ||
      (hazard->param >= 0 && read->index != hazard->param))
    return;
  if (step > hazard->write_step ||
      (step == hazard->write_step &&
       (hazard->param < 0 ||
        !reads_same_place(hazard->plan->steps[step], buffer, hazard->result_buffer))))
    hazard->is_found = true;
}

// Results that share memory with parameters which are still read: written to a temporary, then copied.
static tn_status_t plan_aliases(planner_t* p) {
  tn_plan_t* plan = p->plan;
  const int step_count = plan->step_count;
  for (int r = 0; r < tn_graph_result_count(p->graph); ++r) {
    const tn_graph_result_t* result = tn_graph_result_at(p->graph, r);
    if (result->same_as_param < 0 && !result->overlaps_params) continue;
    hazard_t hazard = {.plan = plan,
                       .result_buffer = buffer_of(p, TN_BUFFER_RESULT, r),
                       .param = result->overlaps_params ? -1 : result->same_as_param,
                       .write_step = -1};
    for (int s = 0; s < step_count; ++s) visit_buffers(plan, s, find_write, &hazard);
    if (hazard.write_step < 0) continue;
    for (int s = hazard.write_step; s < step_count && !hazard.is_found; ++s)
      visit_buffers(plan, s, find_hazard, &hazard);
    if (!hazard.is_found) continue;
    const tn_type_t* type = &result->node->types[0];
    int64_t span = 1;
    for (int d = 0; d < type->rank; ++d) span += (type->dims[d] - 1) * result->strides[d];
    tn_plan_buffer_t* buffer = &plan->buffers[hazard.result_buffer];
    buffer->kind = TN_BUFFER_TEMPORARY;
    buffer->index = 0;
    buffer->size =
        tn_type_element_count(type) == 0 ? 0 : span * (int64_t)tn_dtype_size(type->dtype);
    tn_plan_view_t from = {.buffer = hazard.result_buffer, .type = *type}, to;
    memcpy(from.strides, result->strides, sizeof(from.strides));
    to = from;
    to.buffer = add_buffer(p, TN_BUFFER_RESULT, r, 0);
    if (to.buffer < 0) return out_of_memory();
    TN_TRY(copy_step(p, &from, &to));
  }
  return TN_OK;
}

// ---- memory -------------------------------------------------------------------------------------------------

static void note_use(void* context, int step, int buffer, bool is_write) {
  (void)is_write;
  tn_plan_buffer_t* b = &((tn_plan_t*)context)->buffers[buffer];
  if (b->first_step < 0) b->first_step = step;
  b->last_step = step;
}

// Lifetimes to offsets in one block: largest first, each at the lowest place that is free during its life.
static tn_status_t plan_memory(planner_t* p) {
  tn_plan_t* plan = p->plan;
  for (int s = 0; s < plan->step_count; ++s) visit_buffers(plan, s, note_use, plan);
  int* order = TN_ARENA_ARRAY(p->arena, int, plan->buffer_count + 1);
  if (!order) return out_of_memory();
  int count = 0;
  for (int i = 0; i < plan->buffer_count; ++i) {
    if (plan->buffers[i].kind != TN_BUFFER_TEMPORARY || plan->buffers[i].first_step < 0) continue;
    int at = count++;
    for (; at > 0 && plan->buffers[order[at - 1]].size < plan->buffers[i].size; --at)
      order[at] = order[at - 1];
    order[at] = i;
  }
  int* placed = TN_ARENA_ARRAY(p->arena, int, count + 1);  // by offset
  if (!placed) return out_of_memory();
  for (int k = 0; k < count; ++k) {
    tn_plan_buffer_t* buffer = &plan->buffers[order[k]];
    int64_t offset = 0;
    int at = 0;
    for (int j = 0; j < k; ++j) {
      const tn_plan_buffer_t* other = &plan->buffers[placed[j]];
      if (other->last_step < buffer->first_step || other->first_step > buffer->last_step) continue;
      if (offset + buffer->size <= other->offset) break;
      const int64_t end = (other->offset + other->size + 63) & ~(int64_t)63;
      if (end > offset) offset = end;
    }
    buffer->offset = offset;
    while (at < k && plan->buffers[placed[at]].offset <= offset) ++at;
    memmove(placed + at + 1, placed + at, sizeof(int) * (size_t)(k - at));
    placed[at] = order[k];
    if (offset + buffer->size > plan->temporary_bytes)
      plan->temporary_bytes = offset + buffer->size;
  }
  return TN_OK;
}

tn_status_t tn_plan_fused(tn_graph_t* graph, const tn_plan_target_t* target, tn_arena_t* arena,
                          tn_plan_t* out_plan) {
  memset(out_plan, 0, sizeof(*out_plan));
  out_plan->arena = arena;
  planner_t p = {.graph = graph, .target = target, .arena = arena, .plan = out_plan};
  TN_TRY(tn_fuse(graph, target, arena, &p.fusion));
  const uint32_t limit = p.fusion.node_count;
  p.view_capacity = limit + 32;
  p.views = TN_ARENA_ARRAY(arena, tn_plan_view_t*, p.view_capacity);
  p.result_of = TN_ARENA_ARRAY(arena, int32_t, limit + 1);
  p.stored = TN_ARENA_ARRAY(arena, uint32_t, limit + 1);
  if (!p.views || !p.result_of || !p.stored) return out_of_memory();
  memset(p.result_of, 0xff, sizeof(int32_t) * (limit + 1));
  for (int r = tn_graph_result_count(graph) - 1; r >= 0; --r)
    p.result_of[tn_graph_result_at(graph, r)->node->id] = r;
  for (uint32_t id = 0; id < limit; ++id)
    if (p.fusion.is_live[id] && p.fusion.storing[id]) p.stored[p.stored_count++] = id;
  for (int s = 0; s < p.stored_count; ++s)
    TN_TRY(materialise(&p, tn_graph_node_at(graph, p.stored[s])));
  TN_TRY(plan_results(&p));
  TN_TRY(plan_aliases(&p));
  TN_TRY(plan_memory(&p));
  return tn_graph_status(graph);
}
