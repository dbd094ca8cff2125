// Facts of an overload from its schema and its functional form's.
#include <cstring>

#include "op.h"

namespace tn::bridge {
namespace {

using c10::TypeKind;

ArgKind scalar_kind(const c10::Type& type) {
  switch (type.kind()) {
    case TypeKind::TensorType: return ArgKind::Tensor;
    case TypeKind::NumberType: return ArgKind::Number;
    case TypeKind::FloatType: return ArgKind::Float;
    case TypeKind::IntType:
    case TypeKind::SymIntType: return ArgKind::Int;
    case TypeKind::BoolType:
    case TypeKind::SymBoolType: return ArgKind::Bool;
    case TypeKind::StringType: return ArgKind::String;
    case TypeKind::ScalarTypeType: return ArgKind::Dtype;
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType: return ArgKind::Enum;
    case TypeKind::DeviceObjType: return ArgKind::Device;
    case TypeKind::GeneratorType: return ArgKind::Generator;
    default: return ArgKind::Other;
  }
}

const c10::Type& without_optional(const c10::Type& type) {
  return type.kind() == TypeKind::OptionalType
             ? *type.castRaw<c10::OptionalType>()->getElementType()
             : type;
}

void split_name(const char* full, std::string& name, std::string& overload) {
  const char* dot = std::strchr(full, '.');
  name = std::string("aten::") + (dot ? std::string(full, dot) : std::string(full));
  overload = dot ? dot + 1 : "";
}

}  // namespace

bool Operator::run(torch::jit::Stack* stack) {
  std::call_once(once_, [&] {
    op_ = c10::Dispatcher::singleton().findSchema({name_, overload_});
    info_.kind = kind_;
    info_.row = tn_aten_op_find(row_);
    if (op_ && info_.row) op_info_init(info_, *op_);
  });
  if (!op_ || !info_.row) return false;
  run_operator(*op_, info_, cache_, stack);
  return true;
}

ArgKind arg_kind(const c10::Argument& argument) {
  const c10::Type& type = without_optional(*argument.real_type());
  if (type.kind() != TypeKind::ListType) return scalar_kind(type);
  switch (scalar_kind(without_optional(*type.castRaw<c10::ListType>()->getElementType()))) {
    case ArgKind::Tensor: return ArgKind::TensorList;
    case ArgKind::Int:
    case ArgKind::Bool: return ArgKind::Ints;
    case ArgKind::Float: return ArgKind::Doubles;
    case ArgKind::Number: return ArgKind::Numbers;
    default: return ArgKind::Other;
  }
}

void op_info_init(OpInfo& info, const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  info.name = schema.name();
  info.account = op_account(schema.name(), schema.overload_name());
  if (!schema.overload_name().empty()) info.name += "." + schema.overload_name();
  if (!info.row) return;
  std::string name, overload;
  split_name(info.row->name, name, overload);
  const auto functional_op = c10::Dispatcher::singleton().findSchema({name, overload});
  const c10::FunctionSchema& functional = functional_op ? functional_op->schema() : schema;
  info.functional_count = static_cast<int>(functional.arguments().size());
  info.functional_args.assign(info.functional_count, -1);
  info.functional_defaults.resize(info.functional_count);
  info.functional_is_dtype.assign(info.functional_count, 0);
  info.functional_kinds.resize(info.functional_count);
  for (int i = 0; i < info.functional_count; ++i) {
    const c10::Argument& argument = functional.arguments()[i];
    info.functional_kinds[i] = arg_kind(argument);
    if (argument.default_value()) info.functional_defaults[i] = *argument.default_value();
    const auto position = schema.argumentIndexWithName(argument.name());
    if (position) info.functional_args[i] = static_cast<int8_t>(*position);
    info.functional_is_dtype[i] =
        info.functional_kinds[i] == ArgKind::Dtype && info.kind == OpKind::Out;
  }
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    ArgInfo arg;
    arg.kind = arg_kind(argument);
    arg.is_written = argument.alias_info() && argument.alias_info()->isWrite();
    arg.is_memory_format =
        without_optional(*argument.real_type()).kind() == TypeKind::MemoryFormatType;
    // A number named "other" stands for a tensor, whose conversions wrap around.
    arg.is_checked = (arg.kind == ArgKind::Number || arg.kind == ArgKind::Numbers) &&
                     argument.name() != "other" && argument.name() != "self";
    for (int j = 0; j < info.functional_count; ++j)
      if (info.functional_args[j] == static_cast<int>(i)) arg.functional = static_cast<int8_t>(j);
    if (arg.is_written) info.written.push_back(static_cast<int8_t>(i));
    if (arg.kind == ArgKind::Generator) info.generator = static_cast<int>(i);
    if (arg.kind == ArgKind::Device) info.device_arg = static_cast<int>(i);
    info.args.push_back(arg);
  }
  for (const c10::Argument& result : schema.returns()) {
    info.returns_list.push_back(result.type()->kind() == TypeKind::ListType);
    int written = -1;
    if (result.alias_info())
      for (size_t k = 0; k < info.written.size(); ++k)
        if (schema.arguments()[info.written[k]].alias_info()->beforeSets() ==
            result.alias_info()->beforeSets())
          written = static_cast<int>(k);
    info.return_of.push_back(static_cast<int8_t>(written));
  }
}

}  // namespace tn::bridge
