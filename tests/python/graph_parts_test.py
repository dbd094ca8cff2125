"""Compiled graphs that hold operators without a kernel: what stands around them still runs as graphs."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable

import pytest
import torch

import torch_neuronx

# Operators that the device does not have, from a square matrix to one of the same shape.
REFUSED: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda x: torch.linalg.matrix_exp(x * 0.1),
    lambda x: torch.linalg.inv(x @ x.mT + 5 * torch.eye(x.shape[0], device=x.device)),
    lambda x: torch.linalg.cholesky(x @ x.mT + 5 * torch.eye(x.shape[0], device=x.device)),
    lambda x: torch.linalg.svdvals(x).expand(x.shape[0], -1) * 0.5,
]
NATIVE: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = [
    lambda x, y: torch.tanh(x) + y,
    lambda x, y: x @ y * 0.2,
    lambda x, y: x.T.contiguous().T - 0.5 * y,
    lambda x, y: torch.softmax(x, 0) * x.shape[0] + y.sum(1, keepdim=True) * 0.1,
    lambda x, y: torch.cat([x[1:], y[:1]]),
]


def program(seed: int, steps: int) -> Callable[..., tuple[torch.Tensor, ...]]:
    """A function of two square matrices that mixes operators of both kinds; it may write into its second argument."""
    chosen = random.Random(seed)
    plan = [(chosen.random() < 0.35, chosen.randrange(100), chosen.randrange(100)) for _ in range(steps)]
    writes = chosen.random() < 0.5

    def run(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = [x @ w, y]
        for refused, op, source in plan:
            a, b = values[source % len(values)], values[-1]
            values.append(REFUSED[op % len(REFUSED)](a) if refused else NATIVE[op % len(NATIVE)](a, b))
        if writes:
            y.mul_(0.5).add_(values[-2])
        return (values[-1] + w).sum(), values[-1].T, values[2], x[1:], values[-1].new_zeros(x.shape[0] + 1)

    return run


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("seed", range(8))
def test_parts_compute_what_cpu_does(seed: int, dynamic: bool | None) -> None:
    torch._dynamo.reset()
    run = program(seed, 6)
    compiled = torch.compile(run, backend="neuron", dynamic=dynamic)
    for size in (5, 6, 3):
        torch.manual_seed(seed)
        x, y, w = (torch.randn(size, size) for _ in range(3))
        on_cpu = [x.clone(), y.clone(), w.clone().requires_grad_()]
        on_device = [x.to("neuron"), y.to("neuron"), w.to("neuron").requires_grad_()]
        expected = run(*on_cpu)
        found = compiled(*on_device)
        expected[0].backward()
        found[0].backward()
        for a, b in zip([*found, on_device[1], on_device[2].grad], [*expected, on_cpu[1], on_cpu[2].grad]):
            torch.testing.assert_close(a.cpu(), b, rtol=2e-4, atol=2e-4)


def test_what_is_around_a_refused_call_is_fused() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        for _ in range(10):
            x = torch.sin(x) + 1
        x = torch.linalg.matrix_exp(x)
        for _ in range(10):
            x = torch.cos(x) * 2
        return x

    torch._dynamo.reset()
    torch_neuronx.clear_op_tracking()
    x = torch.randn(4, 4)
    before = torch_neuronx._C._kernel_stats()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = torch.compile(run, backend="neuron")(x.to("neuron"))
    after = torch_neuronx._C._kernel_stats()
    torch.testing.assert_close(found.cpu(), run(x), rtol=2e-3, atol=2e-3)
    assert list(torch_neuronx.get_fallback_ops()) == ["aten::linalg_matrix_exp"]
    looked_up = sum(after[key] - before[key] for key in ("generated", "from_disk", "from_memory"))
    assert looked_up <= 2, "each side of the refused call is one kernel"


def test_strides_of_results_are_those_of_eager() -> None:
    def run(x: torch.Tensor, w: torch.Tensor, refused: bool) -> tuple[torch.Tensor, ...]:
        a = torch.relu(x @ w) + 1
        if refused:
            a = a + torch.linalg.matrix_exp(a * 0.1)
        return a.T, (a + 1).T, a[1:], a.T.contiguous().T, a.view(-1)[::2]

    for needs_grad in (False, True):
        for refused in (False, True):
            torch._dynamo.reset()
            x, w = torch.randn(5, 5), torch.randn(5, 5)
            expected = run(x, w.requires_grad_(needs_grad), refused)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = torch.compile(run, backend="neuron")(
                    x.to("neuron"), w.detach().to("neuron").requires_grad_(needs_grad), refused
                )
            assert [t.stride() for t in found] == [t.stride() for t in expected]
