"""What training tests need of a world: the tiny model as the trainer sees it, random terms, holes, shards, settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import torch

from engine.models.conversion import special_ids
from engine.models.gguf_file import GgufFile
from engine.training.batches import ContextChoice, GapSequence
from engine.training.canvas_rows import BlockChoice
from engine.training.differentiable import FrozenModel, load_frozen
from engine.training.low_rank import LowRankTerms, fresh_parameters
from engine.training.objective import ReducedHead
from engine.training.optimiser import OptimiserChoice
from engine.training.run_settings import RunSettings
from engine.training.shards import Shard, TokenHole, write_shard

# Ordinary bytes, none of the tiny vocabulary's special ids.
ORDINARY = range(33, 127)
FREQUENT = 200
SETTINGS = RunSettings(
    gaps_per_step=2,
    frequent=FREQUENT,
    blocks=BlockChoice(blocks=3, widths=(2, 4)),
    contexts=ContextChoice(prefix=(8, 12), suffix=(4, 6)),
    optimiser=OptimiserChoice(learning_rate=1e-2, warm_up=2),
)
"""Settings as words for `--set` are in `SETTING_WORDS`."""
SETTING_WORDS = (
    "gaps_per_step=2",
    f"frequent={FREQUENT}",
    "blocks.blocks=3",
    "blocks.widths=[2, 4]",
    "contexts.prefix=[8, 12]",
    "contexts.suffix=[4, 6]",
    "optimiser.learning_rate=1e-2",
    "optimiser.warm_up=2",
)


def frozen_model(gguf: Path, precision: str = "fp32") -> FrozenModel:
    return load_frozen(GgufFile(gguf), precision=precision, window=256)


def random_terms(model: FrozenModel, *, seed: int = 0, rank: int = 4) -> LowRankTerms:
    """Terms that change something: both factors are random."""
    dice = torch.Generator().manual_seed(seed)
    mask = torch.randn(model.shape.hidden, generator=dice)
    parameters = fresh_parameters(model.shape, rank, mask, dice)
    for name, tensor in parameters.items():
        if name.endswith("lora_B"):
            tensor.copy_(torch.randn(tensor.shape, generator=dice) * 0.2)
    return LowRankTerms(model.shape, parameters)


def fresh_terms(model: FrozenModel, *, seed: int = 0, rank: int = 4) -> LowRankTerms:
    """Terms that change nothing yet."""
    dice = torch.Generator().manual_seed(seed)
    return LowRankTerms(model.shape, fresh_parameters(model.shape, rank, model.embedding.mean(0), dice))


def reduced_head(model: FrozenModel, frequent: Sequence[int] = range(FREQUENT)) -> ReducedHead:
    return ReducedHead(model, torch.tensor(list(frequent)), "fp32")


def random_holes(count: int, *, seed: int = 0, longest: int = 12) -> list[TokenHole]:
    """Holes of ordinary bytes; every third middle is empty or short."""
    dice = Random(seed)

    def text(most: int) -> tuple[int, ...]:
        return tuple(dice.choice(ORDINARY) for _ in range(dice.randrange(most + 1)))

    return [
        TokenHole(text(20), text(2) if index % 3 == 2 else text(longest), text(10), kind, "python")
        for index, kind in zip(range(count), ("lines", "span", "empty") * count, strict=False)
    ]


def write_tiny_shards(folder: Path, *, train: int = 8, held_out: int = 3) -> None:
    """Two training shards of random holes and a held-out one."""
    holes = random_holes(train, seed=1)
    write_shard(folder / "train-000.safetensors", holes[: train // 2], {"seed": "1"})
    write_shard(folder / "train-001.safetensors", holes[train // 2 :], {"seed": "1"})
    write_shard(folder / "held_out.safetensors", random_holes(held_out, seed=2), {"seed": "2"})


def gap_sequence(gguf: Path, folder: Path, holes: Sequence[TokenHole], settings: RunSettings = SETTINGS) -> GapSequence:
    """The gaps of some holes, stored in a shard under `folder`."""
    path = folder / f"train-{len(list(folder.glob('train-*')))}.safetensors"
    write_shard(path, holes, {})
    special = special_ids(GgufFile(gguf).vocabulary(), gguf)
    return GapSequence(
        [Shard(path)],
        special,
        min(special.end),
        seed=settings.seed,
        blocks=settings.blocks,
        contexts=settings.contexts,
    )
