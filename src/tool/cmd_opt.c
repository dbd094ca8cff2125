// tn opt: a StableHLO file after some passes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/fuse.h"
#include "compile/passes.h"
#include "driver/sim/sim.h"
#include "tool/tool.h"

typedef struct tn_opt {
  tn_graph_t* graph;
  tn_arena_t arena;
} tn_opt_t;

// ---- passes: each leaves its graph in |opt| and gives the text that explains it ---------------------------------

static tn_status_t pass_simplify(tn_opt_t* opt, char** out_text) {
  tn_graph_t* simplified = NULL;
  TN_TRY(tn_graph_create(&simplified));
  tn_status_t status = tn_simplify(opt->graph, &tn_sim_target, simplified);
  if (!status) status = tn_graph_verify(simplified);
  if (!status) status = tn_graph_print(simplified, out_text);
  tn_graph_destroy(status ? simplified : opt->graph);
  if (!status) opt->graph = simplified;
  return status;
}

static tn_status_t pass_fuse(tn_opt_t* opt, char** out_text) {
  tn_fusion_t fusion;
  TN_TRY(tn_fuse(opt->graph, &tn_sim_target, &opt->arena, &fusion));
  return tn_fusion_print(opt->graph, &fusion, out_text);
}

static tn_status_t pass_plan(tn_opt_t* opt, char** out_text) {
  tn_plan_t plan;
  TN_TRY(tn_plan_fused(opt->graph, &tn_sim_target, &opt->arena, &plan));
  return tn_plan_print(&plan, out_text);
}

typedef struct pass {
  const char* name;
  tn_status_t (*run)(tn_opt_t* opt, char** out_text);
  const char* summary;
} pass_t;

static const pass_t passes[] = {
    // in the order of the compiler
    {"simplify", pass_simplify,
     "expands composites without a kernel, removes what does nothing: StableHLO"},
    {"fuse", pass_fuse, "decides what is stored: each group, why, and what is computed with it"},
    {"plan", pass_plan, "fuses and makes steps: buffers, steps, kernel programs"},
};
enum { PASS_COUNT = sizeof(passes) / sizeof(passes[0]) };

// ---- command ----------------------------------------------------------------------------------------------

static int usage(FILE* out) {
  fprintf(
      out,
      "usage: tn opt [--pass=NAME[,NAME]...] FILE.mlir\n\n"
      "Runs passes of the compiler on @main and prints what each leaves; without --pass, the file\n"
      "as it was read. '-' reads standard input.\n\n");
  for (int i = 0; i < PASS_COUNT; ++i)
    fprintf(out, "  %-9s %s\n", passes[i].name, passes[i].summary);
  fprintf(out, "  %-9s simplify,fuse,plan\n", "all");
  return out == stdout ? 0 : 2;
}

static const pass_t* find_pass(const char* name, size_t length) {
  for (int i = 0; i < PASS_COUNT; ++i)
    if (strlen(passes[i].name) == length && memcmp(passes[i].name, name, length) == 0)
      return &passes[i];
  return NULL;
}

static tn_status_t run_pass(tn_opt_t* opt, const pass_t* pass, bool is_one_of_many) {
  char* text = NULL;
  TN_TRY(pass->run(opt, &text));
  if (is_one_of_many) printf("// after %s\n", pass->name);
  printf("%s", text);
  free(text);
  return TN_OK;
}

// Wrong usage is known before the file is read: prints the unknown name of the list |names|, and the known ones.
static bool names_are_known(const char* names) {
  for (const char* at = names;; at += strcspn(at, ",") + 1) {
    const size_t length = strcspn(at, ",");
    if (!find_pass(at, length)) {
      fprintf(stderr, "tn opt: there is no pass '%.*s'; there are", (int)length, at);
      for (int i = 0; i < PASS_COUNT; ++i) fprintf(stderr, " %s,", passes[i].name);
      fprintf(stderr, " and all\n");
      return false;
    }
    if (!at[length]) return true;
  }
}

static tn_status_t run_passes(tn_opt_t* opt, const char* names) {
  const bool is_many = strchr(names, ',') != NULL;
  for (const char* at = names;; at += strcspn(at, ",") + 1) {
    const size_t length = strcspn(at, ",");
    TN_TRY(run_pass(opt, find_pass(at, length), is_many));
    if (!at[length]) return TN_OK;
  }
}

static tn_status_t print_as_read(tn_opt_t* opt) {
  char* text = NULL;
  TN_TRY(tn_graph_print(opt->graph, &text));
  printf("%s", text);
  free(text);
  return TN_OK;
}

int tn_cmd_opt(int argc, char** argv) {
  const char *file = NULL, *names = NULL;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return usage(stdout);
    if (strncmp(argv[i], "--pass=", 7) == 0) {
      names = argv[i] + 7;
    } else if (strcmp(argv[i], "--pass") == 0 && i + 1 < argc) {
      names = argv[++i];
    } else if ((argv[i][0] != '-' || !argv[i][1]) && !file) {
      file = argv[i];
    } else {
      return usage(stderr);
    }
  }
  if (!file) return usage(stderr);
  if (names && strcmp(names, "all") == 0) names = "simplify,fuse,plan";
  if (names && !names_are_known(names)) return 2;
  tn_opt_t opt = {.graph = NULL};
  tn_arena_init(&opt.arena);
  tn_status_t status = tn_tool_read_graph(file, &opt.graph);
  if (!status) status = names ? run_passes(&opt, names) : print_as_read(&opt);
  tn_graph_destroy(opt.graph);
  tn_arena_deinit(&opt.arena);
  return tn_cmd_fail("opt", status);
}
