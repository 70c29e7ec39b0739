"""Where drafts come from besides the present text: repeats in the text (n-gram look-up), the last pass.

Pure functions and small objects over token ids; nothing here touches the model. A draft is only ever a guess: the
verifying pass decides, so a bad draft costs time and never changes the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
