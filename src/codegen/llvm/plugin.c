// The plugin's API: target machines, and one module per program.
#include <llvm-c/Analysis.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/llvm/emit.h"
#include "tn_emit_sources.h"  // hash of everything that decides about the emitted code

enum { CONTEXT_PROGRAMS = 64 };  // constants stay in a context until it dies, so it is renewed

struct tn_codegen_session {
  LLVMContextRef context;
  LLVMTargetMachineRef machine;
  LLVMTargetDataRef layout;
  int isa;
  int program_count;
};

typedef struct tn_target_row {
  const char *cpu, *features, *vector_width;
} tn_target_row_t;
static const tn_target_row_t targets[TN_CODEGEN_ISA_COUNT] = {
    [TN_CODEGEN_GENERIC] = {"x86-64", "", "128"},
    [TN_CODEGEN_AVX2] = {"x86-64-v3", "+avx2,+fma,+f16c,+bmi,+bmi2", "256"},
    [TN_CODEGEN_AVX512] = {"x86-64-v4", "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl", "512"},
};

static void init_llvm(void) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  // Loop strength reduction costs a tenth of the time and does nothing for loops that count in elements. The option
  // is global to this copy of LLVM, which nobody else can see; a name that a version lacks is ignored.
  static const char* const options[] = {"tn", "-disable-lsr"};
  LLVMParseCommandLineOptions(2, options, "");
}

static char emitter_text[64];  // written once

static void write_emitter_text(void) {
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  snprintf(emitter_text, sizeof emitter_text, "llvm-%u.%u.%u emitter-" TN_EMIT_SOURCES, major,
           minor, patch);
}
static const char* emitter(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, write_emitter_text);
  return emitter_text;
}

static void session_destroy(tn_codegen_session_t* session) {
  if (!session) return;
  if (session->layout) LLVMDisposeTargetData(session->layout);
  if (session->machine) LLVMDisposeTargetMachine(session->machine);
  if (session->context) LLVMContextDispose(session->context);
  free(session);
}

static int session_create(int isa, tn_codegen_session_t** out_session, char* error) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, init_llvm);
  *out_session = NULL;
  if (isa < 0 || isa >= TN_CODEGEN_ISA_COUNT) {
    snprintf(error, TN_CODEGEN_ERROR_SIZE, "code generator: instruction set %d is unknown", isa);
    return TN_INVALID_ARGUMENT;
  }
  tn_codegen_session_t* session = calloc(1, sizeof *session);
  if (!session) return TN_RESOURCE_EXHAUSTED;
  session->isa = isa;
  char* triple = LLVMGetDefaultTargetTriple();
  char* message = NULL;
  LLVMTargetRef target;
  const bool failed = LLVMGetTargetFromTriple(triple, &target, &message);
  if (!failed) {
    session->machine =
        LLVMCreateTargetMachine(target, triple, targets[isa].cpu, targets[isa].features,
                                LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
  }
  LLVMDisposeMessage(triple);
  if (failed || !session->machine) {
    snprintf(error, TN_CODEGEN_ERROR_SIZE, "code generator: %s",
             message ? message : "no target machine");
    LLVMDisposeMessage(message);
    session_destroy(session);
    return TN_UNAVAILABLE;
  }
  session->layout = LLVMCreateTargetDataLayout(session->machine);
  *out_session = session;
  return TN_SUCCESS;
}

static void add_attribute(tn_emit_t* e, const char* name, const char* value) {
  LLVMAddAttributeAtIndex(e->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                          LLVMCreateStringAttribute(e->context, name, (unsigned)strlen(name), value,
                                                    (unsigned)strlen(value)));
}

// One native vector a value: the next turn of the loop gives the processor enough independent work, and twice the
// width would be twice the work of instruction selection. Column reductions take four, because their accumulators
// would else wait for each other.
static int choose_lanes(const tn_kernel_program_t* program, int isa) {
  enum { SHORT_COST = 8, MOST_LANES = 32 };
  size_t widest = 1;
  int cost = 0;
  for (int i = 0; i < program->inst_count; ++i) {
    const int dtype = program->inst[i].dtype;
    const size_t size = tn_emit_is_small_float(dtype) ? 4 : tn_emit_dtype_size(dtype);
    if (size > widest) widest = size;
    cost += tn_emit_inst_cost(program, i);
  }
  const int native = isa == TN_CODEGEN_AVX512 ? 64 : isa == TN_CODEGEN_AVX2 ? 32 : 16;
  int lanes = native / (int)widest;
  const bool is_column = program->parallel_count < program->loop_count &&
                         program->vector_loop < program->parallel_count;
  if (is_column && cost <= SHORT_COST) lanes *= 4;
  return lanes < MOST_LANES ? lanes : MOST_LANES;
}

