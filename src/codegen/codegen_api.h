// The boundary between libtn and the plugin libtn_codegen.so, which holds LLVM.
//
// The plugin exports one symbol, TN_CODEGEN_SYMBOL: a constant tn_codegen_api_t. It links nothing of libtn, so both
// sides speak in plain numbers and text. Functions return a tn_code_t and write a message without place to |error|.
#ifndef TN_CODEGEN_CODEGEN_API_H_
#define TN_CODEGEN_CODEGEN_API_H_

#include <stddef.h>
#include <stdint.h>

#include "tn/kernel_program.h"

enum { TN_CODEGEN_API_VERSION = 1, TN_CODEGEN_ERROR_SIZE = 256 };
#define TN_CODEGEN_SYMBOL "tn_codegen_api_v1"

// Instruction sets, in rising order; the numbers are those of tn_isa_t.
enum { TN_CODEGEN_GENERIC, TN_CODEGEN_AVX2, TN_CODEGEN_AVX512, TN_CODEGEN_ISA_COUNT };

typedef struct tn_codegen_session
    tn_codegen_session_t;  // a target machine and a context, one thread at a time

typedef enum tn_codegen_format {
  TN_CODEGEN_OBJECT,    // relocatable ELF64
  TN_CODEGEN_ASSEMBLY,  // text, for people
  TN_CODEGEN_IR,        // text, for people
} tn_codegen_format_t;

typedef struct tn_codegen_api {
  uint32_t version;              // TN_CODEGEN_API_VERSION
  uint32_t size;                 // sizeof(tn_codegen_api_t)
  const char* (*emitter)(void);  // LLVM version and emitter revision: equal text means equal code
  int (*session_create)(int isa, tn_codegen_session_t** out_session, char* error);
  void (*session_destroy)(tn_codegen_session_t* session);
  // Code of one verified program; its function is the only global function. |out_data| is malloc'ed.
  int (*compile)(tn_codegen_session_t* session, const tn_kernel_program_t* program,
                 tn_codegen_format_t format, void** out_data, size_t* out_size, char* error);
} tn_codegen_api_t;

#endif  // TN_CODEGEN_CODEGEN_API_H_
