"""Runs the linters that need no network: ruff, mypy, clang-format and the layering test.

A finding of ruff, mypy or the layering test fails the run. Formatting differences are counted, and fail it
only with --format (or when TN_LINT_FORMAT=1).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
C_FOLDERS = ("include", "src", "tests/c", "bench")
C_SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".cc"}  # .inc files are aligned tables, formatted by hand


def c_files() -> list[str]:
    found = (path for folder in C_FOLDERS for path in (ROOT / folder).rglob("*"))
    return sorted(str(path.relative_to(ROOT)) for path in found if path.suffix in C_SUFFIXES)


def run(name: str, command: list[str]) -> bool:
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    right = answer.returncode == 0
    print(f"{name}: {'clean' if right else 'findings'}", flush=True)
    if not right:
        print((answer.stdout + answer.stderr).rstrip(), flush=True)
    return right


def unformatted(python: list[str]) -> list[str]:
    """Files that clang-format, or ruff's rules on long lines and imports, would change."""
    answer = subprocess.run(
        [str(BIN / "clang-format"), "--dry-run", *c_files()], cwd=ROOT, capture_output=True, text=True
    )
    found = {line.split(":", 1)[0] for line in answer.stderr.splitlines() if ": warning:" in line}
    command = [str(BIN / "ruff"), "check", "--no-cache", "--select", "E501,I", "--output-format", "concise", *python]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return sorted(found | {line.split(":", 1)[0] for line in answer.stdout.splitlines() if line.count(":") >= 3})


def main() -> int:
    python = [folder for folder in ("python", "tests", "tools", "bench") if any((ROOT / folder).rglob("*.py"))]
    right = run("ruff", [str(BIN / "ruff"), "check", "--no-cache", "--quiet", *python])
    right &= run("mypy", [sys.executable, "-m", "mypy"])
    right &= run("layering", [sys.executable, "-m", "pytest", "-q", "tests/layering_test.py"])
    files = unformatted(python)
    strict = "--format" in sys.argv or os.environ.get("TN_LINT_FORMAT") == "1"
    print(f"formatting: {len(files)} files differ" + (f": {' '.join(files)}" if files and strict else ""))
    return 0 if right and not (strict and files) else 1


if __name__ == "__main__":
    raise SystemExit(main())
