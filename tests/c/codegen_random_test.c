// Generated code against the interpreter on random programs, bit for bit (NaNs: any payload), for random extents and
// for the loops cut into ranges.
#include "tests/c/codegen_random.h"

#include "codegen/kernel_interp.h"
#include "codegen/loader.h"
#include "codegen/plugin.h"
#include "tests/c/test.h"

// Kernels of older builds on this machine are not what is tested here.
__attribute__((constructor)) static void use_no_disk(void) {
  setenv("TORCH_NEURONX_DISABLE_NEFF_CACHE", "1", 1);
}

static bool same_element(tn_dtype_t dtype, const uint8_t* x, const uint8_t* y) {
  const size_t size = tn_dtype_size(dtype);
  if (memcmp(x, y, size) == 0) return true;
  if (!tn_dtype_is_float(dtype)) return false;
  tn_scalar_t a = {0}, b = {0};
  memcpy(&a, x, size);
  memcpy(&b, y, size);
  return isnan(tn_scalar_to_double(dtype, a)) && isnan(tn_scalar_to_double(dtype, b));
}

static uint8_t* filled(const random_case_t* c, int operand) {
  const tn_dtype_t dtype = (tn_dtype_t)c->program.operand[operand].dtype;
  const size_t size = tn_dtype_size(dtype), count = c->bytes[operand] / size + 1;
  uint8_t* data = malloc(count * size);
  for (size_t i = 0; i < count; ++i) {
    const tn_scalar_t value = random_scalar(dtype);
    memcpy(data + i * size, &value, size);
  }
  return data;
}

typedef void (*runner_t)(const random_case_t* c, const tn_kernel_args_t* args,
                         tn_kernel_fn_t kernel);
static int64_t outer_points(const random_case_t* c) {
  int64_t points = 1;
  for (int l = 0; l < c->program.parallel_count; ++l)
    if (l != c->program.vector_loop) points *= c->dim[l];
  return points;
}
static void run_interpreted(const random_case_t* c, const tn_kernel_args_t* args,
                            tn_kernel_fn_t kernel) {
  (void)kernel;
  TN_EXPECT_OK(tn_kernel_program_interpret(&c->program, args, 0, outer_points(c), 0,
                                           c->dim[c->program.vector_loop]));
}
static void run_whole(const random_case_t* c, const tn_kernel_args_t* args, tn_kernel_fn_t kernel) {
  kernel(args, 0, outer_points(c), 0, c->dim[c->program.vector_loop]);
}
static void run_in_pieces(const random_case_t* c, const tn_kernel_args_t* args,
                          tn_kernel_fn_t kernel) {
  const int64_t points = outer_points(c), extent = c->dim[c->program.vector_loop];
  const int64_t outer_cut = points > 0 ? random_below((int)points + 1) : 0;
  const int64_t cut = extent > 0 && c->program.vector_loop < c->program.parallel_count
                          ? random_below((int)extent + 1)
                          : extent;
  kernel(args, 0, outer_cut, 0, cut);
  kernel(args, outer_cut, points, 0, cut);
  if (c->program.vector_loop < c->program.parallel_count) kernel(args, 0, points, cut, extent);
}

// Runs all ways on equal data and compares every byte of every operand. Returns the number of differences.
static int compare_case(const random_case_t* c, tn_kernel_fn_t kernel, tn_kernel_fn_t generic) {
  enum { WAYS = 4 };
  static const runner_t runners[WAYS] = {run_interpreted, run_whole, run_in_pieces, run_in_pieces};
  const tn_kernel_program_t* p = &c->program;
  uint8_t* data[WAYS][TN_KERNEL_OPERANDS];
  int64_t stride[TN_KERNEL_OPERANDS * TN_KERNEL_LOOPS];
  int differences = 0;
  for (int k = 0; k < p->operand_count; ++k) {
    const size_t size = tn_dtype_size((tn_dtype_t)p->operand[k].dtype),
                 bytes = (c->bytes[k] / size + 1) * size;
    data[0][k] = filled(c, k);
    for (int w = 1; w < WAYS; ++w) memcpy(data[w][k] = malloc(bytes), data[0][k], bytes);
    for (int l = 0; l < p->loop_count; ++l) stride[k * p->loop_count + l] = c->stride[k][l];
  }
  for (int w = 0; w < WAYS; ++w) {
    void* ptr[TN_KERNEL_OPERANDS];
    for (int k = 0; k < p->operand_count; ++k)
      ptr[k] = p->operand[k].kind == TN_OPERAND_INDEX ? (void*)(intptr_t)c->index_start[k]
               : c->in_place[k] >= 0                  ? (void*)data[w][c->in_place[k]]
                                                      : (void*)data[w][k];
    const tn_kernel_args_t args = {
        .ptr = ptr, .stride = stride, .dim = c->dim, .scalar = c->scalar};
    runners[w](c, &args, w < 3 ? kernel : generic);
  }
  for (int k = 0; k < p->operand_count; ++k) {
    const size_t size = tn_dtype_size((tn_dtype_t)p->operand[k].dtype);
    for (int w = 1; w < WAYS && p->operand[k].kind != TN_OPERAND_INDEX; ++w) {
      for (size_t at = 0; at + size <= c->bytes[k] + size; at += size) {
        if (at + size > (c->bytes[k] / size + 1) * size) break;
        if (same_element((tn_dtype_t)p->operand[k].dtype, data[0][k] + at, data[w][k] + at))
          continue;
        if (differences++ == 0) {
          tn_scalar_t want = {0}, got = {0};
          memcpy(&want, data[0][k] + at, size);
          memcpy(&got, data[w][k] + at, size);
          fprintf(stderr, "operand %d element %zu way %d: want %.9g (%llx), got %.9g (%llx)\n", k,
                  at / size, w, tn_scalar_to_double((tn_dtype_t)p->operand[k].dtype, want),
                  (unsigned long long)want.u64,
                  tn_scalar_to_double((tn_dtype_t)p->operand[k].dtype, got),
                  (unsigned long long)got.u64);
        }
      }
    }
    for (int w = 0; w < WAYS; ++w) free(data[w][k]);
  }
  if (differences) {
    for (int l = 0; l < p->loop_count; ++l)
      fprintf(stderr, "dim %d: %lld\n", l, (long long)c->dim[l]);
  }
  return differences;
}

