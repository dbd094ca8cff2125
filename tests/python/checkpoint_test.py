"""Activation checkpointing: what forward drew at random, backward draws again, eager and compiled alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Body(nn.Module):
    """Two dropouts, and between them, if asked for, an operator that falls back."""

    def __init__(self, falls_back: bool) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.falls_back = falls_back

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.dropout(torch.relu(self.first(x)), 0.5)
        if self.falls_back:
            x = x @ torch.linalg.matrix_exp(x.mT @ x * 0.01)
        return F.dropout(torch.tanh(self.second(x)), 0.3)


def gradients(step: Callable[[torch.Tensor], torch.Tensor], body: nn.Module, rows: int) -> list[torch.Tensor]:
    torch.manual_seed(5)
    x = torch.randn(rows, 6, device="neuron", requires_grad=True)
    body.zero_grad()
    loss = step(x)
    loss.backward()
    after = torch.rand(3, device="neuron")  # the generator stands where eager leaves it
    return [loss.detach(), x.grad, *(p.grad.clone() for p in body.parameters()), after]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("falls_back", [False, True])
@pytest.mark.parametrize("reentrant", [False, True])
def test_backward_repeats_the_dropout_of_forward(dynamic: bool, falls_back: bool, reentrant: bool) -> None:
    torch._dynamo.reset()
    torch.manual_seed(1)
    body = Body(falls_back).to("neuron")

    def plain(x: torch.Tensor) -> torch.Tensor:
        return body(x).square().sum()

    def saved(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(body, x, use_reentrant=reentrant).square().sum()

    compiled = torch.compile(saved, backend="neuron", dynamic=dynamic)
    for rows in (4, 7):
        expected = gradients(plain, body, rows)
        for step in (saved, compiled):
            for a, b in zip(gradients(step, body, rows), expected):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_the_generator_can_be_set_inside_a_compiled_function() -> None:
    def run(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        state = torch.neuron.get_rng_state()
        first = torch.rand_like(x)
        torch.neuron.set_rng_state(state)
        with torch.random.fork_rng(devices=[0], device_type="neuron"):
            torch.manual_seed(3)
            forked = torch.rand_like(x)
        return first, torch.rand_like(x), forked

    x = torch.ones(5, device="neuron")
    torch.manual_seed(2)
    expected = run(x)
    torch._dynamo.reset()
    torch.manual_seed(2)
    found = torch.compile(run, backend="neuron")(x)
    assert all(torch.equal(a, b) for a, b in zip(found, expected)) and torch.equal(found[0], found[1])
