"""A stretch of text made canvas by canvas on one context, and the choice of its lengths.

Open-ended text of families with a fixed canvas or with blocks goes on in a next canvas, once the finished one is
committed; within one canvas nothing is committed, a block-causal family settles its blocks from the left instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

import torch

from engine.diffusion.canvas_run import CanvasRun, Rules
from engine.diffusion.canvas_step import CanvasStep
from engine.diffusion.constraint import Constraint
from engine.diffusion.guidance import Unconditional, guided
from engine.diffusion.halting import text_stop, up_to_end
from engine.diffusion.layout import Piece, lay_out, of_length, split
from engine.diffusion.length import GapShape, candidate_lengths
from engine.diffusion.resizing import WINDOW, Resizer
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.shared_step import Offer
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasContext, CanvasModel, JobStep, Known
from engine.protocol.errors import EngineError
from engine.protocol.messages import Stop

_REVIEWS = 8
"""Most times a full canvas is denoised anew for its constraint. One that gives up earlier says better why."""


@dataclass(slots=True)
class Work:
    """A job's arguments, and what is counted over all its canvases: forward passes."""

    model: CanvasModel
    config: SamplingConfig
    generator: torch.Generator
    limits: Limits
    expired: Callable[[], bool]
    constraint: Constraint | None
    holes: int
    rules: Rules
    offer: Offer | None = None
    passes: int = 0


@dataclass(slots=True)
class Made:
    """What is made so far: ids and their chances, by hole; why it ended. `full`: the whole canvas, for a commit."""

    ids: list[list[int]]
    chances: list[list[float]]
    stop: Stop = "end"

    @classmethod
    def nothing(cls, holes: int) -> Made:
        return cls([[] for _ in range(holes)], [[] for _ in range(holes)])

    @property
    def tokens(self) -> int:
        return sum(len(ids) for ids in self.ids)

    def frozen(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(ids) for ids in self.ids)


Steps = Generator[CanvasStep | None, None, Made]
Winner = Generator[CanvasStep | None, None, "Option"]
Options = Generator[CanvasStep | None, None, "list[Option]"]


def make_passage(work: Work, known: Known, pieces: Sequence[Piece], made: Made | None = None) -> Steps:
    """Make the holes of `pieces` between `known` texts. `made`: what is done of the job already, added to in place."""
    made = made or Made.nothing(work.holes)
    context = work.model.open(known)
    offset, rest = len(known.prefix), tuple(pieces)
    try:
        while work.model.read_on(context):
            yield None
        while True:
            options = yield from _options(work, context, rest, offset, made)
            for option in options:
                _check_window(work, known, option, offset)
            winner = yield from _denoise(work, context, options, made)
            if _take(work, winner, made) or not any(piece.is_hole for piece in winner.rest):
                return made
            committed, rest = winner.run.guess.tolist(), winner.rest
            while not rest[0].is_hole:
                committed, rest = [*committed, *rest[0].ids], rest[1:]
            work.model.commit(context, committed)
            if work.constraint is not None:
                work.constraint.follow(committed, made.ids[rest[0].hole])
            offset += len(committed)
    finally:
        work.model.close(context)


@dataclass(frozen=True, slots=True)
class Option:
    """A canvas under way, its pieces, and those of the canvases behind it. tried: the hole whose length is on trial."""

    run: CanvasRun
    here: tuple[Piece, ...]
    rest: tuple[Piece, ...]
    tried: int


def _options(work: Work, context: CanvasContext, pieces: tuple[Piece, ...], offset: int, made: Made) -> Options:
    """The canvases to be denoised as one batch: one for each length the last hole of unknown length may have.

    With several such holes the lengths of all but the last are chosen before, each by one pass over its candidates.
    """
    unknown = [index for index, piece in enumerate(pieces) if _is_unknown(piece)]
    most = work.limits.max_tokens - made.tokens
    lengths = {index: _lengths(work, pieces[index], most) for index in unknown}
    settled = [of_length(piece, _middle(lengths[i])) if i in lengths else piece for i, piece in enumerate(pieces)]
    if not unknown:
        return [_start(work, settled, offset, -1, most)]
    for index in unknown:
        tries = [[*settled[:index], of_length(pieces[index], n), *settled[index + 1 :]] for n in lengths[index]]
        options = [_start(work, tried, offset, pieces[index].hole, most) for tried in tries]
        if index != unknown[-1] and len(options) > 1:
            yield from _predict(work, context, options, step=0)
            scores = [_score(work, option) for option in options]
            best = scores.index(max(scores))
            settled = tries[best]
            yield _told(options[best].run, made, work)
    return options


