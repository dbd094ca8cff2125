"""The four models of the demonstration: their data, batches, losses and optimizers.

A workload builds its model on CPU from a seed and hands out the same batches to every variant. A batch is a pair of
CPU tensors; the runner moves it. `Training` modules return the loss, so that one compiled call holds model and loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from .text import Characters, english_text

SEED = 20_26
Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Size:
    """How much of a workload to run."""

    steps: int
    accuracy_needed: float = 0.0  # fraction of the test set, 0 where there is none
    is_short: bool = False  # too few steps for an accuracy to be judged


class Workload(ABC):
    """One model with its data. `full` and `quick` say how many steps `make run` and `QUICK=1` take."""

    name: str
    title: str
    full: Size
    quick: Size

    @abstractmethod
    def build(self) -> nn.Module:
        """The training module on CPU with weights drawn from the fixed seed: `module(x, y)` is the loss."""

    @abstractmethod
    def batch(self, step: int) -> Batch:
        """The CPU batch of a step, the same in every variant."""

    @abstractmethod
    def optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        """A fresh optimizer over the module's parameters, which are on their device already."""

    def accuracy(self, module: nn.Module, device: torch.device) -> float | None:
        """Fraction of the test set that is right; None for workloads judged by their loss."""
        return None

    def generate(self, module: nn.Module, device: torch.device, backend: str | None) -> list[int] | None:
        """Greedy continuation of a fixed prompt; None where the workload has no such thing."""
        return None

    def describe(self) -> str:
        count = sum(parameter.numel() for parameter in self.build().parameters())
        return f"{self.title}; {count / 1e6:.2f} M parameters"


# ---- 1: a character GPT --------------------------------------------------------------------------------------
class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.query_key_value(self.norm_attention(x)).chunk(3, dim=-1)
        q, k, v = (p.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for p in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm_mlp(x))


class CharacterGPT(nn.Module):
    """A decoder-only transformer over characters; `forward` returns the cross-entropy of the next character."""

    def __init__(self, vocabulary: int, context: int, width: int = 128, layers: int = 4, heads: int = 4) -> None:
        super().__init__()
        self.symbol = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1], device=x.device)
        hidden = self.norm(self.blocks(self.symbol(x) + self.position(places)))
        return F.cross_entropy(self.head(hidden).flatten(0, 1), y.flatten())


class TextWorkload(Workload):
    """Shared by the two language models: the text, its characters, and batches of random windows."""

    context: int
    batch_size: int

    def __init__(self) -> None:
        text, self.source = english_text()
        self.characters = Characters(text)
        self.data = torch.tensor(self.characters.encode(text))

    def batch(self, step: int) -> Batch:
        generator = torch.Generator().manual_seed(SEED + step)
        starts = torch.randint(len(self.data) - self.context - 1, (self.batch_size,), generator=generator)
        windows = torch.stack([self.data[start : start + self.context + 1] for start in starts.tolist()])
        return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


class GPT(TextWorkload):
    name = "gpt"
    title = "character GPT, 4 layers x 128, context 128, batch 8, fused AdamW"
    full = Size(steps=60)
    quick = Size(steps=12)
    context = 128
    batch_size = 8

    def build(self) -> nn.Module:
        torch.manual_seed(SEED)
        return CharacterGPT(len(self.characters.symbols), self.context)

    def optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(module.parameters(), lr=1e-3, fused=True)


