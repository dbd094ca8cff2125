// Kernel program: one fused loop nest, the unit of code generation.
//
// It holds no extent, no stride and no scalar value, so one piece of machine code serves every size and scalar.
// src/compile writes it, src/codegen turns it into machine code. Its bytes are the key of the kernel caches.
//
// Meaning. Loops are numbered outermost first: first the PARALLEL loops, then the REDUCED ones. One of them is the
// vector loop: the last PARALLEL or the last REDUCED loop. For every point of the parallel loops the phases run in
// order. A LOOP phase visits all points of the reduced loops (once, if there are none) and executes its
// instructions at each; a POINT phase executes once. Values of earlier LOOP phases are out of scope in later phases
// except through ACC results and POINT values, which every later phase may read.
// Without reductions there is one LOOP phase and no reduced loop: a plain elementwise nest.
//
// Registers are typed with the node's dtype. F16 and BF16 values are computed in f32 and rounded to their dtype
// after each instruction; BOOL values are predicates. Arithmetic is that of include/tn/graph.h.
//
// Order of a reduction (must equal src/ir/reduce_order.h):
//  vector loop REDUCED: iteration i of the vector loop goes to lane i mod 64 of 64 partial accumulators that start
//   at the identity; outer reduced loops go in order into the same lanes; lanes combine by halving (l with l+32,
//   then l+16, .. 1).
//  vector loop PARALLEL: every lane accumulates its own points in order.
// f16/bf16 sums and products accumulate in f32; the ACC result is rounded to the dtype once. A long reduction is cut
// into blocks by who runs the kernel: its accumulators are kept in memory (part_in, part_out below).
#ifndef TN_KERNEL_PROGRAM_H_
#define TN_KERNEL_PROGRAM_H_

#include <stdbool.h>
#include <stdint.h>

#include "tn/dtype.h"
#include "tn/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TN_KERNEL_LOOPS = 8,
  TN_KERNEL_OPERANDS = 32,
  TN_KERNEL_SCALARS = 32,
  TN_KERNEL_INSTRUCTIONS = 192,
  TN_KERNEL_PHASES = 6,
  TN_KERNEL_LANES = 64,  // partial accumulators of a vector-loop reduction
};

// How an operand moves along the vector loop.
typedef enum tn_operand_class {
  TN_OPERAND_CONTIGUOUS,  // stride = element size
  TN_OPERAND_SCALAR,      // stride 0
  TN_OPERAND_STRIDED,     // any other stride
} tn_operand_class_t;

typedef enum tn_operand_kind {
  TN_OPERAND_INPUT,
  TN_OPERAND_OUTPUT,  // may be stored in one phase and loaded in a later one
  TN_OPERAND_INDEX,  // no memory: its address arithmetic is its value (iota): ptr + sum(index * stride), i64
} tn_operand_kind_t;

typedef struct tn_kernel_operand {
  uint8_t dtype;   // tn_dtype_t; I64 for INDEX
  uint8_t kind;    // tn_operand_kind_t
  uint8_t vector;  // tn_operand_class_t
  uint8_t unused;
} tn_kernel_operand_t;

// Instructions beyond the elementwise tn_op_t values.
enum {
  TN_KOP_LOAD = 200,  // index: operand. dtype = the operand's
  TN_KOP_STORE,       // index: operand, a: value of the operand's dtype
  TN_KOP_SCALAR,      // index: scalar argument of dtype |dtype|
  TN_KOP_INDEX,       // index: INDEX operand; dtype I64
  TN_KOP_ACC,  // index: tn_reduce_kind_t, a: value; last in a LOOP phase; usable in later phases
};

typedef struct tn_kernel_inst {
  uint8_t op;     // tn_op_t (elementwise) or TN_KOP_*
  uint8_t dtype;  // of the result (COMPARE: BOOL; CONVERT: the target)
  uint8_t phase;
  uint8_t index;    // operand, scalar, reduce kind, or compare direction
  uint8_t a, b, c;  // earlier instructions
  uint8_t unused;
} tn_kernel_inst_t;

