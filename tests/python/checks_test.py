"""Conditions that only the values tell: the launch finds them, the error is PyTorch's, nothing is written before."""

import itertools

import pytest
import torch

import torch_neuronx

DIVISIONS = {
    "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "floor_divide": torch.floor_divide,
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "number % tensor": lambda x, y: 7 % y + 0 * x,
}
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("name,dtype", itertools.product(DIVISIONS, INTEGERS), ids=str)
def test_integer_division_equals_the_cpu_and_stays_on_the_device(name: str, dtype: torch.dtype):
    limits = torch.iinfo(dtype)
    x = torch.arange(-40, 41).to(dtype)
    x[0], x[1] = limits.min, limits.max
    for y in (torch.arange(1, 82).to(dtype) % 9 + 1, torch.tensor([3], dtype=dtype), torch.tensor(5, dtype=dtype)):
        for divisor in (y, -y) if limits.min < 0 else (y,):
            expected = DIVISIONS[name](x, divisor)
            torch_neuronx.clear_op_tracking()
            actual = DIVISIONS[name](x.neuron(), divisor.neuron())
            assert torch_neuronx.get_fallback_ops() == []
            assert actual.dtype == expected.dtype and torch.equal(actual.cpu(), expected)


@pytest.mark.parametrize("name,dtype", itertools.product(DIVISIONS, INTEGERS), ids=str)
def test_a_zero_among_the_divisors_raises(name: str, dtype: torch.dtype):
    x = torch.arange(1000).to(dtype).neuron()
    for place in (0, 517, 999):
        y = torch.ones(1000, dtype=dtype)
        y[place] = 0
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            DIVISIONS[name](x, y.neuron())
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        DIVISIONS[name](x, torch.tensor(0, dtype=dtype).neuron())
    torch_neuronx.clear_op_tracking()
    assert DIVISIONS[name](x[:0], y.neuron()[:0]).shape == (0,)
    assert torch_neuronx.get_fallback_ops() == []


def test_a_compiled_division_raises_too():
    torch._dynamo.reset()
    divide = torch.compile(lambda x, y: torch.div(x + 1, y, rounding_mode="floor") * 2, backend="neuron")
    x, y = torch.arange(10).neuron(), torch.arange(1, 11).neuron()
    assert torch.equal(divide(x, y).cpu(), torch.div(x.cpu() + 1, y.cpu(), rounding_mode="floor") * 2)
    y[4] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        divide(x, y)


def test_probabilities_and_deviations_are_checked():
    entropy = torch.nn.functional.binary_cross_entropy
    good, target = torch.rand(50), torch.rand(50)
    torch.testing.assert_close(entropy(good.neuron(), target.neuron()).cpu(), entropy(good, target))
    for wrong in (1.5, -0.1, float("nan")):
        bad = good.clone()
        bad[17] = wrong
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            entropy(bad.neuron(), target.neuron())
    with pytest.raises(RuntimeError, match="std >= 0.0"):
        torch.normal(torch.zeros(5).neuron(), torch.tensor([1.0, 2, -1, 3, 4]).neuron())