# ---- 2 and 3: handwritten digits -----------------------------------------------------------------------------
class DigitsWorkload(Workload):
    """scikit-learn's bundled digits: 1797 images of 8 x 8, every fifth one for the test."""

    batch_size: int

    def __init__(self) -> None:
        from sklearn.datasets import load_digits

        digits = load_digits()
        images = torch.tensor(digits.images, dtype=torch.float32) / 16.0
        labels = torch.tensor(digits.target, dtype=torch.int64)
        test = torch.arange(len(images)) % 5 == 0
        self.train, self.train_labels = images[~test], labels[~test]
        self.test, self.test_labels = images[test], labels[test]

    def batch(self, step: int) -> Batch:
        per_epoch = len(self.train) // self.batch_size
        epoch, place = divmod(step, per_epoch)
        order = torch.randperm(len(self.train), generator=torch.Generator().manual_seed(SEED + epoch))
        chosen = order[place * self.batch_size : (place + 1) * self.batch_size]
        return self.train[chosen], self.train_labels[chosen]

    def accuracy(self, module: nn.Module, device: torch.device) -> float | None:
        module.eval()
        with torch.no_grad():
            guess = module.classify(self.test.to(device)).argmax(dim=1)  # type: ignore[operator]
            right = (guess == self.test_labels.to(device)).float().mean().item()
        module.train()
        return float(right)


class Classifier(nn.Module):
    """Base of the two classifiers: `forward` is the cross-entropy of what `classify` says."""

    def classify(self, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.classify(x), y)


class DigitsNet(Classifier):
    """The convolutions have no bias: batch norm takes it out again, its gradient is rounding noise, and Adam would
    turn that noise into steps of full size, so that even CPU with one and with two threads would part ways."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        )  # fmt: skip
        self.head = nn.Linear(64, 10)

    def classify(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x.unsqueeze(1)).flatten(1))


class Convolution(DigitsWorkload):
    name = "conv"
    title = "convolutional net with batch norm on 8 x 8 digits, batch 64, Adam"
    full = Size(steps=154, accuracy_needed=0.97)
    quick = Size(steps=66, is_short=True)
    batch_size = 64

    def build(self) -> nn.Module:
        torch.manual_seed(SEED)
        return DigitsNet()

    def optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(module.parameters(), lr=1e-3)


class RowReader(Classifier):
    def __init__(self, hidden: int = 64) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, 10)

    def classify(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


class LSTM(DigitsWorkload):
    name = "lstm"
    title = "LSTM, 2 layers x 64, reading a digit row by row, batch 64, SGD with momentum and clipping"
    full = Size(steps=220)
    quick = Size(steps=44, is_short=True)
    batch_size = 64
    clip = 1.0

    def build(self) -> nn.Module:
        torch.manual_seed(SEED)
        return RowReader()

    def optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(module.parameters(), lr=0.5, momentum=0.9)


# ---- 4: a small Llama from transformers, its code unchanged --------------------------------------------------
class CausalLoss(nn.Module):
    """Holds a transformers model and returns its own loss; the library shifts the labels by itself."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=x, labels=x).loss


class Llama(TextWorkload):
    name = "llama"
    title = "Llama of transformers, 4 layers x 128, 4 heads, 2 for keys, context 64, batch 4, AdamW"
    full = Size(steps=20)
    quick = Size(steps=5)
    context = 64
    batch_size = 4
    new_tokens = 48

    def build(self) -> nn.Module:
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(SEED)
        config = LlamaConfig(
            vocab_size=len(self.characters.symbols), hidden_size=128, intermediate_size=352, num_hidden_layers=4,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, bos_token_id=None,
            eos_token_id=None, pad_token_id=None,
        )  # fmt: skip
        return CausalLoss(LlamaForCausalLM(config))

    def optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(module.parameters(), lr=1e-3)

    def generate(self, module: nn.Module, device: torch.device, backend: str | None) -> list[int] | None:
        prompt = self.data[:16].unsqueeze(0).to(device)
        options: dict[str, Any] = {"max_new_tokens": self.new_tokens, "do_sample": False}
        if backend:
            # A static cache makes transformers compile the decoding step by itself.
            from transformers import CompileConfig

            options["cache_implementation"] = "static"
            options["compile_config"] = CompileConfig(backend=backend, dynamic=False, fullgraph=False, mode=None)
        model: Any = module.model
        model.eval()
        with torch.no_grad():
            tokens = model.generate(prompt, attention_mask=torch.ones_like(prompt), **options)
        model.train()
        return tokens[0].tolist()


WORKLOADS: dict[str, type[Workload]] = {kind.name: kind for kind in (GPT, Convolution, LSTM, Llama)}
