"""Which part of a selection is denoised when it is filled."""

from __future__ import annotations

import pytest

from lsp_server.passage import gap_of, to_fill, to_rewrite


@pytest.mark.parametrize(
    ("before", "gap", "after"),
    [
        ("    ", "return net", "\n"),
        ("", "a", ""),
        ("\n\n  ", "a\n  b", "\n\n"),
        ("\t", "a", "  \r\n"),
        ("    ", "", "\n"),
        ("    ", "", ""),
        ("    ", "\n    ", "\r\n"),
        ("", "", "\n"),
    ],
)
def test_filling_keeps_the_indentation_and_the_line_end_of_a_selection(before: str, gap: str, after: str) -> None:
    text = f"x{before}{gap}{after}y"
    assert gap_of(text, 1, len(text) - 1) == (1 + len(before), 1 + len(before + gap))
    assert to_fill(text, 1, len(text) - 1).text == gap


def test_what_is_rewritten_is_the_selection_itself() -> None:
    passage = to_rewrite("a b c", 2, 3, "shorten")
    assert (passage.start, passage.end, passage.text, passage.instruction) == (2, 3, "b", "shorten")
