"""Row, copy, index, order, window and attention kernels of libtn beside torch in the same run.

Usage: bench/rows.py path/to/libtn.so [--threads 1,2] [--only copy,softmax,norm,index,order,pool,attention]
A line: microseconds ours, torch's, ratio torch / ours. Results are compared before timing.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from kernel_lib import Lib, race
from rows_lib import Rows

BF16, F32 = torch.bfloat16, torch.float32
Case = tuple[str, Callable[[], object], Callable[[], object]]


def compare(
    name: str,
    ours: Callable[[], object],
    got: tuple[torch.Tensor, ...],
    expected: tuple[torch.Tensor, ...],
    bound: float = 0.0,
) -> None:
    ours()
    for a, b in zip(got, expected, strict=True):
        error = (a.double() - b.double()).abs().max().item()
        assert error <= bound * (1 + b.double().abs().max().item()), f"{name}: error {error}"


def copies(k: Rows) -> Iterator[Case]:
    sources = {
        "transpose f32 1024x1024": torch.randn(1024, 1024).t(),
        "transpose f32 1000x3000": torch.randn(1000, 3000).t(),
        "transpose bf16 1024x1024": torch.randn(1024, 1024).to(BF16).t(),
        "transpose f64 1000x1000": torch.randn(1000, 1000).double().t(),
        "heads 8x128x12x64": torch.randn(8, 128, 12, 64).transpose(1, 2),
        "keys 8x12x64x128": torch.randn(8, 128, 12, 64).permute(0, 2, 3, 1),
        "nchw to nhwc": torch.randn(8, 64, 56, 56).permute(0, 2, 3, 1),
        "expand 1000x1000": torch.randn(1000, 1).expand(1000, 1000),
        "slice step 2": torch.randn(1000, 1000)[:, ::2],
    }
    for name, x in sources.items():
        out = torch.empty(x.shape, dtype=x.dtype)
        ours = k.copy(x, out)
        compare(name, ours, (out,), (x,))
        yield name, ours, lambda x=x, out=out: out.copy_(x)
    for a, b in ((F32, BF16), (BF16, F32), (F32, torch.float16), (F32, torch.int64), (torch.int64, F32)):
        x = (torch.randn(1 << 20) * 100).to(a)
        out = torch.empty(x.shape, dtype=b)
        ours = k.copy(x, out)
        compare("convert", ours, (out,), (x.to(b),))
        yield f"convert 1M {a} {b}".replace("torch.", ""), ours, lambda x=x, out=out: out.copy_(x)


def softmaxes(k: Rows) -> Iterator[Case]:
    for shape, dtype in (
        ((16, 1024), F32),
        ((128, 65), F32),
        ((768, 128), F32),
        ((512, 4096), F32),
        ((64, 50257), F32),
        ((256, 1024), BF16),
    ):
        x = torch.randn(*shape).to(dtype)
        out = torch.empty_like(x)
        for is_log in (False, True):
            theirs = torch._log_softmax if is_log else torch._softmax
            ours = k.softmax(x, out, is_log)
            compare("softmax", ours, (out,), (theirs(x, -1, False),), 1e-2 if dtype == BF16 else 1e-6)
            yield (
                f"{'log_' if is_log else ''}softmax {shape} {dtype}".replace("torch.", ""),
                ours,
                lambda theirs=theirs, x=x: theirs(x, -1, False),
            )


def norms(k: Rows) -> Iterator[Case]:
    for shape, dtype in (((16, 1024), F32), ((1024, 128), F32), ((512, 768), F32), ((512, 768), BF16)):
        x, w, b = (
            torch.randn(*shape).to(dtype),
            torch.randn(shape[1]).to(dtype),
            torch.randn(shape[1]).to(dtype),
        )
        out, mean, rstd = torch.empty_like(x), torch.empty(shape[0]), torch.empty(shape[0])
        ours = k.layer_norm(x, w, b, out, mean, rstd)
        bound = 2e-2 if dtype == BF16 else 1e-5
        result = torch.native_layer_norm(x, [shape[1]], w, b, 1e-5)
        compare("layer_norm", ours, (out,), (result[0],), bound)
        yield (
            f"layer_norm {shape} {dtype}".replace("torch.", ""),
            ours,
            lambda x=x, w=w, b=b, n=shape[1]: torch.native_layer_norm(x, [n], w, b, 1e-5),
        )
        dout, dx, dw, db = torch.randn_like(x), torch.empty_like(x), torch.empty_like(w), torch.empty_like(b)
        ours = k.layer_norm_backward(dout, x, mean, rstd, w, dx, dw, db)

        def theirs(args: tuple = (dout, x, [shape[1]], result[1], result[2], w, b, [True] * 3)) -> object:
            return torch.ops.aten.native_layer_norm_backward(*args)

        compare("layer_norm_backward", ours, (dx, dw, db), theirs(), bound * 3)
        yield f"layer_norm_backward {shape} {dtype}".replace("torch.", ""), ours, theirs
    for shape in ((16, 64, 28, 28), (256, 128, 1, 1)):
        x, w, b = torch.randn(*shape), torch.randn(shape[1]), torch.randn(shape[1])
        out, mean, invstd = torch.empty_like(x), torch.empty(shape[1]), torch.empty(shape[1])
        ours = k.batch_norm(x, w, b, out, mean, invstd)

        def train(x: torch.Tensor = x, w: torch.Tensor = w, b: torch.Tensor = b) -> tuple:
            return torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5)

        compare("batch_norm", ours, (out, mean, invstd), train(), 1e-5)
        yield f"batch_norm {shape}", ours, train


def indexing(k: Rows) -> Iterator[Case]:
    for rows, n, count in ((50257, 768, 1024), (65, 128, 1024), (1000, 16, 4096)):
        w, index = torch.randn(rows, n), torch.randint(rows, (count,))
        out = torch.empty(count, n)
        ours = k.take(w, index, 0, out)
        compare("embedding", ours, (out,), (w[index],))
        yield f"embedding {rows}x{n} [{count}]", ours, lambda w=w, index=index: F.embedding(index, w)
        dw, dout = torch.zeros(rows, n), torch.randn(count, n)
        ours = k.index_add(index, dout, 0, dw)
        compare("index_add", ours, (dw,), (torch.zeros(rows, n).index_add_(0, index, dout),), 1e-5)
        yield (
            f"index_add {rows}x{n} [{count}]",
            ours,
            lambda dw=dw, index=index, dout=dout: dw.index_add_(0, index, dout),
        )
    x, index = torch.randn(1000, 1000), torch.randint(1000, (1000, 1000))
    out = torch.empty(1000, 1000)
    for dim in (0, 1):
        ours = k.take_along(x, index, dim, out)
        compare("gather", ours, (out,), (x.gather(dim, index),))
        yield f"gather 1000x1000 dim {dim}", ours, lambda x=x, index=index, dim=dim: x.gather(dim, index)
    base, index, updates = torch.zeros(1000), torch.randint(1000, (100000,)), torch.randn(100000)
    yield (
        "scatter_add 100000 to 1000",
        k.index_add(index, updates, 0, base),
        lambda: base.index_add_(0, index, updates),
    )


def orders(k: Rows) -> Iterator[Case]:
    for shape, dtype in (
        ((1, 1000000), F32),
        ((1000, 1000), F32),
        ((10000, 64), F32),
        ((100, 10000), torch.int64),
    ):
        x = torch.randn(*shape) if dtype == F32 else torch.randint(1 << 40, shape)
        values, positions = torch.empty_like(x), torch.empty(shape, dtype=torch.int64)
        ours = k.sort(x, values, positions)
        compare("sort", ours, (values, positions), x.sort(dim=-1, stable=True))
        yield f"sort {shape} {dtype}".replace("torch.", ""), ours, lambda x=x: x.sort(dim=-1, stable=True)
    for shape, count in (((64, 50257), 50), ((1000, 1000), 5), ((1000, 1000), 500)):
        x = torch.randn(*shape)
        values, positions = torch.empty(shape[0], count), torch.empty(shape[0], count, dtype=torch.int64)
        ours = k.topk(x, count, values, positions)
        compare("topk", ours, (values,), (x.topk(count)[0],))
        yield f"topk {shape} {count}", ours, lambda x=x, count=count: x.topk(count)
    x = torch.randn(1000, 1000)
    out, positions = torch.empty_like(x), torch.empty(1000, dtype=torch.int64)
    for dim in (0, 1):
        ours = k.arg_max(x, dim, positions)
        compare("argmax", ours, (positions,), (x.argmax(dim),))
        yield f"argmax 1000x1000 dim {dim}", ours, lambda dim=dim: x.argmax(dim)
        ours = k.cumsum(x, dim, out)
        compare("cumsum", ours, (out,), (x.cumsum(dim),), 1e-4)
        yield f"cumsum 1000x1000 dim {dim}", ours, lambda dim=dim: x.cumsum(dim)


def pools(k: Rows) -> Iterator[Case]:
    for shape, size, stride, padding in (
        ((8, 64, 112, 112), 3, 2, 1),
        ((16, 32, 28, 28), 2, 2, 0),
        ((8, 64, 32, 32), 3, 1, 1),
    ):
        x = torch.randn(*shape)
        expected, at = F.max_pool2d(x, size, stride, padding, return_indices=True)
        out, index = torch.empty_like(expected), torch.empty_like(at)
        ours = k.pool2d("tn_window_max_pool", x, out, size, stride, padding, index)
        compare("max_pool", ours, (out, index), (expected, at))
        name = f"{shape} {size} step {stride}"
        yield (
            f"max_pool {name}",
            ours,
            lambda x=x, a=(size, stride, padding): F.max_pool2d(x, *a, return_indices=True),
        )
        ours = k.pool2d("tn_window_avg_pool", x, out, size, stride, padding)
        compare("avg_pool", ours, (out,), (F.avg_pool2d(x, size, stride, padding),), 1e-6)
        yield f"avg_pool {name}", ours, lambda x=x, a=(size, stride, padding): F.avg_pool2d(x, *a)


def attentions(k: Rows) -> Iterator[Case]:
    for b, h, hk, length, length_kv, size, causal, dtype, interleaved in (
        (1, 12, 12, 128, 128, 64, False, F32, False),
        (1, 12, 12, 512, 512, 64, True, F32, True),
        (4, 12, 12, 128, 128, 64, True, F32, True),
        (1, 8, 8, 1024, 1024, 128, False, F32, False),
        (1, 12, 12, 256, 256, 64, True, BF16, True),
        (1, 12, 12, 1, 512, 64, False, F32, False),
        (8, 4, 4, 32, 32, 8, True, F32, False),
    ):

        def heads(
            count: int,
            rows: int,
            b: int = b,
            size: int = size,
            dtype: torch.dtype = dtype,
            interleaved: bool = interleaved,
        ) -> torch.Tensor:
            x = torch.randn(b, rows, count, size).transpose(1, 2) if interleaved else torch.randn(b, count, rows, size)
            return x.to(dtype).requires_grad_()

        q, key, v = heads(h, length), heads(hk, length_kv), heads(hk, length_kv)
        expected = F.scaled_dot_product_attention(q, key, v, is_causal=causal)
        out, lse = torch.empty_like(q), torch.empty(b, h, length)
        a, ours = k.attention(q, key, v, causal, out, lse)
        bound = 2e-2 if dtype == BF16 else 1e-5
        compare("attention", ours, (out,), (expected,), bound)
        name = f"b{b} h{h} {length}x{length_kv} e{size} {'causal ' if causal else ''}{dtype}".replace("torch.", "")

        def forward(q: torch.Tensor = q, key: torch.Tensor = key, v: torch.Tensor = v, causal: bool = causal) -> object:
            with torch.no_grad():
                return F.scaled_dot_product_attention(q, key, v, is_causal=causal)

        yield f"attention {name}", ours, forward
        dout, grads = torch.randn_like(expected), tuple(torch.empty_like(x) for x in (q, key, v))
        ours = k.attention_backward(a, out, dout, lse, grads)

        def backward(y: torch.Tensor = expected, inputs: tuple = (q, key, v), dout: torch.Tensor = dout) -> tuple:
            return torch.autograd.grad(y, inputs, dout, retain_graph=True)

        compare("attention_backward", ours, grads, backward(), bound * 5)
        yield f"attention_backward {name}", ours, backward


GROUPS = {
    "copy": copies,
    "softmax": softmaxes,
    "norm": norms,
    "index": indexing,
    "order": orders,
    "pool": pools,
    "attention": attentions,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("lib", nargs="?", default=os.environ.get("TN_BENCH_LIB", "build/python/torch_neuronx/libtn.so"))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--only", default=",".join(GROUPS))
    args = parser.parse_args()
    torch.manual_seed(0)
    for threads in (int(t) for t in args.threads.split(",")):
        torch.set_num_threads(threads)
        kernels = Rows(Lib(args.lib, threads))
        for group in args.only.split(","):
            ratios: list[float] = []
            for name, ours, theirs in GROUPS[group](kernels):
                a, b = race(ours, theirs, rounds=9)
                ratios.append(b / a)
                print(f"{threads} {name:52} {a * 1e6:10.1f} {b * 1e6:10.1f} {b / a:6.2f}", flush=True)
            print(
                f"{threads} {group}: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
