// tn cache: the kernels on disk.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/options.h"
#include "base/os.h"
#include "codegen/kernel_program_internal.h"
#include "codegen/object_cache.h"
#include "tool/tool.h"

typedef struct totals {
  int64_t files, bytes, bad;
  bool is_check, is_long;
} totals_t;

static void print_program(const tn_object_file_t* file) {
  tn_kernel_program_t program;
  char* text = NULL;
  if (!tn_kernel_program_unpack(file->program, file->program_size, &program)) return;
  tn_status_t status = tn_kernel_program_verify(&program);
  if (!status) status = tn_kernel_program_print(&program, &text);
  for (char* line = text ? strtok(text, "\n") : NULL; line; line = strtok(NULL, "\n"))
    printf("    %s\n", line);
  tn_status_free(status);
  free(text);
}

static void visit(void* context, const tn_object_file_t* file) {
  totals_t* totals = context;
  totals->files += 1;
  totals->bytes += file->size;
  totals->bad += !file->is_valid;
  if (totals->is_check && file->is_valid) return;
  char when[32] = "";
  const time_t used = (time_t)(file->used_ns / 1000000000);
  struct tm local;
  if (localtime_r(&used, &local)) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
  tn_kernel_program_t program = {0};
  if (file->is_valid) tn_kernel_program_unpack(file->program, file->program_size, &program);
  printf("%s  %7lld bytes  %3d instructions  %s%s\n", when, (long long)file->size,
         program.inst_count, file->path, file->is_valid ? "" : "  DAMAGED");
  if (totals->is_long && file->is_valid) print_program(file);
}

static int usage(FILE* out) {
  fprintf(out,
          "usage: tn cache ls [-l] | verify | prune [--max-mb N]\n\n"
          "ls      every kernel on disk, least recently used first; -l with its program\n"
          "verify  reads all files and lists those that are damaged; exit code 1 if there are any\n"
          "prune   deletes damaged files, then the least recently used ones above the bound\n"
          "        (TORCH_NEURONX_CACHE_MAX_SIZE_MB, or N)\n");
  return out == stdout ? 0 : 2;
}

static void delete_bad(void* context, const tn_object_file_t* file) {
  int64_t* deleted = context;
  if (!file->is_valid && remove(file->path) == 0) ++*deleted;
}

static int prune(int argc, char** argv) {
  int64_t limit_mb = tn_option_int(TN_OPTION_CACHE_MAX_SIZE_MB), bad = 0, deleted, remaining;
  if (argc == 4 && strcmp(argv[2], "--max-mb") == 0) {
    char* end;
    limit_mb = strtoll(argv[3], &end, 10);
    if (*end || limit_mb < 0) return usage(stderr);
  } else if (argc != 2) {
    return usage(stderr);
  }
  tn_status_t status = tn_object_cache_each(true, delete_bad, &bad);
  if (!status) status = tn_object_cache_prune(limit_mb << 20, &deleted, &remaining);
  if (status) return tn_cmd_fail(argv[0], status);
  printf("%lld damaged and %lld old files deleted, %.1f MiB remain\n", (long long)bad,
         (long long)deleted, (double)remaining / (1 << 20));
  return 0;
}

int tn_cmd_cache(int argc, char** argv) {
  if (argc < 2) return usage(stderr);
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) return usage(stdout);
  if (strcmp(argv[1], "prune") == 0) return prune(argc, argv);
  totals_t totals = {.is_check = strcmp(argv[1], "verify") == 0};
  if (!totals.is_check && strcmp(argv[1], "ls") != 0) return usage(stderr);
  if (argc == 3 && !totals.is_check && strcmp(argv[2], "-l") == 0) {
    totals.is_long = true;
  } else if (argc != 2) {
    return usage(stderr);
  }
  tn_status_t status = tn_object_cache_each(totals.is_check, visit, &totals);
  if (status) return tn_cmd_fail(argv[0], status);
  printf("%lld kernels, %.1f MiB, %lld damaged\n", (long long)totals.files,
         (double)totals.bytes / (1 << 20), (long long)totals.bad);
  return totals.bad != 0;
}