typedef struct tn_kernel_program {
  uint8_t loop_count;      // parallel + reduced, >= 1
  uint8_t parallel_count;  // first loops; the rest is reduced
  uint8_t vector_loop;     // parallel_count - 1 or loop_count - 1
  uint8_t phase_count;
  uint8_t operand_count, scalar_count;
  uint8_t inst_count;
  uint8_t unused;
  uint8_t phase_is_point[8];
  uint8_t scalar_dtype[TN_KERNEL_SCALARS];
  tn_kernel_operand_t operand[TN_KERNEL_OPERANDS];
  tn_kernel_inst_t inst[TN_KERNEL_INSTRUCTIONS];
} tn_kernel_program_t;

typedef struct tn_kernel_args {
  void* const* ptr;           // [operand_count]; INDEX operands: the start value
  const int64_t* stride;      // bytes (INDEX: units), [operand_count][loop_count]
  const int64_t* dim;         // extents, [loop_count]
  const tn_scalar_t* scalar;  // [scalar_count]
  // A reduction in parts (programs with tn_kernel_program_has_parts, else ignored). Each point of the parallel loops
  // has one place, an element as accumulated: at flattened outer point times pitch, plus the index in a parallel
  // vector loop, whose extent rounded up to TN_KERNEL_LANES is the pitch (1 if the vector loop is reduced). Padding is
  // read and written.
  const void*
      part_in;  // not NULL: accumulators start here; a reduced vector loop must then have no elements
  void* part_out;  // not NULL: accumulators are stored here, and the epilogue does not run
} tn_kernel_args_t;

// One reduction and what is computed of its value.
static inline bool tn_kernel_program_has_parts(const tn_kernel_program_t* program) {
  int accs = 0;
  for (int i = 0; i < program->inst_count; ++i)
    if (program->inst[i].op == TN_KOP_ACC) accs += program->inst[i].phase == 0 ? 1 : 2;
  return accs == 1 && program->phase_count == 2 && !program->phase_is_point[0] &&
         program->phase_is_point[1] && program->loop_count > program->parallel_count;
}

// Runs points [outer_begin, outer_end) of the flattened parallel loops without the vector loop, and
// [vector_begin, vector_end) of the vector loop if that is parallel (ignored otherwise). With no other parallel
// loop the outer range is [0, 1). An element's value does not depend on where ranges are cut.
typedef void (*tn_kernel_fn_t)(const tn_kernel_args_t* args, int64_t outer_begin, int64_t outer_end,
                               int64_t vector_begin, int64_t vector_end);

// Checks counts, references, phases and dtypes. INTERNAL naming the instruction.
tn_status_t tn_kernel_program_verify(const tn_kernel_program_t* program);
// Text form, one line an instruction; the caller frees |out_text|. tn_kernel_program_parse is its inverse.
tn_status_t tn_kernel_program_print(const tn_kernel_program_t* program, char** out_text);
tn_status_t tn_kernel_program_parse(const char* text, tn_kernel_program_t* out_program);

// The machine code of |program|: from memory, else from disk, else generated (once per key, whoever asks).
// Valid until the process ends. UNAVAILABLE when code generation is not built in or its plugin cannot load.
// Thread-safe.
tn_status_t tn_kernel_lookup(const tn_kernel_program_t* program, tn_kernel_fn_t* out_kernel);

typedef struct tn_kernel_cache_stats {
  int64_t memory_hits, disk_hits, generated, failures, bad_entries;
  int64_t generate_ns, load_ns;
  int64_t entries, code_bytes;
} tn_kernel_cache_stats_t;
void tn_kernel_cache_stats(tn_kernel_cache_stats_t* out_stats);
typedef struct tn_kernel_info {
  uint64_t hash;  // of the program
  size_t code_size;
  int64_t produce_ns;  // to generate it, or to read it from disk
  int64_t uses;        // lookups so far
} tn_kernel_info_t;
// Calls |visit| for every kernel in memory, in no order. Thread-safe; |visit| may look kernels up.
void tn_kernel_cache_each(void (*visit)(void* context, const tn_kernel_info_t* info),
                          void* context);
// Forgets the kernels in memory and, if |and_disk|, deletes the files. Code that programs hold stays valid. Thread-safe.
tn_status_t tn_kernel_cache_clear(bool and_disk);
// Starts the code generator now (it is otherwise opened at the first miss). UNAVAILABLE as above.
tn_status_t tn_codegen_open(void);

#ifdef __cplusplus
}
#endif
#endif  // TN_KERNEL_PROGRAM_H_
