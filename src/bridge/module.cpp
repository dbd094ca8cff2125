// The Python module torch_neuronx._C: accounts, device state, generators.
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>

#include <cstdlib>

#include "account.h"
#include "tn/options.h"
#include "bridge.h"
#include "generator.h"
#include "module.h"
#include "tensors.h"

namespace py = pybind11;

namespace tn::bridge {
namespace {

py::list op_report() {
  py::list records;
  for (const OpAccount* account : accounts_used()) {
    py::dict record;
    record["name"] = account->name;
    record["device_calls"] = account->executed.load();
    record["fallback_calls"] = account->fallback.load();
    record["bytes"] = account->fallback_bytes.load();
    record["ns"] = account->fallback_ns.load();
    record["reasons"] = account->reasons;
    record["file"] = account->user_file;
    record["line"] = account->user_line;
    records.append(record);
  }
  return records;
}

py::list op_names(bool fallback) {
  std::vector<OpAccount*> used = accounts_used();
  py::list names;
  for (const OpAccount* account : used)
    if (fallback ? account->fallback > 0 : account->executed > 0) names.append(account->name);
  return names;
}

py::dict memory_stats(int device) {
  tn_heap_stats_t stats = {};
  tn_heap_stats(device_index({kNeuron, static_cast<c10::DeviceIndex>(device)}), &stats);
  static const char* const pools[] = {"all", "small_pool", "large_pool"};
  py::dict flat;
  const auto add = [&](const char* name, const tn_stat_t(&stat)[3]) {
    for (int pool = 0; pool < 3; ++pool) {
      const std::string prefix = std::string(name) + "." + pools[pool] + ".";
      flat[(prefix + "current").c_str()] = stat[pool].current;
      flat[(prefix + "peak").c_str()] = stat[pool].peak;
      flat[(prefix + "allocated").c_str()] = stat[pool].allocated;
      flat[(prefix + "freed").c_str()] = stat[pool].freed;
    }
  };
  add("allocation", stats.allocation);
  add("segment", stats.segment);
  add("active", stats.active);
  add("inactive_split", stats.inactive_split);
  add("allocated_bytes", stats.allocated_bytes);
  add("reserved_bytes", stats.reserved_bytes);
  add("active_bytes", stats.active_bytes);
  add("inactive_split_bytes", stats.inactive_split_bytes);
  add("requested_bytes", stats.requested_bytes);
  flat["num_alloc_retries"] = stats.alloc_retries;
  flat["num_ooms"] = stats.ooms;
  flat["num_device_alloc"] = stats.device_allocs;
  flat["num_device_free"] = stats.device_frees;
  return flat;
}

// Physical cores that a logical core stands for, as the environment says; the software core is one either way.
int64_t physical_cores() {
  static const char* const names[] = {"NEURON_LOGICAL_NC_CONFIG", "NEURON_RT_VIRTUAL_CORE_SIZE"};
  for (const char* name : names)
    if (std::getenv(name)) return tn_options_int(name);
  return tn_options_int(names[0]);
}

py::dict device_properties(int device) {
  const int index = device_index({kNeuron, static_cast<c10::DeviceIndex>(device)});
  size_t free = 0, total = 0;
  tn_heap_info(index, &free, &total);
  py::dict properties;
  properties["name"] = "neuron:" + std::to_string(index);
  properties["total_memory"] = total;
  properties["target"] = tn_options_text("TORCH_NEURONX_TARGET");
  properties["core_count"] = device_count();
  properties["logical_neuroncore_config"] = physical_cores();
  return properties;
}

// Copies between host and device that name their direction.
void copy_checked(const at::Tensor& src, at::Tensor dst, bool non_blocking, bool to_device) {
  const at::Tensor &host = to_device ? src : dst, &device = to_device ? dst : src;
  TORCH_CHECK(host.device().is_cpu() && device.device().type() == kNeuron, "expected a copy from ",
              to_device ? "cpu to neuron" : "neuron to cpu", ", got ", src.device(), " to ",
              dst.device());
  copy_into(dst, src, non_blocking);
}

py::object default_generator_object(int device) {
  return py::reinterpret_steal<py::object>(THPGenerator_Wrap(default_generator(device)));
}

}  // namespace

PYBIND11_MODULE(_C, m) {
  m.def("_option_complaints", [] {
    std::vector<std::string> texts;
    while (const char* text = tn_options_complaint(static_cast<int>(texts.size())))
      texts.emplace_back(text);
    return texts;
  });
  m.def("_op_report", &op_report);
  m.def("_op_names", &op_names);
  m.def("_clear_op_tracking", &clear_accounts);
  m.def("_set_fallback_mode", [](const std::string& mode) {
    TORCH_CHECK_VALUE(mode == "warn" || mode == "silent" || mode == "error",
                      "fallback mode is warn, silent or error, got ", mode);
    set_fallback_mode(mode == "warn"     ? FallbackMode::Warn
                      : mode == "silent" ? FallbackMode::Silent
                                         : FallbackMode::Error);
  });
  m.def("_fallback_mode", [] {
    const FallbackMode mode = fallback_mode();
    return mode == FallbackMode::Warn ? "warn" : mode == FallbackMode::Silent ? "silent" : "error";
  });
  m.def("_device_count", &device_count);
  m.def("_current_device", [] { return thread_state().device; });
  m.def("_exchange_device", [](int device) {
    const int previous = thread_state().device;
    if (device >= 0)
      thread_state().device = device_index({kNeuron, static_cast<c10::DeviceIndex>(device)});
    return previous;
  });
  m.def("_is_initialized", &tn_device_is_initialized);
  m.def("_is_in_bad_fork", &tn_device_is_in_bad_fork);
  m.def("_init", [] {
    register_kinds();
    check(tn_device_check(thread_state().device));
  });
  m.def("_synchronize", [](int device) {
    py::gil_scoped_release unlocked;
    check(tn_device_synchronize(device_index({kNeuron, static_cast<c10::DeviceIndex>(device)})));
  });
  m.def("_event_elapsed", [](int64_t start, int64_t end) {
    double ms = 0;
    TORCH_CHECK(start && end, "Both events must be recorded before calculating elapsed time.");
    check(tn_event_elapsed(reinterpret_cast<tn_event_t*>(start), reinterpret_cast<tn_event_t*>(end),
                           &ms));
    return ms;
  });
  m.def("_memory_stats", &memory_stats);
  m.def("_memory_info", [](int device) {
    size_t free = 0, total = 0;
    tn_heap_info(device_index({kNeuron, static_cast<c10::DeviceIndex>(device)}), &free, &total);
    return std::make_pair(free, total);
  });
  m.def("_neuron_getDeviceProperties", &device_properties);
  m.def("_vnc_count", &device_count);
  m.def("_get_vnc_id",
        [](int device) { return device_index({kNeuron, static_cast<c10::DeviceIndex>(device)}); });
  m.def(
      "_nrt_copy_cpu_to_neuron_tensor",
      [](const at::Tensor& src, const at::Tensor& dst, bool non_blocking) {
        copy_checked(src, dst, non_blocking, true);
      },
      py::arg("src"), py::arg("dst"), py::arg("non_blocking") = false);
  m.def(
      "_nrt_copy_neuron_to_cpu_tensor",
      [](const at::Tensor& src, const at::Tensor& dst, bool non_blocking) {
        copy_checked(src, dst, non_blocking, false);
      },
      py::arg("src"), py::arg("dst"), py::arg("non_blocking") = false);
  m.def("_set_memory_limit", &tn_heap_set_limit);
  m.def("_get_default_generator", &default_generator_object, py::arg("device_index") = -1);
  m.def("_thread_count", &tn_device_thread_count);
  m.def("_set_thread_count", [](int count) { check(tn_device_set_thread_count(count)); });
  bind_trace(m);
  bind_cache(m);
}

}  // namespace tn::bridge
