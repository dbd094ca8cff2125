"""Random calls on tensors of every layout: values, strides, sharing of memory and errors are those of CPU.

Sizes are small and often 0 or 1, vector widths and their neighbours; tensors are slices, permutations, expansions,
channels_last. A call that CPU refuses must be refused with the same type and text.
"""

import random
import warnings
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

FLOATS = [torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
DTYPES = [*FLOATS, *INTEGERS, torch.bool]
SIZES = [0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 17]
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-7, torch.float16: 2e-2, torch.bfloat16: 5e-2}
NUMBERS = [0, 1, -1, 2, 0.5, -1.5, True, 300, -300, 70000.0, 2**40, 1e40, float("inf"), float("nan")]
Operand = Callable[[str], torch.Tensor]


class Draw(random.Random):
    def of(self, *items):
        return items[self.randrange(len(items))]

    def shape(self, low: int = 0, high: int = 4) -> list[int]:
        return [self.choice(SIZES) for _ in range(self.randrange(low, high + 1))]

    def values(self, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self.randrange(1 << 30))
        if dtype.is_floating_point:
            return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
        low = 0 if dtype in (torch.bool, torch.uint8) else -5
        return torch.randint(low, 2 if dtype == torch.bool else 6, shape, generator=generator).to(dtype)

    def operand(self, shape: list[int], dtype: torch.dtype) -> Operand:
        """A tensor of |shape| in one of many layouts, the same on every device."""
        rank, layout = len(shape), self.of("plain", "offset", "permuted", "steps", "expanded", "last")
        if layout == "offset" and rank:
            base = self.values([shape[0] + 2, *shape[1:]], dtype)
            return lambda d: base.to(d, copy=True).narrow(0, 1, shape[0])
        if layout == "permuted" and rank > 1:
            order = self.sample(range(rank), rank)
            base = self.values([shape[i] for i in order], dtype)
            return lambda d: base.to(d, copy=True).permute([order.index(i) for i in range(rank)])
        if layout in ("steps", "expanded") and rank:
            dim = self.randrange(rank)
            size = 2 * shape[dim] if layout == "steps" else 1
            base = self.values([*shape[:dim], size, *shape[dim + 1 :]], dtype)
            if layout == "expanded":
                return lambda d: base.to(d, copy=True).expand(shape)
            return lambda d: base.to(d, copy=True)[(slice(None),) * dim + (slice(None, None, 2),)]
        base = self.values(shape, dtype)
        if layout == "last" and rank in (4, 5):
            form = torch.channels_last if rank == 4 else torch.channels_last_3d
            return lambda d: base.to(d, copy=True).contiguous(memory_format=form)
        return lambda d: base.to(d, copy=True)

    def index(self, size: int, shape: list[int], negative: bool) -> Operand:
        flat = torch.zeros(shape, dtype=torch.int64)
        for i in range(flat.numel()):
            flat.view(-1)[i] = self.randrange(-size if negative else 0, size) if size else 0
        if flat.numel() and self.random() < 0.06:
            flat.view(-1)[0] = self.of(size, -size - 1)
        if len(shape) == 2 and self.random() < 0.3:
            return lambda d: flat.to(d).t().contiguous().t()
        return lambda d: flat.to(d)


def indexing(r: Draw):
    shape = r.shape(1, 4)
    x, places = r.operand(shape, r.choice(DTYPES)), r.shape(0, 2)
    keys, tensors = [], []
    for size in shape[: r.randrange(1, len(shape) + 1)]:
        kind = r.of("all", "slice", "tensor", "tensor", "mask")
        if kind == "tensor":
            keys.append(len(tensors))
            tensors.append(r.index(size, places, True))
        elif kind == "mask" and r.random() < 0.3:
            keys.append(len(tensors))
            tensors.append(r.operand([size], torch.bool))
        else:
            keys.append(slice(None) if kind == "all" else slice(r.of(None, 1, -2), None, r.of(1, 2)))
    number = r.choice(NUMBERS)

    def key(tensors):
        return tuple(tensors[k] if isinstance(k, int) else k for k in keys)

    def put(x, *tensors):
        x[key(tensors)] = number
        return x

    return r.of(lambda x, *tensors: x[key(tensors)], put), [x, *tensors]


