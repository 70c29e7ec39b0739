"""The order in which the rules run, and what is finally offered."""

from __future__ import annotations

from dataclasses import dataclass

from lsp_server.document import Document, for_model
from lsp_server.ghost_text.following import without_following
from lsp_server.ghost_text.looping import without_looping
from lsp_server.ghost_text.placement import placed
from lsp_server.ghost_text.repeated_head import without_repeated_head
from lsp_server.ghost_text.repetition import without_preceding, without_repetition
from lsp_server.ghost_text.scope import within_scope
from lsp_server.ghost_text.surroundings import Surroundings
from lsp_server.ghost_text.tail import Joint, join_tail
from lsp_server.special_tokens import text_before_special
from lsp_server.syntax import has_grammar, new_errors, prefers_single_line

# A splice into the middle of a line is parsed with this much text on either side: enough to see it break.
_CHECKED_CHARS = 1_500
# More than any rule looks at, so that normalising a large file's line ends costs nothing.
_READ_CHARS = 24_000


@dataclass(frozen=True, slots=True)
class GhostText:
    """`text` replaces `[start, end)`, code points of the document: part of the cursor's line, cursor included.

    `text` has `\\n` line ends and may span lines. What stood in the range is part of `text` where it was not an
    engine's to replace.
    """

    start: int
    end: int
    text: str


def present(
    raw: str,
    document_text: str,
    offset: int,
    language: str,
    *,
    single_line: bool | None = None,
    automatic: bool = True,
) -> GhostText | None:
    """What to offer at `offset` for an engine's `raw` text, or None when nothing of it is worth showing.

    `document_text` has `\\n` line ends only (see `present_in`). `single_line` of None lets the place decide;
    `automatic` completions end with the scope the cursor is in, invoked ones may go on.
    """
    place = Surroundings.of(document_text, offset, language)
    is_single = prefers_single_line(document_text, offset, language) if single_line is None else single_line
    lines = placed(without_repeated_head(text_before_special(raw, place.before + place.after), place), place)
    offered = _worth_offering(lines, place, is_single=is_single, automatic=automatic)
    joint = _joint(offered, place, is_cut=len(lines) > len(offered))
    if joint is None or _is_idle(joint, place) or _breaks_line(joint, place):
        return None
    return GhostText(offset, offset + joint.consumed, joint.text)


def present_in(
    document: Document, offset: int, raw: str, *, single_line: bool | None = None, automatic: bool = True
) -> GhostText | None:
    """`present` for a document with any line ends; offsets are the document's, `text` keeps `\\n`.

    An inline completion sends `text` as it is, since editors give inserted text the buffer's line ends; a
    workspace edit sends `document.to_document_newlines(text)`.
    """
    before = for_model(document.slice(max(0, offset - _READ_CHARS), offset))
    after = for_model(document.slice(offset, offset + _READ_CHARS))
    found = present(raw, before + after, len(before), document.language, single_line=single_line, automatic=automatic)
    if found is None:
        return None
    # The range is part of one line, on which normalised and original offsets run side by side.
    shift = offset - len(before)
    return GhostText(found.start + shift, found.end + shift, found.text)


def _worth_offering(lines: list[str], place: Surroundings, *, is_single: bool, automatic: bool) -> list[str]:
    lines = without_preceding(lines, place)
    if is_single:
        return without_following(without_looping(lines[:1], place), place)
    lines = without_looping(without_repetition(lines, place), place)
    if automatic:
        lines = within_scope(lines, place)
    return without_following(lines, place)


def _joint(lines: list[str], place: Surroundings, *, is_cut: bool) -> Joint | None:
    """The lines joined to what stands behind the cursor; `is_cut` says that more lines stood behind them.

    In front of a line that is there, whole lines stay lines of their own instead of running into it.
    """
    text = "\n".join(lines)
    if not text.strip():
        return None
    is_whole = is_cut or text.endswith("\n")
    if place.is_in_front_of_line and is_whole and not text.rstrip().endswith(place.tail.strip()):
        return Joint(f"{text.rstrip()}\n{place.head}", 0)
    return join_tail(text, place)


def _is_idle(joint: Joint, place: Surroundings) -> bool:
    """True when accepting would change nothing but blanks."""
    return "".join(joint.text.split()) == "".join(place.tail[: joint.consumed].split())


def _breaks_line(joint: Joint, place: Surroundings) -> bool:
    """True when text is put in front of other words on the line and the two do not parse together."""
    rest = place.after[joint.consumed :]
    if not any(each.isalnum() for each in place.tail[joint.consumed :]) or not has_grammar(place.language_id):
        return False
    before, after = place.before[-_CHECKED_CHARS:], place.after[:_CHECKED_CHARS]
    if len(before) < len(place.before):
        before = before[before.find("\n") + 1 :]
    return new_errors(before + after, before + joint.text + rest[:_CHECKED_CHARS], place.language_id)
