// The instruction set that kernels are generated for.
#ifndef TN_CODEGEN_ISA_H_
#define TN_CODEGEN_ISA_H_

// The best one of this CPU, capped by TN_ISA; a TN_CODEGEN_* number. Found once.
int tn_codegen_isa(void);
const char* tn_codegen_isa_name(int isa);

#endif  // TN_CODEGEN_ISA_H_
