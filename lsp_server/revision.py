"""A passage revised: asked of the engine, cleaned, checked, and turned into the smallest replacements.

Owns the request for a passage and what its answer becomes. Must not know how a document moves or what a client is
told: see `errand`.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from engine.protocol.messages import TEXTS_WEIGHED, Fill, Rewrite
from lsp_server import edits, ghost_text, rewrite_text, syntax
from lsp_server.added_prose import with_added_prose
from lsp_server.document import Document, for_model
from lsp_server.errand import NO_CHANGE, Errand
from lsp_server.errors import NoAnswer, Notice
from lsp_server.passage import Passage
from lsp_server.session import Snapshot
from lsp_server.splice import REPAIR, Splice
from lsp_server.suggestion import inserted_text
from lsp_server.surroundings import window_of

UNSOUND = "The result has syntax errors that were not there before. Look at it before you keep it."
NOTHING_AROUND = Notice(
    "nothing around",
    "Lacuna: there is no text around the gap that tells what belongs there. Write a line first, such as a comment "
    "that says what is wanted.",
    prominent=True,
)
NOTHING = Notice("no change", NO_CHANGE, prominent=True)


@dataclass(frozen=True, slots=True)
class Revision:
    """What a passage becomes: replacements of the document as it is now. `note` says what is wrong with them."""

    replacements: list[edits.TextReplacement]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """`[start, end)` of a document, with all the text around it as an engine may see it."""

    document: Document
    start: int
    end: int
    hint: str = ""

    @property
    def before(self) -> str:
        """All the text in front, `hint` included."""
        return for_model(self.document.text[: self.start]) + self.hint

    @property
    def after(self) -> str:
        """All the text behind."""
        return for_model(self.document.text[self.end :])


async def revise(errand: Errand, passage: Passage) -> Revision:
    """The revision of a passage. Raises NoAnswer when there is none, Superseded when the passage was touched."""
    request = _request(errand, passage)
    raw = (await errand.ask(request)).text
    new = _cleaned(errand, passage, raw)
    if new is not None and passage.only_prose:
        gap = _gap(errand, passage)
        new = with_added_prose(gap.before, for_model(passage.text), new, gap.after, gap.document.language)
    if new is None or new == for_model(passage.text):
        raise NoAnswer(NOTHING)
    new, is_sound = await repaired(errand, _splice(_gap(errand, passage), passage.text), new)
    if new == for_model(passage.text):
        raise NoAnswer(NOTHING)
    # The document may have moved on while the engine worked; the passage is the same, elsewhere.
    document, anchor = errand.snapshot.document, errand.anchor
    old = document.text[anchor.start : anchor.end]
    replacements = edits.minimal_edits(old, edits.with_line_ends_of(old, new, document.newline), anchor.start)
    return Revision(replacements, "" if is_sound else UNSOUND)


async def repaired(errand: Errand, splice: Splice, new: str) -> tuple[str, bool]:
    """`new`, or what the engine makes of its broken lines when asked once more; and whether that is sound."""
    span = splice.broken_span(new)
    if span is None:
        return new, True
    head, broken, tail = new[: span[0]], new[slice(*span)], new[span[1] :]
    before, after = splice.before + head, tail + splice.after
    settings = errand.snapshot.settings
    request = Rewrite(
        id=uuid4().hex,
        language=splice.language,
        before=before[-settings.prefix_chars :],
        selection=broken,
        after=after[: settings.suffix_chars],
        instruction=REPAIR,
        max_tokens=settings.rewrite_max_tokens,
        deadline_ms=settings.rewrite_deadline_ms,
    )
    try:
        raw = (await errand.ask(request)).text
    except NoAnswer:
        # The first answer is still there to be offered, with a note.
        return new, False
    mended = rewrite_text.clean_rewrite(raw, before, broken, after, splice.language, REPAIR)
    if mended is None or splice.breaks(head + mended + tail):
        return new, False
    return head + mended + tail, True


def fill_request(snapshot: Snapshot, gap: Gap, draft: str, *, wants_drafts: bool) -> Fill:
    """The question what stands in a gap. Raises NoAnswer where there is nothing around that tells."""
    settings, language = snapshot.settings, snapshot.document.language
    window = window_of(snapshot, gap.document, gap.start, gap.end)
    if window.is_blank and not gap.hint.strip():
        raise NoAnswer(NOTHING_AROUND)
    return Fill(
        id=uuid4().hex,
        language=language,
        prefix=window.prefix + gap.hint,
        suffix=window.suffix,
        draft=draft,
        max_tokens=settings.rewrite_max_tokens,
        max_lines=most_lines(gap),
        deadline_ms=settings.rewrite_deadline_ms,
        wants_drafts=wants_drafts,
        best_of=TEXTS_WEIGHED,
    )


def most_lines(gap: Gap) -> int:
    """How many lines a gap's text may have, 0 for any number."""
    before = gap.before
    return 1 if syntax.prefers_single_line(before + gap.after, len(before), gap.document.language) else 0


def filled_text(gap: Gap, raw: str) -> str | None:
    """A gap's text by the rules of ghost text: what repeats the surroundings is taken off, the rest stays."""
    around, offset = gap.before + gap.after, len(gap.before)
    ghost = ghost_text.present(raw, around, offset, gap.document.language, automatic=False)
    return inserted_text(ghost, around, offset) if ghost is not None else None


def _gap(errand: Errand, passage: Passage) -> Gap:
    return Gap(errand.snapshot.document, errand.anchor.start, errand.anchor.end, passage.hint)


def _splice(gap: Gap, old: str) -> Splice:
    before = gap.before.removesuffix(gap.hint) if gap.hint else gap.before
    return Splice(before, for_model(old), gap.after, gap.document.language)


def _request(errand: Errand, passage: Passage) -> Fill | Rewrite:
    snapshot, gap = errand.snapshot, _gap(errand, passage)
    text, settings = for_model(passage.text), snapshot.settings
    if not passage.instruction:
        return fill_request(snapshot, gap, text, wants_drafts=errand.wants_drafts)
    window = window_of(snapshot, gap.document, gap.start, gap.end)
    return Rewrite(
        id=uuid4().hex,
        language=gap.document.language,
        before=window.prefix,
        selection=text,
        after=window.suffix,
        instruction=passage.instruction,
        max_tokens=settings.rewrite_max_tokens,
        deadline_ms=settings.rewrite_deadline_ms,
        wants_drafts=errand.wants_drafts,
        seed=passage.seed,
    )


def _cleaned(errand: Errand, passage: Passage, raw: str) -> str | None:
    gap = _gap(errand, passage)
    if not passage.instruction:
        return filled_text(gap, raw)
    return rewrite_text.clean_rewrite(
        raw, gap.before, for_model(passage.text), gap.after, gap.document.language, passage.instruction
    )
