"""Line ends and UTF-8/16/32 units: what ends a line of text, and how a client counts the characters of one.

Owns the only knowledge in the server of both (`\\n`, `\\r\\n`, a lone `\\r` end a line, nothing else). Everywhere else
an offset is a count of code points. Knows nothing of how a text is kept, of documents or the protocol library.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

_LINE_END = re.compile(r"\r\n|\r|\n")


class PositionEncoding(StrEnum):
    """The unit in which a client counts the characters of a line."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


class TextPosition(NamedTuple):
    """A zero-based line and the units before the position on that line, in the negotiated encoding."""

    line: int
    character: int


class TextRange(NamedTuple):
    """From `start` up to, and not including, `end`."""

    start: TextPosition
    end: TextPosition


class LineEnds(NamedTuple):
    """How many lines of a text end with `\\n`, with `\\r\\n` and with `\\r` alone."""

    feeds: int
    pairs: int
    returns: int

    @property
    def only(self) -> str | None:
        """The line end that all lines have; None when they differ."""
        if not self.pairs and not self.returns:
            return "\n"
        if not self.feeds and not self.returns:
            return "\r\n"
        return None if self.feeds or self.pairs else "\r"


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
    starts = [0, *line_starts(text)]
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def without_line_end(line: str) -> str:
    """`line` without the one line end it may end with."""
    if line.endswith("\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith(("\n", "\r")) else line


def line_starts(text: str) -> list[int]:
    """Offsets just behind every line end of `text`: where each line but the first one starts."""
    if "\r" in text:
        return [match.end() for match in _LINE_END.finditer(text)]
    # Many times faster on long lines than the pattern is.
    found, place = [], text.find("\n")
    while place >= 0:
        found.append(place + 1)
        place = text.find("\n", place + 1)
    return found


def count_line_ends(text: str) -> LineEnds:
    """The line ends of `text` by kind."""
    if "\r" not in text:
        return LineEnds(text.count("\n"), 0, 0)
    pairs = text.count("\r\n")
    return LineEnds(text.count("\n") - pairs, pairs, text.count("\r") - pairs)


def parts_line_end(text: str, offset: int) -> bool:
    """Whether `offset` lies inside a `\\r\\n`, where no position of an editor can be."""
    return offset > 0 and text[offset - 1 : offset + 1] == "\r\n"


def count_units(text: str, encoding: PositionEncoding) -> int:
    """The units of `text`. Half a surrogate pair counts 1 in UTF-16 and 3 in UTF-8."""
    if encoding is PositionEncoding.UTF32 or text.isascii():
        return len(text)
    if encoding is PositionEncoding.UTF8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def code_points_before(text: str, units: int, encoding: PositionEncoding) -> int:
    """How many whole characters of `text` lie in its first `units` units; over-long counts clamp to the end."""
    if encoding is PositionEncoding.UTF32 or text.isascii():
        return min(units, len(text))
    if encoding is PositionEncoding.UTF8:
        return _utf8_code_points(text.encode("utf-8", "surrogatepass"), units)
    return _utf16_code_points(text.encode("utf-16-le", "surrogatepass"), units)


def _utf8_code_points(raw: bytes, units: int) -> int:
    cut = min(units, len(raw))
    while cut < len(raw) and raw[cut] & 0xC0 == 0x80:
        cut -= 1
    return len(raw[:cut].decode("utf-8", "surrogatepass"))


def _utf16_code_points(raw: bytes, units: int) -> int:
    cut = min(units * 2, len(raw))
    if 0 < cut < len(raw) and raw[cut - 1] & 0xFC == 0xD8 and raw[cut + 1] & 0xFC == 0xDC:
        cut -= 2
    return len(raw[:cut].decode("utf-16-le", "surrogatepass"))
