"""Every room includes only what stands left of it (docs/contributing.md); this test greps the includes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# room: the rooms under src/ that it may include, beside itself and the public headers below.
ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "ir": {"base"},
    "aten": {"base", "ir"},
    "compile": {"base", "ir"},
    "codegen": {"base", "ir"},
    "kernels": {"base"},
    "runtime": {"base", "ir"},
    "driver": {"base", "ir", "compile", "codegen", "kernels", "runtime"},
    "driver/sim": {"base", "ir", "compile", "codegen", "kernels", "runtime", "driver"},
    "driver/null": {"base", "ir", "compile", "codegen", "kernels", "runtime", "driver"},
    "bridge": set(),
    "tool": {"base", "ir", "aten", "compile", "codegen", "kernels", "runtime", "driver", "driver/sim"},
}

# Headers that several rooms share although they stand in one: numbers and orders without a room's objects.
SHARED = {"ir/float_bits.h", "ir/reduce_order.h"}
# The registry is the one place that knows every driver.
EXCEPTIONS = {("driver/driver.c", "driver/null/null.h"), ("driver/driver.c", "driver/sim/sim.h")}

# Public headers that a room must not know, although they are public. tn/graph.h gives codegen and kernels the numbers
# of operators and the rank limit.
FORBIDDEN_PUBLIC: dict[str, set[str]] = {
    "base": {"graph.h", "kernel_program.h", "device.h", "driver.h", "aten.h", "ops.inc"},
    "ir": {"device.h", "driver.h", "aten.h"},
    "aten": {"device.h", "driver.h"},
    "compile": {"aten.h", "device.h", "driver.h"},
    "codegen": {"aten.h", "device.h", "driver.h"},
    "kernels": {"aten.h", "device.h", "driver.h"},
    "runtime": {"aten.h"},
    "driver": {"aten.h"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)
TORCH = re.compile(r"^(torch|ATen|c10|caffe2|pybind11)/|^Python\.h$")
LLVM = re.compile(r"^(llvm|llvm-c)/")


def room_of(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").parts
    nested = "/".join(parts[:2])
    return nested if nested in ALLOWED else parts[0]


def sources() -> list[Path]:
    suffixes = {".c", ".h", ".cpp", ".hpp", ".cc", ".inc"}
    return sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in suffixes and p.parent != ROOT / "src")


def target_room(name: str) -> str | None:
    """The room an include names, or None for a header that is not under src/."""
    parts = name.split("/")
    for room in ("/".join(parts[:2]), parts[0]):
        if room in ALLOWED and len(parts) > room.count("/") + 1:
            return room
    return None


def faults(path: Path) -> list[str]:
    room = room_of(path)
    found = []
    for match in INCLUDE.finditer(path.read_text(errors="replace")):
        name = match.group(2).removeprefix("src/")
        where = f"{path.relative_to(ROOT)} includes {name}"
        if TORCH.match(name) and room != "bridge":
            found.append(f"{where}: only src/bridge knows torch")
        elif LLVM.match(name) and room != "codegen":
            found.append(f"{where}: only src/codegen knows LLVM")
        elif name.startswith("tn/"):
            if name[3:] in FORBIDDEN_PUBLIC.get(room.split("/")[0], set()):
                found.append(f"{where}: {room} must not know it")
        else:
            other = target_room(name)
            if name in SHARED or (str(path.relative_to(ROOT / "src")), name) in EXCEPTIONS:
                continue
            if other and other != room and other not in ALLOWED.get(room, set()):
                found.append(f"{where}: {room} stands left of {other}, or beside it")
    return found


def test_each_room_includes_only_what_stands_left_of_it() -> None:
    found = [fault for path in sources() for fault in faults(path)]
    assert not found, "\n".join(found)


def test_public_headers_include_only_public_and_system_headers() -> None:
    found = []
    for path in sorted((ROOT / "include").rglob("*.h")):
        for match in INCLUDE.finditer(path.read_text()):
            if match.group(1) == '"' and not match.group(2).startswith("tn/"):
                found.append(f"{path.relative_to(ROOT)} includes {match.group(2)}")
    assert not found, "\n".join(found)


def test_every_room_is_known_here() -> None:
    rooms = {room_of(path) for path in sources()}
    assert rooms <= set(ALLOWED), f"add {rooms - set(ALLOWED)} to ALLOWED"


@pytest.mark.parametrize(
    ("room", "include"),
    [("base", "ir/x.h"), ("ir", "aten/lowering.h"), ("compile", "torch/library.h"), ("kernels", "llvm-c/Core.h"),
     ("codegen", "tn/device.h"), ("driver/sim", "driver/null/null.h")],
)  # fmt: skip
def test_a_wrong_include_is_found(room: str, include: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "src" / room
    folder.mkdir(parents=True)
    path = folder / "wrong.c"
    path.write_text(f'#include "{include}"\n')
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert faults(path)
