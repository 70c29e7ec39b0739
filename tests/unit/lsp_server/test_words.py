"""A selection takes the words it parts as wholes."""

from __future__ import annotations

import pytest

from lsp_server.document import Document
from lsp_server.words import LONGEST_WORD, NEARBY_CHARS, is_inside_word, is_known_word, whole_words


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


@pytest.mark.parametrize(
    ("text", "offset", "wanted"),
    [
        ("values", 4, True),
        ("a_1", 2, True),
        ("naïve", 3, True),
        ("変数", 1, True),
        ("values", 0, False),
        ("values", 6, False),
        ("f(x)", 1, False),
        ("f(x)", 2, False),
        ("a.b", 2, False),
        ("a\nb", 1, False),
        ("", 0, False),
    ],
)
def test_inside_a_word_there_is_a_letter_on_both_sides(text: str, offset: int, wanted: bool) -> None:
    assert is_inside_word(Document.open("file:///a.py", 1, "python", text), offset) is wanted


@pytest.mark.parametrize(
    ("before", "behind", "wanted"),
    [
        ("values = 1\n", "", True),
        ("", "\nvalues", True),
        ("", "", False),
        ("my_values = values2\n", "", False),
        ("Values\n", "\nvalue", False),
        ("values" + " " * NEARBY_CHARS, "", False),
    ],
)
def test_a_word_is_known_where_it_stands_nearby_once_more(before: str, behind: str, wanted: bool) -> None:
    document = Document.open("file:///a.py", 1, "python", f"{before}values{behind}")
    assert is_known_word(document, len(before), len(before) + len("values")) is wanted


@pytest.mark.parametrize(
    ("language", "word", "wanted"),
    [("python", "print", True), ("python", "return", True), ("python", "prit", False), ("go", "print", False)],
)
def test_pythons_own_words_are_known(language: str, word: str, wanted: bool) -> None:
    assert is_known_word(Document.open("file:///a", 1, language, word), 0, len(word)) is wanted
