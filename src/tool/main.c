#include <stdio.h>
#include <string.h>

#include "tool/tool.h"

typedef struct command {
  const char* name;
  int (*run)(int argc, char** argv);
  const char* summary;
} command_t;

static const command_t commands[] = {
    {"env", tn_cmd_env,
     "cores, memory, instruction set, threads, disk cache; every option, its value and origin"},
    {"run", tn_cmd_run, "compile a StableHLO file, run it and print the results"},
    {"opt", tn_cmd_opt, "run passes of the compiler on a StableHLO file and print what they leave"},
    {"cache", tn_cmd_cache, "list, verify or prune the disk cache"},
};
enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

int tn_cmd_fail(const char* command, tn_status_t status) {
  if (!status) return 0;
  fprintf(stderr, "tn %s: %s: %s\n", command, tn_code_name(tn_status_code(status)),
          tn_status_message(status));
  tn_status_free(status);
  return 1;
}

static int usage(FILE* file) {
  fprintf(file, "usage: tn COMMAND [ARGUMENTS]\n\n");
  for (int i = 0; i < COMMAND_COUNT; ++i)
    fprintf(file, "  %-7s %s\n", commands[i].name, commands[i].summary);
  fprintf(file, "\n'tn COMMAND --help' explains a command.\n");
  return file == stdout ? 0 : 2;
}

int main(int argc, char** argv) {
  if (argc < 2) return usage(stderr);
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
    return usage(stdout);
  for (int i = 0; i < COMMAND_COUNT; ++i)
    if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
  fprintf(stderr, "tn: there is no command '%s'\n", argv[1]);
  return usage(stderr);
}
