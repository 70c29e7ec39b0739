"""textDocument/completion: one entry in the menu, below those of other servers.

The entry replaces the word before the cursor, so that its filter text matches what the user has typed; where the
editor offers both, replacing takes the rest of the word behind the cursor too. The menu is never held up: at the
deadline it goes without the entry, and asks again with the next key.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from lsprotocol import types

from lsp_server import acceptance
from lsp_server.document import Document
from lsp_server.ghost_text import GhostText
from lsp_server.inflight import Job
from lsp_server.memory import Offer
from lsp_server.ranges import offset_of, range_of
from lsp_server.session import Session, Snapshot
from lsp_server.settings import Settings
from lsp_server.suggestion import Gap, inserted_text, may_suggest, suggest
from lsp_server.words import word_end, word_start

DETAIL = "Lacuna"
# Clients sort by this text; a tilde comes behind letters, digits and underscores.
SORT_LAST = "~lacuna"
# The engine's share of the deadline: its best text so far must arrive before the menu goes without it.
ENGINE_SHARE = 0.8


def completion(
    session: Session, params: types.CompletionParams
) -> Awaitable[types.CompletionList] | types.CompletionList:
    """Claims the document's place and takes the snapshot before anything is awaited."""
    uri = params.text_document.uri
    snapshot = session.snapshot(uri)
    if snapshot is None or not snapshot.settings.menu:
        return _menu(None)
    cursor = offset_of(snapshot, params.position)
    session.vicinity.look(uri, cursor)
    job = session.inflight.claim(uri, "menu")
    if not may_suggest(snapshot, cursor):
        job.finish()
        return _menu(None)
    if (known := _known(session, snapshot, cursor)) is not None:
        job.finish()
        session.wake_engine()
        session.typing.acceptance.recalled += 1
        return _menu(_Entry(snapshot, cursor, known.texts[0], known.ticket))
    pause_s = session.typing.debounce.pause_s((uri, "menu"), snapshot.settings.inline_debounce_ms / 1000)
    return _answer(session, job, snapshot, cursor, pause_s)


def _known(session: Session, snapshot: Snapshot, cursor: int) -> Offer | None:
    """What was offered here a moment ago: in the menu, or as ghost text of one line."""
    for kind in ("menu", "inline"):
        offer = session.typing.memory.recall(kind, snapshot.document, cursor, snapshot.settings)
        if offer is not None and "\n" not in offer.texts[0].text:
            is_wanted = session.typing.deletions.without(snapshot.document.uri, offer.texts[:1])
            return offer if is_wanted else None
    return None


async def _answer(session: Session, job: Job, snapshot: Snapshot, cursor: int, pause_s: float) -> types.CompletionList:
    gap = _gap(snapshot.document, cursor, snapshot.settings, pause_s)
    ghosts = await suggest(session, job, snapshot, gap, cursor, pause_s)
    if not ghosts:
        return _menu(None)
    ticket = session.typing.acceptance.offered(snapshot.document.uri)
    session.typing.memory.keep(
        "menu", snapshot.document, cursor, Offer(ghosts, ticket, snapshot.settings, is_full=True)
    )
    return _menu(_Entry(snapshot, cursor, ghosts[0], ticket))


def _gap(document: Document, cursor: int, settings: Settings, pause_s: float) -> Gap:
    """One line, in what the pause leaves of the menu's deadline."""
    left_s = max(settings.menu_deadline_ms / 1000 - pause_s, 0.001)
    return Gap(
        document,
        cursor,
        single_line=True,
        automatic=True,
        max_tokens=settings.menu_max_tokens,
        deadline_ms=max(1, int(left_s * 1000 * ENGINE_SHARE)),
        patience_s=left_s,
    )


class _Entry:
    """One entry, as the editor at the other end can read it. `ticket` names it when it is accepted.

    An edit has one text for both of its ranges. Inserting ends at the cursor where the text agrees with what stands
    behind it, and replacing takes the rest of the word; where it does not agree, both take the place of what must go.
    """

    def __init__(self, snapshot: Snapshot, cursor: int, ghost: GhostText, ticket: str) -> None:
        document = snapshot.document
        self._snapshot = snapshot
        self._ticket = ticket
        self._start = word_start(document, cursor)
        self._end = ghost.end
        self._text = document.slice(self._start, ghost.start) + ghost.text
        inserted = _inserted(document, cursor, ghost) if snapshot.capabilities.inserts_or_replaces else None
        if inserted is not None:
            self._end = cursor
            self._text = document.slice(self._start, cursor) + inserted
        self._replaced = max(self._end, word_end(document, cursor))

    def listed(self) -> types.CompletionList:
        """The list of this one entry; what the editor takes as a default of the list is said there."""
        item, known = self._item(), self._snapshot.capabilities.menu_defaults
        defaults = types.CompletionItemDefaults()
        if "insertTextFormat" in known:
            defaults.insert_text_format, item.insert_text_format = item.insert_text_format, None
        if "insertTextMode" in known:
            defaults.insert_text_mode, item.insert_text_mode = item.insert_text_mode, None
        if "data" in known:
            defaults.data, item.data = item.data, None
        if "editRange" in known:
            defaults.edit_range, item.text_edit, item.text_edit_text = self._edit_range(), None, self._text
        said = defaults if defaults != types.CompletionItemDefaults() else None
        return types.CompletionList(is_incomplete=True, items=[item], item_defaults=said)

    def _item(self) -> types.CompletionItem:
        """One plain edit, from the word's start to the end of what the text takes the place of: all on one line."""
        return types.CompletionItem(
            label=self._text.strip().partition("\n")[0],
            kind=types.CompletionItemKind.Text,
            detail=DETAIL,
            filter_text=self._text,
            sort_text=SORT_LAST,
            insert_text_format=types.InsertTextFormat.PlainText,
            insert_text_mode=types.InsertTextMode.AsIs if self._snapshot.capabilities.text_as_is else None,
            text_edit=self._edit(),
            command=acceptance.report_of(self._ticket),
            data=self._data(),
        )

    def _edit(self) -> types.TextEdit | types.InsertReplaceEdit:
        inserting = range_of(self._snapshot, self._start, self._end)
        if self._snapshot.capabilities.inserts_or_replaces:
            return types.InsertReplaceEdit(self._text, insert=inserting, replace=self._replacing())
        return types.TextEdit(inserting, self._text)

    def _edit_range(self) -> types.Range | types.EditRangeWithInsertReplace:
        inserting = range_of(self._snapshot, self._start, self._end)
        if self._snapshot.capabilities.inserts_or_replaces:
            return types.EditRangeWithInsertReplace(insert=inserting, replace=self._replacing())
        return inserting

    def _replacing(self) -> types.Range:
        return range_of(self._snapshot, self._start, self._replaced)

    def _data(self) -> dict[str, Any]:
        """What `completionItem/resolve` shows the difference by."""
        document = self._snapshot.document
        place = {"uri": document.uri, "version": document.version, "start": self._start, "end": self._end}
        return place | {"text": self._text}


def _menu(entry: _Entry | None) -> types.CompletionList:
    """Always incomplete: the entry was made for this cursor and is made anew for the next."""
    return entry.listed() if entry is not None else types.CompletionList(is_incomplete=True, items=[])


def _inserted(document: Document, cursor: int, ghost: GhostText) -> str | None:
    """See `suggestion.inserted_text`; a text that is offered begins at the cursor."""
    behind = GhostText(0, ghost.end - cursor, ghost.text)
    return inserted_text(behind, document.slice(cursor, ghost.end), 0) or None
