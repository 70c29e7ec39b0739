"""JSON → the types of the wire, where the libraries guess: a document's text is a string or the message is malformed.

cattrs makes a string of whatever stands where one is due, so that a `text` of null would become the text `None`.
Elsewhere its leniency is welcome: sloppy clients send numbers for names, and nothing comes of it.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import types
from pygls.protocol import default_converter

# Everything that says what stands in a document.
TEXTS = (
    types.TextDocumentItem,
    types.TextDocumentContentChangePartial,
    types.TextDocumentContentChangeWholeDocument,
    types.SelectedCompletionInfo,
)


def text_preserving_converter() -> Any:
    """pygls's converter, which raises TypeError (inside cattrs's own errors) for a `text` that is no string."""
    converter = default_converter()  # type: ignore[no-untyped-call]
    for kind in TEXTS:
        converter.register_structure_hook(kind, _checking_text(converter.get_structure_hook(kind)))
    converter.register_structure_hook(types.Diagnostic, _plain_message(converter.get_structure_hook(types.Diagnostic)))
    return converter


def _checking_text(structure: Any) -> Any:
    def checked(raw: Any, kind: Any) -> Any:
        if not isinstance(raw["text"], str):
            raise TypeError("a text must be a string")
        return structure(raw, kind)

    return checked


def _plain_message(structure: Any) -> Any:
    """The message of a diagnostic may be MarkupContent (LSP 3.18): its text counts. What is neither is no message."""

    def plain(raw: Any, kind: Any) -> Any:
        message = raw["message"]
        text = message.get("value") if isinstance(message, dict) else message
        return structure({**raw, "message": text if isinstance(text, str) else ""}, kind)

    return plain


def read_range(raw: object) -> types.Range:
    """An LSP range in parameters that have no type of their own. Raises ValueError."""
    if not isinstance(raw, dict):
        raise ValueError("a range must be an object")
    return types.Range(_position(raw.get("start")), _position(raw.get("end")))


def _position(raw: object) -> types.Position:
    """Lua has one kind of number, so Neovim may send 3.0 for 3."""
    if not isinstance(raw, dict):
        raise ValueError("a position must be an object")
    return types.Position(_count(raw.get("line")), _count(raw.get("character")))


def _count(raw: object) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not float(raw).is_integer():
        raise ValueError("a line or character must be a whole number")
    return int(raw)
