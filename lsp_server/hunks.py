"""A change in pieces that a person can read, and take or leave one by one. Pure; offsets are code points.

The smallest edits (`edits.minimal_edits`) begin and end inside words, where nobody can tell what they would do.
"""

from __future__ import annotations

import difflib
from itertools import accumulate

from lsp_server.edits import TextReplacement, common_prefix
from lsp_server.positions import split_lines, without_line_end


def hunks(before: str, after: str, base_offset: int = 0) -> list[TextReplacement]:
    """The changed runs of lines, in order and apart; a change within one line is only its words.

    Offsets are those of `before` plus `base_offset`. Applying all of them to `before` gives `after`, and each by
    itself leaves the lines of the others as they are. No border lies inside a `\\r\\n`.
    """
    old, new = split_lines(before), split_lines(after)
    old_starts = list(accumulate(map(len, old), initial=0))
    found = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            start = old_starts[i1] + base_offset
            found.append(_hunk(start, old[i1:i2], new[j1:j2]))
    return found


def _hunk(start: int, old: list[str], new: list[str]) -> TextReplacement:
    left, right = "".join(old), "".join(new)
    end = _common_line_end(old, new)
    left, right = left[: len(left) - end], right[: len(right) - end]
    head, tail = _beside_words(left, right) if len(old) == len(new) == 1 else (0, 0)
    return TextReplacement(start + head, start + len(left) - tail, right[head : len(right) - tail])


def _common_line_end(old: list[str], new: list[str]) -> int:
    """How many characters the same line end takes at the end of both; 0 where a side has no line."""
    if not (old and new):
        return 0
    ends = [line[len(without_line_end(line)) :] for line in (old[-1], new[-1])]
    return len(ends[0]) if ends[0] == ends[1] else 0


def _beside_words(left: str, right: str) -> tuple[int, int]:
    """How much both have in common at their beginning and at their end, without a part of any word that changes."""
    head = common_prefix(left, right)
    while head and _is_in_word(left, head, right):
        head -= 1
    left, right = left[head:][::-1], right[head:][::-1]
    tail = common_prefix(left, right)
    while tail and _is_in_word(left, tail, right):
        tail -= 1
    return head, tail


def _is_in_word(left: str, place: int, right: str) -> bool:
    """Whether a word goes across `place` in one of the texts, which are the same in front of it."""
    return _is_word(left[place - 1]) and any(_is_word(text[place : place + 1]) for text in (left, right))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
