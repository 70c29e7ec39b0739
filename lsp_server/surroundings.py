"""What an engine gets to see of a request's document and of what belongs to it, as prefix and suffix.

The one place that asks for a window: `suggestion` and `revision` know neither budgets nor what is put in front. The
cells of a notebook are one text here, in their order.
"""

from __future__ import annotations

import re

from lsp_server import context, notebook
from lsp_server.context import PREFIX_TOKENS, Window
from lsp_server.document import Document, for_model
from lsp_server.neighbours import Neighbour, Place, text_in_front
from lsp_server.outline import PARSED_CHARS, READ_CHARS
from lsp_server.session import Snapshot
from lsp_server.tokens import estimated_tokens
from lsp_server.vicinity import shown_path

_FILLED = re.compile(r"\S")
# Of a small window no more than this part is given away.
_LARGEST_SHARE = 3
_CHARS_PER_TOKEN = 4
_STEP_TOKENS = 32


def window_of(snapshot: Snapshot, document: Document, start: int, end: int) -> Window:
    """The text around `[start, end)` of `document`: the snapshot's, or what it would be with a menu entry accepted.

    What the window has lost of its document, and what other documents share with it, stands in front of it.
    """
    settings, cells = snapshot.settings, snapshot.around.cells
    before = notebook.text_before(cells, document.language)
    text = before + document.text + notebook.text_behind(cells, document.language)
    start, end = start + len(before), end + len(before)
    right = context.right_border(text, end, settings.suffix_chars)
    front, left = _front(snapshot, document, text, start, end, right)
    if not front:
        left = context.left_border(text, start, settings.prefix_chars)
    return Window(front + for_model(text[left:start]), for_model(text[end:right]))


def has_surroundings(snapshot: Snapshot, document: Document, start: int, end: int) -> bool:
    """Whether anything but blanks stands around `[start, end)`: nothing else tells what belongs there."""
    text = document.text
    if _FILLED.search(text, 0, start) or _FILLED.search(text, end):
        return True
    return not window_of(snapshot, document, start, end).is_blank


def _front(snapshot: Snapshot, document: Document, text: str, start: int, end: int, right: int) -> tuple[str, int]:
    """What stands in front of a window that is smaller by as much, and where that window begins.

    The window first gives away all it may, and takes back in steps what was not needed.
    """
    settings = snapshot.settings
    most = min(settings.neighbour_tokens, settings.prefix_chars // _CHARS_PER_TOKEN // _LARGEST_SHARE)
    if not most:
        return "", 0
    path = shown_path(document.uri, snapshot.around.folder)
    farthest = context.left_border(text, start, settings.prefix_chars - most * _CHARS_PER_TOKEN)

    def with_room_for(tokens: int, slot: str) -> tuple[str, int]:
        left = context.tighter_border(text, farthest, start, PREFIX_TOKENS - tokens)
        place = _near(Place(path, document.language, text, left, start, end, right))
        return _text_in_front(snapshot, place, tokens, slot), left

    needed = estimated_tokens(with_room_for(most, "most")[0])
    return with_room_for(min(most, -(-needed // _STEP_TOKENS) * _STEP_TOKENS), "needed") if needed else ("", 0)


def _text_in_front(snapshot: Snapshot, place: Place, tokens: int, slot: str) -> str:
    """The text for a place. While the window's border rests, so does this: else the engine would read all anew.

    What is lost behind the window comes in whenever something else has changed.
    """
    around = snapshot.around

    def make() -> str:
        others = [Neighbour(shown_path(each.document.uri, around.folder), each.region) for each in around.others]
        return text_in_front(place, others, tokens)

    versions = tuple((each.document.uri, each.document.version) for each in around.others)
    made_from = (place.left, tokens, place.path, place.language, hash(place.text[: place.left]), versions)
    return around.remembered.text(slot, made_from, make)


def _near(place: Place) -> Place:
    """`place` in the part of a large text that is read at a key press."""
    if len(place.text) <= PARSED_CHARS:
        return place
    first = max(0, place.left - READ_CHARS)
    text = place.text[first : place.right + READ_CHARS // 2]
    return Place(
        place.path,
        place.language,
        text,
        place.left - first,
        place.start - first,
        place.end - first,
        place.right - first,
    )
