// Registration of all overloads: boxed functors, and for the commonest signatures unboxed ones, which spare a small call
// the stack of boxed arguments.
#include <torch/library.h>

#include "bridge.h"
#include "composites.h"
#include "fallback.h"
#include "op.h"

namespace tn::bridge {
namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

// How the dispatcher passes the arguments: Boxed, or a letter per argument (Tensor, Scalar, Written tensor).
enum class Signature : uint8_t { Boxed, T, TT, TTS, TS, TTT, W, WT, WTS, WS, TW, TTW };

struct OpRow {
  const char* name;  // without namespace
  const char* row;   // of the lowering table, or nullptr
  OpKind kind;
  Signature signature;
};
constexpr OpRow kRows[] = {
#define TN_BRIDGE_OP(name, row, kind, signature) {name, row, OpKind::kind, Signature::signature},
#include "bridge_ops.inc"
#undef TN_BRIDGE_OP
};

// One overload: facts found at the first call, and its plans.
class OpState {
 public:
  explicit OpState(const OpRow& row) : row_(row) {
    const std::string_view name(row.name);
    expands_masks_ = name.starts_with("index.Tensor") || name.starts_with("index_put") ||
                     name.starts_with("_index_put_impl_") || name.starts_with("_unsafe_index");
  }

  void run(const c10::OperatorHandle& op, Stack* stack) {
    if (__builtin_expect(!is_ready_.load(std::memory_order_acquire), 0)) prepare(op);
    if (expands_masks_ && expand_masks(op, op.schema().arguments().size(), stack))
      return op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), stack);
    if (!info_.row) {
      static const std::string reason = "no neuron kernel";
      return run_on_cpu(op, stack, info_.account, reason, false);
    }
    run_operator(op, info_, cache_, stack);
  }

  // The unboxed way. The result is a fresh tensor; undefined if the operator returns a written argument.
  template <typename... Args>
  Tensor run(const Args&... args) {
    Borrowed<sizeof...(Args)> borrowed(args...);
    Tensor fresh;
    if (__builtin_expect(is_ready_.load(std::memory_order_acquire) && info_.row &&
                             run_known(info_, cache_, borrowed.values, fresh),
                         1))
      return fresh;
    return run_slowly({args...});
  }

 private:
  // Boxed arguments that do not count as references of their tensors: the caller holds them longer.
  template <size_t count>
  struct Borrowed {
    IValue values[count];
    template <typename... Args>
    explicit Borrowed(const Args&... args) : values{box(args)...} {}
    ~Borrowed() {
      for (IValue& value : values)
        if (value.isTensor()) std::move(value).toTensor().unsafeReleaseTensorImpl();
    }
    static IValue box(const Tensor& tensor) {
      return Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim(
          tensor.unsafeGetTensorImpl()));
    }
    static IValue box(const at::Scalar& scalar) { return scalar; }
  };

  __attribute__((noinline)) Tensor run_slowly(Stack stack) {
    std::call_once(handle_once_, [&] {
      const char* dot = std::strchr(row_.name, '.');
      const std::string name = dot ? std::string(row_.name, dot) : row_.name;
      handle_ = c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + name).c_str(),
                                                               dot ? dot + 1 : "");
    });
    run(*handle_, &stack);
    return row_.kind == OpKind::Functional ? std::move(stack[0]).toTensor() : Tensor();
  }

  __attribute__((noinline, cold)) void prepare(const c10::OperatorHandle& op) {
    register_kinds();
    std::call_once(once_, [&] {
      info_.kind = row_.kind;
      info_.row = row_.row ? tn_aten_op_find(row_.row) : nullptr;
      op_info_init(info_, op);
      is_ready_.store(true, std::memory_order_release);
    });
  }

  const OpRow& row_;
  bool expands_masks_;
  std::atomic<bool> is_ready_{false};
  std::once_flag once_, handle_once_;
  std::optional<c10::OperatorHandle> handle_;
  OpInfo info_;
  PlanCache cache_;
};

class BoxedFunctor final : public c10::OperatorKernel {
 public:
  explicit BoxedFunctor(const OpRow& row) : state_(row) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    state_.run(op, stack);
  }

 private:
  OpState state_;
};

using torch::CppFunction;

CppFunction kernel_of(const OpRow& row) {
  if (row.signature == Signature::Boxed)
    return CppFunction::makeFromBoxedFunctor(std::make_unique<BoxedFunctor>(row));
  auto* op = new OpState(row);  // lives as long as the registration: for ever
  using S = at::Scalar;
  switch (row.signature) {
    case Signature::Boxed: break;
    case Signature::T: return CppFunction([op](const Tensor& a) { return op->run(a); });
    case Signature::TT:
      return CppFunction([op](const Tensor& a, const Tensor& b) { return op->run(a, b); });
    case Signature::TTS:
      return CppFunction(
          [op](const Tensor& a, const Tensor& b, const S& c) { return op->run(a, b, c); });
    case Signature::TS:
      return CppFunction([op](const Tensor& a, const S& b) { return op->run(a, b); });
    case Signature::TTT:
      return CppFunction(
          [op](const Tensor& a, const Tensor& b, const Tensor& c) { return op->run(a, b, c); });
    case Signature::W: return CppFunction([op](Tensor& a) -> Tensor& { return op->run(a), a; });
    case Signature::WT:
      return CppFunction([op](Tensor& a, const Tensor& b) -> Tensor& { return op->run(a, b), a; });
    case Signature::WTS:
      return CppFunction(
          [op](Tensor& a, const Tensor& b, const S& c) -> Tensor& { return op->run(a, b, c), a; });
    case Signature::WS:
      return CppFunction([op](Tensor& a, const S& b) -> Tensor& { return op->run(a, b), a; });
    case Signature::TW:
      return CppFunction([op](const Tensor& a, Tensor& b) -> Tensor& { return op->run(a, b), b; });
    case Signature::TTW:
      return CppFunction([op](const Tensor& a, const Tensor& b, Tensor& c) -> Tensor& {
        return op->run(a, b, c), c;
      });
  }
  __builtin_unreachable();
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const OpRow& row : kRows) m.impl(row.name, kernel_of(row));
}

}  // namespace
}  // namespace tn::bridge
