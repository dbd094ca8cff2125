"""The torch.compile backend "neuron"."""

from .backend import NEFFCompilationError, NEFFExecutionError, create_neuron_backend, neuron_backend
from .decompositions import register_decomposition
from .naming import get_model_name, get_rank, set_model_name

__all__ = [
    "NEFFCompilationError",
    "NEFFExecutionError",
    "create_neuron_backend",
    "get_model_name",
    "get_rank",
    "neuron_backend",
    "register_decomposition",
    "set_model_name",
]
