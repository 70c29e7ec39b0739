"""A span follows changes on other lines exactly, and is lost to any other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.document import Change, Document, apply_changes
from lsp_server.positions import PositionEncoding, TextPosition
from lsp_server.rebase import Anchor, Moved

ENCODING = PositionEncoding.UTF16
TEXT = "import a\n\ndef f():\n    return 1\n\nx = 2\n"


def change(start: tuple[int, int], end: tuple[int, int], text: str) -> Change:
    return Change(TextPosition(*start), TextPosition(*end), text)


def followed(text: str, span: tuple[int, int], *changes: Change) -> str | None:
    """What the span holds after the changes, None when it was lost."""
    document, anchor = Document.open("file:///a.py", 1, "python", text), Anchor(*span)
    if not anchor.follow(Moved(document, changes, ENCODING)):
        assert (anchor.start, anchor.end) == span
        return None
    return apply_changes(document, 2, changes, ENCODING).text[anchor.start : anchor.end]


SPAN = (TEXT.index("    return"), TEXT.index("\n\nx"))
LINES = (TEXT.index("def"), TEXT.index("\nx"))


@pytest.mark.parametrize("span", [SPAN, LINES])
@pytest.mark.parametrize(
    "changes",
    [
        [change((0, 0), (0, 0), "import os\n")],
        [change((0, 0), (1, 0), "")],
        [change((0, 3), (0, 4), "🙂\r\n")],
        [change((5, 0), (5, 5), "y")],
        [change((6, 0), (6, 0), "z")],
        [change((0, 0), (0, 0), "\n"), change((0, 0), (0, 0), "a\n"), change((7, 0), (7, 1), "")],
        [],
    ],
)
def test_a_span_follows_what_happens_on_other_lines(span: tuple[int, int], changes: list[Change]) -> None:
    assert followed(TEXT, span, *changes) == TEXT[slice(*span)]


@pytest.mark.parametrize(
    "changed",
    [
        change((3, 4), (3, 10), "yield"),
        change((3, 0), (3, 0), "  "),
        change((3, 12), (3, 12), " + 1"),
        change((2, 8), (3, 4), ""),
        change((3, 12), (4, 0), ""),
        change((0, 0), (6, 0), ""),
        Change(None, None, TEXT),
    ],
)
def test_a_change_that_touches_the_lines_of_a_span_loses_it(changed: Change) -> None:
    assert followed(TEXT, SPAN, changed) is None


def test_lines_put_right_in_front_or_behind_are_outside() -> None:
    assert followed(TEXT, SPAN, change((3, 0), (3, 0), "    a = 1\n")) == "    return 1"
    assert followed(TEXT, SPAN, change((3, 12), (3, 12), "\n    b")) == "    return 1"
    assert followed(TEXT, LINES, change((2, 0), (2, 0), "@cache")) is None
    assert followed(TEXT, LINES, change((5, 0), (5, 0), "y")) == TEXT[slice(*LINES)]


def test_two_halves_of_a_character_that_meet_are_one() -> None:
    assert followed("a\ud83d\n\nx = 1\n", (4, 9), change((0, 2), (0, 2), "\ude42")) == "x = 1"


def test_no_line_end_is_made_of_two_halves() -> None:
    assert followed("a\n\nb", (2, 4), change((1, 0), (1, 0), "c\r")) is None
    assert followed("a\rb", (0, 2), change((1, 0), (1, 0), "\n")) is None
    assert followed("a\rb\n", (0, 2), change((1, 0), (1, 1), "")) is None


@given(st.data())
def test_whatever_happens_a_span_that_follows_holds_the_same_lines(data: st.DataObject) -> None:
    text = data.draw(st.text("ab \n\r🙂", max_size=30))
    document = Document.open("file:///a.py", 1, "python", text)
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(document.text))] * 2)))
    places = st.tuples(st.integers(0, 8), st.integers(0, 8))
    inserted = st.text("ab\n\r🙂", max_size=4)
    changes = []
    for _ in range(2):
        first, last = sorted(data.draw(st.tuples(places, places)))
        changes.append(change(first, last, data.draw(inserted)))
    found = followed(document.text, (start, end), *changes)
    assert found is None or found == document.text[start:end]
