"""From a step of parallel denoising to a step of the record: `canvas_step`. Pure but for waiting for the device."""

from __future__ import annotations

import math
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from itertools import takewhile

from engine.canvas import FREE, LOCKED
from engine.diffusion.canvas_step import CanvasStep
from engine.models.base import Tokenizer
from engine.trace.recording import State, Step, Token
from engine.trace.spelling import text_alone

NO_HOLE = -1


def canvas_step(tokenizer: Tokenizer, told: CanvasStep, last: CanvasStep | None = None) -> Step:
    """The step of the record. last: the step before, where there was one.

    The tokens of the holes and of the islands between them, with what earlier canvases made of the holes in front.

    Known text behind the last hole is left out, as text around the gap is told apart; of a row of end tokens that fills
    a hole to its end only the first is told.
    """
    places = tuple(_places(told, _kept(told, last)))
    looked = (told.accepted | told.canvas.free).tolist()
    entropies = told.entropy.tolist() if told.entropy is not None else []
    judged = [entropy for entropy, seen in zip(entropies, looked, strict=False) if seen and math.isfinite(entropy)]
    return Step(tuple(_spelled(tokenizer, places, told)), sum(judged) / len(judged) if judged else None)


OTHERS = 3
"""How many other tokens are told of a place."""
_Other = tuple[int, float]
_Place = tuple[int, State, float | None, float | None, tuple[_Other, ...]]
"""Id, state, probability, entropy, and other likely ids with their probabilities."""


def _kept(told: CanvasStep, last: CanvasStep | None) -> list[bool]:
    """Which places hold a token that was settled a step ago already: some families accept anew in every step."""
    if last is None or last.canvas.length != told.canvas.length or last.before != told.before:
        return [False] * told.canvas.length
    kept: list[bool] = (last.canvas.settled & (last.canvas.ids == told.canvas.ids)).tolist()
    return kept


def _places(told: CanvasStep, kept: Sequence[bool]) -> Iterator[_Place]:
    canvas = told.canvas
    ids, states, holes = canvas.ids.tolist(), canvas.state.tolist(), told.hole.tolist()
    accepted, changed, chances = told.accepted.tolist(), told.changed.tolist(), canvas.confidence.tolist()
    entropies = told.entropy.tolist() if told.entropy is not None else None
    looked = (told.accepted | canvas.free).tolist()
    shown = _shown(ids, holes, told.end_ids)
    started: set[int] = set()
    for place in shown:
        hole = holes[place]
        if hole != NO_HOLE and hole not in started:
            started.add(hole)
            yield from ((token, "settled", None, None, ()) for token in told.before[hole])
        if states[place] == LOCKED:
            yield ids[place], "locked", None, None, ()
            continue
        state: State = "new" if accepted[place] and not kept[place] else "settled"
        if states[place] == FREE:
            state = "changing" if changed[place] and told.step > 1 else "open"
        entropy = entropies[place] if entropies is not None and looked[place] else math.nan
        others = tuple(_others(told, place, ids[place])) if looked[place] else ()
        yield ids[place], state, chances[place], entropy if math.isfinite(entropy) else None, others


def _others(told: CanvasStep, place: int, token: int) -> Iterator[_Other]:
    """The likeliest tokens of a place but the one that stands there."""
    if told.others is None:
        return
    pairs = zip(told.others.ids[place].tolist(), told.others.chances[place].tolist(), strict=True)
    yield from [(other, chance) for other, chance in pairs if other != token and chance > 0][:OTHERS]


def _shown(ids: Sequence[int], holes: Sequence[int], ends: frozenset[int]) -> list[int]:
    """Which places are told of."""
    last = max((place for place, hole in enumerate(holes) if hole != NO_HOLE), default=-1)
    hidden: set[int] = set()
    for hole in {*holes} - {NO_HOLE}:
        mine = [place for place, other in enumerate(holes) if other == hole]
        ending = list(takewhile(lambda place: ids[place] in ends, reversed(mine)))
        hidden |= set(ending[:-1])
    return [place for place in range(last + 1) if place not in hidden]


def _spelled(tokenizer: Tokenizer, places: Sequence[_Place], told: CanvasStep) -> Iterator[Token]:
    """The places as tokens; a character spread over several is shown by the one that completes it."""
    characters = getincrementaldecoder("utf-8")("replace")
    for token, state, chance, entropy, likely in places:
        others = tuple((text_alone(tokenizer, other), share) for other, share in likely)
        if token in told.silent:
            characters.reset()
            yield Token("", state, kind="noise")
        elif token in told.end_ids:
            characters.reset()
            yield Token("", state, chance, entropy, others=others, kind="end")
        else:
            text = characters.decode(tokenizer.decode_bytes([token]))
            yield Token(text, state, chance, entropy, others=others)
