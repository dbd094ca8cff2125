// From a plan to a program: kernels are looked up, whole nodes prepared, and what a launch needs is copied together.
#include "driver/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/kernel_cache.h"
#include "codegen/kernel_family.h"
#include "driver/sim/launch.h"
#include "driver/sim/program.h"
#include "tn/device.h"

// ---- what the driver can run ------------------------------------------------------------------------------------

static bool has_composite(const tn_node_t* node) { return tn_whole_find(node) != NULL; }

static bool takes_view(const tn_node_t* node, int operand, const tn_plan_view_t* view) {
  const tn_whole_adapter_t* adapter = tn_whole_find(node);
  return adapter && adapter->takes_view && adapter->takes_view(node, operand, view);
}

static bool writes_strides(const tn_node_t* node) {
  const tn_whole_adapter_t* adapter = tn_whole_find(node);
  return adapter && adapter->writes_strides;
}

// A product takes any addend (the interpreter's, which it may come to, none), a convolution one value per channel.
static bool takes_addend(const tn_node_t* node, const tn_plan_view_t* addend) {
  const tn_dtype_t dtype = node->types[0].dtype;
  if (!tn_whole_find(node) || (dtype != TN_F32 && dtype != TN_F64)) return false;
  if (node->op == TN_OP_DOT_GENERAL) return tn_whole_dot_fits_any_layout(node);
  for (int d = 0; d < addend->type.rank; ++d)
    if (addend->type.dims[d] != 1 && addend->strides[d] != (d == 1)) return false;
  return true;
}

const tn_plan_target_t tn_sim_target = {has_composite, takes_view, writes_strides, takes_addend};

// ---- compile ------------------------------------------------------------------------------------------------

// Scratch of a compilation, one per thread, reused: a miss of the call cache allocates only its program.
typedef struct workspace {
  tn_graph_t* graph;
  tn_arena_t arena;
} workspace_t;
static _Thread_local workspace_t t_workspace;

static tn_status_t out_of_memory(void) {
  return TN_ERROR(TN_RESOURCE_EXHAUSTED, "sim: out of host memory");
}

static tn_sim_binding_t binding_of(const tn_plan_view_t* view) {
  return (tn_sim_binding_t){.buffer = view->buffer,
                            .offset = view->offset * (int64_t)tn_dtype_size(view->type.dtype)};
}

static tn_status_t build_kernel(tn_program_t* program, const tn_kernel_step_t* step,
                                tn_sim_kernel_t* out) {
  tn_arena_t* arena = &program->arena;
  const tn_kernel_program_t* p = step->program;
  const size_t operands = p->operand_count, loops = p->loop_count, scalars = p->scalar_count;
  *out = (tn_sim_kernel_t){.operand_count = p->operand_count,
                           .loop_count = p->loop_count,
                           .scalar_count = p->scalar_count,
                           .outer_count = step->outer_count,
                           .vector_extent = step->vector_extent,
                           .cost = step->cost,
                           .parallel_count = p->parallel_count,
                           .cut = step->cut};
  const int64_t workspace = tn_sim_cut_workspace(out);
  if (workspace > program->scratch_bytes) program->scratch_bytes = workspace;
  out->operands = tn_arena_copy(arena, step->operands, sizeof(*step->operands) * operands);
  out->strides = tn_arena_copy(arena, step->strides, sizeof(int64_t) * operands * loops);
  out->dims = tn_arena_copy(arena, step->dims, sizeof(int64_t) * loops);
  out->scalars = tn_arena_copy(arena, step->scalars, sizeof(*step->scalars) * scalars);
  if (!out->operands || !out->strides || !out->dims || !out->scalars) return out_of_memory();
  return TN_OK;
}

// A kernel that exists for other sizes takes the place of one that would have to be generated.
static tn_status_t use_existing(tn_arena_t* scratch, tn_kernel_step_t* step) {
  if (tn_kernel_is_in_memory(step->program)) return TN_OK;
  tn_kernel_sizes_t* sizes = TN_ARENA_NEW(scratch, tn_kernel_sizes_t);
  tn_kernel_sizes_t* found = TN_ARENA_NEW(scratch, tn_kernel_sizes_t);
  if (!sizes || !found) return out_of_memory();
  const tn_kernel_program_t* p = step->program;
  sizes->program = *p;
  memcpy(sizes->dim, step->dims, sizeof(int64_t) * p->loop_count);
  memcpy(sizes->stride, step->strides, sizeof(int64_t) * p->loop_count * p->operand_count);
  if (!tn_kernel_family_find(sizes, step->cut.block_count, found)) return TN_OK;
  step->program = &found->program;
  step->dims = found->dim;
  step->strides = found->stride;
  const int parallel = found->program.parallel_count, vector = found->program.vector_loop;
  step->vector_extent = vector < parallel ? found->dim[vector] : 1;
  step->outer_count = 1;
  for (int l = 0; l < parallel; ++l)
    if (l != vector) step->outer_count *= found->dim[l];
  return TN_OK;
}

