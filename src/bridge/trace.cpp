// Traces for torch.compile.
#include "module.h"

namespace tn::bridge {
void bind_trace(pybind11::module_&) {}
}  // namespace tn::bridge
