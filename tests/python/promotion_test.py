"""Tensors of mixed dtypes: each is rounded to the common dtype before the arithmetic, as CPU does it."""

from __future__ import annotations

import pytest
import torch

OPERATORS = (
    "add", "sub", "rsub", "mul", "div", "eq", "gt", "le", "maximum", "pow", "atan2", "fmod", "remainder",
)  # fmt: skip
INTEGERS = torch.tensor([257, 100_000, 100_000, 100_000, -3, 2049])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", OPERATORS)
def test_integers_beside_small_floats(name: str, dtype: torch.dtype) -> None:
    floats = torch.tensor([3.0, 0.5, -60000.0, float("inf"), 1.5, float("nan")], dtype=dtype)
    operator = getattr(torch, name)
    for a, b in ((floats, INTEGERS), (floats, INTEGERS[1]), (floats[1], INTEGERS), (INTEGERS, floats)):
        expected = operator(a, b)
        found = operator(a.to("neuron"), b.to("neuron"))
        assert found.dtype == expected.dtype
        assert torch.equal(found.cpu().nan_to_num(nan=-7.0), expected.nan_to_num(nan=-7.0)), (a, b)
