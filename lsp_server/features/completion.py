"""textDocument/completion: one entry in the menu, below those of other servers.

The entry replaces the word before the cursor, so that its filter text matches what the user has typed.
"""

from __future__ import annotations

from collections.abc import Awaitable

from lsprotocol import types

from lsp_server.ghost_text import GhostText
from lsp_server.inflight import Job
from lsp_server.ranges import offset_of, range_of
from lsp_server.session import Session, Snapshot
from lsp_server.suggestion import Gap, may_suggest, suggest

DETAIL = "Lacuna"
# Clients sort by this text; a tilde comes behind letters, digits and underscores.
SORT_LAST = "~lacuna"


def completion(
    session: Session, params: types.CompletionParams
) -> Awaitable[types.CompletionList] | types.CompletionList:
    """Claims the document's place and takes the snapshot before anything is awaited."""
    uri = params.text_document.uri
    snapshot = session.snapshot(uri)
    if snapshot is None or not snapshot.settings.menu:
        return _menu([])
    cursor = offset_of(snapshot, params.position)
    job = session.inflight.claim(uri, "menu")
    if not may_suggest(snapshot, cursor):
        job.finish()
        return _menu([])
    return _answer(session, job, snapshot, cursor)


async def _answer(session: Session, job: Job, snapshot: Snapshot, cursor: int) -> types.CompletionList:
    settings = snapshot.settings
    gap = Gap(
        snapshot.document,
        cursor,
        single_line=True,
        automatic=True,
        max_tokens=settings.menu_max_tokens,
        deadline_ms=settings.menu_deadline_ms,
    )
    ghost = await suggest(session, job, snapshot, gap, cursor)
    return _menu([_item(snapshot, cursor, ghost)] if ghost is not None else [])


def _menu(items: list[types.CompletionItem]) -> types.CompletionList:
    """Always incomplete: the entry was made for this cursor and is made anew for the next."""
    return types.CompletionList(is_incomplete=True, items=items)


def _item(snapshot: Snapshot, cursor: int, ghost: GhostText) -> types.CompletionItem:
    """One plain edit, from the word's start to the end of what the text takes the place of: all on one line."""
    start = word_start(snapshot.document.text, cursor)
    text = snapshot.document.text[start : ghost.start] + ghost.text
    return types.CompletionItem(
        label=text.strip(),
        kind=types.CompletionItemKind.Text,
        detail=DETAIL,
        filter_text=text,
        sort_text=SORT_LAST,
        insert_text_format=types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AsIs if snapshot.capabilities.text_as_is else None,
        text_edit=types.TextEdit(range_of(snapshot, start, ghost.end), text),
    )


def word_start(text: str, offset: int) -> int:
    """Where the word that ends at `offset` begins: letters of any script, digits and underscores."""
    start = offset
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    return start
