"""LSP positions and ranges ↔ code-point offsets of a snapshot, in the encoding agreed with the editor.

Knows the types of the wire; the arithmetic is in `positions`.
"""

from __future__ import annotations

import attrs
from lsprotocol import types

from lsp_server.positions import TextPosition
from lsp_server.session import Snapshot


def text_position(position: types.Position) -> TextPosition:
    """A wire position as `positions` knows it, still in the client's units."""
    return TextPosition(*attrs.astuple(position))


def offset_of(snapshot: Snapshot, position: types.Position) -> int:
    """The offset of a client's position, clamped into the document."""
    return snapshot.document.index.offset_at(text_position(position), snapshot.encoding)


def span_of(snapshot: Snapshot, area: types.Range) -> tuple[int, int]:
    """The offsets of a client's range; one given backwards is turned round."""
    start, end = offset_of(snapshot, area.start), offset_of(snapshot, area.end)
    return min(start, end), max(start, end)


def range_of(snapshot: Snapshot, start: int, end: int) -> types.Range:
    """The client's range of two offsets."""
    area = snapshot.document.index.to_range(start, end, snapshot.encoding)
    return types.Range(types.Position(*area.start), types.Position(*area.end))
