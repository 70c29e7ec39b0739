"""An editor's side of one document: its text as `EditorModel` keeps it, the cursor, the selection, the last change."""

from __future__ import annotations

from typing import Any

from tests.fakes.editor_model import EditorModel
from tests.fakes.lsp_messages import area, change
from tests.fakes.protocol_steps import Place, Span

CURSOR, SELECTED = "‸", "⟦⟧"


class Page:
    """An open document. Positions are in units of `encoding`."""

    def __init__(self, marked: str, uri: str, version: int, encoding: str) -> None:
        text = marked
        for mark in CURSOR + SELECTED:
            text = text.replace(mark, "")
        self.uri, self.version = uri, version
        self.model = EditorModel(text, encoding)
        self.cursor: Place = self._place(marked.replace("⟦", "").replace("⟧", ""), CURSOR)
        self.span = (*self._place(marked, "⟦"), *self._place(marked.replace("⟦", ""), "⟧"))
        self.is_selected = "⟦" in marked
        # A document too long for the model is changed blindly: its places are all said by the case.
        self.is_followed = True
        self._before: list[tuple[str, Place]] = []

    @property
    def text(self) -> str:
        return self.model.text

    def _place(self, marked: str, mark: str) -> Place:
        """Where the mark stands, the end where there is none."""
        before, found, _ = marked.partition(mark)
        return self.model.position_at(len(before) if found else len(self.model.text))

    def replace(self, text: str, span: Span | None) -> dict[str, Any]:
        """Make a change; the message that tells of it. The cursor goes behind the new text."""
        self.version += 1
        if not self.is_followed:
            return change(self.version, text, None if span is None else area(span[:2], span[2:]), self.uri)
        self._before.append((self.text, self.cursor))
        if span is None:
            self.model = EditorModel(text, self.model.encoding)
            self.cursor = self.model.position_at(len(text))
            return change(self.version, text, None, self.uri)
        start = self.model.offset_at(*span[:2])
        self.model.replace(span[:2], span[2:], text)
        self.cursor = self.model.position_at(start + len(text))
        return change(self.version, text, area(span[:2], span[2:]), self.uri)

    def back(self, count: int) -> dict[str, Any]:
        """The change that takes away `count` characters before the cursor."""
        start = self.model.position_at(self.model.offset_at(*self.cursor) - count)
        return self.replace("", (*start, *self.cursor))

    def undo(self) -> dict[str, Any]:
        """The change that brings back the text before the last one: only what differs is replaced."""
        older, cursor = self._before[-1]
        newer = self.text
        head = 0
        while head < min(len(older), len(newer)) and older[head] == newer[head]:
            head += 1
        tail = 0
        while tail < min(len(older), len(newer)) - head and older[-1 - tail] == newer[-1 - tail]:
            tail += 1
        span = (*self.model.position_at(head), *self.model.position_at(len(newer) - tail))
        message = self.replace(older[head : len(older) - tail], span)
        self.cursor = cursor
        return message

    def with_edits(self, edits: list[dict[str, Any]]) -> str:
        """The text after edits of it; the page stays as it is."""
        copy = EditorModel(self.text, self.model.encoding)
        for edit in sorted(edits, key=lambda edit: span_of(edit["range"]), reverse=True):
            span = span_of(edit["range"])
            copy.replace(span[:2], span[2:], edit["newText"])
        return copy.text

    def holds(self, span: Span) -> bool:
        """Whether both ends are places of this text as they stand."""
        return all(
            self.model.position_at(self.model.offset_at(*place)) == tuple(place) for place in (span[:2], span[2:])
        )


def span_of(found: dict[str, Any]) -> Span:
    """An LSP range as four numbers."""
    start, end = found["start"], found["end"]
    return start["line"], start["character"], end["line"], end["character"]
