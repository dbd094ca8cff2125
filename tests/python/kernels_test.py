"""What must hold for kernels: generated once ever, for every size, and the same bits from wherever they come."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ir.tool import call, find_tool
from tests.python.small_models import MODELS, Trainer
from torch_neuronx.demo import counters

ROOT = Path(__file__).resolve().parent.parent.parent


def train(folder: Path, threads: int) -> dict:
    """A process of its own that trains all small models with |folder| as its disk cache."""
    environment = {**os.environ, "TORCH_NEURONX_NEFF_CACHE_DIR": str(folder), "PYTHONWARNINGS": "ignore"}
    for name in ("TORCH_NEURONX_DISABLE_NEFF_CACHE", "TORCH_NEURONX_NEFF_DISABLE_CACHE"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "tests.python.small_models", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict, Path]:
    """The same training twice, by one process that starts with no kernel and by one that finds them on disk."""
    folder = tmp_path_factory.mktemp("kernels")
    return train(folder, 1), train(folder, 2), folder


def test_a_second_process_generates_no_kernel(runs: tuple[dict, dict, Path]) -> None:
    first, second, _ = runs
    assert first["kernels"]["generated"] > 0 and first["kernels"]["disk"] == 0
    assert second["kernels"]["generated"] == 0
    assert second["kernels"]["disk"] == first["kernels"]["generated"]


@pytest.mark.skipif(find_tool() is None, reason="no tool: build it, or set TN_TOOL")
def test_the_tool_lists_the_kernels_on_disk(runs: tuple[dict, dict, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    first, _, folder = runs
    monkeypatch.setenv("TORCH_NEURONX_NEFF_CACHE_DIR", str(folder))
    assert call(["cache", "ls"]).stdout.splitlines()[-1].startswith(f"{first['kernels']['generated']} kernels, ")
    assert call(["cache", "verify"]).returncode == 0


def test_generated_on_one_thread_or_loaded_on_two_the_bits_are_the_same(runs: tuple[dict, dict, Path]) -> None:
    first, second, _ = runs
    assert first["digests"] == second["digests"]


# Batch and length: smaller, larger, odd, square, coprime. An extent of 1 broadcasts and is a class of its own, as for
# torch.compile.
SIZES = [(6, 12), (4, 12), (4, 18), (5, 7), (7, 7), (2, 31), (31, 9), (8, 8), (9, 10), (3, 4)]


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("dynamic", ["eager", False, None, True])
def test_a_new_size_generates_no_kernel(model: str, dynamic: bool | None | str) -> None:
    trainer = Trainer(model, dynamic)
    sizes = SIZES if model != "lstm" or dynamic == "eager" else SIZES[:5]  # an LSTM is unrolled into a graph per length
    trainer.step(*sizes[0])
    for count, length in sizes[1:]:
        before = counters.kernels()
        trainer.step(count, length)
        found = counters.kernels().since(before)
        assert (found.generated, found.disk) == (0, 0), (count, length)
