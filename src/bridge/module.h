// Parts of the Python module.
#pragma once

#include <pybind11/pybind11.h>

namespace tn::bridge {

void bind_trace(pybind11::module_& module);
void bind_cache(pybind11::module_& module);

}  // namespace tn::bridge