static void report(const tn_kernel_program_t* program, uint64_t seed) {
  char* text = NULL;
  tn_status_free(tn_kernel_program_print(program, &text));
  fprintf(stderr, "seed %llu\n%s", (unsigned long long)seed, text ? text : "");
  free(text);
}

// Code of the same program for another instruction set; loaded if |out_kernel|.
static void try_other_isa(const tn_kernel_program_t* program, int isa, tn_kernel_fn_t* out_kernel) {
  static tn_codegen_session_t* sessions[TN_CODEGEN_ISA_COUNT];
  const tn_codegen_api_t* api;
  char error[TN_CODEGEN_ERROR_SIZE] = "";
  void *object = NULL, *function;
  size_t size, code_size;
  TN_EXPECT_OK(tn_codegen_plugin(&api));
  if (!sessions[isa]) TN_EXPECT_EQ(0, api->session_create(isa, &sessions[isa], error));
  TN_EXPECT_EQ(0, api->compile(sessions[isa], program, TN_CODEGEN_OBJECT, &object, &size, error));
  if (object && out_kernel) {
    TN_EXPECT_OK(tn_loader_load(object, size, &function, &code_size));
    *out_kernel = (tn_kernel_fn_t)(uintptr_t)function;
  }
  free(object);
}

static void run_seed(uint64_t seed, int length) {
  random_case_t c;
  random_state = seed * 7919 + 13;
  random_u32();
  random_program(&c, length);
  TN_EXPECT_OK(tn_kernel_program_verify(&c.program));
  tn_kernel_fn_t kernel;
  tn_status_t status = tn_kernel_lookup(&c.program, &kernel);
  if (tn_status_code(status) == TN_UNAVAILABLE) {
    tn_status_free(status);
    return;
  }
  TN_EXPECT_OK(status);
  if (!kernel) {
    report(&c.program, seed);
    return;
  }
  tn_kernel_fn_t generic = kernel;
  if (seed % 4 == 1) try_other_isa(&c.program, TN_CODEGEN_AVX512, NULL);
  if (seed % 4 == 2) try_other_isa(&c.program, TN_CODEGEN_GENERIC, &generic);
  for (int i = 0; i < 6; ++i) {
    random_layout(&c);
    const int differences = compare_case(&c, kernel, generic);
    TN_EXPECT_EQ(0, differences);
    if (differences) {
      report(&c.program, seed);
      return;
    }
  }
}

// More seeds: TN_TEST_SEEDS=first:count.
static void run_seeds(int first, int count, int length) {
  const char* text = getenv("TN_TEST_SEEDS");
  if (text) sscanf(text, "%d:%d", &first, &count);
  for (int i = 0; i < count; ++i) run_seed((uint64_t)(first + i), length);
}

TN_TEST(short_programs_equal_the_interpreter) { run_seeds(0, 60, 3); }
TN_TEST(long_programs_equal_the_interpreter) { run_seeds(1000, 12, 14); }

TN_TEST(text_of_random_programs_parses_to_the_same_program) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    random_case_t c;
    random_state = seed;
    random_program(&c, 10);
    char *text = NULL, *again = NULL;
    tn_kernel_program_t parsed;
    TN_EXPECT_OK(tn_kernel_program_print(&c.program, &text));
    TN_EXPECT_OK(tn_kernel_program_parse(text, &parsed));
    TN_EXPECT_OK(tn_kernel_program_verify(&parsed));
    TN_EXPECT_OK(tn_kernel_program_print(&parsed, &again));
    TN_EXPECT_STR(text, again);
    free(text);
    free(again);
  }
}