def scattering(r: Draw):
    shape = r.shape(1, 4)
    dim, dtype = r.randrange(len(shape)), r.choice(DTYPES)
    count = r.choice(SIZES)
    many = [*shape[:dim], count, *shape[dim + 1 :]]
    x, source = r.operand(shape, dtype), r.operand(many, dtype)
    row, full = r.index(shape[dim], [count], False), r.index(shape[dim], many, False)
    number, word, keep = r.choice(NUMBERS), r.of("sum", "prod", "amax", "amin"), r.of(True, False)
    return r.of(
        (lambda x, i: x.scatter(dim, i, number), [x, full]),
        (lambda x, i, s: x.scatter_add(dim, i, s), [x, full, source]),
        (lambda x, i, s: x.scatter_reduce(dim, i, s, word, include_self=keep), [x, full, source]),
        (lambda x, i, s: x.index_add(dim, i, s), [x, row, source]),
        (lambda x, i: x.index_fill(dim, i, number), [x, row]),
        (lambda x, i: x.gather(dim, i), [x, full]),
        (lambda x, i: x.index_select(dim, i), [x, row]),
        (lambda x, m, s: x.masked_scatter(m, s), [x, r.operand(shape, torch.bool), r.operand(shape, dtype)]),
    )


def numbers(r: Draw):
    x, n, low = r.operand(r.shape(), r.choice(DTYPES)), r.choice(NUMBERS), r.choice(NUMBERS)
    return r.of(
        lambda x: torch.full_like(x, n), lambda x: x.new_full((2,), n), lambda x: x.masked_fill(x == x, n),
        lambda x: x.clone().fill_(n), lambda x: x.clamp(low, n), lambda x: torch.add(x, x, alpha=n),
        lambda x: x == n, lambda x: x > n, lambda x: x + n, lambda x: n - x, lambda x: F.pad(x, (1, 1), value=n),
        lambda x: F.threshold(x, 0, n), lambda x: torch.addcmul(x, x, x, value=n), lambda x: F.hardtanh(x, -1, n),
        lambda x: torch._foreach_clamp_min([x], n),
    ), [x]  # fmt: skip


def reducing(r: Draw):
    shape = r.shape(0, 4)
    x = r.operand(shape, r.choice(DTYPES))
    dims = tuple(r.sample(range(len(shape)), r.randrange(len(shape) + 1)))
    one, keep = r.of(0, -1), r.of(True, False)
    return r.of(
        lambda x: x.sum(dims, keepdim=keep), lambda x: x.any(dims, keepdim=keep), lambda x: x.all(dims),
        lambda x: x.amax(dims, keepdim=keep), lambda x: x.max(one, keepdim=keep), lambda x: x.abs(),
        lambda x: x.argmin(one), lambda x: x.cumsum(one), lambda x: F.logsigmoid(x), lambda x: x.cummax(one),
        lambda x: x.mean(dims), lambda x: torch.trace(x), lambda x: torch.cumprod(x, one),
        lambda x: x.unique(dim=one, return_inverse=True, return_counts=True),
        lambda x: x.unique_consecutive(return_inverse=True, return_counts=True),
        lambda x: x.unique_consecutive(dim=one, return_inverse=True, return_counts=True),
    ), [x]  # fmt: skip


