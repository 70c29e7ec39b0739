"""Which holes a file gives: kinds in their shares, a window of context around each, what teaches nothing left out.

Pure and seeded: the same text and generator give the same holes. Owns the shares, the context budgets and the filter
of gaps. Must not cut gaps itself (`holes`) or read files; `token_hole` is the one place that meets the tokenizer.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from engine.training.holes import GAP_MAKERS, MOST_GAP_CHARACTERS, Gap, HoleKind, SourceText, TextHole
from engine.training.shards import MOST_MIDDLE, MOST_PREFIX, MOST_SUFFIX, TokenHole
from engine.training.syntax_holes import Function, Span, syntax_of

SHARES: Mapping[HoleKind, int] = {
    HoleKind.LINE_REST: 22,
    HoleKind.LINES: 25,
    HoleKind.BLOCK: 13,
    HoleKind.ARGUMENTS: 10,
    HoleKind.SPAN: 25,
    HoleKind.EMPTY: 5,
}
"""Out of a hundred holes."""

_CHARACTERS_PER_TOKEN = 3.3
_LEAST_SUFFIX = 60
_ENDS_WITH_A_LINE = (HoleKind.LINE_REST, HoleKind.LINES, HoleKind.BLOCK)
_MOST_FUNCTION = 2200
_MOST_IMPORTS = 8
_ATTEMPTS = 12
_LEGAL = re.compile(r"copyright|licen[cs]e|warrant(?:y|ies)|redistribut|all rights reserved|SPDX", re.IGNORECASE)
_LONG_RUN = re.compile(r"\S{70,}")
_LISTED = re.compile(r"""\s*(?:["'][^"']*["']|[\w.+-]*\d[\w.+-]*)(?:\s*[:,]\s*(?:["'][^"']*["']|[\w.+-]+)?)*\s*,?\s*""")
_IMPORT = re.compile(r"^(?:import|from)\s.*$", re.MULTILINE)
_WORD = re.compile(r"\w+")


class Encoder(Protocol):
    """Text to ids; text of special tokens stays text."""

    def encode(self, text: str) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class Window:
    """The piece of the text a hole shows, and imports put before it."""

    start: int
    stop: int
    head: str = ""


def holes_of(text: str, language: str, count: int, rng: random.Random) -> Iterator[TextHole]:
    """Up to `count` holes of one file, no two of them the same gap."""
    source = SourceText(text, language, syntax_of(text, language))
    seen: set[tuple[int, int]] = set()
    for _ in range(count):
        hole = _draw(source, seen, rng)
        if hole is not None:
            yield hole


def token_hole(hole: TextHole, encoder: Encoder) -> TokenHole | None:
    """The hole as ids, its context cut to what a shard holds; None when the gap is longer than that."""
    middle = encoder.encode(hole.middle)
    if len(middle) > MOST_MIDDLE:
        return None
    prefix = encoder.encode(hole.prefix)[-MOST_PREFIX:]
    suffix = encoder.encode(hole.suffix)[:MOST_SUFFIX]
    return TokenHole(tuple(prefix), tuple(middle), tuple(suffix), hole.kind.value, hole.language)


def teaches(middle: str) -> bool:
    """Whether a gap is worth learning: not blank, no legal text, no run of data, not only quoted or numbered items."""
    if not middle.strip() or _LEGAL.search(middle) or _LONG_RUN.search(middle):
        return False
    if all(_LISTED.fullmatch(line) for line in middle.splitlines() if line.strip()):
        return False
    visible = [character for character in middle if not character.isspace()]
    return len(visible) < 60 or sum(map(str.isalpha, visible)) > 0.4 * len(visible)


def _draw(source: SourceText, seen: set[tuple[int, int]], rng: random.Random) -> TextHole | None:
    """One hole of a kind drawn by share; another kind is tried when the file has no place for it."""
    kinds, weights = zip(*SHARES.items(), strict=True)
    kind = rng.choices(kinds, weights=weights)[0]
    for attempt in range(_ATTEMPTS):
        if attempt == _ATTEMPTS // 2:
            kind = rng.choices(kinds, weights=weights)[0]
        function = _any_function(source, rng)
        region = _region(source, function, rng)
        gap = GAP_MAKERS[kind](source, region, rng)
        if gap is None or (gap.start, gap.stop) in seen or not _is_wanted(source.text, gap):
            continue
        seen.add((gap.start, gap.stop))
        return _cut(source, gap, _window(source, gap, function, rng))
    return None


def _is_wanted(text: str, gap: Gap) -> bool:
    if gap.kind is HoleKind.EMPTY:
        # Nothing is missing only where the text goes on; what follows the end of a file is anybody's guess.
        return bool(text[max(0, gap.start - 200) : gap.start].strip() and text[gap.stop :].strip())
    return gap.stop - gap.start <= MOST_GAP_CHARACTERS and teaches(text[gap.start : gap.stop])


def _any_function(source: SourceText, rng: random.Random) -> Function | None:
    """A function short enough to be shown whole; those at the left margin three times as likely."""
    fitting = [function for function in source.syntax.functions if 40 < function.stop - function.start < _MOST_FUNCTION]
    if not fitting or rng.random() < 0.2:
        return None
    outer = [1 if source.text[function.start : function.start + 1].isspace() else 3 for function in fitting]
    return rng.choices(fitting, weights=outer)[0]


def _region(source: SourceText, function: Function | None, rng: random.Random) -> Span:
    """Where the gap lies: in a function's body, or in forty lines anywhere."""
    if function is not None:
        return Span(function.body, function.stop)
    first = rng.randrange(len(source.line_starts))
    start, stop = source.line_start(first), source.line_start(first + 40)
    return Span(start, stop) if start < stop else Span(0, len(source.text))


