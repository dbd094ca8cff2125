"""Runs the benchmarks: C programs named bench_* of the build folder, then bench/*.py; each prints its own table.

Everything is also in bench/results/bench.json: per program its seconds, exit status, the lines it printed and, where it
writes records, these too. `--only rows,startup` runs some; `--minutes 10` ends a program that takes longer.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def programs(build: Path) -> list[list[str]]:
    """Command lines. A Python file without a main part is a library of the others."""
    native = [
        path
        for path in build.rglob("bench_*")
        if path.is_file() and os.access(path, os.X_OK) and "CMakeFiles" not in path.parts
    ]
    scripts = [path for path in (ROOT / "bench").glob("*.py") if "__main__" in path.read_text()]
    return [[str(path)] for path in sorted(native)] + [[sys.executable, str(path)] for path in sorted(scripts)]


def run(command: list[str], build: Path, seconds: float) -> dict[str, object]:
    name = Path(command[-1]).stem
    print(f"==== {name}", flush=True)
    start = time.monotonic()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records.json"
        text = Path(command[-1]).read_text() if command[-1].endswith(".py") else ""
        if '"--json"' in text:
            command = [*command, "--json", str(records)]
        environment = {**os.environ, "TN_BENCH_LIB": str(build / "python/torch_neuronx/libtn.so")}
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
        code = process.wait()
        timer.cancel()
        found = json.loads(records.read_text())["records"] if records.exists() else None
    spent = time.monotonic() - start
    if code != 0:
        print(f"{name} failed with status {code} after {spent:.0f} s", flush=True)
    return {"name": name, "seconds": round(spent, 1), "status": code, "records": found, "lines": lines}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--only", default="", help="names, comma between")
    parser.add_argument("--minutes", type=float, default=15.0)
    options = parser.parse_args()
    wanted = [word for word in options.only.split(",") if word]
    results = []
    for command in programs(options.build):
        if not wanted or Path(command[-1]).stem in wanted:
            results.append(run(command, options.build.resolve(), options.minutes * 60))
    report = ROOT / "bench/results/bench.json"
    report.parent.mkdir(exist_ok=True)
    report.write_text(json.dumps({"host": platform.processor(), "cpus": os.cpu_count(), "programs": results}, indent=1))
    failed = [str(result["name"]) for result in results if result["status"] != 0]
    took = ", ".join(f"{result['name']} {result['seconds']} s" for result in results)
    print(f"==== {took}\nall figures are in {report.relative_to(ROOT)}; failed: {', '.join(failed) or 'none'}")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    raise SystemExit(main())
