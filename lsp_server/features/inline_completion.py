"""textDocument/inlineCompletion: ghost text at the cursor.

The newest request of a document wins: an older one is answered null at once. While keys come in quick succession
only the last of them asks the engine.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass

from lsprotocol import types

from lsp_server.document import Document
from lsp_server.ghost_text import GhostText
from lsp_server.inflight import Job
from lsp_server.ranges import offset_of, range_of, span_of
from lsp_server.session import Session, Snapshot
from lsp_server.suggestion import Gap, inserted_text, is_single_line, may_suggest, suggest

Reply = types.InlineCompletionList | None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The menu entry selected now: an item must extend `text` and replace exactly `start` to `end`."""

    start: int
    end: int
    text: str


def inline_completion(session: Session, params: types.InlineCompletionParams) -> Awaitable[Reply] | None:
    """Claims the document's place and takes the snapshot before anything is awaited."""
    uri = params.text_document.uri
    snapshot = session.snapshot(uri)
    if snapshot is None or not snapshot.settings.inline:
        return None
    cursor = offset_of(snapshot, params.position)
    job = session.inflight.claim(uri, "inline")
    if not may_suggest(snapshot, cursor):
        job.finish()
        return None
    automatic = params.context.trigger_kind == types.InlineCompletionTriggerKind.Automatic
    chosen = _chosen(snapshot, params.context.selected_completion_info)
    pause_s = session.pause_before_asking(uri) if automatic else 0.0
    return _answer(session, job, snapshot, _gap(snapshot, cursor, chosen, automatic), cursor, chosen, pause_s)


def _chosen(snapshot: Snapshot, info: types.SelectedCompletionInfo | None) -> Chosen | None:
    return Chosen(*span_of(snapshot, info.range), info.text) if info is not None else None


def _gap(snapshot: Snapshot, cursor: int, chosen: Chosen | None, automatic: bool) -> Gap:
    """The cursor, or where it would stand once the selected menu entry is accepted."""
    document, settings, offset = snapshot.document, snapshot.settings, cursor
    if chosen is not None:
        text = document.text[: chosen.start] + chosen.text + document.text[chosen.end :]
        document = Document.open(document.uri, document.version, document.language, text)
        offset = chosen.start + len(chosen.text)
    return Gap(
        document,
        offset,
        single_line=is_single_line(document, offset),
        automatic=automatic,
        max_tokens=settings.inline_max_tokens,
        deadline_ms=settings.inline_deadline_ms,
    )


async def _answer(
    session: Session, job: Job, snapshot: Snapshot, gap: Gap, cursor: int, chosen: Chosen | None, pause_s: float
) -> Reply:
    ghost = await suggest(session, job, snapshot, gap, cursor, pause_s)
    item = _item(snapshot, gap, ghost, chosen) if ghost is not None else None
    return types.InlineCompletionList(items=[item]) if item is not None else None


def _item(snapshot: Snapshot, gap: Gap, ghost: GhostText, chosen: Chosen | None) -> types.InlineCompletionItem | None:
    start, end, text = ghost.start, ghost.end, ghost.text
    if chosen is not None:
        inserted = inserted_text(ghost, gap.document.text, gap.offset)
        if not inserted:
            return None
        start, end, text = chosen.start, chosen.end, chosen.text + inserted
    area = range_of(snapshot, start, end)
    # The range of an item must not leave its line (LSP 3.18, InlineCompletionItem.range).
    if area.start.line != area.end.line:
        return None
    return types.InlineCompletionItem(insert_text=text, range=area)
