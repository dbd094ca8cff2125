"""`torchneuron verify`: is the device there, and does it compute what CPU computes?"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

SEED = 7


@dataclass(frozen=True)
class Outcome:
    """One check: the largest difference from CPU over the largest CPU value, the limit for it, and seconds on device."""

    name: str
    error: float
    limit: float
    seconds: float
    problem: str = ""

    @property
    def right(self) -> bool:
        return not self.problem and self.error <= self.limit


def _matmul(device: str) -> list[torch.Tensor]:
    torch.manual_seed(SEED)
    a, b = torch.randn(96, 200), torch.randn(200, 130)
    return [a.to(device) @ b.to(device), (a.bfloat16().to(device) @ b.bfloat16().to(device)).float()]


def _convolution(device: str) -> list[torch.Tensor]:
    torch.manual_seed(SEED)
    x, weight, bias = torch.randn(4, 8, 20, 20), torch.randn(16, 8, 3, 3), torch.randn(16)
    return [F.conv2d(x.to(device), weight.to(device), bias.to(device), stride=2, padding=1)]


def _attention(device: str) -> list[torch.Tensor]:
    torch.manual_seed(SEED)
    q, k, v = (torch.randn(2, 4, 65, 32).to(device) for _ in range(3))
    return [F.scaled_dot_product_attention(q, k, v, is_causal=True)]


def _network() -> nn.Module:
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Linear(20, 48), nn.LayerNorm(48), nn.GELU(), nn.Linear(48, 5))


def _backward(device: str) -> list[torch.Tensor]:
    net = _network().to(device)
    x = torch.randn(32, 20, generator=torch.Generator().manual_seed(SEED)).to(device)
    F.cross_entropy(net(x), torch.arange(32).remainder(5).to(device)).backward()
    return [p.grad for p in net.parameters() if p.grad is not None]


def _train(device: str, backend: str | None) -> list[torch.Tensor]:
    net = _network().to(device)
    step: Callable[..., Any] = torch.compile(net, backend=backend) if backend else net
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    x = torch.randn(32, 20, generator=torch.Generator().manual_seed(SEED)).to(device)
    y = torch.arange(32).remainder(5).to(device)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(step(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [torch.stack(losses), *(p.detach() for p in net.parameters())]


def _optimizer(device: str) -> list[torch.Tensor]:
    return _train(device, None)


def _compile(device: str) -> list[torch.Tensor]:
    return _train(device, None if device == "cpu" else "neuron")


# name, function of a device, limit of the relative difference
CHECKS: list[tuple[str, Callable[[str], list[torch.Tensor]], float]] = [
    ("matmul", _matmul, 1e-2),  # bfloat16 rounds to 2 ** -8
    ("convolution", _convolution, 1e-5),
    ("attention", _attention, 1e-5),
    ("backward", _backward, 1e-4),
    ("optimizer", _optimizer, 1e-4),
    ("compile", _compile, 1e-4),
]


def difference(actual: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    """Largest |a - e| over the tensors, each divided by its largest |e|. inf if shapes or dtypes differ or on NaN."""
    if len(actual) != len(expected):
        return float("inf")
    worst = 0.0
    for a, e in zip(actual, expected):
        a, e = a.detach().cpu(), e.detach()
        if a.shape != e.shape or a.dtype != e.dtype:
            return float("inf")
        error = float((a - e).abs().max() / e.abs().max().clamp(min=1e-12))
        worst = max(worst, error if error == error else float("inf"))
    return worst


def check(name: str, compute: Callable[[str], list[torch.Tensor]], limit: float, device: str) -> Outcome:
    """Runs one check; what it raises becomes its problem."""
    start = time.perf_counter()
    try:
        expected = compute("cpu")  # first, so that what PyTorch imports at first use is not counted
        start = time.perf_counter()
        actual = compute(device)
        if device != "cpu":
            torch.accelerator.synchronize()
        seconds = time.perf_counter() - start
        return Outcome(name, difference(actual, expected), limit, seconds)
    except Exception as error:
        text = (str(error).strip().splitlines() or [""])[0]
        return Outcome(name, float("inf"), limit, time.perf_counter() - start, f"{type(error).__name__}: {text}")


def _device_line() -> str:
    import torch_neuronx

    count = torch.neuron.device_count()  # type: ignore[attr-defined]
    properties = torch_neuronx.get_device_properties(0)
    return f"{count} device(s), {properties.name}, {properties.total_memory / 2**30:.0f} GB"


def main(device: str = "neuron") -> int:
    """Prints one line per check and a verdict. Returns 0 if everything is right, else 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fallbacks are listed at the end
        return _verify(device)


def _verify(device: str) -> int:
    print(f"torch {torch.__version__}")
    try:
        if device == "neuron":
            print(f"{'device':<12} {_device_line()}")
        torch.ones(2, device=device)
    except Exception as error:
        print(f"{'device':<12} NOT AVAILABLE: {type(error).__name__}: {error}")
        print("verdict: the device cannot be used; `python -c 'import torch_neuronx'` may say why")
        return 1
    outcomes = []
    for name, compute, limit in CHECKS:
        outcome = check(name, compute, limit, device)
        outcomes.append(outcome)
        state = "ok" if outcome.right else f"WRONG {outcome.problem}".rstrip()
        print(
            f"{outcome.name:<12} error {outcome.error:8.1e} (limit {outcome.limit:.0e})  "
            f"{outcome.seconds * 1e3:9.1f} ms  {state}",
            flush=True,
        )
    fallback = _fallbacks() if device == "neuron" else []
    if fallback:
        print(f"{'fallback':<12} {', '.join(fallback)}")
    wrong = [outcome.name for outcome in outcomes if not outcome.right]
    if wrong:
        print(f"verdict: {', '.join(wrong)} not right")
        return 1
    print("verdict: the device computes what CPU computes" + (", with operators on CPU" if fallback else ""))
    return 0


def _fallbacks() -> list[str]:
    import torch_neuronx

    return torch_neuronx.get_fallback_ops()
