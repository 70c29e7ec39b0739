"""Several holes of a family whose canvas is a single one: hole by hole, the one that leaves least doubt first."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from engine.diffusion.canvas_step import CanvasStep
from engine.diffusion.layout import Piece
from engine.diffusion.passage import Made, Work, doubt_of, make_passage
from engine.models.canvas_model import Known

_SHOWN = 4
"""Masks that stand for a hole of unknown length beside the one that is made."""


def hole_by_hole(work: Work, known: Known, pieces: Sequence[Piece]) -> Generator[CanvasStep | None, None, Made]:
    """Make the holes one after another. Each sees those already made as text, and later ones as holes.

    Before each, one pass over every hole that is left tells how much doubt it leaves.
    """
    made = Made.nothing(work.holes)
    left = [index for index, piece in enumerate(pieces) if piece.is_hole]
    done: set[int] = set()
    while left:
        chosen = left[0]
        if len(left) > 1:
            doubts: dict[int, float] = {}
            for index in left:
                doubts[index] = yield from doubt_of(
                    work, _around(work, known, pieces, index, made, done), pieces[index], made
                )
            chosen = min(left, key=lambda index: doubts[index])
        yield from make_passage(work, _around(work, known, pieces, chosen, made, done), (pieces[chosen],), made)
        done.add(chosen)
        left.remove(chosen)
        if made.stop == "deadline":
            break
    return made


def _around(work: Work, known: Known, pieces: Sequence[Piece], index: int, made: Made, done: set[int]) -> Known:
    """What stands on both sides of a hole: known text, holes already made, and masks for those that are not."""

    def ids(place: int) -> tuple[int, ...]:
        piece = pieces[place]
        if not piece.is_hole:
            return piece.ids
        if place in done:
            return tuple(made.ids[piece.hole])
        if piece.ids:
            return piece.ids
        mask = work.model.facts.mask_id
        return (mask,) * (piece.length or _SHOWN) if mask >= 0 else ()

    before = [token for place in range(index) for token in ids(place)]
    after = [token for place in range(index + 1, len(pieces)) for token in ids(place)]
    return Known((*known.prefix, *before), (*after, *known.suffix))
