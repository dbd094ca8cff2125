// Nodes that run as a whole: each op or composite has an adapter from plan views to a C kernel.
//
// An adapter prepares once, when the program is compiled, a record with everything that depends on shapes and strides,
// and runs with pointers only. Ops without an adapter, or whose adapter declines, run on the reference interpreter.
#ifndef TN_DRIVER_SIM_WHOLE_H_
#define TN_DRIVER_SIM_WHOLE_H_

#include "base/pool.h"
#include "compile/plan.h"
#include "kernels/view.h"

typedef struct tn_whole_call {
  void* const* in;   // first element of each operand's view
  void* const* out;  // first element of each result's view
  const void* addend;
  void* workspace;
  tn_pool_t* pool;
} tn_whole_call_t;

typedef struct tn_whole {
  tn_status_t (*run)(const void* record, const tn_whole_call_t* call);
  void (*destroy)(void* record);  // NULL: the record is plain memory of the program's arena
  void* record;
  size_t workspace;  // bytes, 64-aligned
  int64_t flops;
} tn_whole_t;

typedef struct tn_whole_adapter {
  tn_op_t op;
  const char* name;  // of a COMPOSITE; NULL otherwise
  // Fills |out| and returns true, or returns false: another way must be found. The record goes to |arena|.
  bool (*prepare)(tn_arena_t* arena, const tn_node_step_t* step, int thread_count, tn_whole_t* out);
  // Optional: whether an operand may have this view (default: contiguous only).
  bool (*takes_view)(const tn_node_t* node, int operand, const tn_plan_view_t* view);
  bool writes_strides;
  // Optional: whether the composite's shapes and dtypes are ones the kernel has.
  bool (*supports)(const tn_node_t* node);
} tn_whole_adapter_t;

// The adapter of |node|, or NULL.
const tn_whole_adapter_t* tn_whole_find(const tn_node_t* node);
// Uses the adapter, else the reference interpreter.
tn_status_t tn_whole_prepare(tn_arena_t* arena, const tn_node_step_t* step, int thread_count,
                             tn_whole_t* out, bool* out_is_interpreted);

// A kernel view of |view|'s shape and strides at |data|.
tn_view_t tn_whole_view(const tn_plan_view_t* view, void* data);
// For takes_view: any strides.
bool tn_whole_any_view(const tn_node_t* node, int operand, const tn_plan_view_t* view);

// The adapters by family; each table ends with a row whose prepare is NULL.
extern const tn_whole_adapter_t tn_whole_contraction[];
extern const tn_whole_adapter_t tn_whole_conv[];
extern const tn_whole_adapter_t tn_whole_movement[];
extern const tn_whole_adapter_t tn_whole_index[];
extern const tn_whole_adapter_t tn_whole_order[];
extern const tn_whole_adapter_t tn_whole_rows[];
extern const tn_whole_adapter_t tn_whole_attention[];
extern const tn_whole_adapter_t tn_whole_window[];
extern const tn_whole_adapter_t tn_whole_checks[];

// Whether each operand's summed dimensions are neighbours, and its kept ones too: then a product has a kernel, whatever
// the layout.
bool tn_whole_dot_fits_any_layout(const tn_node_t* node);

#endif  // TN_DRIVER_SIM_WHOLE_H_
