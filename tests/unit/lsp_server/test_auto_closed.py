"""What editors put behind the cursor by themselves."""

from __future__ import annotations

import pytest

from lsp_server.auto_closed import closers_behind, says_again


@pytest.mark.parametrize(
    ("typed", "closers"),
    [
        ("", ""),
        ("f(", ")"),
        ("f([{", "}])"),
        ("f(1)", ""),
        ('f("', '")'),
        ('f("(', '")'),
        ("it's", "'"),
        (")", ""),
        ('f"{x}', '"'),
    ],
)
def test_the_innermost_is_closed_first(typed: str, closers: str) -> None:
    assert closers_behind(typed) == closers


@pytest.mark.parametrize(
    ("text", "closers", "expected"),
    [("x))", "))", True), ("x)", "))", False), ("]a)", "])", True), ("a)]", "])", False), ("", "", True)],
)
def test_closers_are_taken_over_in_their_order(text: str, closers: str, expected: bool) -> None:
    assert says_again(text, closers) is expected