static tn_status_t build_node(tn_program_t* program, const tn_node_step_t* step, int thread_count,
                              tn_sim_node_t* out) {
  tn_arena_t* arena = &program->arena;
  *out = (tn_sim_node_t){.operand_count = step->operand_count, .result_count = step->result_count};
  bool is_interpreted;
  TN_TRY(tn_whole_prepare(arena, step, thread_count, &out->whole, &is_interpreted));
  out->name = step->node->op == TN_OP_COMPOSITE
                  ? tn_arena_printf(arena, "%s", tn_node_name(step->node))
                  : tn_op_info(step->node->op)->name;
  tn_sim_binding_t* operands = TN_ARENA_ARRAY(arena, tn_sim_binding_t, step->operand_count + 1);
  tn_sim_binding_t* results = TN_ARENA_ARRAY(arena, tn_sim_binding_t, step->result_count + 1);
  if (!operands || !results) return out_of_memory();
  for (int i = 0; i < step->operand_count; ++i) operands[i] = binding_of(&step->operands[i]);
  for (int i = 0; i < step->result_count; ++i) results[i] = binding_of(&step->results[i]);
  out->operands = operands;
  out->results = results;
  out->addend = step->has_addend ? binding_of(&step->addend) : (tn_sim_binding_t){.buffer = -1};
  program->interpreted_count += is_interpreted;
  program->flops += out->whole.flops;
  if ((int64_t)out->whole.workspace > program->scratch_bytes)
    program->scratch_bytes = (int64_t)out->whole.workspace;
  return TN_OK;
}

// Kernels of all steps at once, so that missing ones are generated side by side.
static tn_status_t find_kernels(tn_program_t* program, const tn_plan_t* plan, tn_arena_t* scratch) {
  const tn_kernel_program_t** programs =
      TN_ARENA_ARRAY(scratch, const tn_kernel_program_t*, plan->step_count + 1);
  tn_kernel_fn_t* codes = TN_ARENA_ARRAY(scratch, tn_kernel_fn_t, plan->step_count + 1);
  if (!programs || !codes) return out_of_memory();
  int count = 0;
  for (int s = 0; s < plan->step_count; ++s)
    if (plan->steps[s]->kind == TN_STEP_KERNEL) programs[count++] = plan->steps[s]->kernel.program;
  if (count == 0) return TN_OK;
  // Without a code generator every kernel is interpreted; it says so once in the log.
  tn_status_free(
      tn_kernel_lookup_many(programs, count, codes, count > 1 ? tn_device_pool() : NULL));
  for (int s = 0, k = 0; s < plan->step_count; ++s) {
    if (plan->steps[s]->kind != TN_STEP_KERNEL) continue;
    tn_sim_kernel_t* kernel = &program->steps[s].kernel;
    kernel->code = codes[k];
    if (!kernel->code) {
      kernel->program = tn_arena_copy(&program->arena, programs[k], sizeof(*kernel->program));
      if (!kernel->program) return out_of_memory();
      ++program->interpreted_count;
    } else {
      ++program->generated_count;
    }
    ++k;
  }
  return TN_OK;
}

static tn_status_t copy_buffers(tn_program_t* program, const tn_plan_t* plan) {
  program->buffer_count = plan->buffer_count;
  program->buffers = tn_arena_copy(&program->arena, plan->buffers,
                                   sizeof(*plan->buffers) * (size_t)plan->buffer_count);
  if (!program->buffers) return out_of_memory();
  for (int i = 0; i < plan->buffer_count; ++i) {
    tn_plan_buffer_t* buffer = &program->buffers[i];
    if (buffer->kind != TN_BUFFER_CONSTANT) continue;
    buffer->data = tn_arena_copy(&program->arena, buffer->data, (size_t)buffer->size);
    if (!buffer->data) return out_of_memory();
  }
  return TN_OK;
}

