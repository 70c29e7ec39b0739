"""Indentation of lines that come from an engine, fitted to the document they go into.

Owns the unit of indentation (tabs, or how many spaces) and the question whether an engine wrote its lines with the
document's own indentation ("absolute") or counted them from its first line ("relative"): the reading in which
the lines make sense wins. Works on lines without line ends; must not know documents.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lsp_server import lexing
from lsp_server.languages import Language

_CONTINUES = re.compile(r"[.?:|&+*/%<>=,]|-(?!-)|(?:and|or|in|is|not|if|else|for)\b(?!.*[:{]\s*$)")
_IS_CONTINUED = re.compile(r"(?:[+*/%|&<>=?,.\\]|(?<!-)-|\b(?:and|or|not|in|return))$")
_LEAVES = re.compile(r"(?:return|raise|break|continue|throw)\b")
_OPENING_WORD = re.compile(
    r"(?:local\s+)?(?:function|def|class|module|if|elsif|elseif|unless|while|until|for|case|when|begin|else)\b"
)
_OPENING_WORD_LAST = re.compile(r"(?:\b(?:then|do|begin|repeat)|\bdo\s*\|[\w, ]*\||\bfunction\s*\([^()]*\))$")
_CLOSING_WORD = re.compile(r"(?:end|else|elsif|elseif|elif|except|finally|rescue|ensure|when|case|default)\b")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the engine's. `opener` is the line whose bracket holds this one, -1 for none in the text.

    closes: it starts by closing that bracket (or, with `opener` -1, one from outside the text).
    free: the bracket is followed by text on its own line, so continuation lines align as they like.
    """

    column: int
    text: str
    in_string: bool
    closes: bool
    opener: int
    free: bool
    after_blank: bool


