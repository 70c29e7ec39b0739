"""Where drafts come from: the present text (warm start), repeats in the text (n-gram look-up), the last pass.

Pure functions and small objects over token ids; nothing here touches the model. A draft is only ever a guess: the
verifying pass decides, so a bad draft costs time and never changes the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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


class NgramLookup:
    """Prompt look-up decoding: what followed the present tail of the text where it stood before.

    The place with the longest agreement wins, the latest of equal ones, as near text is the better guide. Source:
    "Prompt Lookup Decoding" (Saxena, 2023).
    """

    def __init__(self, shortest: int, *, longest: int = 12, places: int = 32) -> None:
        """shortest: tokens that must agree; longest: how far agreement is counted; places: latest ones looked at."""
        self._shortest = shortest
        self._longest = longest
        self._places = places
        self._ids: list[int] = []
        self._behind: dict[tuple[int, ...], list[int]] = {}

    def extend(self, ids: Sequence[int]) -> None:
        """Append ids to the searched text. A run becomes findable once a token follows it."""
        for token in ids:
            if len(self._ids) >= self._shortest:
                self._behind.setdefault(tuple(self._ids[-self._shortest :]), []).append(len(self._ids))
            self._ids.append(token)

    def following(self, draft: Sequence[int]) -> tuple[int, int] | None:
        """What followed the tail of the text and `draft` elsewhere: (token, how many tokens agree), or None."""
        tail = [*self._ids[-self._longest :], *draft][-self._longest :]
        best: tuple[int, int] | None = None
        for place in reversed(self._behind.get(tuple(tail[-self._shortest :]), [])[-self._places :]):
            agreement = self._agreement(tail, place)
            if best is None or agreement > best[1]:
                best = self._ids[place], agreement
        return best

    def _agreement(self, tail: Sequence[int], place: int) -> int:
        length = 0
        while length < min(len(tail), place) and tail[-1 - length] == self._ids[place - 1 - length]:
            length += 1
        return length


@dataclass(frozen=True, slots=True)
class Leftover:
    """Mask predictions of the last pass for the places behind the token it settled last, with their probabilities."""

    masks: tuple[int, ...] = ()
    probabilities: tuple[float, ...] = ()
