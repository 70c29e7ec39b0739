"""Drafts from the text that stands in the gap now: where the settled text stands in it, and which edits it repeats.

Pure, over token ids. An edit leaves most of a text as it is; so the present text is the draft until the model departs
from it, and again as soon as the settled text lines up with it behind the change. What was replaced by what is
remembered: a renamed name is drafted renamed from its second place on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.diffusion.confidence import (
    WARM_BEHIND_GUESS,
    WARM_CERTAIN_RUN,
    WITHIN_EDIT_KEPT,
    edit_chance,
    warm_found_chance,
    warm_lost_chance,
    warm_running_chance,
)

# Tokens that must agree behind a change before it counts as over.
_CONFIRMED = 2
# Longest replaced and longest replacing run of tokens that is remembered.
_LONGEST_EDIT = 8
# Most tokens of the settled text that are compared when it is lined up with the present text.
_LONGEST_MATCH = 4
# How far around the beginning of a change the present text is searched for its end, in tokens.
_BACK, _AHEAD = 4, 96


@dataclass(slots=True, eq=False)
class Edit:
    """Behind the token `left` (any, when None) the run `old` was replaced by `new`; how often that held since."""

    left: int | None
    old: tuple[int, ...]
    new: tuple[int, ...]
    held: int = 0
    failed: int = 0

    @property
    def chance(self) -> float:
        """Of being made at its next place, too."""
        return edit_chance(self.held, self.failed)

    def is_at(self, ids: Sequence[int], place: int, before: int | None) -> bool:
        """Whether it can be made at `place` of `ids`, `before` being the token in front of it."""
        fits = self.left is None or self.left == before
        return fits and tuple(ids[place : place + len(self.old)]) == self.old


@dataclass(frozen=True, slots=True)
class Expected:
    """A token expected next, and its chance once those before it came true.

    after: where in the present text the next token stands then. edit: the one this token begins, if any.
    """

    token: int
    chance: float
    after: int
    edit: Edit | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """Where a change that is not over began: `start` in the present text, `began` in the settled one."""

    start: int
    began: int


@dataclass(slots=True)
class WarmStart:
    """Follows the settled text through the present one. ids: the present text."""

    ids: tuple[int, ...]
    _edits: list[Edit] = field(default_factory=list)
    _expected: tuple[Expected, ...] = ()
    _seen: int = 0
    _next: int = 0
    """Where in the present text the next token is expected."""
    _matched: int = WARM_CERTAIN_RUN
    """How many tokens in a row came as expected, or were found; the beginning counts as a run of its own."""
    _change: _Change | None = None
    _missed: int = 0
    """Tokens of the change so far that were not the expected ones."""
    _doubt: float = 0.0
    """Inside a change: the chance of the token expected next."""

    def offer(self, settled: Sequence[int], width: int) -> tuple[Expected, ...]:
        """Up to `width` tokens expected behind `settled`; empty behind the end of the present text."""
        self._follow(settled)
        offered: list[Expected] = []
        place, matched = self._next, self._matched
        before = settled[-1] if settled else None
        while len(offered) < width and place < len(self.ids):
            edit = self._edit_at(place, before)
            if edit is None:
                chance = self._doubt if not offered and self._change is not None else warm_running_chance(matched)
                offered.append(Expected(self.ids[place], chance, place + 1))
                place += 1
            else:
                offered += _made(edit, place)
                place += len(edit.old)
            before = offered[-1].token
            matched += 1
        self._expected = tuple(offered[:width])
        return self._expected

    def _edit_at(self, place: int, before: int | None) -> Edit | None:
        """The likeliest edit that can be made at `place`, if it is likelier than none."""
        possible = [edit for edit in self._edits if edit.chance > 0.5 and edit.is_at(self.ids, place, before)]
        return max(possible, key=lambda edit: (edit.chance, len(edit.old)), default=None)

    def _follow(self, settled: Sequence[int]) -> None:
        """Take in what was settled since the last offer."""
        expected = iter(self._expected)
        for number in range(self._seen, len(settled)):
            hoped = next(expected, None)
            if hoped is not None and settled[number] == hoped.token:
                self._agree(hoped.after)
                if hoped.edit is not None:
                    hoped.edit.held += 1
            else:
                expected = iter(())
                if hoped is not None and hoped.edit is not None:
                    hoped.edit.failed += 1
                if settled[number] in self.ids[self._next : self._next + 1]:
                    self._agree(self._next + 1)
                else:
                    self._depart(settled[: number + 1])
            self._end_change(settled[: number + 1])
        self._seen = len(settled)

    def _agree(self, after: int) -> None:
        self._next = after
        self._matched += 1
        self._doubt = WARM_BEHIND_GUESS

    def _depart(self, settled: Sequence[int]) -> None:
        """Line up behind a token that was not expected. The search stays about where the change began."""
        if self._change is None:
            self._change = _Change(self._next, len(settled) - 1)
        start = self._change.start
        self._missed += 1
        place = self._place_of(settled, start)
        if place is None:
            # One token for another is the commonest change; behind it nothing tells how much is replaced by how much.
            self._matched, self._next = 0, min(start + (self._missed == 1), len(self.ids))
            self._doubt = warm_lost_chance(self._missed)
        else:
            self._matched, self._next = 1, place + 1
            self._doubt = warm_found_chance(place - start)

    def _place_of(self, settled: Sequence[int], start: int) -> int | None:
        """Where the last settled token stands in the present text: the longest agreement, then the nearest place."""
        low, high = max(0, start - _BACK), min(len(self.ids), start + _AHEAD)
        places = [i for i in range(low, high) if self.ids[i] == settled[-1]]
        return max(places, key=lambda i: (self._agreement(settled, i), -_distance(i + 1 - start)), default=None)

    def _agreement(self, settled: Sequence[int], end: int) -> int:
        """How many tokens up to `end` equal the settled tail, at most `_LONGEST_MATCH`."""
        length = 0
        while length < min(_LONGEST_MATCH, end + 1, len(settled)) and settled[-1 - length] == self.ids[end - length]:
            length += 1
        return length

    def _end_change(self, settled: Sequence[int]) -> None:
        """Once the texts agree again behind a change, it is over; remember it."""
        if self._change is None or self._matched < _CONFIRMED:
            return
        start, began = self._change.start, self._change.began
        self._change, self._missed = None, 0
        old = self.ids[start : max(start, self._next - self._matched)]
        new = tuple(settled[began : max(began, len(settled) - self._matched)])
        left = self.ids[start - 1] if not old and start else None
        # What is taken away is not remembered: nothing comes in its place that could be drafted.
        if new and max(len(old), len(new)) <= _LONGEST_EDIT and (old or left is not None):
            self._remember(Edit(left, old, new))

    def _remember(self, edit: Edit) -> None:
        for known in self._edits:
            if (known.left, known.old, known.new) == (edit.left, edit.old, edit.new):
                known.held += 1
                return
        self._edits.append(edit)


def _distance(moved: int) -> int:
    """How far a place is from the beginning of a change; going back is rarer than going on."""
    return moved if moved >= 0 else -2 * moved


def _made(edit: Edit, place: int) -> list[Expected]:
    """The tokens an edit leads to: the first has the edit's chance, those behind it are nearly certain."""
    last = len(edit.new) - 1
    return [
        Expected(
            token,
            edit.chance if number == 0 else WITHIN_EDIT_KEPT,
            place + len(edit.old) if number == last else place,
            edit if number == 0 else None,
        )
        for number, token in enumerate(edit.new)
    ]
