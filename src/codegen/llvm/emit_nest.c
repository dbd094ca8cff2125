// The loop nest: argument block, outer points, vector loop, phases, reductions.
#include "codegen/llvm/emit_accs.h"

#include <string.h>

enum { LANES = TN_KERNEL_LANES };

// State of one nest that the emitter files do not share.
typedef struct tn_nest {
  tn_emit_t* e;
  bool is_reduced_vector;  // the vector loop is a reduced one
  int outer_count;         // parallel loops without the vector loop
  int reduced_count;       // reduced loops without the vector loop
  int first_reduced;
  uint32_t phase_operands[TN_KERNEL_PHASES];  // operands that a phase touches
  int phase_cost[TN_KERNEL_PHASES];
  tn_parts_t parts;
  LLVMValueRef outer;  // flattened index of the current outer point
  LLVMValueRef args, outer_begin, outer_end, vector_begin, vector_end;
  LLVMValueRef row_slots,
      index_slots;  // [operand] positions, [outer loop] indices at the current outer point
} tn_nest_t;

static LLVMValueRef field(tn_emit_t* e, LLVMValueRef pointer, LLVMTypeRef type, int64_t index) {
  LLVMValueRef at = tn_emit_i64(e, index);
  return LLVMBuildInBoundsGEP2(e->b, type, pointer, &at, 1, "");
}
static LLVMValueRef load_i64(tn_emit_t* e, LLVMValueRef pointer, int64_t index) {
  return LLVMBuildLoad2(e->b, e->i64, field(e, pointer, e->i64, index), "");
}
static LLVMTypeRef base_type(const tn_emit_t* e, int operand) {
  return e->program->operand[operand].kind == TN_OPERAND_INDEX ? e->i64 : e->ptr;
}
static bool is_load(const tn_kernel_inst_t* inst) { return inst->op == TN_KOP_LOAD; }

static void load_args(tn_nest_t* nest) {
  tn_emit_t* e = nest->e;
  const tn_kernel_program_t* p = e->program;
  LLVMValueRef ptrs = LLVMBuildLoad2(e->b, e->ptr, field(e, nest->args, e->ptr, 0), "");
  LLVMValueRef strides = LLVMBuildLoad2(e->b, e->ptr, field(e, nest->args, e->ptr, 1), "");
  LLVMValueRef dims = LLVMBuildLoad2(e->b, e->ptr, field(e, nest->args, e->ptr, 2), "");
  LLVMValueRef scalars = LLVMBuildLoad2(e->b, e->ptr, field(e, nest->args, e->ptr, 3), "");
  for (int k = 0; k < p->operand_count; ++k) {
    e->base[k] = LLVMBuildLoad2(e->b, base_type(e, k), field(e, ptrs, e->i64, k), "");
    for (int l = 0; l < p->loop_count; ++l)
      e->stride[k][l] = load_i64(e, strides, (int64_t)k * p->loop_count + l);
  }
  for (int l = 0; l < p->loop_count; ++l) e->dim[l] = load_i64(e, dims, l);
  for (int i = 0; i < p->inst_count; ++i) {
    const tn_kernel_inst_t* inst = &p->inst[i];
    if (inst->op != TN_KOP_SCALAR) continue;
    LLVMValueRef at = field(e, scalars, LLVMArrayType2(e->i8, sizeof(tn_scalar_t)), inst->index);
    LLVMValueRef x = tn_emit_splat(e, tn_emit_load_element(e, inst->dtype, at));
    e->scalar[i] = tn_emit_widen(e, inst->dtype, x);
  }
}

// Executes the instructions of |phase| at the current position. |accs| (by instruction) are updated in place.
static void emit_body(tn_nest_t* nest, int phase, LLVMValueRef* accs) {
  tn_emit_t* e = nest->e;
  const tn_kernel_program_t* p = e->program;
  for (int i = 0; i < p->inst_count; ++i) {
    const tn_kernel_inst_t* inst = &p->inst[i];
    if (inst->phase != phase) continue;
    if (e->splat[i]) {
      e->value[i] = e->splat[i];
      continue;
    }
    LLVMValueRef a = e->value[inst->a];
    switch (inst->op) {
      case TN_KOP_LOAD: e->value[i] = tn_emit_load(e, inst->index); break;
      case TN_KOP_STORE: tn_emit_store(e, inst->index, a); break;
      case TN_KOP_SCALAR: e->value[i] = e->scalar[i]; break;
      case TN_KOP_INDEX: e->value[i] = tn_emit_index(e, inst->index); break;
      case TN_KOP_ACC: {
        const int dtype = tn_emit_is_small_float(inst->dtype) ? TN_F32 : inst->dtype;
        LLVMValueRef next = tn_emit_combine(e, inst->index, dtype, accs[i], a);
        // Lanes behind the end of a reduced row keep their sum; those of a parallel tail are never stored.
        if (e->remaining && nest->is_reduced_vector)
          next = LLVMBuildSelect(e->b, e->mask, next, accs[i], "");
        accs[i] = next;
        break;
      }
      default: {
        // Unused operands name instruction 0, whose value may be out of scope here.
        const int operands = tn_emit_operand_count(inst->op);
        e->value[i] = tn_emit_elementwise(e, inst, a, operands > 1 ? e->value[inst->b] : NULL,
                                          operands > 2 ? e->value[inst->c] : NULL);
        break;
      }
    }
  }
}

