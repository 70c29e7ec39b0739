"""The estimate of a text's tokens."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lsp_server.tokens import cost_of, estimated_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("def", 1),
        ("the quick fox", 3),
        ("internationalisation", 3),
        ("1234", 4),
        ("a_b", 3),
        ("x = [1]\n", 6),
        ("\n\n\n", 1),
        ("    return", 1),
        ("漢字", 2),
        ("==", 1),
        ("====", 2),
    ],
)
def test_pieces_are_counted(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens


@given(st.text(), st.text())
def test_more_text_is_never_fewer_tokens(text: str, more: str) -> None:
    # A line end cut in two is two tokens that become one.
    assume(not text.endswith("\r"))
    assert estimated_tokens(text) <= estimated_tokens(f"{text}\n{more}")
    assert cost_of([text, more]) == estimated_tokens(text) + estimated_tokens(more) + 2
