"""Causal decoding or a parallel canvas: the choice for one request, from measured costs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from engine.diffusion.denoise import Gap
from engine.diffusion.verify_config import CAUSAL, VerifyConfig
from engine.protocol.messages import Route

# Passes of this many rows are what drafts make of single ones.
DRAFT_ROWS = 8
# A draft is kept about half the time: where a row costs more than this share of a pass, few drafts earn theirs.
DEAREST_ROW = 0.5


@dataclass(frozen=True, slots=True)
class Decision:
    """The route, the configuration that carries it out, and the reason in words."""

    route: Route
    config: VerifyConfig
    reason: str


def cost_ratio(forward_ms: Sequence[tuple[int, float]], rows: int) -> float:
    """How many single-token passes a pass of `rows` rows costs, between measured points linearly; 1.0 if unmeasured."""
    points = sorted(forward_ms)
    if not points or points[0][1] <= 0:
        return 1.0
    single = points[0][1]
    for (low, low_ms), (high, high_ms) in pairwise(points):
        if rows <= high:
            share = max(0.0, (rows - low) / (high - low))
            return (low_ms + share * (high_ms - low_ms)) / single
    return points[-1][1] / single


def row_cost(forward_ms: Sequence[tuple[int, float]], unmeasured: float) -> float:
    """What one row more costs in passes of about `DRAFT_ROWS` rows, as a share of a single-token pass."""
    if not forward_ms:
        return unmeasured
    return max(0.0, cost_ratio(forward_ms, DRAFT_ROWS) - 1) / (DRAFT_ROWS - 1)


def decide(gap: Gap, base: VerifyConfig, forward_ms: Sequence[tuple[int, float]], *, can_draft: bool) -> Decision:
    """Pick a route: a parallel canvas unless rows are so dear on this machine that drafts cannot earn them."""
    if base.width == 0:
        return Decision("causal", CAUSAL, "drafting is switched off")
    cost = row_cost(forward_ms, base.row_cost)
    if cost > DEAREST_ROW:
        return Decision("causal", CAUSAL, f"a row more costs {cost:.2f} single-token passes here")
    masks = base.masks and can_draft and gap.adapted
    drafted = [name for name, used in (("the present text", gap.warm and base.warm_start), ("masks", masks)) if used]
    reason = f"{' and '.join([*drafted, 'repeats'])} are drafts; a row more costs {cost:.2f} single-token passes"
    return Decision("diffusion", replace(base, masks=masks, row_cost=cost), reason)
