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
_OPENER_LAST = re.compile(r"(?:[:({\[]|=>|\bthen|\bdo)[ \t]*$")
_CLOSES_NAMED = re.compile(r"[ \t]*(?:end\b|</([\w.:-]*))")
_OPENS_TAG = re.compile(r"[ \t]*<([A-Za-z][\w.:-]*)")
_CLOSING_WORD = re.compile(r"(?:end|else|elsif|elseif|elif|except|finally|rescue|ensure|when|case|default)\b")


# What a line costs a reading: where it cannot stand, where it hardly stands, where it ends the scope with no blank
# line between, where nothing ever reaches it. Their order decides, not their size.
_WRONG, _ODD, _LEAVING, _UNREACHABLE = 4, 3, 2, 1

_Holders = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the engine's. `opener` is the line whose bracket holds this one, -1 for none in the text.

    closes: it starts by closing that bracket, tag or block (or, with `opener` -1, one from outside the text).
    aligned: how far behind its line's indentation the open bracket's content starts, if content follows it there.
    """

    column: int
    text: str
    in_string: bool
    closes: bool
    opener: int
    aligned: int | None
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
    spaced = [line for line in lines if line.strip() and not line.startswith("\t")] or list(lines)
    pairs = [(above, len(blanks_of(line)) - len(blanks_of(above))) for above, line in pairwise(spaced)]
    # Continuation lines and prose are indented anyhow; the line behind an opener shows the unit.
    behind_openers = Counter(step for above, step in pairs if 2 <= step <= 8 and _OPENER_LAST.search(above))
    steps = behind_openers or Counter(step for _, step in pairs if 2 <= step <= 8)
    if steps:
        return " " * max(steps, key=lambda step: (steps[step], -step))
    shallow = [width for width in map(len, indents) if 2 <= width <= 8]
    return " " * min(shallow) if shallow else default


def width_of(blanks: str, tab_width: int) -> int:
    """The column behind `blanks`, a tab counting `tab_width`."""
    return sum(tab_width if blank == "\t" else 1 for blank in blanks)


def fitted(
    lines: Sequence[str], *, head: str, origin: str, unit: str, language: Language, margin: str = ""
) -> list[str]:
    """`lines` with the indentation of all but the first fitted to the place behind `head`.

    `head` is what stands before the first line on its line of the document; `lines[0]` follows it as it is.
    `origin` is the indentation the engine gave its first line, from which the relative reading counts. No line
    belongs left of `margin`: where the absolute reading puts one there, it is wrong. Blank lines become empty. Tabs or
    spaces follow `unit`.
    """
    if len(lines) < 2:
        return list(lines)
    their_unit = unit_of([origin + lines[0], *lines[1:]], unit if unit != "\t" else "    ")
    theirs = len(unit if unit != "\t" else "    ") if their_unit == "\t" else len(their_unit)
    style = _Style(unit, theirs, language)
    read = _read([head + lines[0], *lines[1:]], style)
    base = width_of(blanks_of(head), style.tab_width)
    shift = base - style.scaled(width_of(origin, style.tab_width))
    absolute = [base, *(line.column for line in read[1:])]
    relative = [base, *(style.scaled(line.column) + shift for line in read[1:])]
    # Lines that carry the place's own indentation from the first on are the document's, to the letter.
    is_own = bool(origin) and width_of(origin, style.tab_width) == base
    if not is_own and (_leaves(read, absolute, margin, style) or _reads_relative(read, absolute, relative, style)):
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
    """The lines with what the brackets, blocks and strings of the text say about each."""
    states = _line_states(lines, style.language)
    blocks = _block_openers(lines, style.language)
    read = []
    for number, line in enumerate(lines):
        stack, holders = states[number]
        text = line.strip(" \t") if number else line
        opener, aligned = _held_by(lines, stack, holders, style)
        read.append(
            _Line(
                column=width_of(blanks_of(line), style.tab_width),
                text=text,
                in_string=lexing.is_string(stack, style.language),
                closes=number in blocks or text.startswith((")", "]", "}")),
                opener=blocks.get(number, opener),
                aligned=aligned,
                after_blank=number > 0 and not lines[number - 1].strip(),
            )
        )
    return read


def _held_by(lines: Sequence[str], stack: lexing.Stack, holders: _Holders, style: _Style) -> tuple[int, int | None]:
    """The line whose bracket is open, and where its content starts if the bracket is not the line's last word."""
    if not stack or not holders:
        return -1, None
    number, behind = holders[-1]
    line = lines[number]
    if lexing.code_of_line(line, style.language).endswith(stack[-1]):
        return number, None
    return number, behind - len(blanks_of(line))


def _line_states(lines: Sequence[str], language: Language) -> list[tuple[lexing.Stack, _Holders]]:
    """For the start of every line: what is open, and the line and column behind each opener."""
    stack: lexing.Stack = ()
    holders: _Holders = ()
    states = []
    for number, line in enumerate(lines):
        states.append((stack, holders))
        for event in lexing.scan(line + "\n", language, stack):
            stack = event.after
            holders = (*holders[: len(stack)], *[(number, event.end)] * (len(stack) - len(holders)))
    return states


