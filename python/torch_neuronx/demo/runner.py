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
ROUND_SECONDS = 0.3  # of every variant in a timing round
ROUND_STEPS = (3, 30)  # fewest and most steps of it
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
    timed: list[float] = field(default_factory=list)  # seconds of the steps of `time_in_turns`
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
        """Median seconds of a step: of those timed in turns with the other variants, else after the first few."""
        rest = self.timed or self.seconds[WARM_STEPS:]
        return statistics.median(rest) if rest else None


class Trainer:
    """The model of one variant with its optimizer: one call is one training step."""

    def __init__(self, workload: Workload, variant: Variant) -> None:
        self.workload = workload
        self.device = torch.device(variant.device)
        self.module = workload.build().to(self.device)
        self.module.train()
        self.loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = self.module
        if variant.backend is not None:
            self.loss = torch.compile(self.module, backend=variant.backend)
        self.optimizer = workload.optimizer(self.module)
        self.clip = getattr(workload, "clip", None)

    def step(self, number: int) -> tuple[float, float]:
        """Trains on the batch of that number; returns the step's seconds, the batch on the device, and its loss."""
        x, y = (part.to(self.device) for part in self.workload.batch(number))
        counters.synchronize(self.device)
        start = time.perf_counter()
        self.optimizer.zero_grad()
        loss = self.loss(x, y)
        loss.backward()
        if self.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), self.clip)
        self.optimizer.step()
        counters.synchronize(self.device)
        return time.perf_counter() - start, loss.item()


def forget_compiled() -> None:
    """Drops compiled graphs. Variants of other backends keep theirs beside each other; with another `allow_rnn`
    the same code means another graph."""
    torch._dynamo.reset()


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


def run(workload: Workload, variant: Variant, result: Result, seconds: float, progress: Progress) -> Trainer | None:
    """Fills `result` and returns what can train on; None after a failure. Stops early, with what it has, when
    `seconds` are over after at least ten steps.

    Exceptions of the model are noted in the result; KeyboardInterrupt goes through after the account is read.
    """
    device = torch.device(variant.device)
    before = counters.kernels()
    counters.clear_operators()
    peak = counters.PeakMemory(device)
    result.state = "running"
    torch._dynamo.utils.counters.clear()
    torch._dynamo.config.allow_rnn = variant.allow_rnn
    trainer = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trainer = Trainer(workload, variant)
            _train(trainer, result, time.monotonic() + seconds, progress)
            if variant.backend is not None:
                result.graphs = _graph_counts()
                reasons = torch._dynamo.utils.counters["graph_break"]
                result.graph_breaks = [str(reason).strip().splitlines()[0] for reason in reasons]
            if not variant.reference:
                _judge(workload, trainer.module, variant, device, result)
        result.state = "done"
    except KeyboardInterrupt:
        result.state = "interrupted"
        raise
    except Exception as error:
        result.state = "failed"
        lines = [line for line in str(error).strip().splitlines() if line.strip()] or [""]
        result.error = f"{type(error).__name__}: {lines[0]}"[:300]
        trainer = None
    finally:
        if device.type != "cpu":
            account = counters.operators()
            result.on_device, result.fallback = account.on_device, account.fallback
            result.kernels = counters.kernels().since(before)
        result.peak_bytes = peak.bytes()
        progress(result)
    return trainer


def _train(trainer: Trainer, result: Result, end: float, progress: Progress) -> None:
    for number in range(result.steps):
        seconds, loss = trainer.step(number)
        result.seconds.append(seconds)
        result.losses.append(loss)
        progress(result)
        if number >= 10 and time.monotonic() > end:
            break


def time_in_turns(trainers: list[tuple[Trainer, Result]], rounds: int, seconds: float) -> None:
    """Goes on training in all variants by turns, so that what else the machine does meets them alike. Ends with the
    round in which `seconds` are over."""
    end = time.monotonic() + seconds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for turn in range(rounds):
            if time.monotonic() > end:
                break
            for trainer, result in trainers:
                fewest, most = ROUND_STEPS
                steps = min(max(round(ROUND_SECONDS / (result.steady or ROUND_SECONDS)), fewest), most)
                trainer.step(turn)  # brings the variant's data back into the processor's caches
                found = [trainer.step(turn + number)[0] for number in range(steps)]
                result.timed += found


def _judge(workload: Workload, module: torch.nn.Module, variant: Variant, device: torch.device, result: Result) -> None:
    result.accuracy = workload.accuracy(module, device)
    start = time.perf_counter()
    result.tokens = workload.generate(module, device, variant.backend)
    if result.tokens is not None:
        result.generate_seconds = time.perf_counter() - start
