"""Tickets survive their way through the client, or are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lsp_server.document import Document
from lsp_server.rewrite import ACTIONS, Ticket, action_named, gap_of, is_current, is_wanted, parse_ticket, to_data

TICKET = Ticket("file:///a.py", 3, 5, 9, "fill")


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
        {"more": 1},
    ],
)
def test_a_damaged_ticket_is_refused(damage: dict[str, Any]) -> None:
    assert parse_ticket(to_data(TICKET) | damage) is None


@pytest.mark.parametrize("data", [None, 5, "fill", [], {}])
def test_what_is_no_ticket_is_refused(data: object) -> None:
    assert parse_ticket(data) is None


@pytest.mark.parametrize(
    ("uri", "version", "text", "current"),
    [
        ("file:///a.py", 3, "123456789", True),
        ("file:///a.py", 4, "123456789", False),
        ("file:///b.py", 3, "123456789", False),
        ("file:///a.py", 3, "12345678", False),
    ],
)
def test_a_ticket_is_good_for_one_version(uri: str, version: int, text: str, current: bool) -> None:
    assert is_current(TICKET, Document.open(uri, version, "python", text)) is current


@pytest.mark.parametrize(
    ("only", "wanted"),
    [(None, True), ((), False), (("refactor",), True), (("refactor.rewrite.lacuna.fil",), False), (("",), False)],
)
def test_kinds_are_a_hierarchy(only: tuple[str, ...] | None, wanted: bool) -> None:
    assert is_wanted("refactor.rewrite.lacuna.fill", only) is wanted


def test_names_and_kinds_are_unique_and_only_fill_has_no_instruction() -> None:
    assert len({action.kind for action in ACTIONS}) == len(ACTIONS)
    assert [action.name for action in ACTIONS if not action.instruction] == ["fill"]
    assert action_named("fill") is ACTIONS[0]
    assert action_named("nothing") is None


@pytest.mark.parametrize(
    ("before", "gap", "after"),
    [
        ("    ", "return net", "\n"),
        ("", "a", ""),
        ("\n\n  ", "a\n  b", "\n\n"),
        ("\t", "a", "  \r\n"),
        ("    ", "", "\n"),
        ("    ", "", ""),
        ("    ", "\n    ", "\r\n"),
        ("", "", "\n"),
    ],
)
def test_filling_keeps_the_indentation_and_the_line_end_of_a_selection(before: str, gap: str, after: str) -> None:
    text = f"x{before}{gap}{after}y"
    assert gap_of(text, 1, len(text) - 1) == (1 + len(before), 1 + len(before + gap))