def _block_openers(lines: Sequence[str], language: Language) -> dict[int, int]:
    """For each line that closes a tag or starts with `end`: the line that opened it, -1 if none did."""
    opened: list[tuple[str, int]] = []
    found = {}
    for number, line in enumerate(lines):
        closed = _CLOSES_NAMED.match(line)
        if closed:
            name = closed.group(1) or ""
            depth = next((d for d in range(len(opened) - 1, -1, -1) if opened[d][0] == name), -1)
            found[number] = opened[depth][1] if depth >= 0 else -1
            opened = opened[: max(depth, 0)]
        elif (tag := _OPENS_TAG.match(line)) and f"</{tag.group(1)}" not in line and "/>" not in line:
            opened.append((tag.group(1), number))
        elif language.ends and opens_block(line, language) and not _CLOSING_WORD.match(line.lstrip()):
            opened.append(("", number))
    return found if language.ends else {number: at for number, at in found.items() if "</" in lines[number]}


def _leaves(read: list[_Line], columns: list[int], margin: str, style: _Style) -> bool:
    """Whether a line, other than the inside of a string, stands left of `margin` at these columns."""
    least = width_of(margin, style.tab_width)
    later = list(zip(read, columns, strict=True))[1:]
    return any(line.text and not line.in_string and column < least for line, column in later)


def _reads_relative(read: list[_Line], absolute: list[int], relative: list[int], style: _Style) -> bool:
    # Kept lines may step by the engine's width, moved ones have been scaled to the document's.
    costs = (
        _cost(read, absolute, style, {style.theirs, style.tab_width}),
        _cost(read, relative, style, {style.tab_width}),
    )
    if costs[0] != costs[1]:
        return costs[1] < costs[0]
    below = [line for line, column in zip(read, absolute, strict=True) if line.text and column < absolute[0]]
    if below and below[0].in_string:
        return read[0].text.lstrip().startswith(tuple(quote.open for quote in style.language.quotes))
    return bool(below) and not below[0].after_blank


def _cost(read: list[_Line], columns: list[int], style: _Style, steps: set[int]) -> int:
    """How little sense the lines make at these columns: what is wrong with each, and with leaving the scope once."""
    cost, previous, leaves = 0, 0, False
    for number in range(1, len(read)):
        line = read[number]
        if not line.text or line.in_string:
            continue
        cost += _line_cost(read, columns, previous, number, style, steps)
        is_outside = columns[number] < columns[0] <= columns[previous]
        leaves = leaves or (is_outside and not (line.closes or line.after_blank or _is_sibling(line)))
        previous = number
    return cost + _LEAVING * leaves


def _line_cost(
    read: list[_Line], columns: list[int], previous: int, number: int, style: _Style, steps: set[int]
) -> int:
    line, column, before = read[number], columns[number], columns[previous]
    if line.closes:
        is_placed = column == columns[line.opener] if line.opener >= 0 else 0 <= column < max(columns[0], 1)
        return 0 if is_placed else _WRONG
    if line.aligned is not None:
        is_inside = column > columns[line.opener]
        return 0 if column == columns[line.opener] + line.aligned else _ODD if is_inside else _WRONG
    if opens_block(read[previous].text, style.language) and not _is_sibling(line):
        return 0 if column - before in steps else _ODD if column > before else _WRONG
    if column > before:
        return 0 if _is_continuation(line, read[previous], style.language) else _WRONG
    if column < 0:
        return _WRONG
    is_unreachable = column == before and bool(_LEAVES.match(read[previous].text.lstrip()))
    return _UNREACHABLE * (is_unreachable and not _is_sibling(line))


def _is_continuation(line: _Line, above: _Line, language: Language) -> bool:
    """True when a line may stand deeper than the one above it although that opens nothing."""
    is_continued = _IS_CONTINUED.search(lexing.code_of_line(above.text, language))
    return bool(_CONTINUES.match(line.text)) or (bool(is_continued) and line.opener >= 0)


def _is_sibling(line: _Line) -> bool:
    """True for `else:`, `end`, `case`: lines that stand further left than what they follow."""
    return bool(_CLOSING_WORD.match(line.text))


def _placed(base: str, column: int, base_column: int, style: _Style) -> str:
    """Indentation up to `column`, which keeps the base line's own blanks where it can."""
    return base + style.blanks(column - base_column) if column >= base_column else style.blanks(max(column, 0))


def _kept(blanks: str, style: _Style) -> str:
    """The engine's own indentation, unless it is of the other kind than the document's."""
    is_other_kind = blanks.startswith(" " * style.tab_width) if style.unit == "\t" else "\t" in blanks
    return style.blanks(width_of(blanks, style.tab_width)) if is_other_kind else blanks
