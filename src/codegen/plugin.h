// The code generator plugin, opened once at first need.
#ifndef TN_CODEGEN_PLUGIN_H_
#define TN_CODEGEN_PLUGIN_H_

#include "codegen/codegen_api.h"
#include "tn/status.h"

// UNAVAILABLE when the library is missing or of another version. Thread-safe.
tn_status_t tn_codegen_plugin(const tn_codegen_api_t** out_api);

#endif  // TN_CODEGEN_PLUGIN_H_
