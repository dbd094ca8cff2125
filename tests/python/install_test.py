"""What an installation promises before any work: the device is there, quiet, and has started nothing."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import torch_neuronx


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code],
        capture_output=True, text=True, timeout=120, env={**os.environ, **environment},
    )  # fmt: skip


def test_the_device_is_available() -> None:
    answer = python(
        "import torch; assert torch.neuron.is_available(); print(torch.accelerator.current_accelerator().type)"
    )
    assert answer.stdout.strip() == "neuron", answer.stderr


@pytest.mark.parametrize("code", ["import torch", "import torch, torch_neuronx", "import torch_neuronx"])
def test_import_prints_nothing(code: str) -> None:
    answer = python(code)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


def test_import_starts_no_thread_and_loads_no_llvm() -> None:
    def started(autoload: str) -> tuple[str, str]:
        code = "import os, torch; print(len(os.listdir('/proc/self/task')), 'libtn_codegen' in open('/proc/self/maps').read())"
        threads, llvm = python(code, TORCH_DEVICE_BACKEND_AUTOLOAD=autoload).stdout.split()
        return threads, llvm

    assert started("1") == started("0")
    assert started("1")[1] == "False"


def test_entry_points_name_the_device_and_the_compile_backend() -> None:
    def names(group: str) -> dict[str, str]:
        return {entry.name: entry.value for entry in importlib.metadata.entry_points(group=group)}

    assert names("torch.backends")["torch_neuronx"] == "torch_neuronx:_autoload"
    backends = names("torch_dynamo_backends")
    assert backends["neuron"] == "torch_neuronx.neuron_dynamo_backend.backend:neuron_backend"


def test_the_tool_starts_beside_python() -> None:
    package = Path(torch_neuronx.__file__).parent
    if package.parent.name == "python":  # a build folder that nobody installed: the tool stands at its root
        tool = shutil.which("tn", path=str(package.parent.parent))
    else:
        tool = shutil.which("tn", path=os.path.dirname(sys.executable)) or shutil.which("tn")
    assert tool, "tn is not installed"
    answer = subprocess.run([tool, "env"], capture_output=True, text=True, timeout=30)
    assert answer.returncode == 0 and "TORCH_NEURONX_TARGET" in answer.stdout, answer.stderr
