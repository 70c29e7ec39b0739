"""Suggestions are counted once when shown and once when accepted, without any text."""

from __future__ import annotations

from lsp_server.acceptance import TICKETS_KEPT, Acceptance


def test_a_suggestion_is_accepted_once() -> None:
    tally = Acceptance()
    first, second = tally.offered("a"), tally.offered("b")
    assert first != second
    assert (tally.accept(first), tally.accept(first), tally.accept("unknown")) == ("a", None, None)
    assert tally.counts() == {"shown": 2, "accepted": 1, "recalled": 0}


def test_old_tickets_are_let_go() -> None:
    tally = Acceptance()
    tickets = [tally.offered("a") for _ in range(TICKETS_KEPT + 1)]
    assert tally.accept(tickets[0]) is None
    assert tally.accept(tickets[1]) == "a"
    assert tally.shown == TICKETS_KEPT + 1
