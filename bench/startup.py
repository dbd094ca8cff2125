"""What happens once, against its budget: import, a new size, a new kernel, a kernel from disk; and a CPU fallback.

Usage: bench/startup.py [--only import,size,kernel,fallback] [--json out.json]
A line: what, the figure, its budget, "ok" or "over". Both sides of a difference run in turns and the fastest of each
counts, so other load on the machine hurts little; one thread.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable

BUDGET = {"import": 30e-3, "size": 15e-6, "kernel": 5e-3, "disk": 60e-6, "fallback": 1e-6}
records: list[dict[str, object]] = []


def seconds(value: float) -> str:
    for unit, factor in (("s ", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= factor:
            return f"{value / factor:8.2f} {unit}"
    return f"{value * 1e9:8.0f} ns"


def report(kind: str, name: str, value: float, note: str = "") -> None:
    limit = BUDGET[kind]
    verdict = "ok" if value <= limit else "over"
    records.append({"kind": kind, "name": name, "seconds": value, "budget": limit, "note": note})
    print(f"{kind:9} {name:26} {seconds(value)}  budget {seconds(limit).strip():8} {verdict:5} {note}", flush=True)


def child(code: str, **environment: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )
    if answer.returncode != 0:
        raise SystemExit(f"a measured process failed:\n{answer.stderr}")
    return answer.stdout.strip().splitlines()[-1]


# ---- import ------------------------------------------------------------------------------------------------------
IMPORT = """
import os, time
threads = lambda: len(os.listdir("/proc/self/task"))
start = time.process_time()
import torch
alone = time.process_time() - start
before = threads()
start = time.process_time()
torch._import_device_backends()  # what autoload adds to `import torch`
spent = time.process_time() - start
assert torch.neuron.is_available()
print(spent, alone, threads() - before, int("tn_codegen" in open("/proc/self/maps").read()))
"""


def measure_import(rounds: int) -> None:
    """Processor time; taken inside one process, as two imports of torch differ by more than the package costs."""
    best, torch_alone, threads, has_codegen = math.inf, math.inf, 0, 0
    for _ in range(rounds):
        answer = [float(word) for word in child(IMPORT, TORCH_DEVICE_BACKEND_AUTOLOAD="0").split()]
        best, torch_alone = min(best, answer[0]), min(torch_alone, answer[1])
        threads, has_codegen = int(answer[2]), int(answer[3])
    note = f"torch alone {seconds(torch_alone).strip()}, {threads} threads started"
    report("import", "import torch", best, note + (", code generator loaded" if has_codegen else ""))


# ---- a new size ----------------------------------------------------------------------------------------------------
def size_cases() -> dict[str, tuple[Callable, Callable]]:
    """Family -> inputs of size n, the call. Sizes stay on one side of the extents that change a kernel (1, blocks)."""
    import torch

    def tensor(*shape: int) -> torch.Tensor:
        return torch.ones(shape, device="neuron")

    def positions(n: int) -> torch.Tensor:
        return torch.zeros(n, dtype=torch.int64, device="neuron")

    return {
        "add": (lambda n: (tensor(n), tensor(n)), torch.add),
        "gelu": (lambda n: (tensor(n),), torch.nn.functional.gelu),
        "add broadcast": (lambda n: (tensor(n, 7), tensor(7)), torch.add),
        "sum": (lambda n: (tensor(n),), torch.sum),
        "sum of rows": (lambda n: (tensor(n, 9), 1), torch.sum),
        "softmax": (lambda n: (tensor(n, 9), 1), torch.softmax),
        "mm": (lambda n: (tensor(n, 8), tensor(8, 5)), torch.mm),
        "linear": (lambda n: (tensor(n, 8), tensor(5, 8), tensor(5)), torch.nn.functional.linear),
        "clone of transposed": (lambda n: (tensor(n, 5).t(),), torch.clone),
        "cat": (lambda n: ((tensor(n, 3), tensor(n, 4)), 1), torch.cat),
        "index_select": (lambda n: (tensor(9, 4), 0, positions(n)), torch.index_select),
        "layer_norm": (lambda n: (tensor(n, 16), (16,)), torch.nn.functional.layer_norm),
    }


def measure_sizes() -> None:
    for name, (make, call) in size_cases().items():
        first, again = [], []
        generated = 0
        for n in range(40, 140):
            inputs = make(n)
            before = kernel_stats()["generated"]
            start = time.perf_counter()
            call(*inputs)
            middle = time.perf_counter()
            call(*inputs)
            end = time.perf_counter()
            if n >= 60:  # the first sizes generate the kernel and warm the caches of the processor
                first.append(middle - start)
                again.append(end - middle)
                generated += kernel_stats()["generated"] - before
        note = f"{generated} kernels, " if generated else ""
        note += f"median {seconds(statistics.median(first)).strip()}, a known size {seconds(min(again)).strip()}"
        report("size", name, min(first) - min(again), note)


def kernel_stats() -> dict[str, int]:
    from torch_neuronx import _C

    return _C._kernel_stats()


# ---- a new kernel, and one from disk ---------------------------------------------------------------------------------
KERNELS = """
import json, time, warnings
import torch
from torch_neuronx import _C
warnings.simplefilter("ignore")
torch.set_num_threads(1)
x, y = torch.rand(40, 24, device="neuron"), torch.rand(40, 24, device="neuron")
torch.add(x, y); torch.add(x, y)  # opens the code generator, which is not what is measured
calls = {
    "exp": lambda: torch.exp(x), "gelu": lambda: torch.nn.functional.gelu(x), "tanh": lambda: torch.tanh(x),
    "sigmoid": lambda: torch.sigmoid(x), "where": lambda: torch.where(x < y, x, y), "pow": lambda: torch.pow(x, y),
    "atan2": lambda: torch.atan2(x, y), "sum": lambda: x.sum(), "amax": lambda: x.amax(0), "var": lambda: x.var(1),
    "lerp": lambda: torch.lerp(x, y, 0.3), "clamp": lambda: x.clamp(0.1, 0.9), "bfloat16": lambda: x.bfloat16(),
    "erfinv": lambda: torch.erfinv(x), "lgamma": lambda: torch.lgamma(x), "fmod": lambda: torch.fmod(x, y),
}
rows = {}
for name, call in calls.items():
    before = _C._kernel_stats()
    start = time.thread_time()
    call()
    spent = time.thread_time() - start
    again = time.thread_time()
    call()
    again = time.thread_time() - again
    after = _C._kernel_stats()
    count = {key: after[key] - before[key] for key in ("generated", "from_disk")}
    rows[name] = {"spent": spent - again, **count}
