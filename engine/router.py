"""Causal decoding or a parallel canvas: the choice for one request, from measured costs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from engine.diffusion.config import CAUSAL, SamplingConfig
from engine.diffusion.denoise import Gap
from engine.protocol.messages import Route

# Tokens settled by a pass of this many rows, by draft source: what a wide pass has to earn.
WARM_START_YIELD = 6.0
WARM_START_ROWS = 16
MASK_YIELD = 1.36
MASK_ROWS = 3


@dataclass(frozen=True, slots=True)
class Decision:
    """The route, the configuration that carries it out, and the reason in words."""

    route: Route
    config: SamplingConfig
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


def decide(gap: Gap, base: SamplingConfig, forward_ms: Sequence[tuple[int, float]], *, can_draft: bool) -> Decision:
    """Pick a route: a parallel canvas where its expected tokens per pass exceed what its passes cost."""
    if base.width == 0:
        return Decision("causal", CAUSAL, "drafting is switched off")
    masks = base.masks and can_draft and gap.adapted and cost_ratio(forward_ms, MASK_ROWS) < MASK_YIELD
    wide = cost_ratio(forward_ms, WARM_START_ROWS)
    if gap.warm and base.warm_start and wide < WARM_START_YIELD:
        reason = f"the present text is the draft; a {WARM_START_ROWS}-row pass costs {wide:.1f} single ones"
        return Decision("diffusion", replace(base, masks=masks), reason)
    if masks:
        return Decision("diffusion", base, f"masks pay: {MASK_ROWS} rows cost {cost_ratio(forward_ms, MASK_ROWS):.2f}")
    if base.ngram and wide < WARM_START_YIELD:
        return Decision("diffusion", replace(base, masks=False, warm_start=False), "repeats in the text are drafts")
    return Decision("causal", CAUSAL, f"a {WARM_START_ROWS}-row pass costs {wide:.1f} single ones")
