"""A change that brings back the text before the last one is seen, and no other."""

from __future__ import annotations

import pytest

from lsp_server.document import Document
from lsp_server.undoing import Undoing, key_between

URI = "file:///a.py"


def last_taken_back(*texts: str) -> str | None:
    """The text that the last of several versions took back."""
    undoing, versions = Undoing(), [Document.open(URI, number, "python", text) for number, text in enumerate(texts)]
    for version in versions[:-1]:
        undoing.changed(version)
    before = undoing.taken_back(versions[-1])
    return before.text if before is not None else None


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["a"], None),
        (["a", "ab"], None),
        (["a", "ab", "a"], "ab"),
        (["ab", "a", "ab"], "a"),
        (["a", "ab", "b"], None),
        (["a", "ab", "abc"], None),
        (["a", "b", "c", "b"], "c"),
        (["a", "b", "c", "a"], None),
        (["a", "a", "a"], None),
        (["ab", "a", "b"], None),
    ],
)
def test_only_the_text_before_the_last_change_counts(texts: list[str], expected: str | None) -> None:
    assert last_taken_back(*texts) == expected


def test_a_closed_document_is_forgotten() -> None:
    undoing = Undoing()
    for text in ("a", "ab"):
        undoing.changed(Document.open(URI, 1, "python", text))
    undoing.forget(URI)
    assert undoing.taken_back(Document.open(URI, 3, "python", "a")) is None


@pytest.mark.parametrize(
    ("shorter", "longer", "place", "expected"),
    [
        ("ab", "azb", 1, "z"),
        ("ab", "ab\U0001f642", 2, "\U0001f642"),
        ("ab", "a()b", 1, "("),
        ("ab", 'a""b', 1, '"'),
        # At the cursor, not anywhere.
        ("ab", "azb", 0, None),
        ("ab", "azb", 2, None),
        # More than a key puts in at once.
        ("ab", "azzb", 1, None),
        ("ab", "a)(b", 1, None),
        # Other text too.
        ("ab", "azc", 1, None),
        ("ab", "ab", 1, None),
        ("abc", "ab", 1, None),
    ],
)
def test_one_key_is_one_character_at_the_cursor_with_its_closers(
    shorter: str, longer: str, place: int, expected: str | None
) -> None:
    before, after = (Document.open(URI, number, "python", text) for number, text in enumerate((shorter, longer)))
    assert key_between(before, after, place) == expected
