"""Edges of the bridge: kinds of tensors it refuses, lazy views, memory that runs out, other processes, options."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import torch

import torch_neuronx
from torch_neuronx import _C

DEVICE = "neuron"


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


@pytest.mark.parametrize(
    ("word", "make"),
    [
        ("sparse", lambda x: torch.sparse_coo_tensor([[0, 1], [0, 1]], [1.0, 2.0], device=DEVICE)),
        ("sparse", lambda x: x.to_sparse()),
        ("sparse", lambda x: x.to_sparse_csr()),
        ("quantized", lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)),
        ("Mkldnn", lambda x: x.to_mkldnn()),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_kinds_that_the_device_does_not_hold_are_named_with_the_operator(
    word: str, make: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    with pytest.raises(NotImplementedError, match=rf"(?is)neuron: aten::\w+.*{word}.*dense"):
        make(torch.eye(2, device=DEVICE))


@pytest.mark.parametrize(
    "first",
    [
        "torch.sparse_coo_tensor(size=(2, 2), device='neuron')",
        "torch.empty(2, layout=torch.sparse_coo, device='neuron')",
        "torch._empty_affine_quantized([2], scale=1.0, zero_point=0, dtype=torch.qint8, device='neuron')",
        "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device='neuron') + 1",
        "torch.ones(2, 2).to_sparse().to('neuron')",
    ],
)
def test_they_are_named_too_when_the_device_was_not_used_before(first: str) -> None:
    answer = python(f"import torch\n{first}")
    assert "NotImplementedError: neuron: aten::" in answer.stderr, answer.stderr


def lazy_views() -> Iterator[tuple[str, Callable[[torch.Tensor], torch.Tensor]]]:
    yield "conj", lambda x: x.conj()
    yield "neg", lambda x: x.conj().imag
    yield "conj of transposed", lambda x: x.t().conj()
    yield "neg of slice", lambda x: x[:, ::2].conj().imag


@pytest.mark.parametrize(("name", "view"), lazy_views())
def test_lazy_views_stay_on_the_device(name: str, view: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.randn(4, 4, dtype=torch.complex64)
    ours, theirs = view(x.to(DEVICE)), view(x)
    assert ours.is_conj() == theirs.is_conj() and ours.is_neg() == theirs.is_neg()
    torch_neuronx.clear_op_tracking()
    results = []
    for side in (ours, theirs):
        filled = torch.empty_like(side.real if name.startswith("conj") else side)
        target = side.clone()
        written = (target.conj() if target.is_complex() else target).copy_(side)
        host = torch.empty(side.shape, dtype=side.dtype).copy_(side)
        values = side.resolve_conj().resolve_neg()
        results.append([side.clone(), values, host, side + 1, written, filled.zero_(), side.contiguous()])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a.cpu(), b)
        assert a.is_conj() == b.is_conj() and a.is_neg() == b.is_neg() and a.stride() == b.stride()
    assert torch_neuronx.get_fallback_ops() == []


def test_memory_that_runs_out_leaves_the_process_usable() -> None:
    code = """
import torch
from torch_neuronx import _C
_C._set_memory_limit(0, 64 << 20)
keep = torch.ones(1 << 20, device="neuron")
for make in (lambda: torch.empty(256 << 20, device="neuron"), lambda: keep.expand(64, 1 << 20).contiguous(),
             lambda: torch.cat([keep] * 32)):
    try:
        make()
        raise SystemExit("no error")
    except torch.OutOfMemoryError as error:
        text = str(error)
        assert text.startswith("Neuron OOM: requested_size=") and "total_hbm=67108864" in text, text
        assert str(4 << 20) in text.split("Largest live blocks")[1], text
