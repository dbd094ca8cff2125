// Expressions of a trace on numbers, with Python's meaning.
#include <cmath>

#include "trace.h"

namespace tn::bridge {
namespace {

enum NumberKind : uint8_t { INTS, FLOATS, TESTS, TO_FLOAT };

struct NumberRow {
  IntOp op;
  const char* name;
  NumberKind kind;
  constexpr bool takes_doubles() const { return kind == FLOATS || kind == TESTS; }
};

constexpr NumberRow k_rows[] = {
#define TN_NUMBER_OP(id, name, kind) {IntOp::id, name, kind},
#include "trace_number.inc"
#undef TN_NUMBER_OP
};

const NumberRow* find_row(const std::string& name, bool takes_doubles) {
  for (const NumberRow& row : k_rows)
    if (name == row.name && row.takes_doubles() == takes_doubles) return &row;
  return nullptr;
}

int64_t floor_divide(int64_t a, int64_t b) {
  TORCH_CHECK(b != 0, "trace: integer division by zero");
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t modulo(int64_t a, int64_t b) {
  TORCH_CHECK(b != 0, "trace: integer modulo by zero");
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t power(int64_t base, int64_t exponent) {
  TORCH_CHECK(exponent >= 0, "trace: a negative power of an integer");
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

int64_t shift(int64_t a, int64_t by, bool is_left) {
  TORCH_CHECK(by >= 0, "trace: negative shift count");
  if (by > 63) return is_left || a >= 0 ? 0 : -1;
  return is_left ? static_cast<int64_t>(static_cast<uint64_t>(a) << by) : a >> by;
}

int64_t integer_of(double value) {
  TORCH_CHECK(std::isfinite(value), "trace: cannot convert ", value, " to an integer");
  return static_cast<int64_t>(value);
}

double float_modulo(double a, double b) {
  TORCH_CHECK(b != 0, "trace: float modulo by zero");
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double divide(double a, double b) {
  TORCH_CHECK(b != 0, "trace: float division by zero");
  return a / b;
}

int64_t float_apply(IntOp op, double a, double b) {
  switch (op) {
    case IntOp::FloatAdd: return bits_of_double(a + b);
    case IntOp::FloatSub: return bits_of_double(a - b);
    case IntOp::FloatMul: return bits_of_double(a * b);
    case IntOp::FloatFloorDiv: return bits_of_double(std::floor(divide(a, b)));
    case IntOp::FloatMod: return bits_of_double(float_modulo(a, b));
    case IntOp::FloatPow: return bits_of_double(std::pow(a, b));
    case IntOp::TrueDiv: return bits_of_double(divide(a, b));
    case IntOp::FloatMin: return bits_of_double(b < a ? b : a);
    case IntOp::FloatMax: return bits_of_double(b > a ? b : a);
    case IntOp::FloatNeg: return bits_of_double(-a);
    case IntOp::FloatAbs: return bits_of_double(std::fabs(a));
    case IntOp::Sqrt: return bits_of_double(std::sqrt(a));
    case IntOp::Exp: return bits_of_double(std::exp(a));
    case IntOp::Log: return bits_of_double(std::log(a));
    case IntOp::Log2: return bits_of_double(std::log2(a));
    case IntOp::FloatEq: return a == b;
    case IntOp::FloatNe: return a != b;
    case IntOp::FloatLt: return a < b;
    case IntOp::FloatLe: return a <= b;
    case IntOp::FloatGt: return a > b;
    case IntOp::FloatGe: return a >= b;
    case IntOp::Floor: return integer_of(std::floor(a));
    case IntOp::Ceil: return integer_of(std::ceil(a));
    case IntOp::Trunc: return integer_of(std::trunc(a));
    case IntOp::Round: return integer_of(std::nearbyint(a));  // half to even, as Python rounds
    default: return 0;
  }
}

}  // namespace

int64_t int_apply(IntOp op, int64_t a, int64_t b) {
  switch (op) {
    case IntOp::Add: return a + b;
    case IntOp::Sub: return a - b;
    case IntOp::Mul: return a * b;
    case IntOp::FloorDiv: return floor_divide(a, b);
    case IntOp::Mod: return modulo(a, b);
    case IntOp::Pow: return power(a, b);
    case IntOp::Shl: return shift(a, b, true);
    case IntOp::Shr: return shift(a, b, false);
    case IntOp::Min: return a < b ? a : b;
    case IntOp::Max: return a > b ? a : b;
    case IntOp::Neg: return -a;
    case IntOp::Abs: return a < 0 ? -a : a;
    case IntOp::Eq: return a == b;
    case IntOp::Ne: return a != b;
    case IntOp::Lt: return a < b;
    case IntOp::Le: return a <= b;
    case IntOp::Gt: return a > b;
    case IntOp::Ge: return a >= b;
    case IntOp::And: return a && b;
    case IntOp::Or: return a || b;
    case IntOp::Not: return !a;
    case IntOp::ToFloat: return bits_of_double(static_cast<double>(a));
    default: return float_apply(op, double_of_bits(a), double_of_bits(b));
  }
}

TraceValue Trace::add_number(const std::string& name, TraceValue a, TraceValue b) {
  const auto is_float = [&](TraceValue value) {
    return value.kind == TraceValue::Int && ints_[value.index].is_float;
  };
  const auto to_float = [&](TraceValue value) {
    if (value.kind != TraceValue::Int || is_float(value)) return value;
    IntNode node{IntOp::ToFloat};
    node.a = value.index;
    node.is_float = true;
    return add_int(node);
  };
  if (name == "float") return to_float(a);
  const NumberRow* row = is_float(a) || is_float(b) ? nullptr : find_row(name, false);
  if (!row) {
    row = find_row(name, true);
    TORCH_CHECK_VALUE(row, "trace: no operation '", name, "' on such numbers");
    a = to_float(a);
    b = to_float(b);
  }
  IntNode node{row->op};
  node.a = a.index;
  if (b.kind == TraceValue::Int) node.b = b.index;
  node.is_float = row->kind == FLOATS;
  return add_int(node);
}

}  // namespace tn::bridge
