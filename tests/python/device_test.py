"""Device, streams, events, generator, memory, fork and autoload."""

import copy
import io
import pickle
import subprocess
import sys

import pytest
import torch

neuron = torch.device("neuron")


def run_python(code: str, **env: str) -> str:
    import os

    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env}, timeout=120
    )
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def test_import_prints_nothing_and_starts_no_thread_and_no_runtime():
    code = (
        "import os; before = len(os.listdir('/proc/self/task')); import torch;"
        "import sys; assert 'torch_neuronx' in sys.modules; assert not torch.neuron.is_initialized();"
        "assert torch.neuron.is_available()"
    )
    assert run_python(code) == ""


def test_device_names_and_counts():
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator().type == "neuron"
    assert torch.accelerator.device_count() == torch.neuron.device_count() >= 2
    x = torch.empty(2, device="neuron:1")
    assert x.is_neuron and x.device == torch.device("neuron", 1) and x.get_device() == 1
    assert torch.ones(1).neuron().device.type == "neuron"


def test_current_device_follows_the_context():
    assert torch.neuron.current_device() == 0
    with torch.neuron.device(1):
        assert torch.neuron.current_device() == 1
        assert torch.empty(1, device="neuron").device.index == 1
    with torch.device("neuron:1"):
        assert torch.ones(2).device.index == 1
    assert torch.neuron.current_device() == 0


def test_wrong_devices_raise():
    count = torch.neuron.device_count()
    with pytest.raises(ValueError, match=f"Device index 99 is out of range. Valid range is 0 to {count - 1}"):
        torch.neuron.set_device(99)
    with pytest.raises(ValueError, match="Expected neuron device, got cuda"):
        torch.neuron.get_device_properties("cuda:0")
    with pytest.raises(ValueError, match="Invalid device id: 99"):
        torch.neuron.get_device_properties(99)
    with pytest.raises((ValueError, RuntimeError), match="out of range"):
        torch.empty(1, device="neuron:99")


def test_tensors_of_two_devices_do_not_mix():
    a, b = torch.ones(2, device="neuron:0"), torch.ones(2, device="neuron:1")
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        a + b
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        a + torch.ones(2)
    assert (a + torch.tensor(2.0)).tolist() == [3, 3]
    assert b.to("neuron:0").device.index == 0


def test_streams_and_events():
    stream = torch.neuron.Stream()
    assert isinstance(stream, torch.Stream) and stream.device.type == "neuron"
    assert torch.neuron.current_stream() == torch.neuron.default_stream()
    start, end = torch.neuron.Event(enable_timing=True), torch.neuron.Event(enable_timing=True)
    with torch.neuron.stream(stream):
        assert torch.neuron.current_stream() == stream
        start.record()
        x = torch.ones(8, device="neuron")
        x.record_stream(stream)
        end.record()
    assert torch.neuron.current_stream() == torch.neuron.default_stream()
    torch.neuron.current_stream().wait_stream(stream)
    end.synchronize()
    assert end.query() and stream.query()
    assert start.elapsed_time(end) >= 0
    with pytest.raises(RuntimeError, match="Event was not created with timing enabled"):
        torch.neuron.Event().elapsed_time(end)
    with pytest.raises(RuntimeError, match="Expected Neuron device, got"):
        torch.neuron.Stream(device="cpu")
    assert torch.Stream(device="neuron").device.type == "neuron"
    torch.neuron.synchronize()
    torch.accelerator.synchronize()


def test_generator_state_is_seed_and_offset():
    generator = torch.Generator(device="neuron")
    generator.manual_seed(5)
    state = generator.get_state()
    assert state.dtype == torch.uint8 and state.numel() == 16 and state.device.type == "cpu"
    assert int.from_bytes(bytes(state[:8].tolist()), "little") == 5
    first = torch.rand(10, device="neuron", generator=generator)
    second = torch.rand(10, device="neuron", generator=generator)
    assert not torch.equal(first.cpu(), second.cpu())
    generator.set_state(state)
    assert torch.equal(first.cpu(), torch.rand(10, device="neuron", generator=generator).cpu())
    clone = generator.clone_state()
    assert torch.equal(
        torch.rand(10, device="neuron", generator=generator).cpu(),
        torch.rand(10, device="neuron", generator=clone).cpu(),
    )
    generator.set_state(state[:8])
    assert generator.get_offset() == 0


def test_seeding_and_forking_the_default_generator():
    torch.manual_seed(3)
    cpu_state = torch.get_rng_state()
    first = torch.randn(16, device="neuron")
    assert torch.equal(cpu_state, torch.get_rng_state())  # the CPU generator is not consumed
    torch.manual_seed(3)
    assert torch.equal(first.cpu(), torch.randn(16, device="neuron").cpu())
    state = torch.neuron.get_rng_state()
    with torch.random.fork_rng(devices=[0], device_type="neuron"):
        torch.randn(4, device="neuron")
    assert torch.equal(state, torch.neuron.get_rng_state())
    assert len(torch.neuron.get_rng_state_all()) == torch.neuron.device_count()
    with pytest.raises(RuntimeError, match="generator"):
        torch.randn(4, device="neuron", generator=torch.Generator())


