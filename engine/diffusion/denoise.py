"""The denoising loop of one gap: draft, verify, settle, until the gap is full. One pass per step.

With every draft source on, the settled text equals plain greedy decoding of the same weights: the verifying pass
computes each token from settled ones only (see `verify`). Owns no clock and no sockets; the caller closes the
generator to cancel and passes a predicate for the deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch

from engine.canvas import FREE, SETTLED, Canvas
from engine.diffusion.competition import Competition, Draft
from engine.diffusion.confidence import MaskConfidence
from engine.diffusion.drafts import Leftover
from engine.diffusion.likeliest import likeliest
from engine.diffusion.plan import MaskBlock, plan_masks
from engine.diffusion.stopping import Limits, cut_at_lines, cut_at_stop_text, decode_prefix
from engine.diffusion.verify import PassLayout, build_rows, judge
from engine.diffusion.verify_config import VerifyConfig
from engine.models.base import Context, Denoiser
from engine.protocol.messages import Stop


@dataclass(frozen=True, slots=True)
class Gap:
    """What is to be denoised, in tokens.

    pending: the last prompt token, not yet in the context. warm: the text now in the gap, empty when there is none.
    searched: runs of the request's own text for n-gram look-up, the one nearest the gap last.
    adapted: whether the gap's rows run with the family's adapter.
    """

    pending: int
    adapted: bool
    warm: tuple[int, ...] = ()
    searched: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Denoised:
    """A filled gap. `tokens` counts settled tokens, the end token included; `drafts` is (source, offered, kept).

    `settled` are the ids themselves, without the end token; they may reach beyond where `text` was cut.
    """

    text: str
    stop: Stop
    passes: int
    tokens: int
    drafts: tuple[tuple[str, int, int], ...]
    settled: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass as who watches the loop sees it.

    settled: ids settled before it. draft: what it checked, of which the first `accepted` were kept; bonus: the id it
    settled behind them, which may be an end. leftover: masks' predictions for the places behind the bonus.
    logits: [1 + len(draft), vocab] float32; row i judged the place of `draft[i]`, the last one the place behind.
    """

    settled: tuple[int, ...]
    draft: Draft
    accepted: int
    bonus: int
    leftover: Leftover
    logits: torch.Tensor


Watch = Callable[[Pass], None]


class RowRules(Protocol):
    """What changes the model's say at the verified rows before the likeliest ids are taken there."""

    def constrain(self, settled: Sequence[int], draft: Sequence[int], logits: torch.Tensor) -> torch.Tensor:
        """[rows, ids] float32 from the same; the given ones are not changed.

        The first 1 + len(draft) rows judge the places behind `settled` and behind each token of the draft. What becomes
        of such a row may depend on the ids in front of it only; rows behind them must stay as they are.
        """
        ...


@dataclass(slots=True)
class _Progress:
    """The loop's state: what is settled from the left, what the last pass left over, the number of passes."""

    settled: tuple[int, ...] = ()
    leftover: Leftover = field(default_factory=Leftover)
    passes: int = 0


def denoise(
    model: Denoiser,
    context: Context,
    gap: Gap,
    limits: Limits,
    config: VerifyConfig,
    expired: Callable[[], bool],
    watch: Watch | None = None,
    begun: tuple[int, ...] = (),
    rules: RowRules | None = None,
) -> Generator[Canvas, None, Denoised]:
    """Fill `gap` on top of `context`. Yields the canvas after each pass; returns the text and its counts.

    watch: called with each pass as soon as it is judged, the last one too; it must not write to what it is given.
    begun: ids that are settled already, the last one perhaps an end; the context holds the pending token and all of
    them but the last. Where they make the text whole there is no pass.
    rules: what is done to the verified rows, such as which ids may stand where; whether the finished text passes
    checks is the caller's question.
    Raises EngineError(window_exceeded) from the model when context and gap outgrow its window.
    """
    special = model.facts.special.special
    ended_before = bool(begun) and begun[-1] in special
    begun = begun[:-1] if ended_before else begun
    progress = _Progress(begun)
    confidence = model.facts.confidence if gap.adapted else None
    sources = Competition.over(config, confidence, gap.warm, gap.searched, special)
    sources.settle(begun)
    allowed = allowed_ids(model)
    text = _Text(model, limits)
    if (begun or ended_before) and (stop := text.update(begun, ended_before, expired)) is not None:
        return _finish(text.text, stop, progress, sources, ended_before)
    while True:
        settled = progress.settled
        draft = sources.draft(settled, progress.leftover, limits.max_tokens - len(settled) - 1)
        if progress.passes:
            yield Canvas.of([(settled, SETTLED), (ids_of(draft), FREE)])
        layout = PassLayout(settled[-1] if settled else gap.pending, ids_of(draft), _blocks(draft, config, confidence))
        base = context.length
        logits = model.step(context, build_rows(layout, base, model.facts.mask_id, adapted=gap.adapted))
        judged = logits[:, :allowed]
        if rules is not None:
            judged = rules.constrain(settled, layout.draft, judged)
        outcome = judge(layout, judged)
        if watch is not None:
            judging = judged[: layout.causal_rows]
            watch(Pass(settled, draft, outcome.accepted, outcome.bonus, outcome.leftover, judging))
        context.truncate(base + 1 + outcome.accepted)
        progress.leftover = outcome.leftover
        progress.passes += 1
        sources.record(draft, outcome.accepted)
        fresh = (*layout.draft[: outcome.accepted], outcome.bonus)
        ended = next((i for i, token in enumerate(fresh) if token in special), None)
        fresh = fresh if ended is None else fresh[:ended]
        progress.settled += fresh
        sources.settle(fresh)
        stop = text.update(progress.settled, ended is not None, expired)
        if stop is not None:
            return _finish(text.text, stop, progress, sources, ended is not None)


