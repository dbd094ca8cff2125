"""Runs one case: the operator on the device against the same call on CPU. Raises AssertionError on a difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch.utils import _pytree

from . import cases
from .cases import Case

# rtol, atol per dtype; families that sum many products get more room.
TOLERANCE = {torch.float32: (1e-5, 1e-5), torch.bfloat16: (1.6e-2, 1e-2), torch.float16: (2e-3, 1e-3)}
WIDE = {torch.float32: (1e-4, 1e-4), torch.bfloat16: (3e-2, 3e-2), torch.float16: (5e-3, 5e-3)}
WIDE_FAMILIES = {"matmul", "convolution", "attention", "norm", "loss"}
# Results whose values are undefined by contract: only dtype, shape and strides are compared.
UNDEFINED = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_"}
# Index-like tensors that PyTorch wants on CPU on every device.
STAY_ON_CPU = {"tensor_split"}
# Functions of numbers alone, whose samples may leave the device to the default.
FACTORIES = {"arange", "linspace"}
FEW = 4  # samples for out=, in place and errors
# A sample whose result on CPU depends on the seed is random: over this many seeds each element's mean must agree with
# CPU's, within so many standard errors (7 in 40 runs happen once in 10^8 elements).
SEEDS, STANDARD_ERRORS = 24, 7.0
MOST_JUDGED = 4  # random samples per case; of further ones dtype, shape and strides are compared


class Difference(AssertionError):
    """What is different, in one line."""


class Fallback(Difference):
    """The operator, or one it is made of, left the device."""


def to_device(value: Any, device: str, gradient: bool = False) -> Any:
    """Copies tensors with their strides and offset; a leaf that requires grad stays one."""

    def move(tensor: Any) -> Any:
        if not isinstance(tensor, torch.Tensor):
            return torch.device(device) if isinstance(tensor, torch.device) else tensor
        source = tensor.detach()
        if source.layout != torch.strided:
            return source.to(device)
        flat = torch.empty(0, dtype=source.dtype).set_(source.untyped_storage())
        copy = torch.empty(flat.shape, dtype=flat.dtype, device=device)
        copy.copy_(flat)
        moved = copy.as_strided(source.size(), source.stride(), source.storage_offset())
        return moved.requires_grad_(tensor.requires_grad and gradient)

    return _pytree.tree_map(move, value)


def call_of(info: Any, sample: Any, device: str, gradient: bool = False, operator: Callable | None = None) -> Callable:
    """The operator bound to copies of the sample on `device`, which stands for the CPU that a sample names."""
    stay = info.name in STAY_ON_CPU
    first = to_device(sample.input, device, gradient)
    rest = sample.args if stay else to_device(sample.args, device, gradient)
    rest = tuple(device if isinstance(value, str) and value == "cpu" else value for value in rest)
    keywords = dict(sample.kwargs if stay else to_device(sample.kwargs, device, gradient))
    if "device" in keywords or info.name in FACTORIES:
        keywords["device"] = device
    operator = operator or info.op

    def call(**more: Any) -> Any:
        return operator(first, *rest, **keywords, **more)

    call.inputs = [first, rest, keywords]  # type: ignore[attr-defined]
    return call


def tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _strides(tensor: torch.Tensor) -> list[int]:
    """Strides that matter: of dimensions longer than one."""
    if tensor.numel() == 0:
        return []
    return [stride for stride, extent in zip(tensor.stride(), tensor.shape) if extent > 1]


def _close(actual: torch.Tensor, expected: torch.Tensor, tolerance: tuple[float, float]) -> bool:
    return torch.allclose(actual, expected, rtol=tolerance[0], atol=tolerance[1], equal_nan=True)


def compare(
    case: Case,
    actual: Any,
    expected: Any,
    exact: Any = None,
    strides: bool = True,
    what: str = "result",
    values: bool = True,
) -> None:
    """Raises Difference unless both are alike. `exact` is the same result computed by CPU in float32, if there is one."""
    found, wanted = _pytree.tree_leaves(actual), _pytree.tree_leaves(expected)
    better = _pytree.tree_leaves(exact) if exact is not None else [None] * len(wanted)
    if len(found) != len(wanted):
        raise Difference(f"{len(found)} {what}s, expected {len(wanted)}")
    for a, e, b in zip(found, wanted, better):
        if not isinstance(e, torch.Tensor):
            if values and case.operator not in UNDEFINED and a != e and not (a != a and e != e):
                if not (isinstance(e, float) and torch.isclose(torch.tensor(a), torch.tensor(e), rtol=1e-4)):
                    raise Difference(f"{what} {a}, expected {e}")
            continue
        if not isinstance(a, torch.Tensor):
            raise Difference(f"{what} is {type(a).__name__}, expected a tensor")
        if a.device.type != torch.device(cases.DEVICE).type and case.operator != "tensor_split":
            raise Difference(f"{what} is on {a.device}")
        for name, left, right in (("dtype", a.dtype, e.dtype), ("shape", tuple(a.shape), tuple(e.shape))):
            if left != right:
                raise Difference(f"{name} of the {what} {left}, expected {right}")
        if strides and _strides(a) != _strides(e):
            raise Difference(f"strides of the {what} {a.stride()}, expected {e.stride()} for shape {tuple(e.shape)}")
        if not values or case.operator in UNDEFINED:
            continue
        _compare_values(case, a.detach().to("cpu"), e.detach(), b, what)


def _compare_values(case: Case, a: torch.Tensor, e: torch.Tensor, b: Any, what: str) -> None:
    if not (a.is_floating_point() or a.is_complex()):
        if not torch.equal(a, e):
            raise Difference(f"{what}: {int((a != e).sum())} of {a.numel()} elements differ")
        return
    table = WIDE if case.family in WIDE_FAMILIES else TOLERANCE
    tolerance = table.get(torch.float32 if a.is_complex() else a.dtype, (1e-5, 1e-5))
    if _close(a, e, tolerance):
        return
    # CPU's own narrow arithmetic may be the worse one: its float32 result is the judge.
    if isinstance(b, torch.Tensor) and b.shape == a.shape and _close(a, b.detach().to(a.dtype), tolerance):
        return
    a, e = a.to(torch.float64), e.to(torch.float64)
    error = (a - e).abs()
    worst = int(torch.where(error.isnan(), torch.inf, error).argmax())
    raise Difference(
        f"{what}: {a.flatten()[worst].item():.7g}, expected {e.flatten()[worst].item():.7g} (element {worst} of {a.numel()})"
    )


def _flat(value: Any) -> torch.Tensor:
    """All elements and numbers of a result, on CPU in float64."""
    found = [torch.as_tensor(leaf).detach().to("cpu") for leaf in _pytree.tree_leaves(value) if leaf is not None]
    found = [torch.view_as_real(leaf) if leaf.is_complex() else leaf for leaf in found]
    return torch.cat([leaf.reshape(-1).to(torch.float64) for leaf in found] or [torch.zeros(0, dtype=torch.float64)])


def _over_seeds(run: Callable[[str], Any], device: str, count: int) -> torch.Tensor | None:
    """Results of `count` seeds, one per row; None if their sizes differ."""
    rows = []
    for seed in range(1, count + 1):
        torch.manual_seed(seed)
        with mock.patch.object(torch, "manual_seed"):  # op_db's wrappers seed before they call
            rows.append(_flat(run(device)))
    return torch.stack(rows) if len({row.shape for row in rows}) == 1 else None


def judge(
    case: Case,
    run: Callable[[str], Any],
    actual: Any,
    expected: Any,
    exact: Any = None,
    strides: bool = True,
    what: str = "result",
) -> None:
    """As compare; a random sample is judged by its statistics. `run` makes a new call on a device."""
    try:
        return compare(case, actual, expected, exact, strides, what)
    except Difference:
        few = _over_seeds(run, "cpu", 3)
        if few is None or torch.equal(few.nan_to_num()[0], few.nan_to_num()[1:].mean(0)):
            raise
    compare(case, actual, expected, None, strides, what, values=False)
    judged[case] += 1
    if judged[case] > MOST_JUDGED:
        return
    on_cpu, on_device = _over_seeds(run, "cpu", SEEDS), _over_seeds(run, cases.DEVICE, SEEDS)
    if on_cpu is None or on_device is None:
        return
    gap = (on_cpu.mean(0) - on_device.mean(0)).abs()
    error = ((on_cpu.var(0) + on_device.var(0)) / SEEDS).sqrt()
    slack = 1e-5 if case.dtype != "bfloat16" else 2e-2
    far = gap > STANDARD_ERRORS * error + slack * (1 + on_cpu.mean(0).abs())
    if bool(far.any()):
        worst = int(far.to(torch.int8).argmax())
        raise Difference(
            f"{what} over {SEEDS} seeds: mean {on_device[:, worst].mean():.7g}, expected {on_cpu[:, worst].mean():.7g} "
            f"(element {worst} of {far.numel()})"
        )


def _wider(info: Any, sample: Any) -> Any:
    """The result of CPU in float32 for a bfloat16 sample, or None where the operator does not take it."""

    def widen(value: Any) -> Any:
        is_narrow = isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16
        return value.detach().float() if is_narrow else value

    try:
        first, rest, keywords = _pytree.tree_map(widen, (sample.input, sample.args, sample.kwargs))
        return info.op(first, *rest, **keywords)
    except Exception:
        return None


# Random samples per case so far.
judged: Counter[Case] = Counter()

# What left the device while the current case ran: operator and reason, in order of first use.
left: dict[str, str] = {}


def _device_package() -> Any:
    if not cases.DEVICE.startswith("neuron"):
        return None
    import torch_neuronx

    return torch_neuronx


def tracked(call: Callable, *arguments: Any, **keywords: Any) -> Any:
    """The call's result; operators that left the device meanwhile are added to `left`."""
    package = _device_package()
    if package is None:
        return call(*arguments, **keywords)
    package.clear_op_tracking()
    try:
        return call(*arguments, **keywords)
    finally:
        for record in package.op_report():
            if record.fallback_calls:
                left.setdefault(record.name, "; ".join(record.reasons))


