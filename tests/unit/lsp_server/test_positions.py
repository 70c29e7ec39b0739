"""Line ends and units: what ends a line, and how many units its characters are."""

from __future__ import annotations

import pytest

from lsp_server.positions import (
    LineEnds,
    PositionEncoding,
    code_points_before,
    count_line_ends,
    count_units,
    line_starts,
    negotiate,
    parts_line_end,
    split_lines,
    without_line_end,
)

UTF8, UTF16, UTF32 = PositionEncoding.UTF8, PositionEncoding.UTF16, PositionEncoding.UTF32


def test_lines_split_and_join() -> None:
    assert split_lines("a\r\nb\rc\nd\x0ce\n") == ["a\r\n", "b\r", "c\n", "d\x0ce\n", ""]
    assert split_lines("") == [""]
    assert [without_line_end(line) for line in split_lines("a\r\nb\rc\nd")] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        (["utf-8", "utf-16", "utf-32"], UTF8),
        (["utf-16"], UTF16),
        (["utf-32", "utf-16"], UTF32),
        (None, UTF16),
        ([], UTF16),
        (["ebcdic"], UTF16),
        (["ebcdic", "utf-8"], UTF8),
    ],
)
def test_the_first_known_preference_wins(offered: list[str] | None, expected: PositionEncoding) -> None:
    assert negotiate(offered) is expected
    assert negotiate(offered, forced=UTF16) is UTF16


def test_line_ends_are_counted_by_kind_and_place() -> None:
    text = "a\r\nb\rc\n\r\n\x0cd\u2028\r"
    assert count_line_ends(text) == LineEnds(feeds=1, pairs=2, returns=2)
    assert line_starts(text) == [3, 5, 7, 9, 13]
    assert [offset for offset in range(len(text) + 1) if parts_line_end(text, offset)] == [2, 8]
    assert count_line_ends("a\n\nb") == LineEnds(2, 0, 0)


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("", "\n"),
        ("a\nb\n", "\n"),
        ("a\r\nb", "\r\n"),
        ("a\rb\r", "\r"),
        ("\r\n\n", None),
        ("\n\r", None),
        ("\r\r\n", None),
    ],
)
def test_a_text_may_have_one_line_end_only(text: str, only: str | None) -> None:
    assert count_line_ends(text).only == only


@pytest.mark.parametrize(
    ("text", "units"), [("", (0, 0, 0)), ("ab", (2, 2, 2)), ("é漢🙂", (9, 4, 3)), ("\ud83d", (3, 1, 1))]
)
def test_units_of_a_text(text: str, units: tuple[int, int, int]) -> None:
    assert tuple(count_units(text, encoding) for encoding in (UTF8, UTF16, UTF32)) == units


def test_a_count_of_units_inside_a_character_leaves_it_out() -> None:
    assert [code_points_before("é🙂b", units, UTF16) for units in range(6)] == [0, 1, 1, 2, 3, 3]
    assert [code_points_before("é🙂b", units, UTF8) for units in range(9)] == [0, 0, 1, 1, 1, 1, 2, 3, 3]
    assert [code_points_before("é🙂b", units, UTF32) for units in range(5)] == [0, 1, 2, 3, 3]
