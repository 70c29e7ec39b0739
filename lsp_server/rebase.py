"""A span of a document that follows changes outside of it, or is lost when one touches it.

Pure. "Outside" means on other lines: then the span's text, its line and the line ends around it are what they were, and
an edit made for it lands exactly where it belongs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsp_server.document import Change, Document, apply_changes
from lsp_server.positions import PositionEncoding

_LINE_ENDS = ("\n", "\r")


@dataclass(frozen=True, slots=True)
class Moved:
    """A document and the changes that are about to happen to it."""

    document: Document
    changes: Sequence[Change]
    encoding: PositionEncoding


class Anchor:
    """`[start, end)`, code points of the document as it is now; the one thing here that changes."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    def follow(self, moved: Moved) -> bool:
        """Move with the document. False, and no step taken, when a change touches the span or its lines."""
        document, span = moved.document, (self.start, self.end)
        for change in moved.changes:
            if change.start is None or change.end is None:
                # The whole text came anew: which of its lines are the old ones is anybody's guess.
                return False
            first = document.index.offset_at(change.start, moved.encoding)
            last = max(first, document.index.offset_at(change.end, moved.encoding))
            text, changed = document.text, apply_changes(document, document.version, [change], moved.encoding)
            if _is_above(text, span[0], first, last, change.text):
                # Measured, not reckoned: two halves of a character that meet are one.
                shift = changed.length - document.length
                span = span[0] + shift, span[1] + shift
            elif not _is_below(text, span[1], first, last, change.text):
                return False
            document = changed
        self.start, self.end = span
        return True


def _is_above(text: str, start: int, first: int, last: int, inserted: str) -> bool:
    line = max(text.rfind(mark, 0, start) for mark in _LINE_ENDS) + 1
    if last != line:
        return last < line
    # It ends where the span's first line starts, and that must still be the start of a line.
    ends_line = inserted.endswith(_LINE_ENDS) if inserted else _starts_line(text, first)
    return ends_line and not (text[line : line + 1] == "\n" and (inserted or text[:first]).endswith("\r"))


def _is_below(text: str, end: int, first: int, last: int, inserted: str) -> bool:
    if end and text[end - 1 : end] in _LINE_ENDS:
        behind = inserted or text[last : last + 1]
        return first >= end and not (text[end - 1] == "\r" and behind.startswith("\n") and first == end)
    found = [place for place in (text.find(mark, end) for mark in _LINE_ENDS) if place >= 0]
    line_end = min(found, default=len(text))
    return first > line_end or (first == line_end and inserted.startswith(_LINE_ENDS))


def _starts_line(text: str, offset: int) -> bool:
    return offset == 0 or text[offset - 1] in _LINE_ENDS
