// The graph: memory, the table that makes equal nodes one, parameters and results.
#include <stdlib.h>
#include <string.h>

#include "ir/graph_internal.h"

enum { TN_FIRST_CAPACITY = 64 };

// ---- life -----------------------------------------------------------------------------------------------
tn_status_t tn_graph_create(tn_graph_t** out_graph) {
  *out_graph = NULL;
  tn_graph_t* graph = calloc(1, sizeof *graph);
  if (!graph) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "graph: out of memory");
  tn_arena_init(&graph->arena);
  graph->node_capacity = TN_FIRST_CAPACITY;
  graph->nodes = malloc(sizeof(*graph->nodes) * TN_FIRST_CAPACITY);
  graph->table = calloc(TN_FIRST_CAPACITY * 2, sizeof(*graph->table));
  graph->table_mask = TN_FIRST_CAPACITY * 2 - 1;
  graph->epoch = 1;
  if (!graph->nodes || !graph->table) {
    tn_graph_destroy(graph);
    return TN_ERROR(TN_RESOURCE_EXHAUSTED, "graph: out of memory");
  }
  *out_graph = graph;
  return TN_OK;
}

void tn_graph_destroy(tn_graph_t* graph) {
  if (!graph) return;
  tn_arena_deinit(&graph->arena);
  tn_status_free(graph->status);
  free(graph->nodes);
  free(graph->table);
  free(graph->params);
  free(graph->results);
  free(graph);
}

void tn_graph_reset(tn_graph_t* graph) {
  tn_arena_reset(&graph->arena);
  tn_status_free(graph->status);
  graph->status = TN_OK;
  graph->node_count = 0;
  graph->param_count = graph->result_count = 0;
  if (++graph->epoch == 0) {
    memset(graph->table, 0, ((size_t)graph->table_mask + 1) * sizeof(*graph->table));
    graph->epoch = 1;
  }
}

tn_status_t tn_graph_status(const tn_graph_t* graph) {
  if (!graph->status) return TN_OK;
  return TN_ERROR(tn_status_code(graph->status), "%s", tn_status_message(graph->status));
}

const tn_node_t* tn_graph_fail(tn_graph_t* graph, tn_status_t status) {
  if (graph->status || !status) {
    tn_status_free(status);
  } else {
    graph->status = status;
  }
  return NULL;
}

static void* fail_memory(tn_graph_t* graph) {
  tn_graph_fail(graph, TN_ERROR(TN_RESOURCE_EXHAUSTED, "graph: out of memory"));
  return NULL;
}

void* tn_graph_alloc(tn_graph_t* graph, size_t size) {
  void* memory = tn_arena_alloc(&graph->arena, size);
  return memory ? memory : fail_memory(graph);
}

uint32_t tn_graph_node_limit(const tn_graph_t* graph) { return graph->node_count; }
const tn_node_t* tn_graph_node_at(const tn_graph_t* graph, uint32_t id) { return graph->nodes[id]; }

// ---- equal nodes are one ----------------------------------------------------------------------------------
static inline uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 32;
}

static uint64_t mix_bytes(uint64_t hash, const void* data, size_t size) {
  const uint8_t* bytes = data;
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    hash = mix(hash, word);
  }
  uint64_t rest = 0;
  if (size) memcpy(&rest, bytes, size);
  return size ? mix(hash, rest) : hash;
}

static size_t attr_payload_size(const tn_attr_t* attr) {
  switch (attr->kind) {
    case TN_ATTR_INTS: return (size_t)attr->count * sizeof(int64_t);
    case TN_ATTR_STRING:
    case TN_ATTR_BYTES: return (size_t)attr->count;
    default: return 0;
  }
}

static uint64_t hash_attr(uint64_t hash, const tn_attr_t* attr) {
  hash = mix(hash, (uint64_t)attr->name << 8 | (uint64_t)attr->kind);
  size_t size = attr_payload_size(attr);
  if (attr->kind == TN_ATTR_INT || attr->kind == TN_ATTR_FLOAT)
    return mix(hash, (uint64_t)attr->as.integer);
  return size ? mix_bytes(mix(hash, size), attr->as.bytes, size) : mix(hash, 0);
}

bool tn_attr_equal(const tn_attr_t* a, const tn_attr_t* b) {
  if (a->name != b->name || a->kind != b->kind) return false;
  if (a->kind == TN_ATTR_INT || a->kind == TN_ATTR_FLOAT)
    return a->as.integer == b->as.integer;  // floats by bits
  size_t size = attr_payload_size(a);
  return a->count == b->count && (size == 0 || memcmp(a->as.bytes, b->as.bytes, size) == 0);
}

static bool copy_attr(tn_graph_t* graph, const tn_attr_t* from, tn_attr_t* to) {
  *to = *from;
  if (from->kind == TN_ATTR_INT || from->kind == TN_ATTR_FLOAT) return true;
  size_t size = attr_payload_size(from);
  // One byte more, so that strings end in NUL and empty lists are not NULL.
  uint8_t* copy = tn_arena_alloc(&graph->arena, size + 1);
  if (!copy) return false;
  if (size) memcpy(copy, from->as.bytes, size);
  to->as.bytes = copy;
  return true;
}

