"""Copies over strides and dtypes, views, in-place and out= semantics, and the account of fallbacks."""

import itertools
import warnings

import pytest
import torch

import torch_neuronx

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16,
          torch.float32, torch.float64, torch.complex64]  # fmt: skip
LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, 1),
    "sliced": lambda x: x[:, 1::2],
    "expanded": lambda x: x[:1].expand(5, -1, -1),
    "channels_last": lambda x: x.unsqueeze(0).to(memory_format=torch.channels_last),
    "empty": lambda x: x[:0],
    "scalar": lambda x: x[0, 0, 0],
}


def sample(dtype: torch.dtype) -> torch.Tensor:
    x = torch.arange(-30, 30).reshape(3, 4, 5) * 3
    return (x % 7 > 3) if dtype == torch.bool else x.to(dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_keep_values_and_strides(dtype: torch.dtype, layout: str):
    x = LAYOUTS[layout](sample(dtype))
    y = x.to("neuron")
    assert y.shape == x.shape and y.dtype == x.dtype
    assert y.stride() == x.to("cpu", copy=True).stride()
    assert torch.equal(y.cpu(), x)
    assert torch.equal(y.clone().cpu(), x) and y.clone().stride() == x.clone().stride()
    assert torch.equal(y.contiguous().cpu(), x.contiguous())


@pytest.mark.parametrize("source,target", itertools.product(DTYPES, DTYPES), ids=str)
def test_conversions_equal_the_cpu(source: torch.dtype, target: torch.dtype):
    x = sample(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = x.to(target)
        assert torch.equal(x.neuron().to(target).cpu(), expected)
        out = torch.zeros(5, 4, 3, dtype=target, device="neuron").permute(2, 1, 0)
        out.copy_(x)  # host to strided device, with conversion
        assert torch.equal(out.cpu(), expected)
        back = torch.zeros(3, 4, 5, dtype=target)
        back.copy_(x.neuron())
        assert torch.equal(back, expected)


def test_copy_broadcasts_and_refuses_as_the_cpu():
    x = torch.zeros(2, 3, device="neuron")
    x.copy_(torch.tensor([1.0, 2, 3]))
    assert x.tolist() == [[1, 2, 3], [1, 2, 3]]
    with pytest.raises(RuntimeError, match="must match the size|doesn't match the broadcast shape"):
        x.copy_(torch.zeros(4))
    with pytest.raises(RuntimeError, match="more than one element|single memory location"):
        x[:1].expand(2, 3).copy_(x.clone())


def test_overlapping_copy_reads_before_it_writes():
    x = torch.arange(6.0).neuron()
    y = torch.arange(6.0)
    x[1:].copy_(x[:-1].clone())
    y[1:].copy_(y[:-1].clone())
    assert torch.equal(x.cpu(), y)


def test_conj_and_neg_views():
    x = torch.tensor([1 + 2j, 3 - 4j])
    y = x.neuron()
    assert torch.equal(y.conj().cpu(), x.conj())
    assert torch.equal(y.conj().resolve_conj().cpu(), x.conj().resolve_conj())
    assert torch.equal(y.conj().imag.cpu(), x.conj().imag)
    assert "1.-2.j" in str(y.conj())
    z = torch.zeros(2, dtype=torch.complex64, device="neuron")
    z.copy_(y.conj())
    assert torch.equal(z.cpu(), x.conj())
    z.conj().copy_(y)
    assert torch.equal(z.cpu(), x.conj())


VIEWS = [
    lambda x: x.view(4, 6), lambda x: x.reshape(-1), lambda x: x.t() if x.dim() == 2 else x.transpose(0, 2),
    lambda x: x.permute(2, 0, 1), lambda x: x[1], lambda x: x[:, 1:], lambda x: x[..., ::2],
    lambda x: x.unsqueeze(0), lambda x: x.select(1, 1), lambda x: x.narrow(2, 1, 2), lambda x: x.diagonal(0, 0, 1),
    lambda x: x.unfold(2, 2, 1), lambda x: x.as_strided((2, 2), (1, 4), 1), lambda x: x.split(1)[1],
    lambda x: x.chunk(2, 1)[1], lambda x: x.unbind(2)[3], lambda x: x.detach(), lambda x: x.movedim(0, 2),
    lambda x: x.view(torch.int32), lambda x: x.view_as(x), lambda x: x.mT,
]  # fmt: skip


@pytest.mark.parametrize("index", range(len(VIEWS)))
def test_views_share_memory(index: int):
    view = VIEWS[index]
    x = torch.arange(24.0).reshape(2, 3, 4)
    y = x.neuron()
    a, b = view(x), view(y)
    assert b.shape == a.shape and b.stride() == a.stride() and b.storage_offset() == a.storage_offset()
    assert b.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
    a.fill_(9)
    b.fill_(9)
    assert torch.equal(y.cpu(), x)


def test_view_as_real_and_complex():
    x = torch.tensor([1 + 2j, 3 + 4j]).neuron()
    real = torch.view_as_real(x)
    real[0, 1] = 5
    assert x.tolist() == [1 + 5j, 3 + 4j]
    assert torch.view_as_complex(real).untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_in_place_rules():
    x = torch.ones(3, dtype=torch.int64, device="neuron")
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        x.add_(1.5)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(torch.ones(2, 3, dtype=torch.int64, device="neuron"))
    y = torch.ones(3, dtype=torch.float16, device="neuron")
    assert y.add_(torch.ones(3, device="neuron")).dtype == torch.float16  # float32 result, float16 self
    z = torch.arange(3.0, device="neuron")
    assert z.add_(z).tolist() == [0, 2, 4] and z.mul_(z).tolist() == [0, 4, 16]
    version = z._version
    z.add_(1)
    assert z._version == version + 1
    w = torch.arange(8.0).neuron()
    with pytest.raises(RuntimeError, match="single memory location"):
        w[1:].add_(w[:-1])
    w[::2].add_(w[1::2])
    assert w.tolist() == [1, 1, 5, 3, 9, 5, 13, 7]


def test_out_rules():
    a = torch.ones(2, 3, device="neuron")
    out = torch.empty(0, device="neuron")
    assert torch.add(a, a, out=out) is out and out.shape == (2, 3) and out.sum().item() == 12
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.add(a, a, out=torch.empty(5, device="neuron"))
    strided = torch.zeros(3, 2, device="neuron").t()
    torch.mul(a, 2, out=strided)
    assert strided.stride() == (1, 2) and strided.sum().item() == 12
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.add(a, a, out=torch.empty(2, 3, dtype=torch.int64, device="neuron"))
    with pytest.raises(RuntimeError, match="same device"):
        torch.add(a, a, out=torch.empty(2, 3))
    wide = torch.empty(2, 3, dtype=torch.float64, device="neuron")
    assert torch.add(a, a, out=wide).dtype == torch.float64 and wide.sum().item() == 12
    channels_last = torch.ones(1, 2, 2, 2, device="neuron").to(memory_format=torch.channels_last)
    out = torch.empty(0, device="neuron")
    torch.add(channels_last, 1, out=out)
    assert out.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("name", ["contiguous", "transposed", "sliced", "expanded", "channels_last", "scalar"])
@pytest.mark.parametrize("other", ["same", "number", "row", "column"])
def test_result_strides_equal_the_cpu(name: str, other: str):
    x = LAYOUTS[name](sample(torch.float32))
    column = x.new_ones(x.shape[:1] + (1,) * max(x.dim() - 1, 0))
    second = {"same": x, "number": 2.0, "row": x.new_ones(x.shape[-1:]), "column": column}[other]
    expected = x + second
    result = x.neuron() + (second.neuron() if isinstance(second, torch.Tensor) else second)
    if name in ("sliced", "expanded"):  # the move made them dense
        expected = x.clone() + second
    assert torch.equal(result.cpu(), expected) and result.stride() == expected.stride()
    y = x.neuron()
    assert torch.empty_like(y).stride() == torch.empty_like(x.clone()).stride()


def test_type_promotion_with_numbers_and_zero_dim_tensors():
    for dtype in (torch.int32, torch.float16, torch.bfloat16, torch.float32):
        x = torch.ones(3, dtype=dtype)
        for second in (2, 2.5, True, torch.tensor(2.5), torch.tensor(2, dtype=torch.int64)):
            expected = x * second
            result = x.neuron() * second
            assert result.dtype == expected.dtype and torch.equal(result.cpu(), expected)


# Written calls of several read tensors: name, and the call on (written, a, b).
ALIASED_CALLS = {
    "addcmul_": lambda w, a, b: w.addcmul_(a, b),
    "addcdiv_": lambda w, a, b: w.addcdiv_(a, b),
    "lerp_": lambda w, a, b: w.lerp_(a, b),
    "add.out": lambda w, a, b: torch.add(a, b, out=w),
    "mul.out": lambda w, a, b: torch.mul(a, b, out=w),
    "where.out": lambda w, a, b: torch.where(a > 0, a, b, out=w),
    "addmm_": lambda w, a, b: w.addmm_(a, b),
    "cat.out": lambda w, a, b: torch.cat([a[:2], b[2:]], out=w),
    "_foreach_addcmul_": lambda w, a, b: torch._foreach_addcmul_([w, w.clone()], [a, b], [b, a]),
    "_foreach_add_": lambda w, a, b: torch._foreach_add_([w], [a]) or torch._foreach_add_([w], [b]),
}
# Which of the three operands are one tensor.
ALIAS_PATTERNS = [(0, 1, 2), (0, 1, 1), (0, 0, 1), (0, 1, 0), (0, 0, 0)]


@pytest.mark.parametrize("name", ALIASED_CALLS)
def test_a_call_serves_only_its_own_aliases(name: str):
    """Two patterns of equal operands after each other, at a size of their own: no program stands in for another."""
    call = ALIASED_CALLS[name]
    patterns = ALIAS_PATTERNS
    if name in ("addmm_", "cat.out"):  # CPU refuses memory that is both read and written
        patterns = [pattern for pattern in ALIAS_PATTERNS if 0 not in pattern[1:]]

    def run(values: list[torch.Tensor], pattern: tuple[int, ...], device: str) -> torch.Tensor:
        tensors = [value.to(device, copy=True) for value in values]
        call(*(tensors[index] for index in pattern))
        return tensors[0].cpu()

    for size, pair in enumerate(itertools.permutations(patterns, 2), start=4):
        values = [torch.rand(size, size) + 1 for _ in range(3)]
        for pattern in pair:
            expected = run(values, pattern, "cpu")
            torch.testing.assert_close(run(values, pattern, "neuron"), expected, msg=f"{pattern} of {pair}")


def test_scalar_values_are_no_constants():
    x = torch.ones(3, device="neuron")
    assert [(x * k).sum().item() for k in (1, 2, 3)] == [3, 6, 9]
    assert [(x + k).sum().item() for k in (0.5, 1.5)] == [4.5, 7.5]
    assert [x.add(x, alpha=k).sum().item() for k in (1, 2)] == [6, 9]


def test_wrong_arguments_raise_the_cpu_error_and_count_nothing():
    a = torch.ones(2, 3, device="neuron")
    b = torch.ones(2, 4, device="neuron")
    torch_neuronx.clear_op_tracking()
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        a + b
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        a @ a
    with pytest.raises(IndexError, match="Dimension out of range"):
        a.sum(5)
    assert torch_neuronx.get_fallback_ops() == []


def test_index_out_of_range():
    weight = torch.ones(4, 2, device="neuron")
    with pytest.raises(IndexError):
        torch.nn.functional.embedding(torch.tensor([7], device="neuron"), weight)
    assert weight.sum().item() == 8


def test_fallback_is_counted_warned_once_and_named():
    x = torch.randn(3, 3).neuron()
    torch_neuronx.clear_op_tracking()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            result = torch.linalg.eigvals(x)
    texts = [str(w.message) for w in caught if "fell back to CPU" in str(w.message)]
    assert len(texts) == len(set(texts))
    assert result.is_neuron
    fallback = torch_neuronx.get_fallback_ops()
    assert "aten::_linalg_eigvals" in fallback
    record = next(r for r in torch_neuronx.op_report() if r.name == "aten::_linalg_eigvals")
    assert record.fallback_calls == 3 and record.bytes > 0 and record.ns > 0 and record.reasons
    assert "tensors_test.py" in record.user_line
    assert record.name in str(torch_neuronx.op_report())
    torch_neuronx.clear_op_tracking()
    assert torch_neuronx.get_fallback_ops() == [] and torch_neuronx.get_executed_ops() == []


def test_fallback_mode_error():
    mode = torch_neuronx._C._fallback_mode()
    x = torch.eye(2).neuron()
    torch_neuronx._C._set_fallback_mode("error")
    try:
        with pytest.raises(RuntimeError, match="fell back to CPU"):
            torch.linalg.eigvals(x)
        assert (x + 1).tolist() == [[2, 1], [1, 2]]
    finally:
        torch_neuronx._C._set_fallback_mode(mode)


def test_fallback_keeps_aliases_lists_and_out():
    x = torch.tensor([3.0, 1.0, 2.0], device="neuron")
    values, indices = torch.empty(0, device="neuron"), torch.empty(0, dtype=torch.int64, device="neuron")
    returned = torch.kthvalue(x, 2, out=(values, indices))
    assert values.item() == 2 and indices.item() == 2 and returned[0] is values
    outer = torch.linalg.lu_factor(torch.eye(2, device="neuron"))
    assert all(t.is_neuron for t in outer)
    blocks = torch.block_diag(torch.ones(1, 1, device="neuron"), torch.ones(2, 2, device="neuron"))
    assert blocks.shape == (3, 3) and blocks.is_neuron
    lengths = torch.tensor([2, 1])
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.ones(2, 2, 1, device="neuron"), lengths, True)
    assert packed.data.is_neuron and packed.batch_sizes.device.type == "cpu"


def test_executed_operators_are_listed_by_overload():
    torch_neuronx.clear_op_tracking()
    x = torch.ones(2, 2, device="neuron")
    x = x.add(x).mul_(2)
    x.sum().item()
    executed = torch_neuronx.get_executed_ops()
    for name in ("aten::add.Tensor", "aten::mul_.Tensor", "aten::sum", "aten::_local_scalar_dense"):
        assert name in executed, executed
    assert executed.index("aten::add.Tensor") < executed.index("aten::sum")


def test_lazy_clone_is_materialised_by_a_write():
    x = torch.arange(4.0).neuron()
    y = torch._lazy_clone(x)
    y.add_(1)
    assert x.tolist() == [0, 1, 2, 3] and y.tolist() == [1, 2, 3, 4]


def test_gradients_of_activations_stay_on_the_device():
    functions = torch.nn.functional
    for name in ("silu", "gelu", "relu", "mish", "softplus", "elu", "leaky_relu", "hardtanh", "tanh", "sigmoid"):
        expected = torch.linspace(-4, 4, 60).reshape(3, 20).requires_grad_()
        actual = expected.detach().neuron().requires_grad_()
        torch_neuronx.clear_op_tracking()
        for x in (expected, actual):
            getattr(functions, name)(x).square().sum().backward()
        assert torch_neuronx.get_fallback_ops() == [], name
        torch.testing.assert_close(actual.grad.cpu(), expected.grad)