stats = torch.neuron.memory_stats()
assert stats["num_ooms"] == 3 and stats["num_alloc_retries"] == 3, stats
assert (keep + 1).sum().item() == 2 << 20
"""
    answer = python(code)
    assert answer.returncode == 0, answer.stderr


@pytest.mark.filterwarnings("ignore")
def test_results_of_the_cpu_count_as_memory_of_the_device() -> None:
    cpu = torch.randn(512, 512)
    before = torch.neuron.memory_allocated()
    from_cpu = torch.special.airy_ai(cpu.to(DEVICE))
    assert torch_neuronx.get_fallback_ops(), "this test needs an operator without a kernel"
    assert torch.neuron.memory_allocated() - before >= from_cpu.nbytes
    assert torch.neuron.memory_reserved() >= torch.neuron.memory_allocated()
    del from_cpu
    assert torch.neuron.memory_allocated() == before


def test_sending_to_another_process_is_a_clear_error() -> None:
    from multiprocessing.reduction import ForkingPickler

    for tensor in (torch.ones(2, device=DEVICE), torch.nn.Parameter(torch.ones(2, device=DEVICE))):
        with pytest.raises(RuntimeError, match="cannot be sent to another process: send tensor.cpu()"):
            ForkingPickler.dumps(tensor)
    assert ForkingPickler.dumps(torch.ones(2))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.float64]
)
def test_printing_stays_on_the_device(dtype: torch.dtype) -> None:
    cpu = torch.tensor([[0.0, 1.5, -2.0], [3e5, 1e-3, 7.0]]).to(dtype)
    ours = cpu.to(DEVICE)
    torch_neuronx.clear_op_tracking()
    text = repr(ours)
    assert torch_neuronx.get_fallback_ops() == []
    # The device's name may break a line elsewhere.
    assert "".join(text.split()).replace(",device='neuron:0'", "") == "".join(repr(cpu).split())


def test_a_misspelt_variable_gets_one_warning_with_the_nearest_name() -> None:
    answer = python("import torch, torch_neuronx", TORCH_NEURONX_FALBACK="error")
    assert answer.returncode == 0
    assert answer.stderr.count("UserWarning") == 1
    assert "TORCH_NEURONX_FALBACK" in answer.stderr and "TORCH_NEURONX_FALLBACK" in answer.stderr


def test_names_of_the_module_that_user_tests_rely_on() -> None:
    x = torch.arange(6.0)
    y = torch.empty(6, device=DEVICE)
    _C._nrt_copy_cpu_to_neuron_tensor(x, y)
    back = torch.empty(6)
    _C._nrt_copy_neuron_to_cpu_tensor(y, back, False)
    assert torch.equal(x, back)
    with pytest.raises(RuntimeError, match="expected a copy from cpu to neuron"):
        _C._nrt_copy_cpu_to_neuron_tensor(y, x)
    stats = _C._get_compilation_cache_stats()
    assert stats["cache_hits"] == stats["in_memory_hits"] + stats["persistent_hits"]
    assert 0 <= stats["hit_rate"] <= 1
    assert _C._vnc_count() == torch.neuron.device_count() and _C._get_vnc_id(1) == 1


@pytest.mark.filterwarnings("ignore")
def test_a_transformer_encoder_takes_padded_batches_in_eval() -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2).eval()
    x, padded = torch.randn(3, 5, 16), torch.arange(5).expand(3, 5) >= torch.tensor([[5], [3], [2]])
    with torch.no_grad():
        expected = model(x, src_key_padding_mask=padded)
        found = model.to("neuron")(x.to("neuron"), src_key_padding_mask=padded.to("neuron")).cpu()
    valid = ~padded[:, : expected.shape[1]]
    torch.testing.assert_close(found[:, : expected.shape[1]][valid], expected[valid], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("values", "classes"), [([0, 3], 3), ([-1, 2], 5), ([0, -2], -1)])
def test_one_hot_refuses_what_cpu_refuses(values: list[int], classes: int) -> None:
    messages = []
    for device in ("cpu", "neuron"):
        with pytest.raises(RuntimeError) as error:
            torch.nn.functional.one_hot(torch.tensor(values, device=device), classes)
        messages.append(str(error.value).splitlines()[0])
    assert messages[0] == messages[1]
