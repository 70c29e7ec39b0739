"""Holes and islands laid out as one canvas: `Piece`, `Layout`, and which pieces fit into the next canvas.

Block-causal families and families of a fixed canvas length make text canvas by canvas; what does not fit waits for the
canvas behind. A hole may go on there, and so may what now stands in it (warm start for every canvas).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from engine.canvas import FREE, LOCKED, SETTLED, Canvas
from engine.models.canvas_model import CanvasFacts, Part

NO_HOLE = -1


@dataclass(frozen=True, slots=True)
class Piece:
    """A part, or what of it falls into one canvas.

    hole: the number of the hole, from 0, or `NO_HOLE` for an island. ids: of an island, or what stands in the hole now.
    length: places, 0 for a hole whose length is to be found. reopen: see `Part`. open_ended: the text may end in it,
    nothing known follows. candidates: lengths to try.
    """

    hole: int
    ids: tuple[int, ...]
    length: int
    reopen: frozenset[int] | None = None
    open_ended: bool = False
    candidates: tuple[int, ...] = ()

    @property
    def is_hole(self) -> bool:
        return self.hole != NO_HOLE


def pieces_of(parts: Sequence[Part], *, more_follows: bool) -> tuple[Piece, ...]:
    """The parts as pieces, holes numbered. more_follows: whether known text follows the last part."""
    pieces: list[Piece] = []
    holes = 0
    for index, part in enumerate(parts):
        if part.is_hole:
            last = index == len(parts) - 1 and not more_follows
            is_sized = part.length > 0 or not part.candidates
            length = max(part.length, len(part.warm)) if is_sized else 0
            pieces.append(Piece(holes, part.warm, length, part.reopen if part.warm else None, last, part.candidates))
            holes += 1
        elif part.ids:
            pieces.append(Piece(NO_HOLE, part.ids, len(part.ids)))
    return tuple(pieces)


def split(pieces: Sequence[Piece], room: int) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """The pieces of a canvas of `room` places, and those of the canvases behind it.

    A hole that is cut goes on behind; an open-ended one takes the whole rest of the canvas.
    """
    here: list[Piece] = []
    for index, piece in enumerate(pieces):
        if room <= 0:
            return tuple(here), tuple(pieces[index:])
        if piece.open_ended:
            left = _from(piece, room)
            here.append(replace(_until(piece, room), length=room))
            return tuple(here), (left,)
        if piece.length > room:
            here.append(_until(piece, room))
            return tuple(here), (_from(piece, room), *pieces[index + 1 :])
        here.append(piece)
        room -= piece.length
    return tuple(here), ()


def of_length(piece: Piece, length: int) -> Piece:
    """A hole with that many places; what stands in it now is cut, or has noise behind it."""
    return replace(_until(piece, length), length=length)


def _until(piece: Piece, place: int) -> Piece:
    reopen = None if piece.reopen is None else frozenset(index for index in piece.reopen if index < place)
    return replace(piece, ids=piece.ids[:place], length=min(piece.length, place), reopen=reopen)


def _from(piece: Piece, place: int) -> Piece:
    reopen = None if piece.reopen is None else frozenset(index - place for index in piece.reopen if index >= place)
    ids = piece.ids[place:]
    return replace(piece, ids=ids, length=max(0, piece.length - place), reopen=reopen if ids else None)


@dataclass(frozen=True, slots=True)
class Layout:
    """A canvas as it starts, and what its places are. All tensors are [n] and on the host, where a step is decided.

    hole: int64, the hole a place belongs to, `NO_HOLE` for islands and for what pads a fixed canvas.
    ends: bool, whether an end id may stand there. held: bool, kept as it is though it belongs to a hole.
    doubted: bool, present tokens of a warm start that the first step is to judge.
    """

    canvas: Canvas
    hole: torch.Tensor
    ends: torch.Tensor
    held: torch.Tensor
    doubted: torch.Tensor

    def taken(self, canvas: Canvas, source: torch.Tensor) -> Layout:
        """The layout of `canvas`, whose places were those at `source` ([m] int64) of this one."""
        return Layout(canvas, self.hole[source], self.ends[source], self.held[source], self.doubted[source])


@dataclass(frozen=True, slots=True)
class _Place:
    token: int
    state: int
    hole: int
    ends: bool = False
    held: bool = False
    doubted: bool = False


def lay_out(pieces: Sequence[Piece], facts: CanvasFacts, generator: torch.Generator) -> Layout:
    """The first canvas of `pieces`, all of a known length.

    Uniform families draw noise for the whole canvas, whatever stands in it (as DiffusionGemma does), and pad it to
    their canvas length with free places that belong to no hole.
    """
    places = [place for piece in pieces for place in _places(piece, facts)]
    padding = max(0, facts.canvas_length - len(places))
    places += [_Place(facts.mask_id, FREE, NO_HOLE, ends=True)] * padding
    canvas = Canvas.of([((place.token,), place.state) for place in places])
    if facts.noise == "uniform":
        drawn = torch.randint(facts.vocab_size, (len(places),), generator=generator)
        # Noise only where nothing is given: a place that is re-opened starts from what stands there.
        canvas = canvas.rewritten(torch.where(canvas.ids == facts.mask_id, drawn, canvas.ids))

    def flags(values: list[bool]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.bool)

    return Layout(
        canvas,
        torch.tensor([place.hole for place in places], dtype=torch.int64),
        flags([place.ends for place in places]),
        flags([place.held for place in places]),
        flags([place.doubted for place in places]),
    )


def _places(piece: Piece, facts: CanvasFacts) -> list[_Place]:
    if not piece.is_hole:
        return [_Place(token, LOCKED, NO_HOLE) for token in piece.ids]
    uniform = facts.noise == "uniform"
    places = []
    for index, token in enumerate(piece.ids):
        if piece.reopen is None and not uniform:
            places.append(_Place(token, SETTLED, piece.hole, piece.open_ended, doubted=True))
        elif piece.reopen is None or index in piece.reopen:
            noise = token if uniform else facts.mask_id
            places.append(_Place(noise, FREE, piece.hole, piece.open_ended))
        else:
            places.append(_Place(token, SETTLED, piece.hole, piece.open_ended, held=True))
    blank = _Place(facts.mask_id, FREE, piece.hole, piece.open_ended)
    return places + [blank] * (piece.length - len(piece.ids))
