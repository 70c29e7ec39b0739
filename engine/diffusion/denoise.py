"""The denoising loop of one gap: draft, verify, settle, until the gap is full. One pass per step.

With every draft source on, the settled text equals plain greedy decoding of the same weights: the verifying pass
computes each token from settled ones only (see `verify`). Owns no clock and no sockets; the caller closes the
generator to cancel and passes a predicate for the deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import torch

from engine.canvas import Canvas
from engine.diffusion.config import SamplingConfig
from engine.diffusion.drafts import Leftover, NgramLookup, Offer, WarmStart
from engine.diffusion.stopping import Limits, cut_at_lines, cut_at_stop_text, decode_prefix
from engine.diffusion.verify import PassLayout, build_rows, judge
from engine.models.base import Context, Denoiser
from engine.protocol.messages import Stop

NO_DRAFT = Offer("none", ())


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
    """A filled gap. `tokens` counts settled tokens, the end token included; `drafts` is (source, offered, kept)."""

    text: str
    stop: Stop
    passes: int
    tokens: int
    drafts: tuple[tuple[str, int, int], ...]


@dataclass(slots=True)
class _Progress:
    """The loop's state: the canvas, the sources' memory and the counters."""

    gap: Gap
    config: SamplingConfig
    warm: WarmStart
    lookup: NgramLookup
    canvas: Canvas = field(default_factory=Canvas)
    leftover: Leftover = field(default_factory=Leftover)
    widths: dict[str, int] = field(default_factory=dict)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    passes: int = 0

    def offer(self, room: int) -> Offer:
        """The best draft for the next pass, at most `room` ids: the present text, a repeat, the last pass."""
        for source, ids in self._candidates(room):
            if ids:
                return Offer(source, ids[: min(room, self._width(source))])
        return NO_DRAFT

    def _candidates(self, room: int) -> Generator[tuple[str, tuple[int, ...]], None, None]:
        config = self.config
        if config.warm_start:
            yield "warm_start", self.warm.offer(self.canvas.settled, min(room, self._width("warm_start")))
        if config.ngram:
            yield "ngram", self.lookup.offer(min(room, self._width("ngram")))
        if config.masks:
            yield "masks", self.leftover.confident_masks(config.mask_confidence)
        if config.jacobi:
            yield "jacobi", self.leftover.causal[: config.min_width]

    def _width(self, source: str) -> int:
        first = self.config.width // 2 if source == "warm_start" else self.config.min_width
        return self.widths.get(source, max(first, self.config.min_width))

    def record(self, offer: Offer, accepted: int) -> None:
        """Count a pass and adapt the source's width: wide while it is right, narrow after a miss."""
        self.passes += 1
        if not offer.ids:
            return
        offered, kept = self.counts.get(offer.source, (0, 0))
        self.counts[offer.source] = (offered + len(offer.ids), kept + accepted)
        width = self._width(offer.source)
        grown = width * 2 if accepted == len(offer.ids) else accepted * 2
        self.widths[offer.source] = max(self.config.min_width, min(self.config.width, grown))

    def settle(self, ids: tuple[int, ...]) -> None:
        """Move accepted ids into the settled run and into the searched text."""
        self.canvas = self.canvas.accept(ids)
        self.lookup.extend(ids)


def denoise(
    model: Denoiser, context: Context, gap: Gap, limits: Limits, config: SamplingConfig, expired: Callable[[], bool]
) -> Generator[Canvas, None, Denoised]:
    """Fill `gap` on top of `context`. Yields the canvas after each pass; returns the text and its counts.

    Raises EngineError(window_exceeded) from the model when context and gap outgrow its window.
    """
    progress = _start(gap, config)
    special = model.facts.special
    allowed = _allowed_ids(model)
    text = _Text(model, limits)
    offer = progress.offer(limits.max_tokens - 1)
    while True:
        anchors = _anchors(model, progress, offer)
        layout = PassLayout(_pending(progress), offer.ids, anchors, config.mask_width if anchors else 0)
        base = context.length
        logits = model.step(context, build_rows(layout, base, model.facts.mask_id, adapted=gap.adapted))
        outcome = judge(layout, logits[:, :allowed])
        context.truncate(base + 1 + outcome.accepted)
        progress.leftover = outcome.leftover
        progress.record(offer, outcome.accepted)
        fresh = (*offer.ids[: outcome.accepted], outcome.bonus)
        ended = next((i for i, token in enumerate(fresh) if token in special.special), None)
        progress.settle(fresh if ended is None else fresh[:ended])
        stop = text.update(progress.canvas, ended is not None, expired)
        if stop is not None:
            return _finish(text.text, stop, progress, ended is not None)
        offer = progress.offer(limits.max_tokens - len(progress.canvas.settled) - 1)
        yield progress.canvas.with_draft(offer.ids)


class _Text:
    """The settled text as it grows, and the rule that says when it is complete."""

    def __init__(self, model: Denoiser, limits: Limits) -> None:
        self._tokenizer = model.tokenizer
        self._limits = limits
        self._data = b""
        self._seen = 0
        self.text = ""

    def update(self, canvas: Canvas, ended: bool, expired: Callable[[], bool]) -> Stop | None:
        """Take in newly settled ids; the reason to stop, or None to go on."""
        self._data += self._tokenizer.decode_bytes(canvas.settled[self._seen :])
        self._seen = len(canvas.settled)
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
        if len(canvas.settled) >= self._limits.max_tokens:
            return "budget"
        return "deadline" if expired() else None


def _start(gap: Gap, config: SamplingConfig) -> _Progress:
    lookup = NgramLookup(config.ngram_min, config.ngram_max)
    for run in gap.searched if config.ngram else ():
        lookup.extend(run)
    return _Progress(gap, config, WarmStart(gap.warm), lookup)


def _pending(progress: _Progress) -> int:
    settled = progress.canvas.settled
    return settled[-1] if settled else progress.gap.pending


def _anchors(model: Denoiser, progress: _Progress, offer: Offer) -> int:
    """How many rows get mask blocks: none while text drafts run, as their passes are wide already."""
    config = progress.config
    if not (config.masks and progress.gap.adapted and model.facts.can_draft) or offer.source in ("warm_start", "ngram"):
        return 0
    return min(config.mask_anchors, 1 + len(offer.ids))


def _allowed_ids(model: Denoiser) -> int:
    """Ids from here on stand for nothing: the head is padded beyond the tokenizer's vocabulary."""
    return max(model.facts.special.special) + 1


def _finish(text: str, stop: Stop, progress: _Progress, ended: bool) -> Denoised:
    counts = tuple((source, offered, kept) for source, (offered, kept) in sorted(progress.counts.items()))
    return Denoised(text, stop, progress.passes, len(progress.canvas.settled) + ended, counts)


def greedy(
    model: Denoiser, context: Context, pending: int, max_tokens: int, *, adapted: bool
) -> Generator[tuple[int, torch.Tensor], None, None]:
    """Plain greedy decoding, one token a pass: the reference that `denoise` must equal. Yields (id, logits row)."""
    allowed = _allowed_ids(model)
    for _ in range(max_tokens):
        rows = build_rows(PassLayout(pending, (), 0, 0), context.length, model.facts.mask_id, adapted=adapted)
        logits = model.step(context, rows)[0, :allowed]
        pending = int(logits.argmax())
        yield pending, logits
        if pending in model.facts.special.special:
            return
