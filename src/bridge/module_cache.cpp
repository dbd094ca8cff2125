// The part of torch_neuronx._C that shows and empties the caches of generated code.
#include <torch/csrc/utils/pybind.h>

#include "bridge.h"
#include "module.h"
#include "tn/kernel_program.h"
#include "tn/options.h"

namespace py = pybind11;

namespace tn::bridge {
namespace {

// How often kernels were found in memory, read from disk, or generated, since the process started.
py::dict kernel_stats() {
  tn_kernel_cache_stats_t stats;
  tn_kernel_cache_stats(&stats);
  py::dict flat;
  flat["from_memory"] = stats.memory_hits;
  flat["from_disk"] = stats.disk_hits;
  flat["generated"] = stats.generated;
  flat["failures"] = stats.failures;
  flat["bad_entries"] = stats.bad_entries;
  flat["generate_ns"] = stats.generate_ns;
  flat["load_ns"] = stats.load_ns;
  flat["entries"] = stats.entries;
  flat["code_bytes"] = stats.code_bytes;
  return flat;
}

// Nothing is evicted from the memory cache: code without sizes stays small.
py::dict compilation_cache_stats() {
  tn_kernel_cache_stats_t stats = {};
  tn_kernel_cache_stats(&stats);
  const int64_t misses = stats.disk_hits + stats.generated + stats.failures;
  const int64_t lookups = stats.memory_hits + misses;
  const int64_t limit = tn_options_int("NEURON_COMPILATION_CACHE_MAX_SIZE_MB") << 20;
  py::dict flat;
  flat["total_entries"] = stats.entries;
  flat["in_memory_hits"] = stats.memory_hits;
  flat["in_memory_misses"] = misses;
  flat["persistent_hits"] = stats.disk_hits;
  flat["persistent_misses"] = stats.generated + stats.failures;
  flat["cache_hits"] = stats.memory_hits + stats.disk_hits;
  flat["cache_misses"] = stats.generated + stats.failures;
  flat["hit_rate"] = lookups ? static_cast<double>(stats.memory_hits + stats.disk_hits) /
                                   static_cast<double>(lookups)
                             : 0.0;
  flat["memory_usage_bytes"] = stats.code_bytes;
  flat["total_compilation_time_ms"] = static_cast<double>(stats.generate_ns) / 1e6;
  flat["evictions_performed"] = 0;
  flat["total_compilations"] = stats.generated;
  flat["max_cache_size_bytes"] = limit;
  flat["max_cache_entries"] = tn_options_int("NEURON_COMPILATION_CACHE_MAX_ENTRIES");
  flat["memory_utilization_ratio"] =
      limit ? static_cast<double>(stats.code_bytes) / static_cast<double>(limit) : 0.0;
  return flat;
}

std::string key_text(uint64_t hash) {
  char text[17];
  snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::vector<tn_kernel_info_t> kernels_in_memory() {
  std::vector<tn_kernel_info_t> kernels;
  tn_kernel_cache_each(
      [](void* context, const tn_kernel_info_t* info) {
        static_cast<std::vector<tn_kernel_info_t>*>(context)->push_back(*info);
      },
      &kernels);
  return kernels;
}

py::list cache_entries() {
  py::list entries;
  for (const tn_kernel_info_t& info : kernels_in_memory()) {
    py::dict entry;
    entry["cache_key"] = key_text(info.hash);
    entry["neff_size_bytes"] = info.code_size;
    entry["access_count"] = info.uses;
    entry["compilation_time_ms"] = static_cast<double>(info.produce_ns) / 1e6;
    entries.append(entry);
  }
  return entries;
}

std::vector<std::string> cache_keys() {
  std::vector<std::string> keys;
  for (const tn_kernel_info_t& info : kernels_in_memory()) keys.push_back(key_text(info.hash));
  return keys;
}

}  // namespace

void bind_cache(py::module_& m) {
  m.def("_kernel_stats", &kernel_stats);
  m.def("_get_compilation_cache_stats", &compilation_cache_stats);
  m.def("_get_compilation_cache_entries", &cache_entries);
  m.def("_get_all_cache_keys", &cache_keys);
  // Code that programs hold stays valid: the caches only forget where it is.
  m.def("_clear_compilation_memory_cache", [] { check(tn_kernel_cache_clear(false)); });
  m.def("_clear_compilation_cache", [] { check(tn_kernel_cache_clear(true)); });
}

}  // namespace tn::bridge
