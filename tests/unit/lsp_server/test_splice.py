"""Whether a new text breaks what it is put into, and which of its lines do."""

from __future__ import annotations

import pytest

from lsp_server.splice import Splice

PYTHON = Splice("def f(a):\n", "    b = 1\n    c = 2\n    return a", "\n\nx = 1\n", "python")


def broken(splice: Splice, new: str) -> str | None:
    span = splice.broken_span(new)
    return None if span is None else new[slice(*span)]


@pytest.mark.parametrize("new", ["    b = 2\n    c = 2\n    return a", "    return (\n        a\n    )", ""])
def test_what_parses_breaks_nothing(new: str) -> None:
    assert broken(PYTHON, new) is None


@pytest.mark.parametrize(
    ("new", "lines"),
    [
        ("    b = 1\n    c = (2\n    return a", "    c = (2"),
        ("    b = [1\n    c = 2\n    return a", "    b = [1"),
        ("    b = 10\n    c = 2\n    return a)", "    return a)"),
        ("    b = 1\n    c = = 2\n    return a", "    c = = 2"),
    ],
)
def test_the_lines_that_break_are_found(new: str, lines: str) -> None:
    assert broken(PYTHON, new) == lines


def test_a_text_with_too_many_changes_is_broken_as_a_whole() -> None:
    old = "".join(f"    a{n} = {n}\n    pass\n" for n in range(20))
    new = "".join(f"    a{n} = ({n}\n    pass\n" for n in range(20))
    assert broken(Splice("def f():\n", old, "", "python"), new) == new


def test_errors_that_were_there_before_are_not_counted() -> None:
    splice = Splice("def f(:\n", "    a = 1", "\n", "python")
    assert broken(splice, "    a = 2") is None
    assert broken(Splice("x = (", "a b", ")\n", "python"), "a, b") is None


def test_a_hole_is_compared_with_nothing_and_with_a_name() -> None:
    for before in ("return ", "x = ", "f(a, "):
        after = ")\n" if before.endswith(", ") else "\n"
        hole = Splice(f"def g():\n    {before}", "", after, "python", is_hole=True)
        assert broken(hole, "a + b") is None
        assert broken(hole, "f(a") == "f(a"


def test_languages_without_a_grammar_are_judged_by_brackets() -> None:
    splice = Splice("a {\n", "b", "\n}\n", "no-such-language")
    assert broken(splice, "b[1]") is None
    assert broken(splice, "b[1") == "b[1"


def test_only_what_is_near_is_read() -> None:
    splice = Splice("x = 1\n" * 50_000, "y = 1", "\nz = 1" * 50_000, "python")
    assert broken(splice, "y = 2") is None
    assert broken(splice, "y = (2") == "y = (2"


def test_prose_breaks_nothing() -> None:
    assert broken(Splice("One ", "two", " three.", "plaintext"), "2) it's") is None
