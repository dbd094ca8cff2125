"""Runs the benchmarks: C programs named bench_* of the build folder, then bench/*.py; each prints its own table."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    options = parser.parse_args()
    programs = sorted(
        path
        for path in options.build.rglob("bench_*")
        if path.is_file() and os.access(path, os.X_OK) and "CMakeFiles" not in path.parts
    )
    commands = [[str(path)] for path in programs]
    commands += [[sys.executable, str(path)] for path in sorted((ROOT / "bench").glob("[!_]*.py"))]
    status = 0
    for command in commands:
        print(f"==== {Path(command[-1]).name}", flush=True)
        status |= subprocess.run(command, cwd=ROOT).returncode != 0
    return int(status)


if __name__ == "__main__":
    raise SystemExit(main())
