"""Builds the C core and its tests with sanitizers and runs them: all under ASan and UBSan, threaded ones under TSan.

Uses build folders of its own (build-asan, build-tsan); the bridge is left out, for PyTorch is not instrumented.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import run_tests

# Tests whose source starts threads or runs on the pool; the others have nothing for TSan to see.
THREADED_WORDS = ("tn_pool", "pthread_", "thrd_", "tn_stream", "tn_event", "stdatomic")


TEST_SECONDS = 900  # instrumented code is up to twenty times slower


def threaded(name: str) -> bool:
    text = (ROOT / "tests/c" / f"{name}.c").read_text()
    return any(word in text for word in THREADED_WORDS)


def check(folder: Path, sanitizers: str, jobs: int, wanted: list[str]) -> tuple[int, int]:
    start = time.monotonic()
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DTN_BRIDGE=OFF"]
    configure += [f"-DTN_SANITIZE={sanitizers}", f"-DPython_EXECUTABLE={sys.executable}"]
    for command in (configure, ["ninja", "-C", str(folder), "-j", str(jobs), *wanted]):
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode != 0:
            print((answer.stdout + answer.stderr)[-8000:])
            return 0, 1
    built = time.monotonic()
    tests = [test for test in run_tests.c_tests(folder) if test[0] in wanted]
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        counts = list(pool.map(lambda test: run_tests.run_c_test(*test, seconds=TEST_SECONDS), tests))
    passed, failed = sum(count[0] for count in counts), sum(count[1] for count in counts)
    times = f"{built - start:.0f} s to build, {time.monotonic() - built:.0f} s to run"
    print(f"{sanitizers}: {passed} right, {failed} wrong in {len(tests)} files, {times}", flush=True)
    return passed, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    names = [path.stem for path in (ROOT / "tests/c").glob("*_test.c")]
    first = check(ROOT / "build-asan", "address,undefined", options.jobs, names)
    second = check(ROOT / "build-tsan", "thread", options.jobs, [name for name in names if threaded(name)])
    passed, failed = first[0] + second[0], first[1] + second[1]
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
