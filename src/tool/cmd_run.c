// tn run: parse a StableHLO file, run its functions, print the results, check what the file and the caller expect.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tn/driver.h"
#include "tn/graph.h"
#include "tool/check.h"
#include "tool/npy.h"
#include "tool/tool.h"

typedef struct tn_run {
  const char* file;
  const char* engine;  // a driver's name, or "interp"
  const char** inputs;
  int input_count;
  const char** expects;  // .npy files, one per result
  int expect_count;
  double tolerance;
  const char* output;  // prefix of .npy files, or NULL
  bool describe;
  const char* function;
  bool shows_name;
  tn_graph_t* graph;
  tn_text_check_t* checks;
  int check_count;
  int failed_count;          // of checks
  void **params, **results;  // row-major
} tn_run_t;

static const char usage[] =
    "usage: tn run FILE.mlir [--input X]... [--engine E] [--output PREFIX] [--describe]\n\n"
    "Runs @main, or else every function without parameters, and prints the results; '-' reads\n"
    "standard input. Parts between lines '// -----' are run one after the other. Checks in the\n"
    "file (check.expect_eq, ..) are made; one that fails is reported and the exit status is 1.\n\n"
    "  --input X        one per parameter, in order: a .npy file, or zeros, ones, iota (0, 1, 2, "
    "..)\n"
    "  --engine E       a driver (sim, the default, or null), or interp, the reference "
    "interpreter\n"
    "  --expect X       one per result, in order: a .npy file that the result must equal\n"
    "  --tolerance T    with --expect: floats may differ by T (default 0)\n"
    "  --output PREFIX  writes PREFIX0.npy, PREFIX1.npy, .. instead of printing\n"
    "  --describe       prints the driver's program first\n";

// ---- buffers ----------------------------------------------------------------------------------------------
static size_t row_major_bytes(const tn_type_t* type) {
  return tn_dtype_size(type->dtype) * (size_t)tn_type_element_count(type);
}
static void* new_buffer(size_t bytes) {
  size_t rounded = (bytes + 64) & ~(size_t)63;
  void* buffer = aligned_alloc(64, rounded);
  if (buffer) memset(buffer, 0, rounded);
  return buffer;
}

static tn_status_t make_input(const char* source, const tn_type_t* type, void** out_buffer) {
  *out_buffer = new_buffer(row_major_bytes(type));
  if (!*out_buffer) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "out of memory");
  size_t size = tn_dtype_size(type->dtype);
  bool is_iota = strcmp(source, "iota") == 0;
  if (is_iota || strcmp(source, "ones") == 0) {
    for (int64_t i = 0; i < tn_type_element_count(type); ++i) {
      tn_scalar_t value = tn_scalar_from_int(type->dtype, is_iota ? i : 1);
      memcpy((uint8_t*)*out_buffer + (size_t)i * size, value.bytes, size);
    }
    return TN_OK;
  }
  if (strcmp(source, "zeros") == 0) return TN_OK;
  void* data;
  TN_TRY(tn_npy_read(source, type, &data));
  memcpy(*out_buffer, data, row_major_bytes(type));
  free(data);
  return TN_OK;
}

// Bytes from the first to after the last element under |strides|.
static size_t strided_bytes(const tn_type_t* type, const int64_t* strides) {
  int64_t last = 0;
  for (int i = 0; i < type->rank; ++i) {
    if (type->dims[i] == 0) return 0;
    last += (type->dims[i] - 1) * strides[i];
  }
  return (size_t)(last + 1) * tn_dtype_size(type->dtype);
}
// Copies between row-major |packed| and |strided|.
static void copy_strided(const tn_type_t* type, const int64_t* strides, uint8_t* packed,
                         uint8_t* strided, bool to_strided) {
  size_t size = tn_dtype_size(type->dtype);
  for (int64_t i = 0, count = tn_type_element_count(type); i < count; ++i) {
    int64_t rest = i, at = 0;
    for (int d = type->rank - 1; d >= 0; --d) {
      at += rest % type->dims[d] * strides[d];
      rest /= type->dims[d];
    }
    uint8_t *p = packed + (size_t)i * size, *s = strided + at * (int64_t)size;
    memcpy(to_strided ? s : p, to_strided ? p : s, size);
  }
}