static bool is_elementwise(const tn_kernel_inst_t* inst) { return inst->op < TN_KOP_LOAD; }

// The value of |inst| before the vector loop, if it is the same at every point of the loop.
static LLVMValueRef uniform_value(const tn_emit_t* e, int inst) {
  return e->program->inst[inst].op == TN_KOP_SCALAR ? e->scalar[inst] : e->splat[inst];
}

// Loads of SCALAR inputs, and what is computed of them alone, do not depend on the vector loop: done once before it.
// Masks stay inside: live across blocks they would be taken apart.
static void hoist_uniform(tn_nest_t* nest, int phase) {
  tn_emit_t* e = nest->e;
  const tn_kernel_program_t* p = e->program;
  e->index = tn_emit_i64(e, 0);
  for (int i = 0; i < p->inst_count; ++i) {
    const tn_kernel_inst_t* inst = &p->inst[i];
    if (inst->phase != phase) continue;
    if (is_load(inst)) {
      const tn_kernel_operand_t* o = &p->operand[inst->index];
      if (o->kind == TN_OPERAND_INPUT && o->vector == TN_OPERAND_SCALAR)
        e->splat[i] = tn_emit_load(e, inst->index);
    } else if (is_elementwise(inst) && inst->dtype != TN_BOOL) {
      const uint8_t operand[] = {inst->a, inst->b, inst->c};
      LLVMValueRef x[3] = {NULL};
      bool is_uniform = true;
      for (int j = 0; j < tn_emit_operand_count(inst->op); ++j) {
        x[j] = uniform_value(e, operand[j]);
        is_uniform &= x[j] != NULL;
      }
      if (!is_uniform) continue;
      e->is_uniform = true;
      e->splat[i] = tn_emit_elementwise(e, inst, x[0], x[1], x[2]);
      e->is_uniform = false;
    }
  }
}
static void forget_uniform(tn_emit_t* e) { memset(e->splat, 0, sizeof e->splat); }

static void enter_tail(tn_emit_t* e, LLVMValueRef remaining) {
  e->remaining = remaining;
  LLVMTypeRef lane = e->lanes >= 8 ? e->i32 : e->i64;  // i64 compares would be twice as many
  LLVMValueRef count = lane == e->i64 ? remaining : LLVMBuildTrunc(e->b, remaining, e->i32, "");
  e->mask = LLVMBuildICmp(e->b, LLVMIntSLT, tn_emit_iota(e, lane), tn_emit_splat(e, count), "");
}
static void leave_tail(tn_emit_t* e) { e->remaining = e->mask = NULL; }

// A reduced row whose accumulators are worth registers; for longer bodies the latency of memory hides behind the body.
static bool is_short(const tn_nest_t* nest, int phase, const tn_accs_t* accs) {
  enum { SHORT_COST = 6 };
  return accs->count == 1 && nest->phase_cost[phase] <= SHORT_COST;
}

static void find_accs(tn_nest_t* nest, int phase, tn_accs_t* accs) {
  tn_accs_find(nest->e, phase, accs);
  // Masks make poor loop values, so those of BOOL stay in memory.
  accs->in_registers =
      is_short(nest, phase, accs) && nest->reduced_count == 0 && accs->dtype[0] != TN_BOOL;
}

// ---- loops -------------------------------------------------------------------------------------------------
// A loop over |loop_index| that moves the positions of |operands|; carries |extra| values besides.
typedef struct tn_walk {
  tn_emit_loop_t loop;
  LLVMValueRef saved[TN_KERNEL_OPERANDS];
  uint32_t operands;
  int loop_index, extra;
} tn_walk_t;

static void walk_begin(tn_emit_t* e, tn_walk_t* walk, int loop_index, uint32_t operands,
                       LLVMValueRef* extra, int extra_count) {
  walk->operands = operands;
  walk->loop_index = loop_index;
  walk->extra = extra_count;
  int n = 0;
  for (int i = 0; i < extra_count; ++i) walk->loop.initial[n++] = extra[i];
  for (int k = 0; k < e->program->operand_count; ++k) {
    walk->saved[k] = e->base[k];
    if (operands >> k & 1) walk->loop.initial[n++] = e->base[k];
  }
  walk->loop.carried_count = n;
  tn_emit_loop_begin(e, &walk->loop, tn_emit_i64(e, 0), e->dim[loop_index], 1);
  n = 0;
  for (int i = 0; i < extra_count; ++i) extra[i] = walk->loop.carried[n++];
  for (int k = 0; k < e->program->operand_count; ++k)
    if (operands >> k & 1) e->base[k] = walk->loop.carried[n++];
}

