"""Runs every C test of the build folder and every Python test, and closes with "N passed, N failed".

python tools/run_tests.py --build build [--only c|python] [words that pytest takes]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
C_TEST_SECONDS = 120  # a C test file takes seconds; a hang must not hold the run


def c_tests(build: Path) -> list[tuple[str, list[str]]]:
    """Names and command lines of the tests CTest knows."""
    answer = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, text=True)
    if answer.returncode != 0:
        raise SystemExit(f"ctest cannot list the tests of {build}:\n{answer.stderr}")
    return [(test["name"], test.get("command", [])) for test in json.loads(answer.stdout)["tests"]]


def run_c_test(name: str, command: list[str], seconds: float = C_TEST_SECONDS) -> tuple[int, int]:
    """Runs one test executable; its closing line gives the counts, a crash or a missing line is one failure."""
    if not command:
        print(f"{name}: the executable was not built", flush=True)
        return 0, 1
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=seconds, errors="replace")
        output, code = run.stdout + run.stderr, run.returncode
    except subprocess.TimeoutExpired:
        output, code = f"no end after {seconds} s", 1
    except OSError as error:
        output, code = str(error), 1
    counts = re.findall(r"^(\d+) passed, (\d+) failed", output, re.MULTILINE)
    passed, failed = (int(counts[-1][0]), int(counts[-1][1])) if counts else (0, 0)
    if code != 0 and failed == 0:
        failed = 1
    elif not counts:
        passed = 1
    if failed:
        print(f"---- {name}: exit status {code}\n{output.rstrip()}", flush=True)
    return passed, failed


def run_c(build: Path) -> tuple[int, int]:
    tests = c_tests(build)
    with ThreadPoolExecutor(max_workers=2) as pool:
        counts = list(pool.map(lambda test: run_c_test(*test), tests))
    passed, failed = sum(c[0] for c in counts), sum(c[1] for c in counts)
    print(f"C: {passed} checks right, {failed} wrong, in {len(tests)} files", flush=True)
    return passed, failed


def run_python(arguments: list[str]) -> tuple[int, int, int]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}", "-n", "2", "--dist", "worksteal"]
        # Two processes on two cores: one thread each.
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        run = subprocess.run(command + arguments, cwd=ROOT, env=environment)
        if not report.exists():
            return 0, 1, 0
        suite = xml.parse(report).getroot().find("testsuite")
        assert suite is not None
        failed = int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
        skipped = int(suite.get("skipped", "0"))
        passed = int(suite.get("tests", "0")) - failed - skipped
        if run.returncode not in (0, 5) and failed == 0:
            failed = 1
        return passed, failed, skipped


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--only", choices=["c", "python"])
    options, arguments = parser.parse_known_args()
    start = time.monotonic()
    passed = failed = skipped = 0
    if options.only != "python":
        passed, failed = run_c(options.build)
    if options.only != "c":
        p, f, skipped = run_python(arguments)
        passed, failed = passed + p, failed + f
    print(f"{time.monotonic() - start:.0f} s in all")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""), flush=True)
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    raise SystemExit(main())
