"""Drafts of a text while it is denoised, as `lacuna/draft` notifications for editors that asked for them."""

from __future__ import annotations

import attrs
from lsprotocol import types

from engine.protocol.messages import Draft
from lsp_server.client import Editor
from lsp_server.clock import Clock
from lsp_server.session import Session, Snapshot

MOST_PER_SECOND = 20


class DraftFeed:
    """Sends the drafts of one job, at most `MOST_PER_SECOND`; those between are dropped, the result follows anyway."""

    def __init__(self, editor: Editor, clock: Clock, snapshot: Snapshot, area: types.Range) -> None:
        self._editor = editor
        self._clock = clock
        self._head = {
            "uri": snapshot.document.uri,
            "version": snapshot.document.version,
            "range": {"start": attrs.asdict(area.start), "end": attrs.asdict(area.end)},
        }
        self._sent_at: float | None = None

    def __call__(self, draft: Draft, hole: int | None = None) -> None:
        """Send `draft` unless another went out a moment ago. `settled` counts code points of `text`.

        hole: which of several holes it is of, from 0; None for a job about one place, which does not say.
        """
        now = self._clock.now()
        if self._sent_at is not None and now - self._sent_at < 1 / MOST_PER_SECOND:
            return
        self._sent_at = now
        progress = {"text": draft.text, "settled": draft.settled, "step": draft.step, "steps": draft.steps}
        self._editor.send_draft(self._head | progress | ({} if hole is None else {"hole": hole}))


def draft_feed(session: Session, snapshot: Snapshot, area: types.Range) -> DraftFeed | None:
    """The feed for a job on `area`, None when the editor did not ask for drafts."""
    if not (snapshot.settings.drafts or snapshot.capabilities.wants_drafts):
        return None
    return DraftFeed(session.editor, session.clock, snapshot, area)
