"""Which rows a training pass holds for one gap: the true text causally, and blocks of masks behind random anchors.

Pure layout, no model. The rows are those of the verifying sampler (`engine.diffusion.verify`, after TiDAR, Liu et al.
2025): a block's rows see the context, the true text up to their anchor and each other in both directions. A share of
the blocks reveals some of the text (random places, after MDLM's random t; or a run at its end, as known text to the
right of a hole). Every row's output predicts the token one place further, as in the causal model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch

from engine.training.settings_text import require

NO_LABEL = -100
MASK = -1


@dataclass(frozen=True, slots=True)
class BlockChoice:
    """How blocks are drawn: how many, the widths to draw from, shares of blocks that reveal some of the text.

    revealed_share: random places; island_share: a run at the block's end. Raises ValueError for what is no choice.
    """

    blocks: int = 8
    widths: tuple[int, ...] = (4, 4, 6, 8, 8, 12, 16)
    revealed_share: float = 0.15
    island_share: float = 0.10

    def __post_init__(self) -> None:
        require(self.blocks >= 0, "blocks must not be negative")
        require(bool(self.widths) and min(self.widths) > 0, "widths must list widths of at least one mask")
        shares = (self.revealed_share, self.island_share)
        require(min(shares) >= 0 and sum(shares) <= 1, "revealed_share and island_share are shares of one whole")


@dataclass(frozen=True, slots=True)
class Block:
    """Places anchor+1 … anchor+len(masked) behind an anchor; masked[k] says whether place anchor+1+k is a mask."""

    anchor: int
    masked: tuple[bool, ...]

    @property
    def all_masked(self) -> bool:
        return all(self.masked)


@dataclass(frozen=True, slots=True)
class CanvasRows:
    """Rows of one gap. All of length n, int64 unless said otherwise.

    ids: `MASK` for a mask. offsets: positions counted from the pending token's. visible: [n, n] bool.
    causal: how many leading rows hold the true text. labels: the token a row should predict, `NO_LABEL` for none.
    teachers: the causal row whose prediction is of the same place. depths: places behind the anchor for masks of
    all-masked blocks (1 for the first), 0 for the other rows.
    """

    ids: torch.Tensor
    offsets: torch.Tensor
    visible: torch.Tensor
    causal: int
    labels: torch.Tensor
    teachers: torch.Tensor
    depths: torch.Tensor


def draw_blocks(gap_tokens: int, choice: BlockChoice, random: Random) -> list[Block]:
    """Blocks for a gap of `gap_tokens` tokens (end token not counted), anchors anywhere, none past the end token."""
    anchors = [random.randrange(gap_tokens) for _ in range(choice.blocks)] if gap_tokens else []
    blocks = []
    for anchor in sorted(anchors):
        # A block ends with the end token's place: what would follow it has no true text.
        width = min(random.choice(choice.widths), gap_tokens - anchor)
        blocks.append(Block(anchor, _masked(width, choice, random)))
    return blocks


def _masked(width: int, choice: BlockChoice, random: Random) -> tuple[bool, ...]:
    kind = random.random()
    if width > 1 and kind < choice.revealed_share:
        share = random.random()
        masked = [random.random() < share for _ in range(width)]
        masked[random.randrange(width)] = True
        return tuple(masked)
    if width > 2 and kind < choice.revealed_share + choice.island_share:
        hole = random.randrange(1, width)
        return (True,) * hole + (False,) * (width - hole)
    return (True,) * width


def build_canvas_rows(pending: int, middle: Sequence[int], end: int, blocks: Sequence[Block]) -> CanvasRows:
    """Lay out a gap whose prompt ends with `pending` and whose text is `middle`, closed by the token `end`."""
    known = [pending, *middle]
    targets = [*middle, end]
    causal = len(known)
    ids, offsets, labels, teachers = list(known), list(range(causal)), list(targets), list(range(causal))
    depths = [0] * causal
    for block in blocks:
        for step, masked in enumerate(block.masked, start=1):
            place = block.anchor + step
            ids.append(MASK if masked else known[place])
            offsets.append(place)
            # A row predicts the next place: where that shows its text, the answer stands in the block.
            shown = step < len(block.masked) and not block.masked[step]
            labels.append(NO_LABEL if shown else targets[place])
            teachers.append(place)
            depths.append(step if block.all_masked else 0)
    return CanvasRows(
        torch.tensor(ids),
        torch.tensor(offsets),
        _visible(causal, blocks),
        causal,
        torch.tensor(labels),
        torch.tensor(teachers),
        torch.tensor(depths),
    )


def _visible(causal: int, blocks: Sequence[Block]) -> torch.Tensor:
    total = causal + sum(len(block.masked) for block in blocks)
    visible = torch.zeros(total, total, dtype=torch.bool)
    visible[:causal, :causal] = torch.ones(causal, causal, dtype=torch.bool).tril()
    start = causal
    for block in blocks:
        stop = start + len(block.masked)
        visible[start:stop, : block.anchor + 1] = True
        visible[start:stop, start:stop] = True
        start = stop
    return visible
