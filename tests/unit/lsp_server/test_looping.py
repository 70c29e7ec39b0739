"""Rounds inside one line: what an engine says again and again is offered once, and what only looks so stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.alternatives import distinct, presentable
from lsp_server.document import Document
from lsp_server.ghost_text import present
from lsp_server.ghost_text.looping import without_looping
from lsp_server.ghost_text.surroundings import Surroundings


def said_at(text: str, *lines: str, language: str = "python") -> list[str]:
    before, after = text.split("‸")
    return without_looping(list(lines), Surroundings.of(before + after, len(before), language))


@pytest.mark.parametrize(
    ("text", "said", "left"),
    [
        # The last round may be whole, cut off, or end with a blank.
        ("y = ‸", '"😀"; z = 1; ' + 's = "😀😀"; ' * 11, '"😀"; z = 1'),
        ("‸", 's = "a"; ' * 11 + "s =", 's = "a"'),
        ("‸", "# the cat and " * 6, "# the cat"),
        ("total = ‸", "price + " * 9 + "price", "price"),
        ("total = sum‸", "(price) + (price)" + " + (price)" * 7, "(price)"),
        ("x = ‸", "a.next." * 12, "a.next"),
        ("f(‸", "None, " * 30, "None"),
        ("print(a); ‸", "print(a, b); " * 5, "print(a, b)"),
        ("if ‸", "a or b and " * 9, "a or b"),
        # No string and no bracket is torn.
        ('x = "é" + ‸', '"é" + "ü" + ' * 9, '"é"'),
        ("‸", "f(a; b) + " * 9, "f(a; b)"),
        ('s = """\nDon\'t ‸', "say it and " * 9, "say it"),
        ("x = ‸", "lalala" * 12, "la"),
        # Pictures say something, and one alone is nothing to offer; a string of them is.
        ("y = ‸", '"😀😀"; ' + 's = "😀😀"; ' * 11, '"😀😀"'),
        ('s = "‸', "😀" * 32, None),
        ('s = "😀‸😀"', "😀" * 32, None),
        # What stands in front of the cursor is the first round.
        ("x = value + ‸", "value + " * 8, None),
    ],
)
def test_of_rounds_up_to_the_end_the_first_is_left(text: str, said: str, left: str | None) -> None:
    assert said_at(text, said) == ([] if left is None else [left])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # Four rounds and twenty-four characters must be there.
        ("x = ‸", "value + " * 3),
        ("x = ‸", "ab" * 11),
        # One who wrote the rounds wants one more.
        ("x = a + a + a + a + a + a + a + a + ‸", "a + a"),
        # A text that goes on has found its way out.
        ("x = ‸", "[" + "0, " * 40 + "0]"),
        ("x = ‸", "f(" + "None, " * 20 + "None)"),
        # Rules in comments, boxes and indentation.
        ("# ‸", "-" * 70),
        ("# ‸", "=" * 70),
        ("# ‸", "─" * 70),
        ("// ‸", "-=" * 40),
        ("| a | b |\n‸", "| --- " * 12 + "|"),
        ("‸", " " * 60 + "x"),
        # Rows of data: some of them, and as many as there are around.
        ("x = [‸]", "0, " * 12 + "0"),
        ("x = [\n    0, 0, 0, 0,\n    ‸\n]", "0, " * 40),
        ("x = [‸\n    0x00, 0x00, 0x00,\n]", "0x00, " * 40),
        ("f(None, None, None, ‸)", "None, " * 30),
    ],
)
def test_what_only_looks_like_rounds_stays(text: str, said: str) -> None:
    assert said_at(text, said) == [said]


def test_lines_in_front_of_the_rounds_stay() -> None:
    rounds = "    return " + "a or " * 9
    assert said_at("def f(a):\n‸", "    a = g(a)", rounds, "") == ["    a = g(a)", "    return a"]
    assert said_at("‸", "a = 1", "😀" * 40) == ["a = 1"]
    assert said_at("‸", rounds, "a = 1") == [rounds, "a = 1"]
    assert said_at("‸") == []
    assert said_at("‸", "", "  ") == ["", "  "]


@given(st.text("ab, ;", max_size=4), st.text("ab=, ;\"'😀-", max_size=12), st.integers(0, 20), st.integers(0, 12))
def test_what_is_left_begins_what_was_said(head: str, unit: str, rounds: int, cut: int) -> None:
    said = unit * rounds + unit[:cut]
    place = Surroundings.of(head, len(head), "python")
    left = without_looping([said], place)
    assert len(left) < 2
    assert all(said.startswith(each) for each in left)
    # What was cut is whole: looking once more changes nothing.
    assert without_looping(left, place) == left


@pytest.mark.parametrize("single_line", [True, False])
@pytest.mark.parametrize("automatic", [True, False])
def test_no_offer_holds_rounds(single_line: bool, automatic: bool) -> None:
    head = "def smile():\n    name = "
    raws = ['"a"; ' + 's = "😀😀"; ' * 11, "x + " * 20, 'f("b")']
    document = Document.open("file:///a.py", 1, "python", head + "\n")
    ghosts = distinct(presentable(document, len(head), raws, single_line=single_line, automatic=automatic))
    assert [ghost.text for ghost in ghosts] == ['"a"', "x", 'f("b")']


def test_a_cursor_inside_a_string_of_pictures_gets_nothing() -> None:
    text = 'def smile():\n    s = "😀😀"\n    return s\n'
    assert present("😀" * 32, text, text.index('😀"'), "python", single_line=True) is None
