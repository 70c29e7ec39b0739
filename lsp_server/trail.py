"""Where a place of an older version of a document stands now: the last edits, as offsets.

Bounded: the oldest edits are forgotten, and with them the way from versions as old as that. Knows lengths only; whether
the text at a place is still the same is for its owner to check (see `tickets`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from lsp_server.document import Change, Document, apply_changes
from lsp_server.positions import PositionEncoding

STEPS_KEPT = 256
# A notification with more edits than this is one of a tool over the whole text.
MOST_EDITS = 64


class Edit(NamedTuple):
    """`[start, end)`, code points, became longer by `growth`."""

    start: int
    end: int
    growth: int


class Trail:
    """The steps from version to version of one open document, each the edits of one notification."""

    def __init__(self) -> None:
        self._steps: deque[tuple[int, tuple[Edit, ...]]] = deque(maxlen=STEPS_KEPT)

    def add(self, document: Document, changes: Sequence[Change], encoding: PositionEncoding) -> None:
        """`changes` are about to happen to `document`. With a text that comes anew the trail is lost."""
        edits = []
        for change in changes:
            if change.start is None or change.end is None or len(changes) > MOST_EDITS:
                self._steps.clear()
                return
            start = document.index.offset_at(change.start, encoding)
            end = max(start, document.index.offset_at(change.end, encoding))
            changed = apply_changes(document, document.version, [change], encoding)
            # Measured, not reckoned: two halves of a character that meet are one.
            edits.append(Edit(start, end, changed.length - document.length))
            document = changed
        self._steps.append((document.version, tuple(edits)))

    def follow(self, version: int, start: int, end: int) -> tuple[int, int] | None:
        """Where `[start, end)` of `version` stands now; None when an edit reached into it, or that is not known."""
        versions = [known for known, _ in self._steps]
        if version not in versions:
            return None
        first = len(versions) - 1 - versions[::-1].index(version)
        for _, edits in list(self._steps)[first:]:
            for edit in edits:
                if edit.end <= start:
                    start, end = start + edit.growth, end + edit.growth
                elif edit.start < end:
                    return None
        return start, end
