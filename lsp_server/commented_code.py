"""What code an instruction in a comment is about, and that code without the comment.

Pure. A comment inside a selection is about the selection. With nothing else selected it is about the code on its line,
or else about the block right below. One with no code below asks for new text in its own place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from lsp_server.indentation import blanks_of, width_of
from lsp_server.instruction_comments import InstructionComment, comments_near
from lsp_server.passage import Passage
from lsp_server.positions import line_starts, without_line_end

_CLOSES = re.compile(
    r"[)\]}]|(?:end|else|elsif|elseif|elif|except|finally|catch|rescue|ensure|fi|done|esac)\b|</",
)
_TAB_WIDTH = 8


class _Lines(NamedTuple):
    """The lines of a text by number: where each starts, and the text."""

    text: str
    starts: list[int]

    def number_at(self, offset: int) -> int:
        """The line that holds `offset`."""
        low, high = 0, len(self.starts)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.starts[middle] <= offset else (low, middle)
        return low

    def next_start(self, number: int) -> int:
        """Where the line behind starts, or the text ends."""
        return self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)

    def line(self, number: int) -> str:
        """A line without its end."""
        return without_line_end(self.text[self.starts[number] : self.next_start(number)])

    def stop(self, number: int) -> int:
        """Where a line ends, its line end not counted."""
        return self.starts[number] + len(self.line(number))

    def stands_alone(self, comment: InstructionComment) -> bool:
        """Whether nothing else is on the lines of a comment."""
        first, last = self.starts[self.number_at(comment.start)], self.stop(self.number_at(comment.end))
        return not (self.text[first : comment.start] + self.text[comment.end : last]).strip()


class Instructed(NamedTuple):
    """What comments ask for. `[start, end)` is where they ask it: the same place asks for the same again."""

    passage: Passage
    start: int
    end: int


def instructed(text: str, start: int, end: int, language: str) -> Instructed | None:
    """What the instruction comments in a selection, or on the line of an empty one, ask for; None without any."""
    near = comments_near(text, start, end, language)
    if not near:
        return None
    lines = _Lines(text, [0, *line_starts(text)])
    inside = [comment for comment in near if start <= comment.start and comment.end <= end]
    rest = _without(lines, start, end, inside)
    if inside and rest.strip():
        return Instructed(Passage(start, end, rest, _joined(inside)), start, end)
    comments = _adjoining(lines, near, start, end)
    if not comments:
        return None
    passage = _about_code(lines, comments) or _about_nothing(lines, comments)
    return Instructed(passage, comments[0].start, comments[-1].end)


def _adjoining(lines: _Lines, near: Sequence[InstructionComment], start: int, end: int) -> Sequence[InstructionComment]:
    """The comments on the lines of `[start, end]`, and those that stand alone right above and below them."""
    # A selection that ends at the start of a line holds nothing of that line.
    is_open = start < end and end == lines.starts[lines.number_at(end)]
    first, last = lines.number_at(start), lines.number_at(end) - is_open
    spans = [(lines.number_at(comment.start), lines.number_at(comment.end)) for comment in near]
    touched = [number for number, (top, bottom) in enumerate(spans) if top <= last and bottom >= first]
    if not touched:
        return []
    low, high = touched[0], touched[-1]
    while low and spans[low - 1][1] == spans[low][0] - 1 and _are_alone(lines, near[low - 1 : low + 1]):
        low -= 1
    while (
        high + 1 < len(near) and spans[high + 1][0] == spans[high][1] + 1 and _are_alone(lines, near[high : high + 2])
    ):
        high += 1
    return near[low : high + 1]


def _are_alone(lines: _Lines, comments: Sequence[InstructionComment]) -> bool:
    return all(map(lines.stands_alone, comments))


def _about_code(lines: _Lines, comments: Sequence[InstructionComment]) -> Passage | None:
    """The code on the line of the comment, or the block below."""
    top, bottom = lines.number_at(comments[0].start), lines.number_at(comments[-1].end)
    start = lines.starts[top]
    here = _without(lines, start, lines.stop(bottom), comments)
    below = range(bottom + 1, len(lines.starts))
    is_beside = bool(here.strip())
    size = _block_size([here] if is_beside else [], lines, below)
    if not size:
        return None
    end = lines.stop(bottom + size - is_beside)
    return Passage(start, end, _without(lines, start, end, comments), _joined(comments))


def _about_nothing(lines: _Lines, comments: Sequence[InstructionComment]) -> Passage:
    """New text in place of the comments, which the engine sees as ordinary ones in front of it."""
    start, end = comments[0].start, comments[-1].end
    blanks = blanks_of(lines.text[lines.starts[lines.number_at(start)] : start])
    hint = "".join(f"{comment.plain}\n{blanks}" for comment in comments)
    return Passage(start, end, "", "", hint)


def _block_size(here: list[str], lines: _Lines, below: range) -> int:
    """How many lines belong together: a statement or a paragraph, what is indented below it, what closes it."""
    size = base = previous = 0
    was_blank = False
    for count, line in enumerate((*here, *map(lines.line, below)), start=1):
        if not line.strip():
            # A blank line parts an instruction from code that is not meant.
            if not size:
                return 0
            was_blank = True
            continue
        column = width_of(blanks_of(line), _TAB_WIDTH)
        base = column if not size else base
        is_closer = bool(size) and column == base and bool(_CLOSES.match(line.strip()))
        if size and column <= base and not is_closer and (column < base or previous > base or was_blank or here):
            break
        # What closes a block ends it: only another closer, or what that opens, may follow.
        previous = previous if is_closer and previous > base else column
        size, was_blank = count, False
    return size


def _without(lines: _Lines, start: int, end: int, comments: Sequence[InstructionComment]) -> str:
    """`[start, end)` of the text without `comments`: a line goes with the comment that has it to itself."""
    pieces, done = [], start
    for comment in comments:
        first, last = _cut(lines, start, end, comment)
        pieces.append(lines.text[done : max(first, done)])
        done = max(last, done)
    return "".join([*pieces, lines.text[done:end]])


def _cut(lines: _Lines, start: int, end: int, comment: InstructionComment) -> tuple[int, int]:
    text, bottom = lines.text, lines.number_at(comment.end)
    first, stop = lines.starts[lines.number_at(comment.start)], lines.stop(bottom)
    before, behind = text[first : comment.start], text[comment.end : stop]
    if before.strip() and not behind.strip():
        return comment.start - (len(before) - len(before.rstrip())), comment.end
    if before.strip() or behind.strip():
        return comment.start, comment.end + len(behind) - len(behind.lstrip(" \t"))
    if stop < end:
        return max(start, first), lines.next_start(bottom)
    if first > start:
        # The last line of all goes with the line end in front, so that the text ends as it did.
        return lines.stop(lines.number_at(first) - 1), end
    return max(start, first), min(stop, end)


def _joined(comments: Sequence[InstructionComment]) -> str:
    if len(comments) == 1:
        return comments[0].instruction
    return " ".join(
        comment.instruction if comment.instruction.endswith((".", "!", "?", ":")) else f"{comment.instruction}."
        for comment in comments
    )
