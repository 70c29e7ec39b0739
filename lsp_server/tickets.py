"""Tickets: what a code action carries through the client from `codeAction` to `codeAction/resolve`.

Pure. A ticket names a document version, a range of code-point offsets and what is to be done with it; it is only good
for the very text it was made on.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from lsp_server.actions import NAMES
from lsp_server.document import Document


@dataclass(frozen=True, slots=True)
class Ticket:
    """`action` on the text from `start` to `end` of one document version, following `instruction` where it has one.

    `mark` is the checksum of that text: a document that was closed and opened again may have the version once more.
    """

    uri: str
    version: int
    start: int
    end: int
    action: str
    instruction: str
    mark: int


_FIELDS = frozenset(field.name for field in fields(Ticket))


def ticket_for(document: Document, start: int, end: int, action: str, instruction: str) -> Ticket:
    """A ticket for `document` as it is now."""
    mark = _mark(document.text[start:end])
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


def is_current(ticket: Ticket, document: Document) -> bool:
    """Whether the ticket was made for exactly this version of the document and the text still stands there."""
    if ticket.uri != document.uri or ticket.version != document.version:
        return False
    text = document.text
    return ticket.end <= len(text) and _mark(text[ticket.start : ticket.end]) == ticket.mark


def _mark(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
