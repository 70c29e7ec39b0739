"""Before and after, turned into the smallest edits that lead from one to the other.

Owns hunks and diffs. Must not know documents, versions or positions: offsets are code points of the text given.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from lsp_server.positions import split_lines, without_line_end


@dataclass(frozen=True, slots=True)
class TextReplacement:
    """`text` stands for `[start, end)` of the text before."""

    start: int
    end: int
    text: str


def minimal_edits(before: str, after: str, base_offset: int = 0) -> list[TextReplacement]:
    """The changed runs of lines, each trimmed to the characters that differ; in order, never overlapping.

    Offsets are those of `before` plus `base_offset`. No border of an edit lies inside a `\\r\\n`, which no editor
    position can name. Applying all of them to `before` gives `after`.
    """
    old, new = split_lines(before), split_lines(after)
    old_starts, new_starts = _starts(old), _starts(new)
    hunks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    edits = [
        _trimmed(before, old_starts[i1], old_starts[i2], after[new_starts[j1] : new_starts[j2]])
        for tag, i1, i2, j1, j2 in hunks
        if tag != "equal"
    ]
    return [TextReplacement(e.start + base_offset, e.end + base_offset, e.text) for e in edits]


def with_line_ends_of(before: str, after: str, newline: str) -> str:
    """`after`, whose line ends are `\\n`, with the ends that `before` has on lines that stay and `newline` on others.

    Files with mixed line ends keep them.
    """
    old, new = split_lines(before), after.split("\n")
    bodies = [without_line_end(line) for line in old]
    ends = [newline] * (len(new) - 1) + [""]
    # A line that stays keeps its end, and so does one that another takes the place of.
    for _, i1, i2, j1, j2 in difflib.SequenceMatcher(None, bodies, new, autojunk=False).get_opcodes():
        for i, j in zip(range(i1, i2), range(j1, j2), strict=False):
            own = old[i][len(bodies[i]) :]
            if own and ends[j]:
                ends[j] = own
    for number in range(len(new) - 1):
        if ends[number] == "\r" and not new[number + 1] and ends[number + 1].startswith("\n"):
            # Alone, the two would be one line end.
            ends[number] = "\r\n"
    return "".join(line + end for line, end in zip(new, ends, strict=True))


def apply_edits(text: str, edits: Iterable[TextReplacement]) -> str:
    """`text` after all of `edits`, whose offsets are all of `text` itself, in order."""
    pieces, done = [], 0
    for edit in edits:
        pieces += [text[done : edit.start], edit.text]
        done = edit.end
    return "".join([*pieces, text[done:]])


def unified_diff(before: str, after: str, path: str) -> str:
    """A unified diff as `patch` reads it, empty when nothing differs; marks a missing final line end."""
    name = path.lstrip("/")
    lines = difflib.unified_diff(_diff_lines(before), _diff_lines(after), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _diff_lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _starts(lines: list[str]) -> list[int]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts


def _trimmed(before: str, start: int, end: int, text: str) -> TextReplacement:
    """The edit without what both sides have in common at its two ends."""
    head = common_prefix(before[start:end], text)
    while head and _parts_line_end(before, start + head):
        head -= 1
    tail = common_prefix(before[start + head : end][::-1], text[head:][::-1])
    while tail and _parts_line_end(before, end - tail):
        tail -= 1
    return TextReplacement(start + head, end - tail, text[head : len(text) - tail])


def _parts_line_end(text: str, offset: int) -> bool:
    return text[offset - 1 : offset + 1] == "\r\n" if offset else False


def common_prefix(left: str, right: str) -> int:
    """How many characters `left` and `right` begin with together."""
    for count, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return count
    return min(len(left), len(right))
