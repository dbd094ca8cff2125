// Running a program: pointers are bound, then each step runs, in order, on the caller and the pool.
#include "driver/sim/launch.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/kernel_interp.h"
#include "kernels/copy.h"
#include "tn/device.h"

enum {
  STACK_BUFFERS = 64,
  OUTER_TASKS = 16,  // with fewer outer points the vector loop is cut as well, if it can be
};

void tn_sim_run_range(tn_sim_run_t* run, const tn_kernel_args_t* args, int64_t outer_begin,
                      int64_t outer_end, int64_t vector_begin, int64_t vector_end) {
  if (run->kernel->code) {
    run->kernel->code(args, outer_begin, outer_end, vector_begin, vector_end);
  } else {
    tn_status_t status = tn_kernel_program_interpret(run->kernel->program, args, outer_begin,
                                                     outer_end, vector_begin, vector_end);
    if (status) tn_status_free(atomic_exchange(&run->error, status));  // one error is enough
  }
}

static void run_outer_task(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  tn_sim_run_t* run = context;
  tn_sim_run_range(run, &run->args, begin, end, 0, run->kernel->vector_extent);
}

typedef struct chunk_run {
  tn_sim_run_t* run;
  int64_t chunk, chunk_count;  // of the vector loop
} chunk_run_t;

static void run_chunk_task(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const chunk_run_t* chunks = context;
  tn_sim_run_t* run = chunks->run;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t outer = task / chunks->chunk_count;
    const int64_t first = task % chunks->chunk_count * chunks->chunk, last = first + chunks->chunk;
    tn_sim_run_range(run, &run->args, outer, outer + 1, first,
                     last < run->kernel->vector_extent ? last : run->kernel->vector_extent);
  }
}

void tn_sim_run_points(tn_sim_run_t* run, int64_t cost, tn_pool_t* pool) {
  const int64_t outer = run->kernel->outer_count, vector = run->kernel->vector_extent;
  if (outer * vector * cost <= TN_SIM_SERIAL_COST || !pool) {
    tn_sim_run_range(run, &run->args, 0, outer, 0, vector);
    return;
  }
  const int64_t point_cost = cost * vector;
  if (outer >= OUTER_TASKS || vector < 2 * TN_SIM_VECTOR_CHUNK) {
    const int64_t grain =
        point_cost >= TN_SIM_TASK_COST ? 1 : TN_SIM_TASK_COST / (point_cost > 0 ? point_cost : 1);
    tn_pool_run(pool, outer, grain, run_outer_task, run);
  } else {
    // Column sums are few points of high cost: one vector may already be a task.
    chunk_run_t chunks = {run, tn_sim_vector_chunk(cost), 0};
    chunks.chunk_count = (vector + chunks.chunk - 1) / chunks.chunk;
    tn_pool_run(pool, outer * chunks.chunk_count, 1, run_chunk_task, &chunks);
  }
}

static tn_status_t run_kernel(const tn_sim_kernel_t* kernel, void* const* base, void* const* params,
                              void* workspace, tn_pool_t* pool) {
  void* pointers[TN_KERNEL_OPERANDS];
  tn_scalar_t scalars[TN_KERNEL_SCALARS];
  for (int k = 0; k < kernel->operand_count; ++k) {
    const tn_kernel_operand_binding_t* binding = &kernel->operands[k];
    pointers[k] = binding->buffer < 0 ? (void*)(intptr_t)binding->offset
                                      : (char*)base[binding->buffer] + binding->offset;
  }
  for (int k = 0; k < kernel->scalar_count; ++k) {
    const tn_kernel_scalar_binding_t* binding = &kernel->scalars[k];
    if (binding->param < 0) {
      scalars[k] = binding->value;
    } else {
      memset(&scalars[k], 0, sizeof(scalars[k]));
      memcpy(&scalars[k], params[binding->param], tn_dtype_size(binding->dtype));
    }
  }
  tn_sim_run_t run = {
      .kernel = kernel,
      .args = {.ptr = pointers, .stride = kernel->strides, .dim = kernel->dims, .scalar = scalars}};
  // Operands of empty tensors have no memory.
  if (kernel->outer_count == 0 || kernel->vector_extent == 0) return TN_OK;
  if (kernel->cut.block_count > 1) {
    tn_sim_run_cut(&run, workspace, pool);
  } else {
    tn_sim_run_points(&run, kernel->cost, pool);
  }
  return run.error;
}