// ---- engines ----------------------------------------------------------------------------------------------
static tn_status_t launch(const tn_run_t* run, const tn_driver_t* driver,
                          const tn_program_t* program, void** params, void** results) {
  const tn_graph_t* graph = run->graph;
  for (int i = 0; i < tn_graph_param_count(graph); ++i) {
    const tn_node_t* param = tn_graph_param_at(graph, i);
    const int64_t* strides = tn_param_strides(param);
    size_t bytes =
        strides ? strided_bytes(&param->types[0], strides) : row_major_bytes(&param->types[0]);
    params[i] = new_buffer(bytes < sizeof(tn_scalar_t) ? sizeof(tn_scalar_t) : bytes);
    if (!params[i]) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "out of memory");
    if (strides) {
      copy_strided(&param->types[0], strides, run->params[i], params[i], true);
    } else {
      memcpy(params[i], run->params[i], bytes);
    }
  }
  for (int i = 0; i < tn_graph_result_count(graph); ++i) {
    const tn_graph_result_t* result = tn_graph_result_at(graph, i);
    results[i] = result->same_as_param >= 0
                     ? params[result->same_as_param]
                     : new_buffer(strided_bytes(&result->node->types[0], result->strides));
    if (!results[i]) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "out of memory");
  }
  tn_launch_t arguments = {.params = params, .results = results};
  TN_TRY(driver->launch(program, &arguments));
  for (int i = 0; i < tn_graph_result_count(graph); ++i) {
    const tn_graph_result_t* result = tn_graph_result_at(graph, i);
    copy_strided(&result->node->types[0], result->strides, run->results[i], results[i], false);
  }
  return TN_OK;
}

static tn_status_t run_driver(const tn_run_t* run) {
  const tn_driver_t* driver;
  tn_program_t* program = NULL;
  TN_TRY(tn_driver_find(run->engine, &driver));
  TN_TRY(driver->compile(run->graph, &program));
  int param_count = tn_graph_param_count(run->graph),
      result_count = tn_graph_result_count(run->graph);
  void** params = calloc((size_t)param_count + 1, sizeof *params);
  void** results = calloc((size_t)result_count + 1, sizeof *results);
  tn_status_t status = params && results ? TN_OK : TN_ERROR(TN_RESOURCE_EXHAUSTED, "out of memory");
  if (!status && run->describe) {
    char* text = NULL;
    status = driver->describe(program, &text);
    if (text) printf("%s", text);
    free(text);
  }
  if (!status) status = launch(run, driver, program, params, results);
  for (int i = 0; results && i < result_count; ++i) {
    if (tn_graph_result_at(run->graph, i)->same_as_param < 0) free(results[i]);
  }
  for (int i = 0; params && i < param_count; ++i) free(params[i]);
  free(params);
  free(results);
  driver->destroy(program);
  return status;
}

// ---- command ----------------------------------------------------------------------------------------------
static tn_status_t print_results(const tn_run_t* run) {
  const int count = tn_graph_result_count(run->graph) - 2 * run->check_count;
  if (run->shows_name && count) printf("// @%s\n", run->function);
  for (int i = 0; i < count; ++i) {
    const tn_type_t* type = &tn_graph_result_at(run->graph, i)->node->types[0];
    if (run->output) {
      char path[4096];
      snprintf(path, sizeof path, "%s%d.npy", run->output, i);
      TN_TRY(tn_npy_write(path, type, run->results[i]));
      continue;
    }
    tn_text_t text = {0};
    tn_text_elements(&text, type, run->results[i]);
    tn_text_add(&text, " : ");
    tn_text_type(&text, type);
    if (text.is_out_of_memory) {
      free(text.data);
      return TN_ERROR(TN_RESOURCE_EXHAUSTED, "out of memory");
    }
    printf("%s\n", text.data);
    free(text.data);
  }
  return TN_OK;
}

static void check_results(tn_run_t* run) {
  for (int i = 0; i < run->check_count; ++i) {
    const tn_text_check_t* check = &run->checks[i];
    const tn_type_t* type = &tn_graph_result_at(run->graph, check->got)->node->types[0];
    const void *got = run->results[check->got], *expected = run->results[check->expected];
    const int64_t element = tn_tool_check(check, type, got, expected);
    if (element < 0) continue;
    char place[4096];
    snprintf(place, sizeof place, "%s:%d:%d: @%s", run->file, check->line, check->column,
             run->function);
    tn_tool_report(place, check, type, element, got, expected);
    ++run->failed_count;
  }
}

static tn_status_t check_expected(tn_run_t* run) {
  const tn_text_check_t check = {.kind = run->tolerance > 0 ? TN_CHECK_ALMOST_EQ : TN_CHECK_EQ,
                                 .tolerance = run->tolerance};
  for (int i = 0; i < run->expect_count; ++i) {
    const tn_type_t* type = &tn_graph_result_at(run->graph, i)->node->types[0];
    void* expected;
    TN_TRY(tn_npy_read(run->expects[i], type, &expected));
    const int64_t element = tn_tool_check(&check, type, run->results[i], expected);
    if (element >= 0) {
      char place[4096];
      snprintf(place, sizeof place, "%s: result %d", run->file, i);
      tn_tool_report(place, &check, type, element, run->results[i], expected);
      ++run->failed_count;
    }
    free(expected);
  }
  return TN_OK;
}

