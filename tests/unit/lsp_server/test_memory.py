"""What was offered is offered again exactly while the text around still stands and what was typed agrees."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.document import Document
from lsp_server.ghost_text import GhostText
from lsp_server.memory import AFTER_CHARS, BEFORE_CHARS, KEPT_PER_DOCUMENT, Memory, Offer
from lsp_server.settings import Settings

URI = "file:///a.py"
SETTINGS = Settings()


def document(text: str, language: str = "python", uri: str = URI) -> Document:
    return Document.open(uri, 1, language, text)


def remembering(before: str, after: str, *texts: str, consumed: int = 0) -> Memory:
    """A memory of `texts` offered between `before` and `after`."""
    memory, offset = Memory(), len(before)
    ghosts = tuple(GhostText(offset, offset + consumed, text) for text in texts)
    memory.keep("inline", document(before + after), offset, Offer(ghosts, "ticket", SETTINGS, is_full=False))
    return memory


def recalled(memory: Memory, before: str, after: str, language: str = "python", uri: str = URI) -> list[str] | None:
    offer = memory.recall("inline", document(before + after, language, uri), len(before), SETTINGS)
    return [ghost.text for ghost in offer.texts] if offer is not None else None


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("", ["obar(1)"]),
        ("o", ["bar(1)"]),
        ("oba", ["r(1)"]),
        ("obar(1", [")"]),
        ("obar(1)", None),
        ("z", None),
        ("oz", None),
        ("obar(1)x", None),
    ],
)
def test_typing_through_takes_off_what_was_typed(typed: str, left: list[str] | None) -> None:
    memory = remembering("fo", "\nend\n", "obar(1)")
    assert recalled(memory, f"fo{typed}", "\nend\n") == left


def test_what_is_left_goes_where_the_cursor_is() -> None:
    memory = remembering("f(", ")\n", "a, b)", consumed=1)
    offer = memory.recall("inline", document("f(a)\n"), 3, SETTINGS)
    assert offer is not None
    assert offer.texts == (GhostText(3, 4, ", b)"),)
    assert offer.ticket == "ticket"


def test_what_stands_behind_the_cursor_already_is_nothing_to_offer() -> None:
    memory = remembering("f(", ")\n", "a)", consumed=1)
    assert recalled(memory, "f(", ")\n") == ["a)"]
    assert recalled(memory, "f(a", ")\n") is None


def test_another_suffix_prefix_language_or_document_never_hits() -> None:
    memory = remembering("f(", ")", "x")
    assert recalled(memory, "f(", ")") == ["x"]
    assert recalled(memory, "f(", ", 2)") is None
    assert recalled(memory, "f(", ")\n") is None
    assert recalled(memory, "g(", ")") is None
    assert recalled(memory, "f(", ")", language="ruby") is None
    assert recalled(memory, "f(", ")", uri="file:///b.py") is None
    assert memory.recall("menu", document("f()"), 2, SETTINGS) is None
    assert memory.recall("inline", document("f()"), 2, replace(SETTINGS, inline_max_tokens=5)) is None


def test_line_ends_of_the_document_are_typed_as_one() -> None:
    memory = remembering("if a:", "\r\n", "\n    b()\n    c()")
    assert recalled(memory, "if a:\r\n    b", "\r\n") == ["()\n    c()"]


def test_the_first_text_that_goes_on_is_the_first_offered() -> None:
    memory = remembering("x = ", "", "foo()", "far()", "bar")
    assert recalled(memory, "x = f", "") == ["oo()", "ar()"]
    assert recalled(memory, "x = b", "") == ["ar"]


def test_the_newest_offer_wins_and_old_ones_go() -> None:
    memory = Memory()
    for number in range(KEPT_PER_DOCUMENT + 2):
        text = "a" * number
        offer = Offer((GhostText(number, number, f"a{number}!"),), str(number), SETTINGS, is_full=False)
        memory.keep("inline", document(text), number, offer)
        memory.keep("inline", document(text), number, offer)
    assert recalled(memory, "", "") is None
    assert recalled(memory, "a" * (KEPT_PER_DOCUMENT + 1), "") == [f"a{KEPT_PER_DOCUMENT + 1}!"]
    assert recalled(memory, "aa", "") == ["a2!"]


def test_a_closed_document_is_forgotten() -> None:
    memory = remembering("a", "", "b")
    memory.forget("file:///other")
    assert recalled(memory, "a", "") == ["b"]
    memory.forget(URI)
    assert recalled(memory, "a", "") is None


def test_all_that_an_offer_takes_the_place_of_must_still_stand() -> None:
    tail = "x" * (AFTER_CHARS + 20)
    memory = remembering("f(", tail, f"a{tail}", consumed=len(tail))
    assert recalled(memory, "f(", tail) == [f"a{tail}"]
    assert recalled(memory, "f(", f"{tail[:-1]}y") is None


@pytest.mark.parametrize(
    ("typed", "closed", "left"),
    [
        ("print(", ")", ["f(x))"]),
        ("print(f(", "))", ["x))"]),
        ("print(f", ")", ["(x))"]),
        ("print(f(x)", ")", None),
        ("print(", "]", None),
        ("print(", "))", None),
        ("print", ")", None),
    ],
)
def test_closers_that_the_editor_adds_by_itself_are_taken_over(typed: str, closed: str, left: list[str] | None) -> None:
    memory = remembering("x = ", "\nend", "print(f(x))")
    assert recalled(memory, f"x = {typed}", f"{closed}\nend") == left
    offer = memory.recall("inline", document(f"x = {typed}{closed}\nend"), len(typed) + 4, SETTINGS)
    if offer is not None:
        (ghost,) = offer.texts
        text = f"x = {typed}{closed}\nend"
        assert text[: ghost.start] + ghost.text + text[ghost.end :] == "x = print(f(x))\nend"


def test_closers_that_the_offer_does_not_say_are_not_taken_away() -> None:
    memory = remembering("", "\n", "print(")
    assert recalled(memory, "print", "\n") == ["("]
    memory = remembering("", "\n", "f([1, 2")
    assert recalled(memory, "f(", ")\n") is None


def test_text_far_from_the_cursor_may_change() -> None:
    far_before, far_after = "x" * 50 + "\n" * BEFORE_CHARS, "\n" * AFTER_CHARS + "y" * 50
    memory = remembering(far_before, far_after, "new")
    assert recalled(memory, far_before.replace("x", "z"), far_after.replace("y", "z")) == ["new"]
    assert recalled(memory, far_before, far_after[1:]) is None


@given(st.text("ab\n", max_size=6), st.text("ab)\n", max_size=6), st.text("ab)\n", min_size=1), st.text("ab\n"))
def test_what_is_left_always_leads_to_the_text_that_was_offered(
    before: str, after: str, ghost: str, typed: str
) -> None:
    memory = remembering(before, after, ghost)
    left = recalled(memory, before + typed, after)
    if ghost.startswith(typed) and ghost[len(typed) :].strip():
        assert left is not None
        assert before + typed + left[0] + after == before + ghost + after
    else:
        assert left is None
