// Subcommands of the command-line tool. Each is called with argv[0] = its own name and returns an exit code:
// 0 success, 1 failure, 2 wrong usage. Names are listed in main.c; a command lives in cmd_<name>.c.
#ifndef TN_TOOL_TOOL_H_
#define TN_TOOL_TOOL_H_

#include "tn/graph.h"
#include "tn/status.h"

int tn_cmd_env(int argc, char** argv);
int tn_cmd_run(int argc, char** argv);
int tn_cmd_opt(int argc, char** argv);
int tn_cmd_cache(int argc, char** argv);

// Prints a status to standard error as "tn <command>: CODE: message", frees it and returns 1; 0 for TN_OK.
int tn_cmd_fail(const char* command, tn_status_t status);

// A file's text ("-": standard input); |out_text| is malloc'ed.
tn_status_t tn_tool_read_text(const char* path, char** out_text, size_t* out_length);
// Parses a StableHLO file ("-": standard input); the caller destroys |out_graph|.
tn_status_t tn_tool_read_graph(const char* path, tn_graph_t** out_graph);

#endif  // TN_TOOL_TOOL_H_
