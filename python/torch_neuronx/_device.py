"""The device module `torch.neuron`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torch_neuronx import _C

_device_t = Any  # torch.device, str, int or None


def _index(device: _device_t, optional: bool = True) -> int:
    """Index of `device`; None and an absent index mean the current device."""
    if device is None or device == -1:
        return _C._current_device()
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = torch.device(device)
    if not isinstance(device, torch.device):
        raise TypeError(f"expected a device, got {type(device).__name__}")
    if device.type != "neuron":
        raise ValueError(f"Expected neuron device, got {device.type}")
    return _C._current_device() if device.index is None else device.index


# ---- presence and initialisation ---------------------------------------------------------------------------
def is_available() -> bool:
    return _C._device_count() > 0


def is_initialized() -> bool:
    return _C._is_initialized()


def init() -> None:
    """Starts the runtime; repeated calls do nothing. RuntimeError in a bad fork."""
    _C._init()


def _lazy_init() -> None:
    _C._init()


def _lazy_call(function: Callable[[], None], **_: Any) -> None:
    function()


_initialized = True  # reentrant checkpoint reads this to decide whether to stash the RNG state


def _is_in_bad_fork() -> bool:
    return _C._is_in_bad_fork()


# ---- devices -----------------------------------------------------------------------------------------------
def device_count() -> int:
    return _C._device_count()


def current_device() -> int:
    return _C._current_device()


def set_device(device: _device_t) -> None:
    index = _index(device)
    if index < 0:
        return
    count = _C._device_count()
    if index >= count:
        raise ValueError(f"Device index {index} is out of range. Valid range is 0 to {count - 1} for this process")
    _C._exchange_device(index)


def _exchange_device(index: int) -> int:
    return _C._exchange_device(index)


_maybe_exchange_device = _exchange_device


class device:
    """Context manager that selects a device for the calling thread."""

    def __init__(self, device: _device_t) -> None:
        self.idx = _index(device) if device is not None else -1
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _C._exchange_device(self.idx)

    def __exit__(self, *_: Any) -> bool:
        _C._exchange_device(self.prev_idx)
        return False


class device_of(device):
    """Context manager that selects the device of a tensor or storage; other devices do nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.device.type == "neuron" else None)


def get_device_name(device: _device_t = None) -> str:
    return f"neuron:{_check(device)}"


@dataclass(frozen=True)
class DeviceProperties:
    name: str
    total_memory: int
    target: str
    core_count: int
    major: int = 0
    minor: int = 0
    multi_processor_count: int = 1


def _check(device: _device_t) -> int:
    index = _index(device)
    count = _C._device_count()
    if not 0 <= index < count:
        raise ValueError(f"Invalid device id: {index}. Valid range is 0 to {count - 1}")
    return index


def get_device_properties(device: _device_t = None) -> DeviceProperties:
    """ValueError `Expected neuron device, got ...` or `Invalid device id: ...`."""
    import os

    index = _check(device)
    return DeviceProperties(
        name=f"neuron:{index}",
        total_memory=_C._memory_info(index)[1],
        target=os.environ.get("TORCH_NEURONX_TARGET", "trn2"),
        core_count=_C._device_count(),
    )


def get_device_capability(device: _device_t = None) -> dict:
    return torch.accelerator.get_device_capability(torch.device("neuron", _check(device)))


def synchronize(device: _device_t = None) -> None:
    """Waits for all streams of the device; raises the first pending error."""
    _C._synchronize(_index(device))


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float32, torch.float16, torch.bfloat16]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return True


def _sleep(cycles: int) -> None:
    pass


