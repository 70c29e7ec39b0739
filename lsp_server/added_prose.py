"""What a rewrite adds in documentation, on top of the text as it was.

An instruction to document code is no leave to change it, whatever the engine makes of it. Pure. Where lines may be
added is for `documentation_places` to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import accumulate

from lsp_server.documentation_places import LOOKED_AROUND_CHARS, is_comment_line, is_python, places
from lsp_server.languages import language_of
from lsp_server.positions import split_lines
from lsp_server.python_definitions import masked, read_from

_MARKS = " \t\n\r#/*-;%!'\""
_STRING_LINE = re.compile(r'[rRuU]?"+')


def with_added_prose(before: str, old: str, new: str, after: str, language: str) -> str:
    """`old` with the documentation `new` adds to it; everything else stays as it was.

    That is docstrings directly behind a Python head, and comments directly in front of a definition elsewhere, where
    there was none. `before` and `after` are the text around, `\\n` only, which tells what is a string and what a
    definition. In a language whose comments are not known, every added line is taken for one.
    """
    old_lines, new_lines = split_lines(old), split_lines(new)
    allowed = places(before, old, after, language)
    prose = _prose_lines(before, new, after, language)
    result: list[str] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_opcodes():
        if tag in {"insert", "replace"} and i1 in allowed:
            added = new_lines[j1 : j1 + _leading(prose[j1:j2])]
            result += [] if _repeats(added, old_lines) else _closed(added)
        result += old_lines[i1:i2]
    return "".join(result)


def _prose_lines(before: str, new: str, after: str, language: str) -> list[bool | None]:
    """For each line of `new` whether it is documentation; None for a blank one, which goes with what is in front."""
    lines = split_lines(new)
    if is_python(language):
        first = read_from(before, len(before))
        code, start = masked(before[first:] + new), len(before) - first
    else:
        before = before[-LOOKED_AROUND_CHARS:]
        code, start = before + new + after[:LOOKED_AROUND_CHARS], len(before)
    facts = language_of(language)
    has_comments = bool(facts.line_comments or facts.block_comments)
    starts = accumulate(map(len, lines), initial=start)
    return [_is_prose(code, at, line, language, has_comments) for at, line in zip(starts, lines, strict=False)]


def _is_prose(code: str, start: int, line: str, language: str, has_comments: bool) -> bool | None:
    if is_python(language):
        seen = code[start : start + len(line)].strip()
        return bool(_STRING_LINE.fullmatch(seen)) if seen else None
    if not line.strip():
        return None
    return not has_comments or is_comment_line(code, start, line, language)


def _leading(prose: Sequence[bool | None]) -> int:
    """How many leading lines are prose or blanks between prose."""
    length = 0
    for number, is_prose in enumerate(prose):
        if is_prose is False:
            break
        length = number + 1 if is_prose else length
    return length


def _repeats(added: Sequence[str], old: Sequence[str]) -> bool:
    """Whether the lines say nothing but what stands there as code."""
    known = {line.strip(_MARKS) for line in old}
    return all(line.strip(_MARKS) in known for line in added if line.strip(_MARKS))


def _closed(lines: list[str]) -> list[str]:
    """Lines that are to stand in front of others."""
    return [*lines[:-1], lines[-1] if lines[-1].endswith("\n") else f"{lines[-1]}\n"] if lines else []
