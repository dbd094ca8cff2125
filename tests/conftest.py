"""Shared by all Python tests: the device is loaded before anything of torch.testing, and threads are few."""

from __future__ import annotations

import contextlib

import torch

with contextlib.suppress(ImportError):  # tests of the device fail by themselves without it
    import torch_neuronx  # noqa: F401

torch.set_num_threads(1)
