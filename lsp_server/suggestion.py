"""What to suggest at a cursor: the texts of one gap, for ghost text and for the menu."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from engine.protocol.messages import Done, Fill, Found
from lsp_server import line_scope, syntax
from lsp_server.alternatives import distinct, presentable
from lsp_server.document import Document, for_model
from lsp_server.drafts import DraftFeed, Place, draft_feed
from lsp_server.errors import NoAnswer
from lsp_server.ghost_text import GhostText
from lsp_server.inflight import Job, Superseded
from lsp_server.privacy import typing_refusal
from lsp_server.question import ask
from lsp_server.read_only import is_read_only
from lsp_server.session import Session, Snapshot
from lsp_server.surroundings import window_of

# The rules of syntax read no further than this, so that a request in a large file costs no more than in a small one.
READ_BEFORE_CHARS = 24_000
READ_AFTER_CHARS = 12_000


@dataclass(frozen=True, slots=True)
class Gap:
    """A cursor at `offset` of `document`: the editor's, or what it would be with a menu entry accepted.

    `single_line` of None lets the place decide. `texts` is how many different ones are wanted. `patience_s` is how long
    the answer is waited for at most; None leaves that to the deadline, which the engine keeps.
    """

    document: Document
    offset: int
    single_line: bool | None
    automatic: bool
    max_tokens: int
    deadline_ms: int
    texts: int = 1
    patience_s: float | None = None


def may_suggest(snapshot: Snapshot, offset: int) -> bool:
    """Whether anything may be suggested while typing at `offset`."""
    settings, document = snapshot.settings, snapshot.document
    if not settings.enable or typing_refusal(document, settings) is not None or is_read_only(document.uri):
        return False
    if snapshot.around.is_ignored:
        return False
    if settings.in_comments:
        return True
    text, place = _as_the_engine_sees(document, offset)
    return syntax.position_kind(text, place, document.language) == "code"


def is_single_line(gap: Gap) -> bool:
    """Whether one line is what the place asks for; who asks explicitly gets more wherever more can stand."""
    text, place = _as_the_engine_sees(gap.document, gap.offset)
    if not gap.automatic:
        return syntax.prefers_single_line(text, place, gap.document.language)
    return line_scope.is_single_line(text, place, gap.document.language)


def _as_the_engine_sees(document: Document, offset: int) -> tuple[str, int]:
    """The text around `offset` with `\n` line ends, which the rules of syntax are written for, and the offset in it."""
    before = for_model(document.slice(max(0, offset - READ_BEFORE_CHARS), offset))
    return before + for_model(document.slice(offset, offset + READ_AFTER_CHARS)), len(before)


async def suggest(
    session: Session,
    job: Job,
    snapshot: Snapshot,
    gap: Gap,
    cursor: int,
    pause_s: float = 0.0,
    on_some: Callable[[tuple[GhostText, ...]], None] | None = None,
) -> tuple[GhostText, ...]:
    """The engine's texts for `gap`, made presentable; none for nothing, for whatever reason. Finishes the job.

    What puts back a line deleted a moment ago comes only to who asks.

    `cursor` is the offset in the snapshot's document at which drafts are shown. `pause_s` is spent before asking.
    `on_some` hears what is there each time a text has come, while others are yet to come.
    """
    try:
        if pause_s:
            await job.run(session.clock.sleep(pause_s))
        # Not before the pause: most keys of a burst end there and need not have looked at the syntax.
        is_single = is_single_line(gap) if gap.single_line is None else gap.single_line
        place = Place(snapshot.document, snapshot.encoding, cursor, cursor)
        feed = draft_feed(session, snapshot, lambda: place)
        request = _fill(snapshot, gap, is_single, wants_drafts=feed is not None)
        if request is None:
            return ()

        def on_found(found: Found) -> None:
            if on_some is not None and session.is_current(snapshot):
                on_some(_presented(gap, found, is_single))

        done = await _asked(session, job, gap, request, feed, on_found)
    except Superseded:
        return ()
    except NoAnswer as nothing:
        session.tell(nothing.notice)
        return ()
    finally:
        job.finish()
    if not session.is_current(snapshot):
        return ()
    texts = _presented(gap, done, is_single)
    return session.typing.deletions.without(gap.document.uri, texts) if gap.automatic else texts


def _presented(gap: Gap, said: Done | Found, is_single: bool) -> tuple[GhostText, ...]:
    raws = (said.text, *said.alternatives)
    return distinct(presentable(gap.document, gap.offset, raws, single_line=is_single, automatic=gap.automatic))


async def _asked(
    session: Session,
    job: Job,
    gap: Gap,
    request: Fill,
    feed: DraftFeed | None,
    on_found: Callable[[Found], None],
) -> Done:
    """The engine's answer; the pauses between questions learn from whether it came in time. Raises as `ask` does."""
    try:
        done = await ask(session, job, request, feed, gap.patience_s, on_found)
    except (Superseded, asyncio.CancelledError):
        if not job.is_behind:
            session.typing.debounce.outrun()
        raise
    session.typing.debounce.kept_up()
    return done


def _fill(snapshot: Snapshot, gap: Gap, is_single: bool, *, wants_drafts: bool) -> Fill | None:
    """The question for a gap; None in a text of blanks, where an engine would make up even the language."""
    window = window_of(snapshot, gap.document, gap.offset, gap.offset)
    if window.is_blank:
        return None
    return Fill(
        id=uuid4().hex,
        language=snapshot.document.language,
        prefix=window.prefix,
        suffix=window.suffix,
        max_tokens=gap.max_tokens,
        max_lines=1 if is_single else 0,
        deadline_ms=gap.deadline_ms,
        wants_drafts=wants_drafts,
        alternatives=gap.texts,
    )


def inserted_text(ghost: GhostText, text: str, offset: int) -> str | None:
    """What `ghost` inserts at `offset` if the text around stays as it is; None when it must replace some of it."""
    before, behind = text[ghost.start : offset], text[offset : ghost.end]
    if not ghost.start <= offset <= ghost.end or len(ghost.text) < len(before) + len(behind):
        return None
    if not (ghost.text.startswith(before) and ghost.text.endswith(behind)):
        return None
    return ghost.text[len(before) : len(ghost.text) - len(behind)]