static void walk_end(tn_emit_t* e, tn_walk_t* walk, LLVMValueRef* extra) {
  LLVMValueRef next[TN_EMIT_CARRIED];
  int n = 0;
  for (int i = 0; i < walk->extra; ++i) next[n++] = extra[i];
  for (int k = 0; k < e->program->operand_count; ++k) {
    if (!(walk->operands >> k & 1)) continue;
    LLVMValueRef stride = e->stride[k][walk->loop_index];
    next[n++] = e->program->operand[k].kind == TN_OPERAND_INDEX
                    ? LLVMBuildAdd(e->b, e->base[k], stride, "")
                    : LLVMBuildInBoundsGEP2(e->b, e->i8, e->base[k], &stride, 1, "");
  }
  tn_emit_loop_end(e, &walk->loop, next);
  for (int i = 0; i < walk->extra; ++i) extra[i] = walk->loop.carried[i];
  memcpy(e->base, walk->saved, sizeof e->base);
}

// LOOP phase under a parallel vector loop: all reduced loops around the body, accumulators in registers.
static void emit_reduced_nest(tn_nest_t* nest, int phase, int depth, LLVMValueRef* accs,
                              const tn_accs_t* list) {
  tn_emit_t* e = nest->e;
  if (depth == nest->reduced_count) {
    emit_body(nest, phase, accs);
    return;
  }
  LLVMValueRef carried[TN_KERNEL_INSTRUCTIONS];
  for (int i = 0; i < list->count; ++i) carried[i] = accs[list->inst[i]];
  tn_walk_t walk;
  walk_begin(e, &walk, nest->first_reduced + depth, nest->phase_operands[phase], carried,
             list->count);
  for (int i = 0; i < list->count; ++i) accs[list->inst[i]] = carried[i];
  emit_reduced_nest(nest, phase, depth + 1, accs, list);
  for (int i = 0; i < list->count; ++i) carried[i] = accs[list->inst[i]];
  walk_end(e, &walk, carried);
  for (int i = 0; i < list->count; ++i) accs[list->inst[i]] = carried[i];
}

// All phases for one vector of parallel points.
static void emit_parallel_point(tn_nest_t* nest) {
  tn_emit_t* e = nest->e;
  const tn_kernel_program_t* p = e->program;
  LLVMValueRef accs[TN_KERNEL_INSTRUCTIONS];
  for (int phase = 0; phase < p->phase_count; ++phase) {
    if (p->phase_is_point[phase] || nest->reduced_count == 0) {
      emit_body(nest, phase, accs);
      continue;
    }
    tn_accs_t list;
    find_accs(nest, phase, &list);
    for (int i = 0; i < list.count; ++i)
      accs[list.inst[i]] = nest->parts.is_on
                               ? tn_parts_initial(e, &nest->parts)
                               : tn_emit_identity(e, p->inst[list.inst[i]].index, list.dtype[i]);
    emit_reduced_nest(nest, phase, 0, accs, &list);
    for (int i = 0; i < list.count; ++i)
      e->value[list.inst[i]] = tn_emit_round(e, p->inst[list.inst[i]].dtype, accs[list.inst[i]]);
    if (nest->parts.is_on) tn_parts_keep(e, &nest->parts, accs[list.inst[0]], false);
  }
  if (nest->parts.is_on) tn_parts_join(e, &nest->parts);
}

// ---- the vector loop ---------------------------------------------------------------------------------------
// What one turn of a vector loop does.
typedef struct tn_span {
  int phase;               // LOOP phase of a reduced row; -1: all phases of parallel points
  const tn_accs_t* list;   // accumulators in memory of a reduced row
  uint32_t loads, stores;  // operands with a place per lane
  bool is_single;          // one body for whole vectors and the tail
  int unroll;              // vectors a turn of the first loop
} tn_span_t;

// One vector of a reduced row; its accumulators are in memory at lane |lane| mod 64.
static void emit_memory_step(tn_nest_t* nest, const tn_span_t* span, LLVMValueRef lane) {
  tn_emit_t* e = nest->e;
  LLVMValueRef accs[TN_KERNEL_INSTRUCTIONS];
  lane = LLVMBuildAnd(e->b, lane, tn_emit_i64(e, LANES - 1), "");
  for (int i = 0; i < span->list->count; ++i)
    accs[span->list->inst[i]] = tn_accs_load(e, span->list, i, lane);
  emit_body(nest, span->phase, accs);
  for (int i = 0; i < span->list->count; ++i)
    tn_accs_store(e, span->list, i, lane, accs[span->list->inst[i]]);
}

static void emit_turn(tn_nest_t* nest, const tn_span_t* span, LLVMValueRef lane) {
  if (span->phase < 0) {
    emit_parallel_point(nest);
  } else {
    emit_memory_step(nest, span, lane);
  }
}

