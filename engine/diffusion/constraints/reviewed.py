"""Rules about the whole text, checked when the canvas is full: `Reviewed`, and `must_parse`.

What is wrong comes as spans of the text; the places that wrote them are denoised anew, up to a number of tries. Cf. the
targeted remasking of erroneous spans, which changes code where untargeted remasking rarely does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import torch

from engine.canvas import LOCKED, Canvas
from engine.diffusion.constraints.canvas_text import CanvasText, Span, byte_spans
from engine.diffusion.constraints.failure import unsatisfied
from engine.diffusion.constraints.vocabulary import Vocabulary

Faults = Callable[[str], Sequence[Span]]
"""From a text to the spans of it that are wrong, in characters `[start, end)`; none when all is well."""


@dataclass(slots=True)
class Reviewed:
    """faults: what is wrong with the text before the canvas, in it and behind it, taken together.

    before, after: the known text around the canvas, as `faults` is to see it. wanted: what the text should do, in
    words, for the message when `tries` corrections did not help.

    Each try opens one place more on both sides of a fault, and one token of a fault may not come back at its place, the
    least certain one of those not barred yet: the same logits would choose it again.
    """

    vocabulary: Vocabulary
    faults: Faults
    wanted: str
    before: str = ""
    after: str = ""
    tries: int = 3
    _committed: bytes = field(default=b"", init=False)
    _tried: int = field(default=0, init=False)
    _barred: set[tuple[int, int]] = field(default_factory=set, init=False)
    _length: int = field(default=-1, init=False)

    def constrain(self, canvas: Canvas, logits: torch.Tensor) -> torch.Tensor:
        """See `Constraint`."""
        # On a canvas of another length the places have moved.
        if not self._barred or canvas.length != self._length:
            return logits
        constrained = logits.clone()
        free: list[bool] = canvas.free.tolist()
        for place, token in self._barred:
            if free[place]:
                constrained[place, token] = -torch.inf
        return constrained

    def review(self, canvas: Canvas, *, is_last: bool = True) -> torch.Tensor | None:
        """See `Constraint`. Raises EngineError(unsatisfied) when the tries are used up.

        On the last of several canvases a fault in an earlier one can no longer be mended there; then the nearest hole
        of the last one is tried.
        """
        if not is_last:
            return None
        text = CanvasText.of(canvas, self.vocabulary, self.before.encode() + self._committed, self.after.encode())
        spans = self._wrong(text.data)
        if not spans:
            return None
        places = text.places(spans)
        if self._tried >= self.tries or not places:
            raise unsatisfied(
                f"no text was found that {self.wanted}" + (f" in {self._tried} corrections" if self._tried else ""),
                "choose a larger stretch of code, or say more about what belongs there",
            )
        states: list[int] = canvas.state.tolist()
        reach = self._tried
        self._tried += 1
        near = {place + step for place in places for step in range(-reach, reach + 1)}
        opened = [place for place in range(canvas.length) if place in near and states[place] != LOCKED]
        self._bar(canvas, opened, places)
        mask = torch.zeros_like(canvas.locked)
        mask[opened] = True
        return mask

    def follow(self, committed: Sequence[int], begun: Sequence[int]) -> None:  # noqa: ARG002  # the seam's
        """See `Constraint`: what is committed is known text from here on."""
        self._committed += b"".join(self.vocabulary.pieces[token] for token in committed)
        self._barred.clear()

    def _wrong(self, data: bytes) -> list[Span]:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as fault:
            return [(fault.start, fault.end)]
        return byte_spans(text, self.faults(text))

    def _bar(self, canvas: Canvas, opened: Sequence[int], blamed: Collection[int]) -> None:
        """Bar one token in each run of opened places."""
        if canvas.length != self._length:
            self._barred.clear()
            self._length = canvas.length
        confidence: list[float] = canvas.confidence.tolist()
        often = Counter(place for place, _ in self._barred)
        for run in _runs(opened):
            # In turn: what takes a barred token's place is less certain still, and would be barred again and again.
            doubted = min(run, key=lambda place: (often[place], place not in blamed, confidence[place], place))
            self._barred.add((doubted, int(canvas.ids[doubted])))


def must_parse(
    vocabulary: Vocabulary, parses: Faults, before: str = "", after: str = "", *, tries: int = 3
) -> Reviewed:
    """The spliced text must be free of syntax errors.

    parses: the caller's parser, which gives the spans of the errors that the gap is to blame for: text that was broken
    before stays so, and only the caller knows the grammar. The engine has no parser of its own.
    """
    return Reviewed(vocabulary, parses, "parses", before, after, tries)


def _runs(places: Sequence[int]) -> list[list[int]]:
    """Neighbouring places together."""
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs
