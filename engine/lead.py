"""The lead: what is known of a gap's beginning, brought into the context, and the token at its end healed.

A cursor may stand inside a word, where the text's own tokens are not those that a longer text would have: after `ret`
a model that learnt `return` as one token has little to say. So the last token before the cursor is given up, and the
likeliest token that begins with its bytes is taken: token healing, after Lundberg (guidance, 2023). What that token
says beyond the bytes known is the answer's opening.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from engine.diffusion.denoise import allowed_ids
from engine.diffusion.verify import PassLayout, build_rows
from engine.models.base import Context, Denoiser, Tokenizer
from engine.prompts import Prompt

LIKELIEST = 1024
"""How far down the likeliest tokens one that fits is looked for; the text's own token fits in any case."""
_JUDGED_ROWS = 8
"""Rows of the lead that run in the pass whose logits are wanted: more would cost the head more than a second pass."""


def settle_lead(model: Denoiser, context: Context, prompt: Prompt, *, heal: bool = True) -> Prompt:
    """Put the lead's rows behind the prompt's and heal its end; a prompt without a lead comes back as it is.

    `context` holds `prompt.ids` and then `prompt.rows` rows. One forward pass, or two for a long lead. heal: False
    where the answer must be made token by token, as by rules; the text's own token stays then. Raises
    EngineError(window_exceeded) from the model.
    """
    if not prompt.lead:
        return prompt
    first = max(0, len(prompt.lead) - _JUDGED_ROWS)
    if first:
        rows = build_rows(
            PassLayout(prompt.lead[0], prompt.lead[1:first]), len(prompt.ids), model.facts.mask_id, adapted=True
        )
        model.step(context, replace(rows, logit_rows=0))
    layout = PassLayout(prompt.lead[first], prompt.lead[first + 1 :])
    rows = build_rows(layout, len(prompt.ids) + first, model.facts.mask_id, adapted=True)
    logits = model.step(context, rows)[-1, : allowed_ids(model)]
    if not heal:
        return prompt
    token, opening = healed(logits, model.tokenizer, prompt.gap.pending, model.facts.special.special)
    return replace(prompt, gap=replace(prompt.gap, pending=token), opening=opening)


def healed(logits: torch.Tensor, tokenizer: Tokenizer, known: int, special: frozenset[int]) -> tuple[int, str]:
    """The likeliest token whose bytes begin with those of `known`, and the text behind them.

    logits: [vocab] float32, of the place where `known` stands. Tokens that end inside a character are not taken, but
    for `known` itself.
    """
    head = tokenizer.decode_bytes([known])
    for token in logits.topk(min(LIKELIEST, logits.shape[0])).indices.tolist():
        if token == known:
            break
        data = b"" if token in special else tokenizer.decode_bytes([token])
        if data.startswith(head):
            try:
                return token, data[len(head) :].decode()
            except UnicodeDecodeError:
                continue
    return known, ""
