"""English text that every Python has: nothing is downloaded."""

from __future__ import annotations

import importlib.util
from pathlib import Path

LEAST_CHARACTERS = 100_000


def _language_reference() -> str:
    """The topics of Python's own `help()`: the language reference, about 700 kB."""
    from pydoc_data import topics

    return "\n".join(topics.topics[name] for name in sorted(topics.topics))


def _package_texts() -> str:
    """Descriptions and licences that come with the installed packages, for a Python without pydoc_data."""
    parts = []
    for package, patterns in (
        ("sklearn", ("datasets/descr/*.rst",)),
        ("torch", ("_torch_docs.py", "_tensor_docs.py")),
    ):
        spec = importlib.util.find_spec(package)
        if spec and spec.origin:
            folder = Path(spec.origin).parent
            for pattern in patterns:
                parts += [path.read_text(errors="replace") for path in sorted(folder.glob(pattern))]
    return "\n".join(parts)


def english_text(limit: int = 400_000) -> tuple[str, str]:
    """Returns at most `limit` characters of printable ASCII, and the name of their source.

    Raises RuntimeError if this Python and its packages hold less than 100,000 characters of text.
    """
    for source, read in (
        ("Python's language reference", _language_reference),
        ("package texts", _package_texts),
    ):
        try:
            text = read()
        except ImportError:
            continue
        text = "".join(c for c in text if c == "\n" or " " <= c <= "~")
        if len(text) >= LEAST_CHARACTERS:
            return text[:limit], source
    raise RuntimeError("no English text of 100,000 characters found: install python3's standard library in full")


class Characters:
    """A vocabulary of the characters of a text."""

    def __init__(self, text: str) -> None:
        self.symbols = sorted(set(text))
        self.number = {symbol: index for index, symbol in enumerate(self.symbols)}

    def encode(self, text: str) -> list[int]:
        return [self.number[symbol] for symbol in text]

    def decode(self, numbers: list[int]) -> str:
        return "".join(self.symbols[number] for number in numbers)