print(json.dumps(rows))
"""


def measure_kernels(rounds: int) -> None:
    """Processor time of an operator's first call over its second, per kernel; the work is done by the caller alone."""
    best: dict[tuple[str, str], float] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for kind, counted in (("kernel", "generated"), ("disk", "from_disk")):
                text = child(KERNELS, TORCH_NEURONX_NEFF_CACHE_DIR=folder, TORCH_NEURONX_NUM_THREADS="1")
                for name, row in json.loads(text).items():
                    if row[counted]:
                        each = row["spent"] / row[counted]
                        best[kind, name] = min(best.get((kind, name), math.inf), each)
    for kind in ("kernel", "disk"):
        rows = sorted((value, name) for (of, name), value in best.items() if of == kind)
        report(kind, f"median of {len(rows)}", rows[len(rows) // 2][0], rows[len(rows) // 2][1])
        report(kind, "slowest", *rows[-1])


# ---- a counted fallback ------------------------------------------------------------------------------------------------
def measure_fallback(rounds: int) -> None:
    import torch

    import torch_neuronx

    calls = 400
    cases = {  # operators without a kernel on the device; the last column of a budget line names them
        "1 argument": "torch.special.bessel_j0(x)",
        "2 arguments": "torch.igamma(x, y)",
        "integers": "torch.gcd(i, j)",
        "with a dimension": "torch.linalg.cross(a, b)",
        "out": "torch.igamma(x, y, out=out)",
    }
    for name, statement in cases.items():
        runs = []
        torch_neuronx.clear_op_tracking()
        for device in ("neuron", "cpu"):
            torch.manual_seed(0)
            names = {"x": torch.rand(2), "y": torch.rand(2), "i": torch.tensor([6, 4]), "j": torch.tensor([4, 8])}
            names |= {"a": torch.rand(1, 3), "b": torch.rand(1, 3), "out": torch.empty(2)}
            scope = {k: v.to(device) for k, v in names.items()} | {"torch": torch, "clock": time.perf_counter}
            text = f"def run():\n start = clock()\n for _ in range({calls}):\n  {statement}\n return clock() - start\n"
            exec(compile(text, f"<{statement}>", "exec"), scope)
            runs.append(scope["run"])
        best = [math.inf, math.inf]
        for _ in range(rounds):
            for side, run in enumerate(runs):
                best[side] = min(best[side], run() / calls)
        fallbacks = [record for record in torch_neuronx.op_report() if record.fallback_calls]
        if not fallbacks:
            raise SystemExit(f"{statement} runs on the device by now: choose another operator")
        report("fallback", name, best[0] - best[1], f"{fallbacks[0].name}, CPU {seconds(best[1]).strip()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="kinds (import, size, kernel, fallback), comma between")
    parser.add_argument("--rounds", type=int, default=0, help="of each measurement; 0: chosen by kind")
    parser.add_argument("--json", default="")
    args = parser.parse_args()
    wanted = [word for word in args.only.split(",") if word]
    has = lambda kind: not wanted or kind in wanted  # noqa: E731
    if has("import"):
        measure_import(args.rounds or 9)
    if has("kernel"):
        measure_kernels(args.rounds or 3)
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with torch.no_grad():
        if has("size"):
            measure_sizes()
        if has("fallback"):
            measure_fallback(args.rounds or 60)
    over = [f"{record['kind']} {record['name']}" for record in records if record["seconds"] > record["budget"]]
    print(f"{len(records)} figures, {len(over)} over their budget" + (": " + ", ".join(over) if over else ""))
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"bench": "startup", "torch": torch.__version__, "records": records}, file, indent=1)


if __name__ == "__main__":
    main()
