"""Generated kernels beside torch CPU (one thread): time to generate, to load from disk, and bandwidth.

Usage: python bench/codegen.py [--lib path/to/libtn.so]. Ratios are of one run; absolute figures vary with load.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch


class Args(ctypes.Structure):
    _fields_ = [
        ("ptr", ctypes.c_void_p),
        ("stride", ctypes.c_void_p),
        ("dim", ctypes.c_void_p),
        ("scalar", ctypes.c_void_p),
    ]


STATS = (
    "memory_hits",
    "disk_hits",
    "generated",
    "failures",
    "bad_entries",
    "generate_ns",
    "load_ns",
    "entries",
    "code_bytes",
)


class Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in STATS]


FN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Kernels:
    """The kernel cache of libtn."""

    def __init__(self, path: str) -> None:
        self.lib = ctypes.CDLL(path)
        self.lib.tn_options_reread()  # the package may have loaded the library before the cache folder was chosen
        self.lib.tn_kernel_program_parse.restype = ctypes.c_void_p
        self.lib.tn_kernel_lookup.restype = ctypes.c_void_p
        self.lib.tn_codegen_open.restype = ctypes.c_void_p
        self.lib.tn_status_message.restype = ctypes.c_char_p
        self.lib.tn_status_message.argtypes = [ctypes.c_void_p]
        self.check(self.lib.tn_codegen_open())

    def check(self, status: int | None) -> None:
        if status:
            raise RuntimeError(self.lib.tn_status_message(status).decode())

    def stats(self) -> Stats:
        stats = Stats()
        self.lib.tn_kernel_cache_stats(ctypes.byref(stats))
        return stats

    def lookup(self, text: str) -> tuple[Callable, float]:
        """The kernel of a program in text form, and the seconds its lookup took."""
        program = ctypes.create_string_buffer(8192)
        self.check(self.lib.tn_kernel_program_parse(text.encode(), program))
        pointer = ctypes.c_void_p()
        start = time.perf_counter()
        self.check(self.lib.tn_kernel_lookup(program, ctypes.byref(pointer)))
        return FN(pointer.value), time.perf_counter() - start


def bind(tensors: list[torch.Tensor], strides: list[list[int]], dims: list[int]) -> tuple[Args, list]:
    """Argument block; |strides| in bytes, one list per operand. The second result keeps its memory alive."""
    ptr = (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
    flat = [s for row in strides for s in row]
    stride, dim = (ctypes.c_int64 * len(flat))(*flat), (ctypes.c_int64 * len(dims))(*dims)
    args = Args(*[ctypes.cast(x, ctypes.c_void_p) for x in (ptr, stride, dim)], None)
    return args, [tensors, ptr, stride, dim]


def best(run: Callable[[], object], seconds: float = 0.3) -> float:
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def chain(loops: str, dtype: str, inputs: int, body: list[str], phase: str = "phase loop") -> str:
    """Elementwise program: |inputs| contiguous operands %0.., |body| of 'op operands', the last value is stored."""
    lines = [loops, phase]
    lines += [f"operand {i} {dtype} input contiguous" for i in range(inputs)]
    lines += [f"operand {inputs} {dtype} output contiguous"]
    lines += [f"%{i} = load.{i} {dtype} phase 0" for i in range(inputs)]
    for i, line in enumerate(body):
        op, *refs = line.split()
        lines.append(f"%{inputs + i} = {op} {dtype} phase 0 {' '.join(refs)}")
    return "\n".join([*lines, f"store.{inputs} phase 0 %{inputs + len(body) - 1}"])


ROW_SUM = """loops 1 1 vector 1
phase loop
phase point
operand 0 {0} input contiguous
operand 1 {0} output scalar
%0 = load.0 {0} phase 0
%1 = acc.{1} {0} phase 0 %0
store.1 phase 1 %1"""
COLUMN_SUM = """loops 1 1 vector 0
phase loop
phase point
operand 0 {0} input contiguous
operand 1 {0} output contiguous
%0 = load.0 {0} phase 0
%1 = acc.{1} {0} phase 0 %0
store.1 phase 1 %1"""
SOFTMAX = """loops 1 1 vector 1
phase loop
phase loop
phase loop
operand 0 f32 input contiguous
operand 1 f32 output contiguous
%0 = load.0 f32 phase 0
%1 = acc.max f32 phase 0 %0
%2 = load.0 f32 phase 1
%3 = stablehlo.subtract f32 phase 1 %2 %1
%4 = stablehlo.exponential f32 phase 1 %3
store.1 phase 1 %4
%6 = acc.sum f32 phase 1 %4
%7 = load.1 f32 phase 2
%8 = stablehlo.divide f32 phase 2 %7 %6
store.1 phase 2 %8"""
# gelu(x + y) with tanh: x + y, then 0.5 v (1 + tanh(v (0.797 + 0.0356 v^2))) with constants made from operands
GELU = [
    "stablehlo.add %0 %1",
    "stablehlo.multiply %2 %2",
    "tn.fma %3 %3 %2",
    "stablehlo.multiply %4 %2",
    "stablehlo.tanh %5",
    "tn.fma %6 %2 %2",
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", default=os.environ.get("TN_BENCH_LIB", "build/python/torch_neuronx/libtn.so"))
    path = str(Path(parser.parse_args().lib).resolve())
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCH_NEURONX_NEFF_CACHE_DIR"] = folder
        run(Kernels(path))


def run(kernels: Kernels) -> None:
    rows: list[tuple] = []
    n = 16384
    x, y = torch.randn(n), torch.rand(n) + 0.5
    out = torch.empty(n)
    flat = "loops 1 0 vector 0"
    exp6 = ["stablehlo.multiply %0 %1"]
    for _ in range(6):
        last = len(exp6) + 1
        exp6 += [
            f"stablehlo.exponential %{last}",
            f"tn.fma %{last + 1} %0 %1",
            f"stablehlo.subtract %{last + 2} %1",
            f"stablehlo.multiply %{last + 3} %1",
        ]
    half = {dtype: (x.to(dtype), y.to(dtype), out.to(dtype)) for dtype in (torch.bfloat16, torch.float16)}
    xd, yd, outd = x.double(), y.double(), out.double()
    xi, yi, outi = (x * 100).int(), (y * 7).int() + 1, out.int()
    flats = [
        (
            "add f32",
            chain(flat, "f32", 2, ["stablehlo.add %0 %1"]),
            (x, y, out),
            lambda: torch.add(x, y, out=out),
        ),
        (
            "add bf16",
            chain(flat, "bf16", 2, ["stablehlo.add %0 %1"]),
            half[torch.bfloat16],
            lambda: torch.add(*half[torch.bfloat16][:2], out=half[torch.bfloat16][2]),
        ),
        (
            "add f16",
            chain(flat, "f16", 2, ["stablehlo.add %0 %1"]),
            half[torch.float16],
            lambda: torch.add(*half[torch.float16][:2], out=half[torch.float16][2]),
        ),
        (
            "add f64",
            chain(flat, "f64", 2, ["stablehlo.add %0 %1"]),
            (xd, yd, outd),
            lambda: torch.add(xd, yd, out=outd),
        ),
        (
            "mul i32",
            chain(flat, "i32", 2, ["stablehlo.multiply %0 %1"]),
            (xi, yi, outi),
            lambda: torch.mul(xi, yi, out=outi),
        ),
        (
            "div i32",
            chain(flat, "i32", 2, ["stablehlo.divide %0 %1"]),
            (xi, yi, outi),
            lambda: torch.div(xi, yi, rounding_mode="trunc", out=outi),
        ),
        (
            "max f32",
            chain(flat, "f32", 2, ["stablehlo.maximum %0 %1"]),
            (x, y, out),
            lambda: torch.maximum(x, y, out=out),
        ),
        (
            "exp f32",
            chain(flat, "f32", 2, ["stablehlo.exponential %0"]),
            (x, y, out),
            lambda: torch.exp(x, out=out),
        ),
        (
            "tanh f32",
            chain(flat, "f32", 2, ["stablehlo.tanh %0"]),
            (x, y, out),
            lambda: torch.tanh(x, out=out),
        ),
        ("sin f32", chain(flat, "f32", 2, ["stablehlo.sine %0"]), (x, y, out), lambda: torch.sin(x, out=out)),
        ("log f32", chain(flat, "f32", 2, ["stablehlo.log %1"]), (x, y, out), lambda: torch.log(y, out=out)),
        ("erf f32", chain(flat, "f32", 2, ["chlo.erf %0"]), (x, y, out), lambda: torch.erf(x, out=out)),
        (
            "pow f32",
            chain(flat, "f32", 2, ["stablehlo.power %1 %0"]),
            (x, y, out),
            lambda: torch.pow(y, x, out=out),
        ),
        (
            "add + gelu",
            chain(flat, "f32", 2, GELU),
            (x, y, out),
            lambda: torch.nn.functional.gelu(x + y, approximate="tanh"),
        ),
        (
            "gelu bf16",
            chain(flat, "bf16", 2, GELU),
            half[torch.bfloat16],
            lambda: torch.nn.functional.gelu(half[torch.bfloat16][0] + half[torch.bfloat16][1], approximate="tanh"),
        ),
        ("30 ops, 6 exp", chain(flat, "f32", 2, exp6), (x, y, out), None),
    ]
    for name, text, tensors, reference in flats:
        size = tensors[0].element_size()
        args, keep = bind(list(tensors), [[size]] * 3, [n])
        kernel, seconds = kernels.lookup(text)
        mine = best(lambda: kernel(ctypes.addressof(args), 0, 1, 0, n))
        rows.append((name, seconds, mine, best(reference) if reference else 0.0, 3 * size * n))
        del keep
    for dtype, tdtype in (("f32", torch.float32), ("bf16", torch.bfloat16), ("i64", torch.int64)):
        size = torch.empty(0, dtype=tdtype).element_size()
        for shape in ((64, 1024), (64, 1000), (512, 64)):
            m, k = shape
            z = torch.randn(shape).mul(9).to(tdtype)
            for name, text, strides, dims, points, dim in (
                ("row sum", ROW_SUM, [[k * size, size], [size, 0]], [m, k], m, 1),
                ("column sum", COLUMN_SUM, [[size, k * size], [size, 0]], [k, m], 1, 0),
            ):
                r = torch.empty(max(m, k), dtype=tdtype)
                args, keep = bind([z, r], strides, dims)
                kernel, seconds = kernels.lookup(text.format(dtype, "sum"))
                mine = best(lambda: kernel(ctypes.addressof(args), 0, points, 0, dims[0]))
                rows.append(
                    (
                        f"{name} {dtype} {m}x{k}",
                        seconds,
                        mine,
                        best(lambda: torch.sum(z, dim, dtype=tdtype)),
                        size * m * k,
                    )
                )
                del keep
    z, r = torch.randn(64, 1024), torch.empty(64, 1024)
    args, keep = bind([z, r], [[4096, 4], [4096, 4]], [64, 1024])
    kernel, seconds = kernels.lookup(SOFTMAX)
    mine = best(lambda: kernel(ctypes.addressof(args), 0, 64, 0, 0))
    assert torch.allclose(r, torch.softmax(z, 1), rtol=1e-5, atol=1e-7)
    rows.append(("softmax 64x1024", seconds, mine, best(lambda: torch.softmax(z, 1)), 2 * 4 * 65536))
    del keep

    print(f"{'kernel':24} {'generate ms':>11} {'us':>8} {'GB/s':>7} {'torch us':>9} {'ratio':>6}")
    for name, seconds, mine, reference, size in rows:
        ratio = f"{mine / reference:6.2f}" if reference else ""
        print(
            f"{name:24} {seconds * 1e3:11.2f} {mine * 1e6:8.2f} {size / mine / 1e9:7.1f} {reference * 1e6:9.2f} {ratio}"
        )
    before = kernels.stats()
    kernels.lib.tn_kernel_cache_forget()
    for _, text, *_ in flats:
        kernels.lookup(text)
    start = time.perf_counter()
    kernels.lib.tn_kernel_cache_forget()
    for _, text, *_ in flats:
        kernels.lookup(text)
    after = kernels.stats()
    print(
        f"generated {before.generated} kernels in {before.generate_ns / before.generated / 1e6:.2f} ms each; "
        f"from disk {(time.perf_counter() - start) / len(flats) * 1e6:.0f} us each (with parsing the text); "
        f"disk hits {after.disk_hits}; {after.code_bytes / (after.disk_hits + before.generated):.0f} bytes each"
    )


if __name__ == "__main__":
    main()
