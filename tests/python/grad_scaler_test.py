"""torch.amp.GradScaler on the device beside CPU: its two operators over generated inputs, and whole training loops."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

import torch_neuronx

DEVICE = "neuron"
INF, NAN = float("inf"), float("nan")
# GradScaler moves between devices as the user does; the two operators may not.
SCALER_OPS = {"aten::_amp_foreach_non_finite_check_and_unscale_", "aten::_amp_update_scale_"}


def assert_on_device() -> None:
    assert not SCALER_OPS & set(torch_neuronx.get_fallback_ops())
    torch_neuronx.clear_op_tracking()


def gradients(seed: int) -> list[torch.Tensor]:
    """Tensors of one dtype, with all kinds of layout; some have an element that is not finite."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    dtype = rng.choice([torch.float32, torch.float16, torch.bfloat16, torch.float64])
    grads = []
    for _ in range(rng.randint(1, 5)):
        shape = [rng.choice([1, 2, 3, 17]) for _ in range(rng.randint(0, 3))]
        grad = (torch.randn(shape) * 100).to(dtype)
        if grad.numel() and rng.random() < 0.3:
            grad.reshape(-1)[rng.randrange(grad.numel())] = rng.choice([INF, -INF, NAN])
        if grad.dim() == 2 and rng.random() < 0.5:
            grad = grad.t()
        if grad.dim() and rng.random() < 0.2:
            grad = grad[:0]
        grads.append(grad)
    return grads


@pytest.mark.parametrize("seed", range(40))
def test_unscale_is_the_cpu_operator(seed: int) -> None:
    torch_neuronx.clear_op_tracking()
    grads = gradients(seed)
    inv_scale = torch.tensor(random.Random(seed).choice([1.0, 2.0**-16, 0.3, INF]))
    found = torch.full([1] * (seed % 3), float(seed % 5 == 0))
    ours = [g.to(DEVICE) for g in grads]
    ours_found, places = found.to(DEVICE), [(g.data_ptr(), g.stride()) for g in ours]
    torch._amp_foreach_non_finite_check_and_unscale_(ours, ours_found, inv_scale.to(DEVICE))
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inv_scale)
    assert places == [(g.data_ptr(), g.stride()) for g in ours]
    for a, b in zip(ours, grads):
        torch.testing.assert_close(a.cpu(), b, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(ours_found.cpu(), found, rtol=0, atol=0)
    assert_on_device()


@pytest.mark.parametrize(
    ("scale", "tracker", "found", "interval"),
    itertools.product([1.0, 65536.0, 3.0e38, 1e-45], [0, 1, 2], [0.0, 1.0, 2.0], [1, 2, 3, 2000, 2**40]),
)
def test_update_scale_is_the_cpu_operator(scale: float, tracker: int, found: float, interval: int) -> None:
    torch_neuronx.clear_op_tracking()
    for growth, backoff in ((2.0, 0.5), (1.7, 0.3)):
        sides = []
        for device in ("cpu", DEVICE):
            args = torch.tensor(scale, device=device), torch.tensor(tracker, dtype=torch.int32, device=device)
            returned = torch._amp_update_scale_(*args, torch.tensor(found, device=device), growth, backoff, interval)
            assert returned is args[0]
            sides.append([a.cpu() for a in args])
        torch.testing.assert_close(sides[1], sides[0], rtol=0, atol=0)
    assert_on_device()


def test_wrong_arguments_raise_as_on_cpu() -> None:
    one = torch.tensor(1.0)
    for args in (
        ([torch.ones(2)], torch.zeros(2), one),
        ([torch.ones(2)], torch.zeros(()), torch.ones(2)),
        ([torch.ones(2)], torch.zeros((), dtype=torch.float64), one),
        ([torch.ones(2)], torch.zeros(()), one.half()),
    ):
        messages = []
        for device in ("cpu", DEVICE):
            with pytest.raises(RuntimeError) as raised:
                torch._amp_foreach_non_finite_check_and_unscale_(
                    [g.to(device) for g in args[0]], args[1].to(device), args[2].to(device)
                )
            messages.append(str(raised.value).splitlines()[0])
        assert messages[0] == messages[1]


def train(device: str, make: type, bad_steps: set[int], clip: bool, **options: bool) -> tuple[list, list, dict]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).to(device)
    optimizer = make(model.parameters(), lr=1e-2, **options)
    scaler = torch.amp.GradScaler(device, init_scale=1024.0, growth_interval=3)
    scales, losses = [], []
    for step in range(12):
        generator = torch.Generator().manual_seed(step)
        x, y = torch.randn(5, 6, generator=generator).to(device), torch.randint(3, (5,), generator=generator).to(device)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        if step in bad_steps:
            model[0].weight.grad[1, 2] = INF if step % 2 else NAN
        if clip:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        losses.append(loss.item())
    parameters = [p.detach().cpu() for p in model.parameters()]
    return scales, [torch.tensor(losses), *parameters], scaler.state_dict()


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize(
    ("make", "options"),
    [
        (torch.optim.SGD, {}),
        (torch.optim.SGD, {"fused": True}),
        (torch.optim.AdamW, {}),
        (torch.optim.AdamW, {"fused": True}),
    ],
)
def test_training_with_infinite_gradients_goes_as_on_cpu(make: type, options: dict, clip: bool) -> None:
    torch_neuronx.clear_op_tracking()
    bad = {2, 3, 8}
    ours, theirs = train(DEVICE, make, bad, clip, **options), train("cpu", make, bad, clip, **options)
    assert ours[0] == theirs[0]
    assert len(set(ours[0])) > 2  # the scale went down and up
    for a, b in zip(ours[1], theirs[1]):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
    assert ours[2] == theirs[2]
    assert torch_neuronx.get_fallback_ops() == []


def test_state_travels_between_devices() -> None:
    ours = torch.amp.GradScaler(DEVICE, init_scale=8.0)
    ours.scale(torch.ones((), device=DEVICE))
    theirs = torch.amp.GradScaler("cpu")
    theirs.load_state_dict(ours.state_dict())
    assert theirs.state_dict() == ours.state_dict()
    assert torch.neuron.amp.GradScaler(init_scale=4.0).state_dict()["scale"] == 4.0
