"""Several holes filled in one job, so that each fits the others.

Holes near each other go to the engine in one request, which shows it what stands between them. Of holes farther apart
each neighbourhood is a request of its own, with what is filled already in front of it. Nothing outside the holes
changes. Must not know how holes are found: see `holes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from engine.protocol.messages import Fill, FurtherHole
from lsp_server.document import Document, for_model
from lsp_server.edits import TextReplacement, apply_edits
from lsp_server.errand import CUT_OFF, Errand, Part, is_cut_off
from lsp_server.errors import NoAnswer
from lsp_server.holes import Hole
from lsp_server.revision import NOTHING, UNSOUND, Gap, Revision, fill_request, filled_text, most_lines, repaired
from lsp_server.splice import Splice
from lsp_server.surroundings import window_of

# About what the engine reads in front of a gap: a hole farther behind would not see what stands in front of the first,
# and has imports and open scopes of its own to be shown.
NEAR_CHARS = 2_000

# Stands for a hole that is still to come or came out broken, where it is only asked whether the text parses.
_ANY_NAME = "x"


@dataclass(frozen=True, slots=True)
class _SoFar:
    """The texts of holes that are filled, and the same without those that do not parse in their places.

    Whether a further hole's text parses cannot be told with a broken one in front of it.
    """

    filled: tuple[TextReplacement, ...] = ()
    parsing: tuple[TextReplacement, ...] = ()

    def with_text(self, hole: Hole, text: str, *, is_sound: bool) -> _SoFar:
        sound = text if is_sound else hole.lead + _ANY_NAME
        return _SoFar(
            (*self.filled, TextReplacement(hole.start, hole.end, text)),
            (*self.parsing, TextReplacement(hole.start, hole.end, sound)),
        )


async def fill_holes(errand: Errand, holes: Sequence[Hole]) -> Revision:
    """The holes' texts, as replacements of the document as it is now; a hole that nothing came for stays.

    `holes` are in order, apart, and counted from the errand's start. Raises NoAnswer when none could be filled,
    Superseded when the text around them was touched.
    """
    so_far, cut_off = _SoFar(), False
    for numbers in neighbourhoods(holes):
        try:
            done = await errand.ask(_request(errand, holes, so_far, numbers), Part(numbers.start, len(holes)))
        except NoAnswer as nothing:
            if nothing.notice.key != CUT_OFF.key:
                raise
            cut_off = True
            continue
        for number, filled in zip(numbers, done.holes, strict=False):
            cut_off |= is_cut_off(filled)
            so_far = so_far if is_cut_off(filled) else await _with_text(errand, holes, so_far, number, filled.text)
    if not so_far.filled:
        raise NoAnswer(CUT_OFF if cut_off else NOTHING)
    left = len(holes) - len(so_far.filled)
    if left:
        errand.tell(f"Lacuna: {left} of {len(holes)} holes could not be filled and stay as they were.")
    start = errand.anchor.start
    return Revision(
        [TextReplacement(start + item.start, start + item.end, item.text) for item in so_far.filled],
        UNSOUND if so_far.parsing != so_far.filled else "",
    )


def neighbourhoods(holes: Sequence[Hole]) -> Iterator[range]:
    """The numbers of holes that go into one request: those that begin near the first of them."""
    first = 0
    for number in range(1, len(holes) + 1):
        if number == len(holes) or holes[number].end - holes[first].start > NEAR_CHARS:
            yield range(first, number)
            first = number


def _request(errand: Errand, holes: Sequence[Hole], so_far: _SoFar, numbers: range) -> Fill:
    """The question what stands in the holes of these numbers. Raises NoAnswer where there is nothing around them."""
    snapshot = errand.snapshot
    wants_drafts = errand.wants_drafts
    first = fill_request(snapshot, _gap(errand, holes[numbers[0]], so_far.filled), "", wants_drafts=wants_drafts)
    if len(numbers) == 1:
        return first
    document, start = snapshot.document, errand.anchor.start
    last = holes[numbers[-1]]
    behind = window_of(snapshot, document, start + last.start, start + last.end).suffix
    named = so_far.parsing
    further = []
    for number in numbers[1:]:
        before, hole = holes[number - 1], holes[number]
        named = (*named, TextReplacement(before.start, before.end, before.lead + _ANY_NAME))
        island = for_model(document.text[start + before.end : start + hole.start]) + hole.lead
        further.append(FurtherHole(island, max_lines=most_lines(_gap(errand, hole, named))))
    deadline_ms = first.deadline_ms * len(numbers)
    return replace(first, suffix=behind, further=tuple(further), deadline_ms=deadline_ms)


async def _with_text(errand: Errand, holes: Sequence[Hole], so_far: _SoFar, number: int, raw: str) -> _SoFar:
    """What is filled once this hole holds what the engine said: the same as before when there is nothing to it."""
    hole = holes[number]
    text = filled_text(_gap(errand, hole, so_far.filled), raw)
    if text is None or _is_marker(text, errand.snapshot.settings.hole_markers):
        return so_far
    text, is_sound = await repaired(errand, _splice(errand, holes, so_far.parsing, number), text)
    own = errand.snapshot.document.to_document_newlines(hole.lead + text)
    return so_far.with_text(hole, own, is_sound=is_sound)


def _is_marker(text: str, markers: Sequence[str]) -> bool:
    """Whether the engine only said that something is missing there."""
    words = text.split()
    return any(words == marker.split() for marker in markers)


def _gap(errand: Errand, hole: Hole, filled: Sequence[TextReplacement]) -> Gap:
    """The hole in the document as it is now, with what is filled already."""
    document, start = errand.snapshot.document, errand.anchor.start
    text = document.text
    head = apply_edits(text[start : start + hole.start], filled)
    text = text[:start] + head + text[start + hole.start :]
    first = start + len(head)
    virtual = Document.open(document.uri, document.version, document.language, text)
    return Gap(virtual, first, first + hole.end - hole.start, hole.lead)


def _splice(errand: Errand, holes: Sequence[Hole], parsing: Sequence[TextReplacement], number: int) -> Splice:
    """The hole among texts that parse: the holes behind it have some name."""
    gap = _gap(errand, holes[number], parsing)
    end = holes[number].end
    later = [TextReplacement(hole.start - end, hole.end - end, hole.lead + _ANY_NAME) for hole in holes[number + 1 :]]
    after = apply_edits(gap.document.text[gap.end :], later)
    return Splice(gap.before, "", for_model(after), gap.document.language, is_hole=True)
