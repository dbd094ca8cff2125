"""Every composite's decomposition against PyTorch on the CPU, through the reference interpreter."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tests.ir.tool import find_tool, run_op

pytestmark = pytest.mark.skipif(find_tool() is None, reason="no tool: build it, or set TN_TOOL")

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12, torch.float16: 2e-3, torch.bfloat16: 2e-2}
LOW = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def attribute(value: float | int | list[int] | bool) -> str:
    if isinstance(value, list):
        return "array<i64: " + ", ".join(map(str, value)) + ">"
    return f"{value:.17e} : f64" if isinstance(value, float) else f"{int(value)} : i64"


def composite(
    name: str, operands: list[torch.Tensor], like: list[torch.Tensor], folder: Path, **attributes
) -> list[torch.Tensor]:
    text = ", ".join(f"{key} = {attribute(value)}" for key, value in attributes.items())
    body = f'stablehlo.composite "tn.{name}" {{operands}} {{{{composite_attributes = {{{{{text}}}}}}}}}'
    return run_op(body, operands, like, folder)


def expect(actual: list[torch.Tensor], expected: list[torch.Tensor], dtype: torch.dtype, factor: float = 1) -> None:
    for a, e in zip(actual, expected, strict=True):
        assert a.dtype == e.dtype and a.shape == e.shape
        torch.testing.assert_close(a, e, rtol=TOLERANCE[dtype] * factor, atol=TOLERANCE[dtype] * factor, equal_nan=True)


def randn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(dtype)


def upcast(t: torch.Tensor) -> torch.Tensor:
    return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize(("shape", "axis"), [((3, 5), 1), ((2, 3, 4), 0), ((4, 0, 2), 1), ((7,), 0), ((0, 3), 1)])
def test_softmax(shape: tuple[int, ...], axis: int, dtype: torch.dtype, tmp_path: Path) -> None:
    x, grad = randn(*shape, dtype=dtype), randn(*shape, dtype=dtype, seed=5)
    for name, forward, backward in (
        ("softmax", torch.softmax, torch.ops.aten._softmax_backward_data),
        ("log_softmax", torch.log_softmax, torch.ops.aten._log_softmax_backward_data),
    ):
        out = forward(x, axis)
        expect(composite(name, [x], [out], tmp_path, axis=axis), [out], dtype)
        dx = backward(grad, out, axis, dtype)
        expect(composite(f"{name}_backward", [grad, out], [dx], tmp_path, axis=axis), [dx], dtype, 2)


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("flags", [0, 1, 3])
@pytest.mark.parametrize(("shape", "axis"), [((4, 6), 1), ((2, 3, 4), 1), ((0, 3), 1)])
def test_layer_norm(shape: tuple[int, ...], axis: int, flags: int, dtype: torch.dtype, tmp_path: Path) -> None:
    x, grad = randn(*shape, dtype=dtype), randn(*shape, dtype=dtype, seed=3)
    weight, bias = randn(*shape[axis:], dtype=dtype, seed=1), randn(*shape[axis:], dtype=dtype, seed=2)
    w, b = (weight if flags & 1 else None), (bias if flags & 2 else None)
    norm = list(shape[axis:])
    out, mean, rstd = torch.native_layer_norm(
        upcast(x), norm, None if w is None else upcast(w), None if b is None else upcast(b), 1e-5
    )
    extra = [t for t in (w, b) if t is not None]
    actual = composite(
        "layer_norm", [x, *extra], [out.to(dtype), mean, rstd], tmp_path, axis=axis, flags=flags, epsilon=1e-5
    )
    expect(actual, [out.to(dtype), mean, rstd], dtype)
    w_up = None if w is None else upcast(w)
    dx, dw, db = torch.ops.aten.native_layer_norm_backward(
        upcast(grad),
        upcast(x),
        norm,
        mean,
        rstd,
        torch.ones(norm, dtype=upcast(x).dtype) if w_up is None else w_up,
        torch.zeros(norm, dtype=upcast(x).dtype),
        [True, True, True],
    )
    expected = [t.to(dtype) for t in (dx, dw, db)]
    actual = composite(
        "layer_norm_backward",
        [grad, x, mean, rstd, *extra[:1]],
        expected,
        tmp_path,
        axis=axis,
        flags=flags & 1,
    )
    expect(actual, expected, dtype, 4)


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("flags", [0, 1])
def test_rms_norm(flags: int, dtype: torch.dtype, tmp_path: Path) -> None:
    x = upcast(randn(3, 2, 5, dtype=dtype)).requires_grad_()
    weight = upcast(randn(5, dtype=dtype, seed=1)).requires_grad_()
    rstd = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
    out = x * rstd * weight if flags else x * rstd
    extra = [weight.detach().to(dtype)] if flags else []
    expected = [out.detach().to(dtype), rstd.detach()]
    expect(
        composite("rms_norm", [x.detach().to(dtype), *extra], expected, tmp_path, axis=2, flags=flags, epsilon=1e-6),
        expected,
        dtype,
    )
    grad = upcast(randn(3, 2, 5, dtype=dtype, seed=9))
    out.backward(grad)
    if flags:
        dweight = weight.grad
    else:
        dweight = (grad * x.detach() * rstd.detach()).sum((0, 1))
    expected = [x.grad.to(dtype), dweight.to(dtype)]
    operands = [grad.to(dtype), x.detach().to(dtype), rstd.detach(), *extra]
    expect(composite("rms_norm_backward", operands, expected, tmp_path, axis=2, flags=flags), expected, dtype, 4)


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("flags", [0, 3])
def test_group_norm(flags: int, dtype: torch.dtype, tmp_path: Path) -> None:
    n, c, hw, groups = 2, 6, 5, 3
    x, grad = upcast(randn(n, c, hw, dtype=dtype)), upcast(randn(n, c, hw, dtype=dtype, seed=2))
    weight, bias = upcast(randn(c, dtype=dtype, seed=3)), upcast(randn(c, dtype=dtype, seed=4))
    w, b = (weight, bias) if flags else (None, None)
    out, mean, rstd = torch.native_group_norm(x, w, b, n, c, hw, groups, 1e-5)
    extra = [t.to(dtype) for t in (w, b) if t is not None]
    expected = [out.to(dtype), mean, rstd]
    expect(
        composite("group_norm", [x.to(dtype), *extra], expected, tmp_path, groups=groups, flags=flags, epsilon=1e-5),
        expected,
        dtype,
    )
    one = torch.ones(c, dtype=x.dtype) if w is None else w
    dx, dw, db = torch.ops.aten.native_group_norm_backward(
        grad, x, mean, rstd, one, n, c, hw, groups, [True, True, True]
    )
    expected = [t.to(dtype) for t in (dx, dw, db)]
    operands = [grad.to(dtype), x.to(dtype), mean, rstd, *extra[:1]]
    expect(
        composite("group_norm_backward", operands, expected, tmp_path, groups=groups, flags=flags & 1),
        expected,
        dtype,
        4,
    )


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("flags", [0, 3])
@pytest.mark.parametrize("train", [True, False])
def test_batch_norm(train: bool, flags: int, dtype: torch.dtype, tmp_path: Path) -> None:
    x, grad = upcast(randn(3, 4, 2, 2, dtype=dtype)), upcast(randn(3, 4, 2, 2, dtype=dtype, seed=2))
    weight, bias = upcast(randn(4, dtype=dtype, seed=3)), upcast(randn(4, dtype=dtype, seed=4))
    w, b = (weight, bias) if flags else (None, None)
    running_mean, running_var = (
        upcast(randn(4, seed=7).to(dtype)),
        upcast(randn(4, seed=8).to(dtype)).abs() + 0.5,
    )
    out, mean, invstd = torch.native_batch_norm(x, w, b, running_mean.clone(), running_var.clone(), train, 0.1, 1e-5)
    extra = [t.to(dtype) for t in (w, b) if t is not None]
    if train:
        var = x.var((0, 2, 3), unbiased=False)
        expected = [out.to(dtype), mean, invstd, var]
        actual = composite("batch_norm_train", [x.to(dtype), *extra], expected, tmp_path, flags=flags, epsilon=1e-5)
    else:
        mean, invstd = running_mean, torch.rsqrt(running_var + 1e-5)
        expected = [out.to(dtype)]
        operands = [x.to(dtype), *extra, running_mean, running_var]
        actual = composite("batch_norm_infer", operands, expected, tmp_path, flags=flags, epsilon=1e-5)
    expect(actual, expected, dtype)
    dx, dw, db = torch.ops.aten.native_batch_norm_backward(
        grad,
        x,
        weight if flags else torch.ones_like(weight),
        running_mean,
        running_var,
        mean,
        invstd,
        train,
        1e-5,
        [True, True, True],
    )
    expected = [t.to(dtype) for t in (dx, dw, db)]
    operands = [grad.to(dtype), x.to(dtype), mean, invstd, *extra[:1]]
    actual = composite("batch_norm_backward", operands, expected, tmp_path, flags=(flags & 1) | (0 if train else 4))
    expect(actual, expected, dtype, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("mask_kind", ["none", "causal", "bool", "float", "all_hidden"])
@pytest.mark.parametrize("heads", [(2, 2), (4, 2)])
def test_sdpa(heads: tuple[int, int], mask_kind: str, dtype: torch.dtype, tmp_path: Path) -> None:
    b, (hq, hk), n, s, e, ev = 2, heads, 3, 5, 4, 6
    q = upcast(randn(b, hq, n, e, dtype=dtype)).requires_grad_()
    k = upcast(randn(b, hk, s, e, dtype=dtype, seed=1)).requires_grad_()
    v = upcast(randn(b, hk, s, ev, dtype=dtype, seed=2)).requires_grad_()
    mask = None
    if mask_kind in ("bool", "all_hidden"):
        mask = torch.rand(b, 1, n, s, generator=torch.Generator().manual_seed(1)) > 0.4
        mask[..., 0] = True
        if mask_kind == "all_hidden":
            mask[0, 0, 1] = False
    elif mask_kind == "float":
        mask = upcast(randn(n, s, dtype=dtype, seed=6))
    group = hq // hk
    scores = q @ k.repeat_interleave(group, 1).transpose(-1, -2) / math.sqrt(e)
    if mask_kind == "causal":
        scores = scores.masked_fill(~torch.ones(n, s, dtype=torch.bool).tril(), -math.inf)
    elif mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    lse = scores.logsumexp(-1)
    weights = torch.where(
        lse.isinf()[..., None],
        torch.zeros_like(scores),
        (scores - lse.masked_fill(lse.isinf(), 0)[..., None]).exp(),
    )
    out = weights @ v.repeat_interleave(group, 1)
    extra = [] if mask is None else [mask if mask.dtype == torch.bool else mask.to(dtype)]
    flags = int(mask is not None)
    attributes = {"scale": 1 / math.sqrt(e), "is_causal": mask_kind == "causal", "flags": flags}
    qkv = [t.detach().to(dtype) for t in (q, k, v)]
    expected = [out.detach().to(dtype), lse.detach()]
    actual = composite("sdpa", [*qkv, *extra], expected, tmp_path, **attributes)
    expect(actual, expected, dtype)
    if mask_kind in ("none", "causal", "bool") and heads == (2, 2):
        torch_out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask_kind == "causal")
        expect(actual[:1], [torch_out.detach().to(dtype)], dtype)
    dout = upcast(randn(b, hq, n, ev, dtype=dtype, seed=8))
    grads = [g.detach().to(dtype) for g in torch.autograd.grad(out, (q, k, v), dout)]
    grads = [torch.nan_to_num(g) for g in grads]
    operands = [dout.to(dtype), *qkv, expected[0], expected[1], *extra]
    expect(composite("sdpa_backward", operands, grads, tmp_path, **attributes), grads, dtype, 4)


def test_sdpa_dropout(tmp_path: Path) -> None:
    """The share of dropped weights is as asked; the backward pass drops the same ones."""
    q, k = torch.zeros(1, 1, 40, 2), torch.zeros(1, 1, 50, 2)
    v = torch.eye(50).reshape(1, 1, 50, 50)
    state = torch.tensor([3, 9], dtype=torch.uint64)
    like = [torch.zeros(1, 1, 40, 50), torch.zeros(1, 1, 40)]
    attributes = {"probability": 0.25, "flags": 2}
    out, lse = composite("sdpa", [q, k, v, state], like, tmp_path, **attributes)
    kept = out[0, 0] > 0
    assert 0.7 < kept.float().mean() < 0.8
    torch.testing.assert_close(out[0, 0][kept], torch.full((int(kept.sum()),), 1 / 50 / 0.75))
    dout = torch.ones(1, 1, 40, 50)
    grads = composite("sdpa_backward", [dout, q, k, v, out, lse, state], [q, k, v], tmp_path, **attributes)
    expected = (kept.float() / 50 / 0.75).sum(0)[:, None].expand(50, 50)
    torch.testing.assert_close(grads[2][0, 0], expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(
    ("spatial", "window", "stride", "pad", "dilation"),
    [
        ((7, 6), [3, 2], [2, 2], [1, 1], [1, 1]),
        ((8,), [3], [2], [1], [2]),
        ((5, 4, 4), [2, 2, 3], [1, 2, 1], [0, 1, 1], [1, 1, 1]),
    ],
)
def test_max_pool(spatial, window, stride, pad, dilation, ceil_mode, dtype, tmp_path: Path) -> None:
    x = (randn(2, 3, *spatial) * 4).to(dtype)
    if dtype != torch.int64:
        x[0, 0].fill_(-math.inf)
    pool = [None, F.max_pool1d, F.max_pool2d, F.max_pool3d][len(spatial)]
    out, indices = pool(x.float(), window, stride, pad, dilation, ceil_mode, return_indices=True)
    out = out.to(dtype)
    high = [
        (o - 1) * s + (w - 1) * d + 1 - n - p
        for o, s, w, d, n, p in zip(out.shape[2:], stride, window, dilation, spatial, pad)
    ]
    high = [max(h, p) for h, p in zip(high, pad)]
    attributes = {"window": window, "stride": stride, "low": pad, "high": high, "window_dilation": dilation}
    values, positions = composite("max_pool", [x], [out, indices], tmp_path, **attributes)
    torch.testing.assert_close(values, out)
    assert torch.equal(positions, indices)
    if dtype == torch.float32:
        grad = randn(*out.shape, seed=4)
        y = x.clone().requires_grad_()
        pool(y, window, stride, pad, dilation, ceil_mode).backward(grad)
        dx = composite("max_pool_backward", [grad, indices], [x], tmp_path, sizes=list(spatial))
        torch.testing.assert_close(dx[0], y.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("include_pad", [False, True])
@pytest.mark.parametrize("divisor", [0, 5])
def test_avg_pool(divisor: int, include_pad: bool, ceil_mode: bool, dtype: torch.dtype, tmp_path: Path) -> None:
    window, stride, pad, spatial = [3, 2], [2, 2], [1, 0], (6, 5)
    x = upcast(randn(2, 3, *spatial, dtype=dtype)).requires_grad_()
    out = F.avg_pool2d(x, window, stride, pad, ceil_mode, include_pad, divisor or None)
    high = [max(p, (o - 1) * s + w - n - p) for o, s, w, n, p in zip(out.shape[2:], stride, window, spatial, pad)]
    attributes = {
        "window": window,
        "stride": stride,
        "low": pad,
        "high": high,
        "count_include_pad": include_pad,
        "divisor": divisor,
    }
    expected = [out.detach().to(dtype)]
    expect(composite("avg_pool", [x.detach().to(dtype)], expected, tmp_path, **attributes), expected, dtype)
    grad = upcast(randn(*out.shape, dtype=dtype, seed=3))
    out.backward(grad)
    expected = [x.grad.to(dtype)]
    actual = composite("avg_pool_backward", [grad.to(dtype)], expected, tmp_path, sizes=list(spatial), **attributes)
    expect(actual, expected, dtype, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("spatial", "kernel", "stride", "pad", "dilation", "input_dilation"),
    [
        ((6,), [3], [2], [1], [1], [1]),
        ((7, 5), [3, 2], [2, 1], [1, 0], [1, 2], [1, 1]),
        ((4, 3), [3, 3], [1, 1], [2, 1], [1, 1], [2, 2]),
        ((3, 4, 3), [2, 2, 2], [1, 2, 1], [0, 1, 0], [1, 1, 1], [1, 1, 1]),
    ],
)
def test_conv_backward(spatial, kernel, stride, pad, dilation, input_dilation, groups, dtype, tmp_path: Path) -> None:
    x = randn(2, 4, *spatial, dtype=dtype).requires_grad_()
    weight = randn(6, 4 // groups, *kernel, dtype=dtype, seed=1).requires_grad_()
    spread = x.new_zeros(2, 4, *[(n - 1) * d + 1 for n, d in zip(spatial, input_dilation)])
    slices = tuple(slice(None, None, d) for d in input_dilation)
    spread[(slice(None), slice(None), *slices)] = x
    conv = [None, F.conv1d, F.conv2d, F.conv3d][len(spatial)]
    out = conv(spread, weight, None, stride, pad, dilation, groups)
    grad = randn(*out.shape, dtype=dtype, seed=2)
    dx, dweight = torch.autograd.grad(out, (x, weight), grad)
    attributes = {
        "stride": stride,
        "low": pad,
        "high": pad,
        "base_dilation": input_dilation,
        "window_dilation": dilation,
        "groups": groups,
    }
    expect(
        composite("conv_backward_input", [grad, weight.detach()], [dx], tmp_path, sizes=list(spatial), **attributes),
        [dx],
        dtype,
        4,
    )
    expect(
        composite("conv_backward_weight", [grad, x.detach()], [dweight], tmp_path, sizes=kernel, **attributes),
        [dweight],
        dtype,
        4,
    )
