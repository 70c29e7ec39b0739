"""What was offered a moment ago, so that typing on through it, or back, needs no engine.

Owns the last few suggestions of each document and the question whether one still fits: the text behind the cursor
and the text before it must be the same but for what was typed of the suggestion since, and for the closers an editor
adds to that by itself. Pure; asks nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lsp_server.auto_closed import closers_behind, says_again
from lsp_server.document import Document, for_model
from lsp_server.ghost_text import GhostText
from lsp_server.inflight import Kind
from lsp_server.settings import Settings

# As much text as shapes an engine's answer; what lies further off may change.
BEFORE_CHARS = 4096
AFTER_CHARS = 1024
KEPT_PER_DOCUMENT = 8


@dataclass(frozen=True, slots=True)
class Offer:
    """A suggestion as it was shown: `texts[0]` first, the others in their order. `ticket` names it (`acceptance`).

    `settings` are those it was made under. `is_full`: all that was to be had was asked for, so that asking again would
    bring nothing new.
    """

    texts: tuple[GhostText, ...]
    ticket: str
    settings: Settings
    is_full: bool


@dataclass(frozen=True, slots=True)
class _Kept:
    """An offer and the text around the cursor it was made at. `is_at_end`: `after` reaches the document's end."""

    offer: Offer
    language: str
    offset: int
    before: str
    after: str
    is_at_end: bool


class Memory:
    """The offers of the documents that are open."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, Kind], deque[_Kept]] = {}

    def keep(self, kind: Kind, document: Document, offset: int, offer: Offer) -> None:
        """Remember what was offered at `offset`; an older offer at the same place gives way."""
        new = _kept(document, offset, offer)
        old = self._kept.get((document.uri, kind), ())
        others = [kept for kept in old if _place(kept) != _place(new)]
        self._kept[document.uri, kind] = deque([*others, new], maxlen=KEPT_PER_DOCUMENT)

    def recall(self, kind: Kind, document: Document, offset: int, settings: Settings) -> Offer | None:
        """What is left of an offer once what was typed since is taken off it; the newest offer that fits.

        One that was made under other settings fits no longer.
        """
        for kept in reversed(self._kept.get((document.uri, kind), ())):
            if kept.offer.settings == settings and (texts := tuple(_left_over(kept, document, offset))):
                return replace(kept.offer, texts=texts)
        return None

    def forget(self, uri: str) -> None:
        """Drop everything about a document."""
        for key in [key for key in self._kept if key[0] == uri]:
            del self._kept[key]


def _kept(document: Document, offset: int, offer: Offer) -> _Kept:
    before = document.slice(max(0, offset - BEFORE_CHARS), offset)
    after = document.slice(offset, max(offset + AFTER_CHARS, *(ghost.end for ghost in offer.texts)))
    return _Kept(offer, document.language, offset, before, after, offset + len(after) == document.length)


def _place(kept: _Kept) -> tuple[object, ...]:
    return kept.language, kept.offset, kept.before, kept.after


def _left_over(kept: _Kept, document: Document, offset: int) -> Iterator[GhostText]:
    """The rest of every text of the offer that goes on from what was typed behind its place."""
    if kept.language != document.language or not _stands_before(kept, document, offset):
        return
    typed = for_model(document.slice(kept.offset, offset))
    closers = _closed_behind(kept, document, offset, typed)
    if closers is None:
        return
    for ghost in kept.offer.texts:
        end = offset + len(closers) + ghost.end - kept.offset
        rest = ghost.text[len(typed) :]
        # Nothing is left when what remains is white space or stands behind the cursor already.
        if not ghost.text.startswith(typed) or rest.strip() in ("", document.slice(offset, end).strip()):
            continue
        if says_again(rest, closers):
            yield GhostText(offset, end, rest)


def _stands_before(kept: _Kept, document: Document, offset: int) -> bool:
    """Whether the text before the place is still what it was, and not too much was typed behind it."""
    # A line end may be two characters in the document and is one in the text.
    longest = 2 * max(len(ghost.text) for ghost in kept.offer.texts)
    if not kept.offset <= offset <= kept.offset + longest:
        return False
    return document.slice(kept.offset - len(kept.before), kept.offset) == kept.before


def _closed_behind(kept: _Kept, document: Document, offset: int, typed: str) -> str | None:
    """What the editor closed behind the cursor by itself, mostly nothing; None when other text stands there now."""
    for closers in ("", closers_behind(typed)):
        start = offset + len(closers)
        end = start + len(kept.after)
        is_whole = end == document.length if kept.is_at_end else end <= document.length
        if is_whole and document.slice(offset, end) == closers + kept.after:
            return closers
    return None
