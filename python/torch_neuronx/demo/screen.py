"""The live table: on a terminal the rows of the current model are redrawn in place, elsewhere they print
once when all is known."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time

from . import report
from .runner import Result

COLUMNS = (
    ("", 16), ("loss first > last", 17), ("accur.", 7), ("from CPU", 8), ("ops dev/cpu", 11), ("kernels g/d/m", 14),
    ("first", 8), ("step", 8), ("/ CPU", 6), ("/ Ind.", 6), ("peak", 8),
)  # fmt: skip
REDRAW_SECONDS = 0.1


def seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.1f} ms"


def size(value: int | None) -> str:
    if value is None:
        return "-"
    return f"{value / 2**20:.1f} MB" if value < 1000 * 2**20 else f"{value / 2**30:.1f} GB"


def count(value: int | None) -> str:
    if value is None:
        return "?"
    return str(value) if value < 10_000 else f"{value // 1000}k"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def cells(result: Result, found: dict[str, Result]) -> list[str]:
    """The texts of one row, in the order of COLUMNS."""
    if result.state == "waiting":
        return [result.variant, "waiting"] + [""] * (len(COLUMNS) - 2)
    cpu, inductor = found.get("cpu eager"), found.get("inductor")
    difference = report.curve_difference(result, cpu)
    on_neuron = result.device != "cpu"
    kernels = result.kernels
    return [
        result.variant,
        f"{result.losses[0]:.4f} > {result.losses[-1]:.4f}" if result.losses else "-",
        "-" if result.accuracy is None else f"{100 * result.accuracy:.1f} %",
        "-" if difference is None else "0" if difference == 0 else f"{difference:.1e}",
        f"{len(result.on_device)} / {len(result.fallback)}" if on_neuron else "-",
        f"{count(kernels.generated)}/{count(kernels.disk)}/{count(kernels.memory)}" if on_neuron else "-",
        seconds(result.first),
        seconds(result.steady),
        _ratio(report.ratio(result, cpu)),
        _ratio(report.ratio(result, inductor)),
        size(result.peak_bytes),
    ]


def line(texts: list[str]) -> str:
    first = f"{texts[0]:<{COLUMNS[0][1]}}"
    return "  " + first + " ".join(f"{text:>{width}}" for text, (_, width) in zip(texts[1:], COLUMNS[1:]))


HEADER = line([title for title, _ in COLUMNS])


class Screen:
    """Draws results as they come. `colour` and redrawing only on a terminal wide enough for a row."""

    def __init__(self) -> None:
        self.live = sys.stdout.isatty() and shutil.get_terminal_size().columns > len(HEADER)
        self.drawn = 0
        self.last = 0.0

    def title(self, number: int, total: int, name: str, description: str) -> None:
        print(f"\n{number}/{total} {name}: {description}")
        print(HEADER, flush=True)
        self.drawn = 0

    def update(self, results: dict[str, Result], force: bool = False) -> None:
        if not self.live:
            return
        now = time.monotonic()
        if not force and now - self.last < REDRAW_SECONDS:
            return
        self.last = now
        rows = [self._row(result, results) for result in results.values()]
        up = f"\x1b[{self.drawn}A" if self.drawn else ""
        sys.stdout.write(up + "".join(f"\x1b[2K{row}\n" for row in rows))
        sys.stdout.flush()
        self.drawn = len(rows)

    def _row(self, result: Result, results: dict[str, Result]) -> str:
        row = line(cells(result, results))
        if result.state != "running":
            return row
        done = len(result.seconds)
        width = 20
        filled = width * done // max(result.steps, 1)
        bar = "#" * filled + "-" * (width - filled)
        last = f"loss {result.losses[-1]:.4f}, {seconds(result.seconds[-1])} a step" if result.losses else "first step"
        return f"  {result.variant:<{COLUMNS[0][1]}}  [{bar}] {done}/{result.steps}  {last}"

    def finished(self, results: dict[str, Result]) -> None:
        """Nothing more will be measured of these runs: their rows print where nothing is redrawn."""
        if self.live:
            self.update(results, force=True)
            return
        for result in results.values():
            print(line(cells(result, results)), flush=True)

    def notes(self, results: dict[str, Result], right: bool, sentence: str) -> None:
        for result in results.values():
            if result.error:
                self._note(f"{result.variant}: {result.error}")
            for name, reason in result.fallback.items():
                self._note(f"{result.variant}: {name} ran on CPU{': ' + reason if reason else ''}")
            if result.graphs is not None and result.losses:
                graphs = result.graphs
                why = f" ({'; '.join(result.graph_breaks)})" if result.graph_breaks else ""
                self._note(
                    f"{result.variant}: graphs captured {graphs['captured']}, with forward and backward "
                    f"{graphs['forward and backward']}, graph breaks {graphs['breaks']}{why}"
                )
            if result.generate_seconds is not None and result.tokens is not None:
                self._note(
                    f"{result.variant}: generate() gave {len(result.tokens)} tokens in {seconds(result.generate_seconds)}"
                )
        short = [f"{r.variant} {len(r.losses)}" for r in results.values() if 0 < len(r.losses) < r.steps]
        if short:
            steps = next(iter(results.values())).steps
            self._note(f"fewer than {steps} steps, for the time was up: {', '.join(short)}")
        self._note(sentence, mark="=" if right else "!")

    def _note(self, text: str, mark: str = "-") -> None:
        width = min(max(shutil.get_terminal_size((len(HEADER), 24)).columns, 60), len(HEADER)) - 4
        wrapped = textwrap.wrap(text, width) or [""]
        print(f"  {mark} " + "\n    ".join(wrapped), flush=True)
