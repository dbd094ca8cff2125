// Which instruction set the hand-written kernels use.
//
// A source in kernels/isa/*.c is compiled once per instruction set and ends in one constant table of functions:
//   isa/foo.c:  const tn_foo_table_t TN_ISA_NAME(tn_foo_table) = {...};           (isa/isa_names.h)
//   foo.c:      TN_ISA_TABLES(tn_foo_table_t, tn_foo_table)                       (declares all of them)
//               const tn_foo_table_t* table = TN_ISA_PICK(tn_foo_table);          (the one for this CPU)
#ifndef TN_KERNELS_ISA_H_
#define TN_KERNELS_ISA_H_

#ifdef __cplusplus
extern "C" {
#endif

// In rising order. (The names TN_ISA_GENERIC.. are macros set by the build, so the levels have their own.)
typedef enum tn_isa {
  TN_ISA_LEVEL_GENERIC,
  TN_ISA_LEVEL_AVX2,    // with FMA, F16C, BMI2
  TN_ISA_LEVEL_AVX512,  // F, BW, CD, DQ, VL
  TN_ISA_LEVEL_COUNT,
} tn_isa_t;

// The best set of this CPU, capped by the environment variable TN_ISA (generic, avx2, avx512); found once.
tn_isa_t tn_isa_current(void);
const char* tn_isa_name(tn_isa_t isa);  // as in TN_ISA

#ifdef TN_HAVE_X86
#define TN_ISA_TABLES(type, name)    \
  extern const type name##__generic; \
  extern const type name##__avx2;    \
  extern const type name##__avx512;
#define TN_ISA_AT(name, isa)                      \
  ((isa) == TN_ISA_LEVEL_AVX512 ? &name##__avx512 \
   : (isa) == TN_ISA_LEVEL_AVX2 ? &name##__avx2   \
                                : &name##__generic)
#else
#define TN_ISA_TABLES(type, name) extern const type name##__generic;
#define TN_ISA_AT(name, isa)      ((void)(isa), &name##__generic)
#endif
#define TN_ISA_PICK(name) TN_ISA_AT(name, tn_isa_current())

#ifdef __cplusplus
}
#endif
#endif  // TN_KERNELS_ISA_H_
