"""Where a gap's text ends."""

from __future__ import annotations

import pytest

from engine.diffusion.stopping import cut_at_lines, cut_at_stop_text, decode_prefix


@pytest.mark.parametrize(
    ("text", "max_lines", "expected"),
    [
        ("a", 1, None),
        ("a\nb", 1, "a"),
        ("\n  a\nb", 1, "\n  a"),
        ("a\n\nb\nc", 2, "a\n\nb"),
        ("a\nb\nc", 0, None),
        ("\n \n", 1, None),
        ("", 1, None),
    ],
)
def test_lines_count_only_when_they_hold_something(text: str, max_lines: int, expected: str | None) -> None:
    assert cut_at_lines(text, max_lines) == expected


def test_stop_text_is_cut_off_and_its_absence_is_none() -> None:
    assert cut_at_stop_text("x = 1\n```\nDone", "\n```") == "x = 1"
    assert cut_at_stop_text("x = 1", "\n```") is None
    assert cut_at_stop_text("x = 1", "") is None


def test_half_a_character_waits_for_its_other_half() -> None:
    data = "a🙂".encode()
    assert decode_prefix(data) == "a🙂"
    for cut in range(2, len(data)):
        assert decode_prefix(data[:cut]) == "a"
