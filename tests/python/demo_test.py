"""The demonstration's own parts: verdicts, the table, the JSON, and a whole small run."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torch_neuronx.demo import report, screen, text
from torch_neuronx.demo.runner import Result
from torch_neuronx.demo.workloads import Size


def result(variant: str, losses: list[float], **more: object) -> Result:
    device = "neuron" if variant.startswith("neuron") else "cpu"
    made = Result("gpt", variant, device, None, len(losses), "done", losses=losses, seconds=[1.0] * 3 + [0.5] * 5)
    for name, value in more.items():
        setattr(made, name, value)
    return made


CPU = result("cpu eager", [4.0, 2.0], tokens=[1, 2], accuracy=0.98)


@pytest.mark.parametrize(
    ("losses", "more", "size", "right"),
    [
        ([4.0, 2.0], {"tokens": [1, 2]}, Size(2), True),
        ([4.0, 2.001], {"tokens": [1, 2]}, Size(2), True),
        ([4.0, 2.01], {"tokens": [1, 2]}, Size(2), False),
        ([4.0, math.nan], {"tokens": [1, 2]}, Size(2), False),
        ([4.0, 2.0], {"tokens": [1, 3]}, Size(2), False),
        ([4.0, 2.0], {"tokens": [1, 2], "fallback": {"aten::x": "why"}}, Size(2), False),
        ([4.0, 2.0], {"tokens": [1, 2], "accuracy": 0.96}, Size(2, 0.97), False),
        ([4.0, 2.0], {"tokens": [1, 2], "state": "failed", "error": "E: x"}, Size(2), False),
        ([], {"state": "interrupted"}, Size(2), False),
    ],
)
def test_verdict(losses: list[float], more: dict, size: Size, right: bool) -> None:
    found = {"cpu eager": CPU, "neuron eager": result("neuron eager", losses, **more)}
    verdict, sentence = report.verdict(size, found)
    assert verdict is right, sentence
    assert sentence.startswith("Right" if right else "Not judged" if not losses else "NOT RIGHT")


def test_rows_fit_the_header_and_the_report_is_json(tmp_path: Path) -> None:
    neuron = result("neuron eager", [4.0, 2.0], on_device=["aten::mm"] * 99, peak_bytes=2**33)
    found = {"cpu eager": CPU, "neuron eager": neuron}
    rows = [screen.line(screen.cells(each, found)) for each in found.values()]
    assert {len(row) for row in rows} == {len(screen.HEADER)}
    report.write(tmp_path / "r.json", report.as_dict(list(found.values()), {"gpt": (True, "Right.")}, {"threads": 2}))
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["runs"][1]["loss_difference"] == 0 and content["verdicts"]["gpt"]["right"]


def test_text_is_long_and_printable() -> None:
    found, source = text.english_text()
    characters = text.Characters(found)
    assert len(found) >= text.LEAST_CHARACTERS and source
    assert len(characters.symbols) <= 96
    assert characters.decode(characters.encode(found[:100])) == found[:100]


def _start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "torch_neuronx.demo",
        "--report",
        str(folder / "report.json"),
        *arguments,
    ]
    command += ["--device", "cpu", "--backend", "aot_eager", "--threads", "1"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env=dict(os.environ))


def test_a_small_run_compares_equal_devices(tmp_path: Path) -> None:
    process = _start(tmp_path, "--quick", "--only", "lstm")
    output, _ = process.communicate(timeout=240)
    content = json.loads((tmp_path / "report.json").read_text())
    judged = [run for run in content["runs"] if run["variant"] in ("neuron eager", "neuron compiled")]
    assert [run["loss_difference"] for run in judged] == [0, 0], output
    assert "same losses" in output or "NOT RIGHT" in output


def test_interrupt_ends_with_130_and_a_report(tmp_path: Path) -> None:
    process = _start(tmp_path, "--only", "gpt", "--no-inductor")
    assert process.stdout
    for line in process.stdout:
        if line.startswith("1/1 gpt"):
            break
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert json.loads((tmp_path / "report.json").read_text())["facts"]["interrupted"]
