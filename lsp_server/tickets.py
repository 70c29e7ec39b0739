"""Tickets: what a code action carries through the client from `codeAction` to `codeAction/resolve`.

Pure. A ticket names a document version, a range of code-point offsets and what is to be done with it; it is only good
for the very text it was made on, which may have moved since.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from lsp_server.actions import NAMES
from lsp_server.document import Document
from lsp_server.trail import Trail


@dataclass(frozen=True, slots=True)
class Ticket:
    """`action` on the text from `start` to `end` of one document version, following `instruction` where it has one.

    `mark` is the checksum of that text and the lines it stands on: they must be what they were, wherever they are now,
    and a document that was closed and opened again may have the version once more.
    """

    uri: str
    version: int
    start: int
    end: int
    action: str
    instruction: str
    mark: int


_LINE_ENDS = ("\n", "\r")
_FIELDS = frozenset(field.name for field in fields(Ticket))


def ticket_for(document: Document, start: int, end: int, action: str, instruction: str) -> Ticket:
    """A ticket for `document` as it is now."""
    mark = _mark(document.text, start, end)
    return Ticket(document.uri, document.version, start, end, action, instruction, mark)


def to_data(ticket: Ticket) -> dict[str, Any]:
    """The ticket as JSON, for `CodeAction.data`."""
    return asdict(ticket)


def parse_ticket(data: object) -> Ticket | None:
    """The ticket in `CodeAction.data`; None when the data is not ours or was damaged on its way."""
    if not isinstance(data, Mapping) or set(data) != _FIELDS:
        return None
    texts = (data["uri"], data["action"], data["instruction"])
    counts = (data["version"], data["start"], data["end"], data["mark"])
    if not all(isinstance(text, str) for text in texts) or not all(map(_is_count, counts)):
        return None
    ticket = Ticket(**data)
    return ticket if ticket.action in NAMES and ticket.start < ticket.end else None


def brought_up(ticket: Ticket, document: Document, trail: Trail) -> Ticket | None:
    """The ticket for the document as it is now; None when its text, or a line it stands on, is not what it was."""
    span: tuple[int, int] | None = (ticket.start, ticket.end)
    if ticket.version != document.version:
        span = trail.follow(ticket.version, ticket.start, ticket.end)
    if ticket.uri != document.uri or span is None or span[1] > document.length:
        return None
    if _mark(document.text, *span) != ticket.mark:
        return None
    return replace(ticket, version=document.version, start=span[0], end=span[1])


def _mark(text: str, start: int, end: int) -> int:
    """The checksum of the lines of `[start, end)` and of where in them it is; the line end behind may be any."""
    first = max(text.rfind(mark, 0, start) for mark in _LINE_ENDS) + 1
    last = end
    if text[end - 1 : end] not in _LINE_ENDS:
        last = min((place for mark in _LINE_ENDS if (place := text.find(mark, end)) >= 0), default=len(text))
    # Neither border may have become the middle of one line end.
    halves = [text[max(border - 1, 0) : border + 1] == "\r\n" for border in (first, end)]
    return zlib.crc32(f"{start - first} {end - first} {halves} {text[first:last]}".encode("utf-8", "surrogatepass"))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
