"""The documents an editor has open in a long run: what it tells the server of them, and what it holds them to be.

`EditorModel` is the text; `OpenText` remembers besides how long each line of each version was, so that a range that
comes back can be judged by the version it was made for.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.editor_model import EditorModel
from tests.fakes.lsp_client import LspClient
from tests.fakes.lsp_messages import area, note
from tests.fakes.soak_texts import FOLDERS, LANGUAGES, Place, a_piece, a_span, a_text

MOST_OPEN = 9
MOST_CHARS = 3000
BOOK = "file:///soak/app/n.ipynb"


@dataclass
class OpenText:
    """One open document. `shape[version]` holds the units of every line; `book` is the notebook it is a cell of."""

    uri: str
    language: str
    version: int
    model: EditorModel
    book: str = ""
    shape: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.note_shape()

    def note_shape(self) -> None:
        """Remember the lines of the present version."""
        self.shape[self.version] = tuple(map(self.model.length, range(len(self.model.lines))))

    def holds(self, span: Any, version: int) -> bool:
        """Whether a range of the wire lies inside the text of a version, and is in order."""
        lines = self.shape.get(version)
        if lines is None:
            return False
        start, end = _place_of(span["start"]), _place_of(span["end"])
        return start <= end and all(line < len(lines) and 0 <= at <= lines[line] for line, at in (start, end))

    @property
    def item(self) -> dict[str, Any]:
        """The document as `didOpen` tells it."""
        return {"uri": self.uri, "languageId": self.language, "version": self.version, "text": self.model.text}


def _place_of(position: Any) -> Place:
    return position["line"], position["character"]


@dataclass(frozen=True)
class About:
    """What a question was about: the document as it was then, and the place or the menu entry selected in it."""

    document: OpenText
    version: int
    place: Place = (0, 0)
    chosen: Any = None


class Desk:
    """Everything open, and the messages that open, change and close it."""

    def __init__(self, client: LspClient, chance: random.Random, encoding: str) -> None:
        self.client = client
        self.encoding = encoding
        self.open: dict[str, OpenText] = {}
        # Closed not long ago: what is asked of these must come to nothing.
        self.closed: list[str] = ["file:///soak/never.py"]
        # What was open under a name before: what the server says of it may still be on its way.
        self.former: dict[str, list[OpenText]] = defaultdict(list)
        # The notebook's cells in their order; it may have none. None: it is not open.
        self.cells: list[str] | None = None
        self._chance = chance
        self._made = 0

    def any(self) -> OpenText | None:
        """One of the documents."""
        return self._chance.choice(list(self.open.values())) if self.open else None

    def ever_open(self, uri: str) -> list[OpenText]:
        """The documents that have been open under a name, the present one first."""
        present = self.open.get(uri)
        return [*([present] if present is not None else []), *self.former.get(uri, [])]

    def is_current(self, about: About | None) -> bool:
        """Whether the document has not moved since a question about it."""
        if about is None or self.open.get(about.document.uri) is not about.document:
            return False
        return about.document.version == about.version

    # Files

    def new_uri(self, language: str) -> str:
        """The name of a document that was never open before, or was once."""
        self._made += 1
        if self._chance.random() < 0.15 and len(self.closed) > 1:
            again = self._chance.choice(self.closed)
            if again not in self.open and "#" not in again:
                return again
        ending = LANGUAGES[language][0]
        if self._chance.random() < 0.15:
            return f"untitled:Untitled-{self._made}"
        folder = self._chance.choice((*FOLDERS, "file:///elsewhere"))
        name = self._chance.choice(("part", "part", "dir/part", "gr%C3%B6%C3%9Fe", "part", "a b", ".env.", "id_rsa"))
        return f"{folder}/{name}{self._made}.{ending}"

    def open_one(self) -> None:
        """A new document; when there are many an old one goes first."""
        if len(self.open) >= MOST_OPEN:
            self.close_one()
        language = self._chance.choice(list(LANGUAGES))
        text = a_text(self._chance, language)
        document = OpenText(self.new_uri(language), language, 1, EditorModel(text, self.encoding))
        self._tell_open(document)

    def _tell_open(self, document: OpenText) -> None:
        self.open[document.uri] = document
        self.client.notify("textDocument/didOpen", {"textDocument": document.item})

    def close_one(self) -> None:
        """One document that is no cell goes."""
        files = [document for document in self.open.values() if not document.book]
        if files:
            self.close(self._chance.choice(files))

    def close(self, document: OpenText) -> None:
        """A document goes, and nothing may be left of it."""
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": document.uri}})
        self.gone(document.uri)

    def gone(self, uri: str) -> None:
        """Not open any more, whoever said so."""
        if (document := self.open.pop(uri, None)) is not None:
            self.former[uri].append(document)
        self.closed = [*self.closed[-8:], uri]

    def close_all(self) -> None:
        """Everything goes."""
        if self.cells is not None:
            self.close_book(self.cells)
        for document in list(self.open.values()):
            self.close(document)

    def save(self) -> None:
        """A save says nothing that matters."""
        if (document := self.any()) is not None and not document.book:
            self.client.notify("textDocument/didSave", {"textDocument": {"uri": document.uri}})

    def rename_one(self) -> None:
        """A file gets another name, as VS Code tells it: closed, opened anew, and that it was renamed."""
        files = [document for document in self.open.values() if not document.book]
        if not files:
            return
        old = self._chance.choice(files)
        new = OpenText(self.new_uri(old.language), old.language, 1, EditorModel(old.model.text, self.encoding))
        self.close(old)
        self._tell_open(new)
        renamed = {"files": [{"oldUri": old.uri, "newUri": new.uri}]}
        self.client.notify("workspace/didRenameFiles", renamed)

    def break_one(self) -> None:
        """A change nobody can read: the server cannot know the text from here on, until it is opened anew."""
        if (document := self.any()) is None or document.book:
            return
        event = self._chance.choice(({"range": 1}, {"text": 7}, None, {"range": area((0, 0), (0, -1)), "text": "x"}))
        head = {"uri": document.uri, "version": document.version + 1}
        self.client.notify("textDocument/didChange", {"textDocument": head, "contentChanges": [event]})
        self.gone(document.uri)

    # Changes

    def edit(self, document: OpenText, changes: Sequence[tuple[Place, Place, str]]) -> None:
        """Replace spans, each seen by the next; the server is told by one notification."""
        for start, end, text in changes:
            document.model.replace(start, end, text)
        events = [{"range": area(start, end), "text": text} for start, end, text in changes]
        self._tell_change(document, events)

    def edit_any(self) -> None:
        """One to four changes in one document, or its whole text."""
        if (document := self.any()) is None:
            return
        if len(document.model.text) > MOST_CHARS or self._chance.random() < 0.06:
            text = a_text(self._chance, document.language)
            document.model = EditorModel(text, self.encoding)
            self._tell_change(document, [{"text": text}])
            return
        events = []
        for _ in range(self._chance.choice((1, 1, 1, 1, 2, 4))):
            start, end = a_span(self._chance, document.model)
            text = a_piece(self._chance)
            document.model.replace(start, end, text)
            events.append({"range": area(start, end), "text": text})
        self._tell_change(document, events)

    def type_letters(self, document: OpenText, place: Place, letters: str) -> None:
        """Letter by letter, as keys come."""
        for letter in letters:
            offset = document.model.offset_at(*place)
            self.edit(document, [(place, place, letter)])
            place = document.model.position_at(offset + 1)

    def _tell_change(self, document: OpenText, events: list[dict[str, Any]]) -> None:
        document.version += self._chance.choice((1, 1, 1, 3))
        document.note_shape()
        head = {"uri": document.uri, "version": document.version}
        if document.book:
            cells = {"textContent": [{"document": head, "changes": events}]}
            self._tell_book(cells)
        else:
            self.client.send(note("textDocument/didChange", {"textDocument": head, "contentChanges": events}))

    # Notebooks

    def change_book(self) -> None:
        """A notebook is opened, gets, loses or moves a cell, or is closed."""
        cells = self.cells
        if cells is None:
            self._open_book()
        elif self._chance.random() < 0.2:
            self.close_book(cells)
        elif not cells or self._chance.random() < 0.6:
            self._splice(cells, [self._new_cell()], self._chance.randint(0, len(cells)), 0)
        else:
            self._splice(cells, [], self._chance.randrange(len(cells)), 1)

    def _new_cell(self) -> OpenText:
        self._made += 1
        language = self._chance.choice(("python", "python", "markdown"))
        model = EditorModel(a_text(self._chance, language), self.encoding)
        return OpenText(f"vscode-notebook-cell:/soak/app/n.ipynb#C{self._made}", language, 1, model, BOOK)

    @staticmethod
    def _listed(cell: OpenText) -> dict[str, Any]:
        return {"kind": 1 if cell.language == "markdown" else 2, "document": cell.uri}

    def _open_book(self) -> None:
        cells = [self._new_cell() for _ in range(self._chance.randint(1, 3))]
        self.open |= {cell.uri: cell for cell in cells}
        self.cells = [cell.uri for cell in cells]
        book = {"uri": BOOK, "notebookType": "jupyter-notebook", "version": 1, "cells": [*map(self._listed, cells)]}
        told = {"notebookDocument": book, "cellTextDocuments": [cell.item for cell in cells]}
        self.client.notify("notebookDocument/didOpen", told)

    def _splice(self, cells: list[str], new: list[OpenText], start: int, removed: int) -> None:
        gone = cells[start : start + removed]
        array = {"start": start, "deleteCount": removed, "cells": [*map(self._listed, new)]}
        structure = {"array": array, "didOpen": [cell.item for cell in new], "didClose": [{"uri": uri} for uri in gone]}
        self.open |= {cell.uri: cell for cell in new}
        cells[start : start + removed] = [cell.uri for cell in new]
        self._tell_book({"structure": structure})
        for uri in gone:
            self.gone(uri)

    def close_book(self, cells: list[str]) -> None:
        """The notebook goes with all its cells."""
        closed = {"notebookDocument": {"uri": BOOK}, "cellTextDocuments": [{"uri": uri} for uri in cells]}
        self.client.notify("notebookDocument/didClose", closed)
        for uri in cells:
            self.gone(uri)
        self.cells = None

    def _tell_book(self, cells: dict[str, Any]) -> None:
        head = {"uri": BOOK, "version": 2}
        self.client.notify("notebookDocument/didChange", {"notebookDocument": head, "change": {"cells": cells}})
