"""lacuna/draft: a text while it is denoised, for editors that asked for it.

`{uri, version, range, text, settled, step, steps, hole?, token?}`. `text` is what would stand in `range` by now, with
line feeds for line ends; the first `settled` code points of it change no more, unless a text is begun anew. `version`
and `range` are those of this moment: a rewrite moves when other lines change. `hole` says which of several holes it is
of, from 0, `token` is the `workDoneToken` of the request. At most `MOST_PER_SECOND` are sent, and the last may be
missing: the result is the answer, not a draft.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.protocol.messages import Draft
from lsp_server.client import Editor
from lsp_server.clock import Clock
from lsp_server.document import Document
from lsp_server.positions import PositionEncoding
from lsp_server.progress import Token
from lsp_server.session import Session, Snapshot

MOST_PER_SECOND = 20


@dataclass(frozen=True, slots=True)
class Place:
    """`[start, end)` of one version of a document, in code points."""

    document: Document
    encoding: PositionEncoding
    start: int
    end: int

    def to_json(self) -> dict[str, Any]:
        """uri, version and range, as an editor counts."""
        first, last = self.document.index.to_range(self.start, self.end, self.encoding)
        area = {"start": first._asdict(), "end": last._asdict()}
        return {"uri": self.document.uri, "version": self.document.version, "range": area}


class DraftFeed:
    """Sends the drafts of one job, at most `MOST_PER_SECOND`; those between are dropped, the result follows anyway.

    `where` says where the text stands by now, None when it is gone. `token` is what the client knows the job by.
    """

    def __init__(
        self, editor: Editor, clock: Clock, where: Callable[[], Place | None], token: Token | None = None
    ) -> None:
        self._editor = editor
        self._clock = clock
        self._where = where
        self._token = token
        self._sent_at: float | None = None

    def __call__(self, draft: Draft, hole: int | None = None) -> None:
        """Send `draft` unless another went out a moment ago. `settled` counts code points of `text`.

        hole: which of several holes it is of, from 0; None for a job about one place, which does not say.
        """
        now = self._clock.now()
        if self._sent_at is not None and now - self._sent_at < 1 / MOST_PER_SECOND:
            return
        place = self._where()
        if place is None:
            return
        self._sent_at = now
        progress = {"text": draft.text, "settled": draft.settled, "step": draft.step, "steps": draft.steps}
        known = {"hole": hole, "token": self._token}
        told = {name: value for name, value in known.items() if value is not None}
        self._editor.send_draft(place.to_json() | progress | told)


def draft_feed(
    session: Session, snapshot: Snapshot, where: Callable[[], Place | None], token: Token | None = None
) -> DraftFeed | None:
    """The feed for a job at a place, None when the editor did not ask for drafts."""
    if not (snapshot.settings.drafts or snapshot.capabilities.wants_drafts):
        return None
    return DraftFeed(session.editor, session.clock, where, token)
