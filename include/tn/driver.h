// A driver compiles graphs to programs and runs them.
//
// One struct of functions per driver: sim (machine code for this host, the default), null (accepts everything,
// computes nothing: the template for a new driver). Programs are immutable and may be launched from any thread.
#ifndef TN_DRIVER_H_
#define TN_DRIVER_H_

#include "tn/graph.h"
#include "tn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_DRIVER_VERSION 1

typedef struct tn_program tn_program_t;

typedef struct tn_launch {
  int device;
  int64_t stream;
  // One pointer per parameter of the graph, at the first element; scalar parameters: at a tn_scalar_t.
  void* const* params;
  // One pointer per result, at the first element.
  void* const* results;
} tn_launch_t;

typedef struct tn_program_info {
  int launch_count;         // kernels, generated and hand-written
  int generated_count;      // of these, generated
  int interpreted_count;    // of these, run by the reference interpreter
  int64_t temporary_bytes;  // scratch memory of a launch
  int64_t flops, bytes;     // work of a launch
} tn_program_info_t;

typedef struct tn_driver {
  uint32_t version;  // TN_DRIVER_VERSION
  const char* name;
  // Compiles |graph|, which may be destroyed afterwards.
  tn_status_t (*compile)(const tn_graph_t* graph, tn_program_t** out_program);
  // Runs |program|. OUT_OF_RANGE: an index was outside its dimension; results are then undefined.
  tn_status_t (*launch)(const tn_program_t* program, const tn_launch_t* launch);
  void (*destroy)(tn_program_t* program);  // NULL is allowed
  void (*info)(const tn_program_t* program, tn_program_info_t* out_info);
  // Human-readable list of launches and buffers; the caller frees it.
  tn_status_t (*describe)(const tn_program_t* program, char** out_text);
} tn_driver_t;

// Finds a driver by name: "sim", "null", or NULL for the one that TORCH_NEURONX_DRIVER names (default sim).
tn_status_t tn_driver_find(const char* name, const tn_driver_t** out_driver);

#ifdef __cplusplus
}
#endif
#endif  // TN_DRIVER_H_
