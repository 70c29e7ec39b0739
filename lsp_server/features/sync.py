"""textDocument/didOpen, didChange, didClose: the session's documents follow the editor's."""

from __future__ import annotations

from lsprotocol import types

from lsp_server.content_changes import changes_of
from lsp_server.document import Document
from lsp_server.errors import notice_of_loss
from lsp_server.session import Session


def did_open(session: Session, params: types.DidOpenTextDocumentParams) -> None:
    """The first document also starts the engine, if `initialized` has not."""
    item = params.text_document
    session.open(Document.open(item.uri, item.version, str(_plain(item.language_id)), item.text))
    session.wake_engine()


def did_change(session: Session, params: types.DidChangeTextDocumentParams) -> None:
    """All changes of one notification together make one version."""
    changes = changes_of(params.content_changes)
    session.change(params.text_document.uri, params.text_document.version, changes)


def did_close(session: Session, params: types.DidCloseTextDocumentParams) -> None:
    """Nothing of a closed document is kept."""
    session.close(params.text_document.uri)


def garbled(session: Session, method: str, params: object) -> None:
    """A change that could not be read leaves our text wrong, and wrong text must not be worked on: forget it.

    It comes back when the editor opens it again.
    """
    if method not in (types.TEXT_DOCUMENT_DID_CHANGE, types.TEXT_DOCUMENT_DID_OPEN):
        return
    head = params.get("textDocument") if isinstance(params, dict) else None
    uri = head.get("uri") if isinstance(head, dict) else None
    if isinstance(uri, str):
        is_news = method == types.TEXT_DOCUMENT_DID_OPEN or session.document(uri) is not None
        session.close(uri)
        if is_news:
            session.tell(notice_of_loss(uri))


def _plain(language: object) -> object:
    """lsprotocol gives an enumeration member for the languages it knows and text for the others."""
    return getattr(language, "value", language)