static tn_span_t make_span(tn_nest_t* nest, int phase, const tn_accs_t* list) {
  enum { TWO_COPIES_COST = 6 };  // shorter bodies are cheaper to write twice than to stage
  enum {
    UNROLL_COST = 4,
    UNROLL = 4
  };  // the shortest are bound by the instructions of the loop itself
  const tn_kernel_program_t* p = nest->e->program;
  tn_span_t span = {.phase = phase, .list = list};
  int cost = 0;
  bool has_scalar_store = false;
  for (int i = 0; i < p->inst_count; ++i) {
    const tn_kernel_inst_t* inst = &p->inst[i];
    if (phase >= 0 && inst->phase != phase) continue;
    cost += tn_emit_inst_cost(p, i);
    if (inst->op != TN_KOP_LOAD && inst->op != TN_KOP_STORE) continue;
    const bool is_scalar = p->operand[inst->index].vector == TN_OPERAND_SCALAR;
    if (inst->op == TN_KOP_STORE && is_scalar) has_scalar_store = true;
    if (is_scalar) continue;
    *(inst->op == TN_KOP_LOAD ? &span.loads : &span.stores) |= 1u << inst->index;
  }
  span.unroll = phase < 0 && nest->reduced_count == 0 && cost <= UNROLL_COST ? UNROLL : 1;
  span.is_single =
      cost > TWO_COPIES_COST && !has_scalar_store && (phase >= 0 || nest->reduced_count == 0);
  return span;
}

// Elements [start, count) of the vector loop: whole vectors, then the tail by a second copy of the body.
static void emit_two_copies(tn_nest_t* nest, const tn_span_t* span, LLVMValueRef start,
                            LLVMValueRef count) {
  tn_emit_t* e = nest->e;
  LLVMValueRef whole = LLVMBuildAnd(e->b, count, tn_emit_i64(e, -(int64_t)e->lanes), "");
  tn_emit_loop_t loop;
  loop.carried_count = 0;
  for (int unroll = span->unroll; unroll >= 1; unroll = unroll > 1 ? 1 : 0) {
    const int64_t step = (int64_t)unroll * e->lanes;
    LLVMValueRef limit = unroll > 1 ? LLVMBuildAnd(e->b, count, tn_emit_i64(e, -step), "") : whole;
    tn_emit_loop_begin(e, &loop, start, limit, step);
    for (int j = 0; j < unroll; ++j) {
      e->index = j == 0
                     ? loop.index
                     : LLVMBuildNSWAdd(e->b, loop.index, tn_emit_i64(e, (int64_t)j * e->lanes), "");
      emit_turn(nest, span, e->index);
    }
    tn_emit_loop_end(e, &loop, NULL);
    start = limit;
  }

  LLVMBasicBlockRef tail = tn_emit_block(e), done = tn_emit_block(e);
  LLVMValueRef remaining = LLVMBuildNSWSub(e->b, count, whole, "");
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSGT, remaining, tn_emit_i64(e, 0), ""), tail,
                  done);
  tn_emit_enter(e, tail);
  enter_tail(e, remaining);
  e->index = whole;
  emit_turn(nest, span, whole);
  leave_tail(e);
  LLVMBuildBr(e->b, done);
  tn_emit_enter(e, done);
}

// Positions and strides that a tail replaces by those of the stack buffers.
typedef struct tn_places {
  LLVMValueRef base[TN_KERNEL_OPERANDS], stride[TN_KERNEL_OPERANDS];
} tn_places_t;

// What differs between the two passes over the body: a phi of the first and the second value.
static LLVMValueRef two_way(tn_emit_t* e, LLVMValueRef first, LLVMBasicBlockRef from) {
  LLVMValueRef phi = LLVMBuildPhi(e->b, LLVMTypeOf(first), "");
  LLVMAddIncoming(phi, &first, &from, 1);
  return phi;
}

