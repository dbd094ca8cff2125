"""Writes the tables of docs/ir.md from include/tn/ops.inc and src/ir/composites.inc.

python tools/ir_docs.py [--check]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "ir.md"


def op_rows() -> list[str]:
    """One table row per op, in the order of ops.inc; its comment lines are the groups."""
    rows, group = [], ""
    for line in (ROOT / "include" / "tn" / "ops.inc").read_text().splitlines():
        if line.startswith("// ") and re.fullmatch(r"// [a-z, ]+", line):
            group = line[3:]
        elif match := re.match(r'TN_OP\((\w+), "([^"]+)", (-?\d+), (-?\d+), (\w+), (\d)\)', line):
            name, text, operands, results, fusion, cheap = match.groups()
            counts = ["any" if n == "-1" else n for n in (operands, results)]
            rows.append(
                f"| {group} | {name} | `{text}` | {counts[0]} → {counts[1]} | {fusion.lower()}{' *' if cheap == '1' else ''} |"
            )
            group = ""
    return rows


def composite_rows() -> list[str]:
    """One row per composite: its name and the comment behind it."""
    text = (ROOT / "src" / "ir" / "composites.inc").read_text()
    return [
        f"| `tn.{name}` | {comment} |"
        for name, comment in re.findall(r"TN_COMPOSITE\((\w+), \d+, \d+\) +// (.*)", text)
    ]


def fill(text: str, name: str, header: list[str], rows: list[str]) -> str:
    """Replaces what stands between the markers of a table."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end {name} -->"
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    return before + begin + "\n".join([*header, *rows]) + "\n" + end + after


def main() -> int:
    """Rewrites the document; with --check only tells whether it would change."""
    old = DOCUMENT.read_text()
    new = fill(
        old,
        "ops",
        ["| group | op | text | operands → results | class (* cheap) |", "|---|---|---|---|---|"],
        op_rows(),
    )
    new = fill(new, "composites", ["| composite | operands → results; attributes |", "|---|---|"], composite_rows())
    if "--check" in sys.argv:
        if new != old:
            print("docs/ir.md is out of date: run python tools/ir_docs.py")
        return int(new != old)
    DOCUMENT.write_text(new)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
