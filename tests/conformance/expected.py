"""The list of expected failures: one line per case, `operator dtype check  reason`."""

from __future__ import annotations

from pathlib import Path

from . import cases

PATH = Path(__file__).resolve().parent / "expected_failures.txt"
HEADER = """\
# Cases that are known to fail: operator, dtype, check, reason. An entry that passes fails the test run, so take it out
# with the change that mends it. `python -m tests.conformance.meter --update` rewrites the list from what fails now.
"""


def read() -> dict[cases.Case, str]:
    family = {name: key for key, names in cases.families().items() for name in names}
    found = {}
    for line in PATH.read_text().splitlines() if PATH.exists() else []:
        if line.strip() and not line.startswith("#"):
            operator, dtype, check, *reason = line.split(None, 3)
            found[cases.Case(family.get(operator, "?"), operator, dtype, check)] = "".join(reason)
    return found


def write(failures: dict[cases.Case, str]) -> None:
    order = {case: place for place, case in enumerate(cases.cases())}
    lines = [
        f"{case.operator} {case.dtype} {case.check}  {' '.join(failures[case].split())[:160]}"
        for case in sorted(failures, key=order.__getitem__)
    ]
    PATH.write_text(HEADER + "\n".join(lines) + ("\n" if lines else ""))
