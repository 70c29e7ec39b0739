"""Whether the last change of a document took back the one before it: nobody wants that text suggested at once.

Owns the two versions before the present one of every open document, and nothing of what is suggested.
"""

from __future__ import annotations

from lsp_server.document import Document


class Undoing:
    """What changes undid. Texts are compared only when their lengths say that they may be equal."""

    def __init__(self) -> None:
        self._earlier: dict[str, tuple[Document, ...]] = {}

    def changed(self, before: Document) -> None:
        """The document moved on from `before`."""
        self._earlier[before.uri] = (*self._earlier.get(before.uri, ())[-1:], before)

    def forget(self, uri: str) -> None:
        """The document was closed or opened anew."""
        self._earlier.pop(uri, None)

    def taken_back(self, document: Document) -> Document | None:
        """The version before, when the change that led from it brought back the text of the one before that."""
        earlier = self._earlier.get(document.uri, ())
        if len(earlier) < 2 or earlier[0].length != document.length:
            return None
        oldest, before = earlier
        if before.text == document.text or oldest.text != document.text:
            return None
        return before
