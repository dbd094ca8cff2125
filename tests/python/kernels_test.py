"""What must hold for kernels: generated once ever, for every size, and the same bits from wherever they come."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.ir.tool import call, find_tool
from tests.python.small_models import Trainer
from torch_neuronx import _C
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
    assert first["kernels"]["generated"] > 0
    assert first["kernels"]["disk"] == 0
    assert second["kernels"]["generated"] == 0
    assert second["kernels"]["disk"] == first["kernels"]["generated"]


@pytest.mark.skipif(find_tool() is None, reason="no tool: build it, or set TN_TOOL")
def test_the_tool_lists_the_kernels_on_disk(runs: tuple[dict, dict, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    first, _, folder = runs
    monkeypatch.setenv("TORCH_NEURONX_NEFF_CACHE_DIR", str(folder))
    monkeypatch.delenv("TORCH_NEURONX_DISABLE_NEFF_CACHE", raising=False)
    monkeypatch.delenv("TORCH_NEURONX_NEFF_DISABLE_CACHE", raising=False)
    assert call(["cache", "ls"]).stdout.splitlines()[-1].startswith(f"{first['kernels']['generated']} kernels, ")
    assert call(["cache", "verify"]).returncode == 0


def test_generated_on_one_thread_or_loaded_on_two_the_bits_are_the_same(runs: tuple[dict, dict, Path]) -> None:
    first, second, _ = runs
    assert first["digests"] == second["digests"]


# Batch and length, the first pair trains first: extents of 1, vectors and blocks more or less one, sums of more than
# 256 rows and of more than 16384 elements, batch equal to a width or to the length.
SEQUENCES = [
    *[(6, 12), (4, 12), (5, 7), (7, 7), (8, 8), (2, 31), (31, 9), (9, 10), (3, 4), (2, 2), (1, 12), (6, 1), (1, 1)],
    *[(1, 64), (64, 1), (33, 65), (2, 255), (1, 256), (3, 257), (257, 3), (256, 2), (32, 32)],
]
IMAGES = [(6, 12), (5, 7), (7, 7), (32, 8), (31, 9), (2, 33), (1, 12), (1, 8), (64, 8), (2, 2), (3, 3), (2, 65)]
SIZES = {
    ("gpt", "eager"): SEQUENCES,
    ("gpt", None): [(6, 12), (5, 7), (31, 9), (33, 65), (2, 257), (32, 32), (1, 12), (6, 1)],
    ("gpt", False): [(6, 12), (31, 9)],
    ("llama", "eager"): [pair for pair in SEQUENCES if pair[1] > 1],  # its loss is over the next character
    ("conv", "eager"): IMAGES,
    ("conv", True): IMAGES[:5],
    ("lstm", "eager"): SEQUENCES,
    ("lstm", False): [(6, 5), (5, 4)],  # unrolled: a graph for each length
}


@pytest.mark.parametrize(("model", "dynamic"), list(SIZES))
def test_a_new_size_generates_no_kernel(model: str, dynamic: bool | None | str) -> None:
    if model == "llama":
        pytest.importorskip("transformers", reason="the Llama of the demonstration is that of transformers")
    trainer = Trainer(model, dynamic)
    first, *others = SIZES[model, dynamic]
    trainer.step(*first)
    if dynamic is None:
        trainer.step(*others[0])  # the second size is what makes torch.compile take sizes as symbols
    needed = {}
    for count, length in others:
        before = counters.kernels()
        trainer.step(count, length)
        found = counters.kernels().since(before).generated
        if found:
            needed[count, length] = found
    assert needed == {}


def test_a_kernel_that_stands_in_gives_the_same_bits() -> None:
    """Extents of 1 run on kernels of more loops; rows of a larger tensor, computed alone, are those of the whole."""
    torch.manual_seed(0)
    x, bias, column = torch.randn(9, 7, 65), torch.randn(65), torch.randn(9, 7, 1)
    whole = [value.to("neuron") for value in (x, bias, column)]

    def compute(x: torch.Tensor, bias: torch.Tensor, column: torch.Tensor) -> list[torch.Tensor]:
        shifted = torch.tanh(x + bias) * column
        return [shifted, shifted.sum(2), (x * column).mean(2), shifted.transpose(1, 2) + column.transpose(1, 2)]

    expected = compute(*whole)
    before = counters.kernels()
    for i, j in ((0, 0), (8, 6), (3, 5)):
        part = compute(whole[0][i : i + 1, j : j + 1].clone(), whole[1], whole[2][i : i + 1, j : j + 1].clone())
        for found, all_of_it in zip(part[:3], expected[:3], strict=True):
            assert torch.equal(found.cpu(), all_of_it[i : i + 1, j : j + 1].cpu())
        assert torch.equal(part[3].cpu(), expected[3][i : i + 1, :, j : j + 1].cpu())
    assert counters.kernels().since(before).generated == 0


LONG = [
    ((300, 7), 0),
    ((1000, 129), 0),
    ((40_000,), 0),
    ((3, 16_385), 1),
    ((31, 9, 33), (0, 1)),
    ((17, 300, 3), (0, 1)),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int32, torch.bool])
def test_a_long_reduction_needs_no_kernel_and_no_number_of_threads(dtype: torch.dtype) -> None:
    def compute(x: torch.Tensor, dims: int | tuple[int, ...]) -> list[torch.Tensor]:
        found = [x.sum(dims), x.amax(dims), (x.logical_not() if dtype == torch.bool else x * x).sum(dims)]
        return [*found, x.mean(dims)] if dtype.is_floating_point else found

    threads = torch.get_num_threads()
    for shape, dims in LONG:
        torch.manual_seed(0)
        x = torch.randint(-9, 9, shape).to(dtype)  # sums of small integers are exact in any order
        for layout in (x, x.transpose(0, -1).contiguous().transpose(0, -1)):
            device = layout.to("neuron")
            short = device[tuple(slice(0, 3) for _ in shape)].clone(memory_format=torch.preserve_format)
            compute(short, dims)
            before = counters.kernels()
            _C._set_thread_count(1)
            one = compute(device, dims)
            _C._set_thread_count(2)
            two = compute(device, dims)
            _C._set_thread_count(threads)
            assert counters.kernels().since(before).generated == 0, (shape, layout.stride())
            for a, b, expected in zip(one, two, compute(layout, dims), strict=True):
                assert torch.equal(a, b)
                if dtype != torch.bfloat16:
                    torch.testing.assert_close(a.cpu(), expected)
