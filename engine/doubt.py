"""How sure a causal model is of the text it settles: the mean probability of its tokens, read from its passes."""

from __future__ import annotations

import torch

from engine.diffusion.denoise import Pass, Watch
from engine.quality import MeanProbability

MOST_TOKENS = 32
"""Of a text, from its beginning. Reading a row of 151,665 logits took 0.14 ms, where a pass of one row took 20."""


class Doubt:
    """Looks on as a `denoise.Watch` and hands every pass on to `watch`. For passes whose logits are the model's own say
    only, not what rules made of it."""

    def __init__(self, watch: Watch | None = None) -> None:
        self._watch = watch
        self._mean = MeanProbability()
        self._seen = 0

    @property
    def confidence(self) -> float | None:
        """Mean probability of the tokens settled so far, None before any."""
        return self._mean.value

    def __call__(self, seen: Pass) -> None:
        """Take in a pass."""
        rows = min(seen.accepted + 1, MOST_TOKENS - self._seen)
        if rows > 0:
            self._seen += rows
            logits = seen.logits[:rows].float()
            self._mean.add((logits.amax(-1) - torch.logsumexp(logits, -1)).exp().tolist())
        if self._watch is not None:
            self._watch(seen)