def joining(r: Draw):
    shape, dtype = r.shape(1, 4), r.choice(DTYPES)
    dim = r.randrange(len(shape))
    parts = [[*shape[:dim], r.choice(SIZES), *shape[dim + 1 :]] for _ in range(r.randrange(1, 4))]
    if r.random() < 0.5:
        return lambda *x: torch.cat(x, dim), [r.operand(part, dtype) for part in parts]
    shape = shape[:3]
    at = r.randrange(len(shape) + 1)
    return lambda *x: torch.stack(x, at), [r.operand(shape, dtype) for _ in parts]


def convolving(r: Draw):
    # 3d convolutions of float32 choose a library, and with it the layout, by the number of threads.
    space, groups = r.of(2, 3), r.of(1, 2)
    dtype = torch.float64 if space == 3 else r.of(torch.float32, torch.float64)
    x = r.operand([r.of(1, 2), 2 * groups, *[r.of(4, 5, 7)] * space], dtype)
    w = r.operand([2 * groups, 2, *[r.of(1, 2, 3)] * space], dtype)
    name = f"conv_transpose{space}d" if r.random() < 0.3 else f"conv{space}d"

    def run(x, w):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = getattr(F, name)(x, w, groups=groups)
        return [y.detach(), *torch.autograd.grad(y, [x, w], torch.ones_like(y))]

    return run, [x, w]


def pooling(r: Draw):
    x = r.operand([r.of(0, 1, 2), 3, r.of(1, 4, 7)], r.choice(DTYPES))
    kernel = r.of(1, 2, 3)
    return lambda x: F.max_pool1d(x, kernel), [x]


def overlapping(r: Draw):
    base, at = r.values([12], r.choice(FLOATS)), r.of(0, 1, 2)
    return r.of(
        lambda x: torch.add(x[:10], 1, out=x[at : at + 10]),
        lambda x: torch.cumsum(x[:10], 0, out=x[at : at + 10]),
        lambda x: x[:10].copy_(x[at : at + 10]),
        lambda x: x[::2].add_(x[1::2]),
        lambda x: x[:10].index_copy_(0, torch.arange(10, device=x.device), x[at : at + 10]),
        lambda x: x[:4].expand(2, 4).mul_(2),
    ), [lambda d: base.to(d, copy=True)]


def outcome(function, operands: list[Operand], device: str):
    arguments = [operand(device) for operand in operands]
    try:
        result = function(*arguments)
    except Exception as error:
        text = str(error).split("\n")[0]
        return type(error), text.replace("neuron:0", "cpu"), []
    return None, "", [*(result if isinstance(result, (list, tuple)) else [result]), *arguments]


def walked(x: torch.Tensor) -> list[int]:
    return [stride for stride, size in zip(x.stride(), x.shape) if size > 1] if x.numel() else []


def shared(tensors: list[torch.Tensor]) -> list[int]:
    """For each tensor the first whose memory it shares."""
    places = [t.untyped_storage().data_ptr() or -i for i, t in enumerate(tensors, 1)]
    return [places.index(place) for place in places]


FAMILIES = [indexing, scattering, numbers, reducing, joining, convolving, pooling, overlapping]


@pytest.mark.parametrize("family", FAMILIES, ids=[f.__name__ for f in FAMILIES])
def test_calls_equal_the_cpu(family):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(200):
            function, operands = family(Draw(seed))
            wrong, text, expected = outcome(function, operands, "cpu")
            if wrong and "INTERNAL ASSERT" in text:
                continue
            failed, found_text, found = outcome(function, operands, "neuron")
            assert (failed, found_text) == (wrong, text), f"{family.__name__} {seed}"
            assert shared(found) == shared(expected), f"{family.__name__} {seed}"
            for x, y in zip(found, expected):
                about = f"{family.__name__} {seed}: {x} expected {y}"
                assert (x.dtype, x.shape, walked(x)) == (y.dtype, y.shape, walked(y)), about
                limit = TOLERANCE.get(y.dtype, 0)
                torch.testing.assert_close(
                    x.detach().cpu(), y.detach(), rtol=limit, atol=limit, equal_nan=True, msg=about
                )