def _middle(lengths: Sequence[int]) -> int:
    return lengths[len(lengths) // 2]


def _is_unknown(piece: Piece) -> bool:
    """Whether the length of a piece is to be found by trying. Open-ended text is as long as the canvas has room."""
    if not piece.is_hole or piece.length:
        return False
    return bool(piece.candidates) or not piece.open_ended


def _lengths(work: Work, piece: Piece, most: int) -> tuple[int, ...]:
    """The lengths to try for a hole; one only where the family changes the length itself."""
    lengths = tuple(length for length in sorted(piece.candidates) if 1 <= length <= most)
    lengths = lengths or candidate_lengths(GapShape(), most)
    return (_middle(lengths),) if work.model.facts.expand_id >= 0 else lengths


def _start(work: Work, pieces: Sequence[Piece], offset: int, tried: int, most: int) -> Option:
    """The first canvas of `pieces`, whose lengths are all known but that of open-ended text."""
    facts, config = work.model.facts, work.config
    if facts.canvas_length:
        here, rest = split(pieces, facts.canvas_length)
    elif facts.block and pieces[-1].open_ended:
        here, rest = split(pieces, facts.block - offset % facts.block)
    else:
        here, rest = tuple(replace(piece, length=piece.length or most) for piece in pieces), ()
    layout = lay_out(here, facts, work.generator)
    largest = max([piece.length for piece in here if piece.is_hole], default=0)
    resizer = Resizer(facts, max(largest, min(WINDOW, most))) if facts.expand_id >= 0 else None
    steps = config.steps or (facts.trained_steps if facts.noise == "uniform" else 0) or largest
    if resizer is not None:
        steps = config.steps or max(facts.trained_steps, 4 * max(largest, min(WINDOW, most)))
    verify = not facts.exact_cache and config.refresh_every > 1
    run = CanvasRun(work.rules, layout, max(1, steps), offset=offset, resizer=resizer, verify=verify)
    return Option(run, here, rest, tried)


def _check_window(work: Work, known: Known, option: Option, offset: int) -> None:
    total = offset + option.run.canvas.length + len(known.suffix)
    window = work.model.facts.window_tokens
    if total > window:
        raise EngineError(
            "window_exceeded",
            f"text and canvas take {total} tokens, the window holds {window}",
            "select less, or lower the context budget",
        )


def _denoise(
    work: Work, context: CanvasContext, options: list[Option], made: Made
) -> Generator[CanvasStep | None, None, Option]:
    """Denoise the options side by side; after each step the worse half is dropped. The last one is the text."""
    step, reviews = 0, 0
    while True:
        live = [option for option in options if not option.run.finished]
        if live:
            yield from _predict(work, context, live, step)
            step += 1
            options = _better_half(work, options)
            yield _told(options[0].run, made, work)
        leader = options[0]
        if not live and len(options) > 1:
            options = _better_half(work, options)
        elif leader.run.finished and len(options) == 1:
            if work.constraint is None:
                return leader
            if not leader.run.review(work.constraint, is_last=_is_over(work, leader, made)):
                return leader
            if reviews == _REVIEWS:
                raise EngineError(
                    "unsatisfied",
                    f"the text does not keep to what was asked of it after {reviews} tries",
                    "ask for less, or leave more of the text to be made",
                )
            reviews += 1
        if live and work.expired():
            return leader


def _predict(work: Work, context: CanvasContext, options: Sequence[Option], step: int) -> Generator[None, None, None]:
    """One forward pass over all options, and the step each takes from it.

    Where steps are offered it yields in between, so that others can be taken in the same pass.
    """
    facts, config = work.model.facts, work.config
    inputs = [option.run.input() for option in options]
    due = step % config.refresh_every == 0 or any(option.run.needs_exact_step for option in options)
    wanted = JobStep(context, tuple(inputs), refresh=not facts.exact_cache and due)
    if work.offer is None:
        predictions = work.model.step(wanted.context, wanted.inputs, refresh=wanted.refresh)
    else:
        shared = work.offer(work.model, wanted)
        yield
        predictions = shared.take()
    if config.guidance_scale > 0 and isinstance(work.model, Unconditional):
        bare = work.model.step_unconditional(context, inputs)
        predictions = [guided(*pair, config.guidance_scale) for pair in zip(predictions, bare, strict=True)]
        work.passes += 1
    work.passes += 1
    for option, prediction in zip(options, predictions, strict=True):
        option.run.advance(prediction)


def _score(work: Work, option: Option) -> float:
    """The calibrated mean probability of the hole whose length is on trial."""
    if option.tried < 0:
        return 0.0
    places = option.run.hole == option.tried
    chance = float(option.run.chance[places].nan_to_num(0.0).mean())
    return work.model.facts.calibration.score(int(places.sum()), chance)


def _better_half(work: Work, options: list[Option]) -> list[Option]:
    """The better half, best first; of equal ones the shorter."""
    if len(options) == 1:
        return options
    ranked = sorted(options, key=lambda option: -_score(work, option))
    return ranked[: (len(options) + 1) // 2] if len(options) > 2 else ranked[:1]


def _told(run: CanvasRun, made: Made, work: Work) -> CanvasStep:
    facts = work.model.facts
    silent = frozenset(token for token in (facts.mask_id, facts.expand_id, facts.delete_id) if token >= 0)
    return CanvasStep(
        run.shown(),
        run.steps_done,
        run.steps,
        run.entropy,
        run.accepted,
        run.changed,
        run.hole,
        made.frozen(),
        silent - facts.end_ids,
        facts.end_ids,
        run.others,
    )


def _is_over(work: Work, option: Option, made: Made) -> bool:
    """Whether the text ends on this canvas: no hole is left for another, or its open-ended text has come to an end."""
    if not any(piece.is_hole for piece in option.rest):
        return True
    ids, _ = option.run.outcome(work.holes)
    for piece in option.here:
        if piece.is_hole and piece.open_ended:
            found, ended = up_to_end(ids[piece.hole], work.model.facts.end_ids)
            others = made.tokens - len(made.ids[piece.hole])
            limits = replace(work.limits, max_tokens=work.limits.max_tokens - others)
            return ended or text_stop([*made.ids[piece.hole], *found], work.model.tokenizer, limits)[1] is not None
    return False


def _take(work: Work, option: Option, made: Made) -> bool:
    """Add what a canvas has made; whether the text is finished with it."""
    expired = not option.run.finished
    ids, chances = option.run.outcome(work.holes)
    finished = expired
    made.stop = "deadline" if expired else "end"
    for piece in option.here:
        if not piece.is_hole:
            continue
        hole = piece.hole
        known = next((n for n, chance in enumerate(chances[hole]) if math.isnan(chance)), len(chances[hole]))
        found, ended = up_to_end(ids[hole], work.model.facts.end_ids)
        if known < len(found) and not expired:
            raise EngineError(
                "internal",
                "the model predicts nothing that may stand at a place of the gap",
                "try again with other settings; if it stays so, the model's files are damaged",
            )
        made.ids[hole] += found[:known]
        made.chances[hole] += chances[hole][: min(known, len(found))]
        others = made.tokens - len(made.ids[hole])
        most = work.limits.max_tokens - others if piece.open_ended else len(made.ids[hole]) + 1
        keep, stop = text_stop(made.ids[hole], work.model.tokenizer, replace(work.limits, max_tokens=most))
        made.ids[hole], made.chances[hole] = made.ids[hole][:keep], made.chances[hole][:keep]
        if piece.open_ended and (ended or stop is not None):
            finished = True
        if stop is not None and not (expired or (ended and stop == "budget")):
            made.stop = stop
    return finished


def doubt_of(work: Work, known: Known, piece: Piece, made: Made) -> Generator[CanvasStep | None, None, float]:
    """The mean entropy of a hole's places (nats) after one pass; nothing of it is kept."""
    context = work.model.open(known)
    try:
        while work.model.read_on(context):
            yield None
        options = yield from _options(work, context, (piece,), len(known.prefix), made)
        option = options[len(options) // 2]
        _check_window(work, known, option, len(known.prefix))
        if option.run.finished:
            return 0.0
        yield from _predict(work, context, [option], step=0)
        yield _told(option.run, made, work)
        return float(option.run.entropy.nan_to_num(math.inf).mean())
    finally:
        work.model.close(context)
