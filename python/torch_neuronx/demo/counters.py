"""The device's own account, read defensively: a number that this build does not keep is None, never an error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch


def _package() -> Any:
    try:
        import torch_neuronx
    except ImportError:
        return None
    return torch_neuronx


@dataclass
class Kernels:
    """How many kernels were generated, read from disk, and found in memory; None where not counted."""

    generated: int | None = None
    disk: int | None = None
    memory: int | None = None

    def since(self, before: Kernels) -> Kernels:
        def minus(a: int | None, b: int | None) -> int | None:
            return None if a is None else a - (b or 0)

        return Kernels(
            minus(self.generated, before.generated),
            minus(self.disk, before.disk),
            minus(self.memory, before.memory),
        )


def kernels() -> Kernels:
    read = getattr(getattr(_package(), "_C", None), "_kernel_stats", None)
    if read is None:
        return Kernels()
    stats = read()
    return Kernels(stats["generated"], stats["from_disk"], stats["from_memory"])


@dataclass
class Operators:
    """Distinct operators that ran on the device, and those that left it with the reason (may be empty)."""

    on_device: list[str] = field(default_factory=list)
    fallback: dict[str, str] = field(default_factory=dict)


def clear_operators() -> None:
    package = _package()
    if hasattr(package, "clear_op_tracking"):
        package.clear_op_tracking()


def operators() -> Operators:
    package = _package()
    if not hasattr(package, "op_report"):
        return Operators()
    records = package.op_report()
    return Operators(
        [record.name for record in records if record.device_calls],
        {record.name: "; ".join(record.reasons) for record in records if record.fallback_calls},
    )


class PeakMemory:
    """Largest number of bytes that tensors held on the device since this was made, beyond those held by then."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.held = 0
        if device.type != "cpu":
            torch.accelerator.reset_peak_memory_stats(device)
            self.held = torch.accelerator.memory_allocated(device)

    def bytes(self) -> int | None:
        """None on CPU, which keeps no such account."""
        if self.device.type == "cpu":
            return None
        return torch.accelerator.max_memory_allocated(self.device) - self.held


def synchronize(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def set_threads(count: int) -> None:
    """Gives PyTorch's CPU kernels and the device the same number of threads."""
    torch.set_num_threads(count)
    set_count = getattr(getattr(_package(), "_C", None), "_set_thread_count", None)
    if set_count is not None:
        set_count(count)
