"""textDocument/inlineCompletion: ghost text at the cursor.

The newest request of a document wins: an older one is answered null at once. Typing on through what was offered, or
back, is answered from memory, also back over a letter that left it; right after an undo nothing comes by itself. While
requests come in quick succession only the last of them asks the engine. Who asks explicitly gets several texts, as many
as are there in time; the others are made behind the answer, for who asks again. What comes by itself is one.

A word is not torn: inside one that stands nearby once more or is Python's own, and so is whole, no engine is asked;
inside any other only a text that makes the word longer is offered.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Hashable, Iterable, Iterator
from dataclasses import dataclass

from lsprotocol import types

from lsp_server import acceptance
from lsp_server.alternatives import distinct
from lsp_server.document import Document
from lsp_server.gathering import Gathering
from lsp_server.ghost_text import GhostText
from lsp_server.inflight import Job, Superseded
from lsp_server.memory import Offer
from lsp_server.ranges import offset_of, range_of, span_of
from lsp_server.session import Session, Snapshot
from lsp_server.suggestion import Gap, inserted_text, may_suggest, suggest
from lsp_server.undoing import key_between
from lsp_server.words import is_inside_word, is_known_word, word_end, word_start

Reply = types.InlineCompletionList | None
# An editor that has not said its settings for so long is slow or says none.
SETTINGS_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Chosen:
    """The menu entry selected now: an item must extend `text` and replace exactly `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: the snapshot of its document, the gap to fill, and the menu entry it must extend."""

    snapshot: Snapshot
    gap: Gap
    cursor: int
    chosen: Chosen | None

    @property
    def place(self) -> Hashable:
        """What the answer depends on beside the document."""
        return self.cursor, self.chosen, self.snapshot.settings


def inline_completion(session: Session, params: types.InlineCompletionParams) -> Awaitable[Reply] | Reply:
    """Claims the document's place and takes the snapshot before anything is awaited."""
    snapshot = session.snapshot(params.text_document.uri)
    if snapshot is None:
        return None
    if session.awaits_settings:
        job = session.inflight.claim(snapshot.document.uri, "inline")
        return _once_settings_are_known(session, params, job, snapshot.document)
    return _offered(session, params, snapshot) if snapshot.settings.inline else None


def _offered(session: Session, params: types.InlineCompletionParams, snapshot: Snapshot) -> Awaitable[Reply] | Reply:
    uri = params.text_document.uri
    cursor = offset_of(snapshot, params.position)
    session.vicinity.look(uri, cursor)
    automatic = params.context.trigger_kind == types.InlineCompletionTriggerKind.Automatic
    chosen = _chosen(snapshot, params.context.selected_completion_info)
    asked = Asked(snapshot, _gap(snapshot, cursor, chosen, automatic), cursor, chosen)
    known = session.typing.memory.recall("inline", asked.gap.document, asked.gap.offset, snapshot.settings)
    behind = session.typing.gathering.get(uri)
    if known is not None and behind is not None and behind.serves(snapshot.document, asked.place):
        # The work for this place goes on; whoever asks for more waits for it.
        return _recalled(session, asked, known) if automatic else _gathered(session, asked, known, behind)
    job = session.inflight.claim(uri, "inline")
    if not may_suggest(snapshot, cursor) or _is_inside_whole_word(asked.gap):
        job.finish()
        return None
    taken_back = session.typing.undoing.taken_back(snapshot.document) if automatic else None
    if taken_back is not None:
        job.finish()
        return _recalled(session, asked, known) if known and _is_a_key(asked, known, taken_back) else None
    if known is not None and (automatic or known.is_full):
        job.finish()
        return _recalled(session, asked, known)
    trigger = "automatic" if automatic else "invoked"
    pause_s = session.typing.debounce.pause_s((uri, trigger), snapshot.settings.inline_debounce_ms / 1000)
    return _answer(session, job, asked, known, pause_s)


async def _once_settings_are_known(
    session: Session, params: types.InlineCompletionParams, job: Job, document: Document
) -> Reply:
    """The first keys of a session come before its settings: they are answered by these, and not only the next key."""
    try:
        await job.run(session.settings_known(), SETTINGS_PATIENCE_S)
    except (Superseded, TimeoutError):
        return None
    finally:
        job.finish()
    if session.document(document.uri) is not document:
        return None
    reply = inline_completion(session, params)
    return await reply if isinstance(reply, Awaitable) else reply


def _is_inside_whole_word(gap: Gap) -> bool:
    """Whether the gap would tear a word that is known, and so complete."""
    document, offset = gap.document, gap.offset
    if not is_inside_word(document, offset):
        return False
    return is_known_word(document, word_start(document, offset), word_end(document, offset))


def _tears_word(gap: Gap, ghost: GhostText) -> bool:
    """Whether accepting `ghost` would do anything to the word around the gap but make it longer."""
    if not is_inside_word(gap.document, gap.offset):
        return False
    return re.fullmatch(r"\w+", inserted_text(ghost, gap.document.text, gap.offset) or "") is None


def _is_a_key(asked: Asked, known: Offer, before: Document) -> bool:
    """Whether one Backspace behind what is known here, or one letter again, led from the version before to this one.

    Whatever else brings back an older text is an undo: nobody wants to be shown at once what they took back. So is a
    Backspace over all there was to accept.
    """
    document, cursor = asked.snapshot.document, asked.cursor
    if asked.chosen is not None:
        return False
    if before.length < document.length:
        return key_between(before, document, cursor - 1) is not None
    letter = key_between(document, before, cursor)
    return letter is not None and all(ghost.text != letter for ghost in known.texts)


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
        single_line=None,
        automatic=automatic,
        max_tokens=settings.inline_max_tokens,
        deadline_ms=settings.inline_deadline_ms,
        texts=1 if automatic else settings.inline_alternatives,
    )


def _recalled(session: Session, asked: Asked, known: Offer) -> Reply:
    """The answer out of memory: no engine is asked, but one that left is called back for the next key."""
    session.wake_engine()
    session.typing.acceptance.recalled += 1
    texts = known.texts
    if asked.gap.automatic:
        texts = session.typing.deletions.without(asked.gap.document.uri, texts[:1])
    return _listed(asked, texts, known.ticket)


async def _answer(session: Session, job: Job, asked: Asked, known: Offer | None, pause_s: float) -> Reply:
    """What the engine says, behind what was offered here before."""
    gathering = Gathering(asked.snapshot.document, asked.place, job)
    work = suggest(session, job, asked.snapshot, asked.gap, asked.cursor, pause_s, gathering.tell)
    gathering.begin(work)
    return await _gathered(session, asked, known, gathering)


async def _gathered(session: Session, asked: Asked, known: Offer | None, gathering: Gathering) -> Reply:
    """What is there in time of the texts, behind what was offered here before; the others are kept when they come."""
    fresh = await gathering.within(asked.snapshot.settings.inline_alternatives_ms / 1000)
    if gathering.is_superseded or not session.is_current(asked.snapshot):
        return None
    offer = _kept(session, asked, known, fresh, is_full=gathering.is_over)
    if not gathering.is_over:
        session.typing.gathering[asked.snapshot.document.uri] = gathering
        gathering.afterwards(lambda ghosts: _keep_late(session, asked, offer, ghosts))
    return _listed(asked, offer.texts, offer.ticket) if offer is not None else None


def _keep_late(session: Session, asked: Asked, offer: Offer | None, ghosts: tuple[GhostText, ...]) -> None:
    """Texts that came behind an answer, for who asks again at this place; nobody does once the document moved on."""
    if session.is_current(asked.snapshot):
        _kept(session, asked, offer, ghosts, is_full=True)


def _kept(
    session: Session, asked: Asked, known: Offer | None, fresh: tuple[GhostText, ...], *, is_full: bool
) -> Offer | None:
    """Remember `fresh` texts behind those known; None where nothing is to be offered."""
    ghosts = distinct((*(known.texts if known is not None else ()), *fresh))
    texts = tuple(ghost for ghost in ghosts if _place(asked, ghost) is not None)
    if not texts:
        return None
    ticket = known.ticket if known is not None else session.typing.acceptance.offered(asked.gap.document.uri)
    is_full = is_full and bool(fresh) and not asked.gap.automatic
    offer = Offer(texts, ticket, asked.snapshot.settings, is_full)
    session.typing.memory.keep("inline", asked.gap.document, asked.gap.offset, offer)
    return offer


def _listed(asked: Asked, texts: Iterable[GhostText], ticket: str) -> Reply:
    items = list(_items(asked, texts, ticket))
    return types.InlineCompletionList(items=items) if items else None


def _items(asked: Asked, texts: Iterable[GhostText], ticket: str) -> Iterator[types.InlineCompletionItem]:
    for ghost in texts:
        if (place := _place(asked, ghost)) is not None:
            area, text = place
            yield types.InlineCompletionItem(insert_text=text, range=area, command=acceptance.report_of(ticket))


def _place(asked: Asked, ghost: GhostText) -> tuple[types.Range, str] | None:
    """Where a text goes and what is inserted there; None where no item can say so."""
    if _tears_word(asked.gap, ghost):
        return None
    start, end, text = ghost.start, ghost.end, ghost.text
    if asked.chosen is not None:
        inserted = inserted_text(ghost, asked.gap.document.text, asked.gap.offset)
        if not inserted:
            return None
        start, end, text = asked.chosen.start, asked.chosen.end, asked.chosen.text + inserted
    area = range_of(asked.snapshot, start, end)
    # The range of an item must not leave its line (LSP 3.18, InlineCompletionItem.range).
    return (area, text) if area.start.line == area.end.line else None
