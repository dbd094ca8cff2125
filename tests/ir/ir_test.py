"""Runs every tests/ir/**/*.mlir file as its comments say; README.md shows the form.

python -m tests.ir.ir_test FILE...   writes what comes out now into the files, for you to read before you keep it
"""

from __future__ import annotations

import re
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


OPT_CASES = [file for file in sorted((FOLDER / "opt").glob("*.mlir")) if not read_case(file)[2]]
PASSES = ["simplify", "fuse", "plan"]


@pytest.mark.parametrize("file", OPT_CASES, ids=lambda file: file.stem)
def test_simplified_text_is_a_fixed_point(file: Path, tmp_path: Path) -> None:
    """What the pass prints is read again as the same graph, in which there is nothing left to simplify."""
    once = call(["opt", "--pass=simplify", str(file)])
    (tmp_path / "once.mlir").write_text(once.stdout)
    for again in (["opt"], ["opt", "--pass=simplify"]):
        assert call([*again, str(tmp_path / "once.mlir")]).stdout == once.stdout


def test_all_is_every_pass_in_order(tmp_path: Path) -> None:
    for file in OPT_CASES:
        everything = call(["opt", "--pass=all", str(file)]).stdout
        parts = {name: call(["opt", "--pass", ",".join(["simplify", name]), str(file)]).stdout for name in PASSES[1:]}
        assert everything == parts["fuse"] + parts["plan"][parts["plan"].index("// after plan") :]


def test_tn_debug_prints_the_passes_of_a_running_program(monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(FOLDER / "opt" / "plan_product.mlir")
    monkeypatch.setenv("TN_DEBUG", "sfp")
    monkeypatch.setenv("TN_VERIFY", "1")
    done = call(["run", file, *["--input", "ones"] * 3])
    assert done.returncode == 0 and done.stderr == call(["opt", "--pass=all", file]).stdout


@pytest.mark.parametrize("names", ["fold", "simplify,fold", "", "simplify,", "FUSE", "fuse plan"])
def test_an_unknown_pass_is_wrong_usage_and_lists_the_known_ones(names: str) -> None:
    done = call(["opt", f"--pass={names}", str(OPT_CASES[0])])
    assert done.returncode == 2 and done.stdout == ""
    assert all(name in done.stderr for name in [*PASSES, "all"])


@pytest.mark.parametrize("name", ["fuse_product", "simplify_empty_reduction", "plan_in_place", "plan_long_reduction"])
def test_a_file_cut_anywhere_gives_a_place(name: str, tmp_path: Path) -> None:
    """Each cut is either a whole file or an error with file, line and column, and exit status 1."""
    lines = (FOLDER / "opt" / f"{name}.mlir").read_text().splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith("//"))
    file = tmp_path / "cut.mlir"
    for length in range(0, len(text) - 2, 17):
        file.write_text(text[:length])
        done = call(["opt", "--pass=all", str(file)])
        assert done.returncode == 1 and done.stdout == "", text[:length]
        assert re.search(r"^tn opt: INVALID_ARGUMENT: .*cut\.mlir:\d+:\d+: .", done.stderr), done.stderr


@pytest.mark.parametrize("name", ["fuse_product", "simplify_composite", "simplify_convert", "plan_long_reduction"])
@pytest.mark.parametrize("other", ["tensor<3xf32>", "tensor<2x0xi64>", "tensor<8x4xf64>"])
def test_a_wrong_type_anywhere_is_accepted_whole_or_has_a_place(name: str, other: str, tmp_path: Path) -> None:
    text = (FOLDER / "opt" / f"{name}.mlir").read_text()
    text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("//"))
    file = tmp_path / "wrong.mlir"
    for match in re.finditer(r"tensor<[^>]*>", text):
        file.write_text(text[: match.start()] + other + text[match.end() :])
        done = call(["opt", "--pass=all", str(file)])
        place = re.search(r"^tn opt: INVALID_ARGUMENT: .*wrong\.mlir:\d+:\d+: .", done.stderr)
        assert (done.returncode == 0 and not done.stderr) or (done.returncode == 1 and place), done.stderr


@pytest.mark.parametrize("command", ["", "env", "run", "opt", "cache"])
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_goes_to_standard_output(command: str, flag: str) -> None:
    done = call([command, flag] if command else [flag])
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith(f"usage: tn {command or 'COMMAND'}")
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize("command", ["env", "run", "opt", "cache"])
def test_wrong_usage_is_told_on_standard_error(command: str) -> None:
    done = call([command, "--no-such-flag"])
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith(f"usage: tn {command}")


def test_documentation_is_up_to_date() -> None:
    tool = FOLDER.parent.parent / "tools" / "generated_docs.py"
    subprocess.run([sys.executable, str(tool), "--check"], check=True)


def update(file: Path) -> None:
    """Replaces the lines OUT of a case by what its command prints."""
    command = read_case(file)[0]
    done = call([command[0], str(file), *command[1:]])
    assert done.returncode == 0, done.stderr
    lines = [line for line in file.read_text().splitlines() if not line.startswith("// OUT:")]
    run = next(i for i, line in enumerate(lines) if line.startswith("// RUN: ")) + 1
    lines[run:run] = [f"// OUT: {line}" for line in done.stdout.splitlines()]
    file.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        update(Path(name))
