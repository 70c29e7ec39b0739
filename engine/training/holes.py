"""What a hole in a text is, and where gaps of every kind lie: `TextHole`, `Gap`, `HoleKind`, `GAP_MAKERS`.

Pure: a text, a region of it and a seeded random generator in, a gap out. Gaps are cut as editors make them: a cursor
somewhere in a line, lines deleted whole, an argument to be written. Must not read files or know token ids; which
kind is asked how often, and how much context a hole gets, is `hole_sampling`'s.
"""

from __future__ import annotations

import bisect
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from engine.training.syntax_holes import Span, Syntax

MOST_GAP_CHARACTERS = 1200

_COMMENTS = ("#", "//", "/*", "*", "--")


class HoleKind(StrEnum):
    """The ways a gap comes about."""

    LINE_REST = "line_rest"
    """From a cursor to the end of its line, sometimes with the next lines."""
    LINES = "lines"
    """One to ten whole lines."""
    BLOCK = "block"
    """The body of a function, loop or condition."""
    ARGUMENTS = "arguments"
    """What stands between brackets, or one expression."""
    SPAN = "span"
    """Any characters: both ends anywhere, inside words too (the random spans of Bavarian et al. 2022)."""
    EMPTY = "empty"
    """Nothing is missing: the model has to say so."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Characters `start` to `stop` of a text are missing."""

    kind: HoleKind
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class TextHole:
    """A gap with its surroundings: `prefix` without `head`, `middle` and `suffix` are one piece of the file."""

    prefix: str
    middle: str
    suffix: str
    kind: HoleKind
    language: str
    head: str = ""
    """The start of `prefix` when it stands apart in the file: the imports above a function."""


@dataclass(frozen=True)
class SourceText:
    """One file: its text, its language and the places the grammar found."""

    text: str
    language: str
    syntax: Syntax

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        return (0, *(match.end() for match in re.finditer("\n", self.text)))

    def line_at(self, offset: int) -> int:
        """The number of the line that holds the character at `offset`, from 0."""
        return bisect.bisect_right(self.line_starts, offset) - 1

    def line_start(self, line: int) -> int:
        return self.line_starts[line] if line < len(self.line_starts) else len(self.text)

    def content(self, line: int) -> Span:
        """The line without its indentation and its line end; empty at the line's end for a blank line."""
        start, stop = self.line_start(line), self.line_start(line + 1)
        raw = self.text[start:stop]
        kept = raw.rstrip("\r\n")
        end = start + len(kept)
        indent = len(kept) - len(kept.lstrip())
        return Span(min(start + indent, end), end)

    def written_lines(self, region: Span) -> list[int]:
        """The lines of the region that hold more than white space."""
        first, last = self.line_at(region.start), self.line_at(max(region.start, region.stop - 1))
        return [line for line in range(first, last + 1) if self.text[slice(*self.content(line))].strip()]


GapMaker = Callable[[SourceText, Span, random.Random], Gap | None]


def line_rest_gap(source: SourceText, region: Span, rng: random.Random) -> Gap | None:
    """From a place in a line to its end, or (three in ten) to the end of one of the next three lines."""
    line = _any_line(source, region, rng)
    if line is None:
        return None
    start = _cursor_in(source.text, source.content(line), rng)
    last = line + (rng.choice((1, 1, 2, 3)) if rng.random() < 0.3 else 0)
    last = min(last, source.line_at(max(region.start, region.stop - 1)))
    return Gap(HoleKind.LINE_REST, start, max(start, source.content(last).stop))


def lines_gap(source: SourceText, region: Span, rng: random.Random) -> Gap | None:
    """One to ten whole lines, most one to three, cut at either side of the indentation and of the last line end."""
    first = _any_line(source, region, rng)
    if first is None:
        return None
    count = rng.choices(range(1, 11), weights=(45, 18, 11, 7, 5, 4, 3, 3, 2, 2))[0]
    last = min(first + count - 1, source.line_at(max(region.start, region.stop - 1)))
    if not source.text[slice(*source.content(last))].strip():
        last = first
    return _whole_lines(source, HoleKind.LINES, first, last, rng)


