"""What stands in front of a window: the part of its own document it has lost, and other documents that fit it.

Own headers and imports come as code, everything else as comments of the language, so that the whole still reads as
one file. Pure, and decides by text alone: which documents may be looked at is decided before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import dedent

from lsp_server.document import for_model
from lsp_server.languages import Language, language_of
from lsp_server.outline import Definition, Outline, outline
from lsp_server.tokens import cost_of

MOST_EXCERPTS = 4
_EXCERPT_LINES = 10
_MOST_SIGNATURES = 12
# Imports and signatures take at most this part of what is left, so that other documents come in too.
_SHARE = 3
_LEAST_SHARED = 2
_NEAR_CHARS = 1500
_NEAR_BEHIND_CHARS = 500

_NAME = re.compile(r"[^\W\d]\w{2,}")
# Words that two texts share without having anything in common.
_COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        and any are as async await bool break case catch char class const continue def default del do double
        elif else end enum except export extends false final finally float fn for from func function get global
        if impl implements import in include int interface is lambda let local long match module mut namespace
        new nil none not null object of or override package pass print private protected pub public raise
        require return self set static str string struct super switch the then this throw throws trait true try
        type typeof undefined use using val var void when where while with yield
        """,
    )
)


@dataclass(frozen=True, slots=True)
class Place:
    """A gap in `[start, end)` of a text of which `[left, right)` is in the window. `path` is what to call it."""

    path: str
    language: str
    text: str
    left: int
    start: int
    end: int
    right: int


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another document, as far as it may be shown and is looked at."""

    path: str
    text: str


def text_in_front(place: Place, others: Sequence[Neighbour], budget: int) -> str:
    """At most about `budget` tokens to stand before `place`'s window, ended by a line end; empty when there is nothing.

    In order of what is kept when it does not all fit: the scopes the window begins in, imports, signatures of what is
    named near the gap, excerpts of `others`, which are given most recent first.
    """
    facts, wanted, parts = language_of(place.language), _wanted(place), _Parts(budget)
    seen = outline(place.text, place.left, place.language)
    inside = _headers(seen.around, parts)
    if inside:
        inside += [_indent_at(place) + line for line in parts.take_comment(["..."], facts)]
    imports = _imports(place, seen.imports, wanted, parts)
    symbols = parts.take_comment(_signatures(place, seen, wanted), facts, most=parts.left // _SHARE)
    excerpts = _excerpts(others[:MOST_EXCERPTS], wanted, facts, parts)
    name = parts.take_comment([f"path: {place.path}"], facts) if excerpts else []
    return "".join(f"{line}\n" for line in [*excerpts, *name, *imports, *symbols, *inside])


class _Parts:
    """A budget of tokens that is spent piece by piece."""

    def __init__(self, budget: int) -> None:
        self.left = budget

    def take(self, lines: list[str]) -> list[str]:
        """`lines` if they still fit: then they are paid for."""
        cost = cost_of(lines)
        if cost > self.left:
            return []
        self.left -= cost
        return lines

    def take_comment(self, lines: list[str], facts: Language, least: int = 1, most: int | None = None) -> list[str]:
        """The first `lines` that fit, and within `most` tokens, as a comment; nothing if fewer than `least` do."""
        for count in range(len(lines), least - 1, -1):
            shown = _commented(lines[:count], facts)
            if shown and (most is None or cost_of(shown) <= most) and self.take(shown):
                return shown
        return []


def names_in(text: str) -> set[str]:
    """The words of a text that say what it is about."""
    return {name for name in _NAME.findall(text) if name.lower() not in _COMMON_WORDS}


def _wanted(place: Place) -> set[str]:
    before = place.text[max(place.left, place.start - _NEAR_CHARS) : place.start]
    return names_in(before) | names_in(place.text[place.end : min(place.right, place.end + _NEAR_BEHIND_CHARS)])


def _imports(place: Place, found: Iterable[tuple[int, str]], wanted: set[str], parts: _Parts) -> list[str]:
    """The imports the window has lost, in their order: of names near the gap, then others, in a share of the budget."""
    lost = [(where, for_model(text)) for where, text in found if where < place.left]
    ranked = sorted(lost, key=lambda each: not names_in(each[1]) & wanted)
    room = parts.left // _SHARE
    kept: list[tuple[int, list[str]]] = []
    for where, text in ranked:
        lines = text.split("\n")
        if (cost := cost_of(lines)) <= room:
            room -= cost
            kept.append((where, parts.take(lines)))
    return [line for _, lines in sorted(kept) for line in lines]


def _headers(around: Sequence[Definition], parts: _Parts) -> list[str]:
    """The headers of what the window begins in; the outermost are left out when not all fit."""
    for first in range(len(around)):
        lines = [line for each in around[first:] for line in for_model(each.header).split("\n")]
        if parts.take(lines):
            return lines
    return []


def _signatures(place: Place, seen: Outline, wanted: set[str]) -> list[str]:
    """The first lines of what is defined outside the window and named near the gap."""
    hidden = {each.start for each in seen.around}
    outside = (
        each for each in seen.definitions if not place.left <= each.start < place.right and each.start not in hidden
    )
    lines = [for_model(each.header).split("\n")[0].strip() for each in outside if each.name in wanted]
    return lines[:_MOST_SIGNATURES]


def _excerpts(others: Iterable[Neighbour], wanted: set[str], facts: Language, parts: _Parts) -> list[str]:
    found: list[str] = []
    for other in others:
        lines = _excerpt(for_model(other.text), wanted)
        # A name alone tells nothing.
        found += parts.take_comment([f"path: {other.path}", *lines], facts, least=2) if lines else []
    return found


def _excerpt(text: str, wanted: set[str]) -> list[str]:
    """The lines that share most names with the place; none when it is hardly any."""
    lines = text.split("\n")
    hits = [(number, shared) for number, line in enumerate(lines) if (shared := names_in(line) & wanted)]
    best, most = 0, 0
    for index, (first, shared) in enumerate(hits):
        together = set(shared)
        for number, more in hits[index + 1 :]:
            if number >= first + _EXCERPT_LINES:
                break
            together |= more
        if len(together) > most:
            best, most = first, len(together)
    if most < _LEAST_SHARED:
        return []
    excerpt = dedent("\n".join(lines[best : best + _EXCERPT_LINES])).split("\n")
    return [line for line in excerpt if line.strip()]


def _commented(lines: list[str], facts: Language) -> list[str]:
    """`lines` as a comment; nothing in a language without comments, and nothing that would end the comment early."""
    if facts.line_comments:
        return [f"{facts.line_comments[0]} {line}".rstrip() for line in lines]
    if not facts.block_comments or not lines:
        return []
    opener, closer = facts.block_comments[0]
    text = "\n".join(lines)
    return [] if closer in text else f"{opener} {text} {closer}".split("\n")


def _indent_at(place: Place) -> str:
    """The indentation of the window's first line of text."""
    for line in place.text[place.left : place.right].split("\n"):
        if line.strip():
            return line[: len(line) - len(line.lstrip(" \t"))]
    return ""
