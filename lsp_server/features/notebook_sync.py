"""notebookDocument/didOpen, didChange, didClose: the cells of a notebook follow the editor's.

A cell's text is a document of the session like any other; only the order of the cells is kept besides.
"""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from lsp_server.content_changes import changes_of
from lsp_server.document import Document
from lsp_server.errors import notice_of_loss
from lsp_server.notebook import Notebook
from lsp_server.session import Session


def did_open(session: Session, params: types.DidOpenNotebookDocumentParams) -> None:
    """The cells come with their texts."""
    notebook = params.notebook_document
    _open(session, params.cell_text_documents)
    session.vicinity.notebooks.put(Notebook(notebook.uri, tuple(cell.document for cell in notebook.cells)))
    session.wake_engine()


def did_change(session: Session, params: types.DidChangeNotebookDocumentParams) -> None:
    """Cells come, go or move; their texts change. What else a notebook holds is of no use here."""
    cells, uri = params.change.cells, params.notebook_document.uri
    if cells is None:
        return
    if cells.structure is not None:
        _restructure(session, uri, cells.structure)
    for content in cells.text_content or ():
        document = content.document
        session.change(document.uri, document.version, changes_of(content.changes))
    edited = {content.document.uri for content in cells.text_content or ()}
    if edited or cells.structure is not None:
        _forget_offers(session, uri, edited if cells.structure is None else set())


def did_save(_session: Session, _params: types.DidSaveNotebookDocumentParams) -> None:
    """Nothing depends on what is on disk."""


def did_close(session: Session, params: types.DidCloseNotebookDocumentParams) -> None:
    """Nothing of a closed notebook is kept."""
    _forget(session, params.notebook_document.uri, (cell.uri for cell in params.cell_text_documents))


def garbled(session: Session, method: str, params: object) -> None:
    """A change that could not be read leaves our cells wrong: forget the notebook until it is opened again."""
    head = params.get("notebookDocument") if isinstance(params, dict) else None
    uri = head.get("uri") if isinstance(head, dict) else None
    if method in (types.NOTEBOOK_DOCUMENT_DID_CHANGE, types.NOTEBOOK_DOCUMENT_DID_OPEN) and isinstance(uri, str):
        is_news = method == types.NOTEBOOK_DOCUMENT_DID_OPEN or session.vicinity.notebooks.get(uri) is not None
        _forget(session, uri, ())
        if is_news:
            session.tell(notice_of_loss(uri))


def _restructure(session: Session, uri: str, structure: types.NotebookDocumentCellChangeStructure) -> None:
    notebook, array = session.vicinity.notebooks.get(uri), structure.array
    if notebook is not None:
        new = [cell.document for cell in array.cells or ()]
        session.vicinity.notebooks.put(notebook.spliced(array.start, array.delete_count, new))
    for closed in structure.did_close or ():
        session.close(closed.uri)
    _open(session, structure.did_open or ())


def _forget_offers(session: Session, uri: str, edited: set[str]) -> None:
    """What was offered in a cell holds no longer once another has changed; one that was typed in looks for itself."""
    notebook = session.vicinity.notebooks.get(uri)
    for cell in notebook.cells if notebook is not None else ():
        if edited != {cell}:
            session.typing.memory.forget(cell)


def _open(session: Session, items: Iterable[types.TextDocumentItem]) -> None:
    for item in items:
        language = str(getattr(item.language_id, "value", item.language_id))
        session.open(Document.open(item.uri, item.version, language, item.text))


def _forget(session: Session, uri: str, cells: Iterable[str]) -> None:
    notebook = session.vicinity.notebooks.drop(uri)
    for cell in {*cells, *(notebook.cells if notebook is not None else ())}:
        session.close(cell)
