// What the files of this room share about kernel programs.
#ifndef TN_CODEGEN_KERNEL_PROGRAM_INTERNAL_H_
#define TN_CODEGEN_KERNEL_PROGRAM_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>

#include "tn/kernel_program.h"

// The canonical bytes of a program: counts, then only the used parts of the arrays.
enum {
  TN_KERNEL_PACKED_MAX = 8 + 8 + TN_KERNEL_SCALARS + 4 * TN_KERNEL_OPERANDS +
  8 * TN_KERNEL_INSTRUCTIONS
};
size_t tn_kernel_program_pack(const tn_kernel_program_t* program, uint8_t* out_bytes);
// The same bytes for programs that differ only in loops and operand classes; see kernel_family.h.
size_t tn_kernel_program_pack_family(const tn_kernel_program_t* program, uint8_t* out_bytes);
// False if |bytes| are not the canonical bytes of a program (which may still fail tn_kernel_program_verify).
bool tn_kernel_program_unpack(const uint8_t* bytes, size_t size, tn_kernel_program_t* out_program);

// Value operands of an instruction: 0..3, or -1.
int tn_kernel_inst_operand_count(const tn_kernel_inst_t* inst);

#endif  // TN_CODEGEN_KERNEL_PROGRAM_INTERNAL_H_
