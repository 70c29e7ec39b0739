"""Line ends and UTF-8/16/32 positions, turned into offsets and back.

Owns the only knowledge in the server of what ends a line (`\\n`, `\\r\\n`, a lone `\\r`, nothing else) and of how
a client counts characters. Everywhere else an offset is a count of code points. Knows nothing of documents,
versions or the protocol library.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

_LINE_END = re.compile(r"\r\n|\r|\n")
_LINES_PER_BLOCK = 512


class PositionEncoding(StrEnum):
    """The unit in which a client counts the characters of a line."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


@dataclass(frozen=True, slots=True, order=True)
class TextPosition:
    """A zero-based line and the units before the position on that line, in the negotiated encoding."""

    line: int
    character: int


@dataclass(frozen=True, slots=True, order=True)
class TextRange:
    """From `start` up to, and not including, `end`."""

    start: TextPosition
    end: TextPosition


def negotiate(client_encodings: Sequence[str] | None, *, forced: PositionEncoding | None = None) -> PositionEncoding:
    """The encoding to answer with: `forced`, else the client's first known preference, else UTF-16.

    UTF-16 may always be forced: every client must support it (LSP 3.18, `general.positionEncodings`).
    """
    if forced is not None:
        return forced
    known = {encoding.value: encoding for encoding in PositionEncoding}
    return next((known[name] for name in client_encodings or () if name in known), PositionEncoding.UTF16)


