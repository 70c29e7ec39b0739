"""The window around a gap: inside its budget, cut between lines, and steady while somebody types."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine import prompts
from lsp_server.context import PREFIX_TOKENS, Window, left_border, tighter_border, window
from lsp_server.document import for_model
from lsp_server.tokens import estimated_tokens

_TEXTS = st.lists(st.sampled_from(["a", "bc", "🙂", "\n", "\r\n", "\r", "\ud83d", "def f():"]), max_size=120).map(
    "".join
)


@given(_TEXTS, st.data(), st.integers(0, 60), st.integers(0, 60))
def test_a_window_is_what_stands_around_the_gap(text: str, data: st.DataObject, prefix: int, suffix: int) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    seen = window(text, start, end, prefix_chars=prefix, suffix_chars=suffix)
    assert len(seen.prefix) <= prefix
    assert len(seen.suffix) <= suffix
    assert for_model(text[:start]).endswith(seen.prefix)
    assert for_model(text[end:]).startswith(seen.suffix)
    assert "\r" not in seen.prefix + seen.suffix


def test_a_small_document_is_seen_whole() -> None:
    assert window("ab\r\ncd", 2, 4, prefix_chars=10, suffix_chars=10) == Window("ab", "cd")


def test_borders_lie_between_lines() -> None:
    text = "".join(f"line {number:04}\n" for number in range(500))
    seen = window(text, 2505, 2505, prefix_chars=400, suffix_chars=200)
    assert seen.prefix.startswith("line ")
    assert seen.suffix.endswith("\n")
    assert len(seen.prefix) >= 290
    assert len(seen.suffix) >= 140


def test_typing_moves_the_borders_only_in_steps() -> None:
    lines = "".join(f"line {number:04}\n" for number in range(500))
    before, after = lines[:2500], lines[2500:]
    prefixes, suffixes = set(), set()
    for typed in range(100):
        text = before + "x" * typed + after
        cursor = len(before) + typed
        seen = window(text, cursor, cursor, prefix_chars=400, suffix_chars=400)
        prefixes.add(seen.prefix.removesuffix("x" * typed))
        suffixes.add(seen.suffix)
    assert len(prefixes) == 2
    assert len(suffixes) == 1


def test_one_endless_line_is_cut_inside() -> None:
    text = "x" * 100_000
    seen = window(text, 50_000, 50_000, prefix_chars=1000, suffix_chars=400)
    assert 750 <= len(seen.prefix) <= 1000
    assert 300 <= len(seen.suffix) <= 400


def test_a_gap_that_ends_inside_a_line_end_stays_in_its_budget() -> None:
    assert window("ab\r\ncd", 0, 3, prefix_chars=0, suffix_chars=0) == Window("", "")
    assert window("ab\r\ncd", 0, 0, prefix_chars=0, suffix_chars=3) == Window("", "ab")


@given(_TEXTS, st.data(), st.integers(0, 40))
def test_a_border_made_tighter_keeps_its_budget_of_tokens(text: str, data: st.DataObject, tokens: int) -> None:
    text *= 10
    start = data.draw(st.integers(0, len(text)))
    left = left_border(text, start, data.draw(st.integers(0, 400)))
    tight = tighter_border(text, left, start, tokens)
    assert left <= tight <= start
    assert estimated_tokens(text[tight:start]) <= tokens


def test_a_border_made_tighter_lies_between_lines_and_rests() -> None:
    text = "".join(f"line {number:04}\n" for number in range(500))
    borders = [tighter_border(text, 0, 4000 + typed, 400) for typed in range(40)]
    assert len(set(borders)) <= 2
    assert all(text[border - 1] == "\n" for border in borders)
    assert estimated_tokens(text[borders[0] : 4000]) >= 240
    assert tighter_border(text, 3900, 4000, 200) == 3900


def test_the_engine_reads_as_much_as_the_server_believes() -> None:
    assert PREFIX_TOKENS == prompts.PREFIX_TOKENS
