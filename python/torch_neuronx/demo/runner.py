"""Trains one workload in one variant and measures it."""

from __future__ import annotations

import importlib
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch._dynamo

from . import counters
from .workloads import Workload

WARM_STEPS = 3  # steps left out of the steady time: caches and allocators settle in them
Progress = Callable[["Result"], None]


@dataclass(frozen=True)
class Variant:
    """Where and how a model runs. `reference` variants are measured but judged by nobody."""

    name: str
    device: str
    backend: str | None = None
    reference: bool = False
    allow_rnn: bool = False  # lets Dynamo trace nn.LSTM, which it leaves eager by default


@dataclass
class Result:
    """What is known of one run so far; also what the table draws and the JSON holds."""

    workload: str
    variant: str
    device: str
    backend: str | None
    steps: int
    state: str = "waiting"  # waiting, running, done, failed, interrupted, left out
    error: str = ""
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    accuracy: float | None = None
    tokens: list[int] | None = None
    generate_seconds: float | None = None
    on_device: list[str] = field(default_factory=list)
    fallback: dict[str, str] = field(default_factory=dict)
    kernels: counters.Kernels = field(default_factory=counters.Kernels)
    graphs: dict[str, int] | None = None
    graph_breaks: list[str] = field(default_factory=list)
    peak_bytes: int | None = None

    @property
    def first(self) -> float | None:
        """Seconds of the first training step, with everything that is compiled for it."""
        return self.seconds[0] if self.seconds else None

    @property
    def steady(self) -> float | None:
        """Median seconds of a step after the first few."""
        rest = self.seconds[WARM_STEPS:]
        return statistics.median(rest) if rest else None


def _forget_compiled(variant: Variant) -> None:
    """Drops compiled graphs of the previous variant, so that each counts its own."""
    torch._dynamo.reset()
    torch._dynamo.config.allow_rnn = variant.allow_rnn
    torch._dynamo.utils.counters.clear()


def import_compilers(inductor: bool) -> None:
    """Imports what the first torch.compile of a process would, so that no variant's first step pays for it alone."""
    weight = torch.ones(2, requires_grad=True)
    torch.compile(lambda x: x * 2, backend="aot_eager")(weight).sum().backward()
    if inductor:
        importlib.import_module("torch._inductor.compile_fx")
        importlib.import_module("torch._inductor.cpp_builder")
    torch._dynamo.reset()


def _graph_counts() -> dict[str, int]:
    found = torch._dynamo.utils.counters
    return {
        "captured": int(found["stats"].get("unique_graphs", 0)),
        "breaks": sum(found["graph_break"].values()),
        "forward and backward": int(found["aot_autograd"].get("ok", 0)),
    }


def run(workload: Workload, variant: Variant, result: Result, seconds: float, progress: Progress) -> None:
    """Fills `result`. Stops early, with what it has, when `seconds` are over after at least ten steps.

    Exceptions of the model are noted in the result; KeyboardInterrupt goes through after the account is read.
    """
    device = torch.device(variant.device)
    before = counters.kernels()
    counters.clear_operators()
    counters.reset_peak(device)
    result.state = "running"
    compiled = variant.backend is not None
    if compiled:
        _forget_compiled(variant)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = _train(workload, variant, device, result, time.monotonic() + seconds, progress)
            if compiled:
                result.graphs = _graph_counts()
                reasons = torch._dynamo.utils.counters["graph_break"]
                result.graph_breaks = [str(reason).strip().splitlines()[0] for reason in reasons]
            if not variant.reference:
                _judge(workload, module, variant, device, result)
        result.state = "done"
    except KeyboardInterrupt:
        result.state = "interrupted"
        raise
    except Exception as error:
        result.state = "failed"
        lines = [line for line in str(error).strip().splitlines() if line.strip()] or [""]
        result.error = f"{type(error).__name__}: {lines[0]}"[:300]
    finally:
        if device.type != "cpu":
            account = counters.operators()
            result.on_device, result.fallback = account.on_device, account.fallback
            result.kernels = counters.kernels().since(before)
        result.peak_bytes = counters.peak_bytes(device)
        progress(result)


def _train(
    workload: Workload, variant: Variant, device: torch.device, result: Result, end: float, progress: Progress
) -> torch.nn.Module:
    module = workload.build().to(device)
    module.train()
    step: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = module
    if variant.backend is not None:
        step = torch.compile(module, backend=variant.backend)
    optimizer = workload.optimizer(module)
    clip = getattr(workload, "clip", None)
    for number in range(result.steps):
        x, y = (part.to(device) for part in workload.batch(number))
        counters.synchronize(device)
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = step(x, y)
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(module.parameters(), clip)
        optimizer.step()
        counters.synchronize(device)
        result.seconds.append(time.perf_counter() - start)
        result.losses.append(loss.item())
        progress(result)
        if number >= 10 and time.monotonic() > end:
            break
    return module


def _judge(workload: Workload, module: torch.nn.Module, variant: Variant, device: torch.device, result: Result) -> None:
    result.accuracy = workload.accuracy(module, device)
    start = time.perf_counter()
    result.tokens = workload.generate(module, device, variant.backend)
    if result.tokens is not None:
        result.generate_seconds = time.perf_counter() - start
