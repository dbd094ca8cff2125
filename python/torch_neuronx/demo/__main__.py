"""Command line of the demonstration: `python -m torch_neuronx.demo [--quick] [--only gpt,conv,lstm,llama]`.

Exit status: 0 when every neuron run is right, 1 when one is not, 130 after Ctrl-C (with what was known by then).
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from pathlib import Path

# Before torch starts: the hub must not be asked for anything, and caches of Inductor may stay where they are.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch

from . import counters, report, runner, screen, workloads

FULL_SECONDS, QUICK_SECONDS = 280.0, 55.0
FULL_ROUNDS, QUICK_ROUNDS = 5, 2  # of timing all variants by turns
ROUNDS_SHARE = 0.2  # of a model's time, at which no new round begins
REFERENCE_SHARE = 0.5  # after this share of the time no more Inductor: the judged runs come first


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m torch_neuronx.demo", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer steps and no Inductor: within a minute")
    parser.add_argument("--only", default="", metavar="NAMES", help=f"of {','.join(workloads.WORKLOADS)}")
    parser.add_argument("--device", default="neuron", help="device of the judged runs (default: neuron)")
    parser.add_argument("--backend", default="neuron", help="torch.compile backend of the judged runs")
    parser.add_argument("--inductor", action=argparse.BooleanOptionalAction, default=None, help="the timing reference")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads of every variant")
    parser.add_argument("--report", type=Path, default=Path("run-report.json"), help="where the JSON goes")
    options = parser.parse_args()
    if options.inductor is None:
        options.inductor = not options.quick
    return options


def variants(options: argparse.Namespace, name: str) -> list[runner.Variant]:
    found = [
        runner.Variant("cpu eager", "cpu"),
        runner.Variant("neuron eager", options.device),
        runner.Variant("neuron compiled", options.device, options.backend),
    ]
    if name == "lstm":
        found.append(runner.Variant("neuron comp. rnn", options.device, options.backend, allow_rnn=True))
    if options.inductor:
        # Before the judged runs, so that their rows show the ratio as soon as they are drawn.
        found.insert(1, runner.Variant("inductor", "cpu", "inductor", reference=True))
    return found


class Run:
    """Everything that is known while the demonstration goes on; `close` prints and writes it at any moment."""

    def __init__(self, options: argparse.Namespace, names: list[str]) -> None:
        self.options = options
        self.names = names
        self.results: list[runner.Result] = []
        self.verdicts: dict[str, tuple[bool, str]] = {}
        self.screen = screen.Screen()
        self.start = time.monotonic()
        self.limit = QUICK_SECONDS if options.quick else FULL_SECONDS
        self.interrupted = False

    def workload(self, number: int, name: str, left: int) -> None:
        work = workloads.WORKLOADS[name]()
        amount = work.quick if self.options.quick else work.full
        chosen = variants(self.options, name)
        found = {v.name: runner.Result(name, v.name, v.device, v.backend, amount.steps) for v in chosen}
        self.results += found.values()
        self.screen.title(number, len(self.names), name, work.describe())
        trained: list[tuple[runner.Trainer, runner.Result]] = []
        runner.forget_compiled()
        try:
            for place, variant in enumerate(chosen):
                # A slow build shortens its curves: a run may take twice its share of the time that is left.
                runs_left = len(chosen) - place + len(chosen) * left
                seconds = self.left() * min(2 / runs_left, 1)
                result = found[variant.name]
                if variant.reference and time.monotonic() - self.start > REFERENCE_SHARE * self.limit:
                    result.state, result.error = "left out", "left out, for this machine is too slow today"
                else:
                    if variant.allow_rnn:
                        self.time_in_turns(trained, left)
                        trained = []
                        runner.forget_compiled()
                    trainer = runner.run(work, variant, result, seconds, lambda _: self.screen.update(found))
                    if trainer is not None:
                        trained.append((trainer, result))
                self.screen.update(found, force=True)
            self.time_in_turns(trained, left)
        finally:
            self.screen.finished(found)
            self.verdicts[name] = report.verdict(amount, found)
            self.screen.notes(found, *self.verdicts[name])

    def time_in_turns(self, trained: list[tuple[runner.Trainer, runner.Result]], left: int) -> None:
        if len(trained) > 1:
            seconds = ROUNDS_SHARE * self.left() / (left + 1)
            runner.time_in_turns(trained, QUICK_ROUNDS if self.options.quick else FULL_ROUNDS, seconds)

    def left(self) -> float:
        """Seconds until the time for everything is over."""
        return max(self.limit - (time.monotonic() - self.start), 0.0)

    def close(self) -> int:
        right = not self.interrupted and len(self.verdicts) == len(self.names)
        right = right and all(verdict[0] for verdict in self.verdicts.values())
        facts = {
            "threads": self.options.threads,
            "quick": self.options.quick,
            "interrupted": self.interrupted,
            "seconds": round(time.monotonic() - self.start, 1),
        }
        report.write(self.options.report, report.as_dict(self.results, self.verdicts, facts))
        means = report.speeds(self.results)
        parts = [f"{name} {value:.2f}" for name, value in means.items() if value is not None]
        print()
        if parts:
            print(f"steady step, geometric mean over the models: {', '.join(parts)}")
        state = "interrupted" if self.interrupted else "all right" if right else "NOT all right"
        print(f"{state} after {facts['seconds']} s; report: {self.options.report}", flush=True)
        return 130 if self.interrupted else 0 if right else 1


def main() -> int:
    options = arguments()
    names = [name for name in options.only.split(",") if name] or list(workloads.WORKLOADS)
    unknown = [name for name in names if name not in workloads.WORKLOADS]
    if unknown:
        print(f"unknown model {unknown[0]!r}: there are {', '.join(workloads.WORKLOADS)}", file=sys.stderr)
        return 2
    logging.getLogger("torch").setLevel(logging.ERROR)
    counters.set_threads(options.threads)
    run = Run(options, names)
    print(f"PyTorch {torch.__version__}, {options.threads} threads for every variant, seed {workloads.SEED}")
    try:
        torch.ones(1, device=options.device)
    except Exception as error:
        print(f"the device {options.device!r} cannot be used: {error}", file=sys.stderr)
        return 1
    try:
        runner.import_compilers(options.inductor)
        for number, name in enumerate(names, 1):
            run.workload(number, name, len(names) - number)
    except KeyboardInterrupt:
        run.interrupted = True
    return run.close()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # Inductor's compile workers and a half-done compilation must not hold an interrupted run.
    os._exit(status) if status == 130 else sys.exit(status)
