"""Content changes of the wire → changes of a document: of `textDocument/didChange` and of a notebook's cells."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from lsp_server.document import Change
from lsp_server.ranges import text_position


def changes_of(events: Iterable[types.TextDocumentContentChangeEvent]) -> list[Change]:
    """The changes of a notification, in their order."""
    return [_change(event) for event in events]


def _change(event: types.TextDocumentContentChangeEvent) -> Change:
    if isinstance(event, types.TextDocumentContentChangePartial):
        return Change(text_position(event.range.start), text_position(event.range.end), event.text)
    return Change(None, None, event.text)
