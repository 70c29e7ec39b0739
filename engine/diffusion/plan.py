"""Which accepted lengths of a draft get masks behind them, and how many: the next draft, made in the same pass. Pure.

A pass that checks d draft tokens ends at one of d + 1 anchors. A mask behind an anchor is of use only when the pass
ends there, so each anchor gets as many masks as are worth their rows (TiDAR, Liu et al. 2025, gives all the same).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MaskBlock:
    """`width` masks behind the draft's first `anchor` tokens."""

    anchor: int
    width: int


def plan_masks(chances: Sequence[float], gains: Sequence[float], row_cost: float, most: int) -> tuple[MaskBlock, ...]:
    """Blocks whose masks are each expected to save more than they cost, at most `most` blocks, anchors ascending.

    chances: of each draft token to be kept once those before it were. gains: what the k-th mask saves, in passes, when
    the pass ends at its anchor. row_cost: what a row costs, in single-token passes.
    """
    blocks = []
    reached = 1.0
    for anchor, chance in enumerate((*chances, 0.0)):
        ends_here = reached * (1 - chance)
        width = sum(1 for gain in gains if ends_here * gain > row_cost)
        if width:
            blocks.append((ends_here, MaskBlock(anchor, width)))
        reached *= chance
    likeliest = sorted(blocks, key=lambda block: block[0], reverse=True)[:most]
    return tuple(sorted((block for _, block in likeliest), key=lambda block: block.anchor))
