// Several kernels at once. See tn/kernel_program.h for the lookup of one.
#ifndef TN_CODEGEN_KERNEL_CACHE_H_
#define TN_CODEGEN_KERNEL_CACHE_H_

#include "base/pool.h"
#include "codegen/object_cache.h"
#include "tn/kernel_program.h"

// tn_kernel_lookup for |count| programs, generating the missing ones side by side on |pool| (NULL: one after the
// other). The first failure is returned; kernels that failed are NULL.
tn_status_t tn_kernel_lookup_many(const tn_kernel_program_t* const* programs, int count,
                                  tn_kernel_fn_t* out_kernels, tn_pool_t* pool);
bool tn_kernel_is_in_memory(const tn_kernel_program_t* program);
// Name of a program's file for the code of |emitter| (plugin version text) and this process's instruction set.
tn_object_key_t tn_kernel_key(const char* emitter, const tn_kernel_program_t* program);
// Forgets all kernels in memory, so that the next lookups go to disk (code stays valid). For tests and tools.
void tn_kernel_cache_forget(void);

#endif  // TN_CODEGEN_KERNEL_CACHE_H_
