"""A short look at a hole, for who must choose which of several to fill first: `causal_glimpse`.

The first tokens of the hole's own text are made, by the same passes that will fill it: how unsure they were is the
doubt, and they themselves are the draft from which the hole is filled, so that the look is not thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace

import torch

from engine.diffusion.denoise import Pass, denoise, ids_of
from engine.diffusion.stopping import cut_at_lines
from engine.diffusion.verify_config import VerifyConfig
from engine.hole_by_hole import Glimpse
from engine.models.base import Context, Denoiser
from engine.prompts import Prompt

TOKENS = 8
"""How far a look goes into a text."""


def causal_glimpse(
    model: Denoiser, context: Context, prompt: Prompt, config: VerifyConfig, expired: Callable[[], bool]
) -> Generator[None, None, Glimpse]:
    """Look at the gap of `prompt` on top of `context`, which holds the prompt and is left with rows beyond it.

    The doubt is the mean of -log p over the tokens that greedy decoding takes, an end included. One pass a `next()`.
    Raises EngineError(window_exceeded) from the model.
    """
    if cut_at_lines(prompt.opening, prompt.limits.max_lines) is not None:
        return Glimpse(0.0, prompt.opening)
    surprises: list[float] = []

    def watch(each: Pass) -> None:
        ids = torch.tensor([*ids_of(each.draft)[: each.accepted], each.bonus])
        chances = each.logits[: ids.shape[0]].log_softmax(-1).cpu()
        surprises.extend((-chances.gather(-1, ids[:, None])).flatten().tolist())

    limits = replace(prompt.limits, max_tokens=min(TOKENS, prompt.limits.max_tokens))
    passes = denoise(model, context, prompt.gap, limits, config, expired, watch)
    while True:
        try:
            next(passes)
        except StopIteration as finished:
            seen = finished.value
            break
        yield None
    yield None
    return Glimpse(sum(surprises) / len(surprises), prompt.opening + seen.text, seen.passes)