# ---- streams and events ------------------------------------------------------------------------------------
class Stream(torch.Stream):
    """An in-order queue of one device.

    Streams are independent of each other; priority -1 runs before 0.
    """

    def __new__(cls, device: _device_t = None, priority: int = 0, **kwargs: Any) -> Stream:
        if "stream_id" in kwargs:
            return super().__new__(
                cls,
                stream_id=kwargs["stream_id"],
                device_index=kwargs["device_index"],
                device_type=kwargs["device_type"],
            )
        if isinstance(device, (str, torch.device)) and torch.device(device).type != "neuron":
            raise RuntimeError(f"Expected Neuron device, got: {device}")
        self = super().__new__(cls, device=torch.device("neuron", _index(device)), priority=priority)
        self._priority = priority
        return self

    @property
    def priority(self) -> int:
        return getattr(self, "_priority", 0)

    def record_event(self, event: Event | None = None) -> Event:
        if event is None:
            event = Event()
        event.record(self)
        return event

    def wait_event(self, event: torch.Event) -> None:
        event.wait(self)

    def wait_stream(self, stream: torch.Stream) -> None:
        self.wait_event(stream.record_event())

    def __repr__(self) -> str:
        return f"<torch.neuron.Stream device={self.device} stream_id={self.stream_id}>"


class Event(torch.Event):
    """A point in a stream's queue; `enable_timing` makes `elapsed_time` available."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        self = super().__new__(
            cls, device="neuron", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )
        self._enable_timing = enable_timing
        return self

    def record(self, stream: torch.Stream | None = None) -> None:
        super().record(current_stream() if stream is None else stream)

    def wait(self, stream: torch.Stream | None = None) -> None:
        super().wait(current_stream() if stream is None else stream)

    def elapsed_time(self, end: torch.Event) -> float:
        """Milliseconds from this event to `end`."""
        if not self._enable_timing or not getattr(end, "_enable_timing", True):
            raise RuntimeError("Event was not created with timing enabled")
        return _C._event_elapsed(self.event_id, end.event_id)  # torch's method refuses subclasses


def _wrap(stream: torch.Stream) -> Stream:
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


def current_stream(device: _device_t = None) -> Stream:
    return _wrap(torch.accelerator.current_stream(torch.device("neuron", _index(device))))


def default_stream(device: _device_t = None) -> Stream:
    index = _index(device)
    probe = torch.accelerator.current_stream(torch.device("neuron", index))
    return Stream(stream_id=0, device_index=index, device_type=probe.device_type)


def set_stream(stream: torch.Stream | None) -> None:
    """Makes `stream` current for the calling thread and selects its device."""
    if stream is not None:
        if stream.device.type != "neuron":
            raise ValueError(f"Expected neuron device, got {stream.device.type}")
        torch.accelerator.set_stream(stream)


class StreamContext:
    """Runs the enclosed work on `stream`; None does nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is None:
            return
        self._previous_device = current_device()
        self._previous = current_stream(self.stream.device)
        set_stream(self.stream)

    def __exit__(self, *_: Any) -> None:
        if self.stream is None:
            return
        set_stream(self._previous)
        set_device(self._previous_device)


def stream(stream: torch.Stream | None) -> StreamContext:
    return StreamContext(stream)


def wait_stream(stream: torch.Stream) -> None:
    current_stream().wait_stream(stream)


def wait_event(event: torch.Event) -> None:
    current_stream().wait_event(event)


def record_event(event: Event | None = None) -> Event:
    return current_stream().record_event(event)


def query() -> bool:
    return current_stream().query()


# ---- random numbers ----------------------------------------------------------------------------------------
class _Generators:
    """The default generators, indexable by device."""

    def __len__(self) -> int:
        return _C._device_count()

    def __getitem__(self, index: int) -> torch.Generator:
        if not 0 <= index < _C._device_count():
            raise IndexError(index)
        return _C._get_default_generator(index)


default_generators = _Generators()


