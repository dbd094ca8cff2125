"""Finds and calls the command-line tool `tn` of a build folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent.parent

DTYPES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.uint64: "ui64",
    torch.bool: "i1",
}


def find_tool() -> Path | None:
    """The tool named by TN_TOOL, or that of the default build folder; None if there is none."""
    named = os.environ.get("TN_TOOL")
    candidates = [Path(named)] if named else [ROOT / "build" / "tn"]
    return next((path for path in candidates if path.exists()), None)


def call(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs the tool with these arguments; output and errors are captured as text."""
    return subprocess.run([str(find_tool()), *arguments], capture_output=True, text=True, timeout=60, check=False)


def mlir_type(tensor: torch.Tensor) -> str:
    """StableHLO type of a tensor, e.g. `tensor<2x3xf32>`."""
    return f"tensor<{''.join(f'{n}x' for n in tensor.shape)}{DTYPES[tensor.dtype]}>"


def _to_numpy(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(np.uint16)
    return tensor.contiguous().numpy()


def run_op(
    text: str, operands: list[torch.Tensor], like: list[torch.Tensor], folder: Path, engine: str = "interp"
) -> list[torch.Tensor]:
    """Runs one op on operands. `text` holds `{operands}`; results have the types of `like`."""
    names = ", ".join(f"%a{i}" for i in range(len(operands)))
    arguments = ", ".join(f"%a{i}: {mlir_type(t)}" for i, t in enumerate(operands))
    inputs = ", ".join(map(mlir_type, operands))
    types = ", ".join(mlir_type(t) for t in like)
    results = ", ".join(f"%r#{i}" for i in range(len(like)))
    count = f":{len(like)}" if len(like) > 1 else ""
    file = folder / "op.mlir"
    file.write_text(
        f"func.func @main({arguments}) -> ({types}) {{\n  %r{count} = {text.format(operands=names)} : ({inputs}) -> ({types})\n"
        f"  return {results if count else '%r'} : {types}\n}}\n"
    )
    command = ["run", str(file), "--engine", engine, "--output", str(folder / "out")]
    for i, tensor in enumerate(operands):
        np.save(folder / f"in{i}.npy", _to_numpy(tensor))
        command += ["--input", str(folder / f"in{i}.npy")]
    done = call(command)
    assert done.returncode == 0, done.stderr
    outputs = []
    for i, tensor in enumerate(like):
        array = np.load(folder / f"out{i}.npy")
        if tensor.dtype == torch.bfloat16:
            outputs.append(torch.from_numpy(array.view(np.int16)).view(torch.bfloat16))
        else:
            outputs.append(torch.from_numpy(array))
    return outputs
