"""How the time of a regular expression grows with its text: linear, polynomial or exponential.

A backtracking matcher (Python's `re`) tries every way a text can be read, so its time grows as the number of ways does.
The expression becomes an automaton of its characters (Glushkov 1961), and the ways are compared pairwise, after
Weideman et al., "Analyzing Matching Time Behavior of Backtracking Regular Expression Matchers" (2016): two ways round
from a state to itself on one text make it exponential; a way round one state, one from it to another and one round
that, all on the same text, make it polynomial. A search is the expression behind a loop over every character.

Errs on the side of growth: assertions count as always fulfilled, what follows in them as one more way that ends. A way
that reaches a state where the whole expression has matched is no growth: the matcher stops there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from re import _constants as codes  # type: ignore[attr-defined]  # the tree has no public form
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Literal

Growth = Literal["linear", "polynomial", "exponential"]

# Every character that can matter: those that ASCII has, and some of each kind beyond it.
SAMPLE = "".join(map(chr, range(128))) + "éßЖ五\u0301\u2028\xa0٣€🙂"
# A repetition with more copies than this counts as one without end.
_MOST_COPIES = 8
# More places than any expression here has; the comparison takes the square of their number, or more.
_MOST_PLACES = 400


@dataclass(frozen=True)
class Piece:
    """A part of an expression as Glushkov has it. Edges are a list, since two equal ones are two ways.

    `open_last`: those of `last` behind which nothing more has to hold. `line_first`: those of `first` that only the
    start of a line can have in front of them; `line_start`: so does what follows where this piece is empty.
    """

    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    open_last: frozenset[int] = frozenset()
    empty: bool = True
    start_only: bool = False
    line_start: bool = False
    line_first: frozenset[int] = frozenset()


@dataclass
class Automaton:
    """`chars[n]` is what position n reads; `edges` are its ways on."""

    chars: list[frozenset[str]] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)

    def position(self, chars: Iterable[str]) -> Piece:
        if len(self.chars) >= _MOST_PLACES:
            raise NotImplementedError(f"more than {_MOST_PLACES} places for characters")
        self.chars.append(frozenset(chars))
        place = len(self.chars) - 1
        return Piece((place,), (place,), frozenset((place,)), empty=False)

    def join(self, starts: Iterable[int], ends: Iterable[int]) -> None:
        self.edges += product(starts, ends)

    def follow(self, left: Piece, right: Piece) -> Piece:
        """`left`, then `right`."""
        self.join(left.last, right.first)
        first = left.first + (right.first if left.empty else ())
        last = right.last + (left.last if right.empty else ())
        open_last = right.open_last | (left.open_last if right.empty else frozenset())
        begins_empty = left.empty and not left.first
        line_first = left.line_first
        if left.empty:
            line_first |= frozenset(right.first) if left.line_start else right.line_first
        return Piece(
            first,
            last,
            open_last,
            left.empty and right.empty,
            left.start_only or (begins_empty and right.start_only),
            left.line_start or right.line_start,
            line_first,
        )

    def choice(self, pieces: list[Piece]) -> Piece:
        return Piece(
            sum((one.first for one in pieces), ()),
            sum((one.last for one in pieces), ()),
            frozenset().union(*(one.open_last for one in pieces)),
            any(one.empty for one in pieces),
            all(one.start_only for one in pieces),
            any(one.empty for one in pieces) and all(one.line_start for one in pieces if one.empty),
            frozenset().union(*(one.line_first for one in pieces)),
        )


class _Builder:
    """Walks the tree that `re` makes of an expression."""

    def __init__(self, flags: int) -> None:
        self.automaton = Automaton()
        self._flags = flags

    def build(self, tree: Any) -> Piece:
        piece = Piece()
        for code, argument in tree:
            piece = self.automaton.follow(piece, self._one(code, argument))
        return piece

    def _one(self, code: Any, argument: Any) -> Piece:
        if code in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN):
            return self.automaton.position(self._chars(code, argument))
        if code is codes.BRANCH:
            return self.automaton.choice([self.build(one) for one in argument[1]])
        if code in (codes.SUBPATTERN, codes.ATOMIC_GROUP):
            return self.build(argument if code is codes.ATOMIC_GROUP else argument[3])
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            return self._repeat(*argument)
        if code in (codes.ASSERT, codes.ASSERT_NOT):
            return self._assertion(*argument)
        if code is codes.AT:
            return self._anchor(argument)
        raise NotImplementedError(f"{code} is not thought of here: use something simpler")

    def _repeat(self, least: int, most: Any, tree: Any) -> Piece:
        piece = Piece()
        for _ in range(min(least, _MOST_COPIES)):
            piece = self.automaton.follow(piece, self.build(tree))
        if most is codes.MAXREPEAT or most - least > _MOST_COPIES:
            body = self.build(tree)
            self.automaton.join(body.last, body.first)
            return self.automaton.follow(piece, Piece(body.first, body.last, body.open_last, empty=True))
        for _ in range(most - least):
            one = self.build(tree)
            piece = self.automaton.follow(piece, Piece(one.first, one.last, one.open_last, empty=True))
        return piece

    def _assertion(self, direction: int, tree: Any) -> Piece:
        """What is looked at in front leads nowhere; what lies behind has been read and is of fixed length."""
        if direction < 0:
            return Piece()
        looked = self.build(tree)
        return Piece(looked.first, (), frozenset(), empty=True)

    def _anchor(self, kind: Any) -> Piece:
        if kind is codes.AT_BEGINNING_STRING or (kind is codes.AT_BEGINNING and not self._flags & re.MULTILINE):
            return Piece(start_only=True)
        return Piece(line_start=kind is codes.AT_BEGINNING)

    def _chars(self, code: Any, argument: Any) -> set[str]:
        if code is codes.IN:
            return self._set(argument)
        if code is codes.ANY:
            return {c for c in SAMPLE if c != "\n" or self._flags & re.DOTALL}
        same = {c for c in SAMPLE if self._same(c, chr(argument))}
        return same if code is codes.LITERAL else set(SAMPLE) - same

    def _same(self, one: str, other: str) -> bool:
        return one == other or (bool(self._flags & re.IGNORECASE) and one.lower() == other.lower())

    def _set(self, members: Any) -> set[str]:
        found: set[str] = set()
        negated = False
        for code, argument in members:
            if code is codes.NEGATE:
                negated = True
            elif code is codes.LITERAL:
                found |= {c for c in SAMPLE if self._same(c, chr(argument))}
            elif code is codes.RANGE:
                low, high = argument
                found |= {c for c in SAMPLE if low <= ord(c) <= high}
                if self._flags & re.IGNORECASE:
                    found |= {c for c in SAMPLE if low <= ord(c.swapcase()[0]) <= high}
            else:
                found |= {c for c in SAMPLE if re.match(_CATEGORIES[str(argument)], c)}
        return set(SAMPLE) - found if negated else found


_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


class Ways:
    """The ways through an automaton, compared."""

    def __init__(self, automaton: Automaton, done: frozenset[int]) -> None:
        bits = {char: 1 << place for place, char in enumerate(SAMPLE)}
        self._chars = [sum(bits[char] for char in chars) for chars in automaton.chars]
        self._done = done
        self._on: dict[int, list[int]] = {}
        for start, end in automaton.edges:
            self._on.setdefault(start, []).append(end)
        self._once = {start: tuple(set(ends)) for start, ends in self._on.items()}

    @cached_property
    def _reach(self) -> dict[int, set[int]]:
        return {start: set(_reachable([start], lambda one: self._on.get(one, []))) for start in range(len(self._chars))}

    def _loops(self, place: int) -> bool:
        return any(place in self._reach[one] for one in self._on.get(place, []))

    @property
    def is_exponential(self) -> bool:
        """Two different ways from a place to itself on one text."""
        return any(self._round_twice(place) for place in range(len(self._chars)) if self._loops(place))

    def _round_twice(self, place: int) -> bool:
        def on(state: tuple[int, int, bool]) -> Iterator[tuple[int, int, bool]]:
            one, other, differ = state
            for (i, a), (j, b) in product(enumerate(self._on.get(one, [])), enumerate(self._on.get(other, []))):
                if self._chars[a] & self._chars[b] and place in self._reach[a] and place in self._reach[b]:
                    yield a, b, differ or a != b or (one == other and i != j)

        begun = list(on((place, place, False)))
        return (place, place, True) in _reachable(begun, on)

    def polynomial(self) -> tuple[int, int] | None:
        """A pair of places as the module describes it; None if there is none."""
        loops = [place for place in range(len(self._chars)) if self._loops(place)]
        for one, other in product(loops, loops):
            if one != other and other not in self._done and other in self._reach[one] and self._both(one, other):
                return one, other
        return None

    def _both(self, one: int, other: int) -> bool:
        """Whether on one text there is a way round `one`, one from it to `other`, and one round that."""
        reach, chars, ways = self._reach, self._chars, self._once

        def on(state: tuple[int, int, int]) -> Iterator[tuple[int, int, int]]:
            first, between, last = state
            for a in ways.get(first, ()):
                if one not in reach[a]:
                    continue
                for b in ways.get(between, ()):
                    if not (both := chars[a] & chars[b]) or other not in reach[b]:
                        continue
                    yield from ((a, b, c) for c in ways.get(last, ()) if both & chars[c] and other in reach[c])

        return (one, other, other) in _reachable(list(on((one, one, other))), on)


def _reachable(begun: list[Any], on: Any) -> set[Any]:
    found, waiting = set(begun), list(begun)
    while waiting:
        for one in on(waiting.pop()):
            if one not in found:
                found.add(one)
                waiting.append(one)
    return found


def growth_of(pattern: str, flags: int = 0, *, search: bool) -> Growth:
    """How time grows; `search`: the expression is looked for anywhere, not only matched at one place.

    Raises NotImplementedError for back references, conditions and expressions of hundreds of places, re.error for what
    is no expression.
    """
    tree = parser.parse(pattern, flags)
    builder = _Builder(tree.state.flags)
    automaton = builder.automaton
    piece = builder.build(tree)
    # In front of a `$` or a look ahead nothing is done yet.
    done = (
        piece.open_last if not tree.data or tree.data[-1][0] not in (codes.AT, codes.ASSERT, codes.ASSERT_NOT) else ()
    )
    if search and not piece.start_only:
        line, end = automaton.position(set(SAMPLE) - {"\n"}), automaton.position("\n")
        both = line.last + end.last
        automaton.join(both, both)
        automaton.join(end.last, piece.first)
        automaton.join(line.last, [one for one in piece.first if one not in piece.line_first])
    ways = Ways(automaton, frozenset(done))
    if ways.is_exponential:
        return "exponential"
    return "linear" if ways.polynomial() is None else "polynomial"
