"""Where documentation may be added: behind a Python head, in front of another language's definition, if it has none.

Pure. Knows no rewrite: what is added there is for `added_prose`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from lsp_server.languages import language_of
from lsp_server.outline import outline
from lsp_server.positions import split_lines
from lsp_server.python_definitions import definitions, masked, read_from
from lsp_server.syntax import has_grammar, position_kind

# So much of the text around is looked at.
LOOKED_AROUND_CHARS = 12_000
# Behind this many characters a comment has begun, in every language there is a grammar or rules for.
_OPENED = 4
# What documentation stands above, beside what an outline knows: declared names, and what belongs to a definition.
_DECLARATION = re.compile(
    r"\s*(?:(?:export|default|declare|async|pub(?:\([^)]*\))?)\s+)*(?:const|let|var|val|static|type|local)\b"
)
_ANNOTATION = re.compile(r"\s*(?:@\w|#!?\[|\[\w|template\b)")


def is_python(language: str) -> bool:
    """Whether documentation is a docstring behind its head."""
    return language_of(language).grammar == "python"


def places(before: str, old: str, after: str, language: str) -> frozenset[int]:
    """The numbers of the lines of `old` in front of which documentation may be added; the text is `\\n` only."""
    if is_python(language):
        return frozenset(_behind_heads(before, old, after))
    return frozenset(_in_front_of_definitions(before[-LOOKED_AROUND_CHARS:], old, after, language))


def is_comment_line(text: str, start: int, line: str, language: str) -> bool:
    """Whether `line`, which starts at `start` of `text`, is a comment or a part of one."""
    first = start + len(line) - len(line.lstrip())
    opened = first + min(_OPENED, len(line.strip()))
    return any(position_kind(text, place, language) == "comment" for place in (first, opened))


def _behind_heads(before: str, old: str, after: str) -> Iterator[int]:
    """The lines between the head of a definition without a docstring and its first statement."""
    first = read_from(before, len(before))
    code = masked(before[first:] + old + after[:LOOKED_AROUND_CHARS])
    origin = len(before) - first
    starts = _starts(split_lines(old), origin)
    for definition in definitions(code):
        if definition.docstring is not None or definition.body is None:
            continue
        head, body = (_line_at(starts, place) for place in (definition.head_end, definition.body))
        yield from range(max(head + 1, 0), body + 1)


def _in_front_of_definitions(before: str, old: str, after: str, language: str) -> Iterator[int]:
    """The first lines of definitions, their annotations counted, above which there is no comment."""
    text = before + old + after[:LOOKED_AROUND_CHARS]
    lines = split_lines(old)
    starts = _starts(lines, len(before))
    defined = {_line_at(starts, each.start) for each in outline(text, len(before), language).definitions}
    is_known = has_grammar(language) or bool(defined)
    above = split_lines(before)
    for number, line in enumerate(lines):
        previous = lines[number - 1] if number else above[-1] or above[-2:][0]
        is_definition = number in defined or _DECLARATION.match(line) or _ANNOTATION.match(line) or not is_known
        if not line.strip() or not is_definition or _ANNOTATION.match(previous):
            continue
        place = starts[number] - len(previous)
        is_code = position_kind(text, starts[number], language) == "code"
        if is_code and not (previous.strip() and is_comment_line(text, place, previous, language)):
            yield number


def _starts(lines: Sequence[str], origin: int) -> list[int]:
    return list(accumulate(map(len, lines[:-1]), initial=origin))


def _line_at(starts: Sequence[int], place: int) -> int:
    """The number of the line that holds `place`; -1 for one in front of all."""
    return bisect_right(starts, place) - 1