def block_gap(source: SourceText, region: Span, rng: random.Random) -> Gap | None:
    """A body, as lines or from just behind its header."""
    inside = [span for span in source.syntax.blocks if region.start <= span.start and span.stop <= region.stop]
    if not inside:
        return None
    span = rng.choice(inside)
    first, last = source.line_at(span.start), source.line_at(max(span.start, span.stop - 1))
    if source.content(first).start != span.start:
        return Gap(HoleKind.BLOCK, span.start, span.stop)
    if first > 0 and rng.random() < 0.25:
        return Gap(HoleKind.BLOCK, source.content(first - 1).stop, source.content(last).stop)
    return _whole_lines(source, HoleKind.BLOCK, first, last, rng)


def arguments_gap(source: SourceText, region: Span, rng: random.Random) -> Gap | None:
    """The inside of brackets or one expression; sometimes only from a place in it."""
    inside = [span for span in source.syntax.expressions if region.start <= span.start and span.stop <= region.stop]
    if not inside:
        return None
    span = rng.choice(inside)
    start = _cursor_in(source.text, span, rng) if rng.random() < 0.2 else span.start
    return Gap(HoleKind.ARGUMENTS, start, span.stop)


def span_gap(_: SourceText, region: Span, rng: random.Random) -> Gap | None:
    """Both ends anywhere in the region, at most 250 characters apart when it is longer than that."""
    if region.stop - region.start < 2:
        return None
    start = rng.randrange(region.start, region.stop)
    if rng.random() < 0.5:
        stop = rng.randrange(region.start, region.stop + 1)
        start, stop = min(start, stop), max(start, stop)
    else:
        stop = min(region.stop, start + round(250 ** rng.random()))
    return Gap(HoleKind.SPAN, start, min(stop, start + 250))


def empty_gap(source: SourceText, region: Span, rng: random.Random) -> Gap | None:
    """A place where the text is complete: mostly a line's end, sometimes the start of the next line."""
    ends = [span.stop for span in source.syntax.blocks if region.start <= span.stop <= region.stop]
    line = _any_line(source, region, rng)
    if line is None:
        return None
    place = rng.random()
    if ends and place < 0.25:
        at = rng.choice(ends)
    elif place < 0.8:
        at = source.content(line).stop
    else:
        at = source.line_start(line + 1)
    return Gap(HoleKind.EMPTY, at, at)


GAP_MAKERS: Mapping[HoleKind, GapMaker] = {
    HoleKind.LINE_REST: line_rest_gap,
    HoleKind.LINES: lines_gap,
    HoleKind.BLOCK: block_gap,
    HoleKind.ARGUMENTS: arguments_gap,
    HoleKind.SPAN: span_gap,
    HoleKind.EMPTY: empty_gap,
}


def _whole_lines(source: SourceText, kind: HoleKind, first: int, last: int, rng: random.Random) -> Gap:
    """Lines `first` to `last`. Mostly from the line's start through its line end, as HumanEval-Infilling cuts them;
    otherwise as an editor leaves them: the indentation or the last line end stays."""
    whole_start, behind_indent = source.line_start(first), source.content(first).start
    with_end, without_end = source.line_start(last + 1), source.content(last).stop
    start, stop = rng.choices(
        (
            (whole_start, with_end),
            (whole_start, without_end),
            (behind_indent, without_end),
            (behind_indent, with_end),
        ),
        weights=(55, 15, 22, 8),
    )[0]
    return Gap(kind, start, stop)


def _any_line(source: SourceText, region: Span, rng: random.Random) -> int | None:
    """A written line of the region; comments and lines of brackets only when a second draw says so."""
    lines = source.written_lines(region)
    if not lines:
        return None
    line = rng.choice(lines)
    content = source.text[slice(*source.content(line))]
    if content.startswith(_COMMENTS) or not any(map(str.isalnum, content)):
        line = rng.choice(lines)
    return line


def _cursor_in(text: str, span: Span, rng: random.Random) -> int:
    """A place in the span that leaves something behind it: its start, a word's start, or anywhere."""
    if span.stop - span.start < 2:
        return span.start
    place = rng.random()
    if place < 0.2:
        return span.start
    if place < 0.7:
        starts = [match.start() for match in re.finditer(r"\b\w|(?<=\w)\W", text[span.start : span.stop])]
        if starts:
            return span.start + rng.choice(starts)
    return rng.randrange(span.start, span.stop)