static tn_status_t run_graph(tn_run_t* run) {
  const int param_count = tn_graph_param_count(run->graph),
            result_count = tn_graph_result_count(run->graph);
  if (run->input_count != param_count) {
    return TN_ERROR(TN_INVALID_ARGUMENT, "%s: @%s has %d parameters, got %d times --input",
                    run->file, run->function, param_count, run->input_count);
  }
  const int own_count = result_count - 2 * run->check_count;
  if (run->expect_count && run->expect_count != own_count) {
    return TN_ERROR(TN_INVALID_ARGUMENT, "%s: @%s has %d results, got %d times --expect", run->file,
                    run->function, own_count, run->expect_count);
  }
  run->params = calloc((size_t)param_count + 1, sizeof *run->params);
  run->results = calloc((size_t)result_count + 1, sizeof *run->results);
  if (!run->params || !run->results) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "out of memory");
  for (int i = 0; i < param_count; ++i) {
    TN_TRY(
        make_input(run->inputs[i], &tn_graph_param_at(run->graph, i)->types[0], &run->params[i]));
  }
  for (int i = 0; i < result_count; ++i) {
    run->results[i] =
        new_buffer(row_major_bytes(&tn_graph_result_at(run->graph, i)->node->types[0]));
    if (!run->results[i]) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "out of memory");
  }
  if (run->engine && strcmp(run->engine, "interp") == 0) {
    TN_TRY(tn_graph_interpret(run->graph, (const void* const*)run->params, run->results));
  } else {
    TN_TRY(run_driver(run));
  }
  TN_TRY(print_results(run));
  check_results(run);
  return check_expected(run);
}

static tn_status_t run_function(tn_run_t* run, const char* text, size_t length,
                                const tn_text_function_t* function) {
  char* name = strndup(function->name, function->name_length);
  if (!name) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "out of memory");
  run->function = name;
  tn_status_t status = tn_text_parse_function(run->file, text, length, function, &run->graph,
                                              &run->checks, &run->check_count);
  if (!status) status = run_graph(run);
  for (int i = 0; run->params && i < tn_graph_param_count(run->graph); ++i) free(run->params[i]);
  for (int i = 0; run->results && i < tn_graph_result_count(run->graph); ++i) free(run->results[i]);
  free(run->params);
  free(run->results);
  free(run->checks);
  tn_graph_destroy(run->graph);
  run->params = run->results = NULL;
  run->checks = NULL;
  run->graph = NULL;
  run->check_count = 0;
  free(name);
  return status;
}

// All functions of the file; an error ends it, a failed check does not.
static tn_status_t run_file(tn_run_t* run) {
  char* text = NULL;
  size_t length = 0;
  tn_text_function_t* functions = NULL;
  int count = 0;
  TN_TRY(tn_tool_read_text(run->file, &text, &length));
  tn_status_t status = tn_text_functions(run->file, text, length, &functions, &count);
  run->shows_name = count > 1;
  if (!status && count > 1 && (run->input_count || run->expect_count || run->output)) {
    status = TN_ERROR(TN_INVALID_ARGUMENT,
                      "%s: --input, --expect and --output are for one function, the file has %d",
                      run->file, count);
  }
  for (int i = 0; !status && i < count; ++i)
    status = run_function(run, text, length, &functions[i]);
  free(functions);
  free(text);
  return status;
}

int tn_cmd_run(int argc, char** argv) {
  tn_run_t run = {.inputs = calloc((size_t)argc, sizeof(char*)),
                  .expects = calloc((size_t)argc, sizeof(char*))};
  bool is_usage = !run.inputs || !run.expects, is_help = false;
  for (int i = 1; i < argc && !is_usage; ++i) {
    const bool has_value = i + 1 < argc;
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      is_help = true;
      break;
    }
    if (strcmp(argv[i], "--input") == 0 && has_value) {
      run.inputs[run.input_count++] = argv[++i];
    } else if (strcmp(argv[i], "--expect") == 0 && has_value) {
      run.expects[run.expect_count++] = argv[++i];
    } else if (strcmp(argv[i], "--tolerance") == 0 && has_value) {
      char* end;
      run.tolerance = strtod(argv[++i], &end);
      is_usage = *end || end == argv[i] || !(run.tolerance >= 0);
    } else if (strcmp(argv[i], "--engine") == 0 && has_value) {
      run.engine = argv[++i];
    } else if (strcmp(argv[i], "--output") == 0 && has_value) {
      run.output = argv[++i];
    } else if (strcmp(argv[i], "--describe") == 0) {
      run.describe = true;
    } else if ((argv[i][0] != '-' || !argv[i][1]) && !run.file) {
      run.file = argv[i];
    } else {
      is_usage = true;
    }
  }
  int code = 0;
  if (is_help) {
    printf("%s", usage);
  } else if (is_usage || !run.file) {
    fprintf(stderr, "%s", usage);
    code = 2;
  } else {
    code = tn_cmd_fail("run", run_file(&run));
    if (run.failed_count) code = 1;
  }
  free((void*)run.inputs);
  free((void*)run.expects);
  return code;
}
