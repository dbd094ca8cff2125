// Where an element of a node lies, as affine forms over the loops of a kernel.
//
// While a kernel is built its iteration space is a list of loops. A map gives, for each dimension of a node, the index
// as offset + sum(coefficient * loop). Movement operations only change maps, so they cost nothing at run time. A
// reshape that merges dimensions may need a loop to be split in two; all forms are then rewritten.
#ifndef TN_COMPILE_INDEX_MAP_H_
#define TN_COMPILE_INDEX_MAP_H_

#include "tn/graph.h"

enum { TN_MAX_LOOPS = 12 };  // while building; merging reduces them to TN_KERNEL_LOOPS

typedef struct tn_form {
  int64_t offset;
  int64_t coefficient[TN_MAX_LOOPS];
} tn_form_t;

typedef struct tn_index_map {
  int rank;
  tn_form_t dim[TN_MAX_RANK];
} tn_index_map_t;

typedef struct tn_space {
  int loop_count;
  int64_t extent[TN_MAX_LOOPS];
} tn_space_t;

bool tn_index_map_equal(const tn_index_map_t* a, const tn_index_map_t* b, int loop_count);

// The map of a movement node's operand, given the node's own map. Returns false if the operand's index is not affine
// in the loops (a reshape across loop boundaries); |out_split_loop| >= 0 then says that splitting this loop at
// |out_split_inner| allows it.
bool tn_index_map_operand(const tn_node_t* node, const tn_index_map_t* map, const tn_space_t* space,
                          tn_index_map_t* out_map, int* out_split_loop, int64_t* out_split_inner);

#endif  // TN_COMPILE_INDEX_MAP_H_
