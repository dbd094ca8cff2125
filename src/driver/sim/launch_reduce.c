// A reduction that is cut into blocks: each block's accumulators are kept, combined in order, and the kernel runs once
// more on them for what is computed of the value. One kernel serves every length.
#include <string.h>

#include "codegen/kernel_eval.h"
#include "driver/sim/launch.h"

typedef struct cut_run {
  tn_sim_run_t* run;
  char* parts;
  int64_t places;              // of one block, padding included
  size_t size;                 // of a place
  int64_t chunk, chunk_count;  // of the vector loop
} cut_run_t;

static int64_t places_of(const tn_sim_kernel_t* kernel) {
  const int64_t lanes = TN_KERNEL_LANES;
  return kernel->outer_count *
         (kernel->cut.is_row ? 1 : (kernel->vector_extent + lanes - 1) & -lanes);
}

int64_t tn_sim_cut_workspace(const tn_sim_kernel_t* kernel) {
  if (kernel->cut.block_count <= 1) return 0;
  return kernel->cut.block_count * places_of(kernel) *
         (int64_t)tn_dtype_size((tn_dtype_t)kernel->cut.dtype);
}

// The elements of one block are a box of the reduced loops, or some: a part of the inner loops, whole turns of an
// outer one, and a part again. Boxes follow each other in order and hand their accumulators on.
static void run_block(const cut_run_t* cut, int64_t block, int64_t outer_begin, int64_t outer_end,
                      int64_t vector_begin, int64_t vector_end) {
  const tn_sim_kernel_t* kernel = cut->run->kernel;
  const int loops = kernel->loop_count, first_reduced = kernel->parallel_count;
  int64_t at = block * kernel->cut.block, end = at + kernel->cut.block;
  if (end > kernel->cut.length) end = kernel->cut.length;
  void* out = cut->parts + (size_t)(block * cut->places) * cut->size;
  for (bool is_first = true; at < end; is_first = false) {
    int64_t dims[TN_KERNEL_LOOPS], start[TN_KERNEL_LOOPS] = {0}, inner = 1;
    memcpy(dims, kernel->dims, sizeof(int64_t) * (size_t)loops);
    int loop = loops - 1;
    for (; loop > first_reduced; --loop) {
      const int64_t turn = inner * dims[loop];
      if (at % turn || end - at < turn) break;
      inner = turn;
    }
    start[loop] = at / inner % dims[loop];
    int64_t count = (end - at) / inner, rest = at / inner / dims[loop];
    if (count > dims[loop] - start[loop]) count = dims[loop] - start[loop];
    dims[loop] = count;
    for (int l = loop - 1; l >= first_reduced; --l) {
      start[l] = rest % dims[l];
      rest /= dims[l];
      dims[l] = 1;
    }
    void* pointers[TN_KERNEL_OPERANDS];
    for (int k = 0; k < kernel->operand_count; ++k) {
      intptr_t address = (intptr_t)cut->run->args.ptr[k];
      for (int l = first_reduced; l < loops; ++l)
        address += (intptr_t)(start[l] * kernel->strides[k * loops + l]);
      pointers[k] = (void*)address;
    }
    tn_kernel_args_t args = cut->run->args;
    args.ptr = pointers;
    args.dim = dims;
    args.part_in = is_first ? NULL : out;
    args.part_out = out;
    tn_sim_run_range(cut->run, &args, outer_begin, outer_end, vector_begin, vector_end);
    at += count * inner;
  }
}

static void run_blocks(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const cut_run_t* cut = context;
  const int64_t outer_count = cut->run->kernel->outer_count;
  const int64_t vector = cut->run->kernel->vector_extent;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t first = task % cut->chunk_count * cut->chunk, last = first + cut->chunk;
    const int64_t point = task / cut->chunk_count, outer = point % outer_count;
    run_block(cut, point / outer_count, outer, outer + 1, first, last < vector ? last : vector);
  }
}

static void combine(const cut_run_t* cut) {
  const tn_reduce_cut_t* how = &cut->run->kernel->cut;
  for (int64_t block = 1; block < how->block_count; ++block) {
    const char* from = cut->parts + (size_t)(block * cut->places) * cut->size;
    if (how->kind == TN_REDUCE_SUM && how->dtype == TN_F32) {
      float* total = (float*)(void*)cut->parts;
      const float* part = (const float*)(const void*)from;
      for (int64_t i = 0; i < cut->places; ++i) total[i] += part[i];
      continue;
    }
    for (int64_t i = 0; i < cut->places; ++i) {
      char* total = cut->parts + (size_t)i * cut->size;
      const tn_eval_t a = tn_eval_load(how->dtype, total);
      const tn_eval_t b = tn_eval_load(how->dtype, from + (size_t)i * cut->size);
      tn_eval_store(how->dtype, total, tn_eval_combine(how->kind, how->dtype, a, b));
    }
  }
}

void tn_sim_run_cut(tn_sim_run_t* run, void* workspace, tn_pool_t* pool) {
  const tn_sim_kernel_t* kernel = run->kernel;
  const int64_t vector = kernel->vector_extent, blocks = kernel->cut.block_count;
  cut_run_t cut = {.run = run,
                   .parts = workspace,
                   .places = places_of(kernel),
                   .size = tn_dtype_size((tn_dtype_t)kernel->cut.dtype),
                   .chunk = vector,
                   .chunk_count = 1};
  if (pool && tn_pool_thread_count(pool) > 1) {
    const int64_t cost = kernel->cost / blocks > 0 ? kernel->cost / blocks : 1;  // of a point
    if (!kernel->cut.is_row) cut.chunk = tn_sim_vector_chunk(cost);
    cut.chunk_count = (vector + cut.chunk - 1) / cut.chunk;
    const int64_t task = cost * (vector < cut.chunk ? vector : cut.chunk);
    const int64_t grain = task >= TN_SIM_TASK_COST ? 1 : TN_SIM_TASK_COST / task;
    tn_pool_run(pool, blocks * kernel->outer_count * cut.chunk_count, grain, run_blocks, &cut);
  } else {
    for (int64_t block = 0; block < blocks; ++block)
      run_block(&cut, block, 0, kernel->outer_count, 0, vector);
  }
  combine(&cut);

  int64_t dims[TN_KERNEL_LOOPS];
  memcpy(dims, kernel->dims, sizeof(int64_t) * (size_t)kernel->loop_count);
  for (int l = kernel->parallel_count; l < kernel->loop_count; ++l) dims[l] = 0;
  run->args.dim = dims;
  run->args.part_in = cut.parts;
  tn_sim_run_points(run, 1, pool);
}
