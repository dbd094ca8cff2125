// Status to exception, dtypes, and the thread's device state.
#include <c10/util/Exception.h>

#include <string>

#include "bridge.h"

namespace tn::bridge {

constinit thread_local ThreadState current_thread_state;

int device_count() {
  const int count = tn_device_count();
  return count < kMaxDevices ? count : kMaxDevices;
}

int device_index(c10::Device device) {
  TORCH_CHECK(device.type() == kNeuron, "Expected neuron device, got ", device);
  if (!device.has_index()) return thread_state().device;
  TORCH_CHECK_VALUE(device.index() >= 0 && device.index() < device_count(), "Device index ",
                    static_cast<int>(device.index()), " is out of range. Valid range is 0 to ",
                    device_count() - 1, " for this process");
  return device.index();
}

void throw_status(tn_status_t status, const char* context) {
  std::string text = tn_status_message(status);
  const tn_code_t code = tn_status_code(status);
  tn_status_free(status);
  if (context && code != TN_RESOURCE_EXHAUSTED) text = std::string(context) + ": " + text;
  switch (code) {
    case TN_RESOURCE_EXHAUSTED: TORCH_CHECK_WITH(OutOfMemoryError, false, text);
    case TN_OUT_OF_RANGE: TORCH_CHECK_INDEX(false, text);
    case TN_UNIMPLEMENTED: TORCH_CHECK_NOT_IMPLEMENTED(false, text);
    default: TORCH_CHECK(false, text);
  }
  __builtin_unreachable();
}

namespace {
struct DtypePair {
  c10::ScalarType torch;
  tn_dtype_t tn;
};
constexpr DtypePair kDtypes[] = {
    {c10::ScalarType::Bool, TN_BOOL},          {c10::ScalarType::Char, TN_I8},
    {c10::ScalarType::Short, TN_I16},          {c10::ScalarType::Int, TN_I32},
    {c10::ScalarType::Long, TN_I64},           {c10::ScalarType::Byte, TN_U8},
    {c10::ScalarType::UInt16, TN_U16},         {c10::ScalarType::UInt32, TN_U32},
    {c10::ScalarType::UInt64, TN_U64},         {c10::ScalarType::Half, TN_F16},
    {c10::ScalarType::BFloat16, TN_BF16},      {c10::ScalarType::Float, TN_F32},
    {c10::ScalarType::Double, TN_F64},         {c10::ScalarType::ComplexFloat, TN_C64},
    {c10::ScalarType::ComplexDouble, TN_C128}, {c10::ScalarType::Float8_e4m3fn, TN_F8E4M3FN},
    {c10::ScalarType::Float8_e5m2, TN_F8E5M2},
};
struct DtypeTables {
  uint8_t to_tn[256];
  int8_t to_torch[TN_DTYPE_COUNT];
  constexpr DtypeTables() : to_tn(), to_torch() {
    for (auto& dtype : to_tn) dtype = TN_DTYPE_NONE;
    for (const DtypePair& pair : kDtypes) {
      to_tn[static_cast<uint8_t>(pair.torch)] = static_cast<uint8_t>(pair.tn);
      to_torch[pair.tn] = static_cast<int8_t>(pair.torch);
    }
  }
};
constexpr DtypeTables kTables;
}  // namespace

tn_dtype_t to_tn(c10::ScalarType type) {
  return static_cast<tn_dtype_t>(kTables.to_tn[static_cast<uint8_t>(type)]);
}
c10::ScalarType to_torch(tn_dtype_t dtype) {
  return static_cast<c10::ScalarType>(kTables.to_torch[dtype]);
}

}  // namespace tn::bridge
