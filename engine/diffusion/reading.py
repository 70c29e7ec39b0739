"""What a step's logits say of each place: the likeliest token, the chosen one, their probabilities, the entropy.

Everything is computed in float32 where the logits live. A place whose logits hold no usable number reads as NaN, and
NaN is never accepted (see `samplers`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.canvas import Canvas
from engine.models.canvas_model import CanvasFacts

_GROUP = 64


@dataclass(frozen=True, slots=True)
class Reading:
    """Of the n places of a canvas, or of some of them.

    likeliest, chosen: [n] int64; chosen is drawn, or equal to likeliest in deterministic mode. best, confidence,
    present: [n] float32, the probabilities of the likeliest, the chosen and the present token (with temperature,
    without top-p). entropy: [n] float32, nats, at least 0.
    """

    likeliest: torch.Tensor
    chosen: torch.Tensor
    best: torch.Tensor
    confidence: torch.Tensor
    present: torch.Tensor
    entropy: torch.Tensor


@dataclass(frozen=True, slots=True)
class Admission:
    """Which ids may come out. forbidden: [k] int64, nowhere. ending: [l] int64, only at places that end a text."""

    forbidden: torch.Tensor
    ending: torch.Tensor

    @classmethod
    def of(cls, facts: CanvasFacts, device: torch.device, *, resizing: bool) -> Admission:
        """resizing: whether the expand and delete ids are consumed by the loop; they never come out otherwise."""
        forbidden = facts.forbidden.to(device, copy=True)
        length_ids = [token for token in (facts.expand_id, facts.delete_id) if token >= 0]
        forbidden[[token for token in length_ids if resizing or token not in facts.end_ids]] = not resizing
        if facts.mask_id >= 0:
            forbidden[facts.mask_id] = True
        ending = facts.end_ids - frozenset(length_ids if resizing else ())
        return cls(forbidden.nonzero().squeeze(-1), torch.tensor(sorted(ending), dtype=torch.int64, device=device))

    def apply(self, logits: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        """Overwrite [m, vocab] float32 logits with -inf where an id may not stand. ends: [m] bool."""
        logits.index_fill_(-1, self.forbidden, -torch.inf)
        if self.ending.numel():
            columns = logits[:, self.ending]
            logits[:, self.ending] = columns.masked_fill_(~ends[:, None], -torch.inf)
        return logits


class Scratch:
    """Two float32 buffers of [rows, vocab], kept for a whole job: touching fresh memory costs more than the sums."""

    def __init__(self) -> None:
        self._held = torch.empty(0)

    def take(self, rows: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Both buffers for so many rows of logits such as `like`; what they held is void."""
        vocab = like.shape[-1]
        if self._held.shape[-1] != vocab or self._held.shape[0] < 2 * rows or self._held.device != like.device:
            self._held = torch.empty(2 * rows, vocab, device=like.device)
        return self._held[:rows], self._held[rows : 2 * rows]


@dataclass(frozen=True, slots=True)
class Choice:
    """How tokens are chosen in a step. temperature 0, or deterministic: the likeliest one.

    as_multinomial: draw what torch.multinomial would of the same generator, as DiffusionGemma's own loop does.
    """

    temperature: float
    deterministic: bool
    top_p: float
    as_multinomial: bool = False


def read(
    logits: torch.Tensor, spare: torch.Tensor, ids: torch.Tensor, choice: Choice, generator: torch.Generator
) -> Reading:
    """Read [m, vocab] float32 logits of places that now hold `ids` ([m] int64).

    logits and spare, of the same shape, are overwritten. Draws from `generator` once per call, and not at all when the
    likeliest tokens are chosen.
    """
    if choice.temperature > 0 and choice.temperature != 1:
        logits.div_(choice.temperature)
    highest, likeliest = _highest(logits)
    logits.sub_(highest[:, None])
    probs = torch.softmax(logits, dim=-1, out=spare)
    best = probs.gather(-1, likeliest[:, None]).squeeze(-1)
    # With the highest logit at 0 the probability of its id is one over the sum of exponentials, so this is
    # -sum p log p without a second pass of logarithms. The clamp keeps 0 * -inf out of the sum.
    logits.clamp_(min=torch.finfo(torch.float32).min).mul_(probs)
    entropy = (-best.log() - logits.sum(dim=-1)).clamp_(min=0)
    present = probs.gather(-1, ids[:, None]).squeeze(-1)
    if choice.deterministic or choice.temperature <= 0:
        return Reading(likeliest, likeliest, best, best, present, entropy)
    kept = _nucleus(probs, choice.top_p) if choice.top_p < 1 else probs
    drawn = _race(kept, logits, generator) if choice.as_multinomial else _inverted(kept, logits, generator)
    drawn.clamp_(max=probs.shape[-1] - 1)
    chance = probs.gather(-1, drawn[:, None]).squeeze(-1)
    # Rounding at the rim of the sum may hit an id of no probability, and a row may hold no usable number.
    fair = chance > 0
    return Reading(
        likeliest, torch.where(fair, drawn, likeliest), best, torch.where(fair, chance, best), present, entropy
    )


def _race(probs: torch.Tensor, spare: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Each id's probability over an exponential draw; the largest wins. What torch.multinomial draws, bit for bit.

    A random number for every id, which on a CPU costs more than all the rest.
    """
    return _highest(torch.div(probs, spare.exponential_(1, generator=generator), out=spare))[1]


def _highest(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest of each row of [m, vocab] and its first place; NaN is larger than anything.

    By groups: a maximum without its place is several times as fast, and then only one group must be searched.
    """
    rows, vocab = values.shape
    if vocab % _GROUP:
        found = values.max(dim=-1)
        return found.values, found.indices
    grouped = values.view(rows, vocab // _GROUP, _GROUP)
    group = grouped.amax(dim=-1).argmax(dim=-1)
    inside = grouped[torch.arange(rows, device=values.device), group]
    highest, place = inside.max(dim=-1)
    return highest, group * _GROUP + place


def _inverted(probs: torch.Tensor, spare: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Where a uniform draw falls in the running sum: one random number for each row."""
    sums = torch.cumsum(probs, dim=-1, out=spare)
    drawn = torch.rand(probs.shape[0], 1, generator=generator, device=generator.device).to(probs.device)
    return torch.searchsorted(sums, drawn * sums[:, -1:], right=True).squeeze(-1)


def spread(reading: Reading, rows: torch.Tensor, canvas: Canvas) -> Reading:
    """A reading of the places `rows` ([m] int64), spread over the canvas; elsewhere what was known stays."""

    def over(base: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return base.index_copy(0, rows, values)

    sure = canvas.confidence
    return Reading(
        over(canvas.ids, reading.likeliest),
        over(canvas.ids, reading.chosen),
        over(sure, reading.best),
        over(sure, reading.confidence),
        over(sure, reading.present),
        over(torch.zeros_like(sure), reading.entropy),
    )


def _nucleus(probs: torch.Tensor, top_p: float) -> torch.Tensor:
    """The smallest set of likeliest ids that holds `top_p` of the mass (Holtzman et al. 2020); never empty."""
    ordered, order = probs.sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered
    ordered.masked_fill_(before >= top_p, 0.0)
    return torch.zeros_like(probs).scatter_(-1, order, ordered)
