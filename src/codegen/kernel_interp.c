// Interpreter of kernel programs: the loop nest of emit_nest.c in plain C, |BLOCK| lanes at a time.
#include "codegen/kernel_interp.h"

#include <string.h>

#include "codegen/kernel_eval.h"
#include "codegen/kernel_program_internal.h"

enum { BLOCK = 16, LANES = TN_KERNEL_LANES };

typedef struct tn_run {
  const tn_kernel_program_t* p;
  const tn_kernel_args_t* args;
  bool is_reduced_vector;
  int reduced_count;  // reduced loops without the vector loop
  int count;          // lanes in use
  bool has_parts;
  int64_t outer;  // flattened outer point
  bool failed;
  intptr_t base[TN_KERNEL_OPERANDS];
  tn_eval_t value[TN_KERNEL_INSTRUCTIONS][BLOCK];
  // Accumulators by ACC instruction, numbered in order: lanes of a reduced row, or of a parallel vector.
  tn_eval_t acc[TN_KERNEL_INSTRUCTIONS][LANES];
} tn_run_t;

static int64_t stride_of(const tn_run_t* run, int operand, int loop) {
  return run->args->stride[operand * run->p->loop_count + loop];
}
// Step from lane to lane. The class decides, not the stride: a broadcast has no stride of its own.
static int64_t lane_stride(const tn_run_t* run, int operand) {
  const tn_kernel_operand_t* o = &run->p->operand[operand];
  if (o->vector == TN_OPERAND_SCALAR) return 0;
  if (o->vector == TN_OPERAND_CONTIGUOUS && o->kind != TN_OPERAND_INDEX)
    return (int64_t)tn_dtype_size((tn_dtype_t)o->dtype);
  return stride_of(run, operand, run->p->vector_loop);
}

static int acc_dtype(const tn_kernel_inst_t* inst) {
  return (int)tn_dtype_compute((tn_dtype_t)inst->dtype);
}

// One instruction at |count| lanes from element |first| of the vector loop; |lane| is the first accumulator lane.
static void run_inst(tn_run_t* run, int i, int64_t first, int lane) {
  const tn_kernel_inst_t* inst = &run->p->inst[i];
  tn_eval_t* out = run->value[i];
  const tn_eval_t* a = run->value[inst->a];
  switch (inst->op) {
    case TN_KOP_LOAD: {
      const int64_t step = lane_stride(run, inst->index);
      const intptr_t at = run->base[inst->index] + first * step;
      for (int j = 0; j < run->count; ++j)
        out[j] = tn_eval_load(inst->dtype, (const void*)(at + j * step));
      break;
    }
    case TN_KOP_STORE: {
      const int64_t step = lane_stride(run, inst->index);
      const intptr_t at = run->base[inst->index] + first * step;
      const int dtype = run->p->operand[inst->index].dtype;
      for (int j = 0; j < run->count; ++j) tn_eval_store(dtype, (void*)(at + j * step), a[j]);
      break;
    }
    case TN_KOP_SCALAR: {
      const tn_eval_t x = tn_eval_load(inst->dtype, &run->args->scalar[inst->index]);
      for (int j = 0; j < run->count; ++j) out[j] = x;
      break;
    }
    case TN_KOP_INDEX: {
      const int64_t step = lane_stride(run, inst->index);
      for (int j = 0; j < run->count; ++j) out[j].i = run->base[inst->index] + (first + j) * step;
      break;
    }
    case TN_KOP_ACC:
      for (int j = 0; j < run->count; ++j) {
        tn_eval_t* acc = &run->acc[i][(lane + j) % LANES];
        *acc = tn_eval_combine(inst->index, acc_dtype(inst), *acc, a[j]);
      }
      break;
    default:
      if (!tn_kernel_eval(inst, run->p->inst[inst->a].dtype, run->count, a, run->value[inst->b],
                          run->value[inst->c], out))
        run->failed = true;
      break;
  }
}

static void run_phase(tn_run_t* run, int phase, int64_t first, int lane) {
  for (int i = 0; i < run->p->inst_count; ++i)
    if (run->p->inst[i].phase == phase) run_inst(run, i, first, lane);
}

static void run_row(tn_run_t* run, int phase) {
  const int64_t extent = run->args->dim[run->p->vector_loop];
  for (int64_t first = 0; first < extent; first += BLOCK) {
    run->count = extent - first < BLOCK ? (int)(extent - first) : BLOCK;
    run_phase(run, phase, first, (int)(first % LANES));
  }
}

// Reduced loops from |depth| inwards, then the row or the vector at |first|.
static void run_reduced(tn_run_t* run, int phase, int depth, int64_t first) {
  if (depth == run->reduced_count) {
    if (run->is_reduced_vector) {
      run_row(run, phase);
    } else {
      run_phase(run, phase, first, 0);
    }
    return;
  }
  const int loop = run->p->parallel_count + depth;
  intptr_t saved[TN_KERNEL_OPERANDS];
  memcpy(saved, run->base, sizeof saved);
  for (int64_t i = 0; i < run->args->dim[loop]; ++i) {
    run_reduced(run, phase, depth + 1, first);
    for (int k = 0; k < run->p->operand_count; ++k)
      run->base[k] += (intptr_t)stride_of(run, k, loop);
  }
  memcpy(run->base, saved, sizeof saved);
}

