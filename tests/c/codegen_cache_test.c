// Kernel cache: memory, disk, faults on disk, several processes and threads; the loader on damaged objects.
#include "codegen/kernel_cache.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/options.h"
#include "base/os.h"
#include "codegen/kernel_program_internal.h"
#include "codegen/loader.h"
#include "codegen/object_cache.h"
#include "codegen/plugin.h"
#include "tests/c/codegen_random.h"
#include "tests/c/test.h"

static char folder[64];

__attribute__((constructor)) static void use_own_folder(void) {
  snprintf(folder, sizeof folder, "/tmp/tn_cache_test_XXXXXX");
  if (mkdtemp(folder)) setenv("TORCH_NEURONX_NEFF_CACHE_DIR", folder, 1);
  unsetenv("TORCH_NEURONX_DISABLE_NEFF_CACHE");
  unsetenv("TORCH_NEURONX_NEFF_DISABLE_CACHE");
}
static void delete_file(void* context, const tn_object_file_t* file) {
  (void)context;
  remove(file->path);
}
static void empty_folder(void) {
  tn_status_free(tn_object_cache_each(false, delete_file, NULL));
  tn_kernel_cache_forget();
}
__attribute__((destructor)) static void delete_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (strstr(folder, "tn_cache_test") && system(command) != 0)
    fprintf(stderr, "%s stays\n", folder);
}

// out = x * which, in elementwise form; distinct for each |which| by its number of additions.
static tn_kernel_program_t program_of(int which) {
  tn_kernel_program_t p = {
      .loop_count = 1, .parallel_count = 1, .phase_count = 1, .operand_count = 2};
  p.operand[0] = (tn_kernel_operand_t){TN_F32, TN_OPERAND_INPUT, TN_OPERAND_CONTIGUOUS, 0};
  p.operand[1] = (tn_kernel_operand_t){TN_F32, TN_OPERAND_OUTPUT, TN_OPERAND_CONTIGUOUS, 0};
  p.inst[p.inst_count++] = (tn_kernel_inst_t){.op = TN_KOP_LOAD, .dtype = TN_F32};
  for (int i = 1; i < which; ++i)
    p.inst[p.inst_count++] =
        (tn_kernel_inst_t){.op = TN_OP_ADD, .dtype = TN_F32, .b = (uint8_t)(i - 1)};
  p.inst[p.inst_count] = (tn_kernel_inst_t){
      .op = TN_KOP_STORE, .dtype = TN_F32, .index = 1, .a = (uint8_t)(p.inst_count - 1)};
  ++p.inst_count;
  return p;
}
static bool computes(tn_kernel_fn_t kernel, int which) {
  if (!kernel) return false;
  float x[21], y[21];
  for (int i = 0; i < 21; ++i) x[i] = (float)i;
  void* ptr[] = {x, y};
  const int64_t stride[] = {4, 4}, dim[] = {21};
  const tn_kernel_args_t args = {.ptr = ptr, .stride = stride, .dim = dim};
  kernel(&args, 0, 1, 0, 21);
  for (int i = 0; i < 21; ++i)
    if (y[i] != (float)(i * which)) return false;
  return true;
}
static bool lookup(int which) {
  const tn_kernel_program_t program = program_of(which);
  tn_kernel_fn_t kernel;
  TN_EXPECT_OK(tn_kernel_lookup(&program, &kernel));
  return computes(kernel, which);
}
static tn_kernel_cache_stats_t stats(void) {
  tn_kernel_cache_stats_t s;
  tn_kernel_cache_stats(&s);
  return s;
}
static bool has_plugin(void) {
  const tn_codegen_api_t* api;
  tn_status_t status = tn_codegen_plugin(&api);
  tn_status_free(status);
  return api != NULL;
}
static void find_path(void* context, const tn_object_file_t* file) {
  memcpy(context, file->path, sizeof file->path);
}
static void only_path(char out_path[600]) {
  out_path[0] = 0;
  TN_EXPECT_OK(tn_object_cache_each(true, find_path, out_path));
}

TN_TEST(memory_then_disk_then_generation) {
  if (!has_plugin()) return;
  empty_folder();
  const tn_kernel_cache_stats_t s0 = stats();
  TN_EXPECT(lookup(3));
  TN_EXPECT(lookup(3));
  const tn_kernel_cache_stats_t s1 = stats();
  TN_EXPECT_EQ(1, s1.generated - s0.generated);
  TN_EXPECT_EQ(1, s1.memory_hits - s0.memory_hits);
  tn_kernel_cache_forget();
  TN_EXPECT(lookup(3));
  const tn_kernel_cache_stats_t s2 = stats();
  TN_EXPECT_EQ(0, s2.generated - s1.generated);
  TN_EXPECT_EQ(1, s2.disk_hits - s1.disk_hits);
  char path[600];
  struct stat info;
  only_path(path);
  TN_EXPECT(stat(path, &info) == 0 && (info.st_mode & 0777) == 0600);
}