def _window(source: SourceText, gap: Gap, function: Function | None, rng: random.Random) -> Window:
    """The function alone (two in five where the gap lies in one), or a budget of text on either side."""
    if function is not None and rng.random() < 0.42:
        head = _imports(source, function) if rng.random() < 0.6 else ""
        return Window(function.start, max(_line_end(source, function.stop), gap.stop), head)
    before = round(rng.randint(60, 640) * _CHARACTERS_PER_TOKEN)
    after = round(rng.randint(1, 200) * _CHARACTERS_PER_TOKEN)
    if gap.kind in _ENDS_WITH_A_LINE:
        after *= rng.random() < 0.8
    else:
        # Where a gap stops in the middle of things, only the text behind it can tell.
        after = max(after, _LEAST_SUFFIX)
    start, stop = max(0, gap.start - before), min(len(source.text), gap.stop + after)
    if start and rng.random() < 0.8:
        start = min(source.line_start(source.line_at(start) + 1), source.line_start(source.line_at(gap.start)))
    if stop < len(source.text) and after and rng.random() < 0.6:
        stop = max(source.line_start(source.line_at(stop)), gap.stop)
    return Window(start, stop)


def _cut(source: SourceText, gap: Gap, window: Window) -> TextHole:
    prefix = window.head + source.text[window.start : gap.start]
    suffix = source.text[gap.stop : window.stop]
    return TextHole(prefix, source.text[gap.start : gap.stop], suffix, gap.kind, source.language, window.head)


def _line_end(source: SourceText, offset: int) -> int:
    return source.line_start(source.line_at(max(0, offset - 1)) + 1)


def _imports(source: SourceText, function: Function) -> str:
    """The import lines that name something the function uses, as a small file would have them above it."""
    if source.language != "python":
        return ""
    used = set(_WORD.findall(source.text[function.start : function.stop]))
    lines = [match.group() for match in _IMPORT.finditer(source.text, 0, function.start)]
    named = [line for line in lines if not line.endswith(("(", "\\")) and used & _imported(line)]
    return "".join(f"{line}\n" for line in named[:_MOST_IMPORTS]) + "\n\n" if named else ""


def _imported(line: str) -> set[str]:
    """The names an import line binds."""
    names = line.split("import", 1)[-1].split("#", maxsplit=1)[0]
    return {part.split(" as ")[-1].split(".")[0].strip() for part in names.split(",")}
