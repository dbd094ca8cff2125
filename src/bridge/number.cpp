// Numbers that do not fit: PyTorch converts the Scalar arguments of a call with a check.
#include <c10/util/Half.h>
#include <c10/util/BFloat16.h>
#include <c10/util/complex.h>
#include <c10/util/overflows.h>

#include "op.h"

namespace tn::bridge {
namespace {

template <typename From>
bool overflows_as(From value, tn_dtype_t to) {
  switch (to) {
    case TN_U8: return c10::overflows<uint8_t, From>(value);
    case TN_I8: return c10::overflows<int8_t, From>(value);
    case TN_I16: return c10::overflows<int16_t, From>(value);
    case TN_I32: return c10::overflows<int32_t, From>(value);
    case TN_I64: return c10::overflows<int64_t, From>(value);
    case TN_F16: return c10::overflows<c10::Half, From>(value);
    case TN_BF16: return c10::overflows<c10::BFloat16, From>(value);
    case TN_F32: return c10::overflows<float, From>(value);
    case TN_C64: return c10::overflows<c10::complex<float>, From>(value);
    default: return false;
  }
}

}  // namespace

bool number_overflows(const tn_scalar_t& value, tn_dtype_t from, tn_dtype_t to) {
  switch (from) {
    case TN_F64: return overflows_as<double>(value.f64, to);
    case TN_I64: return overflows_as<int64_t>(value.i64, to);
    case TN_C128:
      return tn_dtype_is_complex(to)
                 ? overflows_as<c10::complex<double>>({value.c128[0], value.c128[1]}, to)
                 : value.c128[1] != 0.0 || overflows_as<double>(value.c128[0], to);
    default: return false;
  }
}

void find_checked_numbers(const tn_graph_t* graph, const OpInfo& info,
                          std::vector<ParamPlan>& params) {
  const uint32_t limit = tn_graph_node_limit(graph);
  for (uint32_t id = 0; id < limit; ++id) {
    const tn_node_t* node = tn_graph_node_at(graph, id);
    if (!node || node->op != TN_OP_CONVERT || node->operands[0]->op != TN_OP_PARAM ||
        !tn_param_is_scalar(node->operands[0]))
      continue;
    const int count = std::min(tn_graph_param_count(graph), static_cast<int>(params.size()));
    for (int i = 0; i < count; ++i) {
      if (tn_graph_param_at(graph, i) != node->operands[0]) continue;
      ParamPlan& param = params[i];
      const bool is_number = param.kind == ParamPlan::Number || param.kind == ParamPlan::ListNumber;
      const tn_dtype_t to = node->types[0].dtype;
      if (is_number && info.args[param.index].is_checked &&
          (param.checked == TN_DTYPE_NONE || tn_dtype_size(to) < tn_dtype_size(param.checked)))
        param.checked = to;
    }
  }
}

}  // namespace tn::bridge
