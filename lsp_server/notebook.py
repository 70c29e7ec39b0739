"""Notebooks: which cells there are and in which order, and what the others look like from one of them.

Owns the order only: a cell's text is a document like any other. The functions are pure; `Notebooks` is the state of one
editor. Must not know the protocol library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lsp_server.document import Document, for_model
from lsp_server.languages import language_of

MARKDOWN = "markdown"


@dataclass(frozen=True, slots=True)
class Notebook:
    """The URIs of the cells, in order."""

    uri: str
    cells: tuple[str, ...]

    def spliced(self, start: int, count: int, cells: Sequence[str]) -> Notebook:
        """With `count` cells from `start` on taken out and `cells` put there."""
        return replace(self, cells=(*self.cells[:start], *cells, *self.cells[start + count :]))


@dataclass(frozen=True, slots=True)
class OtherCells:
    """The cells before and behind one, in order."""

    before: tuple[Document, ...] = ()
    behind: tuple[Document, ...] = ()


class Notebooks:
    """The open notebooks."""

    def __init__(self) -> None:
        self._notebooks: dict[str, Notebook] = {}
        self._home: dict[str, str] = {}

    def get(self, uri: str) -> Notebook | None:
        """The notebook of that URI, if it is open."""
        return self._notebooks.get(uri)

    def put(self, notebook: Notebook) -> None:
        """A notebook was opened, or its cells changed."""
        self.drop(notebook.uri)
        self._notebooks[notebook.uri] = notebook
        self._home |= dict.fromkeys(notebook.cells, notebook.uri)

    def drop(self, uri: str) -> Notebook | None:
        """Forget a notebook; it is returned if it was open."""
        notebook = self._notebooks.pop(uri, None)
        for cell in notebook.cells if notebook is not None else ():
            self._home.pop(cell, None)
        return notebook

    def home_of(self, uri: str) -> str:
        """The notebook a cell is in; any other document is its own home."""
        return self._home.get(uri, uri)

    def around(self, cell: str, document_of: Callable[[str], Document | None]) -> OtherCells:
        """The cells around one. Those whose text is not known are left out."""
        notebook = self._notebooks.get(self._home.get(cell, ""))
        if notebook is None:
            return OtherCells()
        place = notebook.cells.index(cell)
        known = [[document_of(uri) for uri in part] for part in (notebook.cells[:place], notebook.cells[place + 1 :])]
        before, behind = (tuple(each for each in part if each is not None) for part in known)
        return OtherCells(before, behind)


def text_before(cells: OtherCells, language: str) -> str:
    """What stands before a cell of `language`, as text of that language."""
    return "".join(f"{text}\n" for text in _shown(cells.before, language))


def text_behind(cells: OtherCells, language: str) -> str:
    """What stands behind a cell of `language`, as text of that language."""
    return "".join(f"\n{text}" for text in _shown(cells.behind, language))


def _shown(cells: Iterable[Document], language: str) -> list[str]:
    return [text for cell in cells if (text := _as_language(cell, language)).strip()]


def _as_language(cell: Document, language: str) -> str:
    """A cell's text where it has that language; else as a comment of it, or in a fence where that is Markdown."""
    text = for_model(cell.text)
    if cell.language == language:
        return text
    if language == MARKDOWN:
        return f"```{cell.language}\n{text}\n```"
    facts = language_of(language)
    if not text.strip() or not facts.line_comments:
        return ""
    return "\n".join(f"{facts.line_comments[0]} {line}".rstrip() for line in text.split("\n"))
