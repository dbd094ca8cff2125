"""Runs every tests/ir/**/*.mlir file as its comments say; README.md shows the form."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ir.tool import call, find_tool

pytestmark = pytest.mark.skipif(find_tool() is None, reason="no tool: build it, or set TN_TOOL")

FOLDER = Path(__file__).resolve().parent


def read_case(file: Path) -> tuple[list[str], str, list[str]]:
    """The RUN command, the expected output and the expected parts of the error text."""
    command, output, errors = "", "", []
    for line in file.read_text().splitlines():
        if line.startswith("// RUN: "):
            command = line[8:]
        elif line.startswith("// OUT: "):
            output += line[8:] + "\n"
        elif line.startswith("// ERR: "):
            errors.append(line[8:])
    return shlex.split(command), output, errors


def cases() -> list:
    """Every file once per engine: `run` without an engine goes through the interpreter and the software device."""
    found = []
    for file in sorted(FOLDER.rglob("*.mlir")):
        command = read_case(file)[0]
        engines = ["interp", "sim"] if command[:1] == ["run"] and "--engine" not in command else [""]
        found += [pytest.param(file, engine, id=f"{file.stem} {engine}".strip()) for engine in engines]
    return found


@pytest.mark.parametrize(("file", "engine"), cases())
def test_file(file: Path, engine: str) -> None:
    command, output, errors = read_case(file)
    assert command, f"{file}: no line '// RUN: '"
    done = call([command[0], str(file), *command[1:], *(["--engine", engine] if engine else [])])
    if errors:
        assert done.returncode == 1, done.stdout
        for part in errors:
            assert part in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert done.stdout == output


def test_documentation_is_up_to_date() -> None:
    tool = FOLDER.parent.parent / "tools" / "ir_docs.py"
    subprocess.run([sys.executable, str(tool), "--check"], check=True)
