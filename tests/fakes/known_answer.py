"""A masked model trained in seconds to an answer that is known: a gap between two texts that both decide it.

The text is `| l1 l2 l3 | l1 l2 l3 r1 r2 r3 | r1 r2 r3`, and the gap is the six places in its middle: the left half of
the answer stands in front of it only, the right half behind it only.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy

from engine.canvas import Canvas
from engine.models.canvas_model import CanvasFacts
from engine.models.masked.config import Architecture
from engine.models.masked.families import LAYOUTS, Layout
from engine.models.masked.model import MaskedModel
from engine.models.masked.weights import Network, stock_network
from engine.tokenizer import ByteTokenizer

LETTERS = 12
MASK, BAR, VOCAB = LETTERS, LETTERS + 1, LETTERS + 2
HALF = 3
GAP = slice(2 + HALF, 2 + 3 * HALF)
STEPS, BATCH, RATE, WARM_UP = 200, 64, 4e-3, 20
ARCHITECTURE = Architecture(
    stock="qwen2",
    layers=2,
    hidden=48,
    heads=4,
    kv_heads=4,
    head_dim=12,
    intermediate=96,
    vocab=VOCAB,
    window=64,
    rope_theta=10_000.0,
    norm_epsilon=1e-6,
    tied=False,
)


@dataclass(frozen=True)
class Riddle:
    """prefix and suffix to be given, and the answer between them."""

    prefix: tuple[int, ...]
    answer: tuple[int, ...]
    suffix: tuple[int, ...]


def riddles(count: int, seed: int) -> list[Riddle]:
    """Texts that the model was not trained on with any likelihood: there are 12 ** 6."""
    rows = _texts(count, torch.Generator().manual_seed(seed)).tolist()
    return [Riddle(tuple(row[: GAP.start]), tuple(row[GAP]), tuple(row[GAP.stop :])) for row in rows]


def train(*, shift: bool, seed: int = 0) -> MaskedModel:
    """Train with the masked-diffusion objective on gaps of every mask rate (Sahoo et al. 2024, arXiv 2406.07524)."""
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = stock_network(ARCHITECTURE, "cpu")
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.0)
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / WARM_UP) * (1 - step / STEPS)
        text = _texts(BATCH, generator)
        masked = torch.zeros_like(text, dtype=torch.bool)
        rate = torch.rand(BATCH, 1, generator=generator).clamp(min=0.3)
        masked[:, GAP] = torch.rand(BATCH, 2 * HALF, generator=generator) < rate
        logits = network(input_ids=text.masked_fill(masked, MASK), is_causal=False, use_cache=False).logits
        if shift:
            logits = logits.roll(1, dims=1)
        loss = cross_entropy(logits[masked], text[masked])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    network.requires_grad_(False)
    network.train(False)
    return wrap(network, LAYOUTS["dream" if shift else "a2d-mdlm"])


def wrap(network: Network, layout: Layout) -> MaskedModel:
    """The network behind the seam, taken for a checkpoint of `layout`."""
    forbidden = torch.zeros(VOCAB, dtype=torch.bool)
    forbidden[[MASK, BAR]] = True
    facts = CanvasFacts(
        name="known-answer",
        family="masked",
        device="cpu",
        precision="fp32",
        vocab_size=VOCAB,
        window_tokens=ARCHITECTURE.window,
        noise="mask",
        mask_id=MASK,
        end_ids=frozenset(),
        forbidden=forbidden,
        exact_cache=False,
    )
    return MaskedModel(network, layout, ByteTokenizer(), facts, start_id=BAR)


def masks(count: int) -> Canvas:
    """A canvas of nothing but masks."""
    return Canvas.of([([MASK] * count, 0)])


def _texts(count: int, generator: torch.Generator) -> torch.Tensor:
    left = torch.randint(LETTERS, (count, HALF), generator=generator)
    right = torch.randint(LETTERS, (count, HALF), generator=generator)
    bar = torch.full((count, 1), BAR)
    return torch.cat((bar, left, bar, left, right, bar, right), dim=1)
