"""All numbers of drafting and verifying, in one frozen record; those of whole canvases are in `sampling`."""

from __future__ import annotations

from dataclasses import dataclass

from engine.diffusion.cost_curve import CostCurve
from engine.diffusion.settings_mapping import FromMapping

# Until it is measured: what a CPU with AVX2 was measured to take.
UNMEASURED = CostCurve.linear(0.08)


@dataclass(frozen=True, slots=True)
class VerifyConfig(FromMapping):
    """How a canvas is drafted and checked.

    width: most draft tokens checked in one pass; 0 turns drafting off (plain causal decoding).
    warm_start, ngram, masks: which draft sources may be used.
    ngram_min: tokens that must agree for a repeat to be looked up.
    mask_width, mask_anchors: most masks behind one anchor, and most anchors that get masks in one pass.
    costs: what passes cost by their rows; the router sets what was measured.
    prompt_chunk: prompt tokens encoded in one step; bounds how long a cancel can take.
    idle_chunk: those encoded in one step while nobody waits; bounds how long a request may wait for it.
    """

    width: int = 96
    warm_start: bool = True
    ngram: bool = True
    masks: bool = True
    ngram_min: int = 2
    mask_width: int = 6
    mask_anchors: int = 4
    costs: CostCurve = UNMEASURED
    prompt_chunk: int = 64
    idle_chunk: int = 16

    def __post_init__(self) -> None:
        if self.width < 0:
            raise ValueError(f"width must not be negative, got {self.width}")
        if self.ngram_min < 1:
            raise ValueError(f"ngram_min must be positive, got {self.ngram_min}")
        if min(self.prompt_chunk, self.idle_chunk) < 1 or self.mask_width < 0 or self.mask_anchors < 0:
            raise ValueError("prompt_chunk and idle_chunk must be positive, mask_width and mask_anchors not negative")


CAUSAL = VerifyConfig(width=0, warm_start=False, ngram=False, masks=False)