// Everything of the node and its type header in one block; pointed-to attribute values follow in the arena.
typedef struct tn_node_block {
  tn_node_t node;
  tn_type_t types[];
} tn_node_block_t;

static const tn_node_t* append_node(tn_graph_t* graph, uint64_t hash, tn_op_t op, int operand_count,
                                    const tn_node_t* const* operands, int attr_count,
                                    const tn_attr_t* attrs, int result_count,
                                    const tn_type_t* types) {
  if (graph->node_count == graph->node_capacity) {
    size_t capacity = (size_t)graph->node_capacity * 2;
    const tn_node_t** nodes = realloc(graph->nodes, capacity * sizeof(*nodes));
    if (!nodes) return fail_memory(graph);
    graph->nodes = nodes;
    graph->node_capacity = (uint32_t)capacity;
  }
  size_t type_bytes = sizeof(tn_type_t) * (size_t)result_count;
  size_t attr_bytes = sizeof(tn_attr_t) * (size_t)attr_count;
  size_t operand_bytes = sizeof(tn_node_t*) * (size_t)operand_count;
  tn_node_block_t* block = tn_arena_alloc(
      &graph->arena, sizeof(tn_node_block_t) + type_bytes + attr_bytes + operand_bytes);
  if (!block) return fail_memory(graph);
  for (int i = 0; i < result_count; ++i) {
    block->types[i].dtype = types[i].dtype;
    block->types[i].rank = types[i].rank;
    memcpy(block->types[i].dims, types[i].dims, sizeof(int64_t) * (size_t)types[i].rank);
  }
  tn_attr_t* attr_copies = (tn_attr_t*)((uint8_t*)block->types + type_bytes);
  for (int i = 0; i < attr_count; ++i) {
    if (!copy_attr(graph, &attrs[i], &attr_copies[i])) return fail_memory(graph);
  }
  const tn_node_t** operand_copies = (const tn_node_t**)((uint8_t*)attr_copies + attr_bytes);
  if (operand_count) memcpy(operand_copies, operands, operand_bytes);
  tn_node_t* node = &block->node;
  node->op = op;
  node->id = graph->node_count;
  node->operand_count = operand_count;
  node->result_count = result_count;
  node->attr_count = attr_count;
  node->operands = operand_copies;
  node->types = block->types;
  node->attrs = attr_copies;
  node->hash = hash;
  node->user_index = op == TN_OP_RESULT ? (uint8_t)attrs[0].as.integer : 0;
  graph->nodes[graph->node_count++] = node;
  return node;
}

static bool grow_table(tn_graph_t* graph) {
  size_t capacity = ((size_t)graph->table_mask + 1) * 2;
  tn_table_entry_t* table = calloc(capacity, sizeof(*table));
  if (!table) return false;
  uint32_t mask = (uint32_t)capacity - 1;
  for (uint32_t id = 0; id < graph->node_count; ++id) {
    uint32_t slot = (uint32_t)graph->nodes[id]->hash & mask;
    while (table[slot].epoch == graph->epoch) slot = (slot + 1) & mask;
    table[slot] = (tn_table_entry_t){graph->epoch, id};
  }
  free(graph->table);
  graph->table = table;
  graph->table_mask = mask;
  return true;
}

static bool node_is(const tn_node_t* node, tn_op_t op, int operand_count,
                    const tn_node_t* const* operands, int attr_count, const tn_attr_t* attrs,
                    int result_count, const tn_type_t* types) {
  if (node->op != op || node->operand_count != operand_count || node->attr_count != attr_count ||
      node->result_count != result_count) {
    return false;
  }
  for (int i = 0; i < operand_count; ++i) {
    if (node->operands[i] != operands[i]) return false;
  }
  for (int i = 0; i < attr_count; ++i) {
    if (!tn_attr_equal(&node->attrs[i], &attrs[i])) return false;
  }
  for (int i = 0; i < result_count; ++i) {
    if (!tn_type_equal(&node->types[i], &types[i])) return false;
  }
  return true;
}