static void* bind(const tn_sim_binding_t* binding, void* const* base) {
  return (char*)base[binding->buffer] + binding->offset;
}

static tn_status_t run_node(const tn_sim_node_t* node, void* const* base, void* workspace,
                            tn_pool_t* pool) {
  enum { FEW = 24 };
  void *few[FEW], **pointers = few;
  const int count = node->operand_count + node->result_count;
  if (count > FEW) {
    pointers = malloc(sizeof(*pointers) * (size_t)count);
    if (!pointers) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "sim: out of host memory");
  }
  for (int i = 0; i < node->operand_count; ++i) pointers[i] = bind(&node->operands[i], base);
  for (int i = 0; i < node->result_count; ++i)
    pointers[node->operand_count + i] = bind(&node->results[i], base);
  const tn_whole_call_t call = {
      .in = pointers,
      .out = pointers + node->operand_count,
      .addend = node->addend.buffer < 0 ? NULL : bind(&node->addend, base),
      .workspace = workspace,
      .pool = pool};
  tn_status_t status = node->whole.run(node->whole.record, &call);
  if (pointers != few) free(pointers);
  return status;
}

static void run_copy(const tn_sim_copy_t* copy, void* const* base, tn_pool_t* pool) {
  tn_view_t from = copy->from, to = copy->to;
  from.data = bind(&copy->from_binding, base);
  to.data = bind(&copy->to_binding, base);
  tn_copy_strided(pool, &from, &to);
}

tn_status_t tn_sim_launch(const tn_program_t* program, const tn_launch_t* launch) {
  void *few[STACK_BUFFERS], **base = few;
  if (program->buffer_count > STACK_BUFFERS) {
    base = malloc(sizeof(*base) * (size_t)program->buffer_count);
    if (!base) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "sim: out of host memory");
  }
  void* scratch = NULL;
  tn_status_t status = TN_OK;
  if (program->scratch_bytes > 0)
    status =
        tn_heap_allocate(launch->device, (size_t)program->scratch_bytes, launch->stream, &scratch);
  if (status) goto done;
  for (int i = 0; i < program->buffer_count; ++i) {
    const tn_plan_buffer_t* buffer = &program->buffers[i];
    switch (buffer->kind) {
      case TN_BUFFER_PARAM: base[i] = launch->params[buffer->index]; break;
      case TN_BUFFER_RESULT: base[i] = launch->results[buffer->index]; break;
      case TN_BUFFER_TEMPORARY: base[i] = (char*)scratch + buffer->offset; break;
      case TN_BUFFER_CONSTANT: base[i] = (void*)(uintptr_t)buffer->data; break;
    }
  }
  tn_pool_t* pool = tn_device_pool();
  void* workspace = (char*)scratch + program->workspace_offset;
  for (int s = 0; s < program->step_count && !status; ++s) {
    const tn_sim_step_t* step = &program->steps[s];
    switch (step->kind) {
      case TN_STEP_KERNEL:
        status = run_kernel(&step->kernel, base, launch->params, workspace, pool);
        break;
      case TN_STEP_NODE: status = run_node(&step->node, base, workspace, pool); break;
      case TN_STEP_COPY: run_copy(&step->copy, base, pool); break;
    }
  }
  tn_heap_free(scratch);
done:
  if (base != few) free(base);
  return status;
}
