"""What to suggest at a cursor: the text of one gap, for ghost text and for the menu."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from engine.protocol.messages import Fill
from lsp_server import syntax
from lsp_server.document import Document, for_model
from lsp_server.drafts import draft_feed
from lsp_server.errors import NoAnswer
from lsp_server.ghost_text import GhostText, present_in
from lsp_server.inflight import Job, Superseded
from lsp_server.privacy import typing_refusal
from lsp_server.question import ask
from lsp_server.ranges import range_of
from lsp_server.session import Session, Snapshot
from lsp_server.surroundings import window_of


@dataclass(frozen=True, slots=True)
class Gap:
    """A cursor at `offset` of `document`: the editor's, or what it would be with a menu entry accepted."""

    document: Document
    offset: int
    single_line: bool
    automatic: bool
    max_tokens: int
    deadline_ms: int


def may_suggest(snapshot: Snapshot, offset: int) -> bool:
    """Whether anything may be suggested while typing at `offset`."""
    settings, document = snapshot.settings, snapshot.document
    if not settings.enable or typing_refusal(document, settings) is not None:
        return False
    if settings.in_comments:
        return True
    text, place = _as_the_engine_sees(document, offset)
    return syntax.position_kind(text, place, document.language) == "code"


def is_single_line(document: Document, offset: int) -> bool:
    """Whether one line is what the place asks for."""
    text, place = _as_the_engine_sees(document, offset)
    return syntax.prefers_single_line(text, place, document.language)


def _as_the_engine_sees(document: Document, offset: int) -> tuple[str, int]:
    """The text with `\\n` line ends, which the rules of syntax are written for, and the offset in it."""
    before = for_model(document.text[:offset])
    return before + for_model(document.text[offset:]), len(before)


async def suggest(
    session: Session, job: Job, snapshot: Snapshot, gap: Gap, cursor: int, pause_s: float = 0.0
) -> GhostText | None:
    """The engine's text for `gap`, made presentable; None for nothing, for whatever reason. Finishes the job.

    `cursor` is the offset in the snapshot's document at which drafts are shown.
    """
    try:
        if pause_s:
            await job.run(session.clock.sleep(pause_s))
        feed = draft_feed(session, snapshot, range_of(snapshot, cursor, cursor))
        done = await ask(session, job, _fill(snapshot, gap, wants_drafts=feed is not None), feed)
    except Superseded:
        return None
    except NoAnswer as nothing:
        session.tell(nothing.notice)
        return None
    finally:
        job.finish()
    if not session.is_current(snapshot):
        return None
    return present_in(gap.document, gap.offset, done.text, single_line=gap.single_line, automatic=gap.automatic)


def _fill(snapshot: Snapshot, gap: Gap, *, wants_drafts: bool) -> Fill:
    window = window_of(snapshot, gap.document, gap.offset, gap.offset)
    return Fill(
        id=uuid4().hex,
        language=snapshot.document.language,
        prefix=window.prefix,
        suffix=window.suffix,
        max_tokens=gap.max_tokens,
        max_lines=1 if gap.single_line else 0,
        deadline_ms=gap.deadline_ms,
        wants_drafts=wants_drafts,
    )


def inserted_text(ghost: GhostText, text: str, offset: int) -> str | None:
    """What `ghost` inserts at `offset` if the text around stays as it is; None when it must replace some of it."""
    before, behind = text[ghost.start : offset], text[offset : ghost.end]
    if not ghost.start <= offset <= ghost.end or len(ghost.text) < len(before) + len(behind):
        return None
    if not (ghost.text.startswith(before) and ghost.text.endswith(behind)):
        return None
    return ghost.text[len(before) : len(ghost.text) - len(behind)]
