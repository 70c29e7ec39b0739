"""Positions: every code point of a nasty text, in three encodings, there and back; and the edges of clients."""

from __future__ import annotations

import pytest

from lsp_server.line_index import LineIndex
from lsp_server.positions import PositionEncoding, TextPosition, TextRange
from lsp_server.rope import Rope

UTF8, UTF16, UTF32 = PositionEncoding.UTF8, PositionEncoding.UTF16, PositionEncoding.UTF32
EACH = pytest.mark.parametrize("encoding", list(PositionEncoding))
WIDTH = {UTF8: 1, UTF16: 2, UTF32: 4}
CODECS = {UTF8: "utf-8", UTF16: "utf-16-le", UTF32: "utf-32-le"}

NASTY = "a🙂b\r\ncafé = '漢字'\rx\x0cy\u2028z\u0085\x0b\x1c\n\n👨‍👩‍👧 = 1\r\n\tend🙂"


@EACH
def test_every_offset_of_a_nasty_text_comes_back(encoding: PositionEncoding) -> None:
    index = LineIndex(NASTY)
    for offset in range(len(NASTY) + 1):
        if NASTY[offset - 1 : offset + 1] == "\r\n":
            continue  # No position lies between the two characters of one line end.
        position = index.to_position(offset, encoding)
        assert index.offset_at(position, encoding) == offset


@EACH
def test_an_offset_inside_a_line_end_is_the_end_of_its_line(encoding: PositionEncoding) -> None:
    assert LineIndex("ab\r\nc").to_position(3, encoding) == TextPosition(0, 2)


@pytest.mark.parametrize(
    ("encoding", "character"), [(UTF16, 11), (UTF8, 13), (UTF32, 10)], ids=["utf-16", "utf-8", "utf-32"]
)
def test_an_astral_character_counts_by_encoding(encoding: PositionEncoding, character: int) -> None:
    line = 's = "🙂" + '
    index = LineIndex(line)
    assert index.to_position(len(line), encoding) == TextPosition(0, character)
    assert index.to_offset(0, character, encoding) == len(line)


@pytest.mark.parametrize(
    ("line", "lengths"),
    [("café = '漢字'; y = ", (22, 17, 17)), ("👨‍👩‍👧 = ", (21, 11, 8)), ("\tx = ", (5, 5, 5))],
)
def test_line_lengths_in_units(line: str, lengths: tuple[int, int, int]) -> None:
    index = LineIndex(line)
    found = tuple(index.to_position(len(line), encoding).character for encoding in (UTF8, UTF16, UTF32))
    assert found == lengths


@pytest.mark.parametrize(
    ("text", "line", "character", "offset"),
    [
        ("abc", 0, 99, 3),
        ("ab\ncd", 0, 3, 2),
        ("ab\r\ncd", 0, 3, 2),
        ("ab\rcd", 0, 3, 2),
        ("x🙂", 7, 0, 2),
        ("", 0, 0, 0),
        ("", 3, 5, 0),
        ("ab\n", 1, 0, 3),
        ("ab\n", 0, 2147483647, 2),
        ("a🙂b", 0, 2147483647, 3),
        ("ab", -1, 4, 0),
        ("ab", 0, -1, 0),
    ],
)
@EACH
def test_positions_off_the_text_are_clamped(
    text: str, line: int, character: int, offset: int, encoding: PositionEncoding
) -> None:
    assert LineIndex(text).to_offset(line, character, encoding) == offset


def test_a_position_inside_a_character_snaps_to_its_start() -> None:
    index = LineIndex("a🙂b")
    assert index.to_offset(0, 2, UTF16) == 1
    assert [index.to_offset(0, character, UTF8) for character in range(1, 7)] == [1, 1, 1, 1, 2, 3]


def test_a_lone_surrogate_is_one_unit() -> None:
    index = LineIndex("a\ud83db")
    assert [index.to_offset(0, character, UTF16) for character in range(4)] == [0, 1, 2, 3]
    assert index.to_position(3, UTF8) == TextPosition(0, 5)


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029"])
def test_only_three_sequences_end_a_line(separator: str) -> None:
    index = LineIndex(f"a = 1{separator}b\nc")
    assert index.line_count == 2
    assert index.to_offset(1, 0, UTF16) == 8


def test_offsets_off_the_text_are_clamped() -> None:
    index = LineIndex("ab\ncd")
    assert index.to_position(-5, UTF16) == TextPosition(0, 0)
    assert index.to_position(99, UTF16) == TextPosition(1, 2)
    assert index.to_range(1, 4, UTF16) == TextRange(TextPosition(0, 1), TextPosition(1, 1))


def test_lines_know_their_borders() -> None:
    index = LineIndex("ab\r\n\rcd\n")
    assert [(index.line_start(n), index.line_end(n)) for n in range(index.line_count)] == [
        (0, 2),
        (4, 4),
        (5, 7),
        (8, 8),
    ]
    with pytest.raises(IndexError, match="line 4 of 4"):
        index.line_start(4)


def test_an_edited_index_equals_a_fresh_one_across_many_blocks() -> None:
    text = "".join(f"line {number}\r\n" for number in range(3000))
    index = LineIndex(text)
    edits = [(0, 0, "\n"), (7000, 7020, "x"), (5, 20000, "\r"), (100, 100, "a\nb\r"), (3, 9, "")]
    for start, end, inserted in edits:
        index = index.replaced(start, end, inserted)
        fresh = LineIndex(index.text)
        assert index.line_count == fresh.line_count
        assert [index.line_start(n) for n in range(index.line_count)] == [
            fresh.line_start(n) for n in range(fresh.line_count)
        ]


def test_inserting_lines_one_by_one_keeps_the_index_right() -> None:
    index = LineIndex("")
    for number in range(2500):
        index = index.replaced(len(index.text) // 2, len(index.text) // 2, "\n")
        assert index.line_count == number + 2
    assert index.line_at(1250) == 1250


@EACH
def test_a_line_of_many_chunks_counts_through_all_of_them(encoding: PositionEncoding) -> None:
    line = "é🙂漢a" * 50
    index = LineIndex(Rope.of(f"x\r\n{line}\r\ny", chunk_chars=7))
    for count in (0, 1, 6, 7, 8, 100, 199, 200):
        position = index.to_position(3 + count, encoding)
        units = len(line[:count].encode(CODECS[encoding])) // WIDTH[encoding]
        assert position == TextPosition(1, units)
        assert index.offset_at(position, encoding) == 3 + count
    assert index.to_offset(1, 10**6, encoding) == 3 + len(line)
