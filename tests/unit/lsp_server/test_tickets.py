"""Tickets survive their way through the client, or are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lsp_server.document import Document
from lsp_server.tickets import is_current, parse_ticket, ticket_for, to_data

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
    assert is_current(TICKET, Document.open(uri, version, "python", text)) is current


def test_half_a_surrogate_pair_has_a_mark_too() -> None:
    document = Document.open("file:///a.py", 1, "python", "a\ud800b")
    assert is_current(ticket_for(document, 0, 3, "fill", ""), document)
