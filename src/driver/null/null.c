#include "driver/null/null.h"

#include <stdlib.h>
#include <string.h>

struct tn_program {
  int param_count, result_count;
};

static tn_status_t null_compile(const tn_graph_t* graph, tn_program_t** out_program) {
  *out_program = NULL;
  TN_TRY(tn_graph_verify(graph));
  tn_program_t* program = calloc(1, sizeof(*program));
  if (!program) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "null driver: out of host memory");
  program->param_count = tn_graph_param_count(graph);
  program->result_count = tn_graph_result_count(graph);
  *out_program = program;
  return TN_OK;
}

static tn_status_t null_launch(const tn_program_t* program, const tn_launch_t* launch) {
  (void)program;
  (void)launch;
  return TN_OK;
}

static void null_destroy(tn_program_t* program) { free(program); }

static void null_info(const tn_program_t* program, tn_program_info_t* out_info) {
  (void)program;
  memset(out_info, 0, sizeof(*out_info));
}

static tn_status_t null_describe(const tn_program_t* program, char** out_text) {
  (void)program;
  *out_text = strdup("null program\n");
  return *out_text ? TN_OK : TN_ERROR(TN_RESOURCE_EXHAUSTED, "null driver: out of host memory");
}

const tn_driver_t tn_driver_null = {
    .version = TN_DRIVER_VERSION,
    .name = "null",
    .compile = null_compile,
    .launch = null_launch,
    .destroy = null_destroy,
    .info = null_info,
    .describe = null_describe,
};