def test_memory_is_counted():
    torch.neuron.empty_cache()
    before = torch.neuron.memory_allocated()
    x = torch.empty(1 << 20, device="neuron")
    assert torch.neuron.memory_allocated() - before >= 4 << 20
    assert torch.neuron.max_memory_allocated() >= torch.neuron.memory_allocated()
    assert torch.neuron.memory_reserved() >= torch.neuron.memory_allocated()
    del x
    assert torch.neuron.memory_allocated() == before
    stats = torch.neuron.memory_stats()
    assert stats["allocated_bytes"]["current"] == stats["allocated_bytes.all.current"] == before
    assert torch.accelerator.memory_allocated() == before
    free, total = torch.neuron.mem_get_info()
    assert 0 < free <= total == torch.neuron.get_device_properties(0).total_memory
    assert "Neuron Memory Summary, Device 0" in torch.neuron.memory_summary()
    assert all(len(line) == 75 for line in torch.neuron.memory_summary().splitlines())
    torch.accelerator.empty_host_cache()


def test_out_of_memory_is_named():
    with pytest.raises(torch.OutOfMemoryError, match="^Neuron OOM: requested_size="):
        torch.empty(1 << 50, dtype=torch.uint8, device="neuron")
    assert torch.ones(2, device="neuron").tolist() == [1, 1]


def test_pinned_memory():
    x = torch.ones(4).pin_memory()
    assert x.is_pinned() and not torch.ones(4).is_pinned()
    assert x.to("neuron", non_blocking=True).tolist() == [1] * 4
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.empty(2, device="neuron", pin_memory=True)


def test_save_load_pickle_deepcopy():
    x = torch.arange(6.0).reshape(2, 3).neuron()
    buffer = io.BytesIO()
    torch.save({"x": x, "view": x[0]}, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer)
    assert loaded["x"].device == x.device and torch.equal(loaded["x"].cpu(), x.cpu())
    assert loaded["view"].untyped_storage().data_ptr() == loaded["x"].untyped_storage().data_ptr()
    buffer.seek(0)
    assert torch.load(buffer, map_location="cpu")["x"].device.type == "cpu"
    assert torch.equal(pickle.loads(pickle.dumps(x)).cpu(), x.cpu())
    assert torch.equal(copy.deepcopy(x).cpu(), x.cpu())


def test_moving_a_module_keeps_its_parameters():
    module = torch.nn.Linear(2, 2)
    weight = module.weight
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    module.to("neuron")
    assert module.weight is weight and weight.is_neuron
    module(torch.ones(1, 2, device="neuron")).sum().backward()
    before = weight.detach().cpu().clone()
    optimizer.step()
    assert not torch.equal(before, weight.detach().cpu())


def test_storage_resize_and_set():
    x = torch.arange(4.0).neuron()
    x.untyped_storage().resize_(0)
    assert x.untyped_storage().nbytes() == 0
    x.untyped_storage().resize_(16)
    x.fill_(2)
    assert x.tolist() == [2] * 4
    y = torch.empty(0, device="neuron").set_(x.untyped_storage(), 1, (2,), (1,))
    y.zero_()
    assert x.tolist() == [2, 0, 0, 2]
    x.resize_(2, 4)
    assert x.shape == (2, 4) and x[0].tolist() == [2, 0, 0, 2]


def test_fork_after_use_fails_in_the_child_and_queries_stay_safe():
    code = """
import os, torch
torch.ones(2, device="neuron")
pid = os.fork()
if pid == 0:
    ok = torch.neuron.is_available() and torch.neuron.device_count() > 0 and torch.neuron._is_in_bad_fork()
    try:
        torch.ones(2, device="neuron")
    except RuntimeError as error:
        ok = ok and "Cannot re-initialize Neuron runtime in forked subprocess" in str(error)
    else:
        ok = False
    os._exit(0 if ok else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
    run_python(code, TORCH_NEURONX_FALLBACK="silent")


def test_fork_before_use_is_fine():
    code = """
import os, torch
assert torch.neuron.is_available()
pid = os.fork()
if pid == 0:
    os._exit(0 if torch.ones(2, device="neuron").tolist() == [1, 1] else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
    run_python(code, TORCH_NEURONX_FALLBACK="silent")


def test_autocast_uses_the_shared_lists():
    a = torch.randn(4, 4, device="neuron")
    with torch.autocast("neuron", dtype=torch.bfloat16):
        assert (a @ a).dtype == torch.bfloat16
        assert torch.softmax(a.bfloat16(), 0).dtype == torch.float32
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            torch.nn.functional.binary_cross_entropy(torch.sigmoid(a), torch.ones_like(a))


def test_dlpack_round_trip_shares_memory():
    x = torch.arange(4.0).neuron()
    y = torch.from_dlpack(x)
    y[0] = 7
    assert x[0].item() == 7 and y.device == x.device