@dataclass(frozen=True, slots=True)
class _Style:
    """Whose columns are whose: the document's unit, and the width of one level in the engine's text."""

    unit: str
    theirs: int
    language: Language

    @property
    def tab_width(self) -> int:
        return self.theirs if self.unit == "\t" else len(self.unit)

    def blanks(self, column: int) -> str:
        """Indentation up to `column` in the document's style."""
        if self.unit != "\t":
            return " " * column
        return "\t" * (column // self.tab_width) + " " * (column % self.tab_width)

    def scaled(self, column: int) -> int:
        """A column of the engine's, in levels of the document's width where it is whole levels."""
        levels, rest = divmod(column, self.theirs)
        return column if rest else levels * self.tab_width


def blanks_of(line: str) -> str:
    """The spaces and tabs at the start of `line`."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def unit_of(lines: Sequence[str], default: str) -> str:
    """One level of indentation in `lines`: a tab, or the commonest step in spaces; `default` if none shows."""
    indents = [blanks_of(line) for line in lines if line]
    tabs = sum(indent.startswith("\t") for indent in indents)
    if tabs > sum(indent.startswith(" ") for indent in indents):
        return "\t"
    widths = [len(indent) for indent in indents if "\t" not in indent]
    steps = Counter(b - a for a, b in pairwise(widths) if 2 <= b - a <= 8)
    if steps:
        return " " * max(steps, key=lambda step: (steps[step], -step))
    shallow = [width for width in widths if 2 <= width <= 8]
    return " " * min(shallow) if shallow else default


def width_of(blanks: str, tab_width: int) -> int:
    """The column behind `blanks`, a tab counting `tab_width`."""
    return sum(tab_width if blank == "\t" else 1 for blank in blanks)


def fitted(lines: Sequence[str], *, head: str, origin: str, unit: str, language: Language) -> list[str]:
    """`lines` with the indentation of all but the first fitted to the place behind `head`.

    `head` is what stands before the first line on its line of the document; `lines[0]` follows it as it is.
    `origin` is the indentation the engine gave its first line, from which the relative reading counts. Blank
    lines become empty. Tabs or spaces follow `unit`.
    """
    if len(lines) < 2:
        return list(lines)
    their_unit = unit_of(["", *lines[1:]], unit if unit != "\t" else "    ")
    theirs = len(unit if unit != "\t" else "    ") if their_unit == "\t" else len(their_unit)
    style = _Style(unit, theirs, language)
    read = _read([head + lines[0], *lines[1:]], style)
    base = width_of(blanks_of(head), style.tab_width)
    shift = base - style.scaled(width_of(origin, style.tab_width))
    absolute = [base, *(line.column for line in read[1:])]
    relative = [base, *(style.scaled(line.column) + shift for line in read[1:])]
    if _reads_relative(read, absolute, relative, style):
        later = [_placed(blanks_of(head), column, base, style) for column in relative[1:]]
    else:
        later = [_kept(blanks_of(line), style) for line in lines[1:]]
    texts = [blanks + line.text if line.text else "" for blanks, line in zip(later, read[1:], strict=True)]
    return [lines[0], *texts]


def opens_block(line: str, language: Language) -> bool:
    """True when the next line belongs one level deeper than `line`."""
    code = lexing.code_of_line(line, language)
    if code.endswith(("(", "[", "{", "=>", "->")):
        return True
    if code.endswith(":"):
        return language.off_side or bool(re.match(r"\s*(?:case\b|default\b|\w+:$)", code))
    if not language.ends or re.search(r"\bend\b", code):
        return False
    return bool(_OPENING_WORD_LAST.search(code) or _OPENING_WORD.match(code.lstrip()))


def _read(lines: Sequence[str], style: _Style) -> list[_Line]:
    """The lines with what the brackets and strings of the text say about each."""
    stacks, holders = _line_states(lines, style.language)
    read = []
    for number, line in enumerate(lines):
        stack, held = stacks[number], holders[number]
        text = line.strip(" \t") if number else line
        opener = held[-1] if held else -1
        read.append(
            _Line(
                column=width_of(blanks_of(line), style.tab_width),
                text=text,
                in_string=lexing.is_string(stack, style.language),
                closes=text.startswith((")", "]", "}")),
                opener=opener,
                free=bool(stack) and not lexing.code_of_line(lines[opener], style.language).endswith(stack[-1]),
                after_blank=number > 0 and not lines[number - 1].strip(),
            )
        )
    return read


def _line_states(lines: Sequence[str], language: Language) -> tuple[list[lexing.Stack], list[tuple[int, ...]]]:
    """For the start of every line: what is open, and on which lines it was opened."""
    stack: lexing.Stack = ()
    holders: tuple[int, ...] = ()
    stacks, held = [], []
    for number, line in enumerate(lines):
        stacks.append(stack)
        held.append(holders)
        for event in lexing.scan(line + "\n", language, stack):
            stack = event.after
            holders = (*holders[: len(stack)], *[number] * (len(stack) - len(holders)))
    return stacks, held


def _reads_relative(read: list[_Line], absolute: list[int], relative: list[int], style: _Style) -> bool:
    costs = _cost(read, absolute, style), _cost(read, relative, style)
    if costs[0] != costs[1]:
        return costs[1] < costs[0]
    below = [line for line, column in zip(read, absolute, strict=True) if line.text and column < absolute[0]]
    return bool(below) and not below[0].after_blank


def _cost(read: list[_Line], columns: list[int], style: _Style) -> int:
    """How little sense the lines make at these columns: 2 for each that is wrong, 1 for each that is odd."""
    cost, previous = 0, 0
    for number in range(1, len(read)):
        if not read[number].text or read[number].in_string:
            continue
        cost += _line_cost(read, columns, previous, number, style)
        previous = number
    return cost


def _line_cost(read: list[_Line], columns: list[int], previous: int, number: int, style: _Style) -> int:
    line, column, before = read[number], columns[number], columns[previous]
    if column < 0:
        return 2
    if line.closes and line.opener >= 0:
        return 0 if column == columns[line.opener] else 2
    if line.free:
        return 2 if column <= columns[line.opener] else 0
    if opens_block(read[previous].text, style.language) and not _CLOSING_WORD.match(line.text):
        return _cost_behind_opener(line, column - before, style)
    if column > before:
        is_continued = _IS_CONTINUED.search(lexing.code_of_line(read[previous].text, style.language))
        return 0 if _CONTINUES.match(line.text) or (is_continued and line.opener >= 0) else 2
    leaves_scope = column < columns[0] and not (line.closes or line.after_blank or _is_sibling(line))
    is_unreachable = column == before and bool(_LEAVES.match(read[previous].text.lstrip()))
    return int(leaves_scope) + int(is_unreachable and not _is_sibling(line))


def _is_sibling(line: _Line) -> bool:
    """True for `else:`, `end`, `case`: lines that stand further left than what they follow."""
    return bool(_CLOSING_WORD.match(line.text))


def _cost_behind_opener(line: _Line, step: int, style: _Style) -> int:
    if step <= 0:
        return 0 if line.closes else 2
    return 0 if step == style.tab_width else 1


def _placed(base: str, column: int, base_column: int, style: _Style) -> str:
    """Indentation up to `column`, which keeps the base line's own blanks where it can."""
    return base + style.blanks(column - base_column) if column >= base_column else style.blanks(max(column, 0))


def _kept(blanks: str, style: _Style) -> str:
    """The engine's own indentation, unless it is of the other kind than the document's."""
    is_other_kind = blanks.startswith(" " * style.tab_width) if style.unit == "\t" else "\t" in blanks
    return style.blanks(width_of(blanks, style.tab_width)) if is_other_kind else blanks