const tn_node_t* tn_graph_intern(tn_graph_t* graph, tn_op_t op, int operand_count,
                                 const tn_node_t* const* operands, int attr_count,
                                 const tn_attr_t* attrs, int result_count, const tn_type_t* types) {
  uint64_t hash = mix(0x7457, (uint64_t)op);
  for (int i = 0; i < operand_count; ++i) hash = mix(hash, operands[i]->id + 1);
  for (int i = 0; i < attr_count; ++i) hash = hash_attr(hash, &attrs[i]);
  for (int i = 0; i < result_count; ++i) {
    hash = mix(hash, (uint64_t)types[i].dtype << 8 | (uint64_t)types[i].rank);
    hash = mix_bytes(hash, types[i].dims, sizeof(int64_t) * (size_t)types[i].rank);
  }
  uint32_t slot = (uint32_t)hash & graph->table_mask;
  while (graph->table[slot].epoch == graph->epoch) {
    const tn_node_t* node = graph->nodes[graph->table[slot].id];
    if (node->hash == hash &&
        node_is(node, op, operand_count, operands, attr_count, attrs, result_count, types)) {
      return node;
    }
    slot = (slot + 1) & graph->table_mask;
  }
  if ((uint64_t)graph->node_count * 2 >= graph->table_mask) {
    if (!grow_table(graph)) return fail_memory(graph);
    slot = (uint32_t)hash & graph->table_mask;
    while (graph->table[slot].epoch == graph->epoch) slot = (slot + 1) & graph->table_mask;
  }
  const tn_node_t* node =
      append_node(graph, hash, op, operand_count, operands, attr_count, attrs, result_count, types);
  if (node) graph->table[slot] = (tn_table_entry_t){graph->epoch, node->id};
  return node;
}

// ---- boundary ---------------------------------------------------------------------------------------------
static const tn_node_t* add_param(tn_graph_t* graph, const tn_type_t* type, int64_t kind,
                                  const int64_t* strides) {
  if (graph->param_count == graph->param_capacity) {
    int capacity = graph->param_capacity ? graph->param_capacity * 2 : 16;
    const tn_node_t** params = realloc(graph->params, sizeof(*params) * (size_t)capacity);
    if (!params) return fail_memory(graph);
    graph->params = params;
    graph->param_capacity = capacity;
  }
  tn_attr_t attrs[3] = {tn_attr_int(TN_ATTR_INDEX, graph->param_count),
                        tn_attr_int(TN_ATTR_KIND, kind)};
  int attr_count = 2;
  if (strides && !tn_strides_are_contiguous(type, strides)) {
    attrs[attr_count++] = tn_attr_ints(TN_ATTR_STRIDES, type->rank, strides);
  }
  tn_type_t types[1] = {*type};
  const tn_node_t* node = tn_graph_build(graph, TN_OP_PARAM, 0, NULL, attr_count, attrs, 1, types);
  if (node) graph->params[graph->param_count++] = node;
  return node;
}

const tn_node_t* tn_graph_param(tn_graph_t* graph, const tn_type_t* type, const int64_t* strides) {
  return add_param(graph, type, 0, strides);
}
const tn_node_t* tn_graph_scalar_param(tn_graph_t* graph, tn_dtype_t dtype) {
  tn_type_t type = tn_type_make(dtype, 0, NULL);
  return add_param(graph, &type, 1, NULL);
}
int tn_graph_param_count(const tn_graph_t* graph) { return graph->param_count; }
const tn_node_t* tn_graph_param_at(const tn_graph_t* graph, int index) {
  return graph->params[index];
}
bool tn_param_is_scalar(const tn_node_t* param) { return param->attrs[1].as.integer != 0; }
const int64_t* tn_param_strides(const tn_node_t* param) {
  return param->attr_count > 2 ? param->attrs[2].as.ints : NULL;
}

void tn_graph_add_result(tn_graph_t* graph, const tn_node_t* node, const int64_t* strides) {
  if (!node || node->result_count != 1) {
    tn_graph_fail(
        graph, TN_ERROR(TN_INTERNAL, "graph result %d: %s", graph->result_count,
                        node ? "a node of several results; take one with tn_result" : "no node"));
    return;
  }
  if (graph->result_count == graph->result_capacity) {
    int capacity = graph->result_capacity ? graph->result_capacity * 2 : 8;
    tn_graph_result_t* results = realloc(graph->results, sizeof(*results) * (size_t)capacity);
    if (!results) {
      fail_memory(graph);
      return;
    }
    graph->results = results;
    graph->result_capacity = capacity;
  }
  tn_graph_result_t* result = &graph->results[graph->result_count++];
  result->node = node;
  result->same_as_param = -1;
  result->overlaps_params = false;
  const tn_type_t* type = &node->types[0];
  result->is_contiguous = !strides || tn_strides_are_contiguous(type, strides);
  int64_t stride = 1;
  for (int i = type->rank - 1; i >= 0; --i) {
    // Contiguous results have one form, whatever the caller wrote for extents of 1 and empty tensors.
    result->strides[i] = result->is_contiguous ? stride : strides[i];
    stride *= type->dims[i] ? type->dims[i] : 1;
  }
}

void tn_graph_alias_result(tn_graph_t* graph, int index, int same_as_param, bool overlaps_params) {
  graph->results[index].same_as_param = same_as_param;
  graph->results[index].overlaps_params = overlaps_params;
}
int tn_graph_result_count(const tn_graph_t* graph) { return graph->result_count; }
const tn_graph_result_t* tn_graph_result_at(const tn_graph_t* graph, int index) {
  return &graph->results[index];
}