def _expected(call: Callable) -> tuple[Any, Exception | None]:
    try:
        return call(), None
    except Exception as error:
        return None, error


def _same_error(actual: Callable, error: Exception) -> None:
    try:
        actual()
    except Exception as raised:
        if isinstance(raised, NotImplementedError) and not isinstance(error, NotImplementedError):
            raise Difference(f"raises NotImplementedError, expected {type(error).__name__}") from raised
        if not isinstance(raised, type(error)) and not isinstance(error, type(raised)):
            raise Difference(f"raises {type(raised).__name__}, expected {type(error).__name__}: {error}") from raised
        return
    raise Difference(f"raises nothing, expected {type(error).__name__}: {str(error).splitlines()[0]}")


def forward(case: Case) -> None:
    for info, sample in cases.samples(case):
        on_cpu, on_device = call_of(info, sample, "cpu"), call_of(info, sample, cases.DEVICE)
        torch.manual_seed(0)
        expected, error = _expected(on_cpu)
        if error is not None:
            _same_error(on_device, error)
            continue
        actual = tracked(on_device)
        exact = _wider(info, sample) if case.dtype == "bfloat16" else None
        judge(case, lambda device, i=info, s=sample: call_of(i, s, device)(), actual, expected, exact)


def out(case: Case) -> None:
    for info, sample in cases.samples(case, FEW):
        expected, error = _expected(call_of(info, sample, "cpu"))
        if error is not None:
            continue
        exact = _wider(info, sample) if case.dtype == "bfloat16" else None
        for resized in (False, True):
            call = call_of(info, sample, "cpu")
            wanted = _outputs(expected, "cpu", resized)
            if _expected(lambda c=call, w=wanted: c(out=w))[1] is not None:
                continue  # CPU refuses this sample's out= too
            given = _outputs(expected, cases.DEVICE, resized)
            call = call_of(info, sample, cases.DEVICE)
            result = tracked(call, out=given)
            # Strides of a given out= are kept; of a resized one they are those of the operator.
            judge(case, lambda device, i=info, s=sample: call_of(i, s, device)(), given, wanted, exact, strides=False)
            for target, returned in zip(tensors(given), tensors(result)):
                if target.data_ptr() != returned.data_ptr():
                    raise Difference("out= is not what is returned")


