"""Prints, per family, how many cases pass and how many stay on the device.

    python -m tests.conformance.meter [--family unary] [--operator add] [--jobs 2] [--update] [--failures]

Each worker is a process of its own that reports case after case; a crash is noted as that case's failure and a new
worker goes on behind it. `--update` rewrites expected_failures.txt.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from . import cases, checks, expected

ROOT = Path(__file__).resolve().parents[2]


class Answer(NamedTuple):
    kind: str  # pass, fallback, fail, crash
    text: str
    seconds: float
    left: list[str]  # operators that left the device


def work(indices: list[int]) -> None:
    """Runs the cases and prints one JSON line before and one after each."""
    warnings.simplefilter("ignore")
    everything = cases.cases()
    for index in indices:
        print(json.dumps({"start": index}), flush=True)
        start = time.monotonic()
        kind, text = "pass", ""
        try:
            checks.run(everything[index])
        except checks.Fallback as error:
            kind, text = "fallback", str(error)
        except Exception as error:
            first = (str(error).strip().splitlines() or [""])[0]
            is_difference = isinstance(error, checks.Difference)
            kind, text = "fail", first if is_difference else f"{type(error).__name__}: {first}"
        answer = {
            "end": index,
            "kind": kind,
            "text": text,
            "s": time.monotonic() - start,
            "left": list(checks.left),
        }
        print(json.dumps(answer), flush=True)


def supervise(indices: list[int]) -> dict[int, Answer]:
    """Runs a worker over the indices, and a new one after each crash."""
    found: dict[int, Answer] = {}
    left = list(indices)
    while left:
        command = [sys.executable, "-m", "tests.conformance.meter", "--work", "-"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(left))
        process.stdin.close()
        current = None
        for line in process.stdout:
            if not line.startswith("{"):
                continue
            message = json.loads(line)
            if "start" in message:
                current = message["start"]
            else:
                found[message["end"]] = Answer(message["kind"], message["text"], message["s"], message["left"])
                current = None
        code = process.wait()
        if current is None and code != 0 and not any(index in found for index in left):
            raise SystemExit(
                f"a worker ends with status {code} before its first case: run {' '.join(command[1:3])} --work"
            )
        if current is not None:
            found[current] = Answer("crash", f"the process ends with status {code}", 0.0, [])
        left = [index for index in left if index not in found]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--family", default="")
    parser.add_argument("--operator", default="", help="one, or several with commas between")
    parser.add_argument("--check", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--failures", action="store_true", help="list what does not pass")
    parser.add_argument("--fallback", action="store_true", help="list the operators that left the device most often")
    parser.add_argument("--slow", action="store_true", help="list the slowest cases")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(json.load(sys.stdin))
        return 0

    everything = cases.cases()
    wanted = [
        index
        for index, case in enumerate(everything)
        if options.family in ("", case.family) and (not options.operator or case.operator in options.operator.split(","))
        and options.check in ("", case.check)
    ]  # fmt: skip
    # Dealt out in turn, so that the workers are equally busy.
    chunks = [wanted[start :: options.jobs] for start in range(options.jobs)]
    results: dict[int, Answer] = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        for part in pool.map(supervise, [chunk for chunk in chunks if chunk]):
            results.update(part)

    print(
        f"{'family':<12} {'cases':>6} {'pass':>6} {'native':>7} {'fallback':>9} {'wrong':>6} {'crash':>6} {'seconds':>8}"
    )
    for family in [*cases.families(), "all"]:
        chosen = [r for i, r in results.items() if family in ("all", everything[i].family)]
        if chosen:
            kinds = Counter(answer.kind for answer in chosen)
            native = sum(not answer.left and answer.kind != "crash" for answer in chosen)
            print(
                f"{family:<12} {len(chosen):>6} {_percent(kinds['pass'], len(chosen)):>6} "
                f"{_percent(native, len(chosen)):>7} {kinds['fallback']:>9} {kinds['fail']:>6} "
                f"{kinds['crash']:>6} {sum(answer.seconds for answer in chosen):>8.1f}"
            )
    failures = {everything[i]: answer.text for i, answer in results.items() if answer.kind != "pass"}
    if options.failures:
        for case, text in failures.items():
            print(f"{case}: {text}")
    if options.fallback:
        for name, count in Counter(name for answer in results.values() for name in answer.left).most_common():
            print(f"{count:6} cases: {name}")
    if options.slow:
        for i, answer in sorted(results.items(), key=lambda item: -item[1].seconds)[:30]:
            print(f"{answer.seconds:6.1f} s {everything[i]}")
    if options.update:
        ran = {everything[i] for i in results}
        kept = {case: reason for case, reason in expected.read().items() if case not in ran and case in set(everything)}
        expected.write({**kept, **failures})
        print(f"{expected.PATH.name}: {len(kept) + len(failures)} entries")
    return 0


def _percent(part: int, whole: int) -> str:
    return f"{100 * part // whole} %"


if __name__ == "__main__":
    raise SystemExit(main())
