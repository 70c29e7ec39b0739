"""A change that brings back the text before the last one is seen, and no other."""

from __future__ import annotations

import pytest

from lsp_server.document import Document
from lsp_server.undoing import Undoing

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
