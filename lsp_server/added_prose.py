"""What a rewrite adds in comments and docstrings, on top of the text as it was.

An instruction to document code is no leave to change it, whatever the engine makes of it. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import accumulate

from lsp_server.languages import language_of
from lsp_server.positions import split_lines
from lsp_server.syntax import position_kind

# Behind this many characters a comment or a docstring has begun, in every language there is a grammar or rules for.
_OPENED = 4


def with_added_prose(before: str, old: str, new: str, after: str, language: str) -> str:
    """`old` with the lines `new` adds to it that are comments or docstrings; everything else stays as it was.

    `before` and `after` are the text around, which tells where a string begins. In a language whose comments are not
    known, every added line is taken for one.
    """
    facts = language_of(language)
    has_comments = bool(facts.line_comments or facts.block_comments)
    old_lines, new_lines = split_lines(old), split_lines(new)
    whole = before + new + after
    starts = [len(before), *(len(before) + end for end in accumulate(map(len, new_lines)))]
    prose = [
        not has_comments or _is_prose(whole, start, line, language)
        for start, line in zip(starts, new_lines, strict=False)
    ]
    result: list[str] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_opcodes():
        if tag in {"insert", "replace"}:
            result += _closed(new_lines[j1 : j1 + _leading(prose[j1:j2])])
        result += old_lines[i1:i2]
    return "".join(result)


def _is_prose(whole: str, start: int, line: str, language: str) -> bool | None:
    """None for a blank line, which goes with what stands in front of it."""
    text = line.strip()
    if not text:
        return None
    first = start + len(line) - len(line.lstrip())
    opened = first + min(_OPENED, len(text))
    return any(position_kind(whole, place, language) != "code" for place in (first, opened))


def _leading(prose: Sequence[bool | None]) -> int:
    """How many leading lines are prose or blanks between prose."""
    length = 0
    for number, is_prose in enumerate(prose):
        if is_prose is False:
            break
        length = number + 1 if is_prose else length
    return length


def _closed(lines: list[str]) -> list[str]:
    """Lines that are to stand in front of others."""
    return [*lines[:-1], lines[-1] if lines[-1].endswith("\n") else f"{lines[-1]}\n"] if lines else []
