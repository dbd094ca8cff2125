"""Numbers that a compiled graph computes from sizes: Python's results, and one graph for all sizes."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable

import pytest
import torch
import torch._dynamo
import torch.nn.functional as F

from torch_neuronx import _C

BINARY: dict[str, Callable] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "min": torch.sym_min, "max": torch.sym_max,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lshift": operator.lshift, "rshift": operator.rshift,
}  # fmt: skip
UNARY: dict[str, Callable] = {
    "neg": operator.neg, "abs": abs, "float": float, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc,
    "round": round, "sqrt": math.sqrt, "log2": math.log2,
}  # fmt: skip
NUMBERS = [-7, -2, 0, 1, 3, 64, -2.5, -0.5, 0.5, 1.5, 3.75]


def _number(name: str, *values: float) -> object:
    """What a trace of one operation on numbers that are known at its run gives."""
    trace = _C.Trace()
    params = [trace.int_param() if isinstance(value, int) else trace.float_param() for value in values]
    trace.set_results([trace.number_op(name, *params)])
    return trace.run(list(values))[0]


@pytest.mark.parametrize("name", [*BINARY, *UNARY])
def test_an_operation_is_that_of_python(name: str) -> None:
    function = BINARY.get(name) or UNARY[name]
    for values in itertools.product(NUMBERS, repeat=2 if name in BINARY else 1):
        if name.endswith("shift") and not all(isinstance(value, int) for value in values):
            continue
        if name in ("floor", "ceil", "trunc", "round") and isinstance(values[0], int):
            continue  # an integer is its own; the recorder makes no operation of it
        try:
            expected = function(*values)
        except (ArithmeticError, ValueError, OverflowError):
            continue
        if isinstance(expected, complex) or (
            name == "pow" and all(isinstance(v, int) for v in values) and values[1] < 0
        ):
            continue
        actual = _number(name, *values)
        if isinstance(expected, int) and abs(expected) >= 2**63:
            continue
        assert actual == expected and isinstance(actual, float) == isinstance(expected, float), values


@pytest.mark.parametrize(
    ("name", "values"), [("truediv", (1, 0)), ("mod", (3, 0)), ("floordiv", (3, 0)), ("lshift", (1, -1))]
)
def test_an_impossible_operation_says_so(name: str, values: tuple[int, int]) -> None:
    with pytest.raises(RuntimeError, match="trace: "):
        _number(name, *values)


def test_an_unknown_operation_is_named() -> None:
    with pytest.raises(ValueError, match="no operation 'frobnicate'"):
        _C.Trace().number_op("frobnicate", 1, 2)


FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "square": lambda x: x.new_full((x.shape[0] ** 2,), 1.0).sum() + x.sum() * 0 + x.numel() ** 2,
    "sqrt": lambda x: x / math.sqrt(x.shape[1]),
    "truediv": lambda x: x * (1 / x.shape[0]),
    "negative power": lambda x: x * (x.shape[0] ** -0.5),
    "int of float": lambda x: x[: int(x.shape[0] * 0.5)],
    "ceil": lambda x: x[: math.ceil(x.shape[0] / 2)],
    "round": lambda x: x[: round(x.shape[0] * 0.6)],
    "shift": lambda x: x[: x.shape[0] >> 1] * (x.shape[0] << 2),
    "float fill": lambda x: torch.full((x.shape[0],), float(x.shape[1]), device=x.device),
    "float of integers": lambda x: x.long() * (x.shape[0] / 2),
    "scale factor": lambda x: F.interpolate(x[None, None], scale_factor=0.5, mode="bilinear"),
    "window": lambda x: F.adaptive_avg_pool2d(x[None, None], 2),
    "square convolution": lambda x: F.conv2d(x[:4, :4][None, None].expand(x.shape[0], 1, 4, 4), x.new_ones(1, 1, 2, 2)),
    "attention": lambda x: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], is_causal=True),
}


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_sizes_that_change_give_cpu_results_from_one_graph(name: str) -> None:
    torch._dynamo.reset()
    function, graphs = FUNCTIONS[name], []

    def backend(module: torch.fx.GraphModule, inputs: list) -> Callable:
        graphs.append(module)
        return torch._dynamo.lookup_backend("neuron")(module, inputs)

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for rows, columns in ((4, 6), (5, 8), (8, 12)):
        x = torch.randn(rows, columns)
        actual = compiled(x.to("neuron"))
        assert actual.device.type == "neuron"
        torch.testing.assert_close(actual.cpu(), function(x))
    assert len(graphs) == 1
