"""A selection rewritten: asked of the engine, cleaned, and turned into an edit of exactly one document version."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from lsprotocol import types

from engine.protocol.messages import Done, Fill, Rewrite
from lsp_server import edits, ghost_text, rewrite_text, syntax
from lsp_server.document import Document, for_model
from lsp_server.drafts import draft_feed
from lsp_server.errors import NoAnswer, content_modified
from lsp_server.inflight import Job, Superseded
from lsp_server.privacy import refusal
from lsp_server.question import ask
from lsp_server.ranges import range_of, workspace_edit
from lsp_server.rewrite import gap_of
from lsp_server.session import Session, Snapshot
from lsp_server.suggestion import inserted_text
from lsp_server.surroundings import window_of

UNSHARED = "Lacuna: this file is not given to the engine (it looks like a secret, or is too large)."
TURNED_OFF = "Lacuna: nothing was changed, since Lacuna is turned off. Set `enable` in its settings to true."
CUT_OFF = "Lacuna: the answer was cut off before its end; nothing was changed."
NO_CHANGE = "Lacuna: nothing to change here."


@dataclass(frozen=True, slots=True)
class Selection:
    """The text from `start` to `end`, and what to do with it: an empty `instruction` fills it from around."""

    start: int
    end: int
    instruction: str

    @classmethod
    def to_fill(cls, document: Document, start: int, end: int) -> Selection:
        """The gap in a selection of `document` that is to be filled from its surroundings."""
        return cls(*gap_of(document.text, start, end), "")

    def surroundings_in(self, document: Document) -> tuple[str, str]:
        """All the text before and behind, with `\\n` line ends."""
        return for_model(document.text[: self.start]), for_model(document.text[self.end :])


def may_revise(session: Session, snapshot: Snapshot) -> bool:
    """Whether the engine may be asked to revise this document. If not, the person is told why."""
    if not snapshot.settings.enable:
        session.answer_act(TURNED_OFF)
        return False
    if refusal(snapshot.document, snapshot.settings) is not None:
        session.answer_act(UNSHARED)
        return False
    return True


async def revise(session: Session, job: Job, snapshot: Snapshot, selection: Selection) -> types.WorkspaceEdit | None:
    """The edit, or None when there is none to make (the person is told why). Finishes the job.

    Raises JsonRpcContentModified when the document is no longer the snapshot's.
    """
    try:
        feed = draft_feed(session, snapshot, range_of(snapshot, selection.start, selection.end))
        done = await ask(session, job, _request(snapshot, selection, wants_drafts=feed is not None), feed)
    except Superseded:
        raise content_modified() from None
    except NoAnswer as nothing:
        session.answer_act(nothing.notice.text, is_fault=nothing.notice.is_fault)
        return None
    finally:
        job.finish()
    if not session.is_current(snapshot):
        raise content_modified()
    if done.stats.stop in ("budget", "deadline"):
        session.answer_act(CUT_OFF)
        return None
    replacements = _replacements(snapshot, selection, done)
    if not replacements:
        session.answer_act(NO_CHANGE)
        return None
    return workspace_edit(snapshot, replacements)


def _request(snapshot: Snapshot, selection: Selection, *, wants_drafts: bool) -> Fill | Rewrite:
    settings = snapshot.settings
    window = window_of(snapshot, snapshot.document, selection.start, selection.end)
    before, after = window.prefix, window.suffix
    selected = for_model(snapshot.document.text[selection.start : selection.end])
    job_id, language = uuid4().hex, snapshot.document.language
    limits = (settings.rewrite_max_tokens, settings.rewrite_deadline_ms)
    if not selection.instruction:
        around = selection.surroundings_in(snapshot.document)
        lines = 1 if syntax.prefers_single_line("".join(around), len(around[0]), language) else 0
        return Fill(job_id, language, before, after, selected, limits[0], lines, limits[1], wants_drafts)
    return Rewrite(job_id, language, before, selected, after, selection.instruction, limits[0], limits[1], wants_drafts)


def _replacements(snapshot: Snapshot, selection: Selection, done: Done) -> list[edits.TextReplacement]:
    """The smallest edits inside the selection that make it the new text; none when that is the present one."""
    text = snapshot.document.text
    selected = text[selection.start : selection.end]
    clean = _filled if not selection.instruction else _rewritten
    new_text = clean(snapshot, selection, done.text)
    if new_text is None or new_text == for_model(selected):
        return []
    new_text = snapshot.document.to_document_newlines(new_text)
    return edits.minimal_edits(selected, new_text, selection.start)


def _rewritten(snapshot: Snapshot, selection: Selection, raw: str) -> str | None:
    before, after = selection.surroundings_in(snapshot.document)
    selected = for_model(snapshot.document.text[selection.start : selection.end])
    language, instruction = snapshot.document.language, selection.instruction
    return rewrite_text.clean_rewrite(raw, before, selected, after, language, instruction)


def _filled(snapshot: Snapshot, selection: Selection, raw: str) -> str | None:
    """The gap's text by the rules of ghost text: what repeats the surroundings is taken off, the rest stays."""
    before, after = selection.surroundings_in(snapshot.document)
    around, offset = before + after, len(before)
    ghost = ghost_text.present(raw, around, offset, snapshot.document.language, automatic=False)
    return inserted_text(ghost, around, offset) if ghost is not None else None
