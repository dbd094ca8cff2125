"""The cases of the conformance test, and the samples each is run on."""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

try:
    import torch_neuronx  # before torch.testing._internal, which freezes the device's name
except ImportError:
    pass

HERE = Path(__file__).resolve().parent
DEVICE = os.environ.get("TN_TEST_DEVICE", "neuron")
CHECKS = ("forward", "out", "inplace", "error", "backward")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int64": torch.int64, "bool": torch.bool}
SAMPLES = 12  # per case, spread over op_db's list
SAMPLES_READ = 400  # of op_db's list, which has over a thousand for some operators
LARGEST = 100_000  # elements of a sample tensor; larger ones only cost time


@dataclass(frozen=True)
class Case:
    family: str
    operator: str
    dtype: str
    check: str

    def __str__(self) -> str:
        return f"{self.operator}-{self.dtype}-{self.check}"


@cache
def families() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in (HERE / "operators.txt").read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if not line.startswith(" "):
            family, line = line.split(":", 1)
            names = found.setdefault(family, [])
        names += line.split()
    return found


@cache
def infos() -> dict[str, list[Any]]:
    """OpInfos by full name; some names have several."""
    from torch.testing._internal.common_methods_invocations import op_db

    found: dict[str, list[Any]] = {}
    for info in op_db:
        found.setdefault(info.full_name, []).append(info)
    return found


def _applies(info: Any, dtype: str, check: str) -> bool:
    if DTYPES[dtype] not in info.supported_dtypes("cpu"):
        return False
    if check == "out":
        return bool(info.supports_out)
    if check == "inplace":
        return info.inplace_variant is not None
    if check == "error":
        return dtype == "float32" and info.error_inputs_func is not None
    if check == "backward":
        return dtype == "float32" and info.supports_autograd and DTYPES[dtype] in info.supported_backward_dtypes("cpu")
    return True


@cache
def cases() -> list[Case]:
    found = []
    for family, names in families().items():
        for name in names:
            if name not in infos():
                raise ValueError(f"operators.txt: op_db has no {name!r}")
            for dtype, check in itertools.product(DTYPES, CHECKS):
                if any(_applies(info, dtype, check) for info in infos()[name]):
                    found.append(Case(family, name, dtype, check))
    return found


def _elements(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel()
    if isinstance(value, (list, tuple)):
        return max(map(_elements, value), default=0)
    return 0


def _small(sample: Any) -> bool:
    return _elements([sample.input, *sample.args, *sample.kwargs.values()]) <= LARGEST


def _spread(found: list[Any], count: int) -> list[Any]:
    if len(found) <= count:
        return found
    return [found[i * (len(found) - 1) // (count - 1)] for i in range(count)]


def samples(case: Case, count: int = SAMPLES) -> Iterator[tuple[Any, Any]]:
    """Pairs of OpInfo and CPU sample, the same ones in every process."""
    for info in infos()[case.operator]:
        if not _applies(info, case.dtype, case.check):
            continue
        torch.manual_seed(zlib.crc32(str(case).encode()))
        if case.check == "error":
            found = list(info.error_inputs("cpu"))
        else:
            gradient = case.check == "backward"
            all_samples = info.sample_inputs("cpu", DTYPES[case.dtype], requires_grad=gradient)
            found = [sample for sample in itertools.islice(all_samples, SAMPLES_READ) if _small(sample)]
        yield from ((info, sample) for sample in _spread(found, count))
