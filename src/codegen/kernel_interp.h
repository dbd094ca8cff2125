// Kernel programs without code generation.
#ifndef TN_CODEGEN_KERNEL_INTERP_H_
#define TN_CODEGEN_KERNEL_INTERP_H_

#include "tn/kernel_program.h"

// Runs a verified |program| as its generated kernel would, bit for bit: the way to run where there is no code
// generator, and the oracle of its tests. INTERNAL if the program was not verified and an instruction has no meaning
// on its dtype; outputs are then unspecified. No allocation, thread-safe.
tn_status_t tn_kernel_program_interpret(const tn_kernel_program_t* program,
                                        const tn_kernel_args_t* args, int64_t outer_begin,
                                        int64_t outer_end, int64_t vector_begin,
                                        int64_t vector_end);

#endif  // TN_CODEGEN_KERNEL_INTERP_H_
