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
from engine.models.base import CanvasRows


@dataclass(frozen=True, slots=True)
class PassLayout:
    """What one pass checks and predicts: `draft` tokens, then `anchors` blocks of `mask_width` masks each."""

    pending: int
    draft: tuple[int, ...]
    anchors: int
    mask_width: int

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
    if not layout.anchors or not layout.mask_width:
        return CanvasRows(torch.tensor(ids), torch.tensor(positions), None, adapted)
    for anchor in range(layout.anchors):
        ids += [mask_id] * layout.mask_width
        positions += range(base + anchor + 1, base + anchor + 1 + layout.mask_width)
    visible = _visible(causal, layout.anchors, layout.mask_width)
    return CanvasRows(torch.tensor(ids), torch.tensor(positions), visible, adapted)


def _visible(causal: int, anchors: int, width: int) -> torch.Tensor:
    """Visibility among the rows of one pass, [n, n] bool."""
    total = causal + anchors * width
    visible = torch.zeros(total, total, dtype=torch.bool)
    visible[:causal, :causal] = torch.ones(causal, causal, dtype=torch.bool).tril()
    for anchor in range(anchors):
        start = causal + anchor * width
        visible[start : start + width, : anchor + 1] = True
        visible[start : start + width, start : start + width] = True
    return visible


def judge(layout: PassLayout, logits: torch.Tensor) -> Outcome:
    """Accept the longest draft prefix that equals the argmax of the rows before it. logits: [rows, vocab] float32."""
    causal = layout.causal_rows
    greedy: list[int] = logits[:causal].argmax(-1).tolist()
    accepted = matching_prefix(layout.draft, greedy)
    return Outcome(accepted, greedy[accepted], _leftover(layout, logits, greedy, accepted))


def matching_prefix(draft: Sequence[int], greedy: Sequence[int]) -> int:
    """How many leading draft tokens equal the greedy ones."""
    for index, token in enumerate(draft):
        if token != greedy[index]:
            return index
    return len(draft)


def _leftover(layout: PassLayout, logits: torch.Tensor, greedy: list[int], accepted: int) -> Leftover:
    causal = tuple(greedy[accepted + 1 :])
    if accepted >= layout.anchors or not layout.mask_width:
        return Leftover(causal=causal)
    start = layout.causal_rows + accepted * layout.mask_width
    probabilities, tokens = logits[start : start + layout.mask_width].softmax(-1).max(-1)
    return Leftover(tuple(tokens.tolist()), tuple(probabilities.tolist()), causal)
