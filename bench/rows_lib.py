"""Row, copy, index, order, window and attention kernels of libtn, called through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch
from kernel_lib import DTYPES, Lib

I64 = ctypes.c_int64
I64x3 = I64 * 3
I64x16 = I64 * 16
NONE = 255


class View(ctypes.Structure):
    """tn_view_t of src/kernels/view.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int32),
        ("dims", I64x16),
        ("strides", I64x16),
    ]


class Softmax(ctypes.Structure):
    """tn_softmax_t of src/kernels/rows.h."""

    _fields_ = [
        ("dtype", ctypes.c_int),
        ("is_log", ctypes.c_bool),
        ("outer", I64),
        ("n", I64),
        ("inner", I64),
        ("x_stride", I64),
        ("out_stride", I64),
    ]


class LayerNorm(ctypes.Structure):
    """tn_layer_norm_t."""

    _fields_ = [
        ("dtype", ctypes.c_int),
        ("param_dtype", ctypes.c_int),
        ("stat_dtype", ctypes.c_int),
        ("is_rms", ctypes.c_bool),
        ("rows", I64),
        ("n", I64),
        ("x_stride", I64),
        ("out_stride", I64),
        ("epsilon", ctypes.c_double),
    ]


class BatchNorm(ctypes.Structure):
    """tn_batch_norm_t."""

    _fields_ = [
        ("dtype", ctypes.c_int),
        ("param_dtype", ctypes.c_int),
        ("stat_dtype", ctypes.c_int),
        ("n", I64),
        ("c", I64),
        ("inner", I64),
        ("epsilon", ctypes.c_double),
        ("momentum", ctypes.c_double),
        ("out_var", ctypes.c_void_p),
    ]


class Pooling(ctypes.Structure):
    """tn_pooling_t of src/kernels/window.h."""

    _fields_ = [
        ("dtype", ctypes.c_int),
        ("spatial", ctypes.c_int),
        ("planes", I64),
        ("size", I64x3),
        ("out_size", I64x3),
        ("kernel", I64x3),
        ("stride", I64x3),
        ("padding", I64x3),
        ("dilation", I64x3),
        ("count_include_pad", ctypes.c_bool),
        ("divisor", I64),
    ]


