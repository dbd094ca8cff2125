// Kernels that differ only in loops and operand classes, so that one can often do the work of another.
//
// A dimension of extent 1 leaves no loop, and loops merge where strides happen to allow it; what remains is a
// narrower program than that of other sizes. Rather than generate it, a kernel of more loops that exists runs with
// extents of 1. Values have the same bits: the order of a reduction does not depend on loops of extent 1.
#ifndef TN_CODEGEN_KERNEL_FAMILY_H_
#define TN_CODEGEN_KERNEL_FAMILY_H_

#include "tn/kernel_program.h"

// A program with the sizes it is to run on.
typedef struct tn_kernel_sizes {
  tn_kernel_program_t program;
  int64_t dim[TN_KERNEL_LOOPS];
  int64_t stride[TN_KERNEL_OPERANDS * TN_KERNEL_LOOPS];  // as in tn_kernel_args_t
} tn_kernel_sizes_t;

// True if |member| computes what |asked|'s program does on its sizes; |out| has the sizes for |member|. |repeats| is how
// often the kernel runs: a form without vectors is taken for few points only.
bool tn_kernel_family_fit(const tn_kernel_program_t* member, const tn_kernel_sizes_t* asked,
                          int64_t repeats, tn_kernel_sizes_t* out);

// For a program without a kernel in memory: true if one that fits has one, in memory or (unless the program's own is
// there) on disk; |out| is to run instead. Thread-safe.
bool tn_kernel_family_find(const tn_kernel_sizes_t* asked, int64_t repeats, tn_kernel_sizes_t* out);

// For the kernel cache: |program| has a kernel now; and the end of all kernels in memory.
void tn_kernel_family_add(const tn_kernel_program_t* program);
void tn_kernel_family_forget(void);

#endif  // TN_CODEGEN_KERNEL_FAMILY_H_