// The same with one body: the tail's elements are copied to stack buffers, the loop runs once more over them, and
// results are copied back. Halves the work of the code generator on long bodies.
static void emit_one_copy(tn_nest_t* nest, const tn_span_t* span, LLVMValueRef start,
                          LLVMValueRef count) {
  tn_emit_t* e = nest->e;
  const tn_kernel_program_t* p = e->program;
  const int v = p->vector_loop;
  LLVMBasicBlockRef pass = tn_emit_block(e), body = tn_emit_block(e), end = tn_emit_block(e),
                    test = tn_emit_block(e);
  LLVMBasicBlockRef tail = tn_emit_block(e), out = tn_emit_block(e), done = tn_emit_block(e);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
  LLVMValueRef whole = LLVMBuildAnd(e->b, count, tn_emit_i64(e, -(int64_t)e->lanes), "");
  LLVMValueRef remaining = LLVMBuildNSWSub(e->b, count, whole, "");
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, start, whole, ""), pass, test);

  // pass: what this pass works on
  tn_places_t real, used = {0};
  tn_emit_enter(e, pass);
  LLVMValueRef is_tail = two_way(e, LLVMConstInt(e->i1, 0, 0), before);
  LLVMValueRef first = two_way(e, start, before), limit = two_way(e, whole, before);
  LLVMValueRef lane_offset = two_way(e, tn_emit_i64(e, 0), before);
  for (int k = 0; k < p->operand_count; ++k) {
    const tn_kernel_operand_t* o = &p->operand[k];
    real.base[k] = e->base[k];
    real.stride[k] = e->stride[k][v];
    const bool is_index = o->kind == TN_OPERAND_INDEX && o->vector != TN_OPERAND_SCALAR;
    if (is_index || (span->loads | span->stores) >> k & 1)
      used.base[k] = two_way(e, e->base[k], before);
    if (!is_index && used.base[k] && o->vector == TN_OPERAND_STRIDED)
      used.stride[k] = two_way(e, e->stride[k][v], before);
    if (used.base[k]) e->base[k] = used.base[k];
    if (used.stride[k]) e->stride[k][v] = used.stride[k];
  }
  LLVMBuildBr(e->b, body);

  // body: whole vectors of this pass, at least one
  tn_emit_enter(e, body);
  e->index = two_way(e, first, pass);
  LLVMValueRef index = e->index;
  emit_turn(nest, span, LLVMBuildAdd(e->b, index, lane_offset, ""));
  LLVMValueRef next = LLVMBuildNSWAdd(e->b, index, tn_emit_i64(e, e->lanes), "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
  LLVMAddIncoming(index, &next, &latch, 1);
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, next, limit, ""), body, end);
  tn_emit_enter(e, end);
  LLVMBuildCondBr(e->b, is_tail, out, test);
  tn_emit_enter(e, test);
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSGT, remaining, tn_emit_i64(e, 0), ""), tail,
                  done);
  memcpy(e->base, real.base, sizeof e->base);
  for (int k = 0; k < p->operand_count; ++k) e->stride[k][v] = real.stride[k];

  // tail: copy in, keep the accumulators of the lanes that do not exist
  tn_emit_enter(e, tail);
  enter_tail(e, remaining);
  e->index = whole;
  LLVMValueRef saved[TN_KERNEL_INSTRUCTIONS],
      lane = LLVMBuildAnd(e->b, whole, tn_emit_i64(e, LANES - 1), "");
  for (int i = 0; span->list && i < span->list->count; ++i) {
    LLVMValueRef x = tn_accs_load_memory(e, span->list, i, lane);
    saved[i] = tn_emit_alloca(e, LLVMTypeOf(x), 64);
    LLVMSetAlignment(LLVMBuildStore(e->b, x, saved[i]), 64);
  }
  for (int k = 0; k < p->operand_count; ++k) {
    if (!(span->loads >> k & 1)) continue;
    LLVMSetAlignment(LLVMBuildStore(e->b, tn_emit_load_memory(e, k), tn_emit_stage(e, k)), 64);
  }
  LLVMBasicBlockRef tail_end = LLVMGetInsertBlock(e->b);
  LLVMValueRef yes = LLVMConstInt(e->i1, 1, 0), zero = tn_emit_i64(e, 0),
               one_vector = tn_emit_i64(e, e->lanes);
  LLVMAddIncoming(is_tail, &yes, &tail_end, 1);
  LLVMAddIncoming(first, &zero, &tail_end, 1);
  LLVMAddIncoming(limit, &one_vector, &tail_end, 1);
  LLVMAddIncoming(lane_offset, &whole, &tail_end, 1);
  for (int k = 0; k < p->operand_count; ++k) {
    if (!used.base[k]) continue;
    const tn_kernel_operand_t* o = &p->operand[k];
    LLVMValueRef base = o->kind == TN_OPERAND_INDEX
                            ? tn_emit_advance(e, k, e->base[k], whole, e->stride[k][v])
                            : tn_emit_stage(e, k);
    LLVMValueRef stride = tn_emit_i64(e, (int64_t)tn_emit_dtype_size(o->dtype));
    LLVMAddIncoming(used.base[k], &base, &tail_end, 1);
    if (used.stride[k]) LLVMAddIncoming(used.stride[k], &stride, &tail_end, 1);
  }
  LLVMBuildBr(e->b, pass);

  // out: copy back
  tn_emit_enter(e, out);
  enter_tail(e, remaining);
  lane = LLVMBuildAnd(e->b, whole, tn_emit_i64(e, LANES - 1), "");
  for (int i = 0; span->list && i < span->list->count; ++i) {
    LLVMValueRef now = tn_accs_load_memory(e, span->list, i, lane);
    LLVMValueRef old = LLVMBuildLoad2(e->b, LLVMTypeOf(now), saved[i], "");
    LLVMSetAlignment(old, 64);
    tn_accs_store_memory(e, span->list, i, lane, LLVMBuildSelect(e->b, e->mask, now, old, ""));
  }
  for (int k = 0; k < p->operand_count; ++k) {
    if (!(span->stores >> k & 1)) continue;
    LLVMTypeRef type = tn_emit_vector(e, tn_emit_memory_type(e, p->operand[k].dtype));
    LLVMValueRef x = LLVMBuildLoad2(e->b, type, tn_emit_stage(e, k), "");
    LLVMSetAlignment(x, 64);
    tn_emit_store_memory(e, k, x);
  }
  leave_tail(e);
  LLVMBuildBr(e->b, done);
  tn_emit_enter(e, done);
}

