"""How many lines and characters a hole may hold: `Extent`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import torch

from engine.canvas import Canvas, Run
from engine.diffusion.constraints.canvas_text import written_end
from engine.diffusion.constraints.vocabulary import Vocabulary


@dataclass(slots=True)
class Extent:
    """max_lines, max_characters: of each hole, 0 for any number; lines are counted by their line feeds.

    Makes a text fit instead of cutting it. No single token may pass what is left over, but places are settled several
    at a time and may pass it together: then those beyond are denoised anew, and from there on what is left is shared
    out evenly among the places still free, which cannot be passed.
    """

    vocabulary: Vocabulary
    max_lines: int = 0
    max_characters: int = 0
    _shared: bool = field(default=False, init=False)
    _begun: tuple[int, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        if self.max_lines < 0 or self.max_characters < 0:
            raise ValueError(
                f"limits must not be negative, got {self.max_lines} lines, {self.max_characters} characters"
            )

    def constrain(self, canvas: Canvas, logits: torch.Tensor) -> torch.Tensor:
        """See `Constraint`."""
        ids: list[int] = canvas.ids.tolist()
        settled: list[bool] = canvas.settled.tolist()
        for most, sizes in self.vocabulary.limits(self.max_lines, self.max_characters):
            allowance = torch.full((canvas.length,), torch.iinfo(torch.int64).max)
            for hole in canvas.holes():
                self._allow(allowance, hole, ids, settled, self._left(hole, most, sizes), sizes)
            too_large = sizes[None, :] > allowance[:, None]
            logits = logits.masked_fill(too_large.to(logits.device), -torch.inf)
        return logits

    def review(self, canvas: Canvas, *, is_last: bool = True) -> torch.Tensor | None:  # noqa: ARG002  # the seam's
        """See `Constraint`."""
        ids: list[int] = canvas.ids.tolist()
        wrong = torch.zeros_like(canvas.locked)
        for most, sizes in self.vocabulary.limits(self.max_lines, self.max_characters):
            for hole in canvas.holes():
                end = written_end(ids, hole, self.vocabulary.ends)
                start = _first_beyond(sizes[ids[hole.start : end]].tolist(), self._left(hole, most, sizes))
                if start is not None:
                    # With the places behind an end id: the end may have to come earlier, and they go with it.
                    wrong[hole.start + start : hole.end] = True
        if not bool(wrong.any()):
            return None
        self._shared = True
        return wrong

    def follow(self, committed: Sequence[int], begun: Sequence[int]) -> None:  # noqa: ARG002  # the seam's
        """See `Constraint`: a hole that goes on has used up what it holds."""
        self._begun, self._shared = tuple(begun), False

    def _left(self, hole: Run, most: int, sizes: torch.Tensor) -> int:
        """What of `most` is left for this canvas; a hole that goes on stands at its beginning."""
        return most if hole.start or not self._begun else max(0, most - int(sizes[list(self._begun)].sum()))

    def _allow(
        self, allowance: torch.Tensor, hole: Run, ids: list[int], settled: list[bool], most: int, sizes: torch.Tensor
    ) -> None:
        """Write what each place of a hole may hold at most: a settled one no more than it holds."""
        places = range(hole.start, hole.end)
        ended = next((place for place in places if settled[place] and ids[place] in self.vocabulary.ends), hole.end)
        used = sum(int(sizes[ids[place]]) for place in range(hole.start, ended) if settled[place])
        free = sum(not settled[place] for place in range(hole.start, ended))
        left = max(0, most - used)
        share = left // max(1, free) if self._shared else left
        for place in places:
            allowance[place] = int(sizes[ids[place]]) if settled[place] else share


def _first_beyond(sizes: list[int], most: int) -> int | None:
    """From where on places are to be re-opened, None when all fit; far enough left that each can hold something."""
    before = [0, *accumulate(sizes)]
    if before[-1] <= most:
        return None
    start = next(index for index, total in enumerate(before) if total > most) - 1
    while start > 0 and most - before[start] < len(sizes) - start:
        start -= 1
    return start
