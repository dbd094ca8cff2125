"""Writes the tables of docs/ir.md and docs/operators.md from the tables that the code is made of.

python tools/generated_docs.py [--check]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


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


def operator_rows() -> list[str]:
    """One row per family of the lowering table: its overloads, grouped by operator."""
    rows = []
    for include in re.findall(r'#include "(aten/(\w+)\.inc)"', (ROOT / "src" / "aten" / "families.inc").read_text()):
        names: dict[str, list[str]] = {}
        for full in re.findall(r'\bTN_ATEN\(\s*"([^"]+)"', (ROOT / "src" / include[0]).read_text()):
            name, _, overload = full.partition(".")
            names.setdefault(name, []).append(overload)
        texts = [
            f"`{name}`" if overloads == [""] else f"`{name}` ({', '.join(o or 'default' for o in overloads)})"
            for name, overloads in sorted(names.items())
        ]
        rows.append(f"| {include[1]} | {', '.join(texts)} |")
    return rows


def ir_document(old: str) -> str:
    ops = ["| group | op | text | operands → results | class (* cheap) |", "|---|---|---|---|---|"]
    composites = ["| composite | operands → results; attributes |", "|---|---|"]
    return fill(fill(old, "ops", ops, op_rows()), "composites", composites, composite_rows())


def operator_document(old: str) -> str:
    return fill(old, "operators", ["| family | operators (overloads) |", "|---|---|"], operator_rows())


DOCUMENTS = {"ir.md": ir_document, "operators.md": operator_document}


def main() -> int:
    """Rewrites the documents; with --check only tells whether one would change."""
    changes = 0
    for name, rewrite in DOCUMENTS.items():
        path = ROOT / "docs" / name
        old = path.read_text()
        new = rewrite(old)
        if new == old:
            continue
        changes += 1
        if "--check" in sys.argv:
            print(f"docs/{name} is out of date: run python tools/generated_docs.py")
        else:
            path.write_text(new)
    return int(changes > 0 and "--check" in sys.argv)


if __name__ == "__main__":
    raise SystemExit(main())
