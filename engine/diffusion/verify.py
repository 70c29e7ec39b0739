"""One pass of the verifying sampler: rows in, accepted tokens and next predictions out.

The rows of a pass are the pending token (known, its keys not yet resident), the draft behind it, and mask blocks.
Each row sees the context and, causally, the rows before it; a mask sees the pending token, the draft up to its
anchor and the other masks of its block in both directions. So the causal rows do not depend on any mask, and the
accepted text equals greedy decoding whatever was drafted. Block layout after TiDAR (Liu et al., 2025); acceptance
after speculative decoding (Leviathan et al., arXiv 2211.17192), greedy case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.diffusion.drafts import Leftover
from engine.diffusion.likeliest import likeliest
from engine.diffusion.plan import MaskBlock
from engine.models.base import CanvasRows


@dataclass(frozen=True, slots=True)
class PassLayout:
    """What one pass checks and predicts: `draft` tokens, then blocks of masks, anchors ascending."""

    pending: int
    draft: tuple[int, ...] = ()
    blocks: tuple[MaskBlock, ...] = ()

    @property
    def causal_rows(self) -> int:
        """Rows of known or drafted tokens: the pending one and the draft."""
        return 1 + len(self.draft)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass settled: `accepted` draft tokens, the token `bonus` behind them, and predictions for later."""

    accepted: int
    bonus: int
    leftover: Leftover


def build_rows(layout: PassLayout, base: int, mask_id: int, *, adapted: bool) -> CanvasRows:
    """Rows of a pass whose pending token stands at absolute position `base`."""
    causal = layout.causal_rows
    ids = [layout.pending, *layout.draft]
    positions = list(range(base, base + causal))
    if not layout.blocks:
        return CanvasRows(torch.tensor(ids), torch.tensor(positions), None, adapted)
    for block in layout.blocks:
        ids += [mask_id] * block.width
        positions += range(base + block.anchor + 1, base + block.anchor + 1 + block.width)
    return CanvasRows(torch.tensor(ids), torch.tensor(positions), _visible(causal, layout.blocks), adapted)


def _visible(causal: int, blocks: Sequence[MaskBlock]) -> torch.Tensor:
    """Visibility among the rows of one pass, [n, n] bool."""
    total = causal + sum(block.width for block in blocks)
    visible = torch.zeros(total, total, dtype=torch.bool)
    visible[:causal, :causal] = torch.ones(causal, causal, dtype=torch.bool).tril()
    start = causal
    for block in blocks:
        stop = start + block.width
        visible[start:stop, : block.anchor + 1] = True
        visible[start:stop, start:stop] = True
        start = stop
    return visible


def judge(layout: PassLayout, logits: torch.Tensor) -> Outcome:
    """Accept the longest draft prefix that equals the argmax of the rows before it. logits: [rows, vocab] float32."""
    causal = layout.causal_rows
    greedy = likeliest(logits[:causal])
    accepted = matching_prefix(layout.draft, greedy)
    return Outcome(accepted, greedy[accepted], _leftover(layout, logits, accepted))


def matching_prefix(draft: Sequence[int], greedy: Sequence[int]) -> int:
    """How many leading draft tokens equal the greedy ones."""
    for index, token in enumerate(draft):
        if token != greedy[index]:
            return index
    return len(draft)


def _leftover(layout: PassLayout, logits: torch.Tensor, accepted: int) -> Leftover:
    start = layout.causal_rows
    for block in layout.blocks:
        if block.anchor == accepted:
            probabilities, tokens = logits[start : start + block.width].softmax(-1).max(-1)
            return Leftover(tuple(tokens.tolist()), tuple(probabilities.tolist()))
        start += block.width
    return Leftover()
