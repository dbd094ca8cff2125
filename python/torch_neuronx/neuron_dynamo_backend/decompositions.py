"""Which operators are taken apart before they reach the lowering table."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .. import _C

_registered: dict[Any, Callable[..., Any]] = {}


def register_decomposition(ops: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the function replaces |ops| (OpOverloads) in graphs compiled from now on.

    Raises ValueError if one of them has a registered decomposition already.
    """
    ops = list(ops)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for op in ops:
            if op in _registered:
                raise ValueError(f"register_decomposition: {op} has a decomposition already")
        for op in ops:
            _registered[op] = function
        return function

    return register


def overload_name(op: Any) -> str:
    """`name` or `name.overload` of an aten OpOverload, as rows of the lowering table are called."""
    schema = op._schema
    name = schema.name.removeprefix("aten::")
    return f"{name}.{schema.overload_name}" if schema.overload_name else name


def table() -> dict[Any, Callable[..., Any]]:
    """Decompositions for AOTAutograd: the core set without what the lowering table has, then the registered ones."""
    return {**_core_table(), **_registered}


@functools.cache
def _core_table() -> dict[Any, Callable[..., Any]]:
    from torch._decomp import core_aten_decompositions, get_decompositions

    aten = torch.ops.aten
    extra = get_decompositions(
        [
            aten.native_dropout_backward,
            aten.embedding_dense_backward,
            aten.nll_loss_forward,
            aten.nll_loss_backward,
            aten._adaptive_avg_pool2d,
            aten.convolution_backward,
            aten.slice_backward,
            aten.select_backward,
            aten.index_select_backward,
            aten.masked_fill,
            aten.baddbmm,
            aten.addbmm,
            aten.t,
        ]
    )
    decompositions = {**core_aten_decompositions(), **extra}
    for op in list(decompositions):
        if isinstance(op, torch._ops.OpOverload) and op.namespace == "aten" and _C.Trace.can_lower(overload_name(op)):
            del decompositions[op]
    return decompositions
