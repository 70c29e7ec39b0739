"""The text of a canvas and which place wrote which part of it: `CanvasText`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.canvas import Canvas, Run
from engine.diffusion.constraints.vocabulary import Vocabulary

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class CanvasText:
    """data: UTF-8 of the text before the canvas, of the canvas and behind it. extents: by place, bytes `[start, end)`.

    What stands behind an end id in its hole is no text: those places have the empty extent at the hole's end.
    """

    data: bytes
    extents: tuple[Span, ...]
    holes: tuple[Run, ...]

    @classmethod
    def of(cls, canvas: Canvas, vocabulary: Vocabulary, before: bytes = b"", after: bytes = b"") -> CanvasText:
        """Read a canvas. Waits for the device."""
        ids: list[int] = canvas.ids.tolist()
        holes = canvas.holes()
        unwritten = {place for hole in holes for place in range(written_end(ids, hole, vocabulary.ends), hole.end)}
        data = bytearray(before)
        extents: list[Span] = []
        for place, token in enumerate(ids):
            start = len(data)
            if place not in unwritten:
                data += vocabulary.pieces[token]
            extents.append((start, len(data)))
        return cls(bytes(data + after), tuple(extents), holes)

    def places(self, spans: Iterable[Span]) -> set[int]:
        """The places of holes that wrote any byte of the spans.

        A span that lies in given text only is laid at the door of the nearest hole, all of it: what is missing in a
        hole shows as an error behind it.
        """
        found: set[int] = set()
        for start, end in spans:
            touched = {place for hole in self.holes for place in self._touched(hole, start, max(end, start + 1))}
            found |= touched or self._nearest(start, end)
        return found

    def _touched(self, hole: Run, start: int, end: int) -> list[int]:
        inside = []
        for place in range(hole.start, hole.end):
            first, last = self.extents[place]
            if (first < end and last > start) or (first == last and start <= first <= end):
                inside.append(place)
        return inside

    def _nearest(self, start: int, end: int) -> set[int]:
        def distance(hole: Run) -> int:
            first, last = self.extents[hole.start][0], self.extents[hole.end - 1][1]
            return max(start - last, first - end, 0)

        nearest = min(self.holes, key=distance, default=None)
        return set(range(nearest.start, nearest.end)) if nearest else set()


def written_end(ids: Sequence[int], hole: Run, ends: frozenset[int]) -> int:
    """The place of the first end id in a hole, the hole's end when there is none."""
    return next((place for place in range(hole.start, hole.end) if ids[place] in ends), hole.end)


def byte_spans(text: str, spans: Iterable[Span]) -> list[Span]:
    """Spans of characters as spans of UTF-8 bytes; what lies outside the text is cut off."""

    def at(character: int) -> int:
        return len(text[: max(0, character)].encode())

    return [(at(start), at(end)) for start, end in spans]
