"""Hunks: what a person can take or leave one by one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.edits import TextReplacement, apply_edits
from lsp_server.hunks import hunks

LINES = st.lists(st.sampled_from(["", "a", "a = b", "  abc_1 + é", "\ta"]), max_size=6)
ENDS = st.sampled_from(["\n", "\r\n"])


def seen(before: str, after: str) -> list[tuple[str, str]]:
    """What each hunk takes away and puts there."""
    return [(before[item.start : item.end], item.text) for item in hunks(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("total = width * h\n", "total = w * h\n", [("width", "w")]),
        ("a = area(width, height)\n", "a = area(width, depth)\n", [("height", "depth")]),
        ("name\n", "rename\n", [("name", "rename")]),
        ("f(a)\n", "f(a, b)\n", [("", ", b")]),
        ("x = 1\r\ny = 2\r\n", "x = 1\r\ny = 23\r\n", [("2", "23")]),
        (
            "def f(width):\n    return width\n",
            "def f(w):\n    return w\n",
            [("def f(width):\n    return width", "def f(w):\n    return w")],
        ),
        ("a\nb\nc\n", "a1\nb\nc1\n", [("a", "a1"), ("c", "c1")]),
        ("a\nc\n", "a\nb\nc\n", [("", "b\n")]),
        ("a\nb\nc\n", "a\nc\n", [("b\n", "")]),
        ("a\n", "a", [("a\n", "a")]),
        ("", "a\n", [("", "a\n")]),
        ("same\n", "same\n", []),
    ],
)
def test_a_hunk_is_whole_lines_or_whole_words(before: str, after: str, expected: list[tuple[str, str]]) -> None:
    assert seen(before, after) == expected


@given(LINES, LINES, ENDS, st.integers(0, 9))
def test_all_hunks_together_make_the_new_text(old: list[str], new: list[str], end: str, base: int) -> None:
    before, after = end.join(old), end.join(new)
    found = [TextReplacement(item.start - base, item.end - base, item.text) for item in hunks(before, after, base)]
    assert apply_edits(before, found) == after
    assert all(left.end <= right.start for left, right in pairwise(found))
    for item in found:
        for border in (item.start, item.end):
            assert before[max(border - 1, 0) : border + 1] != "\r\n"
