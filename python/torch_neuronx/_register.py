"""Registration of the device with PyTorch, once per process."""

import contextlib
import warnings
from multiprocessing.reduction import ForkingPickler

import torch

_is_registered = False


def register() -> None:
    global _is_registered
    if _is_registered:
        return
    _is_registered = True
    torch.utils.rename_privateuse1_backend("neuron")
    from torch_neuronx import _C, _device  # noqa: F401

    torch._register_device_module("neuron", _device)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _patch_dlpack()
    _register_reducers()
    for text in _C._option_complaints():
        with contextlib.suppress(UserWarning):  # under -W error `import torch` must still work
            warnings.warn(f"torch_neuronx: {text}", stacklevel=2)


def _register_reducers() -> None:
    # PyTorch's own reducer would fail with "_share_fd_: only available on CPU".
    original = torch.multiprocessing.reductions.reduce_tensor

    def reduce(tensor: torch.Tensor) -> tuple:
        if tensor.device.type == "neuron":
            raise RuntimeError(
                "A tensor on neuron cannot be sent to another process: send tensor.cpu() and move it to the device there"
            )
        return original(tensor)

    for kind in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, reduce)


def _patch_dlpack() -> None:
    # PyTorch compares the device type with the literal "privateuse1", which a renamed backend is not.
    original = torch.Tensor.__dlpack_device__

    def __dlpack_device__(self: torch.Tensor) -> tuple:
        if self.device.type == "neuron":
            from torch.utils.dlpack import DLDeviceType

            return (DLDeviceType.kDLExtDev, self.device.index or 0)
        return original(self)

    torch.Tensor.__dlpack_device__ = __dlpack_device__