static void emit_span(tn_nest_t* nest, const tn_span_t* span, LLVMValueRef start,
                      LLVMValueRef count) {
  if (span->is_single) {
    emit_one_copy(nest, span, start, count);
  } else {
    emit_two_copies(nest, span, start, count);
  }
}

static void emit_parallel_row(tn_nest_t* nest) {
  tn_emit_t* e = nest->e;
  const tn_kernel_program_t* p = e->program;
  const int v = p->vector_loop;
  for (int k = 0; k < p->operand_count; ++k) {
    const tn_kernel_operand_t* o = &p->operand[k];
    if (o->vector == TN_OPERAND_SCALAR) continue;
    LLVMValueRef stride = o->vector == TN_OPERAND_CONTIGUOUS && o->kind != TN_OPERAND_INDEX
                              ? tn_emit_i64(e, (int64_t)tn_emit_dtype_size(o->dtype))
                              : e->stride[k][v];
    e->base[k] = tn_emit_advance(e, k, e->base[k], nest->vector_begin, stride);
  }
  LLVMValueRef count = LLVMBuildNSWSub(e->b, nest->vector_end, nest->vector_begin, "");
  if (nest->parts.is_on) {
    LLVMValueRef row = LLVMBuildMul(e->b, nest->outer, tn_parts_pitch(e, e->dim[v]), "");
    tn_parts_place(e, &nest->parts, LLVMBuildAdd(e->b, row, nest->vector_begin, ""));
  }
  const tn_span_t span = make_span(nest, -1, NULL);
  if (nest->reduced_count == 0) hoist_uniform(nest, 0);
  emit_span(nest, &span, tn_emit_i64(e, 0), count);
  forget_uniform(e);
}

static LLVMValueRef first_lane(tn_emit_t* e, int part) {
  return tn_emit_i64(e, (int64_t)part * e->lanes);
}

// The blocks of 64 elements of a reduced row with a short body: accumulators in registers, all 64 lanes a turn.
static LLVMValueRef emit_blocks(tn_nest_t* nest, int phase, tn_accs_t* list, LLVMValueRef count) {
  tn_emit_t* e = nest->e;
  const int parts = LANES / e->lanes;
  tn_emit_loop_t loop;
  LLVMValueRef blocks = LLVMBuildAnd(e->b, count, tn_emit_i64(e, -LANES), "");
  LLVMValueRef identity =
      tn_emit_identity(e, e->program->inst[list->inst[0]].index, list->dtype[0]);
  for (int j = 0; j < parts; ++j)
    loop.initial[j] = list->in_registers ? identity : tn_accs_load(e, list, 0, first_lane(e, j));
  loop.carried_count = parts;
  tn_emit_loop_begin(e, &loop, tn_emit_i64(e, 0), blocks, LANES);
  LLVMValueRef next[LANES], accs[TN_KERNEL_INSTRUCTIONS];
  for (int j = 0; j < parts; ++j) {
    e->index = j == 0 ? loop.index : LLVMBuildNSWAdd(e->b, loop.index, first_lane(e, j), "");
    accs[list->inst[0]] = loop.carried[j];
    emit_body(nest, phase, accs);
    next[j] = accs[list->inst[0]];
  }
  tn_emit_loop_end(e, &loop, next);
  for (int j = 0; j < parts; ++j) list->part[j] = loop.carried[j];
  return blocks;
}

// The vector loop of a reduced row.
static void emit_reduced_row(tn_nest_t* nest, int phase, tn_accs_t* list) {
  tn_emit_t* e = nest->e;
  LLVMValueRef count = e->dim[e->program->vector_loop], start = tn_emit_i64(e, 0);
  const int parts = LANES / e->lanes;
  const tn_span_t span = make_span(nest, phase, list);
  hoist_uniform(nest, phase);
  if (!is_short(nest, phase, list)) {
    emit_span(nest, &span, start, count);
    forget_uniform(e);
    return;
  }
  start = emit_blocks(nest, phase, list, count);
  // What is left of the row goes through memory, because its lanes are counted at run time.
  LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b), rest = tn_emit_block(e),
                    join = tn_emit_block(e);
  if (list->in_registers) {
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, start, count, ""), rest, join);
    tn_emit_enter(e, rest);
  }
  for (int j = 0; j < parts; ++j) tn_accs_store(e, list, 0, first_lane(e, j), list->part[j]);
  emit_span(nest, &span, start, count);
  forget_uniform(e);
  if (!list->in_registers) {
    LLVMDeleteBasicBlock(rest);
    LLVMDeleteBasicBlock(join);
    return;
  }
  LLVMValueRef after[LANES];
  for (int j = 0; j < parts; ++j) after[j] = tn_accs_load(e, list, 0, first_lane(e, j));
  LLVMBasicBlockRef rest_end = LLVMGetInsertBlock(e->b);
  LLVMBuildBr(e->b, join);
  tn_emit_enter(e, join);
  for (int j = 0; j < parts; ++j) {
    LLVMValueRef phi = LLVMBuildPhi(e->b, LLVMTypeOf(after[j]), "");
    LLVMAddIncoming(phi, (LLVMValueRef[]){list->part[j], after[j]},
                    (LLVMBasicBlockRef[]){before, rest_end}, 2);
    list->part[j] = phi;
  }
}

