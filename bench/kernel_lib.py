"""ctypes view of the matrix product and convolution kernels in libtn, and timing beside torch in one run."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable

import torch

DTYPES = {torch.bool: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.uint8: 5,
          torch.float16: 9, torch.bfloat16: 10, torch.float32: 11, torch.float64: 12, torch.complex64: 13}
I64x4 = ctypes.c_int64 * 4


class Gemm(ctypes.Structure):
    """tn_gemm_t of src/kernels/gemm.h."""

    _fields_ = [("dtype", ctypes.c_int), ("out_dtype", ctypes.c_int), ("batch_rank", ctypes.c_int),
                ("batch_dims", I64x4), ("m", ctypes.c_int64), ("n", ctypes.c_int64), ("k", ctypes.c_int64),
                ("a", ctypes.c_void_p), ("b", ctypes.c_void_p), ("c", ctypes.c_void_p),
                ("a_batch", I64x4), ("a_row", ctypes.c_int64), ("a_col", ctypes.c_int64),
                ("b_batch", I64x4), ("b_row", ctypes.c_int64), ("b_col", ctypes.c_int64),
                ("c_batch", I64x4), ("c_row", ctypes.c_int64), ("c_col", ctypes.c_int64),
                ("alpha", ctypes.c_float), ("beta", ctypes.c_float), ("addend", ctypes.c_void_p),
                ("addend_batch", I64x4), ("addend_row", ctypes.c_int64), ("addend_col", ctypes.c_int64),
                ("bias", ctypes.c_void_p), ("bias_stride", ctypes.c_int64),
                ("row_bias", ctypes.c_void_p), ("row_bias_stride", ctypes.c_int64), ("activation", ctypes.c_int)]


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
        g = Gemm(dtype=DTYPES[a.dtype], out_dtype=DTYPES[c.dtype], batch_rank=c.dim() - 2,
                 m=c.shape[-2], n=c.shape[-1], k=a.shape[-1], a=a.data_ptr(), b=b.data_ptr(), c=c.data_ptr())
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


def race(ours: Callable[[], None], theirs: Callable[[], object], rounds: int = 15, budget: float = 0.02
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