def _outputs(expected: Any, device: str, resized: bool) -> Any:
    """Tensors for out=, filled with ones: of the right shape, or empty and to be resized."""

    def make(tensor: torch.Tensor) -> torch.Tensor:
        return torch.full((0,) if resized else tensor.shape, 1, dtype=tensor.dtype, device=device)

    targets = _pytree.tree_map_only(torch.Tensor, make, expected)
    return tuple(targets) if isinstance(targets, (tuple, list)) else targets


def inplace(case: Case) -> None:
    for info, sample in cases.samples(case, FEW):
        if sample.broadcasts_input:
            continue
        on_cpu = call_of(info, sample, "cpu", operator=info.inplace_variant)
        on_device = call_of(info, sample, cases.DEVICE, operator=info.inplace_variant)
        expected, error = _expected(on_cpu)
        if error is not None:
            _same_error(on_device, error)
            continue
        actual = tracked(on_device)
        exact = _wider(info, sample) if case.dtype == "bfloat16" else None
        judge(
            case, lambda device, i=info, s=sample: call_of(i, s, device, operator=i.inplace_variant)(), actual, expected,
            exact,
        )  # fmt: skip
        target = tensors(on_device.inputs)[0]  # type: ignore[attr-defined]
        if tensors(actual)[0].data_ptr() != target.data_ptr():
            raise Difference("the result is not the input")