static void emit_reduced_outer(tn_nest_t* nest, int phase, int depth, tn_accs_t* list) {
  tn_emit_t* e = nest->e;
  if (depth == nest->reduced_count) {
    emit_reduced_row(nest, phase, list);
    return;
  }
  tn_walk_t walk;
  walk_begin(e, &walk, nest->first_reduced + depth, nest->phase_operands[phase], NULL, 0);
  emit_reduced_outer(nest, phase, depth + 1, list);
  walk_end(e, &walk, NULL);
}

// All phases of one outer point when the vector loop is reduced.
static void emit_reduced_point(tn_nest_t* nest) {
  tn_emit_t* e = nest->e;
  const tn_kernel_program_t* p = e->program;
  for (int phase = 0; phase < p->phase_count; ++phase) {
    if (p->phase_is_point[phase]) {
      e->is_uniform = true;
      e->index = tn_emit_i64(e, 0);
      emit_body(nest, phase, NULL);
      e->is_uniform = false;
      continue;
    }
    tn_accs_t list;
    find_accs(nest, phase, &list);
    for (int i = 0; i < list.count; ++i) {
      LLVMTypeRef type = LLVMVectorType(tn_emit_memory_type(e, list.dtype[i]), LANES);
      list.slots[i] = tn_emit_alloca(e, type, 64);
      LLVMValueRef identity = tn_emit_identity(e, p->inst[list.inst[i]].index, list.dtype[i]);
      for (int j = 0; !list.in_registers && j < LANES; j += e->lanes)
        tn_accs_store(e, &list, i, tn_emit_i64(e, j), identity);
    }
    emit_reduced_outer(nest, phase, 0, &list);
    for (int i = 0; i < list.count; ++i) {
      LLVMValueRef x = tn_accs_combine(e, &list, i);
      if (nest->parts.is_on) x = tn_parts_finish(e, &nest->parts, x);
      e->value[list.inst[i]] = tn_emit_round(e, p->inst[list.inst[i]].dtype, x);
      if (nest->parts.is_on) tn_parts_keep(e, &nest->parts, x, true);
    }
  }
  if (nest->parts.is_on) tn_parts_join(e, &nest->parts);
}

// ---- outer points ------------------------------------------------------------------------------------------
static LLVMValueRef slot(tn_emit_t* e, LLVMValueRef slots, int index) {
  return field(e, slots, e->i64, index);
}

// Positions of all operands at the outer indices in |index_slots|.
static void place_row(tn_nest_t* nest, LLVMValueRef* index) {
  tn_emit_t* e = nest->e;
  for (int k = 0; k < e->program->operand_count; ++k) {
    LLVMValueRef base = e->base[k];
    for (int l = 0; l < nest->outer_count; ++l)
      base = tn_emit_advance(e, k, base, index[l], e->stride[k][l]);
    LLVMBuildStore(e->b, base, slot(e, nest->row_slots, k));
  }
}

static void emit_point(tn_nest_t* nest) {
  if (nest->is_reduced_vector) {
    if (nest->parts.is_on) tn_parts_place(nest->e, &nest->parts, nest->outer);
    emit_reduced_point(nest);
  } else {
    emit_parallel_row(nest);
  }
}

