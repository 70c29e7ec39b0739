"""A document as the editor has it: one immutable version of its text, and how the next version follows.

Owns the edit semantics of `textDocument/didChange` and the newline style of a document. Must not know the
protocol library, files or the session. Text is kept exactly as the editor sent it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from lsp_server.line_index import LineIndex
from lsp_server.positions import PositionEncoding, TextPosition

Newline = Literal["\n", "\r\n", "\r"]

_CARRIAGE_RETURN = re.compile(r"\r\n?")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Change:
    """One content change. With `start` and `end` of None, `text` is the whole new document."""

    start: TextPosition | None
    end: TextPosition | None
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """One version of one document; build one with `Document.open`.

    The text is kept in chunks that versions share: `text` joins them once per version, `slice` only those of a part.
    """

    uri: str
    version: int
    language: str
    index: LineIndex

    @classmethod
    def open(cls, uri: str, version: int, language: str, text: str) -> Document:
        """A document as `textDocument/didOpen` brings it."""
        return cls(uri, version, language, LineIndex(_join_surrogates(text)))

    @property
    def text(self) -> str:
        """The whole text, exactly as the editor has it."""
        return self.index.text

    @property
    def length(self) -> int:
        """Code points in the text."""
        return len(self.index.rope)

    def slice(self, start: int, stop: int) -> str:
        """The text of `[start, stop)`, clamped into the document."""
        return self.index.rope.slice(start, stop)

    def place_of(self, change: Change, encoding: PositionEncoding) -> int | None:
        """Where the change that led here begins; None when the whole text came anew."""
        return self.index.offset_at(change.start, encoding) if change.start is not None else None

    @property
    def newline(self) -> Newline:
        """The line end most lines have; `\\n` when there are none, and the longer one in a draw."""
        feeds, pairs, returns = self.index.rope.line_ends
        if pairs and pairs >= max(feeds, returns):
            return "\r\n"
        return "\r" if returns > feeds else "\n"

    def to_document_newlines(self, text: str) -> str:
        """`text` with this document's own line ends, for edits that the editor applies verbatim."""
        newline = self.newline
        normal = _CARRIAGE_RETURN.sub("\n", text)
        return normal if newline == "\n" else normal.replace("\n", newline)


def for_model(text: str) -> str:
    """`text` as an engine may see it: `\\n` line ends only, half surrogate pairs replaced by U+FFFD."""
    normal = _CARRIAGE_RETURN.sub("\n", text) if "\r" in text else text
    return normal if normal.isascii() else _SURROGATE.sub("\ufffd", normal)


def apply_changes(document: Document, version: int, changes: Iterable[Change], encoding: PositionEncoding) -> Document:
    """The document after `changes`, each seen by the next, as version `version`."""
    index = document.index
    for change in changes:
        index = _changed(index, change, encoding)
    return replace(document, version=version, index=index)


def _changed(index: LineIndex, change: Change, encoding: PositionEncoding) -> LineIndex:
    if change.start is None or change.end is None:
        return index.replaced(0, len(index.rope), _join_surrogates(change.text))
    start = index.offset_at(change.start, encoding)
    end = start if change.end == change.start else max(start, index.offset_at(change.end, encoding))
    start, end, inserted = _with_split_neighbours(index, start, end, change.text)
    return index.replaced(start, end, _join_surrogates(inserted))


def _with_split_neighbours(index: LineIndex, start: int, end: int, inserted: str) -> tuple[int, int, str]:
    """Widen an edit over a half surrogate on either side, so that two halves that meet become one character."""
    before, behind = index.rope.slice(start - 1, start), index.rope.slice(end, end + 1)
    if _SURROGATE.match(before):
        start, inserted = start - 1, before + inserted
    if _SURROGATE.match(behind):
        end, inserted = end + 1, inserted + behind
    return start, end, inserted


def _join_surrogates(text: str) -> str:
    """`text` with surrogate halves that stand together joined; JSON can bring them apart."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
