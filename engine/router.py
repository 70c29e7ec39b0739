"""Causal decoding or a parallel canvas, and how wide a pass may be: decided for one request by measured costs. Pure.

How much of that width a pass uses is decided anew for every pass, by what the request's drafts have been worth so far:
see `diffusion.competition` and `diffusion.cost_curve.worthwhile`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.diffusion.cost_curve import CostCurve
from engine.diffusion.denoise import Gap
from engine.diffusion.verify_config import CAUSAL, VerifyConfig
from engine.protocol.messages import Route
from engine.rollout import Permit

# Where checking one more token costs this share of the pass that would make it, hardly any draft is sure enough.
DEAREST_ROW = 0.9
# A job can be cancelled, and another one served, only between passes: a pass should end within this time, in ms.
LONGEST_PASS_MS = 400.0
NARROWEST = 8


@dataclass(frozen=True, slots=True)
class Decision:
    """The route, the configuration that carries it out, and the reason in words."""

    route: Route
    config: VerifyConfig
    reason: str


def decide(
    gap: Gap,
    base: VerifyConfig,
    forward_ms: Sequence[tuple[int, float]],
    *,
    can_draft: bool,
    permit: Permit | None = None,
) -> Decision:
    """Pick a route: a parallel canvas unless rows are so dear on this machine that drafts cannot earn them.

    forward_ms: (rows, milliseconds) as measured, empty when nothing was. permit: None grants the diffusion route.
    """
    if base.width == 0:
        return Decision("causal", CAUSAL, "drafting is switched off")
    if permit is not None and not permit.is_granted:
        return Decision("causal", CAUSAL, permit.reason)
    costs = CostCurve.measured(forward_ms) or base.costs
    width = widest(base.width, forward_ms, costs)
    price = min((costs.of(1 + rows) - 1) / rows for rows in range(1, width + 1))
    if price > DEAREST_ROW:
        return Decision("causal", CAUSAL, f"a row more costs {price:.2f} single-token passes here")
    masks = base.masks and can_draft and gap.adapted
    drafted = [name for name, used in (("the present text", gap.warm and base.warm_start), ("masks", masks)) if used]
    sources = " and ".join([*drafted, "repeats"])
    reason = f"{sources} are drafts of up to {width} tokens; a row more costs {price:.2f} single-token passes"
    return Decision("diffusion", replace(base, masks=masks, costs=costs, width=width), reason)


def widest(most: int, forward_ms: Sequence[tuple[int, float]], costs: CostCurve) -> int:
    """The widest draft, at most `most` tokens, whose pass ends within `LONGEST_PASS_MS`; `NARROWEST` at the least."""
    single = dict(forward_ms).get(1, 0.0)
    width = most
    while width > NARROWEST and single * costs.of(1 + width) > LONGEST_PASS_MS:
        width -= 1
    return width


def causal_again(refused: Decision, why: str) -> Decision:
    """The causal route for a gap that went wrong on the diffusion route, for the reasons `why`.

    The text that was refused is the only draft. What the model chooses as well, token by token, is settled many tokens
    a pass, the rest is causal decoding; no trained drafter is asked.
    """
    config = replace(refused.config, masks=False, ngram=False, warm_start=True)
    return Decision("causal", config, f"made again causally, for {why}; before that {refused.reason}")
