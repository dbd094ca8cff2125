// Loads relocatable ELF64 objects of the code generator into executable memory.
//
// Code lies packed in chunks that are mapped readable and executable only; it is written through the chunk's file, so
// no page is ever writable and executable, and functions of a page run on while the next one is added to it.
#ifndef TN_CODEGEN_LOADER_H_
#define TN_CODEGEN_LOADER_H_

#include <stddef.h>

#include "tn/status.h"

// |out_function| is the object's only global function; its code lives as long as the process. Imports resolve from
// the table in imports.c. DATA_LOSS when the object is damaged or uses what the loader does not know. Thread-safe.
tn_status_t tn_loader_load(const void* object, size_t size, void** out_function,
                           size_t* out_code_size);

// Address of a function that generated code may call; NULL if |name| is not in the table.
void* tn_loader_import(const char* name);

#endif  // TN_CODEGEN_LOADER_H_
