"""Compares results with CPU, says in one sentence what came out, and writes the JSON report."""

from __future__ import annotations

import json
import math
import platform
import statistics
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from .runner import Result
from .workloads import Size

# Training amplifies rounding without bound (CPU with one and with two threads parts ways, too): only the first steps
# of a curve can be compared.
CURVE_STEPS = 50
CURVE_LIMIT = 1e-3  # relative difference of the loss curve from CPU that still counts as equal
EAGER_LIMIT = COMPILED_LIMIT = 1.2  # steady step over CPU eager's and over Inductor's


def by_variant(results: list[Result], workload: str) -> dict[str, Result]:
    return {result.variant: result for result in results if result.workload == workload}


def curve_difference(result: Result, reference: Result | None) -> float | None:
    """Largest |a - b| / |b| over the first CURVE_STEPS steps that both ran; None without a reference, inf for NaN."""
    if reference is None or reference is result or not result.losses or not reference.losses:
        return None
    worst = 0.0
    for a, b in zip(result.losses[:CURVE_STEPS], reference.losses):
        difference = abs(a - b) / max(abs(b), 1e-12)
        worst = max(worst, difference if math.isfinite(difference) else math.inf)
    return worst


def ratio(result: Result, reference: Result | None) -> float | None:
    """Steady step over the reference's steady step."""
    if reference is None or not result.steady or not reference.steady:
        return None
    return result.steady / reference.steady


def verdict(size: Size, results: dict[str, Result]) -> tuple[bool, str]:
    """Whether the neuron variants of one workload are right, and a sentence about it."""
    cpu, inductor = results.get("cpu eager"), results.get("inductor")
    judged = [result for name, result in results.items() if name.startswith("neuron")]
    wrong: list[str] = []
    unfinished: list[str] = []
    for result in judged:
        name = result.variant.removeprefix("neuron ")
        difference = curve_difference(result, cpu)
        if result.state == "failed":
            wrong.append(f"{name} failed ({result.error[:120]})")
            continue
        if result.state != "done":
            unfinished.append(name)
            continue
        if difference is None or difference > CURVE_LIMIT:
            wrong.append(f"{name} loss leaves CPU's by {_number(difference)}")
        if result.fallback:
            wrong.append(f"{name} leaves the device for {len(result.fallback)} operators")
        if size.accuracy_needed and (result.accuracy or 0.0) < size.accuracy_needed:
            wrong.append(
                f"{name} reaches {100 * (result.accuracy or 0.0):.1f} %, not {100 * size.accuracy_needed:.0f} %"
            )
        if cpu is not None and cpu.tokens is not None and result.tokens != cpu.tokens:
            wrong.append(f"{name} generates other tokens than CPU")
    if not judged or cpu is None or cpu.state != "done":
        return False, "Not judged: the CPU run is missing." if judged else "Not judged."
    speed = []
    for name, reference, title in (
        ("neuron eager", cpu, "CPU eager"),
        ("neuron compiled", inductor or cpu, "Inductor" if inductor else "CPU eager"),
    ):
        found = ratio(results[name], reference) if name in results else None
        if found is not None:
            speed.append(f"{name.removeprefix('neuron ')} takes {found:.2f} x {title}'s time per step")
    tail = f"; {', '.join(speed)}" if speed else ""
    if wrong:
        return False, f"NOT RIGHT: {'; '.join(wrong)}{tail}."
    if unfinished:
        return False, f"Not judged: {' and '.join(unfinished)} not finished."
    worst = max((curve_difference(result, cpu) or 0.0) for result in judged)
    same = f"same losses as CPU (within {_number(worst)}), everything on the device"
    if cpu.tokens is not None:
        same += ", token for token the same text"
    steps = min(len(result.losses) for result in [cpu, *judged])
    so_far = f" as far as it went, {steps} of {cpu.steps} steps" if steps < cpu.steps else ""
    if cpu.accuracy is not None and size.is_short:
        tail += "; the accuracy is not judged after so few steps"
    return True, f"Right{so_far}: {same}{tail}."


def _number(value: float | None) -> str:
    return "nothing to compare" if value is None else "0" if value == 0 else f"{value:.1e}"


def geometric_mean(values: list[float]) -> float | None:
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def speeds(results: list[Result]) -> dict[str, float | None]:
    """Geometric means over the workloads of the two ratios that the project is held to."""
    eager: list[float] = []
    compiled: list[float] = []
    for name in dict.fromkeys(result.workload for result in results):
        found = by_variant(results, name)
        for variant, reference, values in (
            ("neuron eager", "cpu eager", eager), ("neuron compiled", "inductor", compiled),
        ):  # fmt: skip
            if variant in found:
                value = ratio(found[variant], found.get(reference))
                if value:
                    values.append(value)
    return {"eager / cpu eager": geometric_mean(eager), "compiled / inductor": geometric_mean(compiled)}


def as_dict(results: list[Result], verdicts: dict[str, tuple[bool, str]], facts: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for result in results:
        found = by_variant(results, result.workload)
        row = asdict(result)
        row["first_seconds"], row["steady_seconds"] = result.first, result.steady
        row["loss_difference"] = curve_difference(result, found.get("cpu eager"))
        row["steady_over_cpu_eager"] = ratio(result, found.get("cpu eager"))
        row["steady_over_inductor"] = ratio(result, found.get("inductor"))
        rows.append(row)
    return {
        "facts": {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            **facts,
        },
        "runs": rows,
        "verdicts": {name: {"right": right, "sentence": text} for name, (right, text) in verdicts.items()},
        "geometric_means": speeds(results),
    }


def write(path: Path, content: dict[str, Any]) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(json.dumps(content, indent=1, allow_nan=True) + "\n")
    temporary.replace(path)
