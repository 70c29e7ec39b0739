"""Where drafts come from: the present text (warm start), repeats in the text (n-gram look-up), the last pass.

Pure functions and small objects over token ids; nothing here touches the model. A draft is only ever a guess: the
verifying pass decides, so a bad draft costs time and never changes the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Offer:
    """A draft and the name of the source that made it."""

    source: str
    ids: tuple[int, ...]


class WarmStart:
    """Drafts from the text that stands in the gap now, re-aligned after each mismatch.

    Keeps a pointer to the token expected next. After the model departed from the text, the pointer is set to where
    the last few emitted tokens stand in it, the nearest place first, so that an insertion, a deletion or a
    substitution costs one pass and not the rest of the draft.
    """

    def __init__(self, ids: Sequence[int], *, longest_match: int = 4, back: int = 16, ahead: int = 96) -> None:
        self._ids = tuple(ids)
        self._next = 0
        self._seen = 0
        self._longest = longest_match
        self._back = back
        self._ahead = ahead

    def offer(self, settled: Sequence[int], width: int) -> tuple[int, ...]:
        """Up to `width` ids expected behind `settled`; empty when the text cannot be lined up."""
        for token in settled[self._seen :]:
            expected = self._ids[self._next] if self._next < len(self._ids) else None
            self._next = self._next + 1 if token == expected else self._realign(settled, token)
        self._seen = len(settled)
        return self._ids[self._next : self._next + width]

    def _realign(self, settled: Sequence[int], token: int) -> int:
        """The pointer behind the best match of the emitted tail; one further (a substitution) when there is none."""
        low = max(0, self._next - self._back)
        high = min(len(self._ids), self._next + self._ahead)
        places = [i for i in range(low, high) if self._ids[i] == token]
        if not places:
            return min(self._next + 1, len(self._ids))
        best = max(places, key=lambda i: (self._match_length(settled, i), -abs(i + 1 - self._next)))
        return best + 1

    def _match_length(self, settled: Sequence[int], end: int) -> int:
        """How many tokens up to `end` equal the emitted tail, at most `longest_match`."""
        length = 0
        while length < min(self._longest, end + 1, len(settled)) and settled[-1 - length] == self._ids[end - length]:
            length += 1
        return length


@dataclass(slots=True)
class NgramLookup:
    """Prompt look-up decoding: what followed the last n tokens where they occurred before, longest n first.

    The latest occurrence wins, as near text is the better guide. Source: "Prompt Lookup Decoding" (Saxena, 2023).
    """

    shortest: int
    longest: int
    _ids: list[int] = field(default_factory=list)
    _ends: dict[tuple[int, ...], int] = field(default_factory=dict)

    def extend(self, ids: Sequence[int]) -> None:
        """Append ids to the searched text. An n-gram becomes findable once a token follows it."""
        for token in ids:
            for n in range(self.shortest, min(self.longest, len(self._ids)) + 1):
                self._ends[tuple(self._ids[-n:])] = len(self._ids)
            self._ids.append(token)

    def offer(self, width: int) -> tuple[int, ...]:
        """Up to `width` ids that followed the longest known tail of the text; empty when none is known."""
        for n in range(min(self.longest, len(self._ids)), self.shortest - 1, -1):
            end = self._ends.get(tuple(self._ids[-n:]))
            if end is not None:
                return tuple(self._ids[end : end + width])
        return ()


@dataclass(frozen=True, slots=True)
class Leftover:
    """Predictions of the last pass for the places behind the token it settled last.

    masks: from mask rows behind the accepted anchor, with their probabilities. causal: from rows behind the first
    mismatch, conditioned on a wrong token and so weak (a Jacobi iteration).
    """

    masks: tuple[int, ...] = ()
    mask_probabilities: tuple[float, ...] = ()
    causal: tuple[int, ...] = ()

    def confident_masks(self, threshold: float) -> tuple[int, ...]:
        """The leading mask predictions whose probability reaches `threshold`."""
        kept: list[int] = []
        for token, probability in zip(self.masks, self.mask_probabilities, strict=True):
            if not probability >= threshold:
                break
            kept.append(token)
        return tuple(kept)
