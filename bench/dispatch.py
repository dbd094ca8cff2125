"""Cost of one eager call from Python beside torch's CPU in the same process: small tensors, warm caches, one thread.

Usage: bench/dispatch.py [--only add,mul] [--rounds 60] [--json out.json]
A line: nanoseconds on neuron and on the CPU, their ratio, their difference. Both sides run in turns and the fastest
round of each counts. Operators named "fallback ..." have no kernel on the device: there the difference is what the
detour over the CPU costs.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable

import torch

COUNT = 16  # elements: the work itself is a few nanoseconds
CALLS = 400  # per round, short enough to fit between two interruptions


def cases() -> dict[str, Callable[[str], tuple[str, dict[str, object]]]]:
    """Name -> for a device, the statement and its names."""

    def tensors(device: str) -> dict[str, object]:
        torch.manual_seed(0)
        x, y = torch.rand(COUNT), torch.rand(COUNT)
        names: dict[str, object] = {
            "x": x,
            "y": y,
            "out": torch.empty(COUNT),
            "square": x.reshape(4, 4).clone(),
            "other": y.reshape(4, 4).clone(),
            "strided": torch.rand(COUNT, 2)[:, 0],
            "integers": torch.arange(COUNT),
            "mask": x > y,
            "bf16": x.to(torch.bfloat16),
        }
        return {k: v.to(device) for k, v in names.items() if isinstance(v, torch.Tensor)} | {
            "torch": torch,
            "device": torch.device(device),
        }

    statements = {
        "add": "torch.add(x, y)",
        "add operator": "x + y",
        "add scalar": "x + 2.5",
        "add_": "x.add_(y)",
        "add_ scalar": "x.add_(1.5)",
        "add out": "torch.add(x, y, out=out)",
        "add broadcast": "square + x[:4]",
        "add strided": "strided + y",
        "add bfloat16": "bf16 + bf16",
        "mul": "torch.mul(x, y)",
        "mul scalar": "x * 3",
        "exp": "torch.exp(x)",
        "relu": "torch.relu(x)",
        "lt": "x < y",
        "where": "torch.where(mask, x, y)",
        "sum": "x.sum()",
        "sum dim": "square.sum(1)",
        "softmax": "torch.softmax(square, 1)",
        "mm": "torch.mm(square, other)",
        "cat": "torch.cat((x, y))",
        "to bfloat16": "x.to(torch.bfloat16)",
        "clone": "x.clone()",
        "copy_": "out.copy_(x)",
        "fill_": "out.fill_(2.0)",
        "zero_": "out.zero_()",
        "empty": "torch.empty(16, device=device)",
        "empty_like": "torch.empty_like(x)",
        "zeros": "torch.zeros(16, device=device)",
        "view": "x.view(4, 4)",
        "transpose": "square.t()",
        "select": "x[3]",
        "slice": "x[2:9]",
        "item": "x[0].item()",
        "index_select": "torch.index_select(x, 0, integers)",
        "fallback logdet": "torch.logdet(square)",
    }

    return {
        name: (lambda device, statement=statement: (statement, tensors(device)))
        for name, statement in statements.items()
    }


def compiled(statement: str, names: dict[str, object]) -> Callable[[], int]:
    """A function that runs the statement CALLS times and returns the nanoseconds."""
    text = f"def run():\n  start = clock()\n  for _ in calls:\n    {statement}\n  return clock() - start\n"
    scope = {"clock": time.perf_counter_ns, "calls": range(CALLS), **names}
    # Names become locals: looking up globals costs both sides the same.
    exec(compile(text, f"<{statement}>", "exec"), scope)
    run = scope["run"]
    assert callable(run)
    return run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="names or parts of names, comma between")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", default="")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    wanted = [word for word in args.only.split(",") if word]
    records = []
    with torch.no_grad():
        for name, make in cases().items():
            if wanted and not any(word in name for word in wanted):
                continue
            runs = [compiled(*make(device)) for device in ("neuron", "cpu")]
            best = [math.inf, math.inf]
            for _ in range(args.rounds):
                for side, run in enumerate(runs):
                    best[side] = min(best[side], run() / CALLS)
            neuron, cpu = best
            records.append({"name": name, "neuron_ns": neuron, "cpu_ns": cpu, "ratio": neuron / cpu})
            print(f"{name:20} {neuron:8.0f} {cpu:8.0f} {neuron / cpu:6.2f} {neuron - cpu:+8.0f}", flush=True)
    ratios = [record["ratio"] for record in records]
    print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"bench": "dispatch", "torch": torch.__version__, "records": records}, file, indent=1)


if __name__ == "__main__":
    main()
