// One backward pass over the nodes. A value is stored if something needs it in memory: a result, a whole-node step,
// or several kernels that would each have to repeat expensive work. Everything else is inlined.
#include "compile/fuse.h"

#include "compile/kernel_builder.h"

// A node's consumers, as far as the decision needs them.
enum { NO_ROOT = 0, MANY_ROOTS = UINT32_MAX };

typedef struct use {
  uint32_t root;     // id + 1 of the only stored node that inlines this one, NO_ROOT or MANY_ROOTS
  uint32_t count;    // direct consumers
  bool is_repeated;  // a consumer reads every element more than once
} use_t;

static int fusion_class(const tn_node_t* node) { return tn_op_info(node->op)->fusion; }

static bool is_movement(const tn_node_t* node) {
  return fusion_class(node) == TN_FUSION_BROADCAST || fusion_class(node) == TN_FUSION_INJECTIVE;
}

bool tn_fuse_is_whole(const tn_node_t* node) {
  switch (fusion_class(node)) {
    case TN_FUSION_LEAF: return false;
    case TN_FUSION_ELEMENTWISE: return !tn_kernel_can_compute(node);
    case TN_FUSION_BROADCAST:
    case TN_FUSION_INJECTIVE: return false;
    case TN_FUSION_REDUCTION: return node->types[0].dtype > TN_F64;
    default: return true;
  }
}

static bool is_in_memory_already(const tn_node_t* node) {
  tn_scalar_t splat;
  return node->op == TN_OP_PARAM || (node->op == TN_OP_CONST && !tn_node_splat(node, &splat)) ||
         node->op == TN_OP_RESULT;
}

// The value below a chain of movement must be in memory for a step that reads it through a view.
static void store_below(const tn_node_t* node, tn_store_t* storing) {
  while (is_movement(node)) node = node->operands[0];
  if (!is_in_memory_already(node) && !storing[node->id]) storing[node->id] = TN_STORE_OPERAND;
}

// A reduction may be finished inside its only consumer (mean, norms: an epilogue on the reduced value).
static bool reduce_joins_consumer(const use_t* use) {
  return use->count == 1 && use->root != NO_ROOT && use->root != MANY_ROOTS && !use->is_repeated;
}

// A sum of contractions or reductions, with the terms that an unrolled loop had steps (gradients of a recurrent
// weight), is stored after each term: it then has the same kernels for any number of them, mostly none, for a product
// adds to what is there.
static bool is_term(const tn_node_t* node) {
  return node->op == TN_OP_REDUCE || fusion_class(node) == TN_FUSION_CONTRACTION;
}
static bool adds_term(const tn_node_t* node) {
  return node->op == TN_OP_ADD && (is_term(node->operands[0]) || is_term(node->operands[1]));
}
static void store_running_sum(const tn_node_t* node, tn_store_t* storing) {
  if (!adds_term(node)) return;
  for (int i = 0; i < 2; ++i) {
    const tn_node_t* sum = node->operands[i];
    if (adds_term(sum) && !storing[sum->id]) storing[sum->id] = TN_STORE_REDUCTION;
  }
}

static tn_store_t decide(const tn_node_t* node, const use_t* use) {
  if (fusion_class(node) == TN_FUSION_LEAF) return TN_STORE_NOT;
  if (tn_fuse_is_whole(node)) return TN_STORE_WHOLE;
  if (node->op == TN_OP_REDUCE)
    return reduce_joins_consumer(use) ? TN_STORE_NOT : TN_STORE_REDUCTION;
  if (is_movement(node)) return TN_STORE_NOT;
  if (tn_op_info(node->op)->is_cheap && use->count <= 3) return TN_STORE_NOT;
  if (use->root == MANY_ROOTS) return TN_STORE_SHARED;
  return use->is_repeated ? TN_STORE_REPEATED : TN_STORE_NOT;
}

tn_status_t tn_fuse(const tn_graph_t* graph, const tn_plan_target_t* target, tn_arena_t* arena,
                    tn_fusion_t* out_fusion) {
  (void)target;
  const uint32_t limit = tn_graph_node_limit(graph);
  out_fusion->node_count = limit;
  out_fusion->is_live = TN_ARENA_ARRAY(arena, bool, limit);
  out_fusion->storing = TN_ARENA_ARRAY(arena, tn_store_t, limit);
  use_t* uses = TN_ARENA_ARRAY(arena, use_t, limit);
  if (!out_fusion->is_live || !out_fusion->storing || !uses)
    return TN_ERROR(TN_RESOURCE_EXHAUSTED, "fuse: out of host memory");
  tn_store_t* storing = out_fusion->storing;
  for (int r = 0; r < tn_graph_result_count(graph); ++r) {
    const tn_node_t* node = tn_graph_result_at(graph, r)->node;
    out_fusion->is_live[node->id] = true;
    const tn_node_t* base = node;
    while (is_movement(base)) base = base->operands[0];
    // A moved value that is in memory anyway is copied out; otherwise the movement is computed where it is stored.
    if (!is_in_memory_already(base) &&
        (base == node || !(tn_fuse_is_whole(base) || base->op == TN_OP_REDUCE)))
      storing[node->id] = TN_STORE_RESULT;
  }
  for (uint32_t id = limit; id-- > 0;) {
    if (!out_fusion->is_live[id]) continue;
    const tn_node_t* node = tn_graph_node_at(graph, id);
    if (!storing[id]) storing[id] = decide(node, &uses[id]);
    store_running_sum(node, storing);
    const bool is_whole = tn_fuse_is_whole(node);
    // A new dimension counts whatever its extent, so that one of 1 gives the kernels of all others.
    const bool repeats = node->op == TN_OP_BROADCAST_IN_DIM &&
                         (node->types[0].rank > node->operands[0]->types[0].rank ||
                          tn_type_element_count(&node->types[0]) >
                              tn_type_element_count(&node->operands[0]->types[0]));
    const uint32_t root = storing[id] ? id + 1 : uses[id].root;
    for (int i = 0; i < node->operand_count; ++i) {
      const tn_node_t* operand = node->operands[i];
      out_fusion->is_live[operand->id] = true;
      if (is_whole) store_below(operand, storing);
      use_t* use = &uses[operand->id];
      ++use->count;
      use->is_repeated |= repeats || (is_movement(node) && uses[id].is_repeated && !storing[id]);
      use->root = use->root == NO_ROOT || use->root == root ? root : MANY_ROOTS;
      if (is_movement(node) && uses[id].root == MANY_ROOTS) use->root = MANY_ROOTS;
    }
  }
  return TN_OK;
}
