"""The lead: what is known of a gap's beginning, brought into the context, and the token at its end healed.

A cursor may stand inside a word, where the text's own tokens are not those that a longer text would have: after `ret`
a model that learnt `return` as one token has little to say. So the last token before the cursor is given up, and the
likeliest token that begins with its bytes is taken: token healing, after Lundberg (guidance, 2023). What that token
says beyond the bytes known is the answer's opening. Where an answer lately given lets expect how the text goes on, the
expected tokens run in the same pass and are checked by it: a key that goes along with it costs one pass in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from engine.diffusion.competition import Candidate
from engine.diffusion.confidence import EXPECTED_GOES_ON, EXPECTED_KEPT
from engine.diffusion.cost_curve import CostCurve, worthwhile
from engine.diffusion.denoise import Denoised, Pass, Watch, allowed_ids, draft_counts
from engine.diffusion.drafts import Leftover
from engine.diffusion.likeliest import likeliest
from engine.diffusion.verify import PassLayout, build_rows, matching_prefix
from engine.models.base import Context, Denoiser, Tokenizer
from engine.prompts import Prompt

LIKELIEST = 1024
"""How far down the likeliest tokens one that fits is looked for; the text's own token fits in any case."""
_JUDGED_ROWS = 8
"""Rows of the lead that run in the pass whose logits are wanted: more would cost the head more than a second pass."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What a lead's pass settled besides: `ids` behind the pending token, an end among them only as the last one.

    offered, kept: expected tokens that were checked, and the leading ones that the model chose as well.
    """

    prompt: Prompt
    ids: tuple[int, ...] = ()
    offered: int = 0
    kept: int = 0

    @property
    def is_refused(self) -> bool:
        """Whether something was expected and the model did not even take its first token."""
        return self.offered > 0 and self.kept == 0

    def counted(self, result: Denoised) -> Denoised:
        """`result`, which went on from here, with this pass and its draft; a lead that settles nothing is no pass."""
        if not self.offered:
            return result
        drafts = draft_counts([result.drafts, (("warm_start", self.offered, self.kept),)])
        return replace(result, passes=result.passes + bool(self.ids), drafts=drafts)


def settle_lead(model: Denoiser, context: Context, prompt: Prompt, *, heal: bool = True) -> Prompt:
    """Put the lead's rows behind the prompt's and heal its end; a prompt without a lead comes back as it is.

    `context` holds `prompt.ids` and then `prompt.rows` rows. One forward pass, or two for a long lead. heal: False
    where the answer must be made token by token, as by rules; the text's own token stays then. Raises
    EngineError(window_exceeded) from the model.
    """
    if not prompt.lead:
        return prompt
    logits = _judged(model, context, prompt, prompt.lead)[-1]
    return _opened(model, prompt, logits) if heal else prompt


def settle_lead_and_go_on(
    model: Denoiser, context: Context, prompt: Prompt, expected: Sequence[int], watch: Watch | None = None
) -> Begun:
    """`settle_lead` of a prompt that has a lead, with `expected` ids checked by the same pass.

    expected: the pending token, healed, and what is behind it. As far as the model chooses the same ids they are
    settled, and one more behind them. `context` then holds the pending token and all settled ids but the last. With an
    unexpected pending token it holds `prompt.rows` rows and nothing is settled. watch: told that pass, if it settles.
    """
    if not expected:
        return Begun(settle_lead(model, context, prompt))
    logits = _judged(model, context, prompt, (*prompt.lead, *expected))[-1 - len(expected) :]
    begun = _opened(model, prompt, logits[0])
    if begun.gap.pending != expected[0]:
        context.truncate(prompt.rows)
        return Begun(begun, offered=len(expected))
    draft, judging = tuple(expected[1:]), logits[1:]
    greedy = likeliest(judging)
    kept = matching_prefix(draft, greedy)
    context.truncate(prompt.rows + 1 + kept)
    if watch is not None:
        told = tuple(Candidate(token, "warm_start", EXPECTED_GOES_ON) for token in draft)
        watch(Pass((), told, kept, greedy[kept], Leftover(), judging))
    ids = (*draft[:kept], greedy[kept])
    end = next((place for place, token in enumerate(ids) if token in model.facts.special.special), len(ids))
    return Begun(begun, ids[: end + 1], len(expected), kept + 1)


def worth_expecting(expected: Sequence[int], lead: int, room: int, costs: CostCurve) -> tuple[int, ...]:
    """As many of the expected ids, at most `room`, as are worth their rows beside the `lead` ones that run anyway."""
    reached = [EXPECTED_KEPT * EXPECTED_GOES_ON**place for place in range(min(len(expected), max(0, room)))]
    return tuple(expected[: worthwhile(reached, costs, beside=lead - 1)])


def _judged(model: Denoiser, context: Context, prompt: Prompt, ids: Sequence[int]) -> torch.Tensor:
    """Run ids that begin with the lead behind the prompt; logits of the lead's last row and of those behind it."""
    first = max(0, len(prompt.lead) - _JUDGED_ROWS)
    mask = model.facts.mask_id
    if first:
        rows = build_rows(PassLayout(ids[0], tuple(ids[1:first])), len(prompt.ids), mask, adapted=True)
        model.step(context, replace(rows, logit_rows=0))
    rows = build_rows(PassLayout(ids[first], tuple(ids[first + 1 :])), len(prompt.ids) + first, mask, adapted=True)
    return model.step(context, rows)[:, : allowed_ids(model)]


def _opened(model: Denoiser, prompt: Prompt, logits: torch.Tensor) -> Prompt:
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
