"""The rope: whatever is cut out and put in, it is the text a string would be, in sound chunks, sharing the rest."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.positions import LineEnds, count_line_ends, line_starts
from lsp_server.rope import CHUNK_CHARS, Rope

_TEXTS = st.text(st.sampled_from("ab\r\n🙂\u2028"), max_size=40)
_REPLACEMENTS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), _TEXTS), max_size=8)


def check_sound(rope: Rope, text: str) -> None:
    """Raise AssertionError unless `rope` is `text` in chunks as they ought to be."""
    chunks = [chunk.text for chunk in rope.chunks]
    assert "".join(chunks) == rope.text == text
    assert all(chunks) or chunks == [""]
    # A cut that would part a line end comes one character later.
    assert all(len(chunk) <= 2 * rope.chunk_chars + 1 for chunk in chunks)
    assert not any(left[-1] + right[0] == "\r\n" for left, right in itertools.pairwise(chunks))


@given(_TEXTS, _REPLACEMENTS, st.sampled_from([1, 2, 3, 8, CHUNK_CHARS]))
def test_any_replacements_leave_the_text_a_string_would_be(
    text: str, replacements: list[tuple[int, int, str]], chunk_chars: int
) -> None:
    rope = Rope.of(text, chunk_chars)
    for one, other, inserted in replacements:
        start, end = sorted((min(one, len(text)), min(other, len(text))))
        before, old = rope, text
        rope, text = rope.replaced(start, end, inserted), text[:start] + inserted + text[end:]
        check_sound(rope, text)
        check_sound(before, old)


@given(_TEXTS, st.integers(-3, 50), st.integers(-3, 50), st.sampled_from([1, 3, CHUNK_CHARS]))
def test_slices_and_lines_are_those_of_the_string(text: str, start: int, stop: int, chunk_chars: int) -> None:
    rope = Rope.of(text, chunk_chars)
    assert rope.slice(start, stop) == text[max(start, 0) : max(stop, 0)]
    assert len(rope) == len(text)
    assert rope.line_ends == count_line_ends(text)
    starts = [0, *line_starts(text)]
    assert [rope.line_start(line) for line in range(rope.line_count)] == starts
    assert rope.line_at(start) == sum(place <= max(start, 0) for place in starts) - 1


def test_an_edit_in_a_long_text_shares_all_but_what_it_touches() -> None:
    rope = Rope.of("value = compute(argument)\n" * 100_000)
    edited = rope.replaced(1_000_000, 1_000_000, "x")
    old = {id(chunk) for chunk in rope.chunks}
    assert sum(id(chunk) not in old for chunk in edited.chunks) == 1
    assert (edited.line_count, len(edited)) == (100_001, len(rope) + 1)
    assert edited.slice(999_999, 1_000_002) == rope.slice(999_999, 1_000_000) + "x" + rope.slice(1_000_000, 1_000_001)
    # Nothing so far needed the whole text, so nothing joined it.
    assert "text" not in vars(rope)
    assert "text" not in vars(edited)


def test_a_line_end_that_comes_together_on_a_border_stays_in_one_chunk() -> None:
    rope = Rope.of("abc\rdef\ngh", 2)
    assert [chunk.text for chunk in rope.chunks] == ["ab", "c\r", "de", "f\n", "gh"]
    check_sound(rope.replaced(4, 4, "\n"), "abc\r\ndef\ngh")
    check_sound(rope.replaced(4, 7, ""), "abc\r\ngh")
    assert rope.replaced(4, 7, "").line_count == 2


def test_the_whole_text_is_joined_once() -> None:
    rope = Rope.of("ab\n" * 5_000)
    assert rope.text is rope.text


def test_typing_at_one_place_keeps_chunks_within_bounds() -> None:
    rope = Rope.of("")
    for number in range(5_000):
        rope = rope.replaced(number // 2, number // 2, "\r" if number % 3 else "\n")
    assert len(rope.chunks) <= 2
    # Taken out one by one they leave no crumbs.
    while len(rope):
        rope = rope.replaced(len(rope) - 1, len(rope), "")
        assert len(rope.chunks) == 1 or min(chunk.size for chunk in rope.chunks) >= CHUNK_CHARS // 4
    assert (rope.text, rope.line_count, rope.line_ends) == ("", 1, LineEnds(0, 0, 0))


def test_a_line_that_is_not_there_is_an_error() -> None:
    with pytest.raises(IndexError, match="line 2 of 2"):
        Rope.of("a\nb").line_start(2)
    with pytest.raises(IndexError, match="line -1 of 2"):
        Rope.of("a\nb").line_start(-1)
