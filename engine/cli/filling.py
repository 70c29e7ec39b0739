"""What `lacuna fill` and `lacuna trace` share: which places of a file are holes, and what goes into them.

`fill_together` sends all holes in one job, `fill_each` one after the other, for who wants to look at each. Imports both
sides of the door, so this is part of the composition root.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from engine.hole_shown import shown_hole
from engine.protocol.messages import MOST_HOLES, TEXTS_WEIGHED, Constraints, Done, Fill, Filled, FurtherHole
from lsp_server.context import window
from lsp_server.document import Document, for_model
from lsp_server.ghost_text import present_in
from lsp_server.syntax import new_errors

PREFIX_CHARS = 8000
SUFFIX_CHARS = 4000
MARK = "<fill>"

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Asking:
    """What is asked of every hole: its budget in tokens, what its text must obey, among how many texts it is chosen."""

    max_tokens: int
    constraints: Constraints | None = None
    best_of: int = TEXTS_WEIGHED

    @property
    def judges_whole(self) -> bool:
        """Whether what is asked can only be said of the whole file."""
        wanted = self.constraints
        return wanted is not None and (wanted.must_parse or bool(wanted.json_schema))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One hole asked for. before, after: the text around it at that time; done: the engine's answer to its job.

    text: the whole text with the hole filled, and inserted what went in; both None when nothing did, and note says why.
    """

    before: str
    after: str
    done: Done
    text: str | None = None
    inserted: str | None = None
    note: str = ""


class Asked(Protocol):
    """What fills a gap: the resident engine, or one inside this process."""

    async def submit(self, request: Fill) -> Done: ...


async def fill_each(engine: Asked, document: Document, spans: Sequence[Span], asking: Asking) -> AsyncIterator[Attempt]:
    """Fill hole after hole from the top, each with the earlier ones already filled; one that fails keeps its mark."""
    text = document.text
    for number, span in enumerate(_from_the_end(text, spans), 1):
        now, offset = _at_hole(document, number, text, span)
        done = await engine.submit(_request(now, [(offset, offset)], asking))
        attempt = _attempt(now, offset, done, done.holes[0], asking)
        text = text if attempt.text is None else attempt.text
        yield attempt


async def fill_together(engine: Asked, document: Document, spans: Sequence[Span], asking: Asking) -> list[Attempt]:
    """Fill all holes in one job (of many in as many as it takes); one that fails keeps its mark."""
    text, attempts = document.text, list[Attempt]()
    from_the_end = _from_the_end(text, spans)
    for first in range(0, len(spans), MOST_HOLES):
        group = from_the_end[first : first + MOST_HOLES]
        now = Document.open(document.uri, first + 1, document.language, text)
        ahead = [(len(text) - start, len(text) - end) for start, end in group]
        done = await engine.submit(_request(now, ahead, asking))
        for number, (span, filled) in enumerate(zip(group, done.holes, strict=True), first + 1):
            here, offset = _at_hole(document, number, text, span)
            attempt = _attempt(here, offset, done, filled, asking)
            text = text if attempt.text is None else attempt.text
            attempts.append(attempt)
    return attempts


def _from_the_end(text: str, spans: Sequence[Span]) -> list[Span]:
    """Spans counted from the text's end, where they stay the same while what is in front of them is filled."""
    return [(len(text) - start, len(text) - end) for start, end in spans]


def _at_hole(document: Document, number: int, text: str, span: Span) -> tuple[Document, int]:
    """The document as it is now without the mark of one hole, and where that hole is."""
    before, after = text[: len(text) - span[0]], text[len(text) - span[1] :]
    return Document.open(document.uri, number, document.language, before + after), len(before)


def _request(document: Document, spans: Sequence[Span], asking: Asking) -> Fill:
    text, (first, *_), (*_, last) = document.text, spans, spans
    # What is judged as a whole is sent as a whole; the engine reads no more of it than else.
    before, behind = (len(text), len(text)) if asking.judges_whole else (PREFIX_CHARS, SUFFIX_CHARS)
    prefix = window(text, first[0], first[0], prefix_chars=before, suffix_chars=behind).prefix
    suffix = window(text, last[1], last[1], prefix_chars=before, suffix_chars=behind).suffix
    islands = [for_model(text[left[1] : right[0]]) for left, right in pairwise(spans)]
    shown = shown_hole(document.language)
    # Holes this job is not about are shown as open: an empty place would look like code that is complete as it stands.
    return Fill(
        f"fill-{first[0]}",
        document.language,
        prefix.replace(MARK, shown),
        suffix.replace(MARK, shown),
        max_tokens=asking.max_tokens,
        best_of=asking.best_of,
        further=tuple(FurtherHole(island) for island in islands),
        constraints=asking.constraints,
    )


def _attempt(document: Document, offset: int, done: Done, filled: Filled, asking: Asking) -> Attempt:
    attempt = Attempt(document.text[:offset], document.text[offset:], done)
    if filled.stop in {"budget", "deadline"}:
        return replace(attempt, note=cut_off(asking.max_tokens))
    made = _with_text(attempt, document, offset, offset, filled.text)
    ghost = present_in(document, offset, filled.text, single_line=False, automatic=False)
    # Blanks obey almost anything and fill no hole. (What stands there already is put in all the same where it obeys.)
    if ghost is None and (asking.constraints is None or not filled.text.strip()):
        return replace(attempt, note="the engine has nothing to add here")
    if ghost is None:
        return made
    shown = _with_text(attempt, document, ghost.start, ghost.end, ghost.text)
    # What is changed afterwards need not obey any more.
    return shown if asking.constraints is None or _obeys(shown, made, asking.constraints, document.language) else made


def _obeys(shown: Attempt, made: Attempt, wanted: Constraints, language: str) -> bool:
    """Whether a text that was tidied still keeps to what the text as it was made kept to."""
    text = for_model(shown.inserted or "")
    fits = text.count("\n") < (wanted.max_lines or len(text) + 1) and len(text) <= (wanted.max_characters or len(text))
    is_allowed = not wanted.allowed or set(text) <= set(wanted.allowed)
    parses = not wanted.must_parse or not new_errors(made.text or "", shown.text or "", language)
    return fits and is_allowed and parses and not wanted.json_schema


def _with_text(attempt: Attempt, document: Document, start: int, end: int, text: str) -> Attempt:
    inserted = document.to_document_newlines(text)
    whole = document.text[:start] + inserted + document.text[end:]
    return replace(attempt, text=whole, inserted=inserted)


def cut_off(max_tokens: int) -> str:
    """What a person is told when a text was not finished."""
    return f"the answer was cut off after {max_tokens} tokens, nothing was changed; allow more with --max-tokens"