// Writes |data| as the entry of program 4 and looks it up: must be generated anew and be right.
static void expect_bad(const char* path, const char* data, size_t size, const char* what) {
  FILE* file = fopen(path, "wb");
  if (!file) return;
  TN_EXPECT(fwrite(data, 1, size, file) == size);
  fclose(file);
  tn_kernel_cache_forget();
  const tn_kernel_cache_stats_t before = stats();
  TN_EXPECT(lookup(4));
  const tn_kernel_cache_stats_t after = stats();
  if (after.generated - before.generated != 1) fprintf(stderr, "entry used: %s\n", what);
  TN_EXPECT_EQ(1, after.generated - before.generated);
  TN_EXPECT_EQ(1, after.bad_entries - before.bad_entries);
}

TN_TEST(damaged_entries_are_misses_and_are_replaced) {
  if (!has_plugin()) return;
  empty_folder();
  TN_EXPECT(lookup(4));
  char path[600], *good = NULL;
  size_t size = 0;
  only_path(path);
  TN_EXPECT_OK(tn_os_read_file(path, &good, &size));
  if (!good) return;
  char* bad = malloc(size + 8);
  for (size_t cut = 0; cut < size; cut += 1 + size / 12) expect_bad(path, good, cut, "truncated");
  for (int i = 0; i < 24; ++i) {
    memcpy(bad, good, size);
    bad[(size_t)i * (size - 1) / 23] ^= (char)(1 << (i % 8));
    expect_bad(path, bad, size, "bit flip");
  }
  memcpy(bad, good, size);
  memset(bad + size, 0, 8);
  expect_bad(path, bad, size + 8, "longer");
  memcpy(bad, good, size);
  bad[8]++;
  expect_bad(path, bad, size, "foreign format");
  // The last one was replaced by a good one.
  tn_kernel_cache_forget();
  const tn_kernel_cache_stats_t before = stats();
  TN_EXPECT(lookup(4));
  TN_EXPECT_EQ(1, stats().disk_hits - before.disk_hits);
  // An entry that others may write is not run.
  chmod(path, 0666);
  tn_kernel_cache_forget();
  TN_EXPECT(lookup(4));
  TN_EXPECT_EQ(1, stats().disk_hits - before.disk_hits);
  free(bad);
  free(good);
}

TN_TEST(a_folder_that_cannot_be_used_costs_only_the_hit) {
  if (!has_plugin()) return;
  static const char* const folders[] = {"/proc/no_such_folder", "/dev/null/x", ""};
  for (int i = 0; i < 3; ++i) {
    setenv(i < 2 ? "TORCH_NEURONX_NEFF_CACHE_DIR" : "TORCH_NEURONX_DISABLE_NEFF_CACHE",
           i < 2 ? folders[i] : "1", 1);
    tn_options_reread();
    tn_kernel_cache_forget();
    const tn_kernel_cache_stats_t before = stats();
    TN_EXPECT(lookup(5));
    TN_EXPECT_EQ(1, stats().generated - before.generated);
  }
  unsetenv("TORCH_NEURONX_DISABLE_NEFF_CACHE");
  setenv("TORCH_NEURONX_NEFF_CACHE_DIR", folder, 1);
  tn_options_reread();
}

TN_TEST(processes_share_the_folder) {
  if (!has_plugin()) return;
  empty_folder();
  pid_t children[4];
  for (int c = 0; c < 4; ++c) {
    children[c] = fork();
    if (children[c] == 0) {
      bool ok = true;
      for (int i = 0; i < 6; ++i) ok &= lookup(10 + (i + c) % 6);
      _exit(ok ? 0 : 1);
    }
  }
  for (int c = 0; c < 4; ++c) {
    int status = 1;
    waitpid(children[c], &status, 0);
    TN_EXPECT_EQ(0, status);
  }
  const tn_kernel_cache_stats_t before = stats();
  for (int i = 0; i < 6; ++i) TN_EXPECT(lookup(10 + i));
  TN_EXPECT_EQ(0, stats().generated - before.generated);
  TN_EXPECT_EQ(0, stats().bad_entries - before.bad_entries);
}

