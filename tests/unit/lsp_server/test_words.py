"""A selection takes the words it parts as wholes."""

from __future__ import annotations

import pytest

from lsp_server.document import Document
from lsp_server.words import LONGEST_WORD, whole_words


@pytest.mark.parametrize(
    ("text", "start", "end", "wanted"),
    [
        ("def total(a):", 5, 6, "total"),
        ("total + rest", 2, 10, "total + rest"),
        ("total + rest", 0, 5, "total"),
        ("total + rest", 5, 8, " + "),
        ("naïve_変数2.x", 1, 2, "naïve_変数2"),
        ("total", 2, 2, ""),
        ("(a)", 0, 3, "(a)"),
        ("one\ntwo", 1, 5, "one\ntwo"),
    ],
)
def test_borders_move_out_of_words(text: str, start: int, end: int, wanted: str) -> None:
    first, last = whole_words(Document.open("file:///a.py", 1, "python", text), start, end)
    assert text[first:last] == wanted


def test_no_more_than_a_word_is_looked_at() -> None:
    document = Document.open("file:///a.py", 1, "python", "a" * 10_000)
    assert whole_words(document, 5_000, 5_001) == (5_000 - LONGEST_WORD, 5_001 + LONGEST_WORD)
