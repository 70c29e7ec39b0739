"""One act of a person's: an edit asked for, followed through changes of the document, told of, and answered.

Owns what happens around the asking: the job's claim and its span, progress, drafts, and the one message a person gets
when nothing comes of it. Knows nothing of how a request is made or what an answer is worth: see `revision` and
`hole_filling`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from pygls.exceptions import JsonRpcRequestCancelled

from engine.protocol.messages import Done, Draft, Fill, Filled, Rewrite
from lsp_server.drafts import DraftFeed, Place, draft_feed
from lsp_server.errors import NoAnswer, Notice, content_modified, overtaken
from lsp_server.inflight import Job, Superseded
from lsp_server.privacy import explained, refusal
from lsp_server.progress import Progress, Token
from lsp_server.question import ask
from lsp_server.rebase import Anchor
from lsp_server.rewrite_text import placed_draft
from lsp_server.session import Session, Snapshot

UNSETTLED = (
    "Lacuna: nothing was changed, since the editor has not said yet what its settings are. Ask again in a moment."
)
TURNED_OFF = "Lacuna: nothing was changed, since Lacuna is turned off. Set `enable` in its settings to true."
NO_CHANGE = "Lacuna: nothing to change here."
CUT_OFF = Notice("cut off", "Lacuna: the answer was cut off before its end; nothing was changed.", prominent=True)

# What a gap without a text of its own is taken to need: a line or two.
_CHARS_OF_A_GAP = 80

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Part:
    """Which of how many gaps of one errand a question is about; of several gaps the first."""

    number: int = 0
    count: int = 1


class Errand:
    """A job on `[start, end)` of a snapshot's document, which follows changes outside of it.

    Make one before the first await. `title` names it to the person; `token` is the client's for progress, if it
    gave one. One that is not alone lets others live that are about other places; see `inflight.Job`.
    """

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        start: int,
        end: int,
        title: str,
        token: Token | None,
        *,
        is_alone: bool = True,
    ) -> None:
        self.title = title
        self.anchor = Anchor(start, end)
        self._session = session
        self._uri = snapshot.document.uri
        self._token = token
        self._job: Job = session.inflight.claim(self._uri, "rewrite", self.anchor, is_alone=is_alone)
        self._job.outlives = self.anchor.follow
        self._progress = Progress(
            session.progress,
            session.editor,
            session.clock,
            f"Lacuna: {title}",
            self._job.supersede,
            token=token,
            creates=snapshot.capabilities.shows_progress,
        )

    @property
    def snapshot(self) -> Snapshot:
        """The document as it is now: `anchor` says where the errand's text stands in it. Raises Superseded if gone."""
        snapshot = None if self._job.is_superseded else self._session.snapshot(self._uri)
        if snapshot is None:
            raise Superseded
        return snapshot

    async def run(self, work: Callable[[], Awaitable[Result]]) -> Result | None:
        """What `work` gives; None when nothing came of it, and the person was told why. Finishes the job.

        Raises JsonRpcContentModified when the document changed under it, JsonRpcRequestCancelled when the person
        cancelled its progress, asked for something newer or turned Lacuna off.
        """
        try:
            async with self._progress:
                return await work()
        except Superseded:
            if self._progress.is_cancelled:
                raise JsonRpcRequestCancelled("cancelled") from None
            if self._job.is_superseded and self._job.why != "changed":
                raise overtaken(by_settings=self._job.why == "turned off") from None
            raise content_modified() from None
        except NoAnswer as nothing:
            self.tell(nothing.notice.text, is_fault=nothing.notice.is_fault)
            return None
        finally:
            self._job.finish()

    async def ask(self, request: Fill | Rewrite, part: Part | None = None) -> Done:
        """The engine's whole answer. Raises NoAnswer, also where all of it was cut off, and Superseded."""
        snapshot = self.snapshot
        feed = draft_feed(self._session, snapshot, self._place, self._token) if request.wants_drafts else None
        expected = len(request.draft if isinstance(request, Fill) else request.selection) or _CHARS_OF_A_GAP
        listener = self._listener(feed, expected, part or Part(), request)
        if self._session.engine.state != "ready":
            self._progress.say("waiting for the engine")
        done = await ask(self._session, self._job, request, listener)
        if all(is_cut_off(filled) for filled in done.holes):
            raise NoAnswer(CUT_OFF)
        return done

    @property
    def wants_drafts(self) -> bool:
        """Whether anybody looks at what is settled so far."""
        snapshot = self.snapshot
        return self._progress.is_wanted or snapshot.settings.drafts or snapshot.capabilities.wants_drafts

    def tell(self, text: str, *, is_fault: bool = False) -> None:
        """Tell the person what came of it."""
        self._session.answer_act(text, is_fault=is_fault)

    def _place(self) -> Place | None:
        document = None if self._job.is_superseded else self._session.document(self._uri)
        if document is None:
            return None
        return Place(document, self._session.encoding, self.anchor.start, self.anchor.end)

    def _listener(
        self, feed: DraftFeed | None, expected: int, part: Part, request: Fill | Rewrite
    ) -> Callable[[Draft], None]:
        def hear(draft: Draft) -> None:
            number = part.number + draft.hole
            if feed is not None:
                feed(_placed(draft, request), number if part.count > 1 else None)
            self._progress.report(draft.settled, expected, number, part.count)

        return hear


def _placed(draft: Draft, request: Fill | Rewrite) -> Draft:
    """A draft as it would stand in the document."""
    if isinstance(request, Fill):
        return draft
    text, settled = placed_draft(draft.text, draft.settled, request.selection)
    return replace(draft, text=text, settled=settled)


def is_cut_off(filled: Filled) -> bool:
    """Whether a text ends where its budget or its time did, and not where it is complete."""
    return filled.stop in ("budget", "deadline")


def may_ask(session: Session, snapshot: Snapshot) -> bool:
    """Whether the engine may be asked about this document at all. If not, the person is told why."""
    if session.awaits_settings:
        session.answer_act(UNSETTLED)
        return False
    if not snapshot.settings.enable:
        session.answer_act(TURNED_OFF)
        return False
    refused = refusal(snapshot.document, snapshot.settings)
    if refused is not None:
        session.answer_act(explained(refused))
        return False
    return True
