"""Every row of src/base/options.inc that says HONOURED has a reader in the tree: the table tells no lies.

A reader is a use of TN_OPTION_<id>, or of the variable's name as a string, in the C, C++ or Python sources outside the
table's own files.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/base/options.inc"
OWN = {"options.inc", "options.c", "options.h"}
READ_BY_PYTORCH = {"TORCH_DEVICE_BACKEND_AUTOLOAD"}  # `import torch` asks before it looks for this package


def rows() -> list[tuple[str, str, str]]:
    """Identifier, variable and status of each row."""
    text = TABLE.read_text()
    return re.findall(r'^TN_OPTION\((\w+), "(\w+)", \w+, "[^"]*", (\w+),', text, re.MULTILINE)


def sources() -> str:
    paths = [path for folder in ("src", "include") for path in (ROOT / folder).rglob("*.[ch]*")]
    paths += list((ROOT / "python").rglob("*.py"))
    texts = (path.read_text() for path in paths if path.name not in OWN)
    return "\n".join(re.sub(r"//[^\n]*|^\s*#[^\n]*", "", text, flags=re.MULTILINE) for text in texts)


def complaints() -> list[str]:
    words = set(re.findall(r'TN_OPTION_\w+|"[A-Z][A-Z0-9_]+"', sources()))
    found = []
    for identifier, name, status in rows():
        is_read = f"TN_OPTION_{identifier}" in words or f'"{name}"' in words or name in READ_BY_PYTORCH
        if status == "HONOURED" and not is_read:
            found.append(f"{name} is marked HONOURED, but nothing reads it")
        if status == "ACCEPTED" and is_read:
            found.append(f"{name} is marked ACCEPTED, but something reads it")
    return found


def main() -> int:
    found = complaints()
    print("\n".join(found))
    return 1 if found or not rows() else 0


if __name__ == "__main__":
    raise SystemExit(main())
