"""Lines a person deleted a moment ago: nothing may come by itself that puts one of them back.

A line counts as deleted when a change leaves fewer lines with text in its place and the line is none of them; what is
typed, replaced or taken back letter by letter inside a line does not. Owns the deleted lines of the open documents.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from lsp_server.clock import Clock
from lsp_server.document import Change, Document, apply_changes, for_model
from lsp_server.ghost_text import GhostText
from lsp_server.line_index import LineIndex
from lsp_server.positions import PositionEncoding

# How long nobody wants to see again what they deleted.
KEPT_S = 30.0
# Shorter lines (`else:`, `return`, brackets) are deleted in one place and wanted in the next.
LEAST_LETTERS = 8
LINES_KEPT = 64
# Who deletes more at once, or has it formatted, deletes no line in particular.
LONGEST_CHARS = 4096


class Deletions:
    """What was deleted lately, by document."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: dict[str, deque[tuple[float, str]]] = {}

    def changed(self, before: Document, after: Document, changes: Sequence[Change], encoding: PositionEncoding) -> None:
        """A document moved from `before` to `after` by `changes`, each seen by the next."""
        if all(change.start == change.end for change in changes):
            return
        for change in changes[:-1]:
            between = apply_changes(before, after.version, [change], encoding)
            self._keep(before.uri, _deleted(before.index, between.index, change, encoding))
            before = between
        self._keep(before.uri, _deleted(before.index, after.index, changes[-1], encoding))

    def _keep(self, uri: str, lines: Iterable[str]) -> None:
        now = self._clock.now()
        for line in lines:
            self._lines.setdefault(uri, deque(maxlen=LINES_KEPT)).append((now, line))

    def without(self, uri: str, ghosts: tuple[GhostText, ...]) -> tuple[GhostText, ...]:
        """The suggestions that put back no line that was deleted within `KEPT_S`."""
        since = self._clock.now() - KEPT_S
        deleted = {line for at, line in self._lines.get(uri, ()) if at > since}
        if not deleted:
            return ghosts
        return tuple(ghost for ghost in ghosts if not deleted & {line.strip() for line in ghost.text.split("\n")})

    def forget(self, uri: str) -> None:
        """Drop what is known of a document."""
        self._lines.pop(uri, None)


def _deleted(before: LineIndex, after: LineIndex, change: Change, encoding: PositionEncoding) -> list[str]:
    """The lines with text, stripped, that a change of `before` to `after` took away and did not put back."""
    removed = len(before.rope) - len(after.rope) + len(change.text)
    if change.start is None or not LEAST_LETTERS <= removed <= LONGEST_CHARS:
        return []
    start = before.offset_at(change.start, encoding)
    old, new = _lines(before, start, start + removed), _lines(after, start, start + len(change.text))
    if len(new) >= len(old):
        return []
    return [line for line in old if line not in new and sum(map(str.isalnum, line)) >= LEAST_LETTERS]


def _lines(index: LineIndex, start: int, stop: int) -> list[str]:
    """The lines with text that `[start, stop]` touches, stripped."""
    first, last = index.line_start(index.line_at(start)), index.line_end(index.line_at(stop))
    touched = for_model(index.rope.slice(first, last))
    return [line for line in map(str.strip, touched.split("\n")) if line]
