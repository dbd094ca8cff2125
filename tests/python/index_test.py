"""Operators that read and write at positions, padding and pooling: equal to CPU without leaving the device."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest
import torch

import torch_neuronx

SHAPES = [(), (1,), (5,), (3, 4), (2, 3, 4), (4, 1, 3)]
DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.bool]


def values(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Small integers: their sums and products are exact in every dtype and order."""
    return torch.randint(0, 2, shape).bool() if dtype == torch.bool else torch.randint(-2, 3, shape).to(dtype)


def index_shape(shape: tuple[int, ...], dim: int, source: tuple[int, ...]) -> tuple[int, ...]:
    """Any shape that fits into `source`, and outside `dim` into `shape`."""
    return tuple(random.randint(0, s if d == dim else min(n, s)) for d, (n, s) in enumerate(zip(shape, source)))


def same(function: Callable, *arguments: object) -> None:
    """The call on the device gives what it gives on CPU, an error included, and stays there unless it is one."""
    to = lambda device: [a.to(device) if isinstance(a, torch.Tensor) else a for a in arguments]  # noqa: E731
    try:
        expected = function(*to("cpu"))
    except Exception as error:
        with pytest.raises(type(error)) as raised:
            function(*to("neuron"))
        assert str(raised.value).splitlines()[0] == str(error).splitlines()[0]
        return
    torch_neuronx.clear_op_tracking()
    actual = function(*to("neuron"))
    assert not torch_neuronx.get_fallback_ops()
    pairs = zip(actual, expected) if isinstance(expected, tuple) else [(actual, expected)]
    for a, e in pairs:
        assert (a.dtype, a.shape, a.stride()) == (e.dtype, e.shape, e.stride())
        torch.testing.assert_close(a.cpu(), e, rtol=1e-6, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_scatter(shape: tuple[int, ...], dtype: torch.dtype):
    torch.manual_seed(len(shape))
    random.seed(len(shape))
    for dim, index_type in itertools.product(range(max(len(shape), 1)), (torch.int64, torch.int32)):
        source_shape = tuple(n + random.randint(0, 2) for n in shape)
        where = torch.randint(0, shape[dim] if shape else 1, index_shape(shape, dim, source_shape)).to(index_type)
        x, source = values(shape, dtype), values(source_shape, dtype)
        same(lambda x, i, s, d=dim: x.scatter(d, i, s), x, where, source)
        same(lambda x, i, d=dim: x.scatter(d, i, 1), x, where)
        same(lambda x, i, d=dim: x.gather(d, i), x, where)
        same(lambda x, i, s, d=dim: x.scatter_add(d, i, s), x, where, source)
        for word in ("add", "multiply"):
            same(lambda x, i, s, d=dim, w=word: x.scatter(d, i, s, reduce=w), x, where, source)
        for word, own in itertools.product(("sum", "prod", "mean", "amax", "amin"), (True, False)):
            same(lambda x, i, s, d=dim, w=word, o=own: x.scatter_reduce(d, i, s, w, include_self=o), x, where, source)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows(shape: tuple[int, ...], dtype: torch.dtype):
    torch.manual_seed(len(shape))
    for dim, count in itertools.product(range(max(len(shape), 1)), (None, 0, 1, 3)):
        rows = torch.randperm(shape[dim] if shape else 1)[:count] if count is not None else torch.tensor(0)
        taken = list(shape)
        if shape:
            taken[dim] = rows.numel()
        x, source = values(shape, dtype), values(tuple(taken), dtype)
        same(lambda x, i, d=dim: x.index_select(d, i), x, rows)
        same(lambda x, i, s, d=dim: x.index_add(d, i, s), x, rows, source)
        same(lambda x, i, s, d=dim: x.index_copy(d, i, s), x, rows, source)
        same(lambda x, i, d=dim: x.index_fill(d, i - 1, 1), x, rows)
        for word, own in itertools.product(("prod", "mean", "amax", "amin"), (True, False)):
            if dtype != torch.bool:
                same(lambda x, i, s, d=dim, w=word, o=own: x.index_reduce(d, i, s, w, include_self=o), x, rows, source)
    for places in ((), (4,), (2, 3), (0,)):
        x, where = values(shape, dtype), torch.randint(-1, 1, places)
        same(lambda x, i: x.take(i), x, where)
        same(lambda x, i, s: x.put(i, s, accumulate=True), x, where, values(places, dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_masks(dtype: torch.dtype):
    torch.manual_seed(0)
    for shape, mask_shape, more in itertools.product(
        [(4, 6), (3, 1, 5)], [(6,), (5,), (4, 1), (), (3, 2, 5)], (0, -60)
    ):
        mask, source = torch.rand(mask_shape) < 0.5, values((60 + more,), dtype)
        same(lambda x, m, s: x.masked_scatter(m, s), values(shape, dtype), mask, source)
        same(lambda x, m: x.masked_select(m), values(shape, dtype), mask)


def test_positions_outside_are_refused_as_on_cpu():
    x, far = torch.zeros(3, 4), torch.full((3, 4), 4)
    same(lambda x, i: x.gather(1, i), x, far)
    same(lambda x, i: x.scatter(1, i, 1.0), x, far)
    same(lambda x, i: x.scatter_add(1, i, x), x, -far)
    same(lambda x, i: x.scatter_add(1, i, x), x, far[0])
    same(lambda x, i: x.take(i), x, far * 3)
    same(lambda x, i: x.index_select(0, i), x, far[0])


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_padding(rank: int, mode: str):
    def run(x: torch.Tensor, pad: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        x.requires_grad_()
        y = torch.nn.functional.pad(x, pad, mode)
        return y.detach(), torch.autograd.grad(y, x, y.detach() + 1)[0]

    for batch, sizes in itertools.product([(2,), (2, 3)], [(4, 5, 6), (3, 3, 3)]):
        for pad in ([1, 2], [0, -1], [2, 0], [6, 6]):
            same(lambda x, p=pad: run(x, p * rank), values((*batch, *sizes[:rank]), torch.float32))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_adaptive_pools(rank: int):
    def run(x: torch.Tensor, kind: str, out: list[int]) -> tuple[torch.Tensor, ...]:
        x.requires_grad_()
        found = getattr(torch.nn.functional, f"adaptive_{kind}_pool{rank}d")(x, out, *[True] * (kind == "max"))
        first = found[0] if kind == "max" else found
        gradient = torch.autograd.grad(first, x, torch.ones_like(first))[0]
        return (first.detach(), gradient, found[1]) if kind == "max" else (first.detach(), gradient)

    torch.manual_seed(0)
    for kind, batch, out in itertools.product(("avg", "max"), [(2,), (2, 3), (0, 3)], (1, 2, 3, 4, 7)):
        for sizes in ((5, 7, 4), (6, 4, 8)):
            same(lambda x, k=kind, o=out: run(x, k, [o] * rank), torch.randn(*batch, *sizes[:rank]))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pools_of_integers(rank: int):
    torch.manual_seed(0)
    functional = torch.nn.functional
    for size, stride, padding, ceil in itertools.product((2, 3), (1, 2), (0, 1), (False, True)):
        how = (size, stride, padding)
        for dtype in (torch.int64, torch.int8, torch.uint8):
            x = torch.randint(-9 if dtype.is_signed else 0, 9, (2, 3, *(5, 6, 7)[:rank]), dtype=dtype)
            same(lambda x, h=how, c=ceil: getattr(functional, f"avg_pool{rank}d")(x, *h, ceil_mode=c), x)
            pool = getattr(functional, f"max_pool{rank}d")
            same(lambda x, h=how, c=ceil, p=pool: p(x, *h, ceil_mode=c, return_indices=True), x)


def test_triangles_and_repeats():
    for row, column, offset in itertools.product((0, 1, 4), (0, 1, 5), (-5, -1, 0, 2, 6)):
        for name in ("tril_indices", "triu_indices"):
            same(lambda x, n=name, a=(row, column, offset): getattr(torch, n)(*a, device=x.device), torch.zeros(1))
    for counts in ([2, 0, 3], [0, 0], [1], []):
        for dtype in (torch.int64, torch.int32):
            same(torch.repeat_interleave, torch.tensor(counts, dtype=dtype))
    same(lambda x, n: x.repeat_interleave(n, 0), torch.arange(6).reshape(3, 2), torch.tensor([2, 0, 1]))
    same(torch.repeat_interleave, torch.tensor([1, -1]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_unique(dtype: torch.dtype):
    torch.manual_seed(0)
    for shape, flags in itertools.product([(), (0,), (9,), (4, 5)], itertools.product((True, False), repeat=3)):
        same(lambda x, f=flags: torch.unique(x, f[0], f[1], f[2]), values(shape, dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_blocks_as_columns(dtype: torch.dtype):
    torch.manual_seed(0)
    for kernel, dilation, padding, stride in itertools.product([(2, 3), (1, 1)], (1, 2), (0, 1), (1, (2, 3))):
        how = (kernel, dilation, padding, stride)
        image = values((2, 3, 7, 8), dtype)
        same(lambda x, h=how: torch.nn.functional.unfold(x, *h), image)
        columns = values(tuple(torch.nn.functional.unfold(image, *how).shape), dtype)
        same(lambda x, h=how: torch.nn.functional.fold(x, (7, 8), *h), columns)
        same(lambda x, h=how: torch.nn.functional.fold(x[0], (7, 8), *h), columns)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_unpool_restores_the_extremes(rank: int):
    def run(x: torch.Tensor) -> torch.Tensor:
        pooled, where = getattr(torch.nn.functional, f"max_pool{rank}d")(x, 2, return_indices=True)
        return getattr(torch.nn.functional, f"max_unpool{rank}d")(pooled, where, 2)

    torch.manual_seed(0)
    same(run, torch.randn(2, 3, *(4, 6, 8)[:rank]))
    same(run, torch.randn(3, *(4, 6, 8)[:rank]))
