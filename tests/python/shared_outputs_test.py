"""Outputs of one compiled function that share memory in eager share it compiled, too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

CASES: dict[str, Callable[[torch.Tensor], tuple[torch.Tensor, ...]]] = {
    "detach": lambda c: (c.detach()[:, 1:], c),
    "chunk": lambda c: c.chunk(2, 1),
    "second chunk": lambda c: (c, c.chunk(2, 1)[1]),
    "slices": lambda c: (c[1:], c[:, 1:]),
    "unbind": lambda c: (*c.unbind(0), c),
    "itself": lambda c: (c, c.contiguous()),
    "cast": lambda c: (c, c.to(torch.float32)),
    "transposed": lambda c: (c.t(), c, c[1]),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("needs_grad", [False, True])
@pytest.mark.parametrize("name", list(CASES))
def test_what_is_written_into_one_is_seen_in_the_other(name: str, needs_grad: bool, dynamic: bool) -> None:
    torch._dynamo.reset()

    def run(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return CASES[name](a * 2)

    compiled = torch.compile(run, backend="neuron", dynamic=dynamic)
    for rows in (4, 5):
        a = torch.arange(6.0 * rows).view(rows, 6)
        expected = run(a.clone().requires_grad_(needs_grad))
        found = compiled(a.to("neuron").requires_grad_(needs_grad))
        assert [t.requires_grad for t in found] == [t.requires_grad for t in expected]
        assert [t.stride() for t in found] == [t.stride() for t in expected]
        for outputs in (expected, found):
            outputs[0].detach().add_(100)
        assert all(torch.equal(x.detach().cpu(), y.detach()) for x, y in zip(found, expected))