def test_normal_takes_tensors_of_means_and_deviations():
    torch_neuronx.clear_op_tracking()
    mean = torch.arange(0, 4.0).neuron()[:, None].expand(4, 20000)
    for std in (torch.full((20000,), 0.5).neuron(), 0.5):
        sample = torch.normal(mean, std).cpu()
        assert sample.shape == (4, 20000)
        assert (sample.mean(1) - torch.arange(0, 4.0)).abs().max() < 0.03
        assert (sample.std(1) - 0.5).abs().max() < 0.03
    assert torch_neuronx.get_fallback_ops() == []


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts_of_any_distance_equal_the_cpu(dtype: torch.dtype):
    limits = torch.iinfo(dtype)
    x = torch.tensor([0, 1, 5, limits.max, limits.min, limits.max // 3], dtype=dtype)[:, None]
    distance = torch.tensor([0, 1, 7, 8, 31, 32, 63, 64, 100, limits.max] + ([-1] if limits.min else []), dtype=dtype)
    torch_neuronx.clear_op_tracking()
    for shift in (torch.bitwise_left_shift, torch.bitwise_right_shift, lambda x, y: x << y, lambda x, y: x >> y):
        assert torch.equal(shift(x.neuron(), distance.neuron()).cpu(), shift(x, distance))
    assert torch.equal((x.neuron() << 2).cpu(), x << 2) and torch.equal((x.neuron() >> 3).cpu(), x >> 3)
    assert torch_neuronx.get_fallback_ops() == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.bool], ids=str)
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extremes_keep_the_last_holder_and_nan(name: str, dtype: torch.dtype):
    x = torch.randint(-3, 4, (7, 50)).to(dtype)
    if dtype.is_floating_point:
        x[2, 20], x[2, 30], x[3, 0], x[4, 49] = float("nan"), float("nan"), float("nan"), float("inf")
    for dim in (0, 1):
        values, indices = getattr(torch, name)(x, dim)
        actual_values, actual_indices = getattr(torch, name)(x.neuron(), dim)
        assert torch.equal(actual_indices.cpu(), indices)
        torch.testing.assert_close(actual_values.cpu(), values, rtol=0, atol=0, equal_nan=True)


SPECIAL = {
    "xlogy": 2, "heaviside": 2, "copysign": 2, "nextafter": 2, "hypot": 2, "logaddexp": 2, "logaddexp2": 2,
    "special_xlog1py": 2, "angle": 1, "sinc": 1, "logit": 1, "nan_to_num": 1, "special_polygamma": 1,
}  # fmt: skip
EDGES = [
    0.0,
    -0.0,
    0.25,
    -0.75,
    0.5,
    1.0,
    -1.0,
    2.5,
    -3.5,
    1e-30,
    3e38,
    -3e38,
    float("inf"),
    -float("inf"),
    float("nan"),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_at_their_edges(name: str, dtype: torch.dtype):
    x = torch.tensor(EDGES, dtype=dtype)
    arguments = (x[:, None], x[None]) if SPECIAL[name] == 2 else (x,)
    function = getattr(torch.special, name[8:]) if name.startswith("special_") else getattr(torch, name)
    call = (lambda *xs: function(1, *xs)) if name == "special_polygamma" else function
    torch_neuronx.clear_op_tracking()
    actual = call(*(x.neuron() for x in arguments)).cpu()
    assert torch_neuronx.get_fallback_ops() == []
    expected = call(*arguments)
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 1e-2}
    torch.testing.assert_close(actual, expected, equal_nan=True, **tolerance)
    if name in ("copysign", "nextafter", "heaviside", "nan_to_num"):
        numbers = ~expected.isnan()
        assert torch.equal(actual.signbit()[numbers], expected.signbit()[numbers])


SHRINKING = ["hardshrink", "softshrink", "hardsigmoid", "hardswish", "logsigmoid", "glu", "prelu", "silu"]


@pytest.mark.parametrize("name", SHRINKING)
def test_gates_and_shrinks_at_their_edges(name: str):
    points = [*EDGES[:9], 3.0, -3.0, 0.49, -0.51, 100.0, -100.0, float("inf"), -float("inf"), float("nan")]
    more = [torch.tensor([0.25])] if name == "prelu" else []
    results = []
    torch_neuronx.clear_op_tracking()
    for device in ("cpu", "neuron"):
        x = torch.tensor(points, device=device).requires_grad_()
        y = getattr(torch.nn.functional, name)(x, *(m.to(device) for m in more))
        y.sum().backward()
        results.append((y.detach().cpu(), x.grad.cpu()))
    assert torch_neuronx.get_fallback_ops() == []
    for actual, expected in zip(results[1], results[0]):
        torch.testing.assert_close(actual, expected, equal_nan=True)