def error(case: Case) -> None:
    for info, wrong in cases.samples(case):
        sample = wrong.sample_input
        if any(tensor.layout != torch.strided for tensor in tensors([sample.input, sample.args, sample.kwargs])):
            continue
        _, expected = _expected(call_of(info, sample, "cpu"))
        if expected is not None:
            _same_error(call_of(info, sample, cases.DEVICE), expected)


def _gradients(info: Any, sample: Any, device: str, seeds: list[torch.Tensor]) -> list[torch.Tensor | None]:
    """Gradients of the leaves; the cotangents are appended to `seeds` by the first caller and used by the second."""
    call = call_of(info, sample, device, gradient=True)
    leaves = [tensor for tensor in tensors(call.inputs) if tensor.requires_grad]  # type: ignore[attr-defined]
    result = sample.output_process_fn_grad(call())
    outputs = [tensor for tensor in tensors(result) if tensor.requires_grad]
    if not leaves or not outputs:
        return []
    if not seeds:
        seeds += [torch.randn_like(output, device="cpu") for output in outputs]
    cotangents = [seed.to(device) for seed in seeds]
    return list(torch.autograd.grad(outputs, leaves, cotangents, allow_unused=True))


def backward(case: Case) -> None:
    for info, sample in cases.samples(case, SAMPLES_BACKWARD):
        seeds: list[torch.Tensor] = []
        expected, error = _expected(lambda i=info, s=sample, c=seeds: _gradients(i, s, "cpu", c))
        if error is not None:
            continue
        actual = tracked(_gradients, info, sample, cases.DEVICE, seeds)
        pairs = [(a, e) for a, e in zip(actual, expected) if a is not None or e is not None]
        if any(a is None or e is None for a, e in pairs):
            raise Difference("one of the gradients is None, the other is not")
        judge(
            case, lambda device, i=info, s=sample, c=seeds: _gradients(i, s, device, c), [a for a, _ in pairs],
            [e for _, e in pairs], strides=False, what="gradient",
        )  # fmt: skip


SAMPLES_BACKWARD = 8

RUN: dict[str, Callable[[Case], None]] = {
    "forward": forward, "out": out, "inplace": inplace, "error": error, "backward": backward,
}  # fmt: skip


def run(case: Case) -> None:
    """Raises Difference for a wrong result, or else Fallback if an operator left the device."""
    left.clear()
    judged.clear()
    RUN[case.check](case)
    if left:
        plain = "no neuron kernel"  # the usual reason needs no mention
        texts = [name if reason == plain else f"{name} ({reason})" for name, reason in left.items()]
        raise Fallback(f"fallback: {', '.join(texts)}")
