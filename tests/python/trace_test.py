"""Traces: calls and integer expressions, instantiated per size."""

import pytest
import torch

from torch_neuronx import _C


def simple_trace() -> "_C.Trace":
    """relu(x @ w) * n + 1, with n = rows of x."""
    trace = _C.Trace("simple")
    x, w = trace.tensor_param(), trace.tensor_param()
    product = trace.result(trace.call("mm", [x, w]))
    active = trace.result(trace.call("relu", [product]))
    scaled = trace.result(trace.call("mul.Tensor", [active, trace.size(x, 0)]))
    shifted = trace.result(trace.call("add.Tensor", [scaled, 1], {"alpha": 1}))
    trace.set_results([shifted, trace.number_op("mul", trace.size(x, 0), 2), None, x])
    return trace


def test_one_trace_serves_all_sizes():
    trace = simple_trace()
    for rows in (2, 5, 2, 7):
        x, w = torch.randn(rows, 3), torch.randn(3, 4)
        inputs = [x.neuron(), w.neuron()]
        result, twice, none, same = trace.run(inputs)
        torch.testing.assert_close(result.cpu(), torch.relu(x @ w) * rows + 1)
        assert twice == 2 * rows and none is None
        assert same.data_ptr() == inputs[0].data_ptr()
    assert trace.program_count == 3 and trace.last_reason == ""


def test_integer_parameters_shape_and_scale():
    trace = _C.Trace()
    x, n, k = trace.tensor_param(), trace.int_param(), trace.int_param()
    half = trace.number_op("floordiv", n, 2)
    view = trace.result(trace.call("view", [x, [half, trace.number_op("mod", n, 5), -1]]))
    result = trace.result(trace.call("mul.Tensor", [view, k]))
    trace.set_results([result, half, trace.number_op("lt", half, k), trace.number_op("max", k, 3)])
    a = torch.arange(12.0)
    for k_value in (2, 3, 4):
        result, half_value, less, larger = trace.run([a.neuron(), 6, k_value])
        assert torch.equal(result.cpu(), a.view(3, 1, 4) * k_value)
        assert half_value == 3 and less == (3 < k_value) and larger == max(k_value, 3)
    if trace.last_reason == "":
        assert trace.program_count == 1  # |k| is a number of the launch, not of the program


def test_write_back_reads_the_old_value():
    trace = _C.Trace()
    x, y = trace.tensor_param(), trace.tensor_param()
    total = trace.result(trace.call("add.Tensor", [x, y]))
    trace.copy_to(x, total)
    trace.set_results([trace.result(trace.call("mul.Tensor", [x, y]))])
    a, b = torch.randn(3, 4), torch.randn(3, 4)
    storage = torch.zeros(4, 3, device="neuron")
    target = storage.t()
    target.copy_(a)
    (product,) = trace.run([target, b.neuron()])
    assert torch.equal(product.cpu(), a * b) and torch.equal(target.cpu(), a + b)


def test_views_of_parameters_are_views():
    trace = _C.Trace()
    x = trace.tensor_param()
    trace.set_results([trace.result(trace.call("t", [x])), trace.result(trace.call("exp", [x]))], [None, [1, 2]])
    a = torch.randn(2, 3).neuron()
    transposed, exponential = trace.run([a])
    assert transposed.data_ptr() == a.data_ptr() and transposed.stride() == (1, 3)
    assert exponential.stride() == (1, 2)
    torch.testing.assert_close(exponential.cpu(), a.cpu().exp())


def test_refused_calls_run_on_the_cpu():
    trace = _C.Trace()
    x = trace.tensor_param()
    eigen = trace.call("linalg_eigvals", [x])
    trace.set_results([trace.result(trace.call("abs", [trace.result(eigen)]))])
    assert not _C.Trace.can_lower("linalg_eigvals") and _C.Trace.can_lower("add.Tensor")
    a = torch.eye(3) * 2
    (result,) = trace.run([a.neuron()])
    assert torch.equal(result.cpu(), torch.full((3,), 2.0)) and "linalg_eigvals" in trace.last_reason


def test_wrong_use_is_named():
    trace = simple_trace()
    with pytest.raises(RuntimeError, match="expected 2 inputs, got 1"):
        trace.run([torch.ones(2, 2, device="neuron")])
    with pytest.raises(TypeError, match="a tensor or a number"):
        trace.run([torch.ones(2, 2, device="neuron"), "x"])
    with pytest.raises(NotImplementedError, match="no operator aten::nothing"):
        trace.call("nothing", [])
    with pytest.raises(RuntimeError, match="same device"):
        trace.run([torch.ones(2, 3, device="neuron"), torch.ones(3, 3)])


def test_describe_is_stablehlo():
    text = simple_trace().describe([torch.ones(2, 3, device="neuron"), torch.ones(3, 4, device="neuron")])
    assert "func.func" in text and "stablehlo.dot_general" in text
