"""What torch_neuronx._C shows of the kernel caches and of the devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from torch_neuronx import _C

CODE = """
import json
import torch
from torch_neuronx import _C
x = torch.rand(5, device="neuron")
def work():
    (x * 2).exp_()
steps = []
def note():
    stats = _C._get_compilation_cache_stats()
    entries, keys = _C._get_compilation_cache_entries(), _C._get_all_cache_keys()
    steps.append([stats, entries, keys])
work(); note()
_C._clear_compilation_memory_cache(); note()
torch.add(x, torch.rand(5, device="neuron")); x.sub_(1); note()
_C._clear_compilation_cache(); note()
work()  # what a program holds stays valid
print(json.dumps(steps))
"""


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix == ".tnk"]


def test_caches_are_shown_and_emptied(tmp_path: Path) -> None:
    environment = {**os.environ, "TORCH_NEURONX_NEFF_CACHE_DIR": str(tmp_path)}
    answer = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=environment)
    assert answer.returncode == 0, answer.stderr
    first, forgotten, more, empty = json.loads(answer.stdout.splitlines()[-1])
    for stats, entries, keys in (first, forgotten, more, empty):
        assert stats["total_entries"] == len(entries) == len(keys) == len(set(keys))
        assert sorted(entry["cache_key"] for entry in entries) == sorted(keys)
    assert len(first[1]) > 0
    for entry in first[1] + more[1]:
        assert entry["neff_size_bytes"] > 0 and entry["access_count"] > 0 and entry["compilation_time_ms"] > 0
    assert forgotten[1] == [] and empty[1] == [] and len(more[1]) > 0
    assert files(tmp_path) == []


@pytest.mark.parametrize("index", range(torch.neuron.device_count()))
def test_device_properties(index: int) -> None:
    raw, public = _C._neuron_getDeviceProperties(index), torch.neuron.get_device_properties(index)
    assert (raw["name"], raw["total_memory"]) == (public.name, public.total_memory)
    assert (raw["target"], raw["core_count"]) == (public.target, public.core_count)


@pytest.mark.parametrize("name", ["NEURON_LOGICAL_NC_CONFIG", "NEURON_RT_VIRTUAL_CORE_SIZE"])
def test_cores_of_a_logical_core_are_reported(name: str) -> None:
    code = "import torch_neuronx; print(torch_neuronx._C._neuron_getDeviceProperties(0)['logical_neuroncore_config'])"
    for value in ("1", "2"):
        answer = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, name: value}
        )
        assert answer.stdout.split() == [value], answer.stderr


def test_properties_of_no_device_raise() -> None:
    with pytest.raises(ValueError, match="Valid range is 0 to"):
        _C._neuron_getDeviceProperties(torch.neuron.device_count())
