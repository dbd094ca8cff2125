"""The models of the demonstration, language models made smaller: the losses of CPU, eagerly and compiled."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import nn

from torch_neuronx.demo import workloads
from torch_neuronx.demo.runner import Result, Variant, run
from torch_neuronx.neuron_dynamo_backend import backend

STEPS = 40
VARIANTS = {
    "cpu": Variant("cpu", "cpu"),
    "eager": Variant("eager", "neuron"),
    "compiled": Variant("compiled", "neuron", "neuron", allow_rnn=True),
}


class SmallGPT(workloads.GPT):
    context, batch_size = 32, 4

    def build(self) -> nn.Module:
        torch.manual_seed(workloads.SEED)
        return workloads.CharacterGPT(len(self.characters.symbols), self.context, width=48, layers=2, heads=3)


class SmallLlama(workloads.Llama):
    context, batch_size, new_tokens = 24, 2, 10

    def build(self) -> nn.Module:
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(workloads.SEED)
        config = LlamaConfig(
            vocab_size=len(self.characters.symbols), hidden_size=48, intermediate_size=96, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, bos_token_id=None,
            eos_token_id=None, pad_token_id=None,
        )  # fmt: skip
        return workloads.CausalLoss(LlamaForCausalLM(config))


MODELS = {kind.name: kind for kind in (SmallGPT, workloads.Convolution, workloads.LSTM, SmallLlama)}


@functools.cache
def trained(model: str, variant: str) -> tuple[Result, list[str]]:
    """The run's account, and the names of the graphs that were compiled until its last step."""
    graphs: list[str] = []
    backend.metrics.clear()
    result = Result(model, variant, VARIANTS[variant].device, VARIANTS[variant].backend, STEPS)

    def progress(_: Result) -> None:
        if result.state == "running":
            graphs[:] = [entry["graph_name"] for entry in backend.metrics]

    run(MODELS[model](), VARIANTS[variant], result, 600.0, progress)
    assert result.state == "done", result.error
    return result, graphs


@pytest.mark.parametrize("variant", ["eager", "compiled"])
@pytest.mark.parametrize("model", list(MODELS))
def test_losses_are_those_of_cpu_and_nothing_falls_back(model: str, variant: str) -> None:
    cpu, (found, graphs) = trained(model, "cpu")[0], trained(model, variant)
    assert len(cpu.losses) == len(found.losses) == STEPS
    assert min(cpu.losses) < 0.9 * cpu.losses[0]
    for step, (expected, actual) in enumerate(zip(cpu.losses, found.losses)):
        assert abs(actual - expected) <= 1e-3 * abs(expected), step
    assert found.fallback == {} and found.on_device
    assert cpu.tokens == found.tokens
    if variant == "compiled":
        assert found.graphs == {"captured": 1, "breaks": 0, "forward and backward": 1}
        assert sorted(name.rsplit("_", 1)[1] for name in graphs) == ["backward", "forward"]


def test_a_model_generated_text() -> None:
    assert len(trained("llama", "cpu")[0].tokens or []) == 16 + SmallLlama.new_tokens
