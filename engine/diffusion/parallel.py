"""The loop of parallel denoising: `denoise_canvas` makes the text of a job's holes, one denoising step at a time.

predict -> guidance -> forbid -> constrain -> temperature -> sample -> accept -> renoise or re-open -> stop? -> draft

Owns no clock and no sockets: the caller closes the generator to cancel, and passes a predicate for the deadline. What
is in one canvas and what follows in the next is decided in `passage`; this file checks the job and puts it together.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import torch

from engine.diffusion.canvas_run import Rules
from engine.diffusion.canvas_step import CanvasStep
from engine.diffusion.constraint import Constraint
from engine.diffusion.guidance import Unconditional
from engine.diffusion.layout import NO_HOLE, Piece, pieces_of
from engine.diffusion.passage import Made, Work, make_passage
from engine.diffusion.reading import Admission
from engine.diffusion.samplers import sampler_of
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.several_holes import hole_by_hole
from engine.diffusion.shared_step import Offer
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasFacts, CanvasJob, CanvasModel, Known
from engine.protocol.errors import EngineError
from engine.protocol.messages import Stop

__all__ = ["CanvasResult", "CanvasStep", "Constraint", "denoise_canvas"]


@dataclass(frozen=True, slots=True)
class CanvasResult:
    """The finished text.

    parts: the ids of every hole, in order; no end, mask or special id among them. stop: why the last hole ended.
    steps: forward passes. confidence: the mean probability of the ids when they were accepted, 0 for an empty text.
    """

    parts: tuple[tuple[int, ...], ...]
    stop: Stop
    steps: int
    confidence: float


def denoise_canvas(
    model: CanvasModel,
    job: CanvasJob,
    config: SamplingConfig,
    generator: torch.Generator,
    *,
    limits: Limits,
    expired: Callable[[], bool],
    constraint: Constraint | None = None,
    others: int = 0,
    offer: Offer | None = None,
) -> Generator[CanvasStep | None, None, CanvasResult]:
    """Denoise the holes of `job`. Yields after each denoising step, and None after each chunk of the known text that
    another follows; at the deadline the best draft so far is returned.

    others: how many of the likeliest ids each step tells of its places. offer: hears of each step before it is taken;
    None is yielded then, and what `SharedStep.take` gives counts.

    The same arguments and generator state give the same text; the generator is the host's, whatever device the model is
    on. Raises EngineError: bad_request for a job without holes or with a hole larger than the budget, and for settings
    the family does not support; window_exceeded when known text and canvas outgrow the window; internal when the model
    predicts nothing that may stand at a place.
    """
    facts = model.facts
    known, pieces, holes = _prepared(job, facts)
    _check(model, pieces, config, limits)
    admission = Admission.of(facts, torch.device(facts.device), resizing=facts.expand_id >= 0)
    rules = Rules(facts, config, sampler_of(config), admission, constraint, generator, others)
    work = Work(model, config, generator, limits, expired, constraint, holes, rules, offer)
    if holes > 1 and not facts.islands:
        made = yield from hole_by_hole(work, known, pieces)
    else:
        made = yield from make_passage(work, known, pieces)
    return _result(made, work.passes)


def _prepared(job: CanvasJob, facts: CanvasFacts) -> tuple[Known, tuple[Piece, ...], int]:
    """The job with all known text in its place: around the canvas where the family sees it there, else inside."""
    pieces = pieces_of(job.parts, more_follows=bool(job.known.suffix))
    holes = [index for index, piece in enumerate(pieces) if piece.is_hole]
    if not holes:
        raise EngineError("bad_request", "the job has no hole", "mark what is to be filled")
    first, last = holes[0], holes[-1]
    lead = tuple(token for piece in pieces[:first] for token in piece.ids)
    trail = tuple(token for piece in pieces[last + 1 :] for token in piece.ids)
    prefix, suffix = (*job.known.prefix, *lead), (*trail, *job.known.suffix)
    inner = pieces[first : last + 1]
    if facts.right_context or not suffix:
        return Known(prefix, suffix), inner, len(holes)
    # What the family cannot see behind the canvas stands in it as an island, as far as a canvas reaches.
    seen = suffix[: facts.canvas_length or facts.block or len(suffix)]
    return Known(prefix), (*inner, Piece(NO_HOLE, seen, len(seen))), len(holes)


def _check(model: CanvasModel, pieces: tuple[Piece, ...], config: SamplingConfig, limits: Limits) -> None:
    facts = model.facts
    if config.guidance_scale > 0 and not isinstance(model, Unconditional):
        raise EngineError(
            "bad_request",
            f"{facts.family} has no prediction without the text, so guidance is not possible",
            "set guidance_scale to 0",
        )
    if config.sampler == "remask" and config.remask == "none":
        raise EngineError("bad_request", "the remask sampler needs a strategy", "set remask, or choose another sampler")
    if config.remask != "none" and facts.noise == "uniform":
        raise EngineError(
            "bad_request",
            f"{facts.family} judges every place anew in each step, there is nothing to remask",
            'set remask to "none"',
        )
    places = sum(piece.length for piece in pieces if piece.is_hole)
    if places > limits.max_tokens:
        raise EngineError(
            "bad_request",
            f"the gaps have {places} places, more than the budget of {limits.max_tokens} tokens",
            "select less, or raise the budget",
        )


def _result(made: Made, passes: int) -> CanvasResult:
    chances = [chance for hole in made.chances for chance in hole]
    confidence = sum(chances) / len(chances) if chances else 0.0
    return CanvasResult(tuple(tuple(ids) for ids in made.ids), made.stop, passes, confidence)
