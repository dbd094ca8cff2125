// One program from text to machine code.
#include "tests/c/test.h"

#include <stdlib.h>

#include "tn/kernel_program.h"

// Kernels of older builds on this machine are not what is tested here.
__attribute__((constructor)) static void use_no_disk(void) {
  setenv("TORCH_NEURONX_DISABLE_NEFF_CACHE", "1", 1);
}

TN_TEST(add_of_f32_runs_for_all_sizes_with_one_kernel) {
  tn_kernel_program_t program;
  TN_EXPECT_OK(
      tn_kernel_program_parse("loops 1 0 vector 0\nphase loop\n"
                              "operand 0 f32 input contiguous\noperand 1 f32 input contiguous\n"
                              "operand 2 f32 output contiguous\n"
                              "%0 = load.0 f32 phase 0\n%1 = load.1 f32 phase 0\n"
                              "%2 = stablehlo.add f32 phase 0 %0 %1\nstore.2 phase 0 %2\n",
                              &program));
  TN_EXPECT_OK(tn_kernel_program_verify(&program));
  tn_kernel_fn_t kernel;
  tn_status_t status = tn_kernel_lookup(&program, &kernel);
  const bool is_missing = tn_status_code(status) == TN_UNAVAILABLE;  // a build without LLVM
  if (is_missing) fprintf(stderr, "skipped: %s\n", tn_status_message(status));
  TN_EXPECT(!status || is_missing);
  tn_status_free(status);
  if (!kernel) return;
  for (int64_t n = 0; n < 100; ++n) {
    float x[128], y[128], z[128];
    for (int i = 0; i < 128; ++i) {
      x[i] = (float)i;
      y[i] = (float)(2 * i);
      z[i] = -1;
    }
    void* ptr[] = {x, y, z};
    const int64_t stride[] = {4, 4, 4};
    tn_kernel_args_t args = {.ptr = ptr, .stride = stride, .dim = &n};
    kernel(&args, 0, 1, 0, n);
    for (int i = 0; i < 128; ++i) TN_EXPECT(z[i] == (i < n ? (float)(3 * i) : -1.0f));
  }
}
