"""Runs the linters that need no network: ruff, mypy, clang-format, the options check and the layering test.

A finding of any of them fails the run. `tools/lint.py --fix` formats the files in place.
"""

from __future__ import annotations

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


def main() -> int:
    python = [folder for folder in ("python", "tests", "tools", "bench") if any((ROOT / folder).rglob("*.py"))]
    ruff, clang_format = str(BIN / "ruff"), str(BIN / "clang-format")
    if "--fix" in sys.argv:
        run("clang-format", [clang_format, "-i", *c_files()])
        run("ruff format", [ruff, "format", "--no-cache", "--quiet", *python])
    right = run("ruff", [ruff, "check", "--no-cache", "--quiet", *python])
    right &= run("ruff format", [ruff, "format", "--no-cache", "--check", *python])
    right &= run("clang-format", [clang_format, "--dry-run", "-Werror", *c_files()])
    right &= run("mypy", [sys.executable, "-m", "mypy"])
    right &= run("options", [sys.executable, "tools/options_check.py"])
    right &= run("layering", [sys.executable, "-m", "pytest", "-q", "tests/layering_test.py"])
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
