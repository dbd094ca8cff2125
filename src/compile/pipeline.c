#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "compile/fuse.h"
#include "compile/passes.h"

// True if TN_DEBUG has the letter of this pass.
static bool is_shown(char letter) {
  const char* letters = tn_option_string(TN_OPTION_TN_DEBUG);
  return letters[0] && strchr(letters, letter);
}

static tn_status_t show(const char* pass, tn_status_t status, char* text) {
  if (!status) fprintf(stderr, "// after %s\n%s", pass, text);
  free(text);
  return status;
}

static tn_status_t show_graph(const tn_graph_t* graph) {
  char* text = NULL;
  tn_status_t status = tn_graph_print(graph, &text);
  return show("simplify", status, text);
}

static tn_status_t show_groups(const tn_graph_t* graph, const tn_plan_target_t* target,
                               tn_arena_t* arena) {
  char* text = NULL;
  tn_fusion_t fusion;
  TN_TRY(tn_fuse(graph, target, arena, &fusion));
  tn_status_t status = tn_fusion_print(graph, &fusion, &text);
  return show("fuse", status, text);
}

static tn_status_t show_plan(const tn_plan_t* plan) {
  char* text = NULL;
  tn_status_t status = tn_plan_print(plan, &text);
  return show("plan", status, text);
}

tn_status_t tn_compile_plan(const tn_graph_t* graph, const tn_plan_target_t* target,
                            tn_graph_t* scratch, tn_arena_t* arena, tn_plan_t* out_plan) {
  const bool is_verified = tn_option_bool(TN_OPTION_TN_VERIFY);
  if (is_verified) TN_TRY(tn_graph_verify(graph));
  TN_TRY(tn_simplify(graph, target, scratch));
  if (is_verified) TN_TRY(tn_graph_verify(scratch));
  if (is_shown('s')) TN_TRY(show_graph(scratch));
  if (is_shown('f')) TN_TRY(show_groups(scratch, target, arena));
  TN_TRY(tn_plan_fused(scratch, target, arena, out_plan));
  return is_shown('p') ? show_plan(out_plan) : TN_OK;
}
