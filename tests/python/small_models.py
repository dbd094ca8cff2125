"""Small models and their batches for tests of whole training steps; see kernels_test.py and training_test.py."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable

import torch
import torch._dynamo
from torch import nn

from torch_neuronx import _C
from torch_neuronx.demo import counters
from torch_neuronx.demo.workloads import CausalLoss, CharacterGPT, DigitsNet, RowReader

SYMBOLS = 40


def small_llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=SYMBOLS, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, bos_token_id=None, eos_token_id=None, pad_token_id=None,
    )  # fmt: skip
    return CausalLoss(LlamaForCausalLM(config))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "gpt": lambda: CharacterGPT(SYMBOLS, 300, width=32, layers=1, heads=2),
    "conv": DigitsNet,
    "lstm": RowReader,
    "llama": small_llama,
}


def batch(model: str, count: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch on the device: |count| texts, images or sequences of |length| characters, lines or rows."""
    generator = torch.Generator().manual_seed(1000 * count + length)
    if model == "llama":
        x = y = torch.randint(SYMBOLS, (count, length), generator=generator)
    elif model == "gpt":
        x, y = torch.randint(SYMBOLS, (2, count, length), generator=generator)
    else:
        width = length if model == "conv" else 8
        x = torch.randn(count, length, width, generator=generator)
        y = torch.randint(10, (count,), generator=generator)
    return x.to("neuron"), y.to("neuron")


class Trainer:
    """One model with its optimizer, run eagerly or compiled. |dynamic| is torch.compile's; "eager" does not compile."""

    def __init__(self, model: str, dynamic: bool | None | str) -> None:
        torch._dynamo.reset()
        torch._dynamo.config.allow_rnn = True
        torch._dynamo.config.cache_size_limit = 64
        torch.manual_seed(0)
        self.name = model
        self.module = MODELS[model]().to("neuron")
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=1e-3, fused=model == "gpt")
        compiled = dynamic != "eager"
        self.call = torch.compile(self.module, backend="neuron", dynamic=dynamic) if compiled else self.module

    def step(self, count: int, length: int) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = self.call(*batch(self.name, count, length))
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def digest(self, steps: int, count: int, length: int) -> str:
        """The bits of losses, gradients and parameters after some steps, as one hash."""
        losses = [self.step(count, length) for _ in range(steps)]
        found = hashlib.sha256()
        for tensor in [*losses, *(p.grad for p in self.module.parameters()), *self.module.state_dict().values()]:
            found.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        return found.hexdigest()


def main() -> None:
    """Trains some models; prints digests by model and way, and the kernels that this process needed."""
    _C._set_thread_count(int(sys.argv[1]))
    runs = [("gpt", "eager"), ("gpt", False), ("conv", "eager"), ("lstm", "eager")]
    digests = {f"{model} {way}": Trainer(model, way).digest(3, 6, 12) for model, way in runs}
    print(json.dumps({"digests": digests, "kernels": vars(counters.kernels())}))


if __name__ == "__main__":
    main()
