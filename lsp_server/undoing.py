"""Whether the last change of a document took back the one before it: nobody wants that text suggested at once.

A change on the wire does not say whether it came from an undo or from a key. What tells them apart is its size: a key
takes away or brings back one character at the cursor (and the closers an editor put behind it), an undo what was typed
or accepted in one go, which is one character only where one character was all there was. So one character is taken for
a key. That is never more than what was shown at this place a moment ago: after a key, too, memory alone answers.

Owns the two versions before the present one of every open document, and nothing of what is suggested.
"""

from __future__ import annotations

from lsp_server.auto_closed import closers_behind
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


def key_between(shorter: Document, longer: Document, place: int) -> str | None:
    """The one character at `place` that `longer` has more than `shorter`, with or without its closers behind it.

    None when they differ by anything else.
    """
    letter = longer.slice(place, place + 1)
    for key in (letter, letter + closers_behind(letter)):
        end = place + len(key)
        if (
            len(key) == longer.length - shorter.length > 0
            and longer.slice(place, end) == key
            and longer.slice(0, place) == shorter.slice(0, place)
            and longer.slice(end, longer.length) == shorter.slice(place, shorter.length)
        ):
            return letter
    return None