static tn_status_t build_program(tn_program_t* program, const tn_plan_t* plan,
                                 tn_arena_t* scratch) {
  const int thread_count = tn_device_thread_count();
  TN_TRY(copy_buffers(program, plan));
  program->steps = TN_ARENA_ARRAY(&program->arena, tn_sim_step_t, plan->step_count + 1);
  if (!program->steps) return out_of_memory();
  for (int s = 0; s < plan->step_count; ++s) {
    const tn_step_t* from = plan->steps[s];
    tn_sim_step_t* to = &program->steps[s];
    to->kind = from->kind;
    switch (from->kind) {
      case TN_STEP_KERNEL:
        TN_TRY(use_existing(scratch, &plan->steps[s]->kernel));
        TN_TRY(build_kernel(program, &from->kernel, &to->kernel));
        break;
      case TN_STEP_NODE: TN_TRY(build_node(program, &from->node, thread_count, &to->node)); break;
      case TN_STEP_COPY:
        to->copy = (tn_sim_copy_t){.from = tn_whole_view(&from->from, NULL),
                                   .to = tn_whole_view(&from->to, NULL),
                                   .from_binding = binding_of(&from->from),
                                   .to_binding = binding_of(&from->to)};
        break;
    }
    program->step_count = s + 1;
  }
  program->temporary_bytes = plan->temporary_bytes;
  program->workspace_offset = (plan->temporary_bytes + 63) & ~(int64_t)63;
  program->scratch_bytes +=
      program->scratch_bytes ? program->workspace_offset : plan->temporary_bytes;
  return find_kernels(program, plan, scratch);
}

static void sim_destroy(tn_program_t* program) {
  if (!program) return;
  for (int s = 0; s < program->step_count; ++s) {
    const tn_sim_step_t* step = &program->steps[s];
    if (step->kind == TN_STEP_NODE && step->node.whole.destroy)
      step->node.whole.destroy(step->node.whole.record);
  }
  tn_arena_deinit(&program->arena);
  free(program);
}

static tn_status_t sim_compile(const tn_graph_t* graph, tn_program_t** out_program) {
  *out_program = NULL;
  workspace_t* workspace = &t_workspace;
  if (!workspace->graph) {
    TN_TRY(tn_graph_create(&workspace->graph));
    tn_arena_init(&workspace->arena);
  }
  tn_graph_reset(workspace->graph);
  tn_arena_reset(&workspace->arena);
  tn_plan_t plan;
  TN_TRY(tn_compile_plan(graph, &tn_sim_target, workspace->graph, &workspace->arena, &plan));
  tn_program_t* program = calloc(1, sizeof(*program));
  if (!program) return out_of_memory();
  tn_arena_init(&program->arena);
  tn_status_t status = build_program(program, &plan, &workspace->arena);
  if (status) {
    sim_destroy(program);
    return status;
  }
  *out_program = program;
  return TN_OK;
}

static void sim_info(const tn_program_t* program, tn_program_info_t* out_info) {
  *out_info = (tn_program_info_t){.launch_count = program->step_count,
                                  .generated_count = program->generated_count,
                                  .interpreted_count = program->interpreted_count,
                                  .temporary_bytes = program->scratch_bytes,
                                  .flops = program->flops};
}

static tn_status_t sim_describe(const tn_program_t* program, char** out_text) {
  size_t size = 0;
  FILE* out = open_memstream(out_text, &size);
  if (!out) return out_of_memory();
  fprintf(out, "program: %d steps, %lld bytes of scratch, %lld flops\n", program->step_count,
          (long long)program->scratch_bytes, (long long)program->flops);
  for (int s = 0; s < program->step_count; ++s) {
    const tn_sim_step_t* step = &program->steps[s];
    fprintf(out, "%4d ", s);
    if (step->kind == TN_STEP_KERNEL) {
      const tn_sim_kernel_t* kernel = &step->kernel;
      fprintf(out, "kernel%s, %d operands, dims", kernel->code ? "" : " (interpreted)",
              kernel->operand_count);
      for (int l = 0; l < kernel->loop_count; ++l)
        fprintf(out, " %lld", (long long)kernel->dims[l]);
      fprintf(out, ", buffers");
      for (int k = 0; k < kernel->operand_count; ++k)
        fprintf(out, " %d", kernel->operands[k].buffer);
    } else if (step->kind == TN_STEP_NODE) {
      fprintf(out, "%s%s, buffers", step->node.name,
              step->node.whole.destroy ? " (interpreted)" : "");
      for (int k = 0; k < step->node.operand_count; ++k)
        fprintf(out, " %d", step->node.operands[k].buffer);
      fprintf(out, " ->");
      for (int k = 0; k < step->node.result_count; ++k)
        fprintf(out, " %d", step->node.results[k].buffer);
    } else {
      fprintf(out, "copy %d -> %d, dims", step->copy.from_binding.buffer,
              step->copy.to_binding.buffer);
      for (int d = 0; d < step->copy.from.rank; ++d)
        fprintf(out, " %lld", (long long)step->copy.from.dims[d]);
    }
    fputc('\n', out);
  }
  if (fclose(out) != 0) return out_of_memory();
  return TN_OK;
}

const tn_driver_t tn_driver_sim = {
    .version = TN_DRIVER_VERSION,
    .name = "sim",
    .compile = sim_compile,
    .launch = tn_sim_launch,
    .destroy = sim_destroy,
    .info = sim_info,
    .describe = sim_describe,
};
