"""Which gap comes when, how long its context is and in which order its prompt stands: all from the seed and a count.

Pure. A run that is resumed at gap number n goes on exactly as one that never stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Literal

from engine.models.base import SpecialIds
from engine.training.canvas_rows import BlockChoice, CanvasRows, build_canvas_rows, draw_blocks
from engine.training.settings_text import require
from engine.training.shards import Shard, TokenHole

PromptOrder = Literal["prefix_first", "suffix_first"]


@dataclass(frozen=True, slots=True)
class ContextChoice:
    """How contexts are cut. prefix, suffix: budgets in tokens to draw from; suffix_first: share of gaps whose prompt
    shows the suffix first. Raises ValueError for values that cut nothing sensible."""

    prefix: tuple[int, ...] = (96, 160, 256, 256, 400, 512)
    suffix: tuple[int, ...] = (64, 96, 160)
    suffix_first: float = 0.35

    def __post_init__(self) -> None:
        require(bool(self.prefix) and min(self.prefix) > 0, "prefix must list budgets of at least one token")
        require(bool(self.suffix) and min(self.suffix) > 0, "suffix must list budgets of at least one token")
        require(0 <= self.suffix_first <= 1, "suffix_first is a share: from 0 to 1")


@dataclass(frozen=True, slots=True)
class TrainingGap:
    """context: the prompt's ids without its last, which is the rows' pending token."""

    context: tuple[int, ...]
    rows: CanvasRows
    order: PromptOrder
    kind: str
    language: str


class GapSequence:
    """The endless sequence of gaps of some shards: each hole once an epoch, in an order drawn per epoch.

    len() is the length of an epoch.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        special: SpecialIds,
        end: int,
        *,
        seed: int,
        blocks: BlockChoice,
        contexts: ContextChoice,
    ) -> None:
        """end: the id that closes every gap. Raises ValueError for shards without gaps."""
        if not sum(len(shard) for shard in shards):
            raise ValueError("the shards hold no gaps: build some with `python -m engine.training shards`")
        self._shards = shards
        self._ends = list(accumulate(len(shard) for shard in shards))
        self._special = special
        self._end = end
        self._seed = seed
        self._blocks = blocks
        self._contexts = contexts
        self._epoch = -1
        self._order: list[int] = []

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, number: int) -> TrainingGap:
        """Gap `number` of the run, from 0, with no end: the same whatever was asked for before."""
        epoch, place = divmod(number, len(self))
        if epoch != self._epoch:
            self._order = list(range(len(self)))
            Random(f"{self._seed}:{epoch}").shuffle(self._order)  # noqa: S311
            self._epoch = epoch
        random = Random(f"{self._seed}:gap:{number}")  # noqa: S311
        return training_gap(
            self._hole(self._order[place]), self._special, self._end, random, self._blocks, self._contexts
        )

    def _hole(self, index: int) -> TokenHole:
        shard = next(i for i, end in enumerate(self._ends) if index < end)
        return self._shards[shard][index - (self._ends[shard - 1] if shard else 0)]


def training_gap(
    hole: TokenHole, special: SpecialIds, end: int, random: Random, blocks: BlockChoice, contexts: ContextChoice
) -> TrainingGap:
    """One gap as it is trained on: contexts cut to drawn budgets, an order, blocks of masks."""
    prefix = hole.prefix[-random.choice(contexts.prefix) :]
    suffix = hole.suffix[: random.choice(contexts.suffix)]
    order: PromptOrder = "suffix_first" if random.random() < contexts.suffix_first else "prefix_first"
    rows = build_canvas_rows(special.fim_middle, hole.middle, end, draw_blocks(len(hole.middle), blocks, random))
    return TrainingGap(prompt_context(prefix, suffix, special, order), rows, order, hole.kind, hole.language)


def prompt_context(
    prefix: Sequence[int], suffix: Sequence[int], special: SpecialIds, order: PromptOrder
) -> tuple[int, ...]:
    """The prompt before `fim_middle`; which marker comes first tells the orders apart."""
    if order == "suffix_first":
        return (special.fim_suffix, *suffix, special.fim_prefix, *prefix)
    return (special.fim_prefix, *prefix, special.fim_suffix, *suffix)
