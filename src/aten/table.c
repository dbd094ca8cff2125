// The lowering table: all families' rows, found by name through an open-addressing index built once.
#include <pthread.h>
#include <string.h>

#include "aten/lowering.h"

#define TN_ATEN(name, function, layout, flags) tn_status_t function(tn_lowering_t* lowering);
#include "aten/families.inc"
#undef TN_ATEN

static const tn_aten_op_t k_table[] = {
#define TN_ATEN(name, function, layout, flags) {name, function, TN_LAYOUT_##layout, flags},
#include "aten/families.inc"
#undef TN_ATEN
};
enum { TABLE_COUNT = sizeof(k_table) / sizeof(k_table[0]), INDEX_SIZE = 2048 };
_Static_assert(TABLE_COUNT < INDEX_SIZE / 2, "grow INDEX_SIZE");

static uint16_t g_index[INDEX_SIZE];  // row + 1, 0 = empty
static pthread_once_t g_index_once = PTHREAD_ONCE_INIT;

static uint32_t name_hash(const char* name) {
  uint32_t hash = 2166136261u;
  for (; *name; ++name) hash = (hash ^ (uint8_t)*name) * 16777619u;
  return hash;
}

static void build_index(void) {
  for (int i = 0; i < TABLE_COUNT; ++i) {
    uint32_t slot = name_hash(k_table[i].name) % INDEX_SIZE;
    while (g_index[slot]) slot = (slot + 1) % INDEX_SIZE;
    g_index[slot] = (uint16_t)(i + 1);
  }
}

int tn_aten_op_count(void) { return TABLE_COUNT; }

const tn_aten_op_t* tn_aten_op_at(int index) { return &k_table[index]; }

const tn_aten_op_t* tn_aten_op_find(const char* name) {
  pthread_once(&g_index_once, build_index);
  for (uint32_t slot = name_hash(name) % INDEX_SIZE; g_index[slot];
       slot = (slot + 1) % INDEX_SIZE) {
    const tn_aten_op_t* op = &k_table[g_index[slot] - 1];
    if (strcmp(op->name, name) == 0) return op;
  }
  return NULL;
}

tn_status_t tn_aten_lower(const tn_aten_op_t* op, tn_graph_t* graph, int arg_count,
                          const tn_value_t* args, const tn_node_t* random_state,
                          int result_capacity, tn_value_t* out_results, int* out_result_count,
                          uint32_t* out_value_mask, uint64_t* out_random_count) {
  tn_lowering_t lowering = {.op = op,
                            .graph = graph,
                            .arg_count = arg_count,
                            .args = args,
                            .random_state = random_state,
                            .result_capacity = result_capacity,
                            .results = out_results};
  if (arg_count > TN_ATEN_MAX_ARGS)
    return TN_ERROR(TN_INTERNAL, "%s: %d arguments", op->name, arg_count);
  tn_status_t status = op->lower(&lowering);
  if (status == TN_OK) {
    status = tn_graph_status(graph);
  } else {
    tn_status_t first =
        tn_graph_status(graph);  // the builder's error is the cause, if there is one
    if (first) {
      tn_status_free(status);
      status = first;
    }
  }
  *out_result_count = lowering.result_count;
  *out_value_mask = lowering.value_mask;
  *out_random_count = lowering.random_count;
  return status;
}
