"""The PyTorch device `neuron`.

Importing torch is enough: this package is one of its autoloaded backends. Nothing here starts threads or the device
runtime; that happens when a tensor is first put on the device.
"""

import warnings as _warnings

__version__ = "2.13.3.0"

_register_error: Exception | None = None


def _autoload() -> None:
    """Entry point of `import torch`: registers the device. Never raises; prints nothing."""
    global _register_error
    try:
        from torch_neuronx import _register

        _register.register()
    except Exception as error:  # `import torch` must not fail because of us
        if _register_error is not None:
            return
        _register_error = error
        _warnings.warn(f"torch_neuronx: the device 'neuron' is not available: {error!r}", stacklevel=2)


# `import torch` calls _autoload, so it stands above: this module may be half-imported at that moment.
import torch  # noqa: E402

_autoload()  # no-op if the line above did it; needed under TORCH_DEVICE_BACKEND_AUTOLOAD=0

if _register_error is None:  # without the device the package stays importable: `import torch` must not fail
    from torch_neuronx._device import (
        Event,
        Stream,
        StreamContext,
        current_device,
        current_stream,
        default_stream,
        device,
        device_count,
        empty_cache,
        get_device_properties,
        max_memory_allocated,
        max_memory_reserved,
        memory_allocated,
        memory_reserved,
        memory_stats,
        memory_summary,
        reset_accumulated_memory_stats,
        reset_peak_memory_stats,
        set_stream,
        stream,
        synchronize,
    )
    from torch_neuronx._report import (
        OpRecord,
        OpReport,
        clear_op_tracking,
        get_executed_ops,
        get_fallback_ops,
        op_report,
    )


def set_device(index: int) -> None:
    """Selects the calling thread's device. ValueError `Invalid device id` if there is none of that index."""
    count = device_count()
    if not 0 <= index < count:
        raise ValueError(f"Invalid device id: {index}. Valid range is 0 to {count - 1}")
    torch.neuron.set_device(index)


def _lazy_init() -> None:
    """Starts the device runtime. RuntimeError in a process forked after the runtime was used."""
    torch.neuron.init()


def is_neuron_runtime_initialized() -> bool:
    return torch.neuron.is_initialized()


__all__ = [
    "Event",
    "OpRecord",
    "OpReport",
    "Stream",
    "StreamContext",
    "clear_op_tracking",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_device_properties",
    "get_executed_ops",
    "get_fallback_ops",
    "is_neuron_runtime_initialized",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "op_report",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device",
    "set_stream",
    "stream",
    "synchronize",
]
