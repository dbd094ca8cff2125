// Opens libtn_codegen.so, which lies beside libtn.
#define _GNU_SOURCE  // dladdr
#include "codegen/plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const tn_codegen_api_t*
    plugin;  // written once, never closed: its code stays for the life of the process
static char reason[512];

static void open_plugin(void) {
  Dl_info info;
  char path[1024];
  if (!dladdr((void*)(uintptr_t)&tn_codegen_plugin, &info) || !info.dli_fname) {
    snprintf(reason, sizeof reason, "the place of libtn is unknown");
    return;
  }
  const char* slash = strrchr(info.dli_fname, '/');
  const int folder = slash ? (int)(slash - info.dli_fname) : 1;
  if (snprintf(path, sizeof path, "%.*s/libtn_codegen.so", folder, slash ? info.dli_fname : ".") >=
      (int)sizeof path) {
    snprintf(reason, sizeof reason, "the path of libtn is too long");
    return;
  }
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(reason, sizeof reason, "%.500s", dlerror());
    return;
  }
  const tn_codegen_api_t* api = dlsym(library, TN_CODEGEN_SYMBOL);
  if (!api || api->version != TN_CODEGEN_API_VERSION || api->size != sizeof *api) {
    snprintf(reason, sizeof reason, "%.400s is of another version", path);
    dlclose(library);
    return;
  }
  plugin = api;
}

tn_status_t tn_codegen_plugin(const tn_codegen_api_t** out_api) {
  pthread_once(&once, open_plugin);
  *out_api = plugin;
  if (plugin) return TN_OK;
  return TN_ERROR(TN_UNAVAILABLE, "code generation: %s", reason);
}
