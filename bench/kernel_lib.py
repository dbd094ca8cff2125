"""ctypes view of the matrix product and convolution kernels in libtn, and timing beside torch in one run."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable

import torch

DTYPES = {
    torch.bool: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.uint8: 5,
    torch.float16: 9,
    torch.bfloat16: 10,
    torch.float32: 11,
    torch.float64: 12,
    torch.complex64: 13,
}
I64x4 = ctypes.c_int64 * 4


class Gemm(ctypes.Structure):
    """tn_gemm_t of src/kernels/gemm.h."""

    _fields_ = [
        ("dtype", ctypes.c_int),
        ("out_dtype", ctypes.c_int),
        ("batch_rank", ctypes.c_int),
        ("batch_dims", I64x4),
        ("m", ctypes.c_int64),
        ("n", ctypes.c_int64),
        ("k", ctypes.c_int64),
        ("a", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("c", ctypes.c_void_p),
        ("a_batch", I64x4),
        ("a_row", ctypes.c_int64),
        ("a_col", ctypes.c_int64),
        ("b_batch", I64x4),
        ("b_row", ctypes.c_int64),
        ("b_col", ctypes.c_int64),
        ("c_batch", I64x4),
        ("c_row", ctypes.c_int64),
        ("c_col", ctypes.c_int64),
        ("alpha", ctypes.c_float),
        ("beta", ctypes.c_float),
        ("addend", ctypes.c_void_p),
        ("addend_batch", I64x4),
        ("addend_row", ctypes.c_int64),
        ("addend_col", ctypes.c_int64),
        ("bias", ctypes.c_void_p),
        ("bias_stride", ctypes.c_int64),
        ("row_bias", ctypes.c_void_p),
        ("row_bias_stride", ctypes.c_int64),
        ("activation", ctypes.c_int),
    ]


I64x3 = ctypes.c_int64 * 3


class Convolve(ctypes.Structure):
    """tn_convolve_t of src/kernels/conv.h."""

    _fields_ = [
        ("dtype", ctypes.c_int),
        ("out_dtype", ctypes.c_int),
        ("spatial", ctypes.c_int),
        *((name, ctypes.c_int64) for name in ("batch", "groups", "in_channels", "out_channels")),
        *((name, I64x3) for name in ("in_dims", "kernel", "out_dims", "stride", "low", "in_dilation", "dilation")),
        ("in_", ctypes.c_void_p),
        ("in_batch", ctypes.c_int64),
        ("in_group", ctypes.c_int64),
        ("in_channel", ctypes.c_int64),
        ("in_strides", I64x3),
        ("weight", ctypes.c_void_p),
        ("weight_group", ctypes.c_int64),
        ("weight_out", ctypes.c_int64),
        ("weight_in", ctypes.c_int64),
        ("weight_strides", I64x3),
        ("out", ctypes.c_void_p),
        ("out_batch", ctypes.c_int64),
        ("out_group", ctypes.c_int64),
        ("out_channel", ctypes.c_int64),
        ("out_strides", I64x3),
        ("bias", ctypes.c_void_p),
        ("bias_group", ctypes.c_int64),
        ("bias_stride", ctypes.c_int64),
        ("activation", ctypes.c_int),
    ]


class Lib:
    """libtn with a pool of |threads| threads."""

    def __init__(self, path: str, threads: int) -> None:
        self.lib = ctypes.CDLL(os.path.abspath(path))
        self.threads = threads
        self.lib.tn_gemm_workspace.restype = ctypes.c_size_t
        self.lib.tn_pool_create.restype = ctypes.c_void_p
        self.pool = ctypes.c_void_p()
        assert not self.lib.tn_pool_create(threads, ctypes.byref(self.pool))

    def gemm(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Callable[[], None]:
        """A call that computes c = a @ b for [batch.., m, k] @ [batch.., k, n] of any strides."""
        g = Gemm(
            dtype=DTYPES[a.dtype],
            out_dtype=DTYPES[c.dtype],
            batch_rank=c.dim() - 2,
            m=c.shape[-2],
            n=c.shape[-1],
            k=a.shape[-1],
            a=a.data_ptr(),
            b=b.data_ptr(),
            c=c.data_ptr(),
        )
        for name, x in (("a", a), ("b", b), ("c", c)):
            setattr(g, name + "_row", x.stride(-2))
            setattr(g, name + "_col", x.stride(-1))
            for i in range(c.dim() - 2):
                getattr(g, name + "_batch")[i] = x.stride(i)
                g.batch_dims[i] = c.shape[i]
        size = self.lib.tn_gemm_workspace(ctypes.byref(g), self.threads)
        workspace = torch.empty(size + 64, dtype=torch.uint8)
        at = (workspace.data_ptr() + 63) & ~63
        run, ref, pool, space = self.lib.tn_gemm_run, ctypes.byref(g), self.pool, ctypes.c_void_p(at)

        def call(keep: tuple = (g, workspace, a, b, c)) -> None:
            run(ref, pool, space)

        return call

    def conv(
        self,
        x: torch.Tensor,
        w: torch.Tensor,
        y: torch.Tensor,
        stride: int,
        pad: int,
        groups: int,
        kind: str = "forward",
    ) -> Callable[[], None]:
        """A call of the convolution y = conv(x, w) ("forward"), or of its gradient written to x ("data") or w
        ("weight"), with the same stride and padding on every axis."""
        spatial = x.dim() - 2
        f = Convolve(
            dtype=DTYPES[x.dtype],
            out_dtype=DTYPES[x.dtype],
            spatial=spatial,
            batch=x.shape[0],
            groups=groups,
            in_channels=x.shape[1] // groups,
            out_channels=w.shape[0] // groups,
        )
        for a in range(spatial):
            f.in_dims[a], f.kernel[a], f.out_dims[a] = x.shape[a + 2], w.shape[a + 2], y.shape[a + 2]
            f.stride[a], f.low[a], f.in_dilation[a], f.dilation[a] = stride, pad, 1, 1
            f.in_strides[a], f.weight_strides[a], f.out_strides[a] = (
                x.stride(a + 2),
                w.stride(a + 2),
                y.stride(a + 2),
            )
        f.in_, f.in_batch, f.in_channel, f.in_group = (
            x.data_ptr(),
            x.stride(0),
            x.stride(1),
            x.stride(1) * f.in_channels,
        )
        f.weight, f.weight_out, f.weight_in = w.data_ptr(), w.stride(0), w.stride(1)
        f.weight_group = w.stride(0) * f.out_channels
        f.out, f.out_batch, f.out_channel = y.data_ptr(), y.stride(0), y.stride(1)
        f.out_group = y.stride(1) * f.out_channels
        if kind != "forward":
            derive = self.lib.tn_conv_backward_data if kind == "data" else self.lib.tn_conv_backward_weight
            derive.restype = Convolve
            derive.argtypes = [ctypes.POINTER(Convolve), ctypes.c_void_p, ctypes.c_void_p]
            f = derive(ctypes.byref(f), y.data_ptr(), x.data_ptr() if kind == "data" else w.data_ptr())
        self.lib.tn_conv_workspace.restype = ctypes.c_size_t
        size = self.lib.tn_conv_workspace(ctypes.byref(f), self.threads)
        workspace = torch.empty(size + 64, dtype=torch.uint8)
        at = (workspace.data_ptr() + 63) & ~63
        run, ref, pool, space = self.lib.tn_conv_run, ctypes.byref(f), self.pool, ctypes.c_void_p(at)

        def call(keep: tuple = (f, workspace, x, w, y)) -> None:
            run(ref, pool, space)

        return call


def race(
    ours: Callable[[], None], theirs: Callable[[], object], rounds: int = 15, budget: float = 0.02
) -> tuple[float, float]:
    """Seconds per call of both, the minimum of alternating rounds.

    With one thread, time is CPU time of the caller, so that other processes disturb less; else wall time.
    """
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    for call in (ours, theirs):
        call()
        call()
    counts = []
    for call in (ours, theirs):
        start = clock()
        call()
        counts.append(max(1, int(budget / 4 / max(clock() - start, 1e-6))))
    best = [1e9, 1e9]
    for _ in range(rounds):
        for i, call in enumerate((ours, theirs)):
            start = clock()
            for _ in range(counts[i]):
                call()
            best[i] = min(best[i], (clock() - start) / counts[i])
    return best[0], best[1]