class _Text:
    """The settled text as it grows, and the rule that says when it is complete."""

    def __init__(self, model: Denoiser, limits: Limits) -> None:
        self._tokenizer = model.tokenizer
        self._limits = limits
        self._data = b""
        self._seen = 0
        self.text = ""

    def update(self, settled: tuple[int, ...], ended: bool, expired: Callable[[], bool]) -> Stop | None:
        """Take in newly settled ids; the reason to stop, or None to go on."""
        self._data += self._tokenizer.decode_bytes(settled[self._seen :])
        self._seen = len(settled)
        self.text = decode_prefix(self._data)
        cut = cut_at_stop_text(self.text, self._limits.stop_text)
        if cut is not None:
            self.text = cut
            return "end"
        cut = cut_at_lines(self.text, self._limits.max_lines)
        if cut is not None:
            self.text = cut
            return "lines"
        if ended:
            return "end"
        if len(settled) >= self._limits.max_tokens:
            return "budget"
        return "deadline" if expired() else None


def ids_of(draft: Draft) -> tuple[int, ...]:
    """The draft's tokens."""
    return tuple(candidate.token for candidate in draft)


def _blocks(draft: Draft, config: VerifyConfig, confidence: MaskConfidence | None) -> tuple[MaskBlock, ...]:
    if not config.masks or confidence is None:
        return ()
    chances = [candidate.chance for candidate in draft]
    row_cost = config.costs.row(1 + len(draft))
    return plan_masks(chances, confidence.gains[: config.mask_width], row_cost, config.mask_anchors)


def allowed_ids(model: Denoiser) -> int:
    """Ids from here on stand for nothing: the head is padded beyond the tokenizer's vocabulary."""
    return max(model.facts.special.special) + 1


def _finish(text: str, stop: Stop, progress: _Progress, sources: Competition, ended: bool) -> Denoised:
    counts = tuple((source, offered, kept) for source, (offered, kept) in sorted(sources.counts.items()))
    settled = progress.settled
    return Denoised(text, stop, progress.passes, len(settled) + ended, counts, settled)


def draft_counts(
    counts: Iterable[tuple[tuple[str, int, int], ...]],
) -> tuple[tuple[str, int, int], ...]:
    """Draft tokens offered and kept, by source, over several runs."""
    total: dict[str, tuple[int, int]] = {}
    for source, offered, kept in (row for rows in counts for row in rows):
        before = total.get(source, (0, 0))
        total[source] = (before[0] + offered, before[1] + kept)
    return tuple((source, *pair) for source, pair in sorted(total.items()))


def greedy(
    model: Denoiser, context: Context, pending: int, max_tokens: int, *, adapted: bool
) -> Generator[tuple[int, torch.Tensor], None, None]:
    """Plain greedy decoding, one token a pass: the reference that `denoise` must equal. Yields (id, logits row)."""
    allowed = allowed_ids(model)
    for _ in range(max_tokens):
        rows = build_rows(PassLayout(pending), context.length, model.facts.mask_id, adapted=adapted)
        logits = model.step(context, rows)[0, :allowed]
        (pending,) = likeliest(logits[None])
        yield pending, logits
        if pending in model.facts.special.special:
            return
