"""The holes of a fill as they stand on a canvas, with the known text between them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.canvas_serving.checks import require_round_trip
from engine.canvas_serving.gap_shape import gap_shape
from engine.diffusion.length import GapShape
from engine.diffusion.stopping import Limits
from engine.models.base import Tokenizer
from engine.models.canvas_model import CanvasFacts, Part
from engine.protocol.messages import Fill, FurtherHole

LEAST_GAP = 4
"""The places that are kept free for a hole, in tokens, when a small window has to be shared with context."""
ISLAND_SHARE = 0.5
"""Of a window or a fixed canvas, what the text between holes may take."""


@dataclass(frozen=True, slots=True)
class CanvasHole:
    """island: the known text in front of it, empty for the first hole. warm: what stands in it now.

    shape: what its surroundings tell of its length. limits: its own, in tokens and lines.
    """

    island: tuple[int, ...]
    warm: tuple[int, ...]
    shape: GapShape
    limits: Limits

    @property
    def least(self) -> int:
        """The places it needs."""
        return max(len(self.warm), min(self.limits.max_tokens, LEAST_GAP))


def holes_of(request: Fill, tokenizer: Tokenizer) -> tuple[CanvasHole, ...]:
    """The holes of a request, in order. Raises EngineError(round_trip)."""
    all_holes = (FurtherHole("", request.draft, request.max_lines), *request.further)
    before, made = request.prefix, []
    for number, hole in enumerate(all_holes):
        before += hole.island
        behind = "".join(each.island for each in all_holes[number + 1 :]) + request.suffix
        warm = tuple(require_round_trip(hole.draft, tokenizer))
        shape = gap_shape(before, behind, len(warm), tokenizer)
        limits = Limits(request.max_tokens, hole.max_lines, "", request.deadline_ms)
        made.append(CanvasHole(tuple(require_round_trip(hole.island, tokenizer)), warm, shape, limits))
    return tuple(made)


def limits_of(holes: Sequence[CanvasHole]) -> Limits:
    """Of all holes together: one number of lines for all, or none where they differ and each is cut by its own."""
    first, lines = holes[0].limits, {hole.limits.max_lines for hole in holes}
    most_lines = first.max_lines if len(lines) == 1 else 0
    return Limits(first.max_tokens * len(holes), most_lines, first.stop_text, first.deadline_ms)


def parts_of(holes: Sequence[CanvasHole], behind: tuple[int, ...]) -> tuple[Part, ...]:
    """Islands and holes in turn; `behind`: the known text that stands on the canvas behind the last hole."""
    parts: list[Part] = []
    for hole in holes:
        if hole.island:
            parts.append(Part(is_hole=False, ids=hole.island))
        parts.append(Part(is_hole=True, warm=hole.warm))
    return (*parts, Part(is_hole=False, ids=behind)) if behind else tuple(parts)


def island_tokens(holes: Sequence[CanvasHole]) -> int:
    """How much known text stands between the holes."""
    return sum(len(hole.island) for hole in holes)


def fit_together(holes: Sequence[CanvasHole], facts: CanvasFacts) -> bool:
    """Whether the holes can share a canvas: islands are allowed there, and leave the holes and their context room."""
    room = min(facts.window_tokens, facts.canvas_length or facts.window_tokens)
    taken = island_tokens(holes) + sum(hole.least for hole in holes)
    return facts.islands and taken <= room * ISLAND_SHARE
