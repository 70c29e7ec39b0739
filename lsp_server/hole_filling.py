"""Several holes filled in one job, hole by hole on one text, so that each fits the others.

What is filled already stands in front of the next hole; holes still to come are shown as they stand. Nothing outside
the holes changes. Must not know how holes are found: see `holes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsp_server.document import Document, for_model
from lsp_server.edits import TextReplacement, apply_edits
from lsp_server.errand import CUT_OFF, Errand, Part
from lsp_server.errors import NoAnswer
from lsp_server.holes import Hole
from lsp_server.revision import NOTHING, UNSOUND, Gap, Revision, fill_request, filled_text, repaired
from lsp_server.splice import Splice

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
    for number in range(len(holes)):
        try:
            so_far = await _with_next(errand, holes, so_far, number)
        except NoAnswer as nothing:
            if nothing.notice.key != CUT_OFF.key:
                raise
            cut_off = True
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


async def _with_next(errand: Errand, holes: Sequence[Hole], so_far: _SoFar, number: int) -> _SoFar:
    """What is filled once this hole is: the same as before when nothing came for it."""
    hole = holes[number]
    request = fill_request(errand.snapshot, _gap(errand, hole, so_far.filled), "", wants_drafts=errand.wants_drafts)
    raw = (await errand.ask(request, Part(number, len(holes)))).text
    text = filled_text(_gap(errand, hole, so_far.filled), raw)
    if text is None:
        return so_far
    text, is_sound = await repaired(errand, _splice(errand, holes, so_far.parsing, number), text)
    own = errand.snapshot.document.to_document_newlines(hole.lead + text)
    return so_far.with_text(hole, own, is_sound=is_sound)


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
