"""The call cache under random calls: whatever was called before, every call gives what CPU gives.

Shapes come from a handful, scalars and dimensions from small sets, so that keys nearly coincide all the time: the
tests fail when a program is found for a call that it was not compiled for.
"""

import random
import warnings
from collections.abc import Callable

import pytest
import torch

SHAPES = [(4, 4), (4, 1), (1, 4), (4,), (2, 4, 4), (4, 4, 1)]
NUMBERS = [0, 1, 2, 3, -1, 0.5, 1.0, 2.0, -1.5, True]
DTYPES = [torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.bool]
Pick = Callable[[list], object]


def calls(pick: Pick) -> dict[str, Callable]:
    """Calls of two tensors; every option is drawn anew."""
    number, other, dim, keep = pick(NUMBERS), pick(NUMBERS), pick([0, -1, 1]), pick([True, False])
    return {
        "add": lambda a, b: torch.add(a, b, alpha=number),
        "sub number": lambda a, b: a - number,
        "rsub": lambda a, b: number - b,
        "mul": lambda a, b: a * b * number,
        "div": lambda a, b: torch.div(a, number, rounding_mode=pick([None, "floor", "trunc"])),
        "pow": lambda a, b: a.float() ** number,
        "clamp": lambda a, b: a.clamp(min(number, other), max(number, other)),
        "clamp one": lambda a, b: a.clamp(**{pick(["min", "max"]): number}),
        "where": lambda a, b: torch.where(a > b, pick([a, number]), b),
        "compare": lambda a, b: pick([torch.lt, torch.ge, torch.eq, torch.ne])(a, pick([b, number])),
        "sum": lambda a, b: a.sum(dim, keepdim=keep, dtype=pick([None, torch.float32, torch.int64])),
        "mean": lambda a, b: a.float().mean(dim, keepdim=keep),
        "amax": lambda a, b: a.amax(dim, keepdim=keep),
        "var": lambda a, b: a.float().var(dim, correction=pick([0, 1]), keepdim=keep),
        "argmax": lambda a, b: a.float().argmax(dim, keepdim=keep),
        "cumsum": lambda a, b: a.cumsum(dim),
        "softmax": lambda a, b: a.float().softmax(dim),
        "cat": lambda a, b: torch.cat([pick([a, b]), pick([a, b])], dim),
        "stack": lambda a, b: torch.stack([a, a if keep else a + 1], dim),
        "flip": lambda a, b: a.flip(dim),
        "roll": lambda a, b: a.roll(pick([0, 1, 2]), dim),
        "select": lambda a, b: a.select(dim, pick([0, -1])) + 1,
        "slice": lambda a, b: a[pick([slice(None), slice(1), slice(0, None, 2)])] * 2,
        "index": lambda a, b: a[torch.tensor(pick([[0], [0, 0], [-1, 0]]), device=a.device)],
        "full": lambda a, b: torch.full_like(a, number, dtype=pick([None, torch.float32])),
        "arange": lambda a, b: torch.arange(pick([0, 1]), pick([3, 4, 5]), pick([1, 2]), device=a.device),
        "tril": lambda a, b: a.tril(pick([-1, 0, 1])) if a.dim() > 1 else a,
        "to": lambda a, b: a.to(pick(DTYPES)),
        "in place": lambda a, b: a.clone().add_(pick([a, b]), alpha=number),
        "masked_fill": lambda a, b: a.masked_fill(a > 1, number),
        "addcmul": lambda a, b: a.float().addcmul_(pick([a, b]).float(), pick([a, b]).float(), value=number),
        "foreach": lambda a, b: torch._foreach_add([a, b], pick([number, [number, other]])),
        "norm": lambda a, b: a.float().norm(pick([1, 2, 3.0, float("inf")]), dim=dim, keepdim=keep),
        "gelu": lambda a, b: torch.nn.functional.gelu(a.float(), approximate=pick(["none", "tanh"])),
        "transposed": lambda a, b: a.transpose(0, dim).contiguous(),
        "matmul": lambda a, b: a.float() @ pick([a, b]).float(),
    }


def operand(pick: Pick, device: str, seed: int) -> torch.Tensor:
    shape, dtype = pick(SHAPES), pick(DTYPES)
    generator = torch.Generator().manual_seed(seed)
    tensor = torch.randint(-3, 4, shape, generator=generator).to(dtype).to(device)
    return pick([tensor, tensor, tensor.transpose(0, -1), tensor.flip(0)[...]])


def outcome(seed: int, device: str) -> tuple[str, object]:
    """Result or error of call number |seed|; the same draws on every device."""
    source = random.Random(seed)

    def pick(items: list) -> object:
        return items[source.randrange(len(items))]

    a, b = operand(pick, device, seed), operand(pick, device, seed + 1)
    table = calls(pick)
    name = pick(list(table))
    try:
        result = table[name](a, pick([a, b]))
    except (RuntimeError, IndexError, TypeError, ZeroDivisionError) as error:
        return name, type(error)
    return name, [t.cpu() for t in (result if isinstance(result, (list, tuple)) else [result])]


def strides(tensor: torch.Tensor) -> list[int]:
    """Strides of the dimensions that are walked."""
    return [stride for stride, extent in zip(tensor.stride(), tensor.shape) if extent > 1]


@pytest.mark.parametrize("part", range(8))
def test_random_calls_equal_the_cpu(part: int):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(400 * part, 400 * (part + 1)):
            name, expected = outcome(seed, "cpu")
            _, found = outcome(seed, "neuron")
            if isinstance(expected, type) or isinstance(found, type):
                assert found == expected, f"call {seed}, {name}"
                continue
            for x, y in zip(found, expected):
                assert (x.dtype, x.shape) == (y.dtype, y.shape), f"call {seed}, {name}"
                assert strides(x) == strides(y), f"call {seed}, {name}"
                low = x.dtype == torch.bfloat16
                torch.testing.assert_close(
                    x, y, rtol=2e-2 if low else 1e-5, atol=2e-2 if low else 1e-5, equal_nan=True,
                    msg=f"call {seed}, {name}: {x}, expected {y}",
                )  # fmt: skip
