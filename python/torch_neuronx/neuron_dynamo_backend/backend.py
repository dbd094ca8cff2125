"""Backend "neuron" of torch.compile: AOTAutograd's graphs become traces that the core compiles per set of sizes."""

import difflib
import functools
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch._dynamo.trace_rules
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from . import decompositions, naming
from .recorder import Recorder, UnsupportedGraph

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
OPTIONS = {"fallback_execution": bool, "model_name": str, "fallback": str, "trace.enabled": bool}


# Dynamo runs what stands there and does not look inside: it acts on the device's state, not on tensors of the graph.
for _module in ("_device", "_register", "_report"):
    torch._dynamo.trace_rules.add(f"torch_neuronx.{_module}")


class NEFFCompilationError(RuntimeError):
    """A graph cannot be lowered; the message names the operator and the user's line."""


class NEFFExecutionError(RuntimeError):
    """A compiled graph failed while it ran."""


def _check_mode(mode: str | None) -> None:
    if mode is not None and mode not in MODES:
        near = difflib.get_close_matches(mode, MODES)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"torch.compile: backend 'neuron' has no mode {mode!r}, expected one of {MODES}{hint}")


def _check_options(options: dict[str, Any] | None) -> dict[str, Any]:
    for name, value in (options or {}).items():
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, OPTIONS)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(OPTIONS)}"
            raise ValueError(f"torch.compile: backend 'neuron' has no option {name!r}{hint}")
        if not isinstance(value, OPTIONS[name]):
            expected = OPTIONS[name].__name__
            raise TypeError(f"torch.compile: option {name!r} of backend 'neuron' expects {expected}, got {value!r}")
    return options or {}


def _on_device(tensor: Any) -> Any:
    """CPU tensors with dimensions are copied in; 0-dim ones are passed by value."""
    if isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu" and tensor.dim() > 0:
        return tensor.to("neuron")
    return tensor


def _compile_graph(graph_module: fx.GraphModule, kind: str, options: dict[str, Any]) -> Callable[..., Any]:
    name = naming.next_graph_name(kind, options.get("model_name"))
    start = time.perf_counter_ns()
    recorder = Recorder(graph_module, name)
    try:
        recorder.record()
    except UnsupportedGraph as error:
        if not options.get("fallback_execution", False):
            raise NEFFCompilationError(
                f"{name}: cannot compile {error}. "
                "Pass options={'fallback_execution': True} to run this graph eagerly instead."
            ) from error
        warnings.warn(f"{name}: runs eagerly, since it cannot be compiled: {error}", stacklevel=2)
        return graph_module
    metrics.append(
        {
            "graph_name": name,
            "graph_node_count": len(graph_module.graph.nodes),
            "torch_neuronx_lower_us": (time.perf_counter_ns() - start) // 1000,
        }
    )
    torch._dynamo.utils.counters["neuron"]["compiled_graphs"] += 1
    run_trace, states = recorder.trace.run, recorder.generator_states
    with unset_fake_temporarily():  # constants of the graph are real tensors
        constants = [_on_device(constant) for constant in recorder.constants]

    def run(inputs: list[Any]) -> list[Any]:
        given = [value for value in inputs if value is not None]
        arguments = [value if i in states else _on_device(value) for i, value in enumerate(given)]
        inputs.clear()  # AOTAutograd hands over ownership: activations can be freed as soon as they are read
        return run_trace(arguments + constants)

    def run_and_share(inputs: list[Any]) -> list[Any]:
        return recorder.finish(run(inputs))

    run_and_share._boxed_call = True  # type: ignore[attr-defined]
    run._boxed_call = True  # type: ignore[attr-defined]
    return run_and_share if recorder.root_strides else run


metrics: list[dict[str, Any]] = []


def _is_on_neuron(values: Sequence[Any]) -> bool:
    return any(isinstance(value, torch.Tensor) and value.device.type == "neuron" for value in values)


def _needs_neuron(graph_module: fx.GraphModule, inputs: Sequence[Any]) -> bool:
    if _is_on_neuron(inputs) or _is_on_neuron(list(graph_module.parameters()) + list(graph_module.buffers())):
        return True
    for node in graph_module.graph.nodes:
        if _is_on_neuron([node.meta.get("example_value")]):
            return True
    return False


def neuron_backend(
    graph_module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    **_: Any,
) -> Callable[..., Any]:
    """Compiles |graph_module| for the device neuron; graphs without neuron tensors go to PyTorch's own default.

    Raises ValueError or TypeError for unknown modes and options, NEFFCompilationError for a graph that cannot be
    lowered (unless options={"fallback_execution": True}).
    """
    from torch._dynamo.backends.common import aot_autograd
    from torch._dynamo.backends.registry import lookup_backend
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    _check_mode(mode)
    checked = _check_options(options)
    if not _needs_neuron(graph_module, example_inputs):
        return lookup_backend("inductor")(graph_module, list(example_inputs))

    def compiler(kind: str) -> Callable[..., Any]:
        return lambda module, inputs: _compile_graph(module, kind, checked)

    return aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=decompositions.table(),
        partition_fn=functools.partial(min_cut_rematerialization_partition, compiler="inductor"),
    )(graph_module, example_inputs)


def create_neuron_backend(**options: Any) -> Callable[..., Any]:
    """A backend with |options| fixed, for torch.compile(backend=...)."""
    return functools.partial(neuron_backend, options=_check_options(options))