def split_lines(text: str) -> list[str]:
    """The lines of `text` with their ends, as an editor counts them: the last one may be empty.

    `"".join(split_lines(text)) == text`, and the result has one entry more than `text` has line ends.
    """
    starts = [0, *_ends(text)]
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def without_line_end(line: str) -> str:
    """`line` without the one line end it may end with."""
    if line.endswith("\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith(("\n", "\r")) else line


def _ends(text: str, start: int = 0, end: int | None = None) -> list[int]:
    """Offsets just behind every line end of `text[start:end]`, relative to `start`."""
    stop = len(text) if end is None else end
    if text.find("\r", start, stop) < 0:
        return _feeds(text, start, stop)
    return [match.end() - start for match in _LINE_END.finditer(text, start, stop)]


def _feeds(text: str, start: int, stop: int) -> list[int]:
    """`_ends` where every line end is a `\n`: many times faster on long lines than the pattern is."""
    found, place = [], text.find("\n", start, stop)
    while place >= 0:
        found.append(place + 1 - start)
        place = text.find("\n", place + 1, stop)
    return found


def _count_units(text: str, encoding: PositionEncoding) -> int:
    if encoding is PositionEncoding.UTF32 or text.isascii():
        return len(text)
    if encoding is PositionEncoding.UTF8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _code_points_before(line: str, units: int, encoding: PositionEncoding) -> int:
    """How many whole characters of `line` lie in its first `units` units; over-long counts clamp to the end."""
    if encoding is PositionEncoding.UTF32 or line.isascii():
        return min(units, len(line))
    if encoding is PositionEncoding.UTF8:
        return _utf8_code_points(line.encode("utf-8", "surrogatepass"), units)
    # A character holds at most two units, so this prefix is long enough and a 2 MB line stays cheap at its start.
    return _utf16_code_points(line[:units], units)


def _utf8_code_points(raw: bytes, units: int) -> int:
    cut = min(units, len(raw))
    while cut < len(raw) and raw[cut] & 0xC0 == 0x80:
        cut -= 1
    return len(raw[:cut].decode("utf-8", "surrogatepass"))


def _utf16_code_points(line: str, units: int) -> int:
    raw = line.encode("utf-16-le", "surrogatepass")
    cut = min(units * 2, len(raw))
    if 0 < cut < len(raw) and raw[cut - 1] & 0xFC == 0xD8 and raw[cut + 1] & 0xFC == 0xDC:
        cut -= 2
    return len(raw[:cut].decode("utf-16-le", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class _Block:
    """Up to a thousand whole lines: where each starts, relative to the block, and how long the block is."""

    starts: array[int]
    length: int


def _blocks_of(starts: Sequence[int], length: int) -> list[_Block]:
    """Blocks for lines starting at `starts` (the first is 0) in a text of `length` code points.

    A block may grow to twice its size before it is split evenly, so that inserting lines one by one costs one
    split in hundreds of edits and leaves no crumbs.
    """
    count = 1 if len(starts) <= 2 * _LINES_PER_BLOCK else -(-len(starts) // _LINES_PER_BLOCK)
    size = -(-len(starts) // count)
    blocks = []
    for first in range(0, len(starts), size):
        base = starts[first]
        beyond = first + size
        end = starts[beyond] if beyond < len(starts) else length
        relative = array("q", [start - base for start in starts[first:beyond]])
        blocks.append(_Block(relative, end - base))
    return blocks


def _running(values: Iterable[int]) -> list[int]:
    return list(accumulate(values, initial=0))


class LineIndex:
    """Where the lines of one immutable text start; `replaced` derives the next text's index cheaply.

    Lines are kept in blocks with block-relative starts, so an edit rebuilds the touched blocks and sums up a few
    hundred block sizes instead of shifting every later line of the file.
    """

    __slots__ = ("_block_lines", "_block_offsets", "_blocks", "text")

    def __init__(self, text: str, _blocks: list[_Block] | None = None) -> None:
        self.text = text
        self._blocks = _blocks_of([0, *_ends(text)], len(text)) if _blocks is None else _blocks
        self._block_lines = _running(len(block.starts) for block in self._blocks)
        self._block_offsets = _running(block.length for block in self._blocks)

    @property
    def line_count(self) -> int:
        """One more than the number of line ends."""
        return self._block_lines[-1]

    def line_at(self, offset: int) -> int:
        """The line that holds `offset` (clamped); a position behind the last line end is on the last line."""
        clamped = min(max(offset, 0), len(self.text))
        number = bisect_right(self._block_offsets, clamped, hi=len(self._blocks)) - 1
        block = self._blocks[number]
        return self._block_lines[number] + bisect_right(block.starts, clamped - self._block_offsets[number]) - 1

    def line_start(self, line: int) -> int:
        """Where `line` starts; raises IndexError when there is no such line."""
        if not 0 <= line < self.line_count:
            raise IndexError(f"line {line} of {self.line_count}")
        number = bisect_right(self._block_lines, line, hi=len(self._blocks)) - 1
        return self._block_offsets[number] + self._blocks[number].starts[line - self._block_lines[number]]

    def line_end(self, line: int) -> int:
        """Where the text of `line` ends: before its line end, if it has one."""
        end = self._next_start(line)
        if end > self.line_start(line) and self.text[end - 1] == "\n":
            end -= 1
            return end - 1 if end > self.line_start(line) and self.text[end - 1] == "\r" else end
        return end - 1 if end > self.line_start(line) and self.text[end - 1] == "\r" else end

    def _next_start(self, line: int) -> int:
        return self.line_start(line + 1) if line + 1 < self.line_count else len(self.text)

    def to_offset(self, line: int, character: int, encoding: PositionEncoding) -> int:
        """The offset of a client's position; positions off the line or the document are clamped into it.

        A position inside a character snaps back to that character's start.
        """
        if line < 0:
            return 0
        if line >= self.line_count:
            return len(self.text)
        start = self.line_start(line)
        return start + _code_points_before(self.text[start : self.line_end(line)], max(character, 0), encoding)

    def to_position(self, offset: int, encoding: PositionEncoding) -> TextPosition:
        """The position of `offset` (clamped); an offset inside a `\\r\\n` becomes the end of that line's text."""
        line = self.line_at(offset)
        start = self.line_start(line)
        end = max(start, min(offset, self.line_end(line)))
        return TextPosition(line, _count_units(self.text[start:end], encoding))

    def offset_at(self, position: TextPosition, encoding: PositionEncoding) -> int:
        """`to_offset` for a `TextPosition`."""
        return self.to_offset(position.line, position.character, encoding)

    def to_range(self, start: int, end: int, encoding: PositionEncoding) -> TextRange:
        """The positions of two offsets."""
        return TextRange(self.to_position(start, encoding), self.to_position(end, encoding))

    def replaced(self, start: int, end: int, inserted: str) -> LineIndex:
        """The index of the text in which `inserted` stands for `[start, end)`."""
        text = "".join((self.text[:start], inserted, self.text[end:]))
        # The line of the character before the edit is counted again too: its `\r` may meet a `\n` now.
        first = self._block_number(max(start - 1, 0))
        last = self._block_number(end)
        region_start = self._block_offsets[first]
        region_end = self._block_offsets[last + 1] + len(text) - len(self.text)
        starts = self._recounted(text, first, last)
        if last + 1 < len(self._blocks):
            starts.pop()  # The line behind the region is the next block's first.
        rebuilt = _blocks_of(starts, region_end - region_start)
        return LineIndex(text, self._blocks[:first] + rebuilt + self._blocks[last + 1 :])

    def _block_number(self, offset: int) -> int:
        return bisect_right(self._block_offsets, offset, hi=len(self._blocks)) - 1

    def _recounted(self, text: str, first: int, last: int) -> list[int]:
        """Line starts of blocks `first` to `last` in the new `text`, relative to the first block."""
        base = self._block_offsets[first]
        stop = self._block_offsets[last + 1] + len(text) - len(self.text)
        return [0, *_ends(text, base, stop)]