// Bytes of |parts| before the place of vector element |first| at this outer point.
static int64_t place(const tn_run_t* run, int dtype, int64_t first) {
  const int64_t extent = run->is_reduced_vector ? 1 : run->args->dim[run->p->vector_loop];
  const int64_t pitch = run->is_reduced_vector ? 1 : (extent + LANES - 1) & -LANES;
  return (run->outer * pitch + first) * (int64_t)tn_dtype_size((tn_dtype_t)dtype);
}
static int part_count(const tn_run_t* run) { return run->is_reduced_vector ? 1 : run->count; }

static void load_parts(const tn_run_t* run, int dtype, int64_t first, tn_eval_t* acc) {
  if (!run->has_parts || !run->args->part_in) return;
  const char* from = (const char*)run->args->part_in + place(run, dtype, first);
  for (int j = 0; j < part_count(run); ++j)
    acc[j] = tn_eval_load(dtype, from + (size_t)j * tn_dtype_size((tn_dtype_t)dtype));
}
static void store_parts(const tn_run_t* run, int dtype, int64_t first, const tn_eval_t* acc) {
  if (!run->has_parts || !run->args->part_out) return;
  char* to = (char*)run->args->part_out + place(run, dtype, first);
  for (int j = 0; j < part_count(run); ++j)
    tn_eval_store(dtype, to + (size_t)j * tn_dtype_size((tn_dtype_t)dtype), acc[j]);
}

static void begin_accs(tn_run_t* run, int phase, int64_t first) {
  for (int i = 0; i < run->p->inst_count; ++i) {
    const tn_kernel_inst_t* inst = &run->p->inst[i];
    if (inst->phase != phase || inst->op != TN_KOP_ACC) continue;
    for (int j = 0; j < LANES; ++j) run->acc[i][j] = tn_eval_identity(inst->index, acc_dtype(inst));
    if (!run->is_reduced_vector) load_parts(run, acc_dtype(inst), first, run->acc[i]);
  }
}
static void end_accs(tn_run_t* run, int phase, int64_t first) {
  for (int i = 0; i < run->p->inst_count; ++i) {
    const tn_kernel_inst_t* inst = &run->p->inst[i];
    if (inst->phase != phase || inst->op != TN_KOP_ACC) continue;
    tn_eval_t* acc = run->acc[i];
    if (run->is_reduced_vector) {
      for (int half = LANES / 2; half >= 1; half /= 2)
        for (int j = 0; j < half; ++j)
          acc[j] = tn_eval_combine(inst->index, acc_dtype(inst), acc[j], acc[j + half]);
      load_parts(run, acc_dtype(inst), 0, acc);
      for (int j = 0; j < BLOCK; ++j) run->value[i][j] = tn_eval_round(inst->dtype, acc[0]);
    } else {
      for (int j = 0; j < BLOCK; ++j) run->value[i][j] = tn_eval_round(inst->dtype, acc[j]);
    }
    store_parts(run, acc_dtype(inst), first, acc);
  }
}

// Values of a POINT phase of a reduced row: one lane each, for all lanes of later rows.
static void spread_point(tn_run_t* run, int phase) {
  for (int i = 0; i < run->p->inst_count; ++i)
    for (int j = 1; j < BLOCK && run->p->inst[i].phase == phase; ++j)
      run->value[i][j] = run->value[i][0];
}

// All phases for one outer point, or for |count| vector points from |first|.
static void run_point(tn_run_t* run, int64_t first, int count) {
  for (int phase = 0; phase < run->p->phase_count; ++phase) {
    run->count = count;
    if (run->p->phase_is_point[phase]) {
      run_phase(run, phase, first, 0);
      if (run->is_reduced_vector) spread_point(run, phase);
    } else {
      begin_accs(run, phase, first);
      run_reduced(run, phase, 0, first);
      end_accs(run, phase, first);
      if (run->has_parts && run->args->part_out) return;
    }
  }
}

tn_status_t tn_kernel_program_interpret(const tn_kernel_program_t* program,
                                        const tn_kernel_args_t* args, int64_t outer_begin,
                                        int64_t outer_end, int64_t vector_begin,
                                        int64_t vector_end) {
  tn_run_t run;
  run.p = program;
  run.args = args;
  run.failed = false;
  run.has_parts = tn_kernel_program_has_parts(program);
  run.is_reduced_vector = program->vector_loop >= program->parallel_count;
  run.reduced_count =
      program->loop_count - program->parallel_count - (run.is_reduced_vector ? 1 : 0);
  const int outer_count = program->parallel_count - (run.is_reduced_vector ? 0 : 1);
  for (int64_t outer = outer_begin; outer < outer_end; ++outer) {
    for (int k = 0; k < program->operand_count; ++k) run.base[k] = (intptr_t)args->ptr[k];
    run.outer = outer;
    int64_t rest = outer;
    for (int l = outer_count - 1; l >= 0; --l) {
      const int64_t index = l == 0 ? rest : rest % args->dim[l];
      if (l > 0) rest /= args->dim[l];
      for (int k = 0; k < program->operand_count; ++k)
        run.base[k] += (intptr_t)(index * stride_of(&run, k, l));
    }
    if (run.is_reduced_vector) {
      run_point(&run, 0, 1);
      continue;
    }
    for (int64_t first = vector_begin; first < vector_end; first += BLOCK)
      run_point(&run, first, vector_end - first < BLOCK ? (int)(vector_end - first) : BLOCK);
  }
  return run.failed
             ? TN_ERROR(TN_INTERNAL, "kernel program: an instruction has no meaning on its dtype")
             : TN_OK;
}
