"""What a step's logits say of each place: the likeliest token, the chosen one, their probabilities, the entropy.

Everything is computed in float32 where the logits live. A place whose logits hold no usable number reads as NaN, and
NaN is never accepted (see `samplers`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.canvas import Canvas
from engine.models.canvas_model import CanvasFacts


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
    """Which ids may come out. forbidden: [vocab] bool, nowhere. ending: [k] int64, only at places that end a text."""

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
        return cls(forbidden, torch.tensor(sorted(ending), dtype=torch.int64, device=device))

    def apply(self, logits: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        """A float32 copy of [m, vocab] logits with -inf where an id may not stand. ends: [m] bool."""
        admitted = logits.detach().to(torch.float32, copy=True)
        admitted.masked_fill_(self.forbidden, -torch.inf)
        if self.ending.numel():
            columns = admitted[:, self.ending]
            admitted[:, self.ending] = columns.masked_fill_(~ends[:, None], -torch.inf)
        return admitted


@dataclass(frozen=True, slots=True)
class Choice:
    """How tokens are chosen in a step. temperature 0, or deterministic: the likeliest one."""

    temperature: float
    deterministic: bool
    top_p: float


def read(logits: torch.Tensor, ids: torch.Tensor, choice: Choice, generator: torch.Generator) -> Reading:
    """Read [m, vocab] float32 logits (overwritten) of places that now hold `ids` ([m] int64).

    Draws from `generator` once per call, and not at all when the likeliest tokens are chosen.
    """
    if choice.temperature > 0 and choice.temperature != 1:
        logits.div_(choice.temperature)
    log_probs = torch.log_softmax(logits, dim=-1)
    probs = log_probs.exp()
    # The clamp keeps 0 * -inf out of the sum, as torch's Categorical does.
    log_probs.clamp_(min=torch.finfo(torch.float32).min)
    entropy = -torch.bmm(probs.unsqueeze(1), log_probs.unsqueeze(2)).view(-1)
    best, likeliest = probs.max(dim=-1)
    present = probs.gather(-1, ids[:, None]).squeeze(-1)
    if choice.deterministic or choice.temperature <= 0:
        return Reading(likeliest, likeliest, best, best, present, entropy)
    chosen = _draw(probs, best, choice.top_p, generator)
    return Reading(likeliest, chosen, best, probs.gather(-1, chosen[:, None]).squeeze(-1), present, entropy)


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


def _draw(probs: torch.Tensor, best: torch.Tensor, top_p: float, generator: torch.Generator) -> torch.Tensor:
    """One id per row of [m, vocab]. Rows without usable numbers (best is NaN) get some id; it is never accepted."""
    broken = best.isnan()
    if bool(broken.any()):
        probs = probs.masked_fill(broken[:, None], 1.0)
    if top_p < 1:
        probs = _nucleus(probs, top_p)
    return torch.multinomial(probs, 1, generator=generator).squeeze(-1)


def _nucleus(probs: torch.Tensor, top_p: float) -> torch.Tensor:
    """The smallest set of likeliest ids that holds `top_p` of the mass (Holtzman et al. 2020); never empty."""
    ordered, order = probs.sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered
    ordered.masked_fill_(before >= top_p, 0.0)
    return torch.zeros_like(probs).scatter_(-1, order, ordered)
