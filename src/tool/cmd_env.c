// tn env: what this process would run with.
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/os.h"
#include "kernels/isa.h"
#include "tn/device.h"
#include "tool/tool.h"

static void print_machine(void) {
  char folder[4096];
  size_t free_bytes, total;
  tn_heap_info(0, &free_bytes, &total);
  printf("cores            %d\n", tn_device_count());
  printf("memory per core  %.2f GiB, free %.2f GiB (the host has %.2f GiB, available %.2f GiB)\n",
         (double)total / (1 << 30), (double)free_bytes / (1 << 30),
         (double)tn_os_memory_total() / (1 << 30), (double)tn_os_memory_available() / (1 << 30));
  printf("instruction set  %s\n", tn_isa_name(tn_isa_current()));
  printf("threads          %d (CPUs of the affinity mask: %d)\n", tn_device_thread_count(),
         tn_os_cpu_count());
  tn_status_t status = tn_os_cache_folder(folder, sizeof(folder));
  const bool is_off =
      tn_option_bool(TN_OPTION_DISABLE_NEFF_CACHE) || tn_option_bool(TN_OPTION_NEFF_DISABLE_CACHE);
  printf("disk cache       %s%s\n", status ? tn_status_message(status) : folder,
         is_off ? " (switched off)" : "");
  tn_status_free(status);
}

static void print_option(tn_option_t option) {
  const tn_option_info_t* info = tn_option_info(option);
  const char* value = tn_option_string(option);
  printf("%-52s %-24s %-12s %s%s\n", info->name, *value ? value : "-",
         tn_option_is_set(option) ? "environment" : "default",
         info->is_honoured ? "" : "[accepted, no effect] ", info->meaning);
}

int tn_cmd_env(int argc, char** argv) {
  bool only_set = false;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--set") == 0) {
      only_set = true;
      continue;
    }
    const bool is_help = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
    fprintf(is_help ? stdout : stderr,
            "usage: tn env [--set]\n\nPrints the machine and every environment variable: name, "
            "value, origin, meaning.\n"
            "--set leaves out those that have their default.\n");
    return is_help ? 0 : 2;
  }
  print_machine();
  printf("\n");
  for (int i = 0; i < TN_OPTION_COUNT; ++i)
    if (!only_set || tn_option_is_set((tn_option_t)i)) print_option((tn_option_t)i);
  for (int i = 0; tn_options_complaint(i); ++i)
    printf("%swarning: %s\n", i ? "" : "\n", tn_options_complaint(i));
  return 0;
}
