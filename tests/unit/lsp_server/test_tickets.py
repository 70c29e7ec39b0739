"""Tickets survive their way through the client, or are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.document import Change, Document, apply_changes
from lsp_server.positions import PositionEncoding, TextPosition
from lsp_server.rebase import Anchor, Moved
from lsp_server.tickets import brought_up, parse_ticket, ticket_for, to_data
from lsp_server.trail import MOST_EDITS, STEPS_KEPT, Trail

DOCUMENT = Document.open("file:///a.py", 3, "python", "123456789")
TICKET = ticket_for(DOCUMENT, 5, 9, "simplify", "Simplify.")


def test_a_ticket_survives_json() -> None:
    assert parse_ticket(json.loads(json.dumps(to_data(TICKET)))) == TICKET


@pytest.mark.parametrize(
    "damage",
    [
        {"uri": 5},
        {"version": None},
        {"version": True},
        {"version": 1.0},
        {"start": -1},
        {"start": 9},
        {"end": "9"},
        {"action": "format_disk"},
        {"action": None},
        {"instruction": None},
        {"mark": "0"},
        {"more": 1},
    ],
)
def test_a_damaged_ticket_is_refused(damage: dict[str, Any]) -> None:
    assert parse_ticket(to_data(TICKET) | damage) is None


@pytest.mark.parametrize("data", [None, 5, "fill", [], {}, {"uri": "file:///a.py"}])
def test_what_is_no_ticket_is_refused(data: object) -> None:
    assert parse_ticket(data) is None


@pytest.mark.parametrize(
    ("uri", "version", "text", "current"),
    [
        ("file:///a.py", 3, "123456789", True),
        ("file:///a.py", 4, "123456789", False),
        ("file:///b.py", 3, "123456789", False),
        ("file:///a.py", 3, "12345678", False),
        # Closed and opened again with the same version, but another text.
        ("file:///a.py", 3, "12345.789", False),
    ],
)
def test_a_ticket_is_good_for_one_version(uri: str, version: int, text: str, current: bool) -> None:
    now = brought_up(TICKET, Document.open(uri, version, "python", text), Trail())
    assert now == (TICKET if current else None)


def test_half_a_surrogate_pair_has_a_mark_too() -> None:
    document = Document.open("file:///a.py", 1, "python", "a\ud800b")
    ticket = ticket_for(document, 0, 3, "fill", "")
    assert brought_up(ticket, document, Trail()) == ticket


def change(start: tuple[int, int], end: tuple[int, int], text: str) -> Change:
    return Change(TextPosition(*start), TextPosition(*end), text)


def brought(text: str, span: tuple[int, int], *steps: list[Change]) -> str | None:
    """What stands at the place of a ticket on `span` after `steps`, None when it is good no more."""
    document, trail = Document.open("file:///a.py", 1, "python", text), Trail()
    ticket = ticket_for(document, *span, "simplify", "")
    for version, changes in enumerate(steps, start=2):
        trail.add(document, changes, ENCODING)
        document = apply_changes(document, version, changes, ENCODING)
    now = brought_up(ticket, document, trail)
    if now is None:
        return None
    assert (now.version, now.mark) == (document.version, ticket.mark)
    return document.text[now.start : now.end]


ENCODING = PositionEncoding.UTF16
TEXT = "import a\n\ndef f():\n    return 1\n\nx = 2\n"
SPAN = (TEXT.index("return"), TEXT.index("\n\nx"))


@pytest.mark.parametrize(
    "steps",
    [
        [[change((0, 0), (0, 0), "import os\n")]],
        [[change((0, 0), (1, 0), "")], [change((4, 0), (4, 0), "y = 1\n")]],
        [[change((0, 3), (0, 4), "🙂\r\n"), change((0, 0), (0, 0), "\n")]],
        [[change((3, 12), (3, 12), "\n    b")]],
        [[change((3, 12), (4, 0), "")]],
        [[change((0, 0), (0, 0), "x\n")]] * (STEPS_KEPT),
    ],
)
def test_a_ticket_follows_its_text(steps: list[list[Change]]) -> None:
    assert brought(TEXT, SPAN, *steps) == "return 1"


@pytest.mark.parametrize(
    "steps",
    [
        [[change((3, 4), (3, 10), "yield")]],
        [[change((3, 0), (3, 0), "  ")]],
        [[change((3, 12), (3, 12), " + 1")]],
        [[change((2, 8), (3, 4), "")]],
        # What is put in and taken out again has been in the way all the same.
        [[change((3, 6), (3, 6), "x")], [change((3, 6), (3, 7), "")]],
        [[Change(None, None, TEXT)]],
        [[change((0, 0), (0, 0), "x")] * (MOST_EDITS + 1)],
        [[change((0, 0), (0, 0), "x\n")]] * (STEPS_KEPT + 1),
    ],
)
def test_a_ticket_whose_lines_were_touched_or_whose_way_is_forgotten_is_refused(steps: list[list[Change]]) -> None:
    assert brought(TEXT, SPAN, *steps) is None


@given(st.data())
def test_a_ticket_goes_wherever_an_anchor_that_sees_every_text_goes(data: st.DataObject) -> None:
    document, trail = Document.open("file:///a.py", 1, "python", data.draw(st.text("ab \n\r🙂", min_size=1))), Trail()
    start = data.draw(st.integers(0, document.length - 1))
    anchor = Anchor(start, data.draw(st.integers(start + 1, document.length)))
    ticket, follows = ticket_for(document, anchor.start, anchor.end, "simplify", ""), True
    selected = document.text[anchor.start : anchor.end]
    places = st.tuples(st.integers(0, 8), st.integers(0, 8))
    for version in (2, 3):
        first, last = sorted(data.draw(st.tuples(places, places)))
        changes = [change(first, last, data.draw(st.text("ab\n\r🙂", max_size=4)))]
        follows = follows and anchor.follow(Moved(document, changes, ENCODING))
        trail.add(document, changes, ENCODING)
        document = apply_changes(document, version, changes, ENCODING)
    now = brought_up(ticket, document, trail)
    if now is not None:
        assert document.text[now.start : now.end] == selected
    if follows:
        assert now is not None
        assert (now.start, now.end) == (anchor.start, anchor.end)
