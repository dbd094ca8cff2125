// Names inside sources that are compiled once per instruction set; see kernels/isa.h.
//
// The build sets TN_ISA_SUFFIX (generic, avx2, avx512) and one of TN_ISA_GENERIC, TN_ISA_AVX2, TN_ISA_AVX512.
// Everything in such a source is static, but for its table of functions, whose name gets the suffix.
#ifndef TN_KERNELS_ISA_ISA_NAMES_H_
#define TN_KERNELS_ISA_ISA_NAMES_H_

#define TN_ISA_PASTE_(name, suffix) name##__##suffix
#define TN_ISA_PASTE(name, suffix)  TN_ISA_PASTE_(name, suffix)
#define TN_ISA_NAME(name) TN_ISA_PASTE(name, TN_ISA_SUFFIX)  // tn_gemm_table -> tn_gemm_table__avx2

#if defined(TN_ISA_AVX512)
#define TN_VECTOR_BYTES 64
#elif defined(TN_ISA_AVX2)
#define TN_VECTOR_BYTES 32
#else
#define TN_VECTOR_BYTES 16
#endif

#endif  // TN_KERNELS_ISA_ISA_NAMES_H_