def _generator(device: _device_t = None) -> torch.Generator:
    return _C._get_default_generator(_check(device))


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator."""
    _generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    for generator in default_generators:
        generator.manual_seed(int(seed))


def seed() -> int:
    return _generator().seed()


def seed_all() -> int:
    value = _generator().seed()
    manual_seed_all(value)
    return value


def initial_seed() -> int:
    return _generator().initial_seed()


def get_rng_state(device: _device_t = "neuron") -> torch.Tensor:
    """16 bytes: u64 seed and i64 offset, little endian."""
    return _generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    return [generator.get_state() for generator in default_generators]


def set_rng_state(state: torch.Tensor, device: _device_t = "neuron") -> None:
    _generator(device).set_state(state.cpu())


def set_rng_state_all(states: list[torch.Tensor]) -> None:
    for index, state in enumerate(states):
        set_rng_state(state, index)


# ---- memory ------------------------------------------------------------------------------------------------
def memory_stats(device: _device_t = None) -> dict[str, Any]:
    """The flat keys of `torch.cuda.memory_stats` and nested dicts for allocated, reserved and active bytes."""
    flat: dict[str, Any] = _C._memory_stats(_check(device))
    for name in ("allocated_bytes", "reserved_bytes", "active_bytes"):
        flat[name] = {key: flat[f"{name}.all.{key}"] for key in ("current", "peak", "allocated", "freed")}
    for name in ("oversize_allocations", "oversize_segments"):
        for key in ("current", "peak", "allocated", "freed"):
            flat[f"{name}.{key}"] = 0
    flat["num_sync_all_streams"] = 0
    flat["max_split_size"] = -1
    flat["num_tensor_frees"] = flat["allocation.all.freed"]
    flat["allocation_requests"] = flat["allocation.all.allocated"]
    return flat


def memory_allocated(device: _device_t = None) -> int:
    return _C._memory_stats(_check(device))["allocated_bytes.all.current"]


def max_memory_allocated(device: _device_t = None) -> int:
    return _C._memory_stats(_check(device))["allocated_bytes.all.peak"]


def memory_reserved(device: _device_t = None) -> int:
    return _C._memory_stats(_check(device))["reserved_bytes.all.current"]


def max_memory_reserved(device: _device_t = None) -> int:
    return _C._memory_stats(_check(device))["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: _device_t = None) -> None:
    torch.accelerator.reset_peak_memory_stats(torch.device("neuron", _check(device)))


def reset_accumulated_memory_stats(device: _device_t = None) -> None:
    torch.accelerator.reset_accumulated_memory_stats(torch.device("neuron", _check(device)))


def empty_cache() -> None:
    """Returns unused memory to the system."""
    torch.accelerator.empty_cache()


def mem_get_info(device: _device_t = None) -> tuple[int, int]:
    """Free and total bytes."""
    return _C._memory_info(_check(device))


def memory_summary(device: _device_t = None, abbreviated: bool = False) -> str:
    """A table of the memory statistics, 75 columns wide."""
    index = _check(device)
    stats = memory_stats(index)

    def row(title: str, name: str) -> str:
        cells = [f"{stats[f'{name}.all.{key}'] / 2**20:.1f} MiB" for key in ("current", "peak", "allocated", "freed")]
        return f"| {title:<16}|" + "|".join(f" {cell:>12}" for cell in cells) + "|"

    rule = "|" + "=" * 73 + "|"
    thin = "|" + "-" * 73 + "|"
    rows = [
        ("Allocated Memory", "allocated_bytes"),
        ("Reserved Memory", "reserved_bytes"),
        ("Active Memory", "active_bytes"),
    ]
    if not abbreviated:
        rows += [("Requested Memory", "requested_bytes"), ("Inactive Splits", "inactive_split_bytes")]
    counts = f"Allocations: {stats['allocation_requests']} | Frees: {stats['num_tensor_frees']}"
    errors = f"OOMs: {stats['num_ooms']} | Alloc Retries: {stats['num_alloc_retries']}"
    head = f"| {'Metric':<16}|" + "|".join(f" {t:>12}" for t in ("Current", "Peak", "Allocated", "Freed")) + "|"
    return "\n".join(
        [
            rule,
            f"|{f'Neuron Memory Summary, Device {index}':^73}|",
            thin,
            f"|{counts:^73}|",
            f"|{errors:^73}|",
            rule,
            head,
            thin,
            *(row(title, name) for title, name in rows),
            rule,
        ]
    )


def __getattr__(name: str) -> Any:
    # torch.amp imports lazily: this module is loaded while torch itself is being imported.
    if name == "amp":
        import types

        amp = types.ModuleType("torch.neuron.amp")
        amp.GradScaler = lambda *args, **kwargs: torch.amp.GradScaler("neuron", *args, **kwargs)
        amp.autocast = lambda *args, **kwargs: torch.amp.autocast("neuron", *args, **kwargs)
        globals()["amp"] = amp
        return amp
    if name == "memory":
        import sys

        return sys.modules[__name__]
    raise AttributeError(f"module 'torch.neuron' has no attribute {name!r}")