static void emit_outer(tn_nest_t* nest) {
  tn_emit_t* e = nest->e;
  const tn_kernel_program_t* p = e->program;
  LLVMBasicBlockRef work = tn_emit_block(e), done = tn_emit_block(e);
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, nest->outer_begin, nest->outer_end, ""),
                  work, done);
  tn_emit_enter(e, work);
  nest->outer = tn_emit_i64(e, 0);
  if (nest->outer_count == 0) {
    emit_point(nest);
    LLVMBuildBr(e->b, done);
    tn_emit_enter(e, done);
    return;
  }
  LLVMValueRef origin[TN_KERNEL_OPERANDS], index[TN_KERNEL_LOOPS];
  memcpy(origin, e->base, sizeof origin);
  nest->row_slots = tn_emit_alloca(e, LLVMArrayType2(e->i64, TN_KERNEL_OPERANDS), 8);
  nest->index_slots = tn_emit_alloca(e, LLVMArrayType2(e->i64, TN_KERNEL_LOOPS), 8);
  LLVMValueRef rest = nest->outer_begin;
  for (int l = nest->outer_count - 1; l >= 0; --l) {
    index[l] = l == 0 ? rest : LLVMBuildURem(e->b, rest, e->dim[l], "");
    if (l > 0) rest = LLVMBuildUDiv(e->b, rest, e->dim[l], "");
    LLVMBuildStore(e->b, index[l], slot(e, nest->index_slots, l));
  }
  place_row(nest, index);

  tn_emit_loop_t loop;
  loop.carried_count = 0;
  tn_emit_loop_begin(e, &loop, nest->outer_begin, nest->outer_end, 1);
  nest->outer = loop.index;
  for (int k = 0; k < p->operand_count; ++k)
    e->base[k] = LLVMBuildLoad2(e->b, base_type(e, k), slot(e, nest->row_slots, k), "");
  emit_point(nest);
  // Next outer point: usually a step along the last outer loop, else carry and place anew.
  const int last = nest->outer_count - 1;
  LLVMBasicBlockRef step = tn_emit_block(e), carry = tn_emit_block(e), next = tn_emit_block(e);
  LLVMValueRef at =
      LLVMBuildNSWAdd(e->b, load_i64(e, nest->index_slots, last), tn_emit_i64(e, 1), "");
  LLVMValueRef is_inside = LLVMBuildICmp(e->b, LLVMIntSLT, at, e->dim[last], "");
  LLVMBuildCondBr(e->b, last == 0 ? LLVMConstInt(e->i1, 1, 0) : is_inside, step, carry);
  tn_emit_enter(e, step);
  LLVMBuildStore(e->b, at, slot(e, nest->index_slots, last));
  for (int k = 0; k < p->operand_count; ++k) {
    LLVMValueRef base = LLVMBuildLoad2(e->b, base_type(e, k), slot(e, nest->row_slots, k), "");
    base = tn_emit_advance(e, k, base, tn_emit_i64(e, 1), e->stride[k][last]);
    LLVMBuildStore(e->b, base, slot(e, nest->row_slots, k));
  }
  LLVMBuildBr(e->b, next);
  tn_emit_enter(e, carry);
  memcpy(e->base, origin, sizeof origin);
  LLVMValueRef carried = LLVMConstInt(e->i1, 1, 0);
  for (int l = last; l >= 0; --l) {
    LLVMValueRef old = load_i64(e, nest->index_slots, l);
    LLVMValueRef bumped = LLVMBuildAdd(e->b, old, LLVMBuildZExt(e->b, carried, e->i64, ""), "");
    LLVMValueRef wraps = LLVMBuildICmp(e->b, LLVMIntSGE, bumped, e->dim[l], "");
    carried = wraps;
    index[l] = LLVMBuildSelect(e->b, wraps, tn_emit_i64(e, 0), bumped, "");
    LLVMBuildStore(e->b, index[l], slot(e, nest->index_slots, l));
  }
  place_row(nest, index);
  LLVMBuildBr(e->b, next);
  tn_emit_enter(e, next);
  tn_emit_loop_end(e, &loop, NULL);
  LLVMBuildBr(e->b, done);
  tn_emit_enter(e, done);
}

void tn_emit_program(tn_emit_t* e) {
  const tn_kernel_program_t* p = e->program;
  tn_nest_t nest = {.e = e};
  nest.is_reduced_vector = p->vector_loop >= p->parallel_count;
  nest.outer_count = nest.is_reduced_vector ? p->parallel_count : p->parallel_count - 1;
  nest.first_reduced = p->parallel_count;
  nest.reduced_count = p->loop_count - p->parallel_count - (nest.is_reduced_vector ? 1 : 0);
  for (int i = 0; i < p->inst_count; ++i) {
    const tn_kernel_inst_t* inst = &p->inst[i];
    if (inst->op == TN_KOP_LOAD || inst->op == TN_KOP_STORE || inst->op == TN_KOP_INDEX)
      nest.phase_operands[inst->phase] |= 1u << inst->index;
    nest.phase_cost[inst->phase] += tn_emit_inst_cost(p, i);
  }
  LLVMTypeRef params[] = {e->ptr, e->i64, e->i64, e->i64, e->i64};
  LLVMTypeRef type = LLVMFunctionType(e->void_type, params, 5, 0);
  e->function = LLVMAddFunction(e->module, "tn_kernel", type);
  nest.args = LLVMGetParam(e->function, 0);
  nest.outer_begin = LLVMGetParam(e->function, 1);
  nest.outer_end = LLVMGetParam(e->function, 2);
  nest.vector_begin = LLVMGetParam(e->function, 3);
  nest.vector_end = LLVMGetParam(e->function, 4);
  e->entry = tn_emit_block(e);
  LLVMBasicBlockRef start = tn_emit_block(e);
  tn_emit_enter(e, start);
  load_args(&nest);
  tn_parts_init(e, &nest.parts, nest.args);
  emit_outer(&nest);
  LLVMBuildRetVoid(e->b);
  tn_emit_enter(e, e->entry);
  LLVMBuildBr(e->b, start);
}
