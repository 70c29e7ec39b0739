"""Python's functions and classes as far as their heads, docstrings and first statements go, read without a grammar.

Pure. Reads unfinished text too. What stands in a string or a comment is text, never a definition. Must not decide what
is to be done with a definition: see `stubs` and `added_prose`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lsp_server import lexing
from lsp_server.indentation import width_of
from lsp_server.languages import language_of

TAB_WIDTH = 8
# A definition is one only outside of strings, so the text is read from well before; a large file not from its start.
_SCANNED_CHARS = 12_000

_TOP_LEVEL = re.compile(r"^(?:@|(?:async|def|class|import|from|if)\b)", re.MULTILINE)
_HEAD = re.compile(r"^(?P<indent>[ \t]*)(?:(?P<function>(?:async[ \t]+)?def)|class)\b", re.MULTILINE)
# What a head's colon is told by; no head goes over the next one.
_HEAD_PART = re.compile(r"[()\[\]{}:]|\n[ \t]*(?:@|(?:(?:async[ \t]+)?def|class)\b)")
_LAST_COLON = re.compile(r":(?=[ \t#]*$)", re.MULTILINE)
_GAP = re.compile(r"[\s#]*")
_DOCSTRING = re.compile(r'[rRuU]?"+(?=[ \t#]*(?:\n|\Z))')


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or class whose head's colon ends at `head_end`; offsets are those of the text that was read.

    `docstring` is where that starts and ends. `body` is where the first statement starts that is no docstring, None
    where there is none.
    """

    is_function: bool
    indent: str
    head_end: int
    docstring: tuple[int, int] | None
    body: int | None


def read_from(text: str, start: int) -> int:
    """Where to begin to read for `start`: the text's start, or some top-level statement a bounded way before."""
    left = start - _SCANNED_CHARS
    if left <= 0:
        return 0
    top_level = _TOP_LEVEL.search(text[left:start].replace("\r", "\n"))
    return left + top_level.start() if top_level else left


def masked(text: str) -> str:
    r"""`text` with `"` for every character of its strings and `#` for every one of its comments.

    Of the same length. Line ends outside of strings are `\n`, whatever they are in the text.
    """
    text, facts = text.replace("\r", "\n"), language_of("python")
    pieces: list[str] = []
    done, opened, mark = 0, -1, ""
    for event in lexing.scan(text, facts):
        is_code = not lexing.is_string(event.after, facts) and not lexing.is_comment(event.after, facts)
        if opened < 0 and not is_code:
            opened, mark = event.start, '"' if lexing.is_string(event.after, facts) else "#"
        elif opened >= 0 and is_code:
            stop = event.start if text[event.start : event.end] == "\n" else event.end
            pieces += text[done:opened], mark * (stop - opened)
            done, opened = stop, -1
    if opened >= 0:
        pieces += text[done:opened], mark * (len(text) - opened)
        done = len(text)
    return "".join([*pieces, text[done:]])


def definitions(code: str) -> Iterator[Definition]:
    """The definitions of a `masked` text, in order; heads without their colon are none yet."""
    for head in _HEAD.finditer(code):
        head_end = _colon_behind(code, head.end())
        if head_end is None:
            continue
        docstring, body = None, _in_body(code, head_end, head["indent"])
        if body is not None and (string := _DOCSTRING.match(code, body)) is not None:
            docstring, body = string.span(), _in_body(code, string.end(), head["indent"])
        yield Definition(head["function"] is not None, head["indent"], head_end, docstring, body)


def next_in_body(code: str, place: int, definition: Definition) -> int | None:
    """Where the next statement behind the one that ends at `place` starts, None where the body ends with that."""
    return _in_body(code, place, definition.indent)


def line_start(code: str, place: int) -> int:
    """Where the line of a `masked` text starts that holds `place`."""
    return code.rfind("\n", 0, place) + 1


def _colon_behind(code: str, place: int) -> int | None:
    """Behind the colon of a head; where a bracket was forgotten, behind the first one that ends a line."""
    depth, stop = 0, len(code)
    for part in _HEAD_PART.finditer(code, place):
        sign = part.group()
        if sign == ":" and depth <= 0:
            return part.end()
        if sign.startswith("\n"):
            stop = part.start()
            break
        depth += (sign in "([{") - (sign in ")]}")
    colon = _LAST_COLON.search(code, place, stop)
    return colon.end() if colon else None


def _in_body(code: str, place: int, indent: str) -> int | None:
    """Where the next statement starts if it belongs to the body of what is indented by `indent`."""
    gap = _GAP.match(code, place)
    statement = gap.end() if gap else place
    if statement == len(code):
        return None
    first = line_start(code, statement)
    is_inside = first <= place or width_of(code[first:statement], TAB_WIDTH) > width_of(indent, TAB_WIDTH)
    return statement if is_inside else None
