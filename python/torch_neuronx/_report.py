"""Which operators ran, where, and why not on the device."""

from collections.abc import Iterable
from dataclasses import dataclass

from torch_neuronx import _C


@dataclass(frozen=True)
class OpRecord:
    """One operator overload since the last `clear_op_tracking`."""

    name: str  # "aten::add.Tensor"
    device_calls: int
    fallback_calls: int
    bytes: int  # of the tensors that fallback calls read and wrote
    ns: int  # spent in fallback calls
    reasons: dict[str, int]
    user_line: str  # "file:line" of the first fallback, or ""


class OpReport(list):
    """A list of `OpRecord`, whose `str()` is a table."""

    def __init__(self, records: Iterable[OpRecord]) -> None:
        super().__init__(records)

    def __str__(self) -> str:
        width = max([len("operator"), *(len(record.name) for record in self)])
        lines = [f"{'operator':<{width}}  {'device':>8}  {'cpu':>8}  {'cpu ms':>9}  {'cpu MiB':>9}  reason"]
        for r in self:
            reason = "; ".join(r.reasons)
            if r.user_line:
                reason += f" ({r.user_line})"
            lines.append(
                f"{r.name:<{width}}  {r.device_calls:>8}  {r.fallback_calls:>8}  {r.ns / 1e6:>9.3f}  "
                f"{r.bytes / 2**20:>9.3f}  {reason}".rstrip()
            )
        return "\n".join(lines)


def op_report() -> OpReport:
    """Every operator used since the last clear, in order of first use."""
    return OpReport(
        OpRecord(
            name=record["name"],
            device_calls=record["device_calls"],
            fallback_calls=record["fallback_calls"],
            bytes=record["bytes"],
            ns=record["ns"],
            reasons=dict(record["reasons"]),
            user_line=f"{record['file']}:{record['line']}" if record["line"] else "",
        )
        for record in _C._op_report()
    )


def get_executed_ops() -> list[str]:
    """Names `aten::op[.overload]` of operators that ran on the device, in order of first use."""
    return _C._op_names(False)


def get_fallback_ops() -> list[str]:
    """Names `aten::op[.overload]` of operators that ran on the CPU, in order of first use."""
    return _C._op_names(True)


def clear_op_tracking() -> None:
    _C._clear_op_tracking()