class Attention(ctypes.Structure):
    """tn_attention_t of src/kernels/attention.h."""

    _fields_ = [
        ("dtype", ctypes.c_int),
        ("batch", I64),
        ("heads", I64),
        ("heads_kv", I64),
        ("length", I64),
        ("length_kv", I64),
        ("size", I64),
        ("size_v", I64),
        ("q", ctypes.c_void_p),
        ("k", ctypes.c_void_p),
        ("v", ctypes.c_void_p),
        ("q_stride", I64x3),
        ("k_stride", I64x3),
        ("v_stride", I64x3),
        ("mask", ctypes.c_void_p),
        ("mask_dtype", ctypes.c_int),
        ("mask_stride", I64 * 4),
        ("scale", ctypes.c_double),
        ("is_causal", ctypes.c_bool),
        ("dropout", ctypes.c_double),
        ("seed", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
    ]


class AttentionGrad(ctypes.Structure):
    """tn_attention_grad_t."""

    _fields_ = [
        ("out", ctypes.c_void_p),
        ("dout", ctypes.c_void_p),
        ("lse", ctypes.c_void_p),
        ("out_stride", I64x3),
        ("dout_stride", I64x3),
        ("dq", ctypes.c_void_p),
        ("dk", ctypes.c_void_p),
        ("dv", ctypes.c_void_p),
        ("dq_stride", I64x3),
        ("dk_stride", I64x3),
        ("dv_stride", I64x3),
    ]


def view(x: torch.Tensor) -> View:
    return View(x.data_ptr(), DTYPES[x.dtype], x.dim(), I64x16(*x.shape), I64x16(*x.stride()))


def pointer(x: torch.Tensor | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.data_ptr() if x is not None else None)


class Rows:
    """Calls of the kernels; each method returns a function without arguments that runs one."""

    def __init__(self, lib: Lib) -> None:
        self.lib = lib.lib
        self.pool = lib.pool
        self.threads = lib.threads
        for name in (
            "tn_attention_forward_workspace",
            "tn_attention_backward_workspace",
            "tn_rows_layer_norm_backward_workspace",
            "tn_order_sort_workspace",
        ):
            getattr(self.lib, name).restype = ctypes.c_size_t
        self.keep: list[object] = []  # what running calls point at

    def space(self, size: int) -> ctypes.c_void_p:
        memory = torch.empty(size + 64, dtype=torch.uint8)
        self.keep.append(memory)
        return ctypes.c_void_p((memory.data_ptr() + 63) & ~63)

    def views(self, *tensors: torch.Tensor | None) -> list[object]:
        made = [ctypes.byref(view(x)) if x is not None else None for x in tensors]
        self.keep.append((made, tensors))
        return made

    def bind(self, name: str, *args: object) -> Callable[[], object]:
        run, pool = getattr(self.lib, name), self.pool
        return lambda: run(pool, *args)

    def copy(self, x: torch.Tensor, out: torch.Tensor) -> Callable[[], object]:
        return self.bind("tn_copy_strided", *self.views(x, out))

    def softmax(self, x: torch.Tensor, out: torch.Tensor, is_log: bool = False) -> Callable[[], object]:
        n = x.shape[-1]
        s = Softmax(DTYPES[x.dtype], is_log, x.numel() // n, n, 1, n, n)
        return self.bind("tn_rows_softmax", ctypes.byref(s), pointer(x), pointer(out))

    def layer_norm(
        self,
        x: torch.Tensor,
        w: torch.Tensor,
        b: torch.Tensor,
        out: torch.Tensor,
        mean: torch.Tensor,
        rstd: torch.Tensor,
    ) -> Callable[[], object]:
        s = self.norm_shape(x, w)
        return self.bind("tn_rows_layer_norm", ctypes.byref(s), *map(pointer, (x, w, b, out, mean, rstd)))

    def norm_shape(self, x: torch.Tensor, w: torch.Tensor) -> LayerNorm:
        n = x.shape[-1]
        return LayerNorm(DTYPES[x.dtype], DTYPES[w.dtype], DTYPES[torch.float32], False, x.numel() // n, n, n, n, 1e-5)

    def layer_norm_backward(
        self,
        dout: torch.Tensor,
        x: torch.Tensor,
        mean: torch.Tensor,
        rstd: torch.Tensor,
        w: torch.Tensor,
        dx: torch.Tensor,
        dw: torch.Tensor,
        db: torch.Tensor,
    ) -> Callable[[], object]:
        s = self.norm_shape(x, w)
        space = self.space(self.lib.tn_rows_layer_norm_backward_workspace(ctypes.byref(s)))
        return self.bind(
            "tn_rows_layer_norm_backward",
            ctypes.byref(s),
            *map(pointer, (dout, x, mean, rstd, w)),
            space,
            *map(pointer, (dx, dw, db)),
        )

    def batch_norm(
        self,
        x: torch.Tensor,
        w: torch.Tensor,
        b: torch.Tensor,
        out: torch.Tensor,
        mean: torch.Tensor,
        invstd: torch.Tensor,
    ) -> Callable[[], object]:
        f32 = DTYPES[torch.float32]
        s = BatchNorm(DTYPES[x.dtype], f32, f32, x.shape[0], x.shape[1], x[0, 0].numel(), 1e-5, 0.1, None)
        return self.bind(
            "tn_rows_batch_norm_train",
            ctypes.byref(s),
            *map(pointer, (x, w, b, None, None, out, mean, invstd, None, None)),
        )

    def take(self, x: torch.Tensor, index: torch.Tensor, dim: int, out: torch.Tensor) -> Callable[[], object]:
        a, i, o = self.views(x, index, out)
        return self.bind("tn_index_take", a, i, dim, 1, o)

    def take_along(self, x: torch.Tensor, index: torch.Tensor, dim: int, out: torch.Tensor) -> Callable[[], object]:
        a, i, o = self.views(x, index, out)
        return self.bind("tn_index_take_along", a, i, dim, 1, o)

    def index_add(
        self, index: torch.Tensor, updates: torch.Tensor, dim: int, out: torch.Tensor
    ) -> Callable[[], object]:
        i, u, o = self.views(index, updates, out)
        return self.bind("tn_index_put", i, u, dim, 0, 1, o)

    def sort(self, x: torch.Tensor, values: torch.Tensor, positions: torch.Tensor) -> Callable[[], object]:
        a, v, p = self.views(x, values, positions)
        space = self.space(self.lib.tn_order_sort_workspace(a, x.dim() - 1, self.threads))
        return self.bind("tn_order_sort", a, x.dim() - 1, False, space, v, p)

    def topk(self, x: torch.Tensor, k: int, values: torch.Tensor, positions: torch.Tensor) -> Callable[[], object]:
        a, v, p = self.views(x, values, positions)
        space = self.space(self.lib.tn_order_sort_workspace(a, x.dim() - 1, self.threads))
        return self.bind("tn_order_topk", a, x.dim() - 1, I64(k), True, space, v, p)

    def arg_max(self, x: torch.Tensor, dim: int, positions: torch.Tensor) -> Callable[[], object]:
        a, p = self.views(x, positions)
        return self.bind("tn_order_arg_reduce", 2, a, dim, None, p)

    def cumsum(self, x: torch.Tensor, dim: int, out: torch.Tensor) -> Callable[[], object]:
        a, o = self.views(x, out)
        return self.bind("tn_order_scan", 0, a, dim, False, False, o, None)

    def pool2d(
        self,
        name: str,
        x: torch.Tensor,
        out: torch.Tensor,
        kernel: int,
        stride: int,
        padding: int,
        *rest: torch.Tensor,
    ) -> Callable[[], object]:
        s = Pooling(
            DTYPES[x.dtype],
            2,
            x.shape[0] * x.shape[1],
            I64x3(*x.shape[2:]),
            I64x3(*out.shape[2:]),
            I64x3(kernel, kernel),
            I64x3(stride, stride),
            I64x3(padding, padding),
            I64x3(1, 1),
            True,
            0,
        )
        return self.bind(name, ctypes.byref(s), *map(pointer, (x, out, *rest)))

    def attention(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        is_causal: bool,
        out: torch.Tensor,
        lse: torch.Tensor,
    ) -> tuple[Attention, Callable[[], object]]:
        a = Attention(
            DTYPES[q.dtype],
            q.shape[0],
            q.shape[1],
            k.shape[1],
            q.shape[2],
            k.shape[2],
            q.shape[3],
            v.shape[3],
            q.data_ptr(),
            k.data_ptr(),
            v.data_ptr(),
            I64x3(*q.stride()[:3]),
            I64x3(*k.stride()[:3]),
            I64x3(*v.stride()[:3]),
            None,
            NONE,
            (I64 * 4)(),
            0.0,
            is_causal,
            0.0,
            0,
            0,
        )
        space = self.space(self.lib.tn_attention_forward_workspace(ctypes.byref(a), self.threads))
        return a, self.bind(
            "tn_attention_forward",
            ctypes.byref(a),
            space,
            pointer(out),
            I64x3(*out.stride()[:3]),
            pointer(lse),
        )

    def attention_backward(
        self,
        a: Attention,
        out: torch.Tensor,
        dout: torch.Tensor,
        lse: torch.Tensor,
        grads: tuple[torch.Tensor, ...],
    ) -> Callable[[], object]:
        g = AttentionGrad(
            out.data_ptr(),
            dout.data_ptr(),
            lse.data_ptr(),
            I64x3(*out.stride()[:3]),
            I64x3(*dout.stride()[:3]),
            *(x.data_ptr() for x in grads),
            *(I64x3(*x.stride()[:3]) for x in grads),
        )
        space = self.space(self.lib.tn_attention_backward_workspace(ctypes.byref(a), self.threads))
        return self.bind("tn_attention_backward", ctypes.byref(a), ctypes.byref(g), space)