static void set_types(tn_emit_t* e) {
  e->i1 = LLVMInt1TypeInContext(e->context);
  e->i8 = LLVMInt8TypeInContext(e->context);
  e->i16 = LLVMInt16TypeInContext(e->context);
  e->i32 = LLVMInt32TypeInContext(e->context);
  e->i64 = LLVMInt64TypeInContext(e->context);
  e->half = LLVMHalfTypeInContext(e->context);
  e->f32 = LLVMFloatTypeInContext(e->context);
  e->f64 = LLVMDoubleTypeInContext(e->context);
  e->ptr = LLVMPointerTypeInContext(e->context, 0);
  e->void_type = LLVMVoidTypeInContext(e->context);
}

static int emit_module(tn_codegen_session_t* session, LLVMModuleRef module,
                       tn_codegen_format_t format, void** out_data, size_t* out_size, char* error) {
  char* message = NULL;
  if (format == TN_CODEGEN_IR) {
    char* text = LLVMPrintModuleToString(module);
    *out_data = strdup(text);
    *out_size = strlen(text);
    LLVMDisposeMessage(text);
    return *out_data ? TN_SUCCESS : TN_RESOURCE_EXHAUSTED;
  }
  LLVMMemoryBufferRef buffer = NULL;
  LLVMCodeGenFileType type = format == TN_CODEGEN_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
  if (LLVMTargetMachineEmitToMemoryBuffer(session->machine, module, type, &message, &buffer)) {
    snprintf(error, TN_CODEGEN_ERROR_SIZE, "code generator: %s",
             message ? message : "emission failed");
    LLVMDisposeMessage(message);
    return TN_INTERNAL;
  }
  const size_t size = LLVMGetBufferSize(buffer);
  char* data = malloc(size + 1);
  if (data) {
    memcpy(data, LLVMGetBufferStart(buffer), size);
    data[size] = 0;
  }
  LLVMDisposeMemoryBuffer(buffer);
  *out_data = data;
  *out_size = size;
  return data ? TN_SUCCESS : TN_RESOURCE_EXHAUSTED;
}

static int compile(tn_codegen_session_t* session, const tn_kernel_program_t* program,
                   tn_codegen_format_t format, void** out_data, size_t* out_size, char* error) {
  *out_data = NULL;
  *out_size = 0;
  error[0] = 0;
  if (session->context && ++session->program_count % CONTEXT_PROGRAMS == 0) {
    LLVMContextDispose(session->context);
    session->context = NULL;
  }
  if (!session->context) {
    session->context = LLVMContextCreate();
    LLVMContextSetDiscardValueNames(session->context, 1);
  }
  tn_emit_t* e = calloc(1, sizeof *e);
  if (!e) return TN_RESOURCE_EXHAUSTED;
  e->context = session->context;
  e->module = LLVMModuleCreateWithNameInContext("tn", e->context);
  LLVMSetModuleDataLayout(e->module, session->layout);
  char* triple = LLVMGetTargetMachineTriple(session->machine);
  LLVMSetTarget(e->module, triple);
  LLVMDisposeMessage(triple);
  e->b = LLVMCreateBuilderInContext(e->context);
  e->program = program;
  e->isa = session->isa;
  e->error = error;
  e->lanes = choose_lanes(program, e->isa);
  set_types(e);
  tn_emit_program(e);
  const tn_target_row_t* target = &targets[session->isa];
  add_attribute(e, "target-cpu", target->cpu);
  add_attribute(e, "target-features", target->features);
  add_attribute(e, "no-trapping-math", "true");
  add_attribute(e, "no-builtins", "");
  add_attribute(e, "prefer-vector-width", target->vector_width);
  add_attribute(e, "min-legal-vector-width", target->vector_width);
  unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
  LLVMAddAttributeAtIndex(e->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(e->context, nounwind, 0));
  int code = e->code;
  if (code == TN_SUCCESS &&
      format == TN_CODEGEN_ASSEMBLY) {  // who asks for text is looking for mistakes
    char* message = NULL;
    if (LLVMVerifyModule(e->module, LLVMReturnStatusAction, &message)) {
      snprintf(error, TN_CODEGEN_ERROR_SIZE, "code generator: %s", message);
      code = TN_INTERNAL;
    }
    LLVMDisposeMessage(message);
  }
  if (code == TN_SUCCESS) code = emit_module(session, e->module, format, out_data, out_size, error);
  LLVMDisposeBuilder(e->b);
  LLVMDisposeModule(e->module);
  free(e);
  return code;
}

__attribute__((visibility("default"))) extern const tn_codegen_api_t tn_codegen_api_v1;
const tn_codegen_api_t tn_codegen_api_v1 = {
    .version = TN_CODEGEN_API_VERSION,
    .size = sizeof(tn_codegen_api_t),
    .emitter = emitter,
    .session_create = session_create,
    .session_destroy = session_destroy,
    .compile = compile,
};