TN_TEST(a_child_after_fork_does_not_disturb_code_of_its_parent) {
  if (!has_plugin()) return;
  empty_folder();
  TN_EXPECT(lookup(20));
  const pid_t child = fork();
  if (child == 0) _exit(lookup(21) && lookup(20) && lookup(22) ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  TN_EXPECT_EQ(0, status);
  for (int i = 20; i < 24; ++i) TN_EXPECT(lookup(i));
}

TN_TEST(many_programs_are_generated_once_each_on_the_pool) {
  if (!has_plugin()) return;
  enum { PROGRAMS = 12, COUNT = 36 };
  empty_folder();
  tn_kernel_program_t programs[PROGRAMS];
  const tn_kernel_program_t* list[COUNT];
  tn_kernel_fn_t kernels[COUNT];
  for (int i = 0; i < PROGRAMS; ++i) programs[i] = program_of(30 + i);
  for (int i = 0; i < COUNT; ++i) list[i] = &programs[i % PROGRAMS];
  tn_pool_t* pool = NULL;
  TN_EXPECT_OK(tn_pool_create(4, &pool));
  const tn_kernel_cache_stats_t before = stats();
  TN_EXPECT_OK(tn_kernel_lookup_many(list, COUNT, kernels, pool));
  TN_EXPECT_EQ(PROGRAMS, stats().generated - before.generated);
  for (int i = 0; i < COUNT; ++i) TN_EXPECT(computes(kernels[i], 30 + i % PROGRAMS));
  tn_pool_destroy(pool);
}

TN_TEST(failures_are_reported_and_never_stored) {
  if (!has_plugin()) return;
  empty_folder();
  tn_kernel_program_t bad = program_of(3);
  bad.inst[1].b = 77;
  tn_kernel_fn_t kernel;
  TN_EXPECT_CODE(TN_INTERNAL, tn_kernel_lookup(&bad, &kernel));
  TN_EXPECT(kernel == NULL);
  TN_EXPECT_CODE(TN_INTERNAL, tn_kernel_lookup(&bad, &kernel));
  char path[600];
  only_path(path);
  TN_EXPECT_STR("", path);
}

TN_TEST(prune_keeps_the_most_recently_used) {
  if (!has_plugin()) return;
  empty_folder();
  for (int i = 50; i < 58; ++i) TN_EXPECT(lookup(i));
  int64_t deleted, remaining;
  TN_EXPECT_OK(tn_object_cache_prune(INT64_MAX, &deleted, &remaining));
  TN_EXPECT_EQ(0, deleted);
  TN_EXPECT_OK(tn_object_cache_prune(remaining / 2, &deleted, &remaining));
  TN_EXPECT(deleted >= 4 && deleted <= 5);
  tn_kernel_cache_forget();
  const tn_kernel_cache_stats_t before = stats();
  TN_EXPECT(lookup(57));
  TN_EXPECT_EQ(1, stats().disk_hits - before.disk_hits);
}

TN_TEST(the_loader_refuses_or_survives_damaged_objects) {
  const tn_codegen_api_t* api;
  if (!has_plugin()) return;
  TN_EXPECT_OK(tn_codegen_plugin(&api));
  tn_codegen_session_t* session;
  char error[TN_CODEGEN_ERROR_SIZE];
  TN_EXPECT_EQ(0, api->session_create(TN_CODEGEN_GENERIC, &session, error));
  tn_kernel_program_t program = program_of(2);
  program.inst[1] = (tn_kernel_inst_t){.op = TN_OP_LGAMMA, .dtype = TN_F32};  // an import
  void *object, *function;
  size_t size, code_size;
  TN_EXPECT_EQ(0, api->compile(session, &program, TN_CODEGEN_OBJECT, &object, &size, error));
  TN_EXPECT_OK(tn_loader_load(object, size, &function, &code_size));
  uint8_t* bad = malloc(size);
  int refused = 0;
  random_state = 5;
  for (int i = 0; i < 4000; ++i) {
    memcpy(bad, object, size);
    const size_t at =
        i % 2 ? (size_t)random_below((int)size) : size - 1 - (size_t)random_below(900) % size;
    for (int n = random_below(3); n >= 0; --n) bad[(at + (size_t)n) % size] = (uint8_t)random_u32();
    tn_status_t status =
        tn_loader_load(bad, i % 7 ? size : (size_t)random_below((int)size), &function, &code_size);
    refused += status != TN_OK;
    tn_status_free(status);
  }
  TN_EXPECT(refused > 200);
  free(bad);
  free(object);
  api->session_destroy(session);
}

TN_TEST(canonical_bytes_unpack_to_the_same_program) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    random_case_t c;
    random_state = seed;
    random_program(&c, 8);
    uint8_t bytes[TN_KERNEL_PACKED_MAX], again[TN_KERNEL_PACKED_MAX];
    tn_kernel_program_t unpacked;
    const size_t size = tn_kernel_program_pack(&c.program, bytes);
    TN_EXPECT(size <= sizeof bytes);
    TN_EXPECT(tn_kernel_program_unpack(bytes, size, &unpacked));
    TN_EXPECT_EQ(size, tn_kernel_program_pack(&unpacked, again));
    TN_EXPECT(memcmp(bytes, again, size) == 0);
    TN_EXPECT(!tn_kernel_program_unpack(bytes, size - 1, &unpacked));
  }
}
