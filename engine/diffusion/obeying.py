"""A gap whose text must obey rules, decoded from the left: finished, reviewed, taken up again where it failed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace

from engine.canvas import Canvas
from engine.diffusion.constraints.causal import CausalRules
from engine.diffusion.denoise import Denoised, Gap, Watch, denoise, draft_counts
from engine.diffusion.stopping import Limits
from engine.diffusion.verify_config import VerifyConfig
from engine.models.base import Context, Denoiser
from engine.protocol.errors import EngineError


def denoise_obeying(
    model: Denoiser,
    context: Context,
    gap: Gap,
    limits: Limits,
    config: VerifyConfig,
    expired: Callable[[], bool],
    rules: CausalRules,
    watch: Watch | None = None,
) -> Generator[Canvas, None, Denoised]:
    """As `denoise`, with a text that keeps to `rules`. What was cut off by budget or deadline is not reviewed.

    Where no attempt passes, the longest beginning of the first one that does is the text: a model that goes on where it
    should end often began well. Counts are of all that was computed. Raises EngineError(unsatisfied) besides what
    `denoise` raises.
    """
    base, begun = context.length, tuple[int, ...]()
    passes, tokens, counts = 0, 0, []
    first: tuple[int, ...] | None = None
    while True:
        result: Denoised = yield from denoise(model, context, gap, limits, config, expired, watch, begun, rules)
        passes, tokens = passes + result.passes, tokens + result.tokens - len(begun)
        counts.append(result.drafts)
        first = result.settled if first is None else first
        text, again = result.text, None
        try:
            again = rules.review(result.text, result.settled) if result.stop in {"end", "lines"} else None
        except EngineError:
            text = rules.beginning(first) or ""
            if not text:
                raise
        if again is None:
            return replace(result, text=text, passes=passes, tokens=tokens, drafts=draft_counts(counts))
        begun = result.settled[:again]
        context.truncate(base + again)
